//! Bringing an index to a snapshot, from whatever snapshot it is at, or from nothing.
//!
//! What the index has and what the manifests say are compared file by file: keys in files that are gone, or in rows that
//! are dead by now, are forgotten; then the key columns of the files that are new are read, in the order of their sequence
//! numbers, so that of two live rows of one key the later wins. That covers our own commit whose answer was lost, a
//! compaction, a rollback, rows added or deleted by others, and a start.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use contract::{Error, Kind};
use roaring::RoaringBitmap;
use rows::{EncodedKeys, Type};

use super::{Base, Fingerprints, IndexedFile, KeyIndex, Place, TooLarge, VectorAt};
use crate::delta::{Live, LiveFile, LiveVector};
use crate::read::{columns_of, unreadable};
use crate::storage::Storage;
use crate::table::KeyColumn;
use crate::table::columns::cast;

/// Reads keys out of data files.
pub(crate) struct KeyReader<'a> {
    /// Where the files are.
    pub(crate) storage: &'a dyn Storage,
    /// The key.
    pub(crate) key: &'a [KeyColumn],
    /// How keys are remembered.
    pub(crate) fingerprints: &'a Fingerprints,
    /// The table, for errors.
    pub(crate) table: &'a str,
}

/// The index at `base`, of whose snapshot `live` is. It is built anew if the one given is about something else.
pub(crate) fn brought_to(mut index: KeyIndex, base: Base, live: &Live, reader: &KeyReader<'_>) -> Result<KeyIndex, Error> {
    let same = index.base.table == base.table && index.base.key == base.key;
    if !same {
        index.clear();
    }
    live.check(reader.table)?;
    let vectors: HashMap<&str, &LiveVector> = live.vectors.iter().map(|v| (v.data_file.as_ref(), v)).collect();
    let known = index.files.len();
    forget(&mut index, live, &vectors, reader)?;
    let mut new: Vec<&LiveFile> = live.data.iter().filter(|file| !index.by_path.contains_key(&file.path)).collect();
    new.sort_by(|a, b| (a.sequence, &a.path).cmp(&(b.sequence, &b.path)));
    let mut doubled = 0u64;
    for file in &new {
        let vector = vectors.get(file.path.as_ref()).copied();
        doubled += add(&mut index, file, vector, reader)?;
    }
    if doubled > 0 {
        tracing::warn!(
            table = reader.table,
            doubled,
            "keys have more than one live row in the table; others must have added them"
        );
    }
    index.base = base;
    if !new.is_empty() {
        tracing::info!(table = reader.table, keys = index.keys(), files_read = new.len(), files_known = known, "key index built");
    }
    Ok(index)
}

/// Forgets keys whose rows are not live any more, and files that are gone or must be read again.
fn forget(index: &mut KeyIndex, live: &Live, vectors: &HashMap<&str, &LiveVector>, reader: &KeyReader<'_>) -> Result<(), Error> {
    let alive: HashMap<&str, &LiveFile> = live.data.iter().map(|file| (file.path.as_ref(), file)).collect();
    let mut changed = false;
    let mut gone = vec![false; index.files.len()];
    for number in index.by_path.values().copied() {
        let file = &mut index.files[number as usize];
        let vector = vectors.get(file.path.as_ref()).copied();
        let is_gone = &mut gone[number as usize];
        match alive.get(file.path.as_ref()) {
            None => *is_gone = true,
            Some(_) if file.vector == vector.map(VectorAt::of) => {}
            Some(entry) => {
                let dead = dead_rows(vector, entry, reader)?;
                // After a rollback rows live again whose keys are forgotten: only the file tells them.
                *is_gone = !file.dead.is_subset(&dead);
                index.files_bytes -= file.bytes();
                (file.dead, file.vector) = (dead, vector.map(VectorAt::of));
                index.files_bytes += file.bytes();
                changed = true;
            }
        }
    }
    if changed || gone.contains(&true) {
        let files = &index.files;
        index.keys.retain(|place| !gone[place.file as usize] && !files[place.file as usize].dead.contains(place.row));
    }
    (0..).zip(gone).filter(|(_, gone)| *gone).for_each(|(number, _)| index.drop_file(number));
    Ok(())
}

/// Adds the live rows of a file. Answers how many of their keys have another live row.
fn add(index: &mut KeyIndex, file: &LiveFile, vector: Option<&LiveVector>, reader: &KeyReader<'_>) -> Result<u64, Error> {
    if file.rows > u64::from(u32::MAX) {
        return Err(unreadable(file, "it has more than 4 billion rows"));
    }
    let dead = dead_rows(vector, file, reader)?;
    let number = index.add_file(IndexedFile {
        path: Arc::clone(&file.path),
        rows: file.rows,
        sequence: file.sequence,
        dead: dead.clone(),
        vector: vector.map(VectorAt::of),
    });
    let mut doubled = 0;
    reader.each_key(file, |row, key| {
        if dead.contains(row) {
            return;
        }
        let key = reader.fingerprints.of(key);
        if let Some(other) = index.keys.insert(key, Place { file: number, row }) {
            doubled += 1;
            if index.files[other.file as usize].sequence > file.sequence {
                index.keys.insert(key, other);
            }
        }
    })?;
    index.settle().map_err(|full| too_large(&full, reader.table))?;
    Ok(doubled)
}

fn dead_rows(vector: Option<&LiveVector>, file: &LiveFile, reader: &KeyReader<'_>) -> Result<RoaringBitmap, Error> {
    vector.map_or_else(|| Ok(RoaringBitmap::new()), |vector| vector.read(reader.storage, file.rows))
}

pub(crate) fn too_large(full: &TooLarge, table: &str) -> Error {
    Error::new(Kind::Rejected, "iceberg-key-index-memory", full.explain(table), "then resume the table")
}

impl VectorAt {
    fn of(vector: &LiveVector) -> Self {
        Self { path: Arc::clone(&vector.path), offset: vector.offset }
    }
}

impl KeyReader<'_> {
    /// Calls `each` with the row number and the encoded key of every row of a data file, dead ones too.
    pub(crate) fn each_key(&self, file: &LiveFile, mut each: impl FnMut(u32, &[u8])) -> Result<(), Error> {
        let mut row = 0u32;
        let wanted: Vec<(i32, &str)> = self.key.iter().map(|column| (column.field, column.name.as_str())).collect();
        for batch in columns_of(self.storage, file, &wanted)? {
            let keys = self.encode(&batch?, file)?;
            for i in 0..keys.len() {
                each(row, keys.key(i));
                row += 1;
            }
        }
        if u64::from(row) == file.rows {
            return Ok(());
        }
        Err(unreadable(file, &format!("it holds {row} rows, and its manifest says {}", file.rows)))
    }

    fn encode(&self, columns: &[ArrayRef], file: &LiveFile) -> Result<EncodedKeys, Error> {
        let canonical = self.key.iter().zip(columns).map(|(column, values)| cast(values, &column.kind.arrow()));
        let canonical = canonical.collect::<Result<Vec<_>, _>>().map_err(|e| unreadable(file, &e.to_string()))?;
        let types: Vec<Type> = self.key.iter().map(|column| column.kind.clone()).collect();
        EncodedKeys::encode_columns(&canonical, &types).map_err(|e| unreadable(file, &e.to_string()))
    }
}
