//! A row as the server sends it: one value a column, each null, not sent, text or binary.

use super::Malformed;
use super::cursor::Cursor;

/// A row. It was walked through once when it was decoded, so that reading it again cannot fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuple<'a> {
    columns: u16,
    bytes: &'a [u8],
}

/// One value of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datum<'a> {
    /// Null; in the old row of an identity by key also: not part of the key.
    Null,
    /// A large value that the change left as it was and that the server did not send.
    Unchanged,
    /// In the type's text form: the type has no binary one.
    Text(&'a [u8]),
    /// In the type's binary form.
    Binary(&'a [u8]),
}

impl<'a> Tuple<'a> {
    pub(super) fn read(from: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let columns = from.u16("the number of a row's values")?;
        let begin = from.rest();
        for _ in 0..columns {
            datum(from)?;
        }
        let bytes = begin.get(..begin.len() - from.rest().len()).unwrap_or_default();
        Ok(Self { columns, bytes })
    }

    /// How many values.
    pub fn len(&self) -> usize {
        usize::from(self.columns)
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.columns == 0
    }

    /// Bytes that it took on the wire.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The values, one a column.
    pub fn values(&self) -> impl Iterator<Item = Datum<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.bytes);
        (0..self.columns).map_while(move |_| datum(&mut cursor).ok())
    }
}

fn datum<'a>(from: &mut Cursor<'a>) -> Result<Datum<'a>, Malformed> {
    match from.u8("the kind of a value")? {
        b'n' => Ok(Datum::Null),
        b'u' => Ok(Datum::Unchanged),
        b't' => value(from).map(Datum::Text),
        b'b' => value(from).map(Datum::Binary),
        found => Err(Malformed::Unknown { what: "the kind of a value", found }),
    }
}

fn value<'a>(from: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let length = from.length("the length of a value")?;
    from.take(length, "a value")
}
