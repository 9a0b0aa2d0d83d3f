//! The directory of a sink: which file is whose.

use std::fs;
use std::path::{Path, PathBuf};

use contract::position_store::file_name;
use kernel::id::{AttemptId, Incarnation};

/// The files of a table.
#[derive(Clone, Debug)]
pub(super) struct Names {
    directory: PathBuf,
    name: String,
    /// `<target>.jsonl`: all that readers need.
    pub(super) file: PathBuf,
    /// `.<target>.lock`
    pub(super) lock: PathBuf,
}

impl Names {
    /// Those of a target in a directory.
    pub(super) fn new(directory: &Path, target: &str) -> Self {
        let name = file_name(target);
        let file = directory.join(format!("{name}.jsonl"));
        let lock = directory.join(format!(".{name}.lock"));
        Self { directory: directory.to_owned(), name, file, lock }
    }

    /// `.<target>.i<incarnation>-a<attempt>.staged`: rows that wait for their commit.
    pub(super) fn staged(&self, attempt: AttemptId) -> PathBuf {
        self.directory.join(format!(".{}.i{}-a{}.staged", self.name, attempt.incarnation, attempt.number))
    }

    /// What lives before this one have staged.
    pub(super) fn staged_before(&self, incarnation: Incarnation) -> Vec<PathBuf> {
        let start = format!(".{}.i", self.name);
        let life = |name: &str| -> Option<u32> {
            let (life, attempt) = name.strip_prefix(&start)?.strip_suffix(".staged")?.split_once("-a")?;
            attempt.parse::<u64>().ok()?;
            life.parse().ok()
        };
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let older = entries.filter(|entry| entry.file_name().to_str().and_then(life).is_some_and(|life| life < incarnation.0));
        older.map(|entry| entry.path()).collect()
    }
}

/// Where the pipeline records are, below the directory.
pub(super) const RECORDS: &str = ".urutau";
