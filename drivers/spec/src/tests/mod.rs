//! Whole files in, models or problems out.

mod changed_files;
mod files;
mod filter;
mod model;
mod pages;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::environment::Environment;

/// The secret that no output may hold.
const SECRET: &str = "hunter2";

/// A few variables and files, the same on every machine.
struct Fixture;

impl Environment for Fixture {
    fn variable(&self, name: &str) -> Option<OsString> {
        let text = match name {
            "KIND" => "jsonl",
            "FOLDER" => "/hunter2/data",
            "YES" => "true",
            "NUMBER" => "5000",
            "COLUMN" => "id",
            "SECRET" => SECRET,
            "LATIN1" => return latin1(),
            _ => return None,
        };
        Some(text.into())
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("/run/secrets/address") => Ok(b"/hunter2/warehouse\n".to_vec()),
            Some("/run/secrets/binary") => Ok(vec![0xff, 0xfe]),
            Some("/run/secrets/large") => Ok(vec![b'x'; 1 << 20]),
            Some("/run/secrets/huge") => Ok(vec![b'x'; 2 << 20]),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    }
}

#[cfg(unix)]
fn latin1() -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(vec![b'f', 0xfc, b'r']))
}

#[cfg(not(unix))]
fn latin1() -> Option<OsString> {
    None
}
