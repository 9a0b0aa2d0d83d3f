//! What a batch promises, and the digest of its rows.

mod shop;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_buffer::BooleanBuffer;
use kernel::position::{Coordinate, Digest};
use rows::Operation::{Delete, Insert, Update};
use rows::batch::BatchProblem;
use rows::{ChangeBatch, row_digests};
use shop::{batch, delete, row, slice};

fn sound() -> ChangeBatch {
    batch(&[
        row(Insert, (100, 0), 1, "new", 150).of(0),
        delete((100, 1), 2).of(0),
        row(Update, (50, 0), 1, "paid", 150).without_total().of(9),
    ])
}

fn problem(batch: &ChangeBatch) -> BatchProblem {
    batch.check().expect_err("malformed").problem
}

#[test]
fn a_sound_batch_passes() {
    assert_eq!(sound().check(), Ok(()));
}

#[test]
fn a_part_that_is_not_one_entry_a_row_is_found() {
    let mut batch = sound();
    batch.tail.operations.pop();
    assert_eq!(problem(&batch), BatchProblem::Rows { part: "the data", expected: 2, found: 3 });
    let mut batch = sound();
    batch.tail.coordinates.pop();
    assert_eq!(problem(&batch), BatchProblem::Rows { part: "the coordinates", expected: 3, found: 2 });
    let mut batch = sound();
    batch.tail.transactions[0].rows = 7;
    assert_eq!(problem(&batch), BatchProblem::Rows { part: "the transactions", expected: 3, found: 8 });
    let mut batch = sound();
    batch.absent[2] = Some(BooleanBuffer::new_unset(4));
    assert_eq!(problem(&batch), BatchProblem::Rows { part: "the marks of absent values", expected: 3, found: 4 });
}

#[test]
fn columns_that_are_not_the_schemas_are_found() {
    let mut batch = sound();
    batch.absent.pop();
    assert_eq!(problem(&batch), BatchProblem::Columns { expected: 3, found: 2 });
    let mut batch = sound();
    batch.data = batch.data.project(&[0, 1]).unwrap();
    assert_eq!(problem(&batch), BatchProblem::Columns { expected: 3, found: 2 });

    let mut batch = sound();
    let mut columns = batch.data.columns().to_vec();
    columns[0] = Arc::new(Int32Array::from(vec![1, 2, 1])) as ArrayRef;
    batch.data = RecordBatch::try_from_iter(["id", "status", "total"].into_iter().zip(columns)).unwrap();
    assert_eq!(
        batch.check().expect_err("int32").to_string(),
        "a batch of table shop.orders is malformed: column 'id' has the type int64, so Int64 is expected, Int32 found"
    );
}

#[test]
fn an_absent_key_is_found() {
    let mut batch = sound();
    batch.absent[0] = Some(BooleanBuffer::from(vec![false, false, true]));
    assert_eq!(problem(&batch), BatchProblem::KeyAbsent { row: 2, column: "id".into() });
}

#[test]
fn a_null_is_found_only_in_an_image_that_was_sent() {
    let rows =
        [row(Update, (1, 0), 1, "paid", 1).without_total(), delete((2, 0), 2), row(Insert, (3, 0), 3, "new", 1).null_total()];
    let mut batch = batch(&rows);
    let mut schema = (*batch.schema).clone();
    schema.columns[2].nullable = false;
    batch.schema = Arc::new(schema);
    assert_eq!(problem(&batch), BatchProblem::Null { row: 2, column: "total".into() });
}

#[test]
fn rows_out_of_order_within_a_transaction_are_found() {
    let mut batch = sound();
    batch.tail.coordinates[1] = Coordinate { major: 99, minor: 5 };
    let (before, found) = (Coordinate { major: 100, minor: 0 }, Coordinate { major: 99, minor: 5 });
    assert_eq!(problem(&batch), BatchProblem::Order { row: 1, before, found });
}

/// The expectations come from another implementation of XXH3 (python-xxhash) over bytes put together by hand.
#[test]
fn the_digest_of_rows_stays_as_it_is() {
    let slice = slice(&[row(Insert, (100, 0), 1, "new", 150), delete((100, 1), 2), row(Update, (230, 0), 1, "paid", 150)]);
    let digest = |rows| row_digests(&slice.batch, &slice.keys, rows);
    assert_eq!(digest(0..1), Digest { count: 1, hash: 0x6CE9_B80F_B476_2333 });
    assert_eq!(digest(0..2), Digest { count: 2, hash: 0x79B6_DD07_1729_6074 });
    assert_eq!(digest(0..3), Digest { count: 3, hash: 0x37BA_41D6_188E_4FA6 });
    assert_eq!(digest(1..1), Digest::default());
    assert_eq!(digest(0..1).plus(digest(1..3)), digest(0..3));
}

#[test]
fn the_digest_tells_rows_apart_by_coordinate_operation_and_key_only() {
    let of = |row| {
        let slice = slice(&[row]);
        row_digests(&slice.batch, &slice.keys, 0..1)
    };
    let one = of(row(Insert, (100, 0), 1, "new", 150));
    assert_eq!(of(row(Insert, (100, 0), 1, "paid", 7)), one);
    assert_ne!(of(row(Insert, (101, 0), 1, "new", 150)), one);
    assert_ne!(of(row(Insert, (100, 1), 1, "new", 150)), one);
    assert_ne!(of(row(Update, (100, 0), 1, "new", 150)), one);
    assert_ne!(of(row(Delete, (100, 0), 1, "new", 150)), one);
    assert_ne!(of(row(Insert, (100, 0), 2, "new", 150)), one);
}

#[test]
fn rows_are_picked_with_what_the_log_says_of_each() {
    let rows = [
        row(Insert, (1, 0), 1, "new", 1),
        row(Update, (2, 0), 2, "paid", 2).without_total(),
        row(Update, (1, 0), 3, "open", 3).of(5),
        row(Insert, (2, 0), 4, "last", 4).of(6),
    ];
    let picked = batch(&rows).pick(&[1, 3]).unwrap();
    picked.check().unwrap();
    let alone = batch(&[rows[1].clone(), rows[3].clone()]);
    assert_eq!((picked.data, picked.absent[2].clone()), (alone.data, alone.absent[2].clone()));
    assert_eq!((picked.tail.operations, picked.tail.coordinates), (alone.tail.operations, alone.tail.coordinates));
    assert_eq!(picked.tail.transactions, alone.tail.transactions);
    assert_eq!(batch(&rows).pick(&[]).unwrap().rows(), 0);
}
