//! The files of a log: a path or a glob, one stream a file in the order of their names.
//!
//! A stream's name is the file's path below the glob's base (of a plain path: the file's name), its identity a hash of its
//! first complete line, an offset in it the byte where a line begins.

mod identity;
mod lines;
mod numbers;
mod resume;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use contract::{Error, Kind};
use kernel::id::StreamName;

pub(crate) use identity::{complete_end, identity};
pub(crate) use lines::{LINE_BYTES_MAX, LinePlace, Lines, Next};
pub(crate) use numbers::LineNumbers;
pub(crate) use resume::{came_too_late, check_resumable, grew, line_begins_at, shrunk};

/// Where the files are.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// As the pipeline file says it.
    text: String,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
enum Pattern {
    One(PathBuf),
    Many { base: PathBuf },
}

/// A file that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogFile {
    pub(crate) stream: StreamName,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// What the file system knows it by, whatever its name.
    pub(crate) id: Option<(u64, u64)>,
}

impl Location {
    pub(crate) fn new(text: &str) -> Result<Self, Error> {
        let path = Path::new(text);
        let is_wild = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
        // A file whose own name holds such a character is meant as it is written.
        if path.is_file() || !path.components().any(|part| is_wild(&part)) {
            return Ok(Self { text: text.to_owned(), pattern: Pattern::One(path.to_owned()) });
        }
        if let Err(wrong) = glob::Pattern::new(text) {
            return Err(no_glob(text, &wrong));
        }
        // Paths that were found do not begin with `./`, whatever the glob does.
        let base = path.components().take_while(|part| !is_wild(part)).filter(|part| *part != Component::CurDir).collect();
        Ok(Self { text: text.to_owned(), pattern: Pattern::Many { base } })
    }

    /// As the pipeline file says it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_glob(&self) -> bool {
        matches!(self.pattern, Pattern::Many { .. })
    }

    /// The files that are there now, in the order of their names; of a plain path that does not exist, none.
    pub(crate) fn list(&self) -> Result<Vec<LogFile>, Error> {
        let base = match &self.pattern {
            Pattern::Many { base } => base,
            Pattern::One(path) => {
                let name = path.file_name().map_or(self.text.as_str().into(), |name| name.to_string_lossy());
                return Ok(log_file(path, &name)?.into_iter().collect());
            }
        };
        let options = glob::MatchOptions { case_sensitive: true, require_literal_separator: true, ..Default::default() };
        let found = glob::glob_with(&self.text, options).map_err(|wrong| no_glob(&self.text, &wrong))?;
        let mut files = Vec::new();
        for path in found {
            let path = path.map_err(|e| unreadable(e.path(), "list", e.error()))?;
            let name = path.strip_prefix(base).unwrap_or(&path);
            let name = name.to_str().ok_or_else(|| {
                Error::new(
                    Kind::Config,
                    "jsonl-path",
                    format!("a file that '{}' matches has a name that is not UTF-8: {}", self.text, path.display()),
                    "rename it: names are part of stored positions",
                )
            })?;
            files.extend(log_file(&path, name)?);
        }
        files.sort_by(|a, b| a.stream.cmp(&b.stream));
        Ok(files)
    }
}

fn no_glob(text: &str, wrong: &glob::PatternError) -> Error {
    Error::new(
        Kind::Config,
        "jsonl-path",
        format!("source.path: '{text}' is no glob: {} at character {}", wrong.msg, wrong.pos),
        "use *, ?, ** and [...] as a shell does; [*], [?] and [[] stand for the characters themselves",
    )
}

/// `None` for what is gone or is a directory below a glob.
fn log_file(path: &Path, name: &str) -> Result<Option<LogFile>, Error> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            let (stream, id) = (StreamName::from(name), file_id(&found));
            Ok(Some(LogFile { stream, path: path.to_owned(), bytes: found.len(), id }))
        }
        Ok(found) if found.is_dir() => Ok(None),
        Ok(_) => Err(Error::new(
            Kind::Config,
            "jsonl-path",
            format!("{} is neither a file nor a directory", path.display()),
            "a pipe or a device has no offsets to come back to: write the events to a file",
        )),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unreadable(path, "look at", &e)),
    }
}

/// Device and inode, where there are such things.
#[cfg(unix)]
pub(crate) fn file_id(file: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((file.dev(), file.ino()))
}

/// Device and inode, where there are such things.
#[cfg(not(unix))]
pub(crate) fn file_id(_file: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

pub(crate) fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|e| unreadable(path, "open", &e))
}

/// What an I/O error on a file means.
pub(crate) fn unreadable(path: &Path, act: &str, error: &io::Error) -> Error {
    let what = format!("cannot {act} {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::new(
            Kind::Config,
            "jsonl-unreadable",
            what,
            "give the user that urutau runs as the right to read it, and to enter each directory above it",
        ),
        io::ErrorKind::NotFound => Error::new(
            Kind::Config,
            "jsonl-no-file",
            what,
            "check 'source.path'; a relative one is relative to the working directory",
        ),
        _ => Error::new(Kind::Transient, "jsonl-io", what, "check the disk or the network mount that holds it"),
    }
}
