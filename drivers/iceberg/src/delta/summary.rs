//! The summary of a snapshot: what it added and removed, and the totals that follow from its parent's.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{DataContentType, DataFile, Operation, SnapshotSummaryCollector, Summary, TableMetadata};

/// A total, and what adds to it and takes from it.
const TOTALS: [(&str, &str, &str); 6] = [
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
];

/// Counts what a snapshot changes.
#[derive(Default)]
pub(super) struct Counts {
    collector: SnapshotSummaryCollector,
    data_added: bool,
    deletes_added: bool,
    removed: bool,
    bytes_added: u64,
    bytes_removed: u64,
}

impl Counts {
    pub(super) fn add(&mut self, file: &DataFile, metadata: &TableMetadata) {
        self.bytes_added += bytes(file);
        match file.content_type() {
            DataContentType::Data => self.data_added = true,
            DataContentType::PositionDeletes | DataContentType::EqualityDeletes => self.deletes_added = true,
        }
        self.collector.add_file(file, Arc::clone(metadata.current_schema()), Arc::clone(metadata.default_partition_spec()));
    }

    pub(super) fn remove(&mut self, file: &DataFile, metadata: &TableMetadata) {
        self.removed = true;
        self.bytes_removed += bytes(file);
        self.collector.remove_file(file, Arc::clone(metadata.current_schema()), Arc::clone(metadata.default_partition_spec()));
    }

    /// What readers that follow changes call it.
    pub(super) fn operation(&self) -> Operation {
        match (self.data_added, self.deletes_added || self.removed) {
            (_, false) => Operation::Append,
            (true, true) => Operation::Overwrite,
            (false, true) => Operation::Delete,
        }
    }

    /// All entries. What others wrote under the names of counts does not matter.
    pub(super) fn entries(&self, mut entries: HashMap<String, String>, parent: Option<&Summary>) -> HashMap<String, String> {
        entries.extend(self.collector.build());
        for (name, bytes) in [("added-files-size", self.bytes_added), ("removed-files-size", self.bytes_removed)] {
            if bytes > 0 {
                entries.insert(name.to_owned(), bytes.to_string());
            }
        }
        for (total, added, removed) in TOTALS {
            let number = |entries: &HashMap<String, String>, name| entries.get(name).and_then(|text| text.parse::<u64>().ok());
            // A total that the parent does not tell cannot be told by its children either.
            let before = match parent {
                None => Some(0),
                Some(parent) => number(&parent.additional_properties, total),
            };
            if let Some(before) = before {
                let now = before + number(&entries, added).unwrap_or(0);
                entries.insert(total.to_owned(), now.saturating_sub(number(&entries, removed).unwrap_or(0)).to_string());
            }
        }
        entries
    }
}

/// A vector is as large as its blob: the file around it holds others too, and the crate would count it for each.
fn bytes(file: &DataFile) -> u64 {
    let blob = file.content_size_in_bytes().and_then(|bytes| u64::try_from(bytes).ok());
    blob.unwrap_or(file.file_size_in_bytes())
}
