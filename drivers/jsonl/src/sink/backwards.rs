//! The lines of a file from its end to its beginning, without reading more of it than is asked for.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// How much is read at once.
const CHUNK: u64 = 64 << 10;

/// Finds complete lines, the last one first. What stands behind the last newline is no line.
pub(super) struct Backwards<'a> {
    file: &'a File,
    chunk: Vec<u8>,
    /// Where the chunk begins in the file.
    chunk_at: u64,
    /// Where the part of the chunk ends that was not looked at yet.
    unseen: usize,
    /// Behind the newline that ends the line to come; `None` before the first newline was found.
    line_end: Option<u64>,
    done: bool,
}

impl<'a> Backwards<'a> {
    /// The lines of the first `length` bytes.
    pub(super) fn new(file: &'a File, length: u64) -> Self {
        Self { file, chunk: Vec::new(), chunk_at: length, unseen: 0, line_end: None, done: false }
    }

    /// Where the next line lies, its newline included.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Range<u64>>> {
        while !self.done {
            match memchr::memrchr(b'\n', &self.chunk[..self.unseen]) {
                Some(at) => {
                    self.unseen = at;
                    let after = self.chunk_at + at as u64 + 1;
                    if let Some(end) = self.line_end.replace(after) {
                        return Ok(Some(after..end));
                    }
                }
                None if self.chunk_at == 0 => {
                    self.done = true;
                    return Ok(self.line_end.map(|end| 0..end));
                }
                None => self.read_before()?,
            }
        }
        Ok(None)
    }

    fn read_before(&mut self) -> io::Result<()> {
        let length = self.chunk_at.min(CHUNK);
        self.chunk_at -= length;
        // At most CHUNK, so it fits.
        self.chunk.resize(length as usize, 0);
        self.unseen = self.chunk.len();
        self.file.read_exact_at(&mut self.chunk, self.chunk_at)
    }
}

/// Reads a part of a file.
pub(super) fn read(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let length = usize::try_from(range.end - range.start).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(content: &str) -> Vec<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let mut backwards = Backwards::new(&file, content.len() as u64);
        let mut found = Vec::new();
        while let Some(range) = backwards.next_line().unwrap() {
            found.push(String::from_utf8(read(&file, range).unwrap()).unwrap());
        }
        found
    }

    #[test]
    fn complete_lines_come_from_the_last_to_the_first() {
        assert_eq!(lines("a\nbb\n\nccc\n"), ["ccc\n", "\n", "bb\n", "a\n"]);
        assert_eq!(lines("a\n"), ["a\n"]);
        assert_eq!(lines("\n"), ["\n"]);
    }

    #[test]
    fn a_line_without_its_newline_is_none() {
        assert_eq!(lines("a\nbb\ntorn"), ["bb\n", "a\n"]);
        assert_eq!(lines("torn"), Vec::<String>::new());
        assert_eq!(lines(""), Vec::<String>::new());
    }

    #[test]
    fn a_line_may_be_longer_than_what_is_read_at_once() {
        let long = "x".repeat(200_000);
        let content = format!("a\n{long}\n{long}\nb\n{long}");
        assert_eq!(lines(&content), ["b\n".into(), format!("{long}\n"), format!("{long}\n"), "a\n".into()]);
        // A newline as the last byte of a chunk, and as the first.
        for length in [CHUNK as usize - 1, CHUNK as usize, CHUNK as usize + 1] {
            let long = "y".repeat(length - 2);
            assert_eq!(lines(&format!("a\n{long}\nb\n")), ["b\n".into(), format!("{long}\n"), "a\n".into()]);
        }
    }
}
