//! Rows of a COPY in binary form: the same rows come, and the same end, wherever what comes was cut.

use postgres_source::copied::Copied;
use postgres_source::pgoutput::{Datum, Malformed};

use crate::Saw;
use crate::bytes::Bytes;

/// A value; `None` is null.
type Value = Option<Vec<u8>>;

/// The first byte says into how long pieces the rest is cut.
pub fn copied(bytes: &[u8]) -> Saw {
    let mut from = Bytes::new(bytes);
    let piece = 1 + from.below(64);
    let rest = from.rest();
    let (whole, pieces) = (read(std::iter::once(rest)), read(rest.chunks(piece)));
    assert_eq!(whole, pieces, "in pieces of {piece} bytes");
    let taken: usize = whole.rows.iter().flatten().map(|value| value.as_ref().map_or(0, Vec::len)).sum();
    assert!(taken <= rest.len(), "more bytes than came");
    Saw::taken_if(whole.failed.is_none() && (whole.is_over || !whole.rows.is_empty()))
}

#[derive(PartialEq, Eq, Debug)]
struct Read {
    rows: Vec<Vec<Value>>,
    is_over: bool,
    failed: Option<Malformed>,
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Read {
    let mut copied = Copied::default();
    let mut read = Read { rows: Vec::new(), is_over: false, failed: None };
    for piece in pieces {
        copied.push(piece);
        loop {
            match copied.next_row() {
                Ok(Some(row)) => {
                    let values: Vec<Value> = row.values().map(value).collect();
                    assert_eq!((values.len(), values.is_empty()), (row.len(), row.is_empty()));
                    let wire: usize = values.iter().map(|value| 4 + value.as_ref().map_or(0, Vec::len)).sum();
                    assert_eq!(row.bytes(), wire as u64);
                    read.rows.push(values);
                }
                Ok(None) => break,
                Err(error) => {
                    read.failed = Some(error);
                    return read;
                }
            }
        }
        read.is_over = copied.is_over();
    }
    read
}

fn value(datum: Datum<'_>) -> Value {
    match datum {
        Datum::Null => None,
        Datum::Binary(bytes) => Some(bytes.to_vec()),
        Datum::Text(_) | Datum::Unchanged => panic!("a COPY has no {datum:?}"),
    }
}
