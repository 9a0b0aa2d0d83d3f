//! A number of bytes as pipeline files write it: `256Mi`, `10Gi`, `64MB`, or plain bytes.

use std::fmt;
use std::str::FromStr;

use crate::scaled::scaled;

/// The units, with the one that is written first among equals.
const UNITS: [(&str, u128); 14] = [
    ("Ti", 1 << 40),
    ("TiB", 1 << 40),
    ("Gi", 1 << 30),
    ("GiB", 1 << 30),
    ("Mi", 1 << 20),
    ("MiB", 1 << 20),
    ("Ki", 1 << 10),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Size(u64);

impl Size {
    /// So many bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// So many bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

/// What a size looks like, for the word "expected".
pub(crate) const EXPECTED: &str = "a size such as `256Mi`, `10Gi`, `64MB` or a number of bytes";

/// Why a text is no size, with a way out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{EXPECTED}: {hint}")]
pub struct BadSize {
    pub(crate) hint: String,
}

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, BadSize> {
        let bad = |hint: &str| BadSize { hint: hint.to_owned() };
        let units = "the units are Ki, Mi, Gi, Ti (powers of 1024) and kB, MB, GB, TB (powers of 1000)";
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(number_end);
        let length = match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, length)) => *length,
            None if unit.is_empty() && !number.is_empty() => 1,
            None if text.starts_with('-') => return Err(bad("a size cannot be negative")),
            None if matches!(unit, "K" | "k" | "M" | "G" | "T" | "m" | "g" | "t") => {
                let letter = unit.to_ascii_uppercase();
                return Err(BadSize {
                    hint: format!("`{text}` may mean two things: write `{number}{letter}i` or `{number}{letter}B`"),
                });
            }
            None => return Err(bad(units)),
        };
        if length == 1 && number.contains('.') {
            return Err(bad("there is no part of a byte"));
        }
        let bytes = scaled(number, length).ok_or_else(|| bad(units))?;
        u64::try_from(bytes).map(Self).map_err(|_| bad("the largest size is below 16777216Ti"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = u128::from(self.0);
        let whole = |(_, length): &&(&str, u128)| bytes > 0 && *length > 1 && bytes % length == 0;
        match UNITS.iter().filter(whole).min_by_key(|(_, length)| bytes / length) {
            Some((unit, length)) => write!(f, "{}{unit}", bytes / length),
            None => write!(f, "{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<u64, String> {
        text.parse::<Size>().map(Size::bytes).map_err(|e| e.hint)
    }

    #[test]
    fn sizes_are_numbers_with_or_without_a_unit() {
        assert_eq!(read("256Mi"), Ok(268_435_456));
        assert_eq!(read("10Gi"), Ok(10_737_418_240));
        assert_eq!(read("64MB"), Ok(64_000_000));
        assert_eq!(read("1.5Ki"), Ok(1_536));
        assert_eq!(read("512MiB"), Ok(536_870_912));
        assert_eq!(read("7"), Ok(7));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("12B"), Ok(12));
    }

    #[test]
    fn what_is_no_size_says_why() {
        let units = "the units are Ki, Mi, Gi, Ti (powers of 1024) and kB, MB, GB, TB (powers of 1000)";
        for (text, hint) in [
            ("", units),
            ("Mi", units),
            ("big", units),
            ("10 Mi", units),
            ("10mib", units),
            ("1.2.3Mi", units),
            ("64M", "`64M` may mean two things: write `64Mi` or `64MB`"),
            ("1g", "`1g` may mean two things: write `1Gi` or `1GB`"),
            ("1.5", "there is no part of a byte"),
            ("-1Mi", "a size cannot be negative"),
            ("16777216Ti", "the largest size is below 16777216Ti"),
        ] {
            assert_eq!(read(text), Err(hint.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_size_is_written_in_the_unit_that_gives_the_smallest_number() {
        for (text, written) in [
            ("1024Mi", "1Gi"),
            ("268435456", "256Mi"),
            ("64000000B", "64MB"),
            ("62500Ki", "64MB"),
            ("5MB", "5MB"),
            ("1001", "1001"),
            ("0", "0"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!(size.to_string(), written);
            assert_eq!(written.parse::<Size>().unwrap(), size);
        }
    }
}
