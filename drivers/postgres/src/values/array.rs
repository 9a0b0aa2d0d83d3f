//! Arrays on the wire: dimensions, whether there are nulls, the element's type, and the elements.

use super::{Misfit, exactly};

/// The elements of an array of one dimension that begins at 1, or of an empty one.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    left: usize,
    rest: &'a [u8],
}

/// More than any value can have: what a lying count could make us do is bounded by the bytes anyway.
const DIMENSIONS_MAX: usize = 6;

/// The dimensions of an array, each with its first index, and its elements in row-major order.
pub(super) fn open(bytes: &[u8]) -> Result<(Vec<(usize, i32)>, Elements<'_>), Misfit> {
    let mut rest = bytes;
    let count = usize::try_from(i32_from(&mut rest)?).map_err(|_| Misfit::Malformed)?;
    let _has_nulls = i32_from(&mut rest)?;
    let _element = i32_from(&mut rest)?;
    if count > DIMENSIONS_MAX {
        return Err(Misfit::Malformed);
    }
    let mut dimensions = Vec::with_capacity(count);
    for _ in 0..count {
        let length = usize::try_from(i32_from(&mut rest)?).map_err(|_| Misfit::Malformed)?;
        dimensions.push((length, i32_from(&mut rest)?));
    }
    let left = if count == 0 { Some(0) } else { dimensions.iter().try_fold(1_usize, |all, (n, _)| all.checked_mul(*n)) };
    // Each element takes four bytes at least.
    let left = left.filter(|left| *left <= rest.len() / 4).ok_or(Misfit::Malformed)?;
    Ok((dimensions, Elements { left, rest }))
}

impl<'a> Elements<'a> {
    /// Of an array that a list can hold.
    pub(super) fn of_list(bytes: &'a [u8]) -> Result<Self, Misfit> {
        let (dimensions, elements) = open(bytes)?;
        match dimensions.as_slice() {
            [] | [(_, 1)] => Ok(elements),
            _ => Err(Misfit::Shape),
        }
    }

    /// The next element, `Some(None)` for null.
    pub(super) fn next(&mut self) -> Result<Option<Option<&'a [u8]>>, Misfit> {
        if self.left == 0 {
            return if self.rest.is_empty() { Ok(None) } else { Err(Misfit::Malformed) };
        }
        self.left -= 1;
        let length = i32_from(&mut self.rest)?;
        if length == -1 {
            return Ok(Some(None));
        }
        let length = usize::try_from(length).map_err(|_| Misfit::Malformed)?;
        let (value, rest) = self.rest.split_at_checked(length).ok_or(Misfit::Malformed)?;
        self.rest = rest;
        Ok(Some(Some(value)))
    }
}

fn i32_from(rest: &mut &[u8]) -> Result<i32, Misfit> {
    let (number, after) = rest.split_at_checked(4).ok_or(Misfit::Malformed)?;
    *rest = after;
    Ok(i32::from_be_bytes(exactly(number)?))
}
