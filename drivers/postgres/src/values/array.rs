//! Arrays on the wire: dimensions, whether there are nulls, the element's type, and the elements.

use super::Misfit;
use super::bytes::Bytes;

/// The elements of an array.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    left: usize,
    rest: Bytes<'a>,
}

/// The server's own bound.
const DIMENSIONS_MAX: usize = 6;

/// The dimensions of an array, each with its first index, and its elements in row-major order.
pub(super) fn open(bytes: &[u8]) -> Result<(Vec<(usize, i32)>, Elements<'_>), Misfit> {
    let mut rest = Bytes(bytes);
    let count = usize::try_from(rest.i32()?).map_err(|_| Misfit::Malformed)?;
    let _has_nulls = rest.i32()?;
    let _element = rest.i32()?;
    if count > DIMENSIONS_MAX {
        return Err(Misfit::Malformed);
    }
    let mut dimensions = Vec::with_capacity(count);
    for _ in 0..count {
        let length = usize::try_from(rest.i32()?).map_err(|_| Misfit::Malformed)?;
        dimensions.push((length, rest.i32()?));
    }
    // An array without elements has no dimensions, but for the two old kinds of vectors, which have one. Of several dimensions one that
    // is nothing would let the others be of any length.
    let is_hollow = count > 1 && dimensions.iter().any(|(length, _)| *length == 0);
    let left = if count == 0 { Some(0) } else { dimensions.iter().try_fold(1_usize, |all, (n, _)| all.checked_mul(*n)) };
    // Each element takes four bytes at least.
    let left = left.filter(|left| !is_hollow && *left <= rest.0.len() / 4).ok_or(Misfit::Malformed)?;
    Ok((dimensions, Elements { left, rest }))
}

impl<'a> Elements<'a> {
    /// Of an array that a list can hold: of one dimension that begins at 1, or an empty one.
    pub(super) fn of_list(bytes: &'a [u8]) -> Result<Self, Misfit> {
        let (dimensions, elements) = open(bytes)?;
        match dimensions.as_slice() {
            [] | [(_, 1)] => Ok(elements),
            _ => Err(Misfit::Shape),
        }
    }

    /// Of an `oidvector` or `int2vector`, which has one dimension that begins at 0.
    pub(super) fn of_vector(bytes: &'a [u8]) -> Result<Self, Misfit> {
        let (dimensions, elements) = open(bytes)?;
        if dimensions.len() <= 1 { Ok(elements) } else { Err(Misfit::Malformed) }
    }

    /// The next element, `Some(None)` for null.
    pub(super) fn next(&mut self) -> Result<Option<Option<&'a [u8]>>, Misfit> {
        if self.left == 0 {
            return self.rest.end().map(|()| None);
        }
        self.left -= 1;
        self.rest.value().map(Some)
    }
}
