//! Which line of a file it is: asked for by messages only, so lines before the place where reading began are counted then.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::open;

/// Counts lines.
#[derive(Debug)]
pub(crate) struct LineNumbers {
    path: PathBuf,
    /// Where reading began.
    from: u64,
    /// How many lines stand before that, once somebody asked.
    before: Option<u64>,
    /// How many were read since.
    since: u64,
}

impl LineNumbers {
    pub(crate) fn new(path: &Path, from: u64) -> Self {
        Self { path: path.to_owned(), from, before: (from == 0).then_some(0), since: 0 }
    }

    /// A line was read.
    pub(crate) fn advance(&mut self) {
        self.since += 1;
    }

    /// The number of the line that comes next, from 1; `None` if the file cannot be read.
    pub(crate) fn current(&mut self) -> Option<u64> {
        if self.before.is_none() {
            self.before = self.count();
        }
        self.before.map(|before| before + self.since + 1)
    }

    fn count(&self) -> Option<u64> {
        let mut handle = open(&self.path).ok()?.take(self.from);
        let mut block = vec![0; 256 * 1024];
        let mut lines = 0;
        loop {
            match handle.read(&mut block).ok()? {
                0 => return Some(lines),
                bytes => lines += memchr::memchr_iter(b'\n', &block[..bytes]).count() as u64,
            }
        }
    }
}
