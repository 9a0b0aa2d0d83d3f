//! Values: from the server's binary form to columns, by one decoder for every path on which a row can come.
//!
//! [`PgType`] is what the server calls a type, resolved through domains down to what lies on the wire. [`natural`] is the
//! canonical type that it becomes, [`holds`] says what a pipeline file may declare instead. [`AppendDatum`] puts values one by one
//! into a column; a value that does not fit leaves it as it was, and is told by kind, never by content.

mod array;
mod builder;
mod bytes;
mod embedding;
mod geometry;
mod mapping;
mod nested;
mod network;
mod numeric;
mod pg_type;
mod search;
mod text;
mod time;

#[cfg(test)]
mod tests;

pub use builder::{AppendDatum, Reading};
pub use embedding::Number;
pub use geometry::Geometric;
pub use mapping::{holds, natural, table};
pub use pg_type::{Attribute, PgType, TypeEntry, Types};

use rows::value::Unholdable;

use crate::pgoutput::TypeId;

/// Why a value is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misfit {
    /// The column cannot hold it.
    #[error("{0}")]
    Unholdable(Unholdable),
    /// It is not in the form of its type: a fault of the server, or of ours.
    #[error("its bytes are not those of its type")]
    Malformed,
    /// A number with digits behind those that it shows, so that its text says another one.
    #[error("it has digits behind those that it shows")]
    HiddenDigits,
    /// An array with more than one dimension, or one that does not begin at 1: a list has neither.
    #[error("the array has more than one dimension, or does not begin at 1, which a list cannot say")]
    Shape,
    /// A value in text form for a column that is read in binary.
    #[error("the server sent it as text, which is not read as this type")]
    TextForm,
    /// Nothing reads this type.
    #[error("urutau has no reading of this type")]
    Unreadable,
    /// A part of it is of a type that is not known: it came after the types were looked up, or is gone since.
    #[error("a part of it is of a type (number {}) that is not in the catalogue", .0.0)]
    UnknownType(TypeId),
    /// Composites, ranges and arrays in each other, deeper than is read.
    #[error("composites, ranges and arrays are nested in it more than {} deep", nested::DEPTH_MAX)]
    Depth,
}

impl From<Unholdable> for Misfit {
    fn from(why: Unholdable) -> Self {
        Misfit::Unholdable(why)
    }
}

/// A fixed number of bytes, all of them.
fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Misfit> {
    bytes.try_into().map_err(|_| Misfit::Malformed)
}
