//! Netting, told in single steps. `net_model.rs` compares it with replaying row by row.

mod shop;

use std::sync::Arc;

use kernel::id::{Incarnation, Version};
use kernel::position::Coordinate;
use rows::Operation::{Delete, Insert, Read, Update};
use rows::net::{Hole, NetError, ReadRun, append, net, net_filled};
use rows::{ChangeBatch, EncodedKeys, NetOutcome, Netted, Numbering, ReadAgain, RowPhase, Slice, TableSchema, TransactionRun};
use shop::{Row, data, delete, row, schema, slice, transaction};

const NUMBERING: Numbering = Numbering { incarnation: Incarnation(3), first: 500 };

fn netted(outcome: Result<NetOutcome, NetError>) -> Netted {
    match outcome.expect("nets") {
        NetOutcome::Netted(netted) => *netted,
        NetOutcome::Holes(holes) => panic!("holes: {holes:?}"),
    }
}

fn holes(outcome: Result<NetOutcome, NetError>) -> Vec<Hole> {
    match outcome.expect("nets") {
        NetOutcome::Netted(netted) => panic!("no holes: {netted:?}"),
        NetOutcome::Holes(holes) => holes,
    }
}

fn ids(keys: &EncodedKeys) -> Vec<i64> {
    keys.iter().map(|key| i64::from_be_bytes(key.try_into().expect("8 bytes")) ^ i64::MIN).collect()
}

fn sequences(versions: &[Version]) -> Vec<u64> {
    versions.iter().map(|version| version.0 - (3 << 44)).collect()
}

/// What the rows come to: the upserts, and the ids removed, each with its sequence.
#[track_caller]
fn expect(rows: &[Row], upserts: &[(Row, u64)], deletes: &[(i64, u64)]) -> Netted {
    let netted = netted(net(&[slice(rows)], NUMBERING));
    let (rows, upserted): (Vec<Row>, Vec<u64>) = upserts.iter().cloned().unzip();
    assert_eq!(netted.upserts, data(&rows));
    assert_eq!(ids(&netted.upsert_keys), rows.iter().map(|row| row.id).collect::<Vec<_>>());
    assert_eq!(sequences(&netted.upsert_versions), upserted);
    let deleted: Vec<(i64, u64)> = ids(&netted.delete_keys).into_iter().zip(sequences(&netted.delete_versions)).collect();
    assert_eq!(deleted, deletes);
    assert_eq!(netted.deletes.num_rows(), deletes.len());
    netted
}

#[test]
fn the_last_image_of_a_key_survives_with_its_own_version() {
    let (first, other, last) =
        (row(Insert, (1, 0), 1, "new", 1), row(Insert, (2, 0), 2, "new", 2), row(Update, (3, 0), 1, "paid", 3));
    expect(&[first, other.clone(), last.clone()], &[(other, 501), (last, 502)], &[]);
}

#[test]
fn a_key_inserted_and_deleted_inside_still_yields_its_delete() {
    expect(&[row(Insert, (1, 0), 1, "new", 1), delete((2, 0), 1)], &[], &[(1, 501)]);
}

#[test]
fn a_key_deleted_and_inserted_again_is_an_image() {
    let again = row(Insert, (2, 0), 1, "new", 2);
    expect(&[delete((1, 0), 1), again.clone()], &[(again, 501)], &[]);
}

#[test]
fn a_key_update_removes_the_old_row() {
    let moved = row(Insert, (1, 1), 2, "paid", 1);
    expect(&[delete((1, 0), 1), moved.clone()], &[(moved, 501)], &[(1, 500)]);
}

#[test]
fn a_key_that_moves_away_and_back_is_an_image_and_removes_the_place_between() {
    let back = row(Insert, (2, 1), 1, "back", 1);
    let rows = [delete((1, 0), 1), row(Insert, (1, 1), 2, "away", 1), delete((2, 0), 2), back.clone()];
    expect(&rows, &[(back, 503)], &[(2, 502)]);
}

/// `update orders set id = id + 1`, as a log tells it that never has a key twice: from the highest.
#[test]
fn all_keys_can_move_up_by_one() {
    let rows = [
        delete((1, 0), 3),
        row(Insert, (1, 1), 4, "c", 3),
        delete((1, 2), 2),
        row(Insert, (1, 3), 3, "b", 2),
        delete((1, 4), 1),
        row(Insert, (1, 5), 2, "a", 1),
    ];
    let images = [(rows[1].clone(), 501), (rows[3].clone(), 503), (rows[5].clone(), 505)];
    expect(&rows, &images, &[(1, 504)]);
}

#[test]
fn a_snapshots_row_is_an_image() {
    let read = row(Read, (1, 0), 1, "new", 1);
    expect(std::slice::from_ref(&read), &[(read.clone(), 500)], &[]);
}

#[test]
fn an_absent_value_comes_from_the_rows_earlier_image() {
    let rows = [
        row(Insert, (1, 0), 1, "new", 5),
        row(Update, (2, 0), 1, "paid", 0).without_total(),
        row(Update, (3, 0), 1, "sent", 0).without_total(),
    ];
    expect(&rows, &[(row(Update, (3, 0), 1, "sent", 5), 502)], &[]);
}

#[test]
fn an_earlier_null_is_a_value() {
    let rows = [row(Insert, (1, 0), 1, "new", 0).null_total(), row(Update, (2, 0), 1, "paid", 0).without_total()];
    expect(&rows, &[(row(Update, (2, 0), 1, "paid", 0).null_total(), 501)], &[]);
}

#[test]
fn an_absent_value_moves_with_its_row_to_a_new_key() {
    let rows = [
        row(Insert, (1, 0), 1, "new", 5),
        delete((2, 0), 1),
        row(Insert, (2, 1), 2, "new", 0).without_total(),
        delete((3, 0), 2),
        row(Insert, (3, 1), 3, "new", 0).without_total(),
        row(Update, (4, 0), 3, "paid", 0).without_total(),
    ];
    expect(&rows, &[(row(Update, (4, 0), 3, "paid", 5), 505)], &[(1, 501), (2, 503)]);
}

#[test]
fn an_old_row_that_was_sent_gives_the_value_before_an_earlier_image_does() {
    let old = row(Delete, (2, 0), 1, "old", 9);
    let rows = [row(Insert, (1, 0), 1, "new", 5), old, row(Insert, (2, 1), 2, "new", 0).without_total()];
    expect(&rows, &[(row(Insert, (2, 1), 2, "new", 9), 502)], &[(1, 501)]);
}

#[test]
fn absent_values_of_two_columns_are_found_each_by_itself() {
    let rows = [
        row(Insert, (1, 0), 1, "new", 5),
        row(Update, (2, 0), 1, "paid", 0).without_total(),
        row(Update, (3, 0), 1, "", 7).without_status(),
        row(Update, (4, 0), 1, "", 0).without_status().without_total(),
    ];
    expect(&rows, &[(row(Update, (4, 0), 1, "paid", 7), 503)], &[]);
}

#[test]
fn an_absent_value_that_nobody_knows_is_a_hole_and_nothing_is_netted() {
    let rows = [row(Update, (1, 0), 1, "paid", 0).without_total().of(4), row(Update, (2, 0), 2, "paid", 0).without_total().of(9)];
    let expected =
        Hole { column: "total".into(), rows: 2, transaction: transaction(4), coordinate: Coordinate { major: 1, minor: 0 } };
    assert_eq!(
        expected.to_string(),
        "2 changed rows do not carry the value of column 'total', and no earlier change in the checkpoint does \
         (first in transaction log@4 at 1.0)"
    );
    let expected = vec![expected];
    assert_eq!(holes(net(&[slice(&rows)], NUMBERING)), expected);
    assert_eq!(holes(append(&[slice(&rows)], NUMBERING)), expected);
}

#[test]
fn a_hole_is_moot_when_its_row_goes_or_is_sent_whole() {
    let open = |coordinate, id| row(Update, coordinate, id, "paid", 0).without_total();
    let whole = row(Update, (3, 0), 2, "sent", 5);
    let rows = [open((1, 0), 1), open((2, 0), 2), whole.clone(), delete((4, 0), 1)];
    expect(&rows, &[(whole, 502)], &[(1, 503)]);
}

#[test]
fn a_new_row_takes_nothing_from_an_older_one_of_its_key() {
    let count = |rows: &[Row]| holes(net(&[slice(rows)], NUMBERING)).iter().map(|hole| hole.rows).sum::<usize>();
    let earlier = row(Insert, (1, 0), 1, "new", 5);
    // A plain insert; one behind a delete of another change; one behind another row's delete; a snapshot's row; an update of what is gone.
    assert_eq!(count(&[earlier.clone(), row(Insert, (2, 0), 1, "new", 0).without_total()]), 1);
    assert_eq!(count(&[earlier.clone(), delete((2, 0), 1), row(Insert, (3, 0), 2, "new", 0).without_total()]), 1);
    assert_eq!(count(&[earlier.clone(), delete((2, 0), 1).of(0), row(Insert, (2, 1), 2, "new", 0).without_total().of(8)]), 1);
    assert_eq!(count(&[earlier.clone(), row(Read, (2, 0), 1, "new", 0).without_total()]), 1);
    assert_eq!(count(&[earlier, delete((2, 0), 1), row(Update, (3, 0), 1, "new", 0).without_total()]), 1);
}

fn part(of: &Slice, rows: std::ops::Range<usize>) -> Slice {
    Slice { rows, ..of.clone() }
}

#[test]
fn slices_are_one_log_whatever_batches_they_lie_in() {
    let first = slice(&[row(Insert, (1, 0), 1, "a", 1), row(Insert, (2, 0), 2, "b", 2), row(Insert, (3, 0), 3, "c", 3)]);
    let second = slice(&[row(Update, (4, 0), 2, "d", 0).without_total().of(7), delete((5, 0), 3).of(7)]);
    // Row 1 of the first batch is left out by nobody, but its row 0 comes in a slice of its own.
    let slices = [part(&first, 0..1), part(&first, 1..1), part(&first, 1..3), part(&second, 0..1), part(&second, 1..2)];
    let netted = netted(net(&slices, NUMBERING));
    assert_eq!(netted.upserts, data(&[row(Insert, (1, 0), 1, "a", 1), row(Update, (4, 0), 2, "d", 2)]));
    assert_eq!(sequences(&netted.upsert_versions), [500, 503]);
    assert_eq!((ids(&netted.delete_keys), sequences(&netted.delete_versions)), (vec![3], vec![504]));
    assert_eq!(netted.upsert_tail.operations, [Insert, Update]);
    assert_eq!(netted.upsert_tail.coordinates, [Coordinate { major: 1, minor: 0 }, Coordinate { major: 4, minor: 0 }]);
    assert_eq!(
        netted.upsert_tail.transactions,
        [
            TransactionRun { transaction: transaction(0), rows: 1, commit_time: Some(1_000) },
            TransactionRun { transaction: transaction(7), rows: 1, commit_time: Some(1_007) }
        ]
    );
}

#[test]
fn rows_outside_the_slices_do_not_exist() {
    let all = slice(&[row(Insert, (1, 0), 1, "a", 1), row(Update, (2, 0), 1, "b", 2), delete((3, 0), 1)]);
    let netted = netted(net(&[part(&all, 1..2)], NUMBERING));
    assert_eq!(netted.upserts, data(&[row(Update, (2, 0), 1, "b", 2)]));
    assert_eq!(sequences(&netted.upsert_versions), [500]);
    assert!(netted.delete_keys.is_empty());
}

#[test]
fn a_moved_row_that_is_divided_by_its_slice_is_still_one() {
    let all = slice(&[row(Insert, (1, 0), 1, "a", 5), delete((2, 0), 1), row(Insert, (2, 1), 2, "b", 0).without_total()]);
    let netted = netted(net(&[part(&all, 0..2), part(&all, 2..3)], NUMBERING));
    assert_eq!(netted.upserts, data(&[row(Insert, (2, 1), 2, "b", 5)]));
}

fn read_at(slice: &Slice, ingest_time: i64, phase: RowPhase) -> Slice {
    let mut batch = ChangeBatch::clone(&slice.batch);
    (batch.tail.ingest_time, batch.tail.phase) = (ingest_time, phase);
    Slice { batch: Arc::new(batch), ..slice.clone() }
}

#[test]
fn each_row_keeps_the_time_and_phase_in_which_it_was_read() {
    let first = slice(&[row(Read, (1, 0), 1, "a", 1), row(Read, (2, 0), 2, "b", 2)]);
    let second = slice(&[row(Update, (3, 0), 2, "c", 3)]);
    let slices = [read_at(&first, 10, RowPhase::Snapshot), read_at(&second, 20, RowPhase::Stream)];
    let reads = |netted: &Netted| netted.upsert_reads.clone();
    let run = |rows, ingest_time, phase| ReadRun { rows, ingest_time, phase };
    let (by_key, all) = (netted(net(&slices, NUMBERING)), netted(append(&slices, NUMBERING)));
    assert_eq!(reads(&by_key), [run(1, 10, RowPhase::Snapshot), run(1, 20, RowPhase::Stream)]);
    assert_eq!(reads(&all), [run(2, 10, RowPhase::Snapshot), run(1, 20, RowPhase::Stream)]);
    assert_eq!((by_key.upsert_tail.ingest_time, by_key.upsert_tail.phase), (20, RowPhase::Stream));
}

#[test]
fn append_keeps_every_row_in_order_with_deletes_and_tail() {
    let rows = [
        row(Insert, (1, 0), 1, "new", 5),
        row(Update, (2, 0), 1, "paid", 0).without_total().of(3),
        delete((3, 0), 1).of(3),
        row(Insert, (4, 0), 1, "new", 6).of(5),
    ];
    let netted = netted(append(&[slice(&rows)], NUMBERING));
    let filled = [rows[0].clone(), row(Update, (2, 0), 1, "paid", 5), rows[2].clone(), rows[3].clone()];
    assert_eq!(netted.upserts, data(&filled));
    assert_eq!(netted.upsert_tail.operations, [Insert, Update, Delete, Insert]);
    assert_eq!(netted.upsert_tail.transactions.iter().map(|run| run.rows).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(sequences(&netted.upsert_versions), [500, 501, 502, 503]);
    assert_eq!((netted.upsert_keys.len(), netted.deletes.num_rows(), netted.delete_versions.len()), (0, 0, 0));
}

fn keyless(rows: &[Row]) -> Slice {
    let all = slice(rows);
    let schema = Arc::new(TableSchema { key: vec![], ..(*schema()).clone() });
    Slice {
        batch: Arc::new(ChangeBatch { schema, ..ChangeBatch::clone(&all.batch) }),
        keys: Arc::new(EncodedKeys::empty(rows.len())),
        ..all
    }
}

#[test]
fn a_table_without_a_key_can_only_be_appended() {
    let rows = [row(Insert, (1, 0), 1, "a", 1), row(Insert, (2, 0), 1, "a", 1)];
    let error = net(&[keyless(&rows)], NUMBERING).expect_err("no key").to_string();
    assert_eq!(
        error,
        "table shop.orders has no key, so its changes can only be appended; name its primaryKey or use the mode append"
    );
    assert_eq!(netted(append(&[keyless(&rows)], NUMBERING)).upserts, data(&rows));

    // Without keys nobody knows which row an update was of.
    let rows = [row(Insert, (1, 0), 1, "a", 1), row(Update, (2, 0), 1, "b", 0).without_total()];
    assert_eq!(holes(append(&[keyless(&rows)], NUMBERING)).len(), 1);
}

#[test]
fn what_contradicts_itself_is_an_error() {
    let error = |slices: &[Slice], numbering| net(slices, numbering).expect_err("refused").to_string();
    let one = slice(&[row(Insert, (1, 0), 1, "a", 1)]);
    assert_eq!(error(&[], NUMBERING), "there is nothing to net");
    assert_eq!(
        error(&[part(&one, 0..2)], NUMBERING),
        "rows 0 to 2 of a batch of table shop.orders are asked for, which has 1 rows and 1 keys"
    );
    let without_keys = Slice { keys: Arc::new(EncodedKeys::default()), ..one.clone() };
    assert_eq!(
        error(&[without_keys], NUMBERING),
        "rows 0 to 1 of a batch of table shop.orders are asked for, which has 1 rows and 0 keys"
    );
    assert_eq!(
        error(&[one.clone(), keyless(&[row(Insert, (1, 0), 1, "a", 1)])], NUMBERING),
        "rows of table shop.orders under one schema and of table shop.orders under another stand in one checkpoint"
    );
    let mut batch = ChangeBatch::clone(&one.batch);
    batch.tail.coordinates.clear();
    assert_eq!(
        error(&[Slice { batch: Arc::new(batch), ..one.clone() }], NUMBERING),
        "a batch of table shop.orders is malformed: 1 rows are expected, 0 found in the coordinates"
    );
    let last = Numbering { first: (1 << 44) - 1, ..NUMBERING };
    assert!(net(std::slice::from_ref(&one), last).is_ok());
    assert_eq!(
        error(&[one.clone(), one], last),
        "table shop.orders: 2 rows in one checkpoint, the first of them number 17592186044415, are more than can be numbered"
    );
}

#[test]
fn slices_without_rows_net_to_nothing() {
    let one = slice(&[row(Insert, (1, 0), 1, "a", 1)]);
    let netted = netted(net(&[part(&one, 1..1)], NUMBERING));
    assert!(netted.is_empty());
    assert_eq!((netted.upserts.num_rows(), netted.upserts.schema()), (0, Arc::new(schema().arrow())));
}

fn key(id: i64) -> [u8; 8] {
    (id ^ i64::MIN).to_be_bytes()
}

#[test]
fn a_row_that_was_read_again_fills_what_its_key_lacks_and_nothing_else() {
    let log = [row(Update, (1, 0), 1, "paid", 5).without_total(), row(Update, (2, 0), 2, "open", 6).without_total()];
    let read = slice(&[row(Read, (0, 0), 1, "older", 10), row(Read, (1, 0), 2, "later", 20)]);
    let (one, two) = (key(1), key(2));
    let of = |at: usize| Some(Slice { rows: at..at + 1, ..read.clone() });
    let first = ReadAgain { key: &one, row: of(0), whole: false };
    let slices = [slice(&log)];
    let lacking = holes(net_filled(&slices, NUMBERING, None, std::slice::from_ref(&first)));
    assert_eq!(lacking.iter().map(|hole| hole.rows).collect::<Vec<_>>(), [1], "the other key still lacks it");

    let netted = netted(net_filled(&slices, NUMBERING, None, &[first, ReadAgain { key: &two, row: of(1), whole: true }]));
    assert_eq!(netted.upserts, data(&[row(Update, (1, 0), 1, "paid", 10), row(Update, (2, 0), 2, "later", 20)]));
    assert_eq!(sequences(&netted.upsert_versions), [500, 501]);
}

#[test]
fn a_key_that_was_gone_when_it_was_read_is_deleted_under_its_rows_version() {
    let log = [row(Update, (1, 0), 1, "paid", 5).without_total(), row(Insert, (2, 0), 2, "new", 6)];
    let one = key(1);
    let netted = netted(net_filled(&[slice(&log)], NUMBERING, None, &[ReadAgain { key: &one, row: None, whole: true }]));
    assert_eq!((ids(&netted.upsert_keys), ids(&netted.delete_keys)), (vec![2], vec![1]));
    assert_eq!(sequences(&netted.delete_versions), [500]);
}

#[test]
fn a_row_read_for_another_key_is_an_error() {
    let log = [row(Update, (1, 0), 1, "paid", 5).without_total()];
    let read = slice(&[row(Read, (0, 0), 2, "other", 10)]);
    let one = key(1);
    let outcome = net_filled(&[slice(&log)], NUMBERING, None, &[ReadAgain { key: &one, row: Some(read), whole: true }]);
    assert!(matches!(outcome, Err(NetError::ReadAgain { .. })), "{outcome:?}");
}

/// A value that was read stays the row's when its key changes afterwards, in the same checkpoint.
#[test]
fn a_row_that_moves_after_it_was_read_keeps_the_value_that_was_read() {
    let moved = [delete((2, 0), 1), Row { coordinate: (2, 1), ..row(Insert, (2, 1), 3, "moved", 0).without_total() }];
    let log = [vec![row(Update, (1, 0), 1, "paid", 5).without_total()], moved.to_vec()].concat();
    let read = slice(&[row(Read, (0, 0), 1, "older", 10)]);
    let three = key(3);
    let again = [ReadAgain { key: &three, row: Some(read), whole: false }];
    let netted = netted(net_filled(&[slice(&log)], NUMBERING, None, &again));
    assert_eq!(netted.upserts, data(&[row(Insert, (2, 1), 3, "moved", 10)]));
    assert_eq!(ids(&netted.delete_keys), [1]);
}
