//! An open table: what its writer and its committer both know.

use std::collections::HashMap;
use std::sync::Arc;

use contract::{Error, SinkTable};
use iceberg::TableIdent;
use kernel::id::{AttemptId, Incarnation};
use rows::TableSchema;

use crate::catalog::{Catalog, Loaded};
use crate::index::{Fingerprints, Memory};
use crate::storage::Storage;
use crate::table::{Layout, Layouts, Step};

/// A table, opened for one life.
#[derive(Debug)]
pub(crate) struct OpenTable {
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) ident: TableIdent,
    pub(crate) pipeline: String,
    pub(crate) incarnation: Incarnation,
    /// What is to be written to it.
    pub(crate) wanted: SinkTable,
    /// What its data files hold, under each schema that its rows had in this life.
    pub(crate) layouts: Layouts,
    is_keyed: bool,
    pub(crate) spec_id: i32,
    opened: Loaded,
    pub(crate) fingerprints: Fingerprints,
    /// The index memory of all tables of the sink.
    pub(crate) memory: Arc<Memory>,
}

/// What all tables of a sink share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) pipeline: String,
    pub(crate) memory: Arc<Memory>,
}

impl OpenTable {
    /// A table that was found to be fit.
    pub(crate) fn new(shared: &Shared, found: &Loaded, wanted: &SinkTable, layout: Layout, incarnation: Incarnation) -> Self {
        let Shared { catalog, storage, pipeline, memory } = shared.clone();
        Self {
            catalog,
            storage,
            pipeline,
            memory,
            incarnation,
            wanted: wanted.clone(),
            is_keyed: !layout.key.is_empty(),
            layouts: Layouts::new(wanted, layout, &found.metadata),
            ident: found.ident.clone(),
            spec_id: found.metadata.default_partition_spec_id(),
            opened: found.clone(),
            fingerprints: Fingerprints::random(),
        }
    }

    /// Are rows applied by key?
    pub(crate) fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    /// What data files hold under a schema of the source; `None` is the one that the table was opened with.
    pub(crate) fn step(&self, schema: Option<&Arc<TableSchema>>) -> Result<Arc<Step>, Error> {
        self.layouts.of(schema.unwrap_or(&self.wanted.schema))
    }

    /// The table's properties as they were when it was opened.
    pub(crate) fn properties(&self) -> &HashMap<String, String> {
        self.opened.metadata.properties()
    }

    /// Where data files and vectors lie.
    pub(crate) fn data_directory(&self) -> String {
        data_directory(&self.opened)
    }

    /// The name of the `count`-th data file of an attempt. Made anew each time: an attempt may be written again after a
    /// failure, and a name is used once.
    pub(crate) fn data_file_name(&self, attempt: AttemptId, count: usize) -> String {
        data_file_name(&self.data_directory(), attempt, count)
    }

    /// The name of a file that a commit of this life writes: `vectors`, a manifest, a list.
    pub(crate) fn commit_file_name(&self, directory: &str, what: &str, ending: &str) -> String {
        format!("{directory}/{}{what}-{}.{ending}", life_prefix(self.incarnation), unique())
    }
}

/// Where the data files and vectors of a table lie.
pub(crate) fn data_directory(loaded: &Loaded) -> String {
    format!("{}/data", loaded.metadata.location())
}

/// Where the manifests, lists and metadata files of a table lie.
pub(crate) fn metadata_directory(loaded: &Loaded) -> String {
    format!("{}/metadata", loaded.metadata.location())
}

fn data_file_name(directory: &str, attempt: AttemptId, count: usize) -> String {
    format!("{directory}/{}a{}-{count:03}-{}.parquet", life_prefix(attempt.incarnation), attempt.number, unique())
}

/// Does a data file have a name as [`data_file_name`] gives them? No other writer's names look so.
pub(crate) fn is_named_as_ours(location: &str) -> bool {
    let name = location.rsplit('/').next().unwrap_or(location);
    let Some(parts) = name.strip_suffix(".parquet").map(|name| name.split('-').collect::<Vec<_>>()) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match parts[..] {
        [_, attempt, count, unique] => {
            life_of(name).is_some()
                && attempt.strip_prefix('a').is_some_and(is_number)
                && count.len() >= 3
                && is_number(count)
                && unique.len() == UNIQUE_LENGTH
                && unique.bytes().all(|b| b.is_ascii_hexdigit())
        }
        _ => false,
    }
}

/// What the name of each file of a life begins with.
fn life_prefix(incarnation: Incarnation) -> String {
    format!("i{incarnation}-")
}

/// The life that a file's name tells, if it tells one.
pub(crate) fn life_of(location: &str) -> Option<Incarnation> {
    let name = location.rsplit('/').next()?;
    let (number, _) = name.strip_prefix('i')?.split_once('-')?;
    let canonical = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    canonical.then(|| number.parse().ok()).flatten().map(Incarnation)
}

const UNIQUE_LENGTH: usize = 12;

fn unique() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..UNIQUE_LENGTH].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_tells_its_life() {
        assert_eq!(life_of("file:///w/t/data/i12-a7-001-0123456789ab.parquet"), Some(Incarnation(12)));
        assert_eq!(life_of("file:///w/t/metadata/i3-data-0123456789ab.avro"), Some(Incarnation(3)));
        assert_eq!(life_of("file:///w/t/data/00000-0-0123.parquet"), None);
        assert_eq!(life_of("file:///w/t/data/i-1.parquet"), None);
        assert_eq!(life_of("file:///w/t/data/i+1-x.parquet"), None);
        assert_eq!(life_of("file:///w/t/metadata/i99999999999-x.avro"), None);
    }

    #[test]
    fn a_data_file_is_known_by_its_name() {
        for (life, number, count) in [(1, 1, 1), (12, 7_000_000_000, 999), (4_000_000, 0, 1_000)] {
            let name = data_file_name("file:///w/t/data", AttemptId { incarnation: Incarnation(life), number }, count);
            assert!(is_named_as_ours(&name), "{name}");
        }
        for name in [
            "00000-0-f3d1a1c4-8a1e-4f6e-9a55-0c7b3f1f8f01-0-00001.parquet",
            "part-00000-f3d1a1c4.c000.snappy.parquet",
            "i1-a1-001-0123456789ab.orc",
            "i1-a1-001-0123456789abc.parquet",
            "i1-a1-001-0123456789xy.parquet",
            "i1-1-001-0123456789ab.parquet",
            "i1-a1-1-0123456789ab.parquet",
            "i1-a1-001-x-0123456789ab.parquet",
            "i1-vectors-0123456789ab.puffin",
        ] {
            assert!(!is_named_as_ours(&format!("file:///w/t/data/{name}")), "{name}");
        }
    }
}
