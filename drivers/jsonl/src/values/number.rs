//! Numbers from their JSON text, exactly.

use super::decimal::Exact;

/// An integer: also `1.0` and `1e3`, which are integers written otherwise. `None` if it is none or is beyond 128 bits.
pub(super) fn integer(raw: &str) -> Option<i128> {
    let (negative, digits) = match raw.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    // 18 digits fit into an i64 whatever they are; nearly all numbers end here.
    if digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit) {
        let value = digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
        return Some(i128::from(if negative { -value } else { value }));
    }
    Exact::parse(raw)?.at_scale(0).ok()
}

/// The double nearest to a number, if it is as exact as the number is written.
pub(super) fn float64(raw: &str) -> Result<f64, &'static str> {
    let value: f64 = raw.parse().map_err(|_| "a number that cannot be read")?;
    faithful(raw, value.is_finite(), value == 0.0, value.is_normal(), f64::DIGITS, |digits| format!("{value:.digits$e}"))?;
    Ok(value)
}

/// The float nearest to a number, if it is as exact as the number is written.
pub(super) fn float32(raw: &str) -> Result<f32, &'static str> {
    let value: f32 = raw.parse().map_err(|_| "a number that cannot be read")?;
    faithful(raw, value.is_finite(), value == 0.0, value.is_normal(), f32::DIGITS, |digits| format!("{value:.digits$e}"))?;
    Ok(value)
}

/// Is a floating point number what the text says? Printed with as many digits as the text has, it must give the text.
fn faithful(
    raw: &str,
    finite: bool,
    zero: bool,
    normal: bool,
    digits_sure: u32,
    print: impl Fn(usize) -> String,
) -> Result<(), &'static str> {
    if !finite {
        return Err("a number beyond its range");
    }
    // A normal number with few digits always gives them back. (A number that became 0 is not normal.)
    if normal && raw.len() <= digits_sure as usize {
        return Ok(());
    }
    let written = Digits::of(raw);
    if zero {
        return if written.significant.is_empty() { Ok(()) } else { Err("a number that is too small for it") };
    }
    if normal && written.significant.len() <= digits_sure as usize {
        return Ok(());
    }
    let printed = print(written.significant.len().saturating_sub(1));
    if Digits::of(&printed) == written { Ok(()) } else { Err("a number with more digits than it holds") }
}

/// A number as `0.significant * 10^exponent`, without zeros at either end.
#[derive(PartialEq, Eq)]
struct Digits {
    significant: String,
    exponent: i64,
}

impl Digits {
    fn of(raw: &str) -> Self {
        let unsigned = raw.trim_start_matches('-');
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or_default();
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        let leading = (all.len() - significant.len()) as i64;
        let significant = significant.trim_end_matches('0').to_owned();
        let exponent = if significant.is_empty() { 0 } else { exponent + whole.len() as i64 - leading };
        Self { significant, exponent }
    }
}
