//! Dates, times and timestamps, from ISO 8601 text and from counts since an epoch. Years before 1 and beyond 9999 too; nothing
//! finer than a microsecond.

use crate::envelope::Unit;

const DAY: i64 = 86_400_000_000;
const FINER: &str = "a time finer than microseconds";

/// Days since 1970 of `2026-02-28` or, as Debezium writes it, `2026-02-28Z`.
pub(super) fn date(text: &str) -> Result<i32, &'static str> {
    let mut reader = Reader(text.as_bytes());
    let days = reader.date().ok_or_else(|| infinite_or(text, "a string that is no date"))?;
    if !matches!(reader.0, b"" | b"Z") {
        return Err("a string that is no date");
    }
    i32::try_from(days).map_err(|_| "a date out of range")
}

/// Microseconds since midnight of `23:59:59.123456`, with a `Z` or not. 24:00:00 is the end of the day.
pub(super) fn time(text: &str) -> Result<i64, &'static str> {
    let mut reader = Reader(text.as_bytes());
    let micros = reader.time("a string that is no time of day")?;
    match reader.zone() {
        Some(None | Some(0)) => Ok(micros),
        Some(Some(_)) => Err("a time of day with an offset from UTC"),
        None => Err("a string that is no time of day"),
    }
}

/// Microseconds since 1970 of `2026-02-28T12:34:56.123456`. A `Z` means nothing here, another zone is refused.
pub(super) fn timestamp(text: &str) -> Result<i64, &'static str> {
    let wrong = "a string that is no timestamp";
    match date_and_time(text, wrong)? {
        (micros, None | Some(0)) => in_range(micros),
        _ => Err("a timestamp with an offset from UTC"),
    }
}

/// Microseconds since 1970 in UTC of `2026-02-28T12:34:56.123456+03:00`. Without a zone it is no point in time.
pub(super) fn timestamptz(text: &str) -> Result<i64, &'static str> {
    match date_and_time(text, "a string that is no timestamp")? {
        (micros, Some(offset_seconds)) => in_range(micros - i128::from(offset_seconds) * 1_000_000),
        (_, None) => Err("a timestamp without a zone"),
    }
}

/// A count since 1970 as microseconds.
pub(super) fn timestamp_of(count: i128, unit: Unit) -> Result<i64, &'static str> {
    in_range(micros_of(count, unit)?)
}

/// A count since midnight as microseconds.
pub(super) fn time_of(count: i128, unit: Unit) -> Result<i64, &'static str> {
    match i64::try_from(micros_of(count, unit)?) {
        Ok(micros @ 0..=DAY) => Ok(micros),
        _ => Err("a time of day outside the day"),
    }
}

fn micros_of(count: i128, unit: Unit) -> Result<i128, &'static str> {
    match unit {
        Unit::Millis => count.checked_mul(1_000).ok_or("a timestamp out of range"),
        Unit::Micros => Ok(count),
        Unit::Nanos if count % 1_000 == 0 => Ok(count / 1_000),
        Unit::Nanos => Err(FINER),
    }
}

fn in_range(micros: i128) -> Result<i64, &'static str> {
    i64::try_from(micros).map_err(|_| "a timestamp out of range")
}

fn infinite_or(text: &str, otherwise: &'static str) -> &'static str {
    if matches!(text, "infinity" | "-infinity") { "an infinite date or time" } else { otherwise }
}

/// The wall clock's microseconds since 1970 and the zone's offset in seconds, if there is one.
fn date_and_time(text: &str, wrong: &'static str) -> Result<(i128, Option<i32>), &'static str> {
    let mut reader = Reader(text.as_bytes());
    let days = reader.date().ok_or_else(|| infinite_or(text, wrong))?;
    if !reader.accept(b'T') && !reader.accept(b' ') {
        return Err(wrong);
    }
    let micros = reader.time(wrong)?;
    let zone = reader.zone().ok_or(wrong)?;
    Ok((i128::from(days) * i128::from(DAY) + i128::from(micros), zone))
}

/// What is left of a text.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// `[+-]YYYY-MM-DD`, as days since 1970.
    fn date(&mut self) -> Option<i64> {
        let negative = self.accept(b'-');
        if !negative {
            self.accept(b'+');
        }
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(4..=9).contains(&digits) {
            return None;
        }
        let year = i64::from(self.number(digits)?);
        let month = self.accept(b'-').then(|| self.number(2))??;
        let day = self.accept(b'-').then(|| self.number(2))??;
        let year = if negative { -year } else { year };
        (1..=12).contains(&month).then_some(())?;
        (1..=days_in_month(year, month)).contains(&day).then(|| days_from_civil(year, month, day))
    }

    /// `HH:MM[:SS[.fraction]]`, as microseconds.
    fn time(&mut self, wrong: &'static str) -> Result<i64, &'static str> {
        let hour = self.number(2).ok_or(wrong)?;
        let minute = self.accept(b':').then(|| self.number(2)).flatten().ok_or(wrong)?;
        let (mut second, mut fraction) = (0, 0);
        if self.accept(b':') {
            second = self.number(2).ok_or(wrong)?;
            if self.accept(b'.') {
                fraction = self.fraction(wrong)?;
            }
        }
        let micros = ((i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second)) * 1_000_000 + fraction;
        if hour > 24 || minute > 59 || second > 59 || micros > DAY { Err(wrong) } else { Ok(micros) }
    }

    fn fraction(&mut self, wrong: &'static str) -> Result<i64, &'static str> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at(digits);
        self.0 = rest;
        if digits == 0 {
            return Err(wrong);
        }
        if fraction.iter().skip(6).any(|digit| *digit != b'0') {
            return Err(FINER);
        }
        let digit = |place: usize| i64::from(fraction.get(place).map_or(0, |digit| digit - b'0'));
        Ok((0..6).fold(0, |micros, place| micros * 10 + digit(place)))
    }

    /// Nothing, `Z` or `±HH[[:]MM[[:]SS]]`, and then the end. `None` if it is something else.
    fn zone(&mut self) -> Option<Option<i32>> {
        if self.0.is_empty() {
            return Some(None);
        }
        if self.accept(b'Z') || self.accept(b'z') {
            return self.0.is_empty().then_some(Some(0));
        }
        let negative = self.accept(b'-');
        if !negative && !self.accept(b'+') {
            return None;
        }
        let hours = self.number(2)?;
        let mut parts = [0, 0];
        for part in &mut parts {
            if !self.0.is_empty() {
                self.accept(b':');
                *part = self.number(2)?;
            }
        }
        let seconds = (hours * 60 + parts[0]) * 60 + parts[1];
        let sane = self.0.is_empty() && hours <= 18 && parts[0] <= 59 && parts[1] <= 59;
        sane.then(|| Some(if negative { -seconds } else { seconds }))
    }

    fn accept(&mut self, byte: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// A number of exactly so many digits, at most nine.
    fn number(&mut self, digits: usize) -> Option<i32> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.iter().try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i32::from(digit - b'0')))
    }
}

fn days_in_month(year: i64, month: i32) -> i32 {
    match month {
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 in the proleptic Gregorian calendar: eras of 400 years, years that begin in March.
fn days_from_civil(year: i64, month: i32, day: i32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * i64::from((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
