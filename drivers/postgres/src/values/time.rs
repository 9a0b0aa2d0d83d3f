//! Dates and times on the wire, counted from 2000, and as the server writes them.

use std::fmt::Write as _;

use rows::value::Unholdable;

use super::{Misfit, exactly};

/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970 to 2000.
pub(super) const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * DAY;
const DAY: i64 = 86_400_000_000;

/// Days since 1970.
pub(super) fn date(bytes: &[u8]) -> Result<i32, Misfit> {
    match i32::from_be_bytes(exactly(bytes)?) {
        i32::MAX => Err(Unholdable::Above.into()),
        i32::MIN => Err(Unholdable::Below.into()),
        days => days.checked_add(EPOCH_DAYS).ok_or(Misfit::Malformed),
    }
}

/// Microseconds since midnight. The end of the day, which the server allows, is no time of a day elsewhere.
pub(super) fn time(bytes: &[u8]) -> Result<i64, Misfit> {
    match i64::from_be_bytes(exactly(bytes)?) {
        micros if (0..DAY).contains(&micros) => Ok(micros),
        DAY => Err(Unholdable::Above.into()),
        _ => Err(Misfit::Malformed),
    }
}

/// Microseconds since 1970.
pub(super) fn timestamp(bytes: &[u8]) -> Result<i64, Misfit> {
    match i64::from_be_bytes(exactly(bytes)?) {
        i64::MAX => Err(Unholdable::Above.into()),
        i64::MIN => Err(Unholdable::Below.into()),
        micros => micros.checked_add(EPOCH_MICROS).ok_or(Unholdable::Above.into()),
    }
}

pub(super) fn write_date(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    match i32::from_be_bytes(exactly(bytes)?) {
        i32::MAX => into.push_str("infinity"),
        i32::MIN => into.push_str("-infinity"),
        days => {
            let (year, month, day) = civil(i64::from(days) + i64::from(EPOCH_DAYS));
            write_year(year, into);
            let _ = write!(into, "-{month:02}-{day:02}");
            write_era(year, into);
        }
    }
    Ok(())
}

pub(super) fn write_time(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    write_clock(in_a_day(i64::from_be_bytes(exactly(bytes)?))?, into);
    Ok(())
}

/// With its offset, which the wire has in seconds west of Greenwich.
pub(super) fn write_time_tz(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let (micros, west) = bytes.split_first_chunk::<8>().ok_or(Misfit::Malformed)?;
    write_clock(in_a_day(i64::from_be_bytes(*micros))?, into);
    let east = -i64::from(i32::from_be_bytes(exactly(west)?));
    into.push(if east < 0 { '-' } else { '+' });
    let (hours, minutes, seconds) = (east.abs() / 3600, east.abs() / 60 % 60, east.abs() % 60);
    let _ = write!(into, "{hours:02}");
    if minutes != 0 || seconds != 0 {
        let _ = write!(into, ":{minutes:02}");
    }
    if seconds != 0 {
        let _ = write!(into, ":{seconds:02}");
    }
    Ok(())
}

fn in_a_day(micros: i64) -> Result<i64, Misfit> {
    if (0..=DAY).contains(&micros) { Ok(micros) } else { Err(Misfit::Malformed) }
}

/// `zone` is written behind the time, before the era.
pub(super) fn write_timestamp(bytes: &[u8], zone: &str, into: &mut String) -> Result<(), Misfit> {
    match i64::from_be_bytes(exactly(bytes)?) {
        i64::MAX => into.push_str("infinity"),
        i64::MIN => into.push_str("-infinity"),
        micros => {
            let (year, month, day) = civil(micros.div_euclid(DAY) + i64::from(EPOCH_DAYS));
            write_year(year, into);
            let _ = write!(into, "-{month:02}-{day:02} ");
            write_clock(micros.rem_euclid(DAY), into);
            into.push_str(zone);
            write_era(year, into);
        }
    }
    Ok(())
}

/// The style `postgres`, which is the server's default. Months, days and time are counted apart and stay so.
pub(super) fn write_interval(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let (micros, rest) = bytes.split_first_chunk::<8>().ok_or(Misfit::Malformed)?;
    let (days, months) = rest.split_first_chunk::<4>().ok_or(Misfit::Malformed)?;
    let (micros, days) = (i64::from_be_bytes(*micros), i32::from_be_bytes(*days));
    let months = i32::from_be_bytes(exactly(months)?);
    let endless = match (micros, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) => Some("infinity"),
        (i64::MIN, i32::MIN, i32::MIN) => Some("-infinity"),
        _ => None,
    };
    if let Some(text) = endless {
        into.push_str(text);
        return Ok(());
    }
    let (mut begun, mut negative_before) = (false, false);
    for (value, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if value == 0 {
            continue;
        }
        let space = if begun { " " } else { "" };
        let sign = if negative_before && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        let _ = write!(into, "{space}{sign}{value} {unit}{plural}");
        (begun, negative_before) = (true, value < 0);
    }
    if !begun || micros != 0 {
        into.push_str(if begun { " " } else { "" });
        into.push_str(match micros < 0 {
            true => "-",
            false if negative_before => "+",
            false => "",
        });
        let micros = micros.unsigned_abs();
        let (hours, rest) = (micros / 3_600_000_000, micros % 3_600_000_000);
        let _ = write!(into, "{hours:02}:");
        write_minutes(rest, into);
    }
    Ok(())
}

fn write_clock(micros: i64, into: &mut String) {
    let micros = micros.unsigned_abs();
    let _ = write!(into, "{:02}:", micros / 3_600_000_000);
    write_minutes(micros % 3_600_000_000, into);
}

/// Minutes and seconds, with as many digits as there are.
fn write_minutes(micros: u64, into: &mut String) {
    let _ = write!(into, "{:02}:{:02}", micros / 60_000_000, micros / 1_000_000 % 60);
    let fraction = micros % 1_000_000;
    if fraction != 0 {
        let _ = write!(into, ".{fraction:06}");
        into.truncate(into.trim_end_matches('0').len());
    }
}

/// There is no year 0: what comes before 1 is 1 BC.
fn write_year(year: i64, into: &mut String) {
    let _ = write!(into, "{:04}", if year > 0 { year } else { 1 - year });
}

fn write_era(year: i64, into: &mut String) {
    if year <= 0 {
        into.push_str(" BC");
    }
}

/// Year, month and day of a day since 1970, in the calendar of today (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}
