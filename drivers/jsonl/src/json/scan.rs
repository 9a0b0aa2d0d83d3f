//! The two inner loops of the scanner: where a string stops being plain, eight bytes at a time, and what may not be glued to
//! a number.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The first byte at or after `at` that is a quote, a backslash or a control character; the length if there is none.
pub(super) fn find_string_stop(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let stops = stops(u64::from_le_bytes(*chunk));
        if stops != 0 {
            return at + (stops.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < bytes.len() && !is_stop(bytes[at]) {
        at += 1;
    }
    at.min(bytes.len())
}

/// The high bit of the lowest byte that stops a string is set; bits above it may be wrong, none below it is.
fn stops(word: u64) -> u64 {
    let equal = |byte: u8| {
        let difference = word ^ (ONES * u64::from(byte));
        difference.wrapping_sub(ONES) & !difference
    };
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (equal(b'"') | equal(b'\\') | control) & HIGH
}

fn is_stop(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// May this byte not follow a number at once?
pub(super) fn is_number_tail(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-')
}
