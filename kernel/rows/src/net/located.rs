//! The rows of all slices under one number each, in order, and where they lie.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use kernel::id::Version;
use kernel::position::{Coordinate, Transaction};

use super::{NetError, Numbering};
use crate::batch::{ChangeBatch, Operation, Slice, TransactionRun};
use crate::key::EncodedKeys;
use crate::schema::TableSchema;

/// Where a row lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Which of the distinct batches.
    pub(super) batch: u32,
    pub(super) row: u32,
}

/// A batch that holds rows of one slice or many.
pub(super) struct Source<'a> {
    pub(super) batch: &'a ChangeBatch,
    pub(super) keys: &'a EncodedKeys,
    /// For each row the index of its run in the tail's transactions.
    run_of: Vec<u32>,
}

/// Rows by number: 0 for the first row of the first slice.
pub(super) struct Located<'a> {
    pub(super) schema: &'a Arc<TableSchema>,
    pub(super) sources: Vec<Source<'a>>,
    pub(super) places: Vec<Place>,
    /// So many are the log's. Those behind were read again, and have no version.
    logged: usize,
}

impl<'a> Located<'a> {
    /// Checks what the slices say of themselves. They are many where transactions are small, their batches are few.
    pub(super) fn new(slices: &'a [Slice], numbering: Numbering) -> Result<Self, NetError> {
        let schema = &slices.first().ok_or(NetError::Nothing)?.batch.schema;
        let total = slices.iter().map(|slice| slice.rows.len()).sum();
        check_size(schema, total, numbering)?;

        let mut located = Self { schema, sources: Vec::new(), places: Vec::with_capacity(total), logged: 0 };
        let mut known: HashMap<*const ChangeBatch, u32> = HashMap::new();
        let mut last: Option<(*const ChangeBatch, u32)> = None;
        for slice in slices {
            let pointer = Arc::as_ptr(&slice.batch);
            let batch = match last
                .filter(|(same, _)| *same == pointer)
                .map(|(_, batch)| batch)
                .or_else(|| known.get(&pointer).copied())
            {
                Some(batch) => batch,
                None => {
                    known.insert(pointer, located.sources.len() as u32);
                    located.add(slice)?
                }
            };
            last = Some((pointer, batch));
            located.place(batch, slice.rows.clone())?;
        }
        located.logged = located.places.len();
        Ok(located)
    }

    /// Places the one row of a slice that was read again behind all others. One that is taken whole has its `key`; of one that only
    /// gives values the key may have changed since it was read.
    pub(super) fn read_again(&mut self, slice: &'a Slice, key: Option<&[u8]>) -> Result<u32, NetError> {
        let known = self.sources.iter().position(|source| std::ptr::eq(source.batch, Arc::as_ptr(&slice.batch)));
        let batch = match known {
            Some(batch) => batch as u32,
            None => self.add(slice)?,
        };
        let number = self.places.len() as u32;
        self.place(batch, slice.rows.clone())?;
        let is_it = slice.rows.len() == 1 && key.is_none_or(|key| slice.keys.key(slice.rows.start) == key);
        if is_it { Ok(number) } else { Err(NetError::ReadAgain { table: self.schema.table.clone() }) }
    }

    fn add(&mut self, slice: &'a Slice) -> Result<u32, NetError> {
        let Slice { batch, keys, .. } = slice;
        batch.check_shape()?;
        if !Arc::ptr_eq(&batch.schema, self.schema) && batch.schema != *self.schema {
            return Err(NetError::Schemas { table: self.schema.table.clone(), other: batch.schema.table.clone() });
        }
        let mut run_of = Vec::with_capacity(batch.rows());
        for (index, run) in batch.tail.transactions.iter().enumerate() {
            run_of.resize(run_of.len() + run.rows, index as u32);
        }
        self.sources.push(Source { batch, keys, run_of });
        Ok(self.sources.len() as u32 - 1)
    }

    fn place(&mut self, batch: u32, rows: Range<usize>) -> Result<(), NetError> {
        let source = &self.sources[batch as usize];
        let (of_batch, keys) = (source.batch.rows(), source.keys.len());
        if rows.start > rows.end || rows.end > of_batch || of_batch != keys || u32::try_from(of_batch).is_err() {
            let table = self.schema.table.clone();
            return Err(NetError::Rows { table, from: rows.start, to: rows.end, rows: of_batch, keys });
        }
        self.places.extend(rows.map(|row| Place { batch, row: row as u32 }));
        Ok(())
    }

    pub(super) fn numbers(&self) -> Range<u32> {
        0..self.logged as u32
    }

    pub(super) fn at(&self, number: u32) -> (&Source<'a>, usize) {
        let Place { batch, row } = self.places[number as usize];
        (&self.sources[batch as usize], row as usize)
    }

    pub(super) fn operation(&self, number: u32) -> Operation {
        let (source, row) = self.at(number);
        source.batch.tail.operations[row]
    }

    pub(super) fn coordinate(&self, number: u32) -> Coordinate {
        let (source, row) = self.at(number);
        source.batch.tail.coordinates[row]
    }

    pub(super) fn run(&self, number: u32) -> &TransactionRun {
        let (source, row) = self.at(number);
        &source.batch.tail.transactions[source.run_of[row] as usize]
    }

    pub(super) fn transaction(&self, number: u32) -> &Transaction {
        &self.run(number).transaction
    }

    pub(super) fn is_absent(&self, number: u32, column: usize) -> bool {
        let (source, row) = self.at(number);
        source.batch.is_absent(column, row)
    }

    /// The old row of an insert that is the second half of a changed key: its neighbour, of the same change.
    pub(super) fn moved_from(&self, number: u32) -> Option<u32> {
        let before = number.checked_sub(1)?;
        let (here, there) = (self.places[number as usize], self.places[before as usize]);
        let (source, row) = self.at(number);
        let is_neighbour = here.batch == there.batch && source.batch.moved_from(row) == Some(there.row as usize);
        (is_neighbour && self.transaction(number) == self.transaction(before)).then_some(before)
    }
}

fn check_size(schema: &TableSchema, rows: usize, numbering: Numbering) -> Result<(), NetError> {
    // One number is kept for 'none'.
    let fits = u32::try_from(rows).is_ok_and(|rows| rows < u32::MAX);
    let end = numbering.first.checked_add(rows as u64);
    if fits && end.is_some_and(|end| end <= 1 << Version::SEQUENCE_BITS) {
        Ok(())
    } else {
        Err(NetError::TooLarge { table: schema.table.clone(), rows, first: numbering.first })
    }
}
