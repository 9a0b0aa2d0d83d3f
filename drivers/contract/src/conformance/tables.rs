//! The kit's two tables: words by number, one with a key and one without.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use kernel::id::{Incarnation, TableName};
use kernel::position::{Coordinate, Transaction};
use rows::net::{NetOutcome, Numbering};
use rows::{ChangeBatch, Column, EncodedKeys, Netted, Operation, RowPhase, Slice, TableSchema, Tail, TransactionRun, Type};

use crate::memory::{Value, row};
use crate::{Mode, SinkTable};

/// The table with a key: `id int64`, `word string`.
pub const KEYED: &str = "kit.words";
/// The same without a key, for targets where every change is a row.
pub const KEYLESS: &str = "kit.sayings";

/// A row of the kit's tables, as a reader finds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Word {
    /// The key, where the table has one.
    pub id: i64,
    /// The value.
    pub word: Option<String>,
}

impl Word {
    /// A row.
    pub fn new(id: i64, word: &str) -> Self {
        Self { id, word: Some(word.into()) }
    }

    /// The rows of a batch whose columns are those of the kit's tables. `None` if they are others.
    pub fn all_of(data: &RecordBatch) -> Option<Vec<Word>> {
        let ids = data.column_by_name("id")?.as_primitive_opt::<Int64Type>()?;
        let words = data.column_by_name("word")?.as_string_opt::<i32>()?;
        let word = |row: usize| words.is_valid(row).then(|| words.value(row).to_string());
        Some((0..data.num_rows()).map(|row| Word { id: ids.value(row), word: word(row) }).collect())
    }
}

/// The schema of one of the kit's tables.
pub(super) fn schema(table: &str) -> TableSchema {
    TableSchema {
        table: TableName::from(table),
        columns: vec![Column::new("id", Type::Int64, false), Column::new("word", Type::String, true)],
        key: if table == KEYLESS { vec![] } else { vec![0] },
    }
}

/// One of the kit's tables at a target.
pub(super) fn sink_table(mode: Mode) -> SinkTable {
    let (table, target) = if mode == Mode::Upsert { (KEYED, "words") } else { (KEYLESS, "sayings") };
    SinkTable {
        table: TableName::from(table),
        target: target.into(),
        schema: Arc::new(schema(table)),
        mode,
        metadata: Vec::new(),
    }
}

/// A change of one row, for a sink.
#[derive(Clone, Copy, Debug)]
pub(super) enum Say {
    Insert(i64, &'static str),
    Update(i64, &'static str),
    Delete(i64, &'static str),
}

/// What a checkpoint does, put together by the same functions as in a run.
pub(super) fn netted(
    table: &SinkTable,
    says: &[Say],
    transaction: &Transaction,
    incarnation: Incarnation,
    first: u64,
) -> Result<Netted, String> {
    let failed = |what: String| format!("the kit could not make its rows: {what}");
    let mut batch = Vec::new();
    let mut operations = Vec::new();
    for say in says {
        let (operation, id, word) = match *say {
            Say::Insert(id, word) => (Operation::Insert, id, word),
            Say::Update(id, word) => (Operation::Update, id, word),
            Say::Delete(id, word) => (Operation::Delete, id, word),
        };
        operations.push(operation);
        batch.push(row(&table.schema, &[Value::Int(id), Value::Text(word)]).map_err(|error| failed(error.to_string()))?);
    }
    let data =
        arrow_select::concat::concat_batches(&Arc::new(table.schema.arrow()), &batch).map_err(|e| failed(e.to_string()))?;
    let tail = Tail {
        coordinates: (0..says.len() as u64).map(|major| Coordinate { major, minor: 0 }).collect(),
        operations,
        transactions: vec![TransactionRun { transaction: transaction.clone(), rows: says.len(), commit_time: Some(0) }],
        ingest_time: 0,
        phase: RowPhase::Stream,
    };
    let keys = Arc::new(EncodedKeys::encode(&table.schema, &data).map_err(|error| failed(error.to_string()))?);
    let absent = vec![None; table.schema.columns.len()];
    let batch = Arc::new(ChangeBatch { schema: Arc::clone(&table.schema), data, absent, tail });
    let slice = [Slice { batch, keys, rows: 0..says.len() }];
    let numbering = Numbering { incarnation, first };
    let outcome =
        if table.mode == Mode::Upsert { rows::net::net(&slice, numbering) } else { rows::net::append(&slice, numbering) };
    match outcome {
        Ok(NetOutcome::Netted(netted)) => Ok(*netted),
        other => Err(failed(format!("{other:?}"))),
    }
}
