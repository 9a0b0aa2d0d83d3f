//! From JSON values into Arrow columns, one builder a column, without anything in between.
//!
//! A value lands exactly or not at all: nothing is rounded, cut or guessed, and numbers that a double cannot hold never pass
//! through one. What does not fit is a [`Misfit`], which says what was found and never which value it was.
//!
//! [`Reading`] is how a column's values are to be read, decided once for a column and a schema part. A builder that failed in
//! the middle of a row is taken back to where the row began by [`ColumnBuilder::truncate`].

mod decimal;
pub(crate) mod infer;
mod nested;
mod number;
mod reading;
mod scalar;
#[cfg(test)]
mod tests;
mod time;

use std::borrow::Cow;

use rows::build::ColumnBuilder;

use crate::json::{Kind, Value};
pub(crate) use reading::{BinaryText, DecimalText, Options, Reading, canonical, column_holds, holds};

/// Why a value does not go into its column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Misfit {
    /// What was found instead, without the value: `a string that is no date`.
    pub(crate) found: Cow<'static, str>,
    /// Where inside the value: `[2].city`; empty for the value itself.
    pub(crate) path: String,
}

impl Misfit {
    pub(crate) fn new(found: impl Into<Cow<'static, str>>) -> Self {
        Self { found: found.into(), path: String::new() }
    }

    pub(crate) fn kind(kind: Kind) -> Self {
        Self::new(kind.to_string())
    }

    fn inside(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

/// Takes JSON values.
pub(crate) trait PushJson {
    /// Appends a value. After an error a part of it may be there.
    fn push(&mut self, reading: &Reading, value: Value<'_>, nullable: bool) -> Result<(), Misfit>;
}

impl PushJson for ColumnBuilder {
    fn push(&mut self, reading: &Reading, value: Value<'_>, nullable: bool) -> Result<(), Misfit> {
        match value.kind {
            Kind::Null if nullable => self.append_null(),
            Kind::Null => return Err(Misfit::kind(Kind::Null)),
            _ => self.append(|values| scalar::push(values, reading, value))?,
        }
        Ok(())
    }
}
