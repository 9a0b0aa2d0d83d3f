//! `numeric` on the wire: groups of four decimal digits, a weight, a sign and how many digits are shown after the point.

use std::fmt::Write as _;

use rows::value::Unholdable;

use super::{Misfit, exactly};

/// A number, or what is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Numeric<'a> {
    NaN,
    Infinite { negative: bool },
    Finite { negative: bool, weight: i16, shown: u16, groups: &'a [u8] },
}

impl<'a> Numeric<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Misfit> {
        let (head, groups) = bytes.split_first_chunk::<8>().ok_or(Misfit::Malformed)?;
        let [n0, n1, w0, w1, s0, s1, d0, d1] = *head;
        let weight = i16::from_be_bytes([w0, w1]);
        let negative = match u16::from_be_bytes([s0, s1]) {
            0x0000 => false,
            0x4000 => true,
            0xC000 => return Ok(Numeric::NaN),
            0xD000 => return Ok(Numeric::Infinite { negative: false }),
            0xF000 => return Ok(Numeric::Infinite { negative: true }),
            _ => return Err(Misfit::Malformed),
        };
        let whole = groups.len() == 2 * usize::from(u16::from_be_bytes([n0, n1]));
        let digits = groups.chunks_exact(2).all(|group| group_value(group) < 10_000);
        let shown = u16::from_be_bytes([d0, d1]);
        // The largest scale that the server knows; a larger one would only make us write zeros.
        if !whole || !digits || shown > 0x3FFF {
            return Err(Misfit::Malformed);
        }
        // A digit behind those that are shown would be in the number and not in its text.
        let hidden = |(place, group): (i32, &[u8])| {
            let lowest = (i32::from(weight) - place) * 4 + trailing_zeros(group_value(group));
            group_value(group) != 0 && lowest < -i32::from(shown)
        };
        if (0..).zip(groups.chunks_exact(2)).any(hidden) {
            return Err(Misfit::HiddenDigits);
        }
        Ok(Numeric::Finite { negative, weight, shown, groups })
    }

    /// As a decimal of this many digits, so many of them after the point: exactly, or not at all.
    pub(super) fn decimal(self, precision: u8, scale: i8) -> Result<i128, Misfit> {
        let (negative, weight, groups) = match self {
            Numeric::NaN => return Err(Unholdable::NotANumber.into()),
            Numeric::Infinite { negative } => return Err(beyond(negative)),
            Numeric::Finite { negative, weight, groups, .. } => (negative, weight, groups),
        };
        let limit = 10_i128.checked_pow(u32::from(precision)).ok_or(Misfit::Malformed)?;
        let mut value = 0_i128;
        for (place, group) in (0_i32..).zip(groups.chunks_exact(2)) {
            let group = i128::from(group_value(group));
            if group == 0 {
                continue;
            }
            // The group counts ten to this power, in units of the decimal's last digit.
            let power = (i32::from(weight) - place) * 4 + i32::from(scale);
            let part = match u32::try_from(power) {
                Ok(power) => 10_i128.checked_pow(power).and_then(|unit| group.checked_mul(unit)).ok_or(beyond(negative))?,
                Err(_) => {
                    let unit = 10_i128.checked_pow(power.unsigned_abs()).ok_or(Misfit::from(Unholdable::TooFine))?;
                    if group % unit != 0 {
                        return Err(Unholdable::TooFine.into());
                    }
                    group / unit
                }
            };
            value = value.checked_add(part).ok_or(beyond(negative))?;
        }
        if value >= limit {
            return Err(beyond(negative));
        }
        Ok(if negative { -value } else { value })
    }

    /// As the server writes it.
    pub(super) fn write(self, into: &mut String) {
        let (negative, weight, shown, groups) = match self {
            Numeric::NaN => return into.push_str("NaN"),
            Numeric::Infinite { negative } => return into.push_str(if negative { "-Infinity" } else { "Infinity" }),
            Numeric::Finite { negative, weight, shown, groups } => (negative, i32::from(weight), usize::from(shown), groups),
        };
        let group = |place: i32| {
            let at = usize::try_from(weight - place).ok().and_then(|at| groups.get(2 * at..2 * at + 2));
            at.map_or(0, group_value)
        };
        if negative {
            into.push('-');
        }
        // Writing to a String cannot fail.
        let _ = write!(into, "{}", group(weight.max(0)));
        for place in (0..weight.max(0)).rev() {
            let _ = write!(into, "{:04}", group(place));
        }
        if shown > 0 {
            into.push('.');
            let end = into.len() + shown;
            let mut place = -1;
            while into.len() < end {
                let _ = write!(into, "{:04}", group(place));
                place -= 1;
            }
            into.truncate(end);
        }
    }
}

fn group_value(group: &[u8]) -> u16 {
    exactly(group).map(u16::from_be_bytes).unwrap_or_default()
}

/// Zeros at the end of a group of four digits.
fn trailing_zeros(group: u16) -> i32 {
    match group {
        group if group % 1_000 == 0 => 3,
        group if group % 100 == 0 => 2,
        group if group % 10 == 0 => 1,
        _ => 0,
    }
}

fn beyond(negative: bool) -> Misfit {
    Misfit::Unholdable(if negative { Unholdable::Below } else { Unholdable::Above })
}
