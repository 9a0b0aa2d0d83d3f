//! The row store: it holds what it was given until it is told to forget it, and counts right.

mod classes;
mod shop;

use std::collections::BTreeMap;

use classes::Classes;
use kernel::coordinator::RowRange;
use kernel::id::BatchId;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rows::Operation::Insert;
use rows::store::{Disagreement, RowStore, StoreError};
use rows::{Slice, StoredBatch};
use shop::{row, slice};

fn some_rows(count: usize) -> Slice {
    slice(&(0..count).map(|n| row(Insert, (n as u64, 0), n as i64, "new", 1)).collect::<Vec<_>>())
}

fn put(store: &mut RowStore, rows: usize) -> BatchId {
    let Slice { batch, keys, .. } = some_rows(rows);
    store.insert(batch, keys)
}

#[test]
fn a_batch_is_held_until_it_is_released() {
    let mut store = RowStore::new();
    let of = some_rows(3);
    let id = store.insert(of.batch.clone(), of.keys.clone());
    assert_eq!(id, BatchId(1));
    let bytes = of.batch.bytes() + of.keys.memory();
    assert!(bytes > 0);
    assert_eq!((store.bytes(), store.len(), store.ids().collect::<Vec<_>>()), (bytes, 1, vec![BatchId(1)]));

    let Slice { batch, keys, rows } = store.slice(&RowRange { batch: id, rows: 1..3 }).expect("held");
    assert!(std::sync::Arc::ptr_eq(&batch, &of.batch) && std::sync::Arc::ptr_eq(&keys, &of.keys) && rows == (1..3));
    assert_eq!(store.release(id), Ok(bytes));
    assert_eq!((store.bytes(), store.len(), store.is_empty()), (0, 0, true));
    // Who has rows in hand keeps them.
    assert_eq!(batch.rows(), 3);
}

#[test]
fn an_id_that_is_not_held_is_an_error_that_says_why() {
    let mut store = RowStore::new();
    let id = put(&mut store, 1);
    store.release(id).expect("held");
    assert_eq!(store.release(id), Err(StoreError::Released(id)));
    assert_eq!(store.get(id).map(|_: &StoredBatch| ()), Err(StoreError::Released(id)));
    assert_eq!(store.release(BatchId(2)), Err(StoreError::NeverGiven(BatchId(2))));
    assert_eq!(store.release(BatchId(0)), Err(StoreError::NeverGiven(BatchId(0))));
    assert_eq!(StoreError::Released(id).to_string(), "batch 1 was released already");
    assert_eq!(StoreError::NeverGiven(BatchId(2)).to_string(), "no batch ever had the number 2");
    assert_eq!(put(&mut store, 1), BatchId(2));
}

#[test]
fn a_slice_of_rows_that_are_not_there_is_none() {
    let mut store = RowStore::new();
    let id = put(&mut store, 3);
    let rows = |batch, rows| store.slice(&RowRange { batch, rows }).map(|slice| slice.rows);
    assert_eq!(rows(id, 1..3), Some(1..3));
    assert_eq!(rows(id, 3..3), Some(3..3));
    assert_eq!(rows(id, 1..4), None);
    #[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
    let backwards = 2..1;
    assert_eq!(rows(id, backwards), None);
    assert_eq!(rows(BatchId(2), 0..1), None);
}

#[test]
fn a_leak_and_an_early_free_are_told_apart() {
    let mut store = RowStore::new();
    let (first, second) = (put(&mut store, 1), put(&mut store, 1));
    assert_eq!(store.agrees_with([second, first]), Ok(()));
    let error = store.agrees_with([second, BatchId(7)]).expect_err("differs");
    assert_eq!(error, Disagreement { leaked: vec![first], freed: vec![BatchId(7)] });
    assert_eq!(
        error.to_string(),
        "the row store and the machine differ: 1 held but not known (leaked), 1 known but not held (freed too early)"
    );
}

#[test]
fn the_store_holds_what_a_map_would() {
    let classes = Classes::default();
    let mut runner = TestRunner::new(Config::default());
    let acts = prop::collection::vec((any::<bool>(), 0u64..12, 1usize..6), 1..60);
    runner
        .run(&acts, |acts| {
            let mut store = RowStore::new();
            let mut model: BTreeMap<BatchId, u64> = BTreeMap::new();
            let mut given = 0;
            for (is_insert, id, rows) in acts {
                let (is_held, was_given) = (model.contains_key(&BatchId(id)), (1..=given).contains(&id));
                classes.note(&[
                    ("inserted", is_insert),
                    ("released", !is_insert && is_held),
                    ("released again", !is_insert && !is_held && was_given),
                    ("never given", !is_insert && !was_given),
                ]);
                if is_insert {
                    let Slice { batch, keys, .. } = some_rows(rows);
                    let bytes = batch.bytes() + keys.memory();
                    given += 1;
                    prop_assert_eq!(store.insert(batch, keys), BatchId(given));
                    model.insert(BatchId(given), bytes);
                } else {
                    let expected = match model.remove(&BatchId(id)) {
                        Some(bytes) => Ok(bytes),
                        None if was_given => Err(StoreError::Released(BatchId(id))),
                        None => Err(StoreError::NeverGiven(BatchId(id))),
                    };
                    prop_assert_eq!(store.release(BatchId(id)), expected);
                }
                let total: u64 = model.values().sum();
                prop_assert_eq!((store.bytes(), store.len()), (total, model.len()));
                prop_assert_eq!(store.agrees_with(model.keys().copied()), Ok(()));
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    classes.assert_all_met();
}
