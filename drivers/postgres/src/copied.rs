//! Rows as a COPY in binary form sends them, without I/O ("Binary Format" of COPY in the manual of 15).

use bytes::{Buf, Bytes, BytesMut};

use crate::pgoutput::{Datum, Malformed};

/// What came of a COPY and was not taken yet.
#[derive(Debug, Default)]
pub struct Copied {
    buffer: BytesMut,
    has_begun: bool,
    is_over: bool,
}

/// A row: one value a column, each null or binary. It was walked through once, so that reading it again cannot fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiedRow {
    columns: u16,
    bytes: Bytes,
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xFF\r\n\0";
/// The signature, flags, the length of what else is in the header.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
/// Flags that change what rows look like.
const FLAGS_CRITICAL: u32 = 0xFFFF_0000;

impl Copied {
    /// More of it came. Where it was cut says nothing.
    pub fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// The next row, if all of it has come.
    pub fn next_row(&mut self) -> Result<Option<CopiedRow>, Malformed> {
        if !self.has_begun && !self.begin()? {
            return Ok(None);
        }
        let Some((count, _)) = self.buffer.split_first_chunk::<2>().filter(|_| !self.is_over) else { return Ok(None) };
        let count = i16::from_be_bytes(*count);
        if count == -1 {
            self.is_over = true;
            return Ok(None);
        }
        let columns = u16::try_from(count).map_err(|_| Malformed::Negative { what: "the number of a row's values" })?;
        let mut end = size_of::<u16>();
        for _ in 0..columns {
            let Some((length, _)) = self.buffer.get(end..).and_then(<[u8]>::split_first_chunk::<4>) else { return Ok(None) };
            end += size_of::<i32>();
            match i32::from_be_bytes(*length) {
                -1 => {}
                length => end += usize::try_from(length).map_err(|_| Malformed::Negative { what: "the length of a value" })?,
            }
        }
        if self.buffer.len() < end {
            return Ok(None);
        }
        let mut bytes = self.buffer.split_to(end).freeze();
        bytes.advance(size_of::<u16>());
        Ok(Some(CopiedRow { columns, bytes }))
    }

    /// Did it say that no row is missing?
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn begin(&mut self) -> Result<bool, Malformed> {
        let malformed = Malformed::NotText { what: "the header of a COPY" };
        let Some(header) = self.buffer.get(..HEADER_BYTES) else { return Ok(false) };
        let (signature, numbers) = header.split_at(SIGNATURE.len());
        let [f0, f1, f2, f3, l0, l1, l2, l3] = *numbers.first_chunk::<8>().ok_or(malformed)?;
        if signature != SIGNATURE || u32::from_be_bytes([f0, f1, f2, f3]) & FLAGS_CRITICAL != 0 {
            return Err(malformed);
        }
        let more = usize::try_from(i32::from_be_bytes([l0, l1, l2, l3])).map_err(|_| malformed)?;
        self.has_begun = self.buffer.len() >= HEADER_BYTES + more;
        if self.has_begun {
            self.buffer.advance(HEADER_BYTES + more);
        }
        Ok(self.has_begun)
    }
}

impl CopiedRow {
    /// How many values.
    pub fn len(&self) -> usize {
        usize::from(self.columns)
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.columns == 0
    }

    /// Bytes that it took on the wire.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The values, one a column.
    pub fn values(&self) -> impl Iterator<Item = Datum<'_>> {
        let mut rest = &self.bytes[..];
        (0..self.columns).map_while(move |_| {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                rest = after;
                return Some(Datum::Null);
            };
            let (value, after) = after.split_at_checked(length)?;
            rest = after;
            Some(Datum::Binary(value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with three bytes more, two rows, the end.
    fn whole() -> Vec<u8> {
        let header = [SIGNATURE, &[0, 0, 0, 0, 0, 0, 0, 3], b"ext"].concat();
        [&header[..], b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff", b"\0\x02\0\0\0\0\0\0\0\x01c", b"\xff\xff"].concat()
    }

    fn read(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<Option<Vec<u8>>>> {
        let (mut copied, mut rows) = (Copied::default(), Vec::new());
        for piece in pieces {
            copied.push(&piece);
            while let Some(row) = copied.next_row().unwrap() {
                let value = |datum| match datum {
                    Datum::Null => None,
                    Datum::Binary(bytes) => Some(bytes.to_vec()),
                    Datum::Text(_) | Datum::Unchanged => panic!("{datum:?}"),
                };
                rows.push(row.values().map(value).collect());
            }
        }
        assert!(copied.is_over());
        rows
    }

    #[test]
    fn a_copy_is_over_once_it_says_so() {
        let whole = whole();
        let mut copied = Copied::default();
        copied.push(&whole[..whole.len() - 1]);
        while copied.next_row().unwrap().is_some() {}
        assert!(!copied.is_over());
        copied.push(&whole[whole.len() - 1..]);
        assert_eq!(copied.next_row(), Ok(None));
        assert!(copied.is_over());
    }

    #[test]
    fn rows_come_whole_wherever_what_comes_was_cut() {
        let rows = [vec![Some(b"ab".to_vec()), None], vec![Some(Vec::new()), Some(b"c".to_vec())]];
        let whole = whole();
        assert_eq!(read(std::iter::once(whole.clone())), rows);
        assert_eq!(read(whole.iter().map(|byte| vec![*byte])), rows);
        for cut in 0..whole.len() {
            assert_eq!(read([whole[..cut].to_vec(), whole[cut..].to_vec()].into_iter()), rows, "{cut}");
        }
    }

    #[test]
    fn what_is_no_copy_is_refused_and_nothing_is_reserved_for_it() {
        let refused = |bytes: &[u8]| {
            let mut copied = Copied::default();
            copied.push(bytes);
            let refused = copied.next_row().is_err();
            assert!(copied.buffer.capacity() < 1024);
            refused
        };
        let mut other = whole();
        other[0] = b'Q';
        assert!(refused(&other));
        let mut with_oids = whole();
        with_oids[12] = 1;
        assert!(refused(&with_oids));
        let header = [SIGNATURE, &[0; 8]].concat();
        assert!(refused(&[&header[..], b"\0\x01\xff\xff\xff\xfe"].concat()));
        assert!(refused(&[&header[..], b"\xff\xfe"].concat()));
        // A value that does not come is waited for.
        assert!(!refused(&[&header[..], b"\0\x01\x7f\xff\xff\xff"].concat()));
    }
}
