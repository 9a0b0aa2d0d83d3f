//! `urutau peek`: some rows of a target, read back from the sink as any reader would see them now.

use console::Alignment;
use contract::Peek;
use contract::arrow::schema::DataType;
use host::survey;
use rows::{RecordBatch, TableSchema};
use serde_json::{Map, Value, json};

use crate::args::PeekArgs;
use crate::cell;
use crate::drivers;
use crate::grid::Grid;
use crate::output::{Answer, Failure};
use crate::pipeline;

/// Wider values are cut; `--output json` has all of them.
const VALUE_WIDTH_MAX: usize = 48;

/// Shows rows.
pub(crate) async fn peek(args: &PeekArgs) -> Result<Answer, Failure> {
    let pipeline = pipeline::load(&args.file.file)?;
    let (name, plan) = pipeline.table(&args.table)?;
    let sink = host::open_sink(&pipeline.spec, &drivers::registry()).await?;
    let state = survey::recover(plan, &*sink).await?.value;
    // The columns' own types: the sink's may be wider, and tell a UUID from no other 16 bytes.
    let copy = state.as_ref().map(|state| survey::copy(plan, state)).transpose()?.flatten();
    let table = copy.clone().unwrap_or_else(|| plan.before_described());
    let batches = sink.peek(&table, &Peek { limit: args.limit, key: args.key.clone() }).await?;
    let view = View { batches: &batches, schema: copy.as_ref().map(|copy| &*copy.schema) };
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let json = json!({ "table": name, "target": plan.target, "rows": view.json()? });
    let none = match (state, &args.key) {
        (None, _) => "the table does not hold anything yet",
        (Some(_), Some(_)) => "no row has this key",
        (Some(_), None) => "the table has no rows",
    };
    Ok(Answer::done(if rows == 0 { none.to_owned() } else { view.text()? }, json))
}

/// Rows and what is known of their columns.
struct View<'a> {
    batches: &'a [RecordBatch],
    schema: Option<&'a TableSchema>,
}

impl View<'_> {
    fn is_uuid(&self, column: &str) -> bool {
        let known = self.schema.and_then(|schema| schema.columns.iter().find(|known| known.name == column));
        known.is_some_and(|known| known.kind == rows::Type::Uuid)
    }

    fn text(&self) -> Result<String, Failure> {
        let Some(first) = self.batches.first() else { return Ok(String::new()) };
        let heads =
            first.schema().fields().iter().map(|field| (field.name().clone(), alignment(field.data_type()))).collect::<Vec<_>>();
        let mut grid = Grid::of(heads).cut_at(VALUE_WIDTH_MAX);
        for batch in self.batches {
            let schema = batch.schema();
            for row in 0..batch.num_rows() {
                let cells = batch.columns().iter().zip(schema.fields());
                let cells = cells.map(|(column, field)| cell::text(column, row, self.is_uuid(field.name())));
                grid.row(cells.collect::<Result<Vec<_>, _>>()?);
            }
        }
        Ok(grid.text())
    }

    fn json(&self) -> Result<Vec<Value>, Failure> {
        let mut rows = Vec::new();
        for batch in self.batches {
            let schema = batch.schema();
            for row in 0..batch.num_rows() {
                let mut object = Map::new();
                for (column, field) in batch.columns().iter().zip(schema.fields()) {
                    object.insert(field.name().clone(), cell::json(column, row, self.is_uuid(field.name()))?);
                }
                rows.push(Value::Object(object));
            }
        }
        Ok(rows)
    }
}

fn alignment(kind: &DataType) -> Alignment {
    if kind.is_numeric() { Alignment::Right } else { Alignment::Left }
}
