//! Projection: which columns go on, under which names, as which types.
//!
//! It works on what netting leaves ([`crate::net`]): whole rows, and of rows that are gone their keys. A table keeps its key: no
//! key column can be left out, and none can be changed in a way that could make two keys one.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::ArrowError;
use kernel::id::TableName;

use crate::cast::{CastError, Fit, cast, fit, held_as};
use crate::schema::{Column, SchemaError, TableSchema, Type};
use crate::value::ValuePolicy;

/// One column that goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selected {
    /// Its name at the source.
    pub column: String,
    /// Its name from here on; `None` keeps it.
    pub name: Option<String>,
    /// Its type from here on; `None` keeps it.
    pub kind: Option<Type>,
    /// What becomes of values that this type cannot hold.
    pub policy: ValuePolicy,
}

/// A projection of one table, checked.
#[derive(Clone, Debug)]
pub struct Projection {
    from: Arc<TableSchema>,
    to: Arc<TableSchema>,
    /// For each column of `to` the column of `from` and the policy.
    picked: Vec<(usize, ValuePolicy)>,
}

/// Why a projection cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("table {table}: {problem}")]
pub struct ProjectionError {
    /// The table.
    pub table: TableName,
    /// What is wrong.
    pub problem: ProjectionProblem,
}

/// What is wrong with a projection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProjectionProblem {
    /// A column that the table does not have.
    #[error("there is no column '{column}'{}", .nearest.as_ref().map(|name| format!("; did you mean '{name}'?")).unwrap_or_default())]
    NoSuchColumn {
        /// The name.
        column: String,
        /// The most similar name that there is.
        nearest: Option<String>,
    },
    /// A key column that is left out.
    #[error("the key column '{column}' is left out, but without it rows cannot be told apart")]
    KeyLeftOut {
        /// The column.
        column: String,
    },
    /// A cast that there is not.
    #[error("column '{column}': there is no cast from {from} to {to}; string holds every value")]
    NoCast {
        /// The column.
        column: String,
        /// Its type.
        from: Type,
        /// The type asked for.
        to: Type,
    },
    /// A change of a key column after which two keys could be one.
    #[error("the key column '{column}' cannot go from {from} to {to} with the policy '{}': two keys could become one", .policy.as_str())]
    KeyChanged {
        /// The column.
        column: String,
        /// Its type.
        from: Type,
        /// The type asked for.
        to: Type,
        /// The policy.
        policy: ValuePolicy,
    },
    /// A value that rows have which are older than their column, and that its type here does not hold.
    #[error("column '{column}' came with a value for older rows, which cannot be held as {to}")]
    Initial {
        /// The column.
        column: String,
        /// The type asked for.
        to: Type,
    },
    /// What would come out is no schema.
    #[error("after the projection, {0}")]
    Schema(crate::schema::SchemaProblem),
}

/// Why rows could not be projected.
#[derive(Debug, thiserror::Error)]
#[error("table {table}: {problem}")]
pub struct ProjectError {
    /// The table.
    pub table: TableName,
    /// What is wrong.
    pub problem: ProjectProblem,
}

/// What is wrong with rows that could not be projected.
#[derive(Debug, thiserror::Error)]
pub enum ProjectProblem {
    /// They have other columns than the projection's table.
    #[error("{expected} columns are expected by the projection, {found} found")]
    Columns {
        /// How many the projection's table has.
        expected: usize,
        /// How many the rows have.
        found: usize,
    },
    /// A value that its column's policy refuses.
    #[error(transparent)]
    Cast(#[from] CastError),
    /// Arrow could not put the columns together.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl Projection {
    /// The columns `selected` of a table, in this order.
    pub fn new(from: &Arc<TableSchema>, selected: &[Selected]) -> Result<Self, ProjectionError> {
        let wrong = |problem| ProjectionError { table: from.table.clone(), problem };
        let mut columns = Vec::with_capacity(selected.len());
        let mut picked = Vec::with_capacity(selected.len());
        for one in selected {
            let (index, column) = pick(from, one).map_err(wrong)?;
            columns.push(column);
            picked.push((index, one.policy));
        }
        let key = key_after(from, &picked).map_err(wrong)?;
        let to = TableSchema::new(from.table.clone(), columns, key)
            .map_err(|SchemaError { problem, .. }| wrong(ProjectionProblem::Schema(problem)))?;
        Ok(Self { from: Arc::clone(from), to: Arc::new(to), picked })
    }

    /// What rows look like afterwards.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.to
    }

    /// Does it leave everything as it is?
    pub fn is_identity(&self) -> bool {
        self.from == self.to
    }

    /// Do keys have other types afterwards, and so other bytes?
    pub fn changes_keys(&self) -> bool {
        let kind = |schema: &TableSchema, column: &usize| schema.columns[*column].kind.clone();
        !self.from.key.iter().map(|column| kind(&self.from, column)).eq(self.to.key.iter().map(|column| kind(&self.to, column)))
    }

    /// Projects whole rows. Columns that only get another name or place are not copied.
    pub fn apply(&self, rows: &RecordBatch) -> Result<RecordBatch, ProjectError> {
        self.project(rows, |_| true)
    }

    /// Projects rows of which only the keys are sure to be there: the other columns are null.
    pub fn apply_to_keys(&self, rows: &RecordBatch) -> Result<RecordBatch, ProjectError> {
        self.project(rows, |column| self.to.is_key(column))
    }

    fn project(&self, rows: &RecordBatch, is_there: impl Fn(usize) -> bool) -> Result<RecordBatch, ProjectError> {
        let wrong = |problem| ProjectError { table: self.from.table.clone(), problem };
        let (expected, found) = (self.from.columns.len(), rows.num_columns());
        if expected != found {
            return Err(wrong(ProjectProblem::Columns { expected, found }));
        }
        let picked = self.picked.iter().zip(&self.to.columns).enumerate();
        let columns = picked.map(|(at, ((index, policy), to))| match is_there(at) {
            true => self.column(rows.column(*index), *index, to, *policy),
            false => Ok(new_null_array(&to.kind.arrow(), rows.num_rows())),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(error.into()))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(self.to.arrow()), columns, &options).map_err(|error| wrong(error.into()))
    }

    fn column(&self, column: &ArrayRef, index: usize, to: &Column, policy: ValuePolicy) -> Result<ArrayRef, CastError> {
        let from = &self.from.columns[index];
        if from.kind == to.kind {
            return Ok(Arc::clone(column));
        }
        // The type is settled; what the policy still has to say is about single values.
        let policy = if policy == ValuePolicy::String { ValuePolicy::Error } else { policy };
        cast(column, &from.name, &from.kind, &to.kind, policy)
    }
}

fn pick(from: &TableSchema, Selected { column, name, kind, policy }: &Selected) -> Result<(usize, Column), ProjectionProblem> {
    let index = from
        .index_of(column)
        .ok_or_else(|| ProjectionProblem::NoSuchColumn { column: column.clone(), nearest: nearest(from, column) })?;
    let own = &from.columns[index];
    let asked = kind.as_ref().unwrap_or(&own.kind);
    let fits = fit(&own.kind, asked);
    if fits == Fit::Refused {
        return Err(ProjectionProblem::NoCast { column: column.clone(), from: own.kind.clone(), to: asked.clone() });
    }
    let held = held_as(&own.kind, asked, *policy);
    if from.is_key(index) && !keeps_keys_apart(&own.kind, &held, *policy) {
        return Err(ProjectionProblem::KeyChanged { column: column.clone(), from: own.kind.clone(), to: held, policy: *policy });
    }
    let may_become_null = fits == Fit::Checked && *policy == ValuePolicy::Null;
    let initial = own.initial_as(&held, *policy);
    let initial = initial.map_err(|_| ProjectionProblem::Initial { column: column.clone(), to: held.clone() })?;
    let name = name.clone().unwrap_or_else(|| column.clone());
    Ok((index, Column { name, kind: held, nullable: own.nullable || may_become_null, initial, identity: own.identity }))
}

/// `007` and `7` are one number, and so are two that are clamped to the same end.
fn keeps_keys_apart(from: &Type, to: &Type, policy: ValuePolicy) -> bool {
    match fit(from, to) {
        Fit::Same | Fit::Lossless => true,
        Fit::Checked => policy == ValuePolicy::Error && !matches!(from, Type::String | Type::Unknown(_)),
        Fit::Refused => false,
    }
}

fn key_after(from: &TableSchema, picked: &[(usize, ValuePolicy)]) -> Result<Vec<usize>, ProjectionProblem> {
    let place = |index: &usize| {
        let place = picked.iter().position(|(picked, _)| picked == index);
        place.ok_or_else(|| ProjectionProblem::KeyLeftOut { column: from.columns[*index].name.clone() })
    };
    from.key.iter().map(place).collect()
}

/// The most similar name of a column, for the hint in an error.
pub(crate) fn nearest(schema: &TableSchema, name: &str) -> Option<String> {
    schema.columns.iter().map(|column| &column.name).min_by_key(|known| strsim::damerau_levenshtein(known, name)).cloned()
}
