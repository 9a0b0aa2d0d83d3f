//! The one key encoding: netting, routing, fences, indexes and stored state all compare these bytes and nothing else.
//!
//! Equal values have equal bytes, in whatever physical form they came (a dictionary, a wider integer, another zone of the
//! same instant); different values of a schema have different bytes. Each part of a composite key tells its own end, so
//! that `("a", "bc")` and `("ab", "c")` differ. The order of the bytes is the order of the values, part by part.
//!
//! | type | bytes |
//! |---|---|
//! | every integer | value < 2^63 - 1: 8, big-endian, sign bit flipped; else 8 times `FF`, then 8 of the value - (2^63 - 1) |
//! | `bool` | 1: `00` or `01` |
//! | `decimal(p,s)` | 16: value x 10^s, big-endian, sign bit flipped |
//! | `date` | 4: days, big-endian, sign bit flipped |
//! | `time`, `timestamp`, `timestamptz` | 8: microseconds, big-endian, sign bit flipped |
//! | `uuid`, `binary(n)` | their bytes |
//! | `string`, `enum`, `binary` | their bytes, `00` as `00 FF`; then `00 00` |
//!
//! So a column may become a wider integer and its keys stay what they are. The bytes and their hash (XXH3, 64 bits,
//! seed 0) are stored: they never change.

mod column;
mod decode;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use twox_hash::XxHash3_64;

use crate::cast::{CastError, read_text};
use crate::schema::{Column, TableSchema, Type};
use column::KeyColumn;
pub use decode::{DecodeError, decode};

/// The encoded keys of the rows of a batch, in order, with a hash of each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EncodedKeys {
    bytes: Vec<u8>,
    /// `ends[i]` is where key i ends in `bytes`.
    ends: Vec<usize>,
    hashes: Vec<u64>,
}

/// Why keys could not be encoded. It never holds a value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// A row without a key.
    #[error("row {row}: the key column '{column}' is null; a row of a keyed table needs a value there")]
    Null {
        /// Which row of the batch.
        row: usize,
        /// Which column.
        column: String,
    },
    /// A value that the column's type does not have, though its physical form does.
    #[error("row {row}: the key column '{column}' holds a value that cannot be {kind}: {why}")]
    Value {
        /// Which row of the batch.
        row: usize,
        /// Which column.
        column: String,
        /// The column's type.
        kind: Type,
        /// What is wrong with the value.
        why: &'static str,
    },
    /// A physical form in which values of the column's type do not come.
    #[error("the key column '{column}' has the type {kind}, but its values come as {found}")]
    Form {
        /// Which column.
        column: String,
        /// The column's type.
        kind: Type,
        /// The physical form.
        found: DataType,
    },
    /// Other columns than the schema has.
    #[error("the key needs {expected} columns of one length, found lengths {found:?}")]
    Columns {
        /// How many.
        expected: usize,
        /// The length of each that was given.
        found: Vec<usize>,
    },
}

/// Why a text is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyTextError {
    /// Not one text for each column of the key.
    #[error("the key is ({}), {found} values are given", .columns.join(", "))]
    Count {
        /// The key's columns.
        columns: Vec<String>,
        /// How many texts there are.
        found: usize,
    },
    /// A text that is not one of the column's type.
    #[error(transparent)]
    Text(#[from] CastError),
    /// As for columns.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl EncodedKeys {
    /// The keys of a batch's rows. A table without a key has empty ones.
    pub fn encode(schema: &TableSchema, data: &RecordBatch) -> Result<Self, KeyError> {
        if schema.key.is_empty() {
            return Ok(Self::empty(data.num_rows()));
        }
        let columns: Vec<ArrayRef> = schema.key.iter().filter_map(|index| data.columns().get(*index).cloned()).collect();
        let named: Vec<(String, Type)> =
            schema.key.iter().filter_map(|index| schema.columns.get(*index)).map(|c| (c.name.clone(), c.kind.clone())).collect();
        encode(&columns, &named)
    }

    /// The keys that these columns make, in this order: for a sink that reads back what it wrote. At least one column.
    pub fn encode_columns(columns: &[ArrayRef], types: &[Type]) -> Result<Self, KeyError> {
        let named: Vec<(String, Type)> =
            types.iter().enumerate().map(|(place, kind)| (format!("number {}", place + 1), kind.clone())).collect();
        encode(columns, &named)
    }

    /// One key, its values given as text in key order (`peek --key`): written as casts to `string` write them.
    pub fn of_text(schema: &TableSchema, values: &[&str]) -> Result<Self, KeyTextError> {
        let key: Vec<_> = schema.key.iter().filter_map(|index| schema.columns.get(*index)).collect();
        if key.len() != values.len() || key.is_empty() {
            let columns = key.iter().map(|column| column.name.clone()).collect();
            return Err(KeyTextError::Count { columns, found: values.len() });
        }
        let read = |(column, text): (&&Column, &&str)| read_text(text, &column.name, &column.kind);
        let columns: Vec<ArrayRef> = key.iter().zip(values).map(read).collect::<Result<_, _>>()?;
        let named: Vec<(String, Type)> = key.iter().map(|column| (column.name.clone(), column.kind.clone())).collect();
        Ok(encode(&columns, &named)?)
    }

    /// `rows` empty keys: those of a table without one.
    pub fn empty(rows: usize) -> Self {
        Self { bytes: Vec::new(), ends: vec![0; rows], hashes: vec![hash(&[]); rows] }
    }

    /// Adds a key that is encoded already.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.hashes.push(hash(key));
    }

    /// The keys of these rows, in this order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut selected = Self::with_capacity(rows.len(), self.average_length());
        for row in rows {
            selected.take(self, *row);
        }
        selected
    }

    /// All of the first, then all of the second, and so on.
    #[must_use]
    pub fn concat(parts: &[&EncodedKeys]) -> Self {
        let mut all = Self {
            bytes: Vec::with_capacity(parts.iter().map(|part| part.bytes.len()).sum()),
            ends: Vec::with_capacity(parts.iter().map(|part| part.len()).sum()),
            hashes: Vec::with_capacity(parts.iter().map(|part| part.len()).sum()),
        };
        for part in parts {
            let start = all.bytes.len();
            all.bytes.extend_from_slice(&part.bytes);
            all.ends.extend(part.ends.iter().map(|end| start + end));
            all.hashes.extend_from_slice(&part.hashes);
        }
        all
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of key `row`.
    pub fn key(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    /// A 64-bit hash of key `row`: the same in every process and version, since it is stored.
    pub fn hash(&self, row: usize) -> u64 {
        self.hashes[row]
    }

    /// All keys, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.key(row))
    }

    /// Bytes of memory, near enough for a budget.
    pub fn memory(&self) -> u64 {
        (self.bytes.capacity() + self.ends.capacity() * size_of::<usize>() + self.hashes.capacity() * size_of::<u64>()) as u64
    }

    pub(crate) fn with_capacity(rows: usize, key_length: usize) -> Self {
        Self { bytes: Vec::with_capacity(rows * key_length), ends: Vec::with_capacity(rows), hashes: Vec::with_capacity(rows) }
    }

    /// Adds a key of another batch, with the hash that it has.
    pub(crate) fn take(&mut self, other: &EncodedKeys, row: usize) {
        self.bytes.extend_from_slice(other.key(row));
        self.ends.push(self.bytes.len());
        self.hashes.push(other.hashes[row]);
    }

    pub(crate) fn average_length(&self) -> usize {
        self.bytes.len().div_ceil(self.len().max(1))
    }
}

/// The hash of an encoded key: XXH3 with 64 bits and seed 0.
pub fn hash(key: &[u8]) -> u64 {
    XxHash3_64::oneshot(key)
}

fn encode(columns: &[ArrayRef], named: &[(String, Type)]) -> Result<EncodedKeys, KeyError> {
    let rows = match columns {
        [first, rest @ ..] if columns.len() == named.len() && rest.iter().all(|column| column.len() == first.len()) => {
            first.len()
        }
        _ => return Err(KeyError::Columns { expected: named.len(), found: columns.iter().map(|column| column.len()).collect() }),
    };
    refuse_nulls(columns, named)?;
    let columns: Vec<KeyColumn> =
        columns.iter().zip(named).map(|(column, (name, kind))| KeyColumn::new(column, name, kind)).collect::<Result<_, _>>()?;

    let length = columns.iter().map(KeyColumn::average_length).sum();
    let mut keys = EncodedKeys::with_capacity(rows, length);
    for row in 0..rows {
        let start = keys.bytes.len();
        for column in &columns {
            column.put(row, &mut keys.bytes);
        }
        keys.ends.push(keys.bytes.len());
        keys.hashes.push(hash(&keys.bytes[start..]));
    }
    Ok(keys)
}

/// Names the first row with a null, since that is where the log stops being readable.
fn refuse_nulls(columns: &[ArrayRef], named: &[(String, Type)]) -> Result<(), KeyError> {
    let first_null =
        |column: &ArrayRef| column.logical_nulls().and_then(|nulls| (0..nulls.len()).find(|row| nulls.is_null(*row)));
    let nulls = columns.iter().zip(named).filter_map(|(column, (name, _))| Some((first_null(column)?, name)));
    match nulls.min_by_key(|(row, _)| *row) {
        Some((row, name)) => Err(KeyError::Null { row, column: name.clone() }),
        None => Ok(()),
    }
}
