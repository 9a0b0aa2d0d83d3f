//! Deletion vectors: which rows of a data file are dead, as Iceberg format 3 stores them.
//!
//! Bytes in, rows out, and back; no I/O. Hostile bytes are an error with a name, never a panic, and never make this
//! allocate more than a small multiple of what was given. A blob (`deletion-vector-v1` of the Puffin specification):
//!
//! ```text
//! u32 big-endian      length of magic and bitmap together
//! D1 D3 39 64         magic
//! u64 little-endian   number of 32-bit bitmaps, then each: u32 little-endian key, a bitmap in Roaring's portable form
//! u32 big-endian      CRC-32 of magic and bitmap
//! ```
//!
//! A row's position is 64 bits wide there and 32 here: a data file of 4 billion rows is refused.

mod puffin;

use roaring::RoaringBitmap;

pub(crate) use puffin::{Placed, file};

const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];
/// The first word of a portable bitmap without run containers; then comes the number of containers.
const COOKIE_PLAIN: u32 = 12346;

/// Why bytes are no deletion vector.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Malformed {
    /// There is less than the frame needs.
    #[error("a deletion vector of {found} bytes is too short")]
    Short {
        /// Bytes given.
        found: usize,
    },
    /// The length in front does not fit what is there.
    #[error("a deletion vector says that it holds {stated} bytes, but {found} are there")]
    Length {
        /// What the frame says.
        stated: u32,
        /// What is there.
        found: usize,
    },
    /// The magic is another one.
    #[error("a deletion vector begins with another magic number")]
    Magic,
    /// The checksum is wrong.
    #[error("a deletion vector has checksum {found:08x}, but {stated:08x} is written in it")]
    Checksum {
        /// What is written.
        stated: u32,
        /// What was computed.
        found: u32,
    },
    /// The bitmap is not in its portable form.
    #[error("the bitmap of a deletion vector is damaged: {0}")]
    Bitmap(String),
    /// A row that cannot be.
    #[error("a deletion vector names row {row} of a data file that can have {rows} rows")]
    Row {
        /// The row.
        row: u64,
        /// How many the data file can have.
        rows: u64,
    },
}

/// The blob of a set of rows.
pub(crate) fn encode(rows: &RoaringBitmap) -> Vec<u8> {
    let body = MAGIC.len() + 8 + 4 + rows.serialized_size();
    let mut out = Vec::with_capacity(body + 8);
    out.extend((body as u32).to_be_bytes());
    out.extend(MAGIC);
    let one: u64 = u64::from(!rows.is_empty());
    out.extend(one.to_le_bytes());
    if !rows.is_empty() {
        out.extend(0u32.to_le_bytes());
        // Writing to memory cannot fail.
        let _ = rows.serialize_into(&mut out);
    }
    let stated = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&stated.to_be_bytes());
    out.extend(crc32fast::hash(&out[4..]).to_be_bytes());
    out
}

/// The rows of a blob that belongs to a data file of `rows` rows.
pub(crate) fn decode(blob: &[u8], rows: u64) -> Result<RoaringBitmap, Malformed> {
    let (Some((length, rest)), true) = (blob.split_first_chunk::<4>(), blob.len() >= 4 + MAGIC.len() + 8 + 4) else {
        return Err(Malformed::Short { found: blob.len() });
    };
    let stated = u32::from_be_bytes(*length);
    let Some((body, crc)) = rest.split_last_chunk::<4>().filter(|(body, _)| body.len() == stated as usize) else {
        return Err(Malformed::Length { stated, found: rest.len() - 4 });
    };
    let (stated, found) = (u32::from_be_bytes(*crc), crc32fast::hash(body));
    let Some(bitmaps) = body.strip_prefix(&MAGIC) else { return Err(Malformed::Magic) };
    if stated != found {
        return Err(Malformed::Checksum { stated, found });
    }
    let decoded = bitmaps_of(bitmaps, rows)?;
    match decoded.max() {
        Some(row) if u64::from(row) >= rows => Err(Malformed::Row { row: row.into(), rows }),
        _ => Ok(decoded),
    }
}

/// The 64-bit map's bitmaps. All but the first stand for rows that no data file here can have.
fn bitmaps_of(bytes: &[u8], rows: u64) -> Result<RoaringBitmap, Malformed> {
    let damaged = |why: &str| Malformed::Bitmap(why.to_owned());
    let (count, mut rest) = bytes.split_first_chunk::<8>().ok_or_else(|| damaged("it has no number of bitmaps"))?;
    let mut decoded = RoaringBitmap::new();
    for _ in 0..u64::from_le_bytes(*count) {
        let (key, bitmap) = rest.split_first_chunk::<4>().ok_or_else(|| damaged("it has fewer bitmaps than it says"))?;
        let key = u32::from_le_bytes(*key);
        rest = bitmap;
        check_containers(rest)?;
        let part = RoaringBitmap::deserialize_from(&mut rest).map_err(|e| Malformed::Bitmap(e.to_string()))?;
        if key != 0 && !part.is_empty() {
            return Err(Malformed::Row { row: u64::from(key) << 32, rows });
        }
        decoded |= part;
    }
    if rest.is_empty() { Ok(decoded) } else { Err(damaged("bytes follow its last bitmap")) }
}

/// The reader allocates for as many containers as the header names, so the header must be able to be true.
fn check_containers(bitmap: &[u8]) -> Result<(), Malformed> {
    let word = |at: usize| Some(u32::from_le_bytes(bitmap.get(at..at + 4)?.try_into().ok()?));
    let containers = match word(0) {
        Some(COOKIE_PLAIN) => word(4).unwrap_or(0) as usize,
        Some(cookie) => (cookie >> 16) as usize + 1,
        None => 0,
    };
    let described = containers.checked_mul(4).is_some_and(|bytes| bytes <= bitmap.len());
    if described { Ok(()) } else { Err(Malformed::Bitmap("it names more containers than it has bytes for".to_owned())) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Positions 1, 3, 5, 7, 9: by hand from the specification, with the checksum of another CRC-32.
    const ALTERNATING: &str = concat!(
        "0000002a",             // 42 bytes of magic and bitmap
        "d1d33964",             // magic
        "0100000000000000",     // one bitmap
        "00000000",             // its key
        "3a300000",             // no run containers
        "01000000",             // one container
        "00000400",             // its key, its cardinality less one
        "10000000",             // its offset in the bitmap
        "01000300050007000900", // its values
        "b3fb20be"              // checksum
    );

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    #[test]
    fn a_blob_is_byte_for_byte_what_the_specification_says() {
        let rows = RoaringBitmap::from_iter([1, 3, 5, 7, 9]);
        assert_eq!(encode(&rows), bytes(ALTERNATING));
        assert_eq!(decode(&bytes(ALTERNATING), 10), Ok(rows));
    }

    #[test]
    fn no_rows_are_a_blob_of_no_bitmaps() {
        let none = RoaringBitmap::new();
        assert_eq!(encode(&none)[..16], bytes("0000000cd1d339640000000000000000"));
        assert_eq!(decode(&encode(&none), 0), Ok(none));
    }

    #[test]
    fn rows_beyond_the_data_file_are_refused() {
        let rows = RoaringBitmap::from_iter([0, 7]);
        assert_eq!(decode(&encode(&rows), 7), Err(Malformed::Row { row: 7, rows: 7 }));
    }

    #[test]
    fn rows_beyond_four_billion_are_refused() {
        let far: roaring::RoaringTreemap = [1u64 << 33].into_iter().collect();
        let mut body = MAGIC.to_vec();
        far.serialize_into(&mut body).unwrap();
        let mut blob = (body.len() as u32).to_be_bytes().to_vec();
        blob.extend(&body);
        blob.extend(crc32fast::hash(&body).to_be_bytes());
        assert_eq!(decode(&blob, u64::MAX), Err(Malformed::Row { row: 1 << 33, rows: u64::MAX }));
    }

    #[test]
    fn each_kind_of_damage_has_its_name() {
        let good = bytes(ALTERNATING);
        let damaged = |at: usize| {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            decode(&bad, 10)
        };
        assert_eq!(decode(&good[..11], 10), Err(Malformed::Short { found: 11 }));
        assert_eq!(damaged(3), Err(Malformed::Length { stated: 0x6a, found: 0x2a }));
        assert_eq!(damaged(4), Err(Malformed::Magic));
        assert!(matches!(damaged(40), Err(Malformed::Checksum { .. })));
    }

    fn framed(body: &[u8]) -> Vec<u8> {
        let mut blob = ((body.len() + 4) as u32).to_be_bytes().to_vec();
        blob.extend(MAGIC);
        blob.extend(body);
        let crc = crc32fast::hash(&blob[4..]);
        blob.extend(crc.to_be_bytes());
        blob
    }

    #[test]
    fn a_header_that_promises_more_than_there_is_is_refused() {
        let mut body = 1u64.to_le_bytes().to_vec();
        body.extend(0u32.to_le_bytes());
        body.extend(COOKIE_PLAIN.to_le_bytes());
        body.extend(65_536u32.to_le_bytes());
        let refused = Malformed::Bitmap("it names more containers than it has bytes for".to_owned());
        assert_eq!(decode(&framed(&body), 10), Err(refused));
        let many = u64::MAX.to_le_bytes();
        assert_eq!(decode(&framed(&many), 10), Err(Malformed::Bitmap("it has fewer bitmaps than it says".to_owned())));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(rows in proptest::collection::btree_set(any::<u32>(), 0..300), run in any::<(u32, u16)>()) {
            let mut rows = RoaringBitmap::from_iter(rows);
            rows.insert_range(run.0..run.0.saturating_add(run.1.into()));
            prop_assert_eq!(decode(&encode(&rows), 1 << 32), Ok(rows.clone()));
            rows.optimize();
            prop_assert_eq!(decode(&encode(&rows), 1 << 32), Ok(rows));
        }

        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes, 1_000);
            let _ = decode(&framed(&bytes), 1_000);
        }

        #[test]
        fn a_damaged_blob_with_a_right_checksum_never_panics(at in 0usize..2_000, with in any::<u8>(), dense in any::<bool>()) {
            let rows: RoaringBitmap = if dense { (0..9_000).collect() } else { (0..90_000).step_by(131).collect() };
            let blob = encode(&rows);
            let mut body = blob[8..blob.len() - 4].to_vec();
            let at = at % body.len();
            body[at] ^= with;
            if let Ok(decoded) = decode(&framed(&body), 100_000) {
                prop_assert!(decoded.max().is_none_or(|row| row < 100_000));
            }
        }
    }
}
