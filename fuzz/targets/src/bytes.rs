//! Choices out of bytes. At their end every choice is 0, which each reader makes its quiet one.

/// Bytes that are read from the front.
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Bytes that lack at the end are 0.
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let (taken, rest) = self.rest.split_at(self.rest.len().min(N));
        array[..taken.len()].copy_from_slice(taken);
        self.rest = rest;
        array
    }

    /// One of `many`, by one byte.
    pub(crate) fn below(&mut self, many: usize) -> usize {
        usize::from(self.u8()) % many.max(1)
    }

    /// True in so many of 256 cases.
    pub(crate) fn chance(&mut self, of_256: u8) -> bool {
        // Not the smallest bytes: at the end of the input nothing unusual happens.
        self.u8() >= u8::MAX - of_256.saturating_sub(1) && of_256 > 0
    }

    /// Up to `most` bytes; how many, the next byte says.
    pub(crate) fn some(&mut self, most: usize) -> &'a [u8] {
        let length = self.below(most + 1).min(self.rest.len());
        let (some, rest) = self.rest.split_at(length);
        self.rest = rest;
        some
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}
