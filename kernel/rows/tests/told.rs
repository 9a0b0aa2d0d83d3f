//! What rows tell of their keys, as the machines hear it.

mod shop;

use kernel::coordinator::Told::{Gone, Part, PartOfMoved, PartOfNew, Whole};
use rows::Operation::{Delete, Insert, Read, Update};
use rows::told::{lacks_values, told};
use shop::{delete, row, slice};

#[test]
fn a_row_tells_all_some_or_that_it_is_gone() {
    let rows = [
        row(Insert, (1, 0), 1, "new", 1),
        row(Update, (2, 0), 1, "paid", 2).without_total(),
        delete((3, 0), 1),
        row(Read, (4, 0), 2, "read", 3),
        row(Update, (5, 0), 2, "paid", 4).null_total(),
    ];
    let batch = slice(&rows).batch;
    assert_eq!(told(&batch, 0..5), [Whole, Part, Gone, Whole, Whole]);
    assert_eq!(told(&batch, 1..3), [Part, Gone]);
    assert!(lacks_values(&batch, 0..2) && !lacks_values(&batch, 2..5), "a delete lacks nothing");
}

#[test]
fn a_row_that_moved_has_what_its_old_half_carries() {
    let moved = [delete((1, 0), 1), row(Insert, (1, 1), 2, "paid", 2).without_total()];
    assert_eq!(told(&slice(&moved).batch, 0..2), [Gone, PartOfMoved]);
    let carried = [row(Delete, (1, 0), 1, "new", 1), row(Insert, (1, 1), 2, "paid", 2).without_total()];
    assert_eq!(told(&slice(&carried).batch, 0..2), [Gone, Whole]);
    let others = [delete((1, 0), 1), row(Insert, (2, 0), 2, "paid", 2).without_total()];
    assert_eq!(told(&slice(&others).batch, 0..2), [Gone, PartOfNew], "another change's delete is no old half");
    let later = [delete((1, 0), 1), row(Insert, (1, 0), 2, "paid", 2).without_total().of(5)];
    assert_eq!(told(&slice(&later).batch, 0..2), [Gone, PartOfNew], "nor another transaction's");
}
