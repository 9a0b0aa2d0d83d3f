//! Rows that were read become facts: divided where a cut divides, with their keys where they are asked for.

use std::collections::BTreeMap;
use std::ops::Range;

use kernel::coordinator::{HeldBatch, LogEvent, RowRange};
use kernel::id::{BatchId, TransactionName};
use kernel::outcome::LogFailure;
use kernel::position::{Coordinate, Digest, Position, Transaction};
use rows::RowStore;
use rows::digest::row_digests;

use super::{batch, keys, place, transaction};
use crate::env::{Chunk, ChunkEvent};
use crate::intake::{Divided, Telling, hold, prepare};

fn rows(batch: usize, rows: Range<usize>, transaction: Transaction) -> ChunkEvent {
    ChunkEvent::Rows { batch, rows, transaction }
}

/// What came of rows: which, from where to where, and their digest.
type Told = (Range<u32>, Coordinate, Coordinate, Digest);

/// Facts about rows of table `shop.t`, all in the one batch of the chunk.
fn told(events: &[LogEvent]) -> Vec<Told> {
    let of = |event: &LogEvent| match event {
        LogEvent::Rows { table, rows, first, last, digest, .. } => {
            assert_eq!((table.to_string(), rows.batch), ("shop.t".to_owned(), BatchId(1)));
            (rows.rows.clone(), *first, *last, *digest)
        }
        other => panic!("{other:?}"),
    };
    events.iter().map(of).collect()
}

fn divided(points: &[(&str, u64, Coordinate)]) -> Divided {
    points.iter().map(|(table, at, coordinate)| ((*table).into(), transaction(*at), *coordinate)).collect()
}

/// One batch of a transaction with rows at these coordinates, as it is told when rows are divided so.
fn tell(coordinates: &[Coordinate], divided: Divided) -> Vec<Told> {
    let batch = batch("shop.t", &coordinates.iter().map(|coordinate| (transaction(7), *coordinate)).collect::<Vec<_>>());
    let all = 0..batch.rows();
    let chunk = Chunk { batches: vec![batch.clone()], events: vec![rows(0, all, transaction(7))], ..Chunk::default() };
    let prepared = prepare(chunk, &Telling { divided, keys_of: vec![], ..Telling::default() })
        .unwrap_or_else(|failure| panic!("{failure:?}"));
    let (_, events, _) = hold(prepared, &mut RowStore::new());
    let told = told(&events);
    // Whatever the division, the pieces are all rows in order, and their digests are those of their own rows.
    let mut next = 0;
    for (rows, first, last, digest) in &told {
        assert_eq!((rows.start, rows.is_empty()), (next, false));
        next = rows.end;
        let (start, end) = (rows.start as usize, rows.end as usize);
        assert_eq!((*first, *last), (coordinates[start], coordinates[end - 1]));
        assert_eq!(*digest, row_digests(&batch, &keys(&batch), start..end));
    }
    assert_eq!(next as usize, coordinates.len());
    told
}

fn ranges(told: &[Told]) -> Vec<Range<u32>> {
    told.iter().map(|(rows, ..)| rows.clone()).collect()
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "one piece, and not its numbers")]
fn rows_are_divided_behind_the_coordinate_of_a_cut_of_their_table_and_transaction() {
    let five = [place(1, 0), place(2, 0), place(2, 1), place(4, 0), place(6, 0)];
    let of = |points: &[(&str, u64, Coordinate)]| ranges(&tell(&five, divided(points)));
    assert_eq!(of(&[]), [0..5]);
    // The row at the coordinate is covered by the cut, and so are all rows at or below it.
    assert_eq!(of(&[("shop.t", 7, place(2, 0))]), [0..2, 2..5]);
    assert_eq!(of(&[("shop.t", 7, place(2, 1))]), [0..3, 3..5]);
    // A coordinate between two rows, before the first, at the last: no empty piece is told.
    assert_eq!(of(&[("shop.t", 7, place(3, 9))]), [0..3, 3..5]);
    assert_eq!(of(&[("shop.t", 7, place(0, 0))]), [0..5]);
    assert_eq!(of(&[("shop.t", 7, place(6, 0))]), [0..5]);
    // Another table's cut, or that of another transaction, divides nothing here.
    assert_eq!(of(&[("shop.u", 7, place(2, 0)), ("shop.t", 8, place(2, 0))]), [0..5]);
    // Cuts of two stands of the table, each behind the one before.
    assert_eq!(of(&[("shop.t", 7, place(1, 0)), ("shop.t", 7, place(4, 0))]), [0..1, 1..4, 4..5]);
}

#[test]
fn the_digests_of_the_pieces_are_together_that_of_the_whole() {
    let many: Vec<Coordinate> = (0..50).map(|n| place(n / 3, n as u32 % 3)).collect();
    let [(_, _, _, whole)] = tell(&many, Divided::new())[..] else { panic!("one piece") };
    for n in 0..50 {
        let pieces = tell(&many, divided(&[("shop.t", 7, many[n])]));
        assert_eq!(pieces.len(), if n == 49 { 1 } else { 2 });
        let (count, hash) = pieces
            .iter()
            .fold((0, 0_u64), |(count, hash), (_, _, _, digest)| (count + digest.count, hash.wrapping_add(digest.hash)));
        assert_eq!(Digest { count, hash }, whole);
    }
}

#[test]
fn only_rows_of_the_event_are_divided_and_each_event_by_its_own_transaction() {
    let at = |transaction_at, major| (transaction(transaction_at), place(major, 0));
    let batch = batch("shop.t", &[at(7, 1), at(7, 2), at(8, 1), at(8, 2)]);
    let events = vec![
        rows(0, 0..2, transaction(7)),
        ChunkEvent::Ended { transaction: transaction(7), upto: Position::scalar(8) },
        rows(0, 2..4, transaction(8)),
    ];
    let chunk = Chunk { batches: vec![batch.clone()], events, finished: true, ..Chunk::default() };
    let telling = Telling { divided: divided(&[("shop.t", 8, place(1, 0))]), keys_of: vec![], ..Telling::default() };
    let mut store = RowStore::new();
    let (held, events, finished) = hold(prepare(chunk, &telling).unwrap_or_else(|failure| panic!("{failure:?}")), &mut store);
    assert!(finished);
    assert_eq!(held, [HeldBatch { batch: BatchId(1), rows: 4, bytes: batch.bytes() }]);
    let told: Vec<_> = events
        .iter()
        .map(|event| match event {
            LogEvent::Rows { rows: RowRange { rows, .. }, transaction, .. } => (Some(rows.clone()), transaction.at.0),
            LogEvent::Ended { transaction, .. } => (None, transaction.at.0),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [(Some(0..2), 7), (None, 7), (Some(2..3), 8), (Some(3..4), 8)]);
    // What was told is what the store gives back.
    assert_eq!(store.slice(&RowRange { batch: BatchId(1), rows: 3..4 }).unwrap().rows, 3..4);
}

#[test]
fn batches_that_are_held_already_do_not_change_the_ids_of_new_ones() {
    let mut store = RowStore::new();
    for expected in [[1, 2], [3, 4]] {
        let of = |table| batch(table, &[(transaction(7), place(1, 0))]);
        let events = vec![rows(1, 0..1, transaction(7)), rows(0, 0..1, transaction(7))];
        let chunk = Chunk { batches: vec![of("shop.t"), of("shop.u")], events, ..Chunk::default() };
        let (held, events, _) = hold(prepare(chunk, &Telling::default()).unwrap_or_else(|f| panic!("{f:?}")), &mut store);
        assert_eq!(held.iter().map(|held| held.batch.0).collect::<Vec<_>>(), expected);
        let named: Vec<_> = events
            .iter()
            .map(|event| match event {
                LogEvent::Rows { table, rows, .. } => (table.to_string(), rows.batch.0),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(named, [("shop.u".to_owned(), expected[1]), ("shop.t".to_owned(), expected[0])]);
    }
}

#[test]
fn keys_come_with_the_rows_of_the_tables_that_are_asked_for_and_each_piece_has_its_own() {
    let of = |table| batch(table, &[(transaction(7), place(1, 0)), (transaction(7), place(2, 0)), (transaction(7), place(3, 0))]);
    let events = vec![rows(0, 0..3, transaction(7)), rows(1, 0..3, transaction(7))];
    let names = BTreeMap::from([(transaction(7), TransactionName::from("xid 7"))]);
    let chunk = Chunk { batches: vec![of("shop.t"), of("shop.u")], events, names, ..Chunk::default() };
    let telling =
        Telling { divided: divided(&[("shop.t", 7, place(1, 0))]), keys_of: vec!["shop.t".into()], ..Telling::default() };
    let prepared = prepare(chunk.clone(), &telling).unwrap_or_else(|failure| panic!("{failure:?}"));
    let (_, events, _) = hold(prepared, &mut RowStore::new());
    let expected = keys(&of("shop.t"));
    let touched: Vec<_> = events
        .into_iter()
        .map(|event| match event {
            LogEvent::Rows { table, rows, touched, .. } => {
                let by = touched.as_ref().map(|touched| touched.by.to_string());
                let keys = touched.map(|touched| touched.keys);
                (table.to_string(), rows.rows, by, keys)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let key = |row: usize| kernel::id::EncodedKey::from(expected.key(row));
    assert_eq!(
        touched,
        [
            ("shop.t".to_owned(), 0..1, Some("xid 7".to_owned()), Some(vec![key(0)])),
            ("shop.t".to_owned(), 1..3, Some("xid 7".to_owned()), Some(vec![key(1), key(2)])),
            ("shop.u".to_owned(), 0..3, None, None),
        ]
    );
    // A driver that reads in chunks and does not say how a transaction is called is at fault.
    let Err(LogFailure::Config { why }) = prepare(Chunk { names: BTreeMap::new(), ..chunk }, &telling) else { panic!("taken") };
    assert!(why.contains("shop.t") && why.contains("does not say how visibility calls"), "{why}");
}

#[test]
fn rows_that_are_not_in_their_batch_are_the_drivers_fault() {
    let of = batch("shop.t", &[(transaction(7), place(1, 0))]);
    for (number, range) in [(0, 0..2), (1, 0..1)] {
        let chunk = Chunk { batches: vec![of.clone()], events: vec![rows(number, range, transaction(7))], ..Chunk::default() };
        let Err(LogFailure::Config { why }) = prepare(chunk, &Telling::default()) else { panic!("taken") };
        assert!(why.contains(&format!("outside of batch {number}")), "{why}");
    }
}
