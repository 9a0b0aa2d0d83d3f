//! Netting: of all changes of a key within a checkpoint, one final image or one delete.

use std::sync::Arc;

use arrow_array::RecordBatch;
use kernel::id::Version;

use crate::batch::Tail;
use crate::key::EncodedKeys;
use crate::schema::TableSchema;

/// What a checkpoint does to a table: at most one image or delete for each key (rule C2), or, for `append`, every row.
#[derive(Clone, Debug)]
pub struct Netted {
    /// What the columns are.
    pub schema: Arc<TableSchema>,
    /// The rows to insert or replace; data columns only, `schema.arrow()`.
    pub upserts: RecordBatch,
    /// Their encoded keys (none for `append`).
    pub upsert_keys: EncodedKeys,
    /// Their version each.
    pub upsert_versions: Vec<Version>,
    /// What the log said about each upserted row, one entry a row (operations, coordinates, runs of transactions).
    pub upsert_tail: Tail,
    /// The old rows of the keys to remove: same columns, of which only the key's are sure to be there.
    pub deletes: RecordBatch,
    /// Their encoded keys.
    pub delete_keys: EncodedKeys,
    /// Their version each.
    pub delete_versions: Vec<Version>,
}
