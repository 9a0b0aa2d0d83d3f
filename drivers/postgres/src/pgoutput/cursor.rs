//! Reading bytes from the front: each read takes what it says or fails, and nothing is copied.

use super::Malformed;

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not read.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, bytes: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Malformed::Short { what })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Short { what })?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32, Malformed> {
        self.array(what).map(i32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, Malformed> {
        self.array(what).map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, Malformed> {
        self.array(what).map(i64::from_be_bytes)
    }

    /// A length that is never negative.
    pub(super) fn length(&mut self, what: &'static str) -> Result<usize, Malformed> {
        usize::try_from(self.i32(what)?).map_err(|_| Malformed::Negative { what })
    }

    /// Text up to a zero byte.
    pub(super) fn text(&mut self, what: &'static str) -> Result<&'a str, Malformed> {
        let end = memchr::memchr(0, self.rest).ok_or(Malformed::Short { what })?;
        let text = self.take(end, what)?;
        self.take(1, what)?;
        std::str::from_utf8(text).map_err(|_| Malformed::NotText { what })
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), Malformed> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(Malformed::Trailing { bytes }),
        }
    }
}
