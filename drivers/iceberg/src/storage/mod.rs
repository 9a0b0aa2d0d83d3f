//! Where files lie: a small blocking interface, durable once a call has answered.
//!
//! The Iceberg crate has a file interface of its own, but a local file written through it is not flushed to the disk and
//! neither is its directory. Here every answer means 'it stays after a power cut', errors tell a full disk from a missing
//! file, and a directory can be listed. The crate only encodes; this module moves the bytes.
//!
//! Callers are on a thread that may block. Deliberately absent: renames and overwriting. A name is used once.

mod local;

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use contract::{Error, Kind};
use parquet::file::reader::{ChunkReader, Length};

pub(crate) use local::Local;

/// A place for files. A location is an absolute URI, `file:///warehouse/shop/orders/data/...`.
pub(crate) trait Storage: Send + Sync + fmt::Debug {
    /// Begins a new file. It is an error if there is one of that name.
    fn create(&self, location: &str) -> Result<Box<dyn Output>, Failure>;

    /// Writes new files whole. None is named by anything before all of them are durable.
    fn put(&self, files: &[(String, Bytes)]) -> Result<(), Failure>;

    /// Reads a file whole.
    fn read(&self, location: &str) -> Result<Bytes, Failure>;

    /// Opens a file for reading parts of it.
    fn open(&self, location: &str) -> Result<Arc<dyn Input>, Failure>;

    /// The locations of the files directly in a directory; none if it is not there.
    fn list(&self, directory: &str) -> Result<Vec<String>, Failure>;

    /// Deletes a file. One that is not there is deleted already.
    fn delete(&self, location: &str) -> Result<(), Failure>;
}

/// A file being written.
pub(crate) trait Output: io::Write + Send {
    /// Ends it; from here on it stays. Answers its length. A file that is dropped unfinished is removed, best effort.
    fn finish(self: Box<Self>) -> Result<u64, Failure>;
}

/// A file being read.
pub(crate) trait Input: Send + Sync {
    /// Its length in bytes.
    fn length(&self) -> u64;

    /// Exactly these bytes.
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes>;
}

/// What went wrong with a file.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {location}: {source}")]
pub(crate) struct Failure {
    /// What was tried: `create`, `write`, `flush`, `read`, `list`, `delete`.
    pub(crate) action: &'static str,
    /// On which file.
    pub(crate) location: String,
    /// What the system said.
    pub(crate) source: io::Error,
}

impl Failure {
    pub(crate) fn new(action: &'static str, location: &str, source: io::Error) -> Self {
        Self { action, location: location.to_owned(), source }
    }

    /// Is there no such file?
    pub(crate) fn is_absent(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let (kind, code, remedy) = match failure.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => (
                Kind::Transient,
                "iceberg-disk-full",
                "make room on that disk; nothing is lost, and what was not written is written again",
            ),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => (
                Kind::Config,
                "iceberg-rights",
                "give the user that runs urutau the right to read and write in the warehouse's directory",
            ),
            io::ErrorKind::NotFound => (
                Kind::Transient,
                "iceberg-file-missing",
                "a file that the table names is gone: bring it back, or drop the table and let it be copied anew",
            ),
            _ => (Kind::Transient, "iceberg-storage", "see what the system says about that disk"),
        };
        Error::new(kind, code, failure.to_string(), remedy)
    }
}

/// An [`Input`] as the Parquet reader wants it.
#[derive(Clone)]
pub(crate) struct Chunks(pub(crate) Arc<dyn Input>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.length()
    }
}

impl ChunkReader for Chunks {
    type T = Sequential;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Sequential> {
        Ok(Sequential { input: Arc::clone(&self.0), at: start, buffer: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        Ok(self.0.read_at(start, length)?)
    }
}

/// Reads on from an offset, some kilobytes at a time.
pub(crate) struct Sequential {
    input: Arc<dyn Input>,
    at: u64,
    buffer: Bytes,
}

impl Read for Sequential {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        const STEP: u64 = 64 * 1024;
        if self.buffer.is_empty() {
            let left = self.input.length().saturating_sub(self.at);
            let length = left.min(STEP);
            self.buffer = self.input.read_at(self.at, usize::try_from(length).unwrap_or(0))?;
            self.at += length;
        }
        let n = into.len().min(self.buffer.len());
        into[..n].copy_from_slice(&self.buffer.split_to(n));
        Ok(n)
    }
}
