//! The pump's own laws: the order of commands, the division of what was read, the rows that are held.

mod held;
mod intake;
mod lanes;

use std::sync::Arc;

use kernel::position::{Coordinate, Offset, Transaction};
use rows::build::{BatchBuilder, Values};
use rows::{ChangeBatch, Column, EncodedKeys, Operation, RowPhase, TableSchema, Type};

fn schema(table: &str) -> Arc<TableSchema> {
    let columns = vec![Column::new("id", Type::Int64, false)];
    Arc::new(TableSchema::new(table.into(), columns, vec![0]).unwrap())
}

fn transaction(at: u64) -> Transaction {
    Transaction { stream: "log".into(), at: Offset(at) }
}

fn place(major: u64, minor: u32) -> Coordinate {
    Coordinate { major, minor }
}

/// Rows of a table, each at a coordinate of a transaction; the first one's key is 1, the next one's is 2.
fn batch(table: &str, rows: &[(Transaction, Coordinate)]) -> Arc<ChangeBatch> {
    let mut batch = BatchBuilder::new(schema(table), rows.len());
    for (id, (transaction, coordinate)) in (1..).zip(rows) {
        let write = |values: &mut Values| match values {
            Values::Int64(values) => {
                values.push(id);
                Ok(())
            }
            _ => Err("a column of numbers"),
        };
        batch.column(0).append(write).unwrap();
        batch.tell(Operation::Insert, *coordinate, transaction, None);
    }
    Arc::new(batch.finish(0, RowPhase::Stream).unwrap())
}

fn keys(batch: &ChangeBatch) -> EncodedKeys {
    EncodedKeys::encode(&batch.schema, &batch.data).unwrap()
}
