//! Rows of the log into a change batch that grows.

use rows::build::BatchBuilder;

use super::refusal::Refusal;
use super::relation::Bound;
use crate::pgoutput::{Datum, OldRow, Tuple};
use crate::values::{AppendDatum, Reading};

/// What of a row there is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Image<'a> {
    /// All of it but large values that did not change. Those stand in the old row, if that has them.
    New { row: Tuple<'a>, old: Option<OldRow<'a>> },
    /// All of an old row.
    Whole(Tuple<'a>),
    /// The columns of its identity.
    Identity(Tuple<'a>),
}

/// Appends the columns of a row; [`BatchBuilder::tell`] completes it. After a refusal [`BatchBuilder::take_back`] undoes it.
/// `may_lack`: a value that was not sent may be found later, by the row's key.
pub(super) fn push(
    batch: &mut BatchBuilder,
    bound: &Bound,
    image: Image<'_>,
    may_lack: bool,
    reading: &mut Reading<'_>,
) -> Result<(), Refusal> {
    let (row, old, is_whole) = match image {
        Image::New { row, old } => (row, old, true),
        Image::Whole(row) => (row, None, true),
        Image::Identity(row) => (row, None, false),
    };
    let shape = |values: usize| match values == bound.places.len() {
        true => Ok(()),
        false => Err(Refusal::Shape { columns: bound.places.len(), values }),
    };
    shape(row.len())?;
    // What is not part of the identity is null in an old row that is known by it.
    let (old, is_full) = match old {
        Some(OldRow::Full(old)) => (Some(old), true),
        Some(OldRow::Key(old)) => (Some(old), false),
        None => (None, false),
    };
    old.map_or(Ok(()), |old| shape(old.len()))?;
    let mut old = old.map(|old| old.values());
    for (place, datum) in bound.places.iter().zip(row.values()) {
        let before = old.as_mut().and_then(Iterator::next).filter(|_| is_full || place.in_identity);
        let column = &bound.schema.columns[place.column];
        let datum = match (datum, before) {
            (Datum::Unchanged, Some(before)) if before != Datum::Unchanged => before,
            (Datum::Unchanged, _) if may_lack && !bound.schema.is_key(place.column) => {
                batch.append_absent(place.column);
                continue;
            }
            (Datum::Unchanged, _) => return Err(Refusal::Unsent { column: column.name.clone() }),
            (datum, _) => datum,
        };
        if !is_whole && !place.in_identity {
            batch.append_absent(place.column);
            continue;
        }
        if datum == Datum::Null && bound.schema.is_key(place.column) {
            return Err(Refusal::NullKey { column: column.name.clone() });
        }
        batch.column(place.column).append_datum(&place.kind, datum, reading).map_err(|misfit| Refusal::Value {
            column: column.name.clone(),
            kind: column.kind.clone(),
            misfit,
        })?;
    }
    Ok(())
}
