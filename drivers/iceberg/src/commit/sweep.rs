//! What a sweep removes: the data files that were there when the generation began (rule G2).
//!
//! Each live file is judged by the sequence number of the snapshot that *added* it; the one of its data may be kept by who rewrites
//! files. At or below the note (`state/generation.rs`) it is old, whoever wrote it, and goes whole, with its vector: a key that the
//! generation brought has its row in a file of the generation. Above, a file of ours holds rows of the generation alone. Above, a
//! file of somebody else is a stop: a compaction since then may have put old rows and new ones into it, and which are which is
//! not known. Then nothing is removed, and the next generation, which begins above that file, sweeps it too.

use std::collections::HashMap;
use std::sync::Arc;

use contract::{CommitRequest, Error, Kind};

use super::prepare::Removes;
use crate::catalog::Loaded;
use crate::delta::{Live, LiveFile};
use crate::open::{OpenTable, is_named_as_ours};
use crate::state::{Began, STATE};

/// What to do in every case where a table cannot be swept.
const AGAIN: &str = "see that nobody else writes to the table meanwhile and copy it anew: `urutau table resnapshot`";

/// What a commit removes beside rows by their keys.
pub(super) fn removes(table: &OpenTable, request: &CommitRequest, began: Option<Began>) -> Result<Removes, Error> {
    let target = &table.ident;
    match (request.truncate_first, request.sweep, began) {
        // Nothing of an older generation outlives that.
        (true, _, _) => Ok(Removes::Everything),
        (false, false, _) => Ok(Removes::Nothing),
        (false, true, _) if !table.is_keyed() => {
            let what = format!("table '{target}' only appends, but what an older generation left was to be removed from it");
            Err(Error::new(Kind::Rejected, "iceberg-fault", what, "this is a fault in urutau: please report it"))
        }
        (false, true, Some(began)) => Ok(Removes::OlderGenerations(began)),
        (false, true, None) => {
            let what = format!(
                "table '{target}' was copied anew, and nothing in it tells which of its data files were there before: its state was \
                 written by a version of urutau that did not note that, or the note was removed. Nothing was removed from it"
            );
            Err(Error::new(Kind::Rejected, "iceberg-generation-unknown", what, AGAIN))
        }
    }
}

/// The data files that older generations left, with their sequence numbers. Fails if somebody else added files since.
pub(super) fn older_files(table: &OpenTable, base: &Loaded, began: Began) -> Result<HashMap<Arc<str>, i64>, Error> {
    let metadata = &base.metadata;
    let live = Live::of(table.storage.as_ref(), metadata, metadata.current_snapshot().map(AsRef::as_ref))?;
    divide(live.data, began, |file| is_ours(file, base)).map_err(|foreign| {
        let first = foreign.first().map_or("", |file| &file.path);
        let what = format!(
            "table '{}' was copied anew, and {} of its data files were written by others since that began (one is {first}): a \
             compaction may have put rows of the older copy among new ones. Nothing was removed from it, and rows that the source \
             does not have any more may still be there",
            table.ident,
            foreign.len(),
        );
        Error::new(Kind::Rejected, "iceberg-sweep-foreign-files", what, AGAIN)
    })
}

/// The files that go, with their data sequence numbers; or those of which it cannot be told.
fn divide(
    files: Vec<LiveFile>,
    began: Began,
    is_ours: impl Fn(&LiveFile) -> bool,
) -> Result<HashMap<Arc<str>, i64>, Vec<LiveFile>> {
    let (old, new): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.file_sequence <= began.after);
    let foreign: Vec<LiveFile> = new.into_iter().filter(|file| !is_ours(file)).collect();
    if !foreign.is_empty() {
        return Err(foreign);
    }
    Ok(old.into_iter().map(|file| (file.path, file.sequence)).collect())
}

/// Did this pipeline write a data file, and add it? Somebody else may have put back one of ours that is older (a cherry-pick):
/// their snapshot tells, as long as it is kept.
fn is_ours(file: &LiveFile, base: &Loaded) -> bool {
    let added_by = base.metadata.snapshot_by_id(file.added_by);
    is_named_as_ours(&file.path) && added_by.is_none_or(|snapshot| snapshot.summary().additional_properties.contains_key(STATE))
}

#[cfg(test)]
mod tests {
    use iceberg::spec::DataFileFormat;

    use super::*;

    fn file(path: &str, sequence: i64, file_sequence: i64) -> LiveFile {
        LiveFile { path: path.into(), format: DataFileFormat::Parquet, rows: 1, bytes: 1, sequence, file_sequence, added_by: 1 }
    }

    fn divided(files: &[LiveFile]) -> Result<Vec<(String, i64)>, Vec<String>> {
        let began = Began { generation: 2, after: 10 };
        let mut divided: Vec<(String, i64)> = match divide(files.to_vec(), began, |file| file.path.starts_with("ours")) {
            Ok(old) => old.into_iter().map(|(path, sequence)| (path.to_string(), sequence)).collect(),
            Err(foreign) => return Err(foreign.iter().map(|file| file.path.to_string()).collect()),
        };
        divided.sort();
        Ok(divided)
    }

    #[test]
    fn what_was_there_at_the_beginning_goes_and_what_we_added_since_stays() {
        let files = [file("ours a", 3, 3), file("theirs", 9, 10), file("ours b", 10, 10), file("ours c", 11, 11)];
        assert_eq!(divided(&files), Ok(vec![("ours a".into(), 3), ("ours b".into(), 10), ("theirs".into(), 9)]));
        assert_eq!(divided(&[]), Ok(Vec::new()));
    }

    #[test]
    fn a_rewrite_that_keeps_the_sequence_number_of_its_rows_is_as_new_as_its_snapshot() {
        // What `rewrite_data_files` makes with `use-starting-sequence-number`: rows of old, in a file that was added later.
        let files = [file("ours a", 3, 3), file("theirs", 7, 12), file("ours c", 11, 11)];
        assert_eq!(divided(&files), Err(vec!["theirs".into()]));
    }
}
