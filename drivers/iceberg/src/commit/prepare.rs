//! The part of a commit before the swap: rows are located, vectors, manifests and their list are written.
//!
//! All of it blocks, so it runs on a thread for that, with everything that it needs.

use std::collections::HashMap;
use std::sync::Arc;

use contract::{Error, Kind, Staged};
use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, SchemaRef, Struct};

use super::sweep::older_files;
use super::{now_ms, parts};
use crate::catalog::Loaded;
use crate::delta::{Live, Removed, RowDelta, StagedDelta, stage};
use crate::failpoint::failpoint;
use crate::index::{Base, KeyIndex, KeyReader, Located, Made, Touched, VectorAt, brought_to, too_large};
use crate::open::{OpenTable, data_directory, metadata_directory};
use crate::state::Began;
use crate::table::Step;
use crate::vector;
use crate::write::StagedPart;

/// All that the blocking part of a commit needs.
pub(super) struct Job {
    pub(super) table: Arc<OpenTable>,
    pub(super) base: Loaded,
    /// What the table's files hold from here on.
    pub(super) step: Arc<Step>,
    /// What that makes of its columns.
    pub(super) schema: Option<SchemaRef>,
    pub(super) staged: Vec<Arc<Staged>>,
    pub(super) removes: Removes,
    pub(super) summary: HashMap<String, String>,
}

/// What goes beside the rows that are replaced or deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Removes {
    /// No more than those.
    Nothing,
    /// Every row that there is.
    Everything,
    /// What was there when the generation began.
    OlderGenerations(Began),
}

/// A commit that is written and only needs to be swapped in.
pub(super) struct Prepared {
    pub(super) delta: StagedDelta,
    pub(super) located: Located,
    pub(super) made: Made,
    /// What was written for it.
    pub(super) written: Vec<String>,
}

impl Job {
    /// Locates the rows, writes vectors, manifests and list. The index comes back in any case.
    pub(super) fn prepare(self, index: Option<KeyIndex>) -> (Option<KeyIndex>, Result<Prepared, Error>) {
        let mut index = match self.table.is_keyed().then(|| index_at(&self.table, &self.step, index, &self.base)).transpose() {
            Ok(index) => index,
            Err(e) => return (None, Err(e)),
        };
        let prepared = self.write(index.as_mut());
        // An index that does not know its own table is worth nothing.
        let differs = prepared.as_ref().is_err_and(|e| e.code == "iceberg-index-differs");
        (index.filter(|_| !differs), prepared)
    }

    fn write(&self, mut index: Option<&mut KeyIndex>) -> Result<Prepared, Error> {
        let parts = parts(&self.staged);
        let older = match self.removes {
            Removes::Nothing | Removes::Everything => HashMap::new(),
            Removes::OlderGenerations(began) => older_files(&self.table, &self.base, began)?,
        };
        let located = match &mut index {
            Some(index) => {
                let all = parts.iter().copied();
                let mut located = match self.removes {
                    Removes::Everything => index.locate_truncated(all),
                    Removes::Nothing | Removes::OlderGenerations(_) => index.locate(all),
                };
                index.sweep(&mut located, older.keys().map(AsRef::as_ref));
                index.reserve(&located, parts.len()).map_err(|full| too_large(&full, self.table.ident.name()))?;
                located
            }
            None => Located::default(),
        };
        let touched = index.as_ref().map(|index| index.touched(&located)).unwrap_or_default();
        let mut written = Vec::new();
        let prepared = self.write_files(&parts, touched, older, &mut written);
        match prepared {
            Ok((delta, made)) => Ok(Prepared { delta, located, made, written }),
            Err(e) => {
                for file in written {
                    let _ = self.table.storage.delete(&file);
                }
                Err(e)
            }
        }
    }

    fn write_files(
        &self,
        parts: &[&StagedPart],
        touched: Vec<Touched>,
        older: HashMap<Arc<str>, i64>,
        written: &mut Vec<String>,
    ) -> Result<(StagedDelta, Made), Error> {
        let (dead, touched): (Vec<_>, Vec<_>) = touched.into_iter().partition(Touched::is_dead);
        let vectors = self.write_vectors(&touched, written)?;
        let places = vectors.iter().filter_map(|v| Some((v.referenced_data_file()?.into(), VectorAt::of_file(v)?))).collect();
        let removed = match self.removes {
            Removes::Everything => Removed::All,
            Removes::Nothing | Removes::OlderGenerations(_) => {
                Removed::Files(dead.into_iter().map(|file| (file.path, file.sequence)).chain(older).collect())
            }
        };
        let added = parts.iter().flat_map(|part| &part.files).map(|staged| staged.file.clone()).collect();
        let delta = RowDelta { added, vectors, removed, schema: self.schema.clone(), summary: self.summary.clone() };
        let staged = stage(self.table.storage.as_ref(), &self.base, delta, now_ms(), &names(&self.table, &self.base))?;
        written.extend(staged.files.iter().map(|(location, _)| location.clone()));
        self.table.storage.put(&staged.files)?;
        let made = Made { snapshot: Some(staged.snapshot_id), sequence: staged.sequence, vectors: places };
        Ok((staged, made))
    }

    /// The vector of each data file that keeps some of its rows, each in a file of its own: DuckDB 1.5.5 takes one blob of a
    /// Puffin file for another where it holds several, and then shows dead rows and hides live ones.
    fn write_vectors(&self, touched: &[Touched], written: &mut Vec<String>) -> Result<Vec<DataFile>, Error> {
        let spec_id = self.base.metadata.default_partition_spec_id();
        let (mut files, mut entries) = (Vec::with_capacity(touched.len()), Vec::with_capacity(touched.len()));
        for file in touched {
            let (bytes, placed) = vector::file([(file.path.as_ref(), &file.dead)]);
            let location = self.table.commit_file_name(&data_directory(&self.base), "vectors", "puffin");
            let size = bytes.len() as u64;
            for placed in placed {
                entries.push(vector_entry(&location, size, spec_id, placed)?);
            }
            written.push(location.clone());
            files.push((location, bytes.into()));
        }
        self.table.storage.put(&files)?;
        if !files.is_empty() {
            failpoint!("iceberg-vectors-written");
        }
        Ok(entries)
    }
}

/// A vector as a manifest describes it: a delete file that is a blob of a Puffin file.
fn vector_entry(location: &str, size: u64, spec_id: i32, placed: vector::Placed) -> Result<DataFile, Error> {
    DataFileBuilder::default()
        .content(DataContentType::PositionDeletes)
        .file_format(DataFileFormat::Puffin)
        .file_path(location.to_owned())
        .file_size_in_bytes(size)
        .record_count(placed.cardinality)
        .partition(Struct::empty())
        .partition_spec_id(spec_id)
        .referenced_data_file(Some(placed.data_file))
        .content_offset(i64::try_from(placed.offset).ok())
        .content_size_in_bytes(i64::try_from(placed.length).ok())
        .build()
        .map_err(|e| {
            Error::new(
                Kind::Fatal,
                "iceberg-fault",
                format!("a vector cannot be described: {e}"),
                "this is a fault in urutau: please report it",
            )
        })
}

/// The key index at the snapshot of `loaded`.
pub(super) fn index_at(table: &OpenTable, step: &Step, index: Option<KeyIndex>, loaded: &Loaded) -> Result<KeyIndex, Error> {
    let metadata = &loaded.metadata;
    let base = Base { table: metadata.uuid(), key: step.layout.key_fields(), snapshot: metadata.current_snapshot_id() };
    let index = index.unwrap_or_else(|| KeyIndex::empty(Base { snapshot: None, ..base.clone() }, &table.memory));
    if *index.base() == base {
        return Ok(index);
    }
    let live = Live::of(table.storage.as_ref(), metadata, metadata.current_snapshot().map(AsRef::as_ref))?;
    let reader = KeyReader {
        storage: table.storage.as_ref(),
        key: &step.layout.key,
        fingerprints: &table.fingerprints,
        table: table.ident.name(),
    };
    brought_to(index, base, &live, &reader)
}

/// Names for the files of a commit that lie beside the metadata.
pub(super) fn names<'a>(table: &'a OpenTable, base: &Loaded) -> impl Fn(&str) -> String + 'a {
    let directory = metadata_directory(base);
    move |what| table.commit_file_name(&directory, what, "avro")
}
