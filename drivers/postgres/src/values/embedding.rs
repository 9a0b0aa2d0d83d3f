//! The vectors of the extension `vector`: numbers of 32 or 16 bits, and those of which most are zero.

use std::fmt::Write as _;

use super::Misfit;
use super::bytes::Bytes;
use super::text::float4;

/// How each number of a vector lies on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Number {
    /// `vector`: 32 bits.
    Single,
    /// `halfvec`: 16 bits.
    Half,
}

impl Number {
    /// The numbers of a vector, one after the other.
    pub(super) fn read(self, bytes: &[u8], mut take: impl FnMut(f32) -> Result<(), Misfit>) -> Result<(), Misfit> {
        let mut from = Bytes(bytes);
        let count = from.u16()?;
        let _unused = from.u16()?;
        for _ in 0..count {
            take(match self {
                Number::Single => from.f32()?,
                Number::Half => half(from.u16()?),
            })?;
        }
        from.end()
    }

    pub(super) fn write(self, bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
        into.push('[');
        let first = into.len();
        self.read(bytes, |number| {
            if into.len() > first {
                into.push(',');
            }
            float4(number, into);
            Ok(())
        })?;
        into.push(']');
        Ok(())
    }
}

/// `sparsevec`: how long, the places that are not zero, their numbers. The wire counts places from 0, the text from 1.
pub(super) fn write_sparse(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let mut from = Bytes(bytes);
    let length = from.i32()?;
    let count = usize::try_from(from.i32()?).map_err(|_| Misfit::Malformed)?;
    let _unused = from.i32()?;
    if count.checked_mul(8) != Some(from.0.len()) {
        return Err(Misfit::Malformed);
    }
    let (mut places, mut numbers) = (Bytes(from.take(4 * count)?), from);
    into.push('{');
    for at in 0..count {
        let _ = write!(into, "{}{}:", if at > 0 { "," } else { "" }, i64::from(places.i32()?) + 1);
        float4(numbers.f32()?, into);
    }
    let _ = write!(into, "}}/{length}");
    numbers.end()
}

/// A number of 16 bits (IEEE 754 binary16) as one of 32, which holds all of them.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (u32::from(bits >> 15) << 31, u32::from(bits >> 10 & 0x1F), u32::from(bits & 0x3FF));
    match (exponent, fraction) {
        // Units of 2^-24.
        (0, _) => f32::from_bits((f32::from(bits & 0x3FF) / 16_777_216.0).to_bits() | sign),
        (0x1F, fraction) => f32::from_bits(sign | 0xFF << 23 | fraction << 13),
        (exponent, fraction) => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}
