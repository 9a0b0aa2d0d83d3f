//! The text of values: how numbers, times and bytes are written for people and for targets that hold text, and read back.
//!
//! One value has one text. What reads here may be written a little differently (`1.50` for `1.5`), but never loosely:
//! no spaces, no locale, no guess.

pub(crate) mod calendar;

use std::fmt::Write as _;

use crate::value::Unholdable;

/// Writes a decimal with all digits of its scale: `1.50`.
pub(crate) fn write_decimal(unscaled: i128, scale: i8, out: &mut String) {
    let digits = unscaled.unsigned_abs().to_string();
    let scale = usize::try_from(scale).unwrap_or(0);
    if unscaled < 0 {
        out.push('-');
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    out.push_str(whole);
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
}

/// Writes the shortest text that reads back as the same number; `NaN`, `Infinity`, `-Infinity`.
pub(crate) fn write_float<F: Into<f64> + std::fmt::Debug + Copy>(value: F, out: &mut String) {
    let wide: f64 = value.into();
    // Writing to a string does not fail.
    let _ = match wide {
        f64::INFINITY => write!(out, "Infinity"),
        f64::NEG_INFINITY => write!(out, "-Infinity"),
        wide if wide.is_nan() => write!(out, "NaN"),
        _ => write!(out, "{value:?}"),
    };
}

/// Writes two lower-case hexadecimal digits a byte.
pub(crate) fn write_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

/// Writes `8-4-4-4-12` hexadecimal digits.
pub(crate) fn write_uuid(bytes: &[u8], out: &mut String) {
    for (n, byte) in bytes.iter().enumerate() {
        if matches!(n, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{byte:02x}");
    }
}

/// Reads hexadecimal digits.
pub(crate) fn read_hex(text: &str) -> Result<Vec<u8>, Unholdable> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    if !text.len().is_multiple_of(2) {
        return Err(Unholdable::Malformed);
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect::<Option<_>>()
        .ok_or(Unholdable::Malformed)
}

/// Reads `8-4-4-4-12` hexadecimal digits.
pub(crate) fn read_uuid(text: &str) -> Result<[u8; 16], Unholdable> {
    let groups: Vec<&str> = text.split('-').collect();
    if groups.iter().map(|group| group.len()).ne([8, 4, 4, 4, 12]) {
        return Err(Unholdable::Malformed);
    }
    read_hex(&groups.concat())?.try_into().map_err(|_| Unholdable::Malformed)
}

/// Reads an integer of any size; one that 128 bits do not hold is above or below everything.
pub(crate) fn read_integer(text: &str) -> Result<i128, Unholdable> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unholdable::Malformed);
    }
    text.parse().map_err(|_| if text.starts_with('-') { Unholdable::Below } else { Unholdable::Above })
}

/// A decimal number of any size: the digits, without zeros at either end, and the power of ten of the last one.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Digits {
    negative: bool,
    /// Empty for zero.
    digits: String,
    exponent: i64,
}

impl Digits {
    /// Reads `-12.50`, `1e3`. NaN and the infinities are told apart.
    pub(crate) fn read(text: &str) -> Result<Self, Unholdable> {
        match text {
            "NaN" => return Err(Unholdable::NotANumber),
            "Infinity" => return Err(Unholdable::Above),
            "-Infinity" => return Err(Unholdable::Below),
            _ => (),
        }
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().map_err(|_| Unholdable::Malformed)?),
            None => (text, 0),
        };
        let (negative, number) = match number.strip_prefix(['-', '+']) {
            Some(unsigned) => (number.starts_with('-'), unsigned),
            None => (false, number),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Unholdable::Malformed);
        }
        let trimmed = digits.trim_end_matches('0');
        let exponent = i64::from(exponent) - fraction.len() as i64 + (digits.len() - trimmed.len()) as i64;
        let digits = trimmed.trim_start_matches('0').to_owned();
        let is_zero = digits.is_empty();
        Ok(Self { negative: negative && !is_zero, digits, exponent: if is_zero { 0 } else { exponent } })
    }

    /// The number times ten to the power of `scale`, if that is an integer that 38 digits hold.
    pub(crate) fn unscaled(&self, scale: i8) -> Result<i128, Unholdable> {
        if self.digits.is_empty() {
            return Ok(0);
        }
        let zeros = usize::try_from(self.exponent + i64::from(scale)).map_err(|_| Unholdable::TooFine)?;
        let beyond = if self.negative { Unholdable::Below } else { Unholdable::Above };
        if self.digits.len().saturating_add(zeros) > 38 {
            return Err(beyond);
        }
        let value: i128 = self.digits.parse().map_err(|_| beyond)?;
        let shifted = value * 10i128.pow(zeros as u32);
        Ok(if self.negative { -shifted } else { shifted })
    }
}
