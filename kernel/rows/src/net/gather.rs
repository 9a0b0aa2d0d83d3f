//! Puts chosen rows together, column by column: by copying long runs, or row by row where they are short.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use kernel::id::Version;

use super::absent::Sources;
use super::located::{Located, Place};
use super::{NetError, Numbering, ReadRun};
use crate::batch::{RowPhase, Tail, TransactionRun};
use crate::key::EncodedKeys;

/// From here on copying a run costs less than copying its rows one by one.
const RUN_ROWS_MIN: usize = 32;

/// The data columns of the rows, each value from the row that has it: of a column with absent values as `sources` says, else its image.
pub(super) fn data(rows: &Located<'_>, chosen: &[u32], images: &[u32], sources: &Sources) -> Result<RecordBatch, NetError> {
    let own = Plan::of(rows, images);
    let options = RecordBatchOptions::new().with_row_count(Some(chosen.len()));
    (0..rows.schema.columns.len())
        .map(|column| own.filled(rows, chosen, column, sources))
        .collect::<Result<Vec<_>, _>>()
        .and_then(|columns| RecordBatch::try_new_with_options(Arc::new(rows.schema.arrow()), columns, &options))
        .map_err(|source| NetError::Arrow { table: rows.schema.table.clone(), source })
}

/// Some columns of the rows, by index, each value from the row that has it.
pub(super) fn columns(
    rows: &Located<'_>,
    chosen: &[u32],
    images: &[u32],
    sources: &Sources,
    wanted: &[usize],
) -> Result<BTreeMap<usize, ArrayRef>, NetError> {
    let own = Plan::of(rows, images);
    wanted
        .iter()
        .map(|column| Ok((*column, own.filled(rows, chosen, *column, sources)?)))
        .collect::<Result<_, _>>()
        .map_err(|source| NetError::Arrow { table: rows.schema.table.clone(), source })
}

/// How to get the rows out of their batches.
enum Plan {
    /// Copy neighbours at once: batch, first row, how many.
    Runs(Vec<(usize, usize, usize)>),
    /// All are in one batch.
    Take(usize, UInt32Array),
    Interleave(Vec<(usize, usize)>),
}

impl Plan {
    fn of(rows: &Located<'_>, chosen: &[u32]) -> Self {
        let places = || chosen.iter().map(|number| rows.places[*number as usize]);
        if let Some(runs) = long_runs(places()) {
            return Self::Runs(runs);
        }
        let first = places().next().map_or(0, |place| place.batch);
        if places().all(|place| place.batch == first) {
            return Self::Take(first as usize, places().map(|place| place.row).collect());
        }
        Self::Interleave(places().map(|place| (place.batch as usize, place.row as usize)).collect())
    }

    /// A column of these rows, where values that were not sent come from the rows that have them.
    fn filled(&self, rows: &Located<'_>, chosen: &[u32], column: usize, sources: &Sources) -> Result<ArrayRef, ArrowError> {
        match sources.of(column) {
            Some(sources) => {
                let from: Vec<u32> = chosen.iter().map(|number| sources[*number as usize]).collect();
                Plan::of(rows, &from).column(rows, column)
            }
            None => self.column(rows, column),
        }
    }

    fn column(&self, rows: &Located<'_>, column: usize) -> Result<ArrayRef, ArrowError> {
        let of = |batch: usize| rows.sources[batch].batch.data.column(column);
        match self {
            Self::Runs(runs) => match runs.as_slice() {
                [] => Ok(arrow_array::new_empty_array(&rows.schema.columns[column].kind.arrow())),
                [(batch, first, count)] => Ok(of(*batch).slice(*first, *count)),
                runs => {
                    let parts: Vec<ArrayRef> =
                        runs.iter().map(|(batch, first, count)| of(*batch).slice(*first, *count)).collect();
                    concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())
                }
            },
            Self::Take(batch, indices) => take(of(*batch), indices, None),
            Self::Interleave(indices) => {
                let all: Vec<&dyn Array> = (0..rows.sources.len()).map(|batch| of(batch).as_ref()).collect();
                interleave(&all, indices)
            }
        }
    }
}

/// The neighbours among the places, as batch, first row and how many; unless there are too many runs to be worth it.
fn long_runs(places: impl ExactSizeIterator<Item = Place>) -> Option<Vec<(usize, usize, usize)>> {
    let runs_max = 1 + places.len() / RUN_ROWS_MIN;
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for Place { batch, row } in places {
        let (batch, row) = (batch as usize, row as usize);
        let is_full = runs.len() == runs_max;
        match runs.last_mut() {
            Some((same, first, count)) if *same == batch && *first + *count == row => *count += 1,
            _ if is_full => return None,
            _ => runs.push((batch, row, 1)),
        }
    }
    Some(runs)
}

pub(super) fn keys(rows: &Located<'_>, chosen: &[u32]) -> EncodedKeys {
    let length = rows.sources.iter().map(|source| source.keys.average_length()).max().unwrap_or(0);
    let mut keys = EncodedKeys::with_capacity(chosen.len(), length);
    for number in chosen {
        let (source, row) = rows.at(*number);
        keys.take(source.keys, row);
    }
    keys
}

pub(super) fn versions(chosen: &[u32], numbering: Numbering) -> Vec<Version> {
    chosen.iter().map(|number| Version::new(numbering.incarnation, numbering.first + u64::from(*number))).collect()
}

pub(super) fn tail(rows: &Located<'_>, chosen: &[u32]) -> Tail {
    let newest = rows.sources.iter().map(|source| &source.batch.tail).max_by_key(|tail| tail.ingest_time);
    let mut transactions: Vec<TransactionRun> = Vec::new();
    for number in chosen {
        let run = rows.run(*number);
        match transactions.last_mut() {
            Some(last) if last.transaction == run.transaction && last.commit_time == run.commit_time => last.rows += 1,
            _ => transactions.push(TransactionRun { rows: 1, ..run.clone() }),
        }
    }
    Tail {
        operations: chosen.iter().map(|number| rows.operation(*number)).collect(),
        coordinates: chosen.iter().map(|number| rows.coordinate(*number)).collect(),
        transactions,
        ingest_time: newest.map_or(0, |tail| tail.ingest_time),
        phase: newest.map_or(RowPhase::Stream, |tail| tail.phase),
    }
}

pub(super) fn no_tail() -> Tail {
    Tail { operations: Vec::new(), coordinates: Vec::new(), transactions: Vec::new(), ingest_time: 0, phase: RowPhase::Stream }
}

pub(super) fn reads(rows: &Located<'_>, chosen: &[u32]) -> Vec<ReadRun> {
    let mut reads: Vec<ReadRun> = Vec::new();
    for number in chosen {
        let tail = &rows.at(*number).0.batch.tail;
        match reads.last_mut() {
            Some(last) if (last.ingest_time, last.phase) == (tail.ingest_time, tail.phase) => last.rows += 1,
            _ => reads.push(ReadRun { rows: 1, ingest_time: tail.ingest_time, phase: tail.phase }),
        }
    }
    reads
}
