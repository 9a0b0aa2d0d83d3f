//! The key index: in which row of which data file each key's live row is.
//!
//! It is a cache, never the truth. It is bound to the table's identity, the key's columns and one snapshot; it serves a
//! commit only at exactly that snapshot, else it is brought there from the manifests (`scan.rs`), or built anew, which is
//! the same from nothing. A commit's look-ups change nothing here; what they found is applied when the commit is durable,
//! and forgotten otherwise (rule O8).
//!
//! This one lives in memory, in [`KeyMap`]. One on disk replaces that, and nothing else.

mod fingerprint;
mod map;
mod memory;
mod scan;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use iceberg::spec::DataFile;
use roaring::RoaringBitmap;
use uuid::Uuid;

pub(crate) use fingerprint::{Fingerprint, Fingerprints};
pub(crate) use map::Place;
pub(crate) use memory::Memory;
pub(crate) use scan::{KeyReader, brought_to, too_large};

use self::map::{KeyMap, More};
use self::memory::{Full, Lease};
use crate::write::StagedPart;

/// What a file costs beside its path and its dead rows.
const FILE_BYTES: u64 = 200;

/// The key index of one table.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    base: Base,
    keys: KeyMap,
    files: Vec<IndexedFile>,
    by_path: HashMap<Arc<str>, u32>,
    /// Numbers of files that are gone and that no key names any more.
    free: Vec<u32>,
    /// Of paths, dead rows and the list of files.
    files_bytes: u64,
    lease: Lease,
}

/// What an index is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Base {
    /// The table.
    pub(crate) table: Uuid,
    /// The fields of the key, in key order.
    pub(crate) key: Vec<i32>,
    /// The snapshot; `None`: the table has none.
    pub(crate) snapshot: Option<i64>,
}

/// A data file as the index knows it.
#[derive(Clone, Debug)]
struct IndexedFile {
    path: Arc<str>,
    rows: u64,
    /// Its data sequence number: of two live rows of one key the one with the higher number counts.
    sequence: i64,
    /// All rows that its deletion vector names.
    dead: RoaringBitmap,
    /// Where that vector lies; it tells whether somebody else replaced it.
    vector: Option<VectorAt>,
}

/// Where a deletion vector lies. Many share one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VectorAt {
    /// The Puffin file.
    pub(crate) path: Arc<str>,
    /// Where its blob begins.
    pub(crate) offset: i64,
}

impl VectorAt {
    /// Where the vector lies that a manifest describes so.
    pub(crate) fn of_file(file: &DataFile) -> Option<Self> {
        Some(Self { path: file.file_path().into(), offset: file.content_offset()? })
    }
}

/// What a commit's look-ups found. Nothing is changed by it.
#[derive(Debug, Default)]
pub(crate) struct Located {
    /// Data files that lose rows, by number, with the rows that they lose.
    pub(crate) lost: Vec<(u32, RoaringBitmap)>,
    /// Everything is removed first.
    truncates: bool,
    /// Data files that go whole, by number: older generations left them. Rows in them are not looked at one by one.
    swept: BTreeSet<u32>,
    /// Keys that the index does not have yet.
    more: More,
}

/// What a durable commit made.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// Its snapshot.
    pub(crate) snapshot: Option<i64>,
    /// Its sequence number.
    pub(crate) sequence: i64,
    /// Where the new vector of each touched data file lies.
    pub(crate) vectors: HashMap<Arc<str>, VectorAt>,
}

/// A data file that a commit takes rows from.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    pub(crate) path: Arc<str>,
    pub(crate) rows: u64,
    pub(crate) sequence: i64,
    /// All its dead rows: those of the vector in force and those of this commit.
    pub(crate) dead: RoaringBitmap,
}

impl Touched {
    /// Has it no live row any more?
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.len() >= self.rows
    }
}

impl KeyIndex {
    /// An index of no keys.
    pub(crate) fn empty(base: Base, memory: &Arc<Memory>) -> Self {
        Self {
            base,
            keys: KeyMap::new(),
            files: Vec::new(),
            by_path: HashMap::new(),
            free: Vec::new(),
            files_bytes: 0,
            lease: Lease::new(memory),
        }
    }

    /// What it is about.
    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    /// How many keys it has.
    pub(crate) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Where a key's live row is.
    #[cfg(test)]
    pub(crate) fn place(&self, key: &Fingerprint) -> Option<(Arc<str>, u32)> {
        let place = self.keys.get(key)?;
        Some((Arc::clone(&self.files[place.file as usize].path), place.row))
    }

    /// Looks up every key of a commit.
    pub(crate) fn locate<'a>(&self, parts: impl Iterator<Item = &'a StagedPart>) -> Located {
        let mut located = Located::default();
        let mut places = Vec::new();
        for part in parts {
            for key in part.files.iter().flat_map(|file| &file.keys) {
                match self.keys.get(key) {
                    Some(place) => places.push(place),
                    None => self.keys.count(key, &mut located.more),
                }
            }
            places.extend(part.deletes.iter().filter_map(|key| self.keys.get(key)));
        }
        places.sort_unstable();
        for of_file in places.chunk_by(|a, b| a.file == b.file) {
            located.lost.push((of_file[0].file, of_file.iter().map(|place| place.row).collect()));
        }
        located
    }

    /// The look-ups of a commit that removes every row first.
    pub(crate) fn locate_truncated<'a>(&self, parts: impl Iterator<Item = &'a StagedPart>) -> Located {
        let mut located = Located { truncates: true, ..Located::default() };
        for key in parts.flat_map(|part| &part.files).flat_map(|file| &file.keys) {
            self.keys.count(key, &mut located.more);
        }
        located
    }

    /// The look-ups of a commit that removes these data files, whatever keys it brings.
    pub(crate) fn sweep<'a>(&self, located: &mut Located, files: impl Iterator<Item = &'a str>) {
        located.swept = files.filter_map(|path| self.by_path.get(path).copied()).collect();
        located.lost.retain(|(file, _)| !located.swept.contains(file));
    }

    /// The data files that the commit takes rows from.
    pub(crate) fn touched(&self, located: &Located) -> Vec<Touched> {
        let touched = located.lost.iter().map(|(number, lost)| {
            let file = &self.files[*number as usize];
            Touched { path: Arc::clone(&file.path), rows: file.rows, sequence: file.sequence, dead: &file.dead | lost }
        });
        touched.collect()
    }

    /// Makes sure that there is memory for what the commit adds.
    pub(crate) fn reserve(&mut self, located: &Located, parts: usize) -> Result<(), TooLarge> {
        let files = self.files_bytes + parts as u64 * 2 * FILE_BYTES;
        let keys = if located.truncates { KeyMap::new().bytes_with(&located.more) } else { self.keys.bytes_with(&located.more) };
        let needed = keys.max(if located.truncates { 0 } else { self.keys.bytes() }) + files;
        self.lease.resize(needed).map_err(|full| self.too_large(needed, full))
    }

    /// Gives back what a commit that came to nothing had reserved.
    pub(crate) fn settle(&mut self) -> Result<(), TooLarge> {
        let needed = self.keys.bytes() + self.files_bytes;
        self.lease.resize(needed).map_err(|full| self.too_large(needed, full))
    }

    /// Applies what a durable commit changed.
    pub(crate) fn apply<'a>(&mut self, parts: impl Iterator<Item = &'a StagedPart>, located: &Located, made: &Made) {
        if located.truncates {
            self.clear();
        }
        for (number, lost) in &located.lost {
            let file = &mut self.files[*number as usize];
            self.files_bytes -= file.bytes();
            file.dead |= lost;
            file.vector = made.vectors.get(&file.path).cloned();
            self.files_bytes += file.bytes();
        }
        for part in parts {
            for key in &part.deletes {
                self.keys.remove(key);
            }
            for staged in &part.files {
                let number = self.add_file(IndexedFile {
                    path: staged.file.file_path().into(),
                    rows: staged.file.record_count(),
                    sequence: made.sequence,
                    dead: RoaringBitmap::new(),
                    vector: None,
                });
                for (row, key) in staged.keys.iter().enumerate() {
                    self.keys.insert(*key, Place { file: number, row: row as u32 });
                }
            }
        }
        // Their last rows went elsewhere just now, so that no key names them.
        for (number, _) in &located.lost {
            if self.files[*number as usize].is_dead() {
                self.drop_file(*number);
            }
        }
        // Keys that the commit brought are in its own files by now; what is left in these is gone with them.
        if !located.swept.is_empty() {
            self.keys.retain(|place| !located.swept.contains(&place.file));
            self.keys.shrink();
            located.swept.iter().for_each(|number| self.drop_file(*number));
        }
        self.base.snapshot = made.snapshot;
        // What is used now is no more than what was reserved; if it were, the next commit would be refused for it.
        let _ = self.settle();
    }

    fn clear(&mut self) {
        self.keys = KeyMap::new();
        self.files.clear();
        self.by_path.clear();
        self.free.clear();
        self.files_bytes = 0;
    }

    fn add_file(&mut self, file: IndexedFile) -> u32 {
        self.files_bytes += file.bytes();
        let path = Arc::clone(&file.path);
        let number = match self.free.pop() {
            Some(number) => {
                self.files[number as usize] = file;
                number
            }
            None => {
                self.files.push(file);
                (self.files.len() - 1) as u32
            }
        };
        self.by_path.insert(path, number);
        number
    }

    /// Forgets a file that no key names any more.
    fn drop_file(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        self.files_bytes -= file.bytes();
        self.by_path.remove(&file.path);
        *file = IndexedFile { path: "".into(), rows: 0, sequence: 0, dead: RoaringBitmap::new(), vector: None };
        self.files_bytes += file.bytes();
        self.free.push(number);
    }

    fn too_large(&self, needed: u64, full: Full) -> TooLarge {
        TooLarge { keys: self.keys.len(), needed, full }
    }
}

impl IndexedFile {
    fn bytes(&self) -> u64 {
        FILE_BYTES + self.path.len() as u64 + self.dead.serialized_size() as u64
    }

    fn is_dead(&self) -> bool {
        !self.path.is_empty() && self.dead.len() >= self.rows
    }
}

/// The index would pass its bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge {
    keys: usize,
    needed: u64,
    full: Full,
}

impl TooLarge {
    /// For people: what is full and which setting makes it larger.
    pub(crate) fn explain(&self, table: &str) -> String {
        let mib = |bytes: u64| bytes.div_ceil(1024 * 1024);
        format!(
            "the key index of table '{table}' ({} keys) needs {} MiB, the other tables' use {} MiB, and `sink.keyIndex.memory` allows \
             {} MiB in all: set it to at least {}Mi (an index on disk is not built yet)",
            self.keys,
            mib(self.needed),
            mib(self.full.others),
            mib(self.full.bytes_max),
            mib(self.needed + self.full.others),
        )
    }
}
