//! The rows of a part as lines.

use std::io::{self, Write};

use contract::{Mode, SinkTable};
use kernel::state::TableState;
use rows::{Netted, Operation, RecordBatch, TableSchema};

use super::render::{Column, Refusal, object, quoted};
use super::tail::TailColumns;

/// Why rows could not be written as lines.
#[derive(Debug)]
pub(super) enum Problem {
    /// A value has no JSON.
    Refused {
        /// Which column, and why.
        refusal: Refusal,
        /// Which row of the part, counted from 1.
        row: usize,
    },
    /// The file failed.
    Io(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes the rows of a part. Where a table refuses covered rows, `covered` is what it holds already.
pub(super) fn write(out: &mut impl Write, table: &SinkTable, rows: &Netted, covered: Option<&TableState>) -> Result<(), Problem> {
    let deleted = Rows::of(&rows.schema, &rows.deletes)?;
    let mut line = Vec::new();
    for row in 0..rows.deletes.num_rows() {
        line.clear();
        deleted.begin(&mut line, row, "d").map_err(|refusal| Problem::Refused { refusal, row: row + 1 })?;
        line.extend_from_slice(b"null}\n");
        out.write_all(&line)?;
    }
    let kept = Rows::of(&rows.schema, &rows.upserts)?;
    let tail = TailColumns::of(table, rows);
    let new = covered.map(|state| not_covered(rows, state));
    for row in 0..rows.upserts.num_rows() {
        if new.as_ref().is_some_and(|new| !new[row]) {
            continue;
        }
        line.clear();
        let op = if table.mode == Mode::Upsert { "u" } else { letter(rows.upsert_tail.operations[row]) };
        let written = kept.begin(&mut line, row, op).and_then(|()| object(&mut line, &kept.columns, row));
        written.map_err(|refusal| Problem::Refused { refusal, row: row + 1 })?;
        line.pop(); // The metadata columns go into the same object.
        tail.write(&mut line, row);
        line.extend_from_slice(b"}}\n");
        out.write_all(&line)?;
    }
    Ok(())
}

/// For each upserted row: is it above what the table holds?
fn not_covered(rows: &Netted, state: &TableState) -> Vec<bool> {
    let tail = &rows.upsert_tail;
    let transactions = tail.transactions.iter().flat_map(|run| std::iter::repeat_n(&run.transaction, run.rows));
    transactions.zip(&tail.coordinates).map(|(transaction, at)| !state.cut.covers(transaction, *at)).collect()
}

fn letter(operation: Operation) -> &'static str {
    match operation {
        Operation::Insert => "c",
        Operation::Update => "u",
        Operation::Delete => "d",
        Operation::Read => "r",
    }
}

/// A batch, ready to be written.
struct Rows<'a> {
    columns: Vec<Column<'a>>,
    schema: &'a TableSchema,
}

impl<'a> Rows<'a> {
    fn of(schema: &'a TableSchema, data: &'a RecordBatch) -> Result<Self, Problem> {
        let column = |(column, array): (&'a rows::Column, _)| Column::new(&column.name, &column.kind, array);
        let columns = schema.columns.iter().zip(data.columns()).map(column).collect::<Result<_, _>>();
        Ok(Self { columns: columns.map_err(|refusal| Problem::Refused { refusal, row: 1 })?, schema })
    }

    /// Writes a line up to its row: `{"key":{...},"op":"u","row":`.
    fn begin(&self, line: &mut Vec<u8>, row: usize, op: &str) -> Result<(), Refusal> {
        line.extend_from_slice(b"{\"key\":");
        for (number, column) in self.schema.key.iter().filter_map(|index| self.columns.get(*index)).enumerate() {
            line.push(if number == 0 { b'{' } else { b',' });
            quoted(line, column.name());
            line.push(b':');
            column.write(line, row)?;
        }
        line.extend_from_slice(if self.schema.key.is_empty() { b"null" } else { b"}" });
        line.extend_from_slice(b",\"op\":");
        quoted(line, op);
        line.extend_from_slice(b",\"row\":");
        Ok(())
    }
}
