//! Reading a value's bytes from the front: each step takes what it says or fails, and nothing is copied or reserved.

use super::{Misfit, exactly};

/// What of a value was not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Misfit> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Misfit::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Misfit> {
        exactly(self.take(N)?)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Misfit> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Misfit> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Misfit> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Misfit> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Misfit> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn f32(&mut self) -> Result<f32, Misfit> {
        self.array().map(f32::from_be_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, Misfit> {
        self.array().map(f64::from_be_bytes)
    }

    /// How many things follow, of which each takes so many bytes at least: a count that lies is found out before it is believed.
    pub(super) fn count(&mut self, bytes_min: usize) -> Result<usize, Misfit> {
        let count = usize::try_from(self.i32()?).map_err(|_| Misfit::Malformed)?;
        if count <= self.0.len() / bytes_min { Ok(count) } else { Err(Misfit::Malformed) }
    }

    /// A length and as many bytes; `None` for null.
    pub(super) fn value(&mut self) -> Result<Option<&'a [u8]>, Misfit> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| Misfit::Malformed)?).map(Some),
        }
    }

    /// Text up to a zero byte.
    pub(super) fn text(&mut self) -> Result<&'a str, Misfit> {
        let end = memchr::memchr(0, self.0).ok_or(Misfit::Malformed)?;
        let text = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(text).map_err(|_| Misfit::Malformed)
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), Misfit> {
        if self.0.is_empty() { Ok(()) } else { Err(Misfit::Malformed) }
    }
}
