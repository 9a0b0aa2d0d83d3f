//! The texts of numbers, days and times.

use std::io::Write as _;

const MICROS_A_SECOND: i64 = 1_000_000;
const MICROS_A_DAY: i64 = 86_400 * MICROS_A_SECOND;

/// Writing into memory does not fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {
        let _ = write!($out, $($format)*);
    };
}
pub(super) use put;

/// `"12.30"` for 1230 with two digits after the point.
pub(super) fn decimal(out: &mut Vec<u8>, unscaled: i128, scale: i8) {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs();
    match usize::try_from(scale) {
        Ok(0) => {
            put!(out, "\"{sign}{digits}\"");
        }
        Ok(scale) => {
            // With zeros in front, so that a digit stands before the point.
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            put!(out, "\"{sign}{whole}.{fraction}\"");
        }
        Err(_) => {
            let zeros = usize::from(scale.unsigned_abs()) * usize::from(digits != 0);
            put!(out, "\"{sign}{digits}{:0<zeros$}\"", "");
        }
    }
}

/// A number, or a text where JSON has none. `shortest` is the number's shortest text.
pub(super) fn float(out: &mut Vec<u8>, value: f64, shortest: serde_json::Result<String>) {
    match shortest {
        Ok(text) if value.is_finite() => out.extend_from_slice(text.as_bytes()),
        _ if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        _ if value < 0.0 => out.extend_from_slice(b"\"-Infinity\""),
        _ => out.extend_from_slice(b"\"Infinity\""),
    }
}

/// `2024-02-29`, days since 1970-01-01. Years before 0 and after 9999 have a sign and at least four digits.
pub(super) fn date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    match year {
        0..=9999 => {
            put!(out, "{year:04}-{month:02}-{day:02}");
        }
        _ => {
            put!(out, "{year:+05}-{month:02}-{day:02}");
        }
    }
}

/// The proleptic Gregorian date of a day, counted from 1970-01-01. The year is taken to begin in March, so that the leap day
/// is its last; an era is 400 years, or 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // From 0000-03-01.
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// `23:59:59.000001`, microseconds since midnight. The end of a day, 24:00, is a time too.
pub(super) fn time(out: &mut Vec<u8>, micros: i64) -> Result<(), &'static str> {
    if !(0..=MICROS_A_DAY).contains(&micros) {
        return Err("it is a time of day that no day has");
    }
    let (seconds, fraction) = (micros / MICROS_A_SECOND, micros % MICROS_A_SECOND);
    put!(out, "{:02}:{:02}:{:02}.{fraction:06}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Ok(())
}

/// `2024-02-29T23:59:59.000001`, microseconds since 1970.
pub(crate) fn timestamp(out: &mut Vec<u8>, micros: i64) {
    date(out, micros.div_euclid(MICROS_A_DAY));
    out.push(b'T');
    let _ = time(out, micros.rem_euclid(MICROS_A_DAY)); // Within a day by the line above.
}

/// `8-4-4-4-12`
pub(super) fn uuid(out: &mut Vec<u8>, bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            out.push(b'-');
        }
        put!(out, "{byte:02x}");
    }
}

/// JSON without the white space between its parts, if it is JSON.
pub(super) fn json(out: &mut Vec<u8>, text: &str) -> Result<(), &'static str> {
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Err("it is no JSON, or JSON nested more than 128 deep");
    }
    let mut quoted = false;
    let mut escaped = false;
    for byte in text.bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' if !quoted => continue,
            b'"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = byte == b'\\' && !escaped;
        out.push(byte);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_day_is_its_date_in_the_gregorian_calendar() {
        let dates = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_782, "2024-02-29"),
            (19_783, "2024-03-01"),
            (-25_508, "1900-03-01"),
            (-25_509, "1900-02-28"),
            (11_016, "2000-02-29"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+10000-01-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ];
        for (days, expected) in dates {
            assert_eq!(text(|out| date(out, days)), expected);
        }
    }

    #[test]
    fn a_moment_before_1970_counts_up_within_its_day() {
        assert_eq!(text(|out| timestamp(out, -1)), "1969-12-31T23:59:59.999999");
        assert_eq!(text(|out| timestamp(out, 1_709_251_199_000_001)), "2024-02-29T23:59:59.000001");
        assert_eq!(text(|out| timestamp(out, i64::MAX)), "+294247-01-10T04:00:54.775807");
        assert_eq!(text(|out| timestamp(out, i64::MIN)), "-290308-12-21T19:59:05.224192");
    }

    #[test]
    fn a_time_of_day_is_within_a_day() {
        assert_eq!(text(|out| time(out, 0).unwrap()), "00:00:00.000000");
        assert_eq!(text(|out| time(out, 86_399_999_999).unwrap()), "23:59:59.999999");
        assert_eq!(text(|out| time(out, 86_400_000_000).unwrap()), "24:00:00.000000");
        assert!(time(&mut Vec::new(), -1).is_err());
        assert!(time(&mut Vec::new(), 86_400_000_001).is_err());
    }

    #[test]
    fn a_decimal_has_all_digits_of_its_scale() {
        let decimals = [
            (1230, 2, "\"12.30\""),
            (-1230, 2, "\"-12.30\""),
            (7, 3, "\"0.007\""),
            (-7, 3, "\"-0.007\""),
            (0, 2, "\"0.00\""),
            (42, 0, "\"42\""),
            (-42, 0, "\"-42\""),
            (42, -3, "\"42000\""),
            (0, -3, "\"0\""),
            (99_999_999_999_999_999_999_999_999_999_999_999_999, 38, "\"0.99999999999999999999999999999999999999\""),
            (i128::MIN, 1, "\"-17014118346046923173168730371588410572.8\""),
        ];
        for (unscaled, scale, expected) in decimals {
            assert_eq!(text(|out| decimal(out, unscaled, scale)), expected);
        }
    }

    #[test]
    fn json_keeps_its_numbers_names_and_texts() {
        let given =
            " { \"b\" : [ 1.50 , 12345678901234567890123 ],\n\t\"a b\": \"x \\\" y\\\\\" , \"\\u00e9\":null,\"b\":1E5}\r\n";
        let kept = "{\"b\":[1.50,12345678901234567890123],\"a b\":\"x \\\" y\\\\\",\"\\u00e9\":null,\"b\":1E5}";
        assert_eq!(text(|out| json(out, given).unwrap()), kept);
        for wrong in ["", "{", "{a:1}", "'x'", "1 2", "nul", "\"line\nbreak\""] {
            assert!(json(&mut Vec::new(), wrong).is_err(), "{wrong}");
        }
    }
}
