//! What a source's read must be, whatever the log said.

use contract::{LogEvent, LogRead};
use kernel::position::Coordinate;

/// Each batch is one, its events name all of its rows once, in order, and rows of one transaction lie in the order of their places.
pub(crate) fn is_well_formed(read: &LogRead) {
    for batch in &read.batches {
        batch.check().unwrap_or_else(|error| panic!("{error}"));
    }
    let mut told = vec![0; read.batches.len()];
    let mut last: Option<(&kernel::position::Transaction, usize, Coordinate)> = None;
    for event in &read.events {
        let LogEvent::Rows { batch, rows, transaction } = event else { continue };
        let of = &read.batches[*batch];
        assert_eq!(told[*batch], rows.start, "rows of batch {batch} are told in order, none twice");
        assert!(rows.start < rows.end && rows.end <= of.data.num_rows(), "{rows:?} of {}", of.data.num_rows());
        told[*batch] = rows.end;
        for row in rows.clone() {
            let here = of.tail.coordinates[row];
            if let Some((same, table, before)) = last
                && same == transaction
                && table == *batch
            {
                assert!(before < here, "{before:?} then {here:?}");
            }
            last = Some((transaction, *batch, here));
        }
    }
    for (batch, told) in read.batches.iter().zip(told) {
        assert_eq!(told, batch.data.num_rows(), "rows of {} that no event tells of", batch.schema.table);
    }
}
