//! Points, lines and what is made of them, as the server writes them.

use super::Misfit;
use super::bytes::Bytes;
use super::text::float8;

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Geometric {
    /// `point`
    Point,
    /// `line`
    Line,
    /// `lseg`
    Segment,
    /// `box`
    Box,
    /// `path`
    Path,
    /// `polygon`
    Polygon,
    /// `circle`
    Circle,
}

/// Two numbers.
const POINT_BYTES: usize = 16;

pub(super) fn write(kind: Geometric, bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let mut from = Bytes(bytes);
    match kind {
        Geometric::Point => point(&mut from, into)?,
        Geometric::Line => {
            into.push('{');
            numbers(&mut from, 3, into)?;
            into.push('}');
        }
        Geometric::Segment => {
            into.push('[');
            points(&mut from, 2, into)?;
            into.push(']');
        }
        Geometric::Box => points(&mut from, 2, into)?,
        Geometric::Path => {
            let (open, close) = match from.u8()? {
                0 => ('[', ']'),
                1 => ('(', ')'),
                _ => return Err(Misfit::Malformed),
            };
            into.push(open);
            let count = from.count(POINT_BYTES)?;
            points(&mut from, count, into)?;
            into.push(close);
        }
        Geometric::Polygon => {
            into.push('(');
            let count = from.count(POINT_BYTES)?;
            points(&mut from, count, into)?;
            into.push(')');
        }
        Geometric::Circle => {
            into.push('<');
            point(&mut from, into)?;
            into.push(',');
            float8(from.f64()?, into);
            into.push('>');
        }
    }
    from.end()
}

fn points(from: &mut Bytes<'_>, count: usize, into: &mut String) -> Result<(), Misfit> {
    for place in 0..count {
        if place > 0 {
            into.push(',');
        }
        point(from, into)?;
    }
    Ok(())
}

fn point(from: &mut Bytes<'_>, into: &mut String) -> Result<(), Misfit> {
    into.push('(');
    numbers(from, 2, into)?;
    into.push(')');
    Ok(())
}

fn numbers(from: &mut Bytes<'_>, count: usize, into: &mut String) -> Result<(), Misfit> {
    for place in 0..count {
        if place > 0 {
            into.push(',');
        }
        float8(from.f64()?, into);
    }
    Ok(())
}
