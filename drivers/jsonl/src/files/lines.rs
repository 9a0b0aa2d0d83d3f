//! A file's lines, with the byte where each begins, out of one large buffer.
//!
//! A line is looked at first and passed over after it was taken ([`Lines::next`], then [`Lines::consume`]), so that what could
//! not be taken is there again at the next look.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use contract::Error;

use super::{open, unreadable};

/// How long a line may be. It is held in memory as a whole, and so is what it becomes.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 20;

/// How much is read at once.
const READ_BYTES: usize = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where a line stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinePlace {
    /// The byte in the file where it begins.
    pub(crate) begin: u64,
    /// The byte after its line end.
    pub(crate) end: u64,
    /// Its text in the buffer, without line end and byte order mark.
    start: usize,
    stop: usize,
}

/// What comes next in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// A line with its end.
    Line(LinePlace),
    /// The last line, which has no end (yet).
    Partial(LinePlace),
    /// A line that is longer than [`LINE_BYTES_MAX`].
    TooLong {
        /// The byte where it begins.
        begin: u64,
    },
    /// Nothing (yet).
    End,
}

/// A file that is read line by line.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// What of the buffer holds bytes that were read and not consumed.
    start: usize,
    filled: usize,
    /// Where `start` is in the file.
    offset: u64,
    /// No line end before this place of the buffer.
    searched: usize,
}

impl Lines {
    /// Opens a file at the beginning of a line.
    pub(crate) fn open(path: &Path, offset: u64) -> Result<Self, Error> {
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(offset)).map_err(|e| unreadable(path, "read", &e))?;
        Ok(Self { path: path.to_owned(), file, buffer: Vec::new(), start: 0, filled: 0, offset, searched: 0 })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Where the next line begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line, which stays the next one until it is consumed.
    pub(crate) fn next(&mut self) -> Result<Next, Error> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..self.filled]) {
                let stop = self.searched + at;
                self.searched = stop;
                return Ok(if stop - self.start > LINE_BYTES_MAX {
                    Next::TooLong { begin: self.offset }
                } else {
                    Next::Line(self.place(stop, self.offset + (stop - self.start) as u64 + 1))
                });
            }
            self.searched = self.filled;
            if self.filled - self.start > LINE_BYTES_MAX {
                return Ok(Next::TooLong { begin: self.offset });
            }
            if self.fill().map_err(|e| unreadable(&self.path, "read", &e))? == 0 {
                return Ok(if self.start == self.filled {
                    Next::End
                } else {
                    Next::Partial(self.place(self.filled, self.offset + (self.filled - self.start) as u64))
                });
            }
        }
    }

    fn place(&self, mut stop: usize, end: u64) -> LinePlace {
        let mut start = self.start;
        if self.offset == 0 && self.buffer[start..stop].starts_with(BYTE_ORDER_MARK) {
            start += BYTE_ORDER_MARK.len();
        }
        if stop > start && self.buffer[stop - 1] == b'\r' {
            stop -= 1;
        }
        LinePlace { begin: self.offset, end, start, stop }
    }

    /// A line's text.
    pub(crate) fn bytes(&self, line: &LinePlace) -> &[u8] {
        &self.buffer[line.start..line.stop]
    }

    /// Passes over a line.
    pub(crate) fn consume(&mut self, line: &LinePlace) {
        self.start += (line.end - self.offset) as usize;
        self.offset = line.end;
        self.searched = self.searched.max(self.start);
    }

    /// Passes over a line that is too long, without holding it. The byte after its line end, or the file's end.
    pub(crate) fn skip_too_long(&mut self) -> Result<u64, Error> {
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.start..self.filled]);
            let passed = found.map_or(self.filled - self.start, |at| at + 1);
            self.start += passed;
            self.offset += passed as u64;
            self.searched = self.start;
            if found.is_some() || self.fill().map_err(|e| unreadable(&self.path, "read", &e))? == 0 {
                return Ok(self.offset);
            }
        }
    }

    /// Reads more. 0 at the file's end.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        // After a very long line the buffer goes back to its usual size.
        if self.filled < READ_BYTES && self.buffer.len() > 4 * READ_BYTES {
            self.buffer.truncate(2 * READ_BYTES);
            self.buffer.shrink_to_fit();
        }
        if self.buffer.len() - self.filled < READ_BYTES {
            self.buffer.resize((2 * self.buffer.len()).max(self.filled + READ_BYTES), 0);
        }
        loop {
            match self.file.read(&mut self.buffer[self.filled..]) {
                Ok(bytes) => {
                    self.filled += bytes;
                    return Ok(bytes);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}
