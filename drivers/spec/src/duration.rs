//! A length of time as pipeline files write it: `10s`, `15m`, `500ms`, `1h30m`.

use std::fmt;
use std::str::FromStr;

use crate::scaled::scaled;

const NANOSECONDS_MAX: u128 = i64::MAX as u128;

/// The units, largest first, with their length in nanoseconds.
const UNITS: [(&str, u128); 6] =
    [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// A length of time. Its text is one number or more, each with its unit; fractions (`1.5h`) are read, not written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Duration(std::time::Duration);

impl Duration {
    /// So many milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(std::time::Duration::from_millis(milliseconds))
    }

    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(std::time::Duration::from_secs(seconds))
    }

    /// As the standard library's type.
    pub const fn as_std(self) -> std::time::Duration {
        self.0
    }

    /// Whole milliseconds.
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Is it no time at all?
    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

/// What a duration looks like, for the word "expected".
pub(crate) const EXPECTED: &str = "a duration such as `10s`, `15m`, `500ms` or `1h30m`";

/// Why a text is no duration, with a way out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{EXPECTED}: {hint}")]
pub struct BadDuration {
    pub(crate) hint: String,
}

impl FromStr for Duration {
    type Err = BadDuration;

    fn from_str(text: &str) -> Result<Self, BadDuration> {
        let bad = |hint: String| BadDuration { hint };
        if text == "0" {
            return Ok(Self::default());
        }
        if text.starts_with('-') {
            return Err(bad("a duration cannot be negative".into()));
        }
        let mut rest = text.strip_prefix('+').unwrap_or(text);
        if rest.is_empty() {
            return Err(bad("the units are ns, us, ms, s, m and h".into()));
        }
        let mut total = 0u128;
        while !rest.is_empty() {
            let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, after) = rest.split_at(number_end);
            let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, next) = after.split_at(unit_end);
            let length = unit_length(number, unit).map_err(bad)?;
            let part = scaled(number, length).ok_or_else(|| bad(format!("`{number}` is not a number")))?;
            total = total.saturating_add(part);
            rest = next;
        }
        if total > NANOSECONDS_MAX {
            return Err(bad("the longest duration is 292 years".into()));
        }
        let nanoseconds = u64::try_from(total).unwrap_or(u64::MAX);
        Ok(Self(std::time::Duration::from_nanos(nanoseconds)))
    }
}

/// The length of a unit, or what is wrong with it.
fn unit_length(number: &str, unit: &str) -> Result<u128, String> {
    let known = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, length)| *length);
    match (known, unit) {
        (Some(length), _) => Ok(length),
        (None, "µs" | "μs") => Ok(1_000),
        (None, "") => {
            Err(format!("`{number}` has no unit: `{number}s` is seconds, `{number}ms` milliseconds, `{number}m` minutes"))
        }
        (None, "d" | "day" | "days") => match number.parse::<u32>() {
            Ok(days) => Err(format!("days are written in hours: `{}h`", u64::from(days) * 24)),
            Err(_) => Err("days are written in hours: `24h`".into()),
        },
        (None, _) => Err("the units are ns, us, ms, s, m and h".into()),
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0s");
        }
        let mut rest = self.0.as_nanos();
        for (unit, length) in UNITS {
            if rest >= length {
                write!(f, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<u128, String> {
        text.parse::<Duration>().map(|d| d.as_std().as_nanos()).map_err(|e| e.hint)
    }

    #[test]
    fn durations_are_numbers_with_units() {
        assert_eq!(read("10s"), Ok(10_000_000_000));
        assert_eq!(read("500ms"), Ok(500_000_000));
        assert_eq!(read("15m"), Ok(900_000_000_000));
        assert_eq!(read("168h"), Ok(604_800_000_000_000));
        assert_eq!(read("1h30m0.5s"), Ok(5_400_500_000_000));
        assert_eq!(read("1.5h"), Ok(5_400_000_000_000));
        assert_eq!(read(".5s"), Ok(500_000_000));
        assert_eq!(read("+2us"), Ok(2_000));
        assert_eq!(read("2µs"), Ok(2_000));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("0s"), Ok(0));
    }

    #[test]
    fn what_is_no_duration_says_why() {
        for (text, hint) in [
            ("", "the units are ns, us, ms, s, m and h"),
            ("ten seconds", "the units are ns, us, ms, s, m and h"),
            ("10", "`10` has no unit: `10s` is seconds, `10ms` milliseconds, `10m` minutes"),
            ("10 s", "the units are ns, us, ms, s, m and h"),
            ("7d", "days are written in hours: `168h`"),
            ("0.5d", "days are written in hours: `24h`"),
            ("-1s", "a duration cannot be negative"),
            ("1.2.3s", "`1.2.3` is not a number"),
            (".s", "`.` is not a number"),
            ("s", "`` is not a number"),
            ("10S", "the units are ns, us, ms, s, m and h"),
            ("9999999999h", "the longest duration is 292 years"),
            ("99999999999999999999s", "`99999999999999999999` is not a number"),
        ] {
            assert_eq!(read(text), Err(hint.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_duration_is_written_in_its_largest_units() {
        for (text, written) in
            [("90s", "1m30s"), ("24h", "24h"), ("1500ms", "1s500ms"), ("0", "0s"), ("1.5h", "1h30m"), ("3ns", "3ns")]
        {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.to_string(), written);
            assert_eq!(written.parse::<Duration>().unwrap(), duration);
        }
    }
}
