//! The sum by which a replayed transaction is recognised as the same one (rule P3).

use std::ops::Range;

use kernel::position::{Coordinate, Digest};
use twox_hash::XxHash3_64;

use crate::batch::{ChangeBatch, Operation};
use crate::key::EncodedKeys;

/// Counts `rows` of a batch and sums up their hashes. Stored with a table's cut, so it never changes: XXH3 (64 bits,
/// seed 0) of the coordinate's major (8 bytes) and minor (4), the operation (1) and the hash of the key (8), all little-endian.
///
/// # Panics
///
/// If `rows` are not all rows of the batch and of its keys: our own mistake, never the log's.
pub fn row_digests(batch: &ChangeBatch, keys: &EncodedKeys, rows: Range<usize>) -> Digest {
    let (operations, coordinates) = (&batch.tail.operations[rows.clone()], &batch.tail.coordinates[rows.clone()]);
    let hash = rows
        .zip(operations.iter().zip(coordinates))
        .map(|(row, (operation, coordinate))| row_hash(*coordinate, *operation, keys.hash(row)))
        .fold(0, u64::wrapping_add);
    Digest { count: operations.len() as u64, hash }
}

fn row_hash(coordinate: Coordinate, operation: Operation, key: u64) -> u64 {
    let mut row = [0; 21];
    row[..8].copy_from_slice(&coordinate.major.to_le_bytes());
    row[8..12].copy_from_slice(&coordinate.minor.to_le_bytes());
    row[12] = operation as u8;
    row[13..].copy_from_slice(&key.to_le_bytes());
    XxHash3_64::oneshot(&row)
}
