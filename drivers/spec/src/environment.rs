//! What a pipeline file may take from outside of itself: variables and files.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// Where `${env:NAME}` and `${file:PATH}` look.
pub trait Environment {
    /// The value of a variable, if it is set.
    fn variable(&self, name: &str) -> Option<OsString>;
    /// What a file holds.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The variables and files of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        use io::Read as _;
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// A file that stands for one value is never larger.
pub(crate) const FILE_BYTES_MAX: usize = 1 << 20;
