//! The file of a table: a header, then checkpoints, each closed by a line of state.
//!
//! A line of state holds a sum over its checkpoint and itself. After a power cut a file may be longer than what was written
//! to it, with holes of zeros in between: a checkpoint counts only if its sum is right, and everything behind the last one
//! that is right was never said to be durable.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use contract::{Error, Kind};
use kernel::id::Token;
use kernel::state::TableState;
use serde::{Deserialize, Serialize};

use super::backwards::{Backwards, read};
use super::fault;

/// The first line: whose file it is. It never changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    /// The form of the file.
    pub(super) urutau: String,
    /// The pipeline that writes it.
    pub(super) pipeline: String,
    /// The table at the source.
    pub(super) table: String,
    /// How rows are applied.
    pub(super) mode: String,
    /// The names of the key columns.
    pub(super) key: Vec<String>,
}

/// What [`Header::urutau`] says.
pub(super) const FORM: &str = "jsonl/1";

/// A header is a short line; what is longer is another file.
const HEADER_BYTES_MAX: u64 = 64 << 10;

/// What a line of state begins with.
const STATE: &[u8] = b"{\"state\":";
/// What stands between the line's content and its sum, and the bytes from there to the end of the line.
const SUM: &[u8] = b",\"crc\":\"";
const SUM_BYTES: usize = SUM.len() + 8 + 3;

/// Where a table stands.
#[derive(Debug)]
pub(super) struct Stand {
    /// Its state and token, if a checkpoint was ever committed.
    pub(super) newest: Option<(TableState, Token)>,
    /// Where the last checkpoint ends, or the header.
    pub(super) end: u64,
    /// How much stands behind that: the rest of a commit that did not come to its end.
    pub(super) torn: u64,
}

impl Stand {
    pub(super) fn token(&self) -> Token {
        self.newest.as_ref().map_or(Token::from("0"), |(_, token)| token.clone())
    }
}

/// The file of a table, opened.
pub(super) struct TableFile {
    path: PathBuf,
    file: File,
}

impl TableFile {
    /// Makes the file if it is not there. Another process may do so at the same time; then its file is the one.
    pub(super) fn create(path: &Path, header: &Header) -> Result<(), Error> {
        let cannot = |error| fault("create", path, &error);
        let mut line = serde_json::to_vec(header).map_err(|error| cannot(error.into()))?;
        line.push(b'\n');
        let name = format!(".{}.{:016x}.new", path.file_name().unwrap_or_default().display(), random());
        let unnamed = path.with_file_name(name);
        let made = File::create_new(&unnamed).and_then(|mut file| {
            file.write_all(&line)?;
            file.sync_all()?;
            match fs::hard_link(&unnamed, path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => sync_directory(path),
            }
        });
        let _ = fs::remove_file(&unnamed);
        made.map_err(cannot)
    }

    /// Opens the file; `None` if there is none.
    pub(super) fn open(path: &Path, write: bool) -> Result<Option<Self>, Error> {
        match OpenOptions::new().read(true).write(write).open(path) {
            Ok(file) => Ok(Some(Self { path: path.to_owned(), file })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault("open", path, &error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn length(&self) -> Result<u64, Error> {
        self.file.metadata().map(|data| data.len()).map_err(|error| fault("read", &self.path, &error))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The header, and where it ends.
    pub(super) fn header(&self) -> Result<(Header, u64), Error> {
        let mut start = Vec::new();
        (&self.file)
            .seek(SeekFrom::Start(0))
            .and_then(|_| (&self.file).take(HEADER_BYTES_MAX).read_to_end(&mut start))
            .map_err(|error| fault("read", &self.path, &error))?;
        let line = start.iter().position(|byte| *byte == b'\n').map(|end| &start[..end]);
        let header = line.and_then(|line| serde_json::from_slice::<Header>(line).ok()).filter(|header| header.urutau == FORM);
        match (line, header) {
            (Some(line), Some(header)) => Ok((header, line.len() as u64 + 1)),
            _ => Err(Error::new(
                Kind::Config,
                "jsonl-sink-foreign",
                format!("{}: its first line is not that of a table of this sink ({FORM})", self.path.display()),
                "name another directory, or move the file away",
            )),
        }
    }

    /// Where the table stands.
    pub(super) fn stand(&self) -> Result<Stand, Error> {
        self.stand_trusting(None)
    }

    /// Where the table stands. The checkpoint of the token `known` was found whole before, by who asks now: that it still
    /// is need not be read out of the file again at each commit.
    pub(super) fn stand_trusting(&self, known: Option<&Token>) -> Result<Stand, Error> {
        let (_, header_end) = self.header()?;
        let length = self.length()?;
        let cannot = |error| fault("read", &self.path, &error);
        let mut lines = Backwards::new(&self.file, length);
        while let Some(line) = lines.next_line().map_err(cannot)? {
            if line.start < header_end {
                break;
            }
            let end = line.end;
            if let Some(newest) = self.state_of(line, known).map_err(cannot)?.transpose()? {
                return Ok(Stand { newest: Some(newest), end, torn: length - end });
            }
        }
        Ok(Stand { newest: None, end: header_end, torn: length - header_end })
    }

    /// The state of a line, if it is a line of state whose checkpoint is whole. An error if it is, and cannot be read.
    fn state_of(&self, line: Range<u64>, known: Option<&Token>) -> io::Result<Option<Result<(TableState, Token), Error>>> {
        let begins = |range: Range<u64>| read(&self.file, range).map(|bytes| bytes == STATE);
        if line.end - line.start < (STATE.len() + SUM_BYTES) as u64 || !begins(line.start..line.start + STATE.len() as u64)? {
            return Ok(None);
        }
        let bytes = read(&self.file, line.clone())?;
        let parsed = serde_json::from_slice::<StateLine>(&bytes).map(|line| (line.state, Token::from(line.token)));
        if let Ok((state, token)) = &parsed
            && known == Some(token)
        {
            return Ok(Some(Ok((state.clone(), token.clone()))));
        }
        let (content, sum) = bytes.split_at(bytes.len() - SUM_BYTES);
        let from = content.rsplit(|byte| *byte == b':').next().and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let Some(from) = from.filter(|from| *from <= line.start) else { return Ok(None) };
        let mut hasher = crc32fast::Hasher::new();
        self.sum(from..line.start, &mut hasher)?;
        hasher.update(content);
        if sum != sum_text(hasher.finalize()).as_bytes() {
            return Ok(None);
        }
        Ok(Some(parsed.map_err(|error| {
            Error::new(
                Kind::Config,
                "jsonl-sink-unreadable",
                format!("{}: the state at byte {} cannot be read: {error}", self.path.display(), line.start),
                "use the version of urutau that wrote it",
            )
        })))
    }

    fn sum(&self, range: Range<u64>, hasher: &mut crc32fast::Hasher) -> io::Result<()> {
        let mut at = range.start;
        while at < range.end {
            let chunk = read(&self.file, at..range.end.min(at + (256 << 10)))?;
            hasher.update(&chunk);
            at += chunk.len() as u64;
        }
        Ok(())
    }

    /// Removes what a commit left that did not come to its end. Under the table's lock only.
    pub(super) fn cut_off(&self, stand: &Stand) -> Result<(), Error> {
        if stand.torn > 0 {
            tracing::warn!(file = %self.path.display(), bytes = stand.torn, "removing what an unfinished commit left");
            self.file.set_len(stand.end).map_err(|error| fault("write", &self.path, &error))?;
        }
        Ok(())
    }

    /// What was read is durable: whoever wrote it may have died before it could say so.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(|error| fault("sync", &self.path, &error))
    }

    /// Adds a checkpoint at the end of the file. If that fails the file is as it was, or the answer is `Err(Unknown)`. Under
    /// the table's lock only, with nothing torn at the end.
    pub(super) fn append(&self, stand: &Stand, checkpoint: &Checkpoint<'_>) -> Result<Token, NotAppended> {
        let number = stand.token().as_str().split('.').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        let token = format!("{}.{:016x}", number.saturating_add(1), random());
        let written = self.write(stand.end, checkpoint, &token).and_then(|()| self.file.sync_data());
        let Err(error) = written else { return Ok(Token::from(token)) };
        match self.file.set_len(stand.end).and_then(|()| self.file.sync_data()) {
            Ok(()) => Err(NotAppended::Failed(fault("write", &self.path, &error))),
            Err(again) => Err(NotAppended::Unknown(format!("{error}; taking it back: {again}"))),
        }
    }

    fn write(&self, at: u64, checkpoint: &Checkpoint<'_>, token: &str) -> io::Result<()> {
        (&self.file).seek(SeekFrom::Start(at))?;
        let mut out = Summed { inner: BufWriter::with_capacity(64 << 10, &self.file), hasher: crc32fast::Hasher::new() };
        if checkpoint.empties {
            out.write_all(b"{\"op\":\"t\"}\n")?;
        }
        for part in checkpoint.parts {
            let copied = io::copy(&mut File::open(&part.path)?, &mut out)?;
            if copied != part.bytes {
                let why = format!("{} has {copied} bytes, {} were staged", part.path.display(), part.bytes);
                return Err(io::Error::other(why));
            }
        }
        out.write_all(STATE)?;
        serde_json::to_writer(&mut out, checkpoint.state)?;
        write!(out, ",\"token\":\"{token}\",\"from\":{at}")?;
        let sum = sum_text(out.hasher.clone().finalize());
        out.write_all(sum.as_bytes())?;
        out.inner.flush()
    }
}

/// What a commit adds to a file.
pub(super) struct Checkpoint<'a> {
    /// Nothing that stands before it counts any more.
    pub(super) empties: bool,
    pub(super) parts: &'a [StagedRows],
    pub(super) state: &'a TableState,
}

/// Rows that wait in a file of their own.
#[derive(Clone, Debug)]
pub(super) struct StagedRows {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// Why a checkpoint was not added.
#[derive(Debug)]
pub(super) enum NotAppended {
    /// The file is as it was.
    Failed(Error),
    /// Nobody knows; the next one who looks will find out.
    Unknown(String),
}

#[derive(Deserialize)]
struct StateLine {
    state: TableState,
    token: String,
}

/// The end of a line of state.
fn sum_text(sum: u32) -> String {
    format!(",\"crc\":\"{sum:08x}\"}}\n")
}

/// A writer that sums what goes through it.
struct Summed<W> {
    inner: W,
    hasher: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A number that no other process and no other call has: what the standard library seeds its hash maps with.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn sync_directory(of: &Path) -> io::Result<()> {
    let parent = of.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}
