//! Files in a local directory. A file is flushed, then its directory, before anybody is told about it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::{Failure, Input, Output, Storage};

const SCHEME: &str = "file://";

/// The local file system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Local;

impl Local {
    /// The URI of an absolute path.
    pub(crate) fn location(path: &Path) -> String {
        format!("{SCHEME}{}", path.display())
    }
}

impl Storage for Local {
    fn create(&self, location: &str) -> Result<Box<dyn Output>, Failure> {
        Ok(Box::new(create(location)?))
    }

    fn put(&self, files: &[(String, Bytes)]) -> Result<(), Failure> {
        let mut directories = BTreeSet::new();
        for (location, bytes) in files {
            let mut file = create(location)?;
            file.write_all(bytes).map_err(|e| Failure::new("write", location, e))?;
            directories.insert(file.directory().to_owned());
            file.flush_contents()?;
        }
        directories.iter().try_for_each(|directory| flush_directory(directory))
    }

    fn read(&self, location: &str) -> Result<Bytes, Failure> {
        let path = path_of(location)?;
        fs::read(path).map(Bytes::from).map_err(|e| Failure::new("read", location, e))
    }

    fn open(&self, location: &str) -> Result<Arc<dyn Input>, Failure> {
        let path = path_of(location)?;
        let file = File::open(path).map_err(|e| Failure::new("read", location, e))?;
        let length = file.metadata().map_err(|e| Failure::new("read", location, e))?.len();
        Ok(Arc::new(LocalInput { file, length }))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, Failure> {
        let path = path_of(directory)?;
        let failed = |e| Failure::new("list", directory, e);
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(failed(e)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_file() {
                files.push(Self::location(&entry.path()));
            }
        }
        files.sort();
        Ok(files)
    }

    fn delete(&self, location: &str) -> Result<(), Failure> {
        match fs::remove_file(path_of(location)?) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Failure::new("delete", location, e)),
            _ => Ok(()),
        }
    }
}

fn path_of(location: &str) -> Result<&Path, Failure> {
    match location.strip_prefix(SCHEME) {
        Some(path) if path.starts_with('/') => Ok(Path::new(path)),
        _ => {
            let e = io::Error::new(io::ErrorKind::InvalidInput, "it is no local file (file:///...)");
            Err(Failure::new("read", location, e))
        }
    }
}

fn create(location: &str) -> Result<LocalOutput, Failure> {
    let path = path_of(location)?;
    let failed = |e| Failure::new("create", location, e);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let file = match options.open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            make_directory(path.parent().unwrap_or(path))?;
            options.open(path).map_err(failed)?
        }
        opened => opened.map_err(failed)?,
    };
    Ok(LocalOutput { file, path: path.to_owned(), location: location.to_owned(), written: 0, finished: false })
}

/// Makes a directory and what is missing above it, each durable in the one above.
fn make_directory(directory: &Path) -> Result<(), Failure> {
    let failed = |e| Failure::new("create", &Local::location(directory), e);
    let missing: Vec<&Path> = directory.ancestors().take_while(|d| !d.exists()).collect();
    fs::create_dir_all(directory).map_err(failed)?;
    missing.iter().filter_map(|d| d.parent()).try_for_each(flush_directory)
}

fn flush_directory(directory: &Path) -> Result<(), Failure> {
    let flushed = File::open(directory).and_then(|d| d.sync_all());
    flushed.map_err(|e| Failure::new("flush", &Local::location(directory), e))
}

struct LocalOutput {
    file: File,
    path: PathBuf,
    location: String,
    written: u64,
    finished: bool,
}

impl LocalOutput {
    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn flush_contents(mut self) -> Result<u64, Failure> {
        self.file.sync_all().map_err(|e| Failure::new("flush", &self.location, e))?;
        self.finished = true;
        Ok(self.written)
    }
}

impl Write for LocalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for LocalOutput {
    fn finish(self: Box<Self>) -> Result<u64, Failure> {
        let directory = self.directory().to_owned();
        let written = self.flush_contents()?;
        flush_directory(&directory)?;
        Ok(written)
    }
}

impl Drop for LocalOutput {
    fn drop(&mut self) {
        if !self.finished {
            // Nobody was told of it. If this fails too, a later life finds it by its name.
            let _ = fs::remove_file(&self.path);
        }
    }
}

struct LocalInput {
    file: File,
    length: u64,
}

impl Input for LocalInput {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        if offset.saturating_add(length as u64) > self.length {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it should be"));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(Bytes::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_used_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = format!("{}/a/b/one", Local::location(dir.path()));
        Local.put(&[(at.clone(), Bytes::from_static(b"1"))]).unwrap();
        let again = Local.put(&[(at.clone(), Bytes::from_static(b"2"))]).unwrap_err();
        assert_eq!((again.action, again.source.kind()), ("create", io::ErrorKind::AlreadyExists));
        assert_eq!(&Local.read(&at).unwrap()[..], b"1");
    }

    #[test]
    fn an_unfinished_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Local::location(dir.path());
        let mut file = Local.create(&format!("{root}/half")).unwrap();
        file.write_all(b"abc").unwrap();
        drop(file);
        assert_eq!(Local.list(&root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_finished_file_is_listed_and_read_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let root = Local::location(dir.path());
        let mut file = Local.create(&format!("{root}/whole")).unwrap();
        file.write_all(b"abcdef").unwrap();
        assert_eq!(file.finish().unwrap(), 6);
        assert_eq!(Local.list(&root).unwrap(), vec![format!("{root}/whole")]);
        let input = Local.open(&format!("{root}/whole")).unwrap();
        assert_eq!(&input.read_at(2, 3).unwrap()[..], b"cde");
        assert_eq!(input.read_at(4, 3).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn deleting_twice_and_listing_nothing_are_no_errors() {
        let dir = tempfile::tempdir().unwrap();
        let root = Local::location(dir.path());
        Local.delete(&format!("{root}/none")).unwrap();
        assert_eq!(Local.list(&format!("{root}/nowhere")).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn other_schemes_are_refused() {
        assert_eq!(Local.read("s3://bucket/key").unwrap_err().source.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(Local.read("relative").unwrap_err().source.kind(), io::ErrorKind::InvalidInput);
    }
}
