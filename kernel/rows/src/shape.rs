//! Which of a table's rows and columns go on to the target, and as which types: what the pipeline file wants of a table, bound to
//! the columns that it has.
//!
//! ```text
//!  the source's rows ──narrow──▶ held, netted ──filter──▶ whole rows that match ──project──▶ the target's rows
//! ```
//!
//! Columns that nobody needs are dropped when rows come in. The rest comes after netting, so that it sees whole rows; keys, digests
//! and the stored schema stay those of the source (rule P3: a transaction is recognised whatever the pipeline wants of it).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::ArrowError;
use kernel::id::TableName;
use kernel::position::{Coordinate, Transaction};
use serde::{Deserialize, Serialize};

use crate::batch::{ChangeBatch, Tail};
use crate::cast::CastError;
use crate::filter::{Filter, FilterError};
use crate::key::{EncodedKeys, KeyError};
use crate::net::Netted;
use crate::project::{ProjectError, ProjectProblem, Projection, ProjectionError, ProjectionProblem, Selected, nearest};
use crate::schema::{TableSchema, Type};
use crate::value::{Offence, ValuePolicy};

/// What the pipeline wants of a table's rows. The serialised form of [`Wanted::of_copy`] is stored with the copy: one that was made
/// of other rows, columns or types can't be gone on with.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    /// Only these columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Columns that get another type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub casts: BTreeMap<String, WantedCast>,
    /// Only rows that match, as [`crate::filter`] reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// Another type for a column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WantedCast {
    /// The type.
    #[serde(rename = "type")]
    pub kind: Type,
    /// What becomes of values that it cannot hold.
    #[serde(default, skip_serializing_if = "is_error")]
    pub on_value: ValuePolicy,
}

fn is_error(policy: &ValuePolicy) -> bool {
    *policy == ValuePolicy::Error
}

impl Wanted {
    /// What of it decides about the rows, columns and types of a copy. What becomes of single values may change: those that are
    /// there already were dealt with.
    pub fn of_copy(&self) -> Wanted {
        let mut wanted = self.clone();
        for cast in wanted.casts.values_mut().filter(|cast| cast.on_value != ValuePolicy::String) {
            cast.on_value = ValuePolicy::Error;
        }
        wanted
    }

    /// Does the target get all rows and columns as they are?
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// May a column that is named be missing?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// No: nothing was copied yet, so the name is wrong.
    Refused,
    /// Yes: it may have gone since the copy was made. (Not one of the filter.)
    Gone,
}

/// What goes on of a table's rows under one schema of it.
#[derive(Clone, Debug)]
pub struct Shape {
    from: Arc<TableSchema>,
    /// The columns that are needed, and what rows that have only them look like.
    needed: Vec<usize>,
    narrow: Arc<TableSchema>,
    filter: Option<Arc<Filter>>,
    projection: Projection,
}

/// Why the pipeline's wishes do not fit a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShapeError {
    /// Columns or casts.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// The filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// A value that its column's policy refuses, told by its place in the log and never by its text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "table {table}: the value of column '{}' in the row that was changed in transaction {transaction:?} at {coordinate:?} cannot be held \
     as {}: {}. Give the column another `onValue` (`null` or `clamp`) and resume the table",
    .offence.column, .offence.kind, .offence.why
)]
pub struct RefusedValue {
    /// The table.
    pub table: TableName,
    /// The row's transaction.
    pub transaction: Transaction,
    /// The row's place in it.
    pub coordinate: Coordinate,
    /// Which column and why.
    pub offence: Offence,
}

/// Why rows can't be given their shape.
#[derive(Debug, thiserror::Error)]
pub enum ShapeRowsError {
    /// A value that its column's policy refuses.
    #[error(transparent)]
    Value(Box<RefusedValue>),
    /// Something else with the rows.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A key that can't be encoded under its new type.
    #[error("table {table}: {source}")]
    Key {
        /// The table.
        table: TableName,
        /// Why.
        source: KeyError,
    },
    /// Arrow could not put the columns together.
    #[error("table {table}: {source}")]
    Arrow {
        /// The table.
        table: TableName,
        /// What Arrow said.
        source: ArrowError,
    },
}

impl Shape {
    /// Binds what is wanted to a schema of the table.
    pub fn new(from: &Arc<TableSchema>, wanted: &Wanted, missing: Missing) -> Result<Self, ShapeError> {
        let kept = kept(from, wanted, missing)?;
        let of_filter = match &wanted.filter {
            Some(text) => Filter::new(text, from)?.columns().to_vec(),
            None => Vec::new(),
        };
        let needed: Vec<usize> =
            (0..from.columns.len()).filter(|column| kept.contains(column) || of_filter.contains(column)).collect();
        let narrow = if needed.len() == from.columns.len() { Arc::clone(from) } else { Arc::new(pick(from, &needed)?) };
        let filter = wanted.filter.as_ref().map(|text| Filter::new(text, &narrow)).transpose()?.map(Arc::new);
        let selected = kept.iter().map(|column| {
            let name = &from.columns[*column].name;
            let cast = wanted.casts.get(name);
            let policy = cast.map_or(ValuePolicy::Error, |cast| cast.on_value);
            Selected { column: name.clone(), name: None, kind: cast.map(|cast| cast.kind.clone()), policy }
        });
        let projection = Projection::new(&narrow, &selected.collect::<Vec<_>>())?;
        Ok(Self { from: Arc::clone(from), needed, narrow, filter, projection })
    }

    /// What rows look like at the target.
    pub fn schema(&self) -> &Arc<TableSchema> {
        self.projection.schema()
    }

    /// What rows look like between the source and the target.
    pub fn narrow_schema(&self) -> &Arc<TableSchema> {
        &self.narrow
    }

    /// By what netted rows are judged.
    pub fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref()
    }

    /// Drops the columns that nobody needs.
    pub fn narrow(&self, batch: Arc<ChangeBatch>) -> Result<Arc<ChangeBatch>, ShapeRowsError> {
        if Arc::ptr_eq(&self.narrow, &self.from) {
            return Ok(batch);
        }
        let ChangeBatch { schema, data, absent, tail } = Arc::unwrap_or_clone(batch);
        let data = data.project(&self.needed).map_err(|source| ShapeRowsError::Arrow { table: schema.table.clone(), source })?;
        // The columns keep their types, and their names are nothing to Arrow.
        let absent = self.needed.iter().map(|column| absent.get(*column).cloned().flatten()).collect();
        Ok(Arc::new(ChangeBatch { schema: Arc::clone(&self.narrow), data, absent, tail }))
    }

    /// Gives netted rows the columns and types of the target. `Err`, and nothing is lost, if a value can't be held.
    pub fn apply(&self, netted: Netted) -> Result<Netted, ShapeRowsError> {
        if self.projection.is_identity() {
            return Ok(netted);
        }
        let upserts = self.projection.apply(&netted.upserts).map_err(|error| located(error, &netted.upsert_tail))?;
        let deletes = self.projection.apply_to_keys(&netted.deletes)?;
        let schema = Arc::clone(self.projection.schema());
        let mut shaped = Netted { schema, upserts, deletes, ..netted };
        if self.projection.changes_keys() {
            let encode = |rows| EncodedKeys::encode(&shaped.schema, rows);
            let broken = |source| ShapeRowsError::Key { table: shaped.schema.table.clone(), source };
            let keep_every_row = shaped.upsert_keys.is_empty();
            let upsert_keys = if keep_every_row { EncodedKeys::default() } else { encode(&shaped.upserts).map_err(broken)? };
            let delete_keys = encode(&shaped.deletes).map_err(broken)?;
            (shaped.upsert_keys, shaped.delete_keys) = (upsert_keys, delete_keys);
        }
        Ok(shaped)
    }
}

/// The columns that go on, in the table's own order.
fn kept(from: &Arc<TableSchema>, wanted: &Wanted, missing: Missing) -> Result<Vec<usize>, ProjectionError> {
    let named = wanted.columns.iter().flatten().chain(wanted.casts.keys());
    if let Some(column) = named.filter(|name| from.index_of(name).is_none()).find(|_| missing == Missing::Refused) {
        let problem = ProjectionProblem::NoSuchColumn { column: column.clone(), nearest: nearest(from, column) };
        return Err(ProjectionError { table: from.table.clone(), problem });
    }
    let is_kept = |name: &String| wanted.columns.as_ref().is_none_or(|columns| columns.contains(name));
    let kept = from.columns.iter().enumerate().filter(|(_, column)| is_kept(&column.name)).map(|(at, _)| at);
    Ok(kept.collect())
}

/// The table with these columns only.
fn pick(from: &TableSchema, columns: &[usize]) -> Result<TableSchema, ProjectionError> {
    let wrong = |problem| ProjectionError { table: from.table.clone(), problem };
    let place = |key: &usize| {
        let left_out = || wrong(ProjectionProblem::KeyLeftOut { column: from.columns[*key].name.clone() });
        columns.iter().position(|column| column == key).ok_or_else(left_out)
    };
    let key = from.key.iter().map(place).collect::<Result<_, _>>()?;
    let columns = columns.iter().map(|column| from.columns[*column].clone()).collect();
    TableSchema::new(from.table.clone(), columns, key).map_err(|error| wrong(ProjectionProblem::Schema(error.problem)))
}

/// Says of a value that is refused where the log has it.
fn located(error: ProjectError, tail: &Tail) -> ShapeRowsError {
    let ProjectError { table, problem: ProjectProblem::Cast(CastError::Value(offence)) } = error else {
        return ShapeRowsError::Project(error);
    };
    let mut behind = offence.row;
    let run = tail.transactions.iter().find(|run| {
        let is_in = behind < run.rows;
        behind = behind.saturating_sub(run.rows);
        is_in
    });
    match (run, tail.coordinates.get(offence.row)) {
        (Some(run), Some(coordinate)) => {
            let transaction = run.transaction.clone();
            ShapeRowsError::Value(Box::new(RefusedValue { table, transaction, coordinate: *coordinate, offence }))
        }
        _ => ShapeRowsError::Project(ProjectError { table, problem: CastError::Value(offence).into() }),
    }
}
