//! A row filter: `status != 'draft' and (total >= 100 or customer is null)`.
//!
//! It is judged on what netting leaves of a key, its final image ([`crate::net`]): whole rows, so that no value of a row that was
//! changed before is missed. A row that does not match, or does not any more, is made a delete of its key, so that the target
//! holds exactly the rows that match: an older image of it may be there. Comparing with null is neither true nor false, as in
//! SQL, and only a row for which the whole is true matches.

mod evaluate;
mod parse;

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use kernel::id::TableName;

use crate::cast::read_text;
use crate::project::nearest;
use crate::schema::{TableSchema, Type};
pub use parse::ParseFilterError;
use parse::{Expression, Literal};

/// A filter of one table, checked.
#[derive(Clone, Debug)]
pub struct Filter {
    schema: Arc<TableSchema>,
    condition: Condition,
    /// The columns that it looks at.
    columns: Vec<usize>,
}

/// How a value is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// An expression whose columns and literals have types.
#[derive(Clone, Debug)]
enum Condition {
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    IsNull(usize),
    /// The literal is a column of one row.
    Compare(usize, Comparison, ArrayRef),
}

/// Why a filter cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FilterError {
    /// Its text is none.
    #[error(transparent)]
    Parse(#[from] ParseFilterError),
    /// A column that the table does not have.
    #[error("the filter of table {table} names column '{column}', which it does not have{}", .nearest.as_ref().map(|name| format!("; did you mean '{name}'?")).unwrap_or_default())]
    NoSuchColumn {
        /// The table.
        table: TableName,
        /// The name.
        column: String,
        /// The most similar name that there is.
        nearest: Option<String>,
    },
    /// A type that has nothing to compare by.
    #[error("the filter of table {table} compares column '{column}', whose type {kind} can only be asked for null")]
    NotComparable {
        /// The table.
        table: TableName,
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
    },
    /// A literal that is no value of the column.
    #[error("the filter of table {table} compares column '{column}' with {literal}, which is no {kind}: {why}")]
    Literal {
        /// The table.
        table: TableName,
        /// The column.
        column: String,
        /// The column's type.
        kind: Type,
        /// The literal as the filter has it.
        literal: String,
        /// What would be one, or what is wrong.
        why: String,
    },
}

impl Filter {
    /// Reads a filter and checks it against a table.
    pub fn new(text: &str, schema: &Arc<TableSchema>) -> Result<Self, FilterError> {
        let mut columns = Vec::new();
        let condition = bind(parse::parse(text)?, schema, &mut columns)?;
        columns.sort_unstable();
        columns.dedup();
        Ok(Self { schema: Arc::clone(schema), condition, columns })
    }

    /// The schema that its rows have.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The columns that it looks at, by index, each once.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Which of so many whole rows match; `column` gives the columns that it looks at.
    pub fn matching(&self, rows: usize, column: &dyn Fn(usize) -> ArrayRef) -> BooleanBuffer {
        self.condition.matching(rows, column)
    }
}

fn bind(expression: Expression, schema: &TableSchema, columns: &mut Vec<usize>) -> Result<Condition, FilterError> {
    let mut all = |expressions: Vec<Expression>| -> Result<Vec<Condition>, FilterError> {
        expressions.into_iter().map(|expression| bind(expression, schema, columns)).collect()
    };
    Ok(match expression {
        Expression::Not(inner) => Condition::Not(Box::new(bind(*inner, schema, columns)?)),
        Expression::All(inner) => Condition::All(all(inner)?),
        Expression::Any(inner) => Condition::Any(all(inner)?),
        Expression::IsNull(column) => Condition::IsNull(find(&column, schema, columns)?),
        Expression::Compare(column, comparison, literal) => {
            let index = find(&column, schema, columns)?;
            Condition::Compare(index, comparison, read_literal(&literal, index, schema)?)
        }
    })
}

fn find(name: &str, schema: &TableSchema, columns: &mut Vec<usize>) -> Result<usize, FilterError> {
    let index = schema.index_of(name).ok_or_else(|| FilterError::NoSuchColumn {
        table: schema.table.clone(),
        column: name.to_owned(),
        nearest: nearest(schema, name),
    })?;
    columns.push(index);
    Ok(index)
}

fn read_literal(literal: &Literal, column: usize, schema: &TableSchema) -> Result<ArrayRef, FilterError> {
    let (name, kind, table) = (&schema.columns[column].name, &schema.columns[column].kind, || schema.table.clone());
    let wrong = |why: String| FilterError::Literal {
        table: table(),
        column: name.clone(),
        kind: kind.clone(),
        literal: literal.to_string(),
        why,
    };
    match (kind, literal) {
        (Type::Json | Type::List(_) | Type::Map(..) | Type::Struct(_) | Type::Unknown(_), _) => {
            Err(FilterError::NotComparable { table: table(), column: name.clone(), kind: kind.clone() })
        }
        (Type::Bool, Literal::Bool(text)) => read(text, name, kind).map_err(wrong),
        (Type::Bool, _) => Err(wrong("write true or false".into())),
        (kind, Literal::Number(text)) if is_number(kind) => read(text, name, kind).map_err(wrong),
        (kind, _) if is_number(kind) => Err(wrong("write a number without quotes".into())),
        (kind, Literal::Text(text)) => read(text, name, kind).map_err(wrong),
        (_, Literal::Number(_) | Literal::Bool(_)) => Err(wrong("write it in single quotes".into())),
    }
}

fn read(text: &str, name: &str, kind: &Type) -> Result<ArrayRef, String> {
    use crate::cast::CastError;
    read_text(text, name, kind).map_err(|error| match error {
        CastError::Value(offence) => offence.why.to_string(),
        other => other.to_string(),
    })
}

fn is_number(kind: &Type) -> bool {
    kind.arrow().is_numeric() || matches!(kind, Type::Decimal { .. })
}
