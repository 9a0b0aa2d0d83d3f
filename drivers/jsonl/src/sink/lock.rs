//! One process at a time at the end of a table's file.
//!
//! The lock is held for a commit, not while a table is open: a life that was stopped between two commits must not hold up
//! the next one, and what it does when it wakes loses by its token. One that was stopped *inside* a commit does hold up
//! the next life, for as long as it is stopped; the message names it. When a process ends, the system lets its lock go.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use contract::{Error, Kind};

use super::fault;

/// How long a commit of another process may take before we say that we wait for it.
struct Patience {
    tries: u32,
    pause: Duration,
}

const PATIENCE: Patience = Patience { tries: 250, pause: Duration::from_millis(20) };

/// Held until it is dropped.
struct Lock {
    /// Closing it lets the lock go.
    _file: File,
}

impl Lock {
    /// Takes the lock if nobody has it.
    fn take(path: &Path) -> Result<Option<Lock>, Error> {
        let cannot = |error| fault("lock", path, &error);
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        // Somebody may have removed the file before we had it: then others would lock another one.
        let ours = file.metadata().map_err(cannot)?;
        if fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            // For the message of who waits; it matters to nobody whether it arrives.
            let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
            return Ok(Some(Lock { _file: file }));
        }
        Ok(None)
    }
}

/// Does blocking work while nobody else can, on a thread where it may block.
pub(super) async fn exclusively<T, W>(lock: &Path, work: W) -> Result<T, Error>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, Error> + Send + 'static,
{
    within(PATIENCE, lock, work).await
}

async fn within<T, W>(patience: Patience, lock: &Path, mut work: W) -> Result<T, Error>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, Error> + Send + 'static,
{
    for _ in 0..patience.tries {
        let path = lock.to_owned();
        let tried = blocking(move || {
            Ok(match Lock::take(&path)? {
                Some(_held) => Ok(work()),
                None => Err(work),
            })
        });
        match tried.await? {
            Ok(done) => return done,
            Err(not_yet) => work = not_yet,
        }
        tokio::time::sleep(patience.pause).await;
    }
    let holder = fs::read_to_string(lock).unwrap_or_default();
    Err(Error::new(
        Kind::Transient,
        "jsonl-sink-locked",
        format!("the process {} has held {} for {:?}", holder.trim(), lock.display(), patience.pause * patience.tries),
        "if it is stopped, let it go on or end it",
    ))
}

/// Does blocking work on a thread where it may block.
pub(super) async fn blocking<T, W>(work: W) -> Result<T, Error>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, Error> + Send + 'static,
{
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let what = format!("the jsonl sink's thread ended without an answer: {error}");
        Err(Error::new(Kind::Fatal, "jsonl-sink-thread", what, "report this as a bug"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_that_keeps_the_lock_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = Lock::take(&path).unwrap().unwrap();
        assert!(Lock::take(&path).unwrap().is_none());
        let patience = || Patience { tries: 3, pause: Duration::from_millis(1) };
        let error = within(patience(), &path, || Ok(())).await.unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Transient, "jsonl-sink-locked"));
        assert_eq!(error.what, format!("the process {} has held {} for 3ms", std::process::id(), path.display()));
        drop(held);
        within(patience(), &path, || Ok(())).await.unwrap();
    }

    #[tokio::test]
    async fn a_lock_whose_file_was_removed_holds_nobody_up_and_is_nobodys() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let gone = Lock::take(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        let held = Lock::take(&path).unwrap();
        assert!(held.is_some(), "the file that is there is free");
        assert!(Lock::take(&path).unwrap().is_none(), "and now it is not");
        drop((gone, held));
    }
}
