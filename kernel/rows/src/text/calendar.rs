//! Days, times and instants as ISO 8601 writes them: `2024-02-29`, `12:30:00.5`, `2024-02-29T12:30:00Z`.
//!
//! The proleptic Gregorian calendar, year 0 included. Years outside 0000 to 9999 carry a sign: `+12024-01-01`, `-0043-03-15`.

use std::fmt::Write as _;

use crate::value::Unholdable;

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000;

const MALFORMED: Unholdable = Unholdable::Malformed;

/// Writes days since 1970-01-01.
pub(crate) fn write_date(days: i64, out: &mut String) {
    let (year, month, day) = civil(days);
    // Writing to a string does not fail.
    let _ = match year {
        0..=9999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        _ => write!(out, "{}{:04}-{month:02}-{day:02}", if year < 0 { '-' } else { '+' }, year.unsigned_abs()),
    };
}

/// Writes microseconds since midnight.
pub(crate) fn write_time(micros: i64, out: &mut String) {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

/// Writes microseconds since 1970-01-01T00:00:00, without a zone.
pub(crate) fn write_timestamp(micros: i64, out: &mut String) {
    write_date(micros.div_euclid(DAY), out);
    out.push('T');
    write_time(micros.rem_euclid(DAY), out);
}

/// Reads a day.
pub(crate) fn read_date(text: &str) -> Result<i32, Unholdable> {
    let days = read_days(text)?;
    i32::try_from(days).map_err(|_| if days < 0 { Unholdable::Below } else { Unholdable::Above })
}

/// Reads a time of day, up to 24:00:00.
pub(crate) fn read_time(text: &str) -> Result<i64, Unholdable> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return Err(MALFORMED) };
    let (hours, minutes, seconds) = (number(hours, 2)?, number(minutes, 2)?, number(seconds, 2)?);
    let micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + read_fraction(fraction)?;
    if minutes > 59 || seconds > 59 || micros > DAY { Err(MALFORMED) } else { Ok(micros) }
}

/// Reads a day and a time without a zone.
pub(crate) fn read_timestamp(text: &str) -> Result<i64, Unholdable> {
    let (date, time) = text.split_once(['T', ' ']).ok_or(MALFORMED)?;
    let time = read_time(time)?;
    if time == DAY {
        return Err(MALFORMED);
    }
    micros(read_days(date)?, time)
}

/// Reads a day and a time with a zone: `Z` or an offset, `+02`, `+02:00`.
pub(crate) fn read_instant(text: &str) -> Result<i64, Unholdable> {
    if let Some(utc) = text.strip_suffix('Z') {
        return read_timestamp(utc);
    }
    let time = text.find(['T', ' ']).ok_or(MALFORMED)?;
    let zone = time + text[time..].find(['+', '-']).ok_or(MALFORMED)?;
    let (local, offset) = (read_timestamp(&text[..zone])?, &text[zone + 1..]);
    let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "00"));
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    if hours > 23 || minutes > 59 {
        return Err(MALFORMED);
    }
    let offset = (hours * 60 + minutes) * 60_000_000;
    let is_east = text.as_bytes()[zone] == b'+';
    let instant = if is_east { local.checked_sub(offset) } else { local.checked_add(offset) };
    instant.ok_or(if is_east { Unholdable::Below } else { Unholdable::Above })
}

/// A day's microseconds and those of a time in it.
pub(crate) fn micros(days: i64, time: i64) -> Result<i64, Unholdable> {
    let beyond = if days < 0 { Unholdable::Below } else { Unholdable::Above };
    i64::try_from(i128::from(days) * i128::from(DAY) + i128::from(time)).map_err(|_| beyond)
}

fn read_days(text: &str) -> Result<i64, Unholdable> {
    let (sign, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (0, text),
    };
    let parts: Vec<&str> = unsigned.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return Err(MALFORMED) };
    // Nine digits are far beyond every date that 32 bits of days hold.
    let year_has_its_length = if sign == 0 { year.len() == 4 } else { (4..=9).contains(&year.len()) };
    let (year, month, day) = (number(year, year.len())?, number(month, 2)?, number(day, 2)?);
    let year = if sign == -1 { -year } else { year };
    if !year_has_its_length || !(1..=12).contains(&month) || !(1..=month_days(year, month)).contains(&day) {
        return Err(MALFORMED);
    }
    Ok(days(year, month, day))
}

fn read_fraction(digits: &str) -> Result<i64, Unholdable> {
    if digits.is_empty() || digits.len() > 30 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    let (kept, finer) = digits.split_at(digits.len().min(6));
    if finer.bytes().any(|byte| byte != b'0') {
        return Err(Unholdable::TooFine);
    }
    format!("{kept:0<6}").parse().map_err(|_| MALFORMED)
}

fn number(digits: &str, length: usize) -> Result<i64, Unholdable> {
    if digits.len() != length || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    digits.parse().map_err(|_| MALFORMED)
}

fn month_days(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of 400 years, after which the calendar repeats itself.
const ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// Days since 1970-01-01. Years begin in March here, so that the day that is sometimes there is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - EPOCH
}

/// Year, month and day of a count of days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + EPOCH;
    let (era, of_era) = (shifted.div_euclid(ERA), shifted.rem_euclid(ERA));
    // Leap days passed so far in the era: one every 1,461 days, but not every 36,524, and again at its very end.
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let day_of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
