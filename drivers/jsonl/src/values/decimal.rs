//! Decimals: from text, from numbers, from the bytes that Connect writes. No floating point anywhere.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Misfit;
use crate::json::{Kind, Value};

/// A number as `digits * 10^exponent`; `digits` does not end in a zero, so that it is known whether it has a fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Exact {
    digits: i128,
    exponent: i64,
}

/// Bytes of an unscaled value that are turned into text: about 9,800 digits.
const UNSCALED_BYTES_MAX: usize = 4_096;

const TOO_LARGE: &str = "a number with too many digits before the point";
const TOO_FINE: &str = "a number with too many digits after the point";
const TOO_LONG: &str = "a number with more than 38 digits";
const AMBIGUOUS: &str =
    "a string that can be read as digits and as base64 (the setting 'source.decimals', text or base64, decides)";

impl Exact {
    /// Of `-12.50`, `1E+3`. `None` if it is no number or has more significant digits than 128 bits hold.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (mut digits, mut zeros, mut exponent) = (0_i128, 0_i64, 0_i64);
        let (mut any, mut point) = (false, false);
        let mut bytes = unsigned.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    exponent -= i64::from(point);
                    match byte - b'0' {
                        0 => zeros += i64::from(digits != 0),
                        digit => {
                            let power = 10_i128.checked_pow(u32::try_from(zeros).ok()? + 1)?;
                            digits = digits.checked_mul(power)?.checked_add(i128::from(digit))?;
                            zeros = 0;
                        }
                    }
                }
                b'.' if !point => point = true,
                b'e' | b'E' if any => {
                    exponent = exponent.checked_add(power_of_ten(bytes.as_slice())?)?;
                    break;
                }
                _ => return None,
            }
        }
        any.then(|| Self::new(if negative { -digits } else { digits }, exponent + zeros))
    }

    /// `unscaled * 10^-scale`.
    fn of_unscaled(mut unscaled: i128, scale: i64) -> Self {
        let mut exponent = -scale;
        while unscaled != 0 && unscaled % 10 == 0 {
            unscaled /= 10;
            exponent += 1;
        }
        Self::new(unscaled, exponent)
    }

    fn new(digits: i128, exponent: i64) -> Self {
        Self { digits, exponent: if digits == 0 { 0 } else { exponent } }
    }

    /// The number times `10^scale`, which must be a whole number of 128 bits.
    pub(super) fn at_scale(self, scale: i64) -> Result<i128, &'static str> {
        let power = self.exponent + scale;
        match u32::try_from(power) {
            _ if self.digits == 0 => Ok(0),
            Ok(power) => 10_i128.checked_pow(power).and_then(|power| self.digits.checked_mul(power)).ok_or(TOO_LARGE),
            Err(_) if power < 0 => Err(TOO_FINE),
            Err(_) => Err(TOO_LARGE),
        }
    }

    /// The unscaled value of a `decimal(precision, scale)`.
    pub(super) fn unscaled(self, precision: u8, scale: i8) -> Result<i128, &'static str> {
        let unscaled = self.at_scale(i64::from(scale))?;
        match 10_i128.checked_pow(u32::from(precision)) {
            Some(bound) if unscaled.unsigned_abs() < bound.unsigned_abs() => Ok(unscaled),
            _ => Err(TOO_LARGE),
        }
    }
}

fn power_of_ten(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.strip_prefix('+').unwrap_or(text).parse::<i32>().ok().map(i64::from)
}

/// How a decimal is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DecimalForm {
    /// A number, or a string that must tell by its looks whether it is text or base64; base64 has the column's scale.
    Any,
    /// A number or text.
    Text,
    /// A number, or base64 of the unscaled value; of the column's scale if none is named.
    Base64 { scale: Option<i32> },
    /// `{"scale", "value"}`
    Variable,
}

/// Reads a decimal into a column of `scale`.
pub(super) fn exact(form: DecimalForm, value: Value<'_>, scale: i8) -> Result<Exact, Misfit> {
    let scale = i64::from(scale);
    match (form, value.kind) {
        (DecimalForm::Any | DecimalForm::Text | DecimalForm::Base64 { .. }, Kind::Number) => {
            Exact::parse(value.raw).ok_or(Misfit::new(TOO_LONG))
        }
        (DecimalForm::Any | DecimalForm::Variable, Kind::Object) => {
            let (bytes, scale) = variable(value)?;
            unscaled(&bytes, i64::from(scale))
        }
        (DecimalForm::Any, Kind::String) => {
            let content = content(value)?;
            match (looks_like_text(&content), decode(&content)) {
                (true, Ok(bytes)) if !bytes.is_empty() => Err(Misfit::new(AMBIGUOUS)),
                (true, _) => text(&content),
                (false, Ok(bytes)) if !bytes.is_empty() => unscaled(&bytes, scale),
                (false, _) => Err(Misfit::new("a string that is no number")),
            }
        }
        (DecimalForm::Text, Kind::String) => text(&content(value)?),
        (DecimalForm::Base64 { scale: wire }, Kind::String) => {
            unscaled(&decode(&content(value)?)?, wire.map_or(scale, i64::from))
        }
        (_, other) => Err(Misfit::kind(other)),
    }
}

/// Writes a decimal as plain digits, all of those that its scale says: `1.50`, `-0.001`.
pub(super) fn write_plain(form: DecimalForm, value: Value<'_>, into: &mut Vec<u8>) -> Result<(), Misfit> {
    let (bytes, scale) = match (form, value.kind) {
        (DecimalForm::Base64 { scale: Some(scale) }, Kind::String) => (decode(&content(value)?)?, scale),
        (DecimalForm::Variable, Kind::Object) => variable(value)?,
        (DecimalForm::Base64 { .. }, Kind::Number) => {
            into.extend_from_slice(value.raw.as_bytes());
            return Ok(());
        }
        (_, other) => return Err(Misfit::kind(other)),
    };
    if bytes.len() > UNSCALED_BYTES_MAX || scale.unsigned_abs() as usize > 4 * UNSCALED_BYTES_MAX {
        return Err(Misfit::new("a number with more than 9,800 digits"));
    }
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let digits = magnitude_digits(&bytes, negative);
    if negative {
        into.push(b'-');
    }
    match usize::try_from(scale) {
        Ok(0) => into.extend_from_slice(digits.as_bytes()),
        Ok(scale) => {
            let padded = format!("{digits:0>width$}", width = scale + 1);
            let (whole, fraction) = padded.split_at(padded.len() - scale);
            into.extend_from_slice(whole.as_bytes());
            into.push(b'.');
            into.extend_from_slice(fraction.as_bytes());
        }
        Err(_) => {
            into.extend_from_slice(digits.as_bytes());
            let zeros = if digits == "0" { 0 } else { scale.unsigned_abs() as usize };
            into.resize(into.len() + zeros, b'0');
        }
    }
    Ok(())
}

fn content(value: Value<'_>) -> Result<Cow<'_, str>, Misfit> {
    value.text().map_err(|_| Misfit::new("a string that is no text"))
}

fn text(content: &str) -> Result<Exact, Misfit> {
    if !looks_like_text(content) {
        return Err(Misfit::new("a string that is no number"));
    }
    Exact::parse(content).ok_or(Misfit::new(TOO_LONG))
}

fn looks_like_text(content: &str) -> bool {
    let unsigned = content.strip_prefix(['-', '+']).unwrap_or(content);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(fraction) && exponent.is_none_or(digits)
}

fn decode(content: &str) -> Result<Vec<u8>, Misfit> {
    STANDARD.decode(content).map_err(|_| Misfit::new("a string that is not base64"))
}

/// Two's complement, most significant byte first.
fn unscaled(bytes: &[u8], scale: i64) -> Result<Exact, Misfit> {
    let fill = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let excess = bytes.len().saturating_sub(16);
    let (more, low) = bytes.split_at(excess);
    let sign_fits = low.first().is_none_or(|byte| (byte & 0x80 != 0) == (fill == 0xff));
    if more.iter().any(|byte| *byte != fill) || !sign_fits {
        return Err(Misfit::new(TOO_LARGE));
    }
    let mut all = [fill; 16];
    all[16 - low.len()..].copy_from_slice(low);
    Ok(Exact::of_unscaled(i128::from_be_bytes(all), scale))
}

/// The members of a `VariableScaleDecimal`.
fn variable(value: Value<'_>) -> Result<(Vec<u8>, i32), Misfit> {
    let wrong = || Misfit::new("an object that is not {\"scale\", \"value\"}");
    let (mut scale, mut bytes) = (None, None);
    let mut cursor = crate::json::Cursor::new(value.raw);
    let mut first = true;
    cursor.enter(b'{');
    while let Some(name) = cursor.name(&mut first).map_err(|_| wrong())? {
        let member = cursor.value().map_err(|_| wrong())?;
        match (name.inside(), member.kind) {
            ("scale", Kind::Number) => scale = member.raw.parse::<i32>().ok(),
            ("value", Kind::String) => bytes = Some(decode(&content(member)?)?),
            _ => return Err(wrong()),
        }
    }
    Ok((bytes.ok_or_else(wrong)?, scale.ok_or_else(wrong)?))
}

/// The decimal digits of the absolute value of a two's complement number of any length.
fn magnitude_digits(bytes: &[u8], negative: bool) -> String {
    // Nine decimal digits a limb, the least significant first; the bytes are fed in from the top.
    const BASE: u64 = 1_000_000_000;
    let mut limbs: Vec<u32> = Vec::new();
    let mut feed = |times: u64, plus: u64| {
        let mut carry = plus;
        for limb in &mut limbs {
            carry += u64::from(*limb) * times;
            *limb = (carry % BASE) as u32;
            carry /= BASE;
        }
        while carry > 0 {
            limbs.push((carry % BASE) as u32);
            carry /= BASE;
        }
    };
    for byte in bytes {
        feed(256, u64::from(if negative { !byte } else { *byte }));
    }
    if negative {
        feed(1, 1);
    }
    let mut digits = String::new();
    for (place, limb) in limbs.iter().rev().enumerate() {
        digits += &if place == 0 { format!("{limb}") } else { format!("{limb:09}") };
    }
    if digits.is_empty() { "0".to_owned() } else { digits }
}
