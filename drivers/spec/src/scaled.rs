//! A decimal number times a unit, in whole numbers only.

/// `number` (digits with at most one point) times `unit`, cut to a whole number.
pub(crate) fn scaled(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || whole.len() > 19 || fraction.len() > 15 || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    let power = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    Some(digits(whole)? * unit + digits(fraction)? * unit / power)
}
