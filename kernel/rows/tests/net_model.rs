//! Netting equals replaying row by row into a map, whatever happened and however the rows lie in batches.

mod classes;
mod shop;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use classes::Classes;
use kernel::id::{Incarnation, Version};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rows::Operation::{Delete, Insert, Read, Update};
use rows::net::{append, net, net_filled};
use rows::{NetOutcome, Netted, Numbering, Operation, ReadAgain, Slice};
use shop::{Cell, Row, slice};

const NUMBERING: Numbering = Numbering { incarnation: Incarnation(2), first: 9 };

/// What a transaction may do, told of few ids so that they meet.
#[derive(Clone, Debug)]
enum Step {
    Write(Operation, i64, Values),
    /// With the old row, or with nothing but its key.
    Remove(i64, Values),
    /// The old row as it was sent, the new one.
    Move(i64, i64, Values, Values),
    /// `id = id + 1`, from the highest, in one change.
    ShiftAll(Values),
    NextTransaction,
}

type Values = (Cell<String>, Cell<i128>);

fn values() -> impl Strategy<Value = Values> {
    let status = prop_oneof![3 => "[a-c]".prop_map(Cell::Is), 1 => Just(Cell::Null), 2 => Just(Cell::Absent)];
    let total = prop_oneof![3 => (0i128..5).prop_map(Cell::Is), 1 => Just(Cell::Null), 2 => Just(Cell::Absent)];
    (status, total)
}

/// Without absent values, as an insert has them.
fn whole() -> impl Strategy<Value = Values> {
    ("[a-c]".prop_map(Cell::Is), prop_oneof![3 => (0i128..5).prop_map(Cell::Is), 1 => Just(Cell::Null)])
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0i64..5;
    prop_oneof![
        6 => (id(), whole()).prop_map(|(id, values)| Step::Write(Insert, id, values)),
        1 => (id(), values()).prop_map(|(id, values)| Step::Write(Insert, id, values)),
        6 => (id(), values()).prop_map(|(id, values)| Step::Write(Update, id, values)),
        1 => (id(), whole()).prop_map(|(id, values)| Step::Write(Read, id, values)),
        3 => (id(), values()).prop_map(|(id, values)| Step::Remove(id, values)),
        3 => (id(), id(), values(), values()).prop_map(|(from, to, old, new)| Step::Move(from, to, old, new)),
        1 => values().prop_map(Step::ShiftAll),
        1 => Just(Step::NextTransaction),
    ]
}

/// The same with every value sent.
fn whole_step() -> impl Strategy<Value = Step> {
    step().prop_flat_map(|step| {
        whole().prop_map(move |values| match &step {
            Step::Write(operation, id, _) => Step::Write(*operation, *id, values),
            Step::Move(from, to, old, _) => Step::Move(*from, *to, old.clone(), values),
            Step::ShiftAll(_) => Step::ShiftAll(values),
            Step::Remove(..) | Step::NextTransaction => step.clone(),
        })
    })
}

/// The table as a reader of the log knows it; `Absent` is a hole.
#[derive(Default)]
struct Model {
    rows: Vec<Row>,
    images: BTreeMap<i64, Values>,
    /// The number of the last row of each key.
    last: BTreeMap<i64, usize>,
    transaction: u64,
    filled: bool,
    moved: bool,
}

fn or<T: Clone + PartialEq>(sent: &Cell<T>, known: &Cell<T>) -> Cell<T> {
    if *sent == Cell::Absent { known.clone() } else { sent.clone() }
}

impl Model {
    fn take(&mut self, step: &Step) {
        let major = self.rows.len() as u64;
        match step {
            Step::Write(operation, id, values) => {
                let known = if *operation == Update { self.images.get(id).cloned() } else { None };
                self.write(*operation, (major, 0), *id, values, known);
            }
            Step::Remove(id, old) => {
                self.remove((major, 0), *id, old);
            }
            Step::Move(from, to, old, new) => self.change_key(major, 0, *from, *to, old, new),
            Step::ShiftAll(new) => {
                let ids: Vec<i64> = self.images.keys().rev().copied().collect();
                for (n, id) in ids.into_iter().enumerate() {
                    self.change_key(major, 2 * n as u32, id, id + 1, &(Cell::Absent, Cell::Absent), new);
                }
            }
            Step::NextTransaction => self.transaction += 1,
        }
    }

    fn change_key(&mut self, major: u64, minor: u32, from: i64, to: i64, old: &Values, new: &Values) {
        let known = self.remove((major, minor), from, old);
        self.write(Insert, (major, minor + 1), to, new, Some(known));
        self.moved = true;
    }

    fn write(&mut self, operation: Operation, coordinate: (u64, u32), id: i64, values: &Values, known: Option<Values>) {
        self.log(operation, coordinate, id, values);
        let known = known.unwrap_or((Cell::Absent, Cell::Absent));
        let image = (or(&values.0, &known.0), or(&values.1, &known.1));
        self.filled |= image != *values;
        self.images.insert(id, image);
    }

    /// Returns the old row as far as it is known: what was sent of it, else what it had.
    fn remove(&mut self, coordinate: (u64, u32), id: i64, old: &Values) -> Values {
        self.log(Delete, coordinate, id, old);
        let known = self.images.remove(&id).unwrap_or((Cell::Absent, Cell::Absent));
        (or(&old.0, &known.0), or(&old.1, &known.1))
    }

    fn log(&mut self, operation: Operation, coordinate: (u64, u32), id: i64, values: &Values) {
        self.last.insert(id, self.rows.len());
        let (status, total) = values.clone();
        self.rows.push(Row { operation, transaction: self.transaction, coordinate, id, status, total });
    }

    fn holes(&self) -> BTreeMap<String, usize> {
        let count = |is_hole: fn(&Values) -> bool| self.images.values().filter(|values| is_hole(values)).count();
        let columns = [("status", count(|values| values.0 == Cell::Absent)), ("total", count(|values| values.1 == Cell::Absent))];
        columns.into_iter().filter(|(_, rows)| *rows > 0).map(|(column, rows)| (column.to_owned(), rows)).collect()
    }

    fn version(&self, id: i64) -> Version {
        Version((2 << 44) + 9 + self.last[&id] as u64)
    }
}

/// The rows in slices: cut into batches at some places, and each batch into slices at others.
fn cut(rows: &[Row], batches: &BTreeSet<usize>, slices: &BTreeSet<usize>) -> Vec<Slice> {
    let pieces = |range: Range<usize>, cuts: &BTreeSet<usize>| {
        let ends: Vec<usize> = cuts.iter().copied().filter(|cut| range.contains(cut)).chain([range.end]).collect();
        let starts = [range.start].into_iter().chain(ends.clone());
        starts.zip(ends).map(|(start, end)| start..end).collect::<Vec<_>>()
    };
    // A changed key's two rows are never in different batches.
    let batches = batches
        .iter()
        .copied()
        .filter(|cut| *cut > 0 && *cut < rows.len() && rows[*cut].coordinate.0 != rows[cut - 1].coordinate.0);
    let mut all = Vec::new();
    for piece in pieces(0..rows.len(), &batches.collect()) {
        let batch = slice(&rows[piece.clone()]);
        for part in pieces(piece.clone(), slices) {
            all.push(Slice { rows: part.start - piece.start..part.end - piece.start, ..batch.clone() });
        }
    }
    all
}

/// What a batch holds, by id.
fn contents(data: &RecordBatch) -> Vec<(i64, Values)> {
    let (ids, statuses) = (data.column(0).as_primitive::<Int64Type>(), data.column(1).as_string::<i32>());
    let totals = data.column(2).as_primitive::<Decimal128Type>();
    let status = |row| if statuses.is_null(row) { Cell::Null } else { Cell::Is(statuses.value(row).to_owned()) };
    let total = |row| if totals.is_null(row) { Cell::Null } else { Cell::Is(totals.value(row)) };
    (0..data.num_rows()).map(|row| (ids.value(row), (status(row), total(row)))).collect()
}

fn is_in_order(versions: &[Version]) -> bool {
    versions.windows(2).all(|pair| pair[0] < pair[1])
}

fn check_net(model: &Model, netted: &Netted) -> Result<(), TestCaseError> {
    let images: BTreeMap<i64, (Version, Values)> = contents(&netted.upserts)
        .into_iter()
        .zip(&netted.upsert_versions)
        .map(|((id, values), version)| (id, (*version, values)))
        .collect();
    let expected: BTreeMap<i64, (Version, Values)> =
        model.images.iter().map(|(id, values)| (*id, (model.version(*id), values.clone()))).collect();
    prop_assert_eq!(images, expected);
    let gone: BTreeMap<i64, Version> =
        contents(&netted.deletes).into_iter().zip(&netted.delete_versions).map(|((id, _), version)| (id, *version)).collect();
    let expected: BTreeMap<i64, Version> =
        model.last.keys().filter(|id| !model.images.contains_key(id)).map(|id| (*id, model.version(*id))).collect();
    prop_assert_eq!(&gone, &expected);

    // One image a key, in log order, and everything that goes with an image is as long.
    prop_assert!(is_in_order(&netted.upsert_versions) && is_in_order(&netted.delete_versions));
    prop_assert_eq!(netted.upserts.num_rows() + netted.deletes.num_rows(), model.last.len());
    let key = |id: i64| (id ^ i64::MIN).to_be_bytes().to_vec();
    let keys: Vec<Vec<u8>> = netted.upsert_keys.iter().map(<[u8]>::to_vec).collect();
    prop_assert_eq!(keys, contents(&netted.upserts).iter().map(|(id, _)| key(*id)).collect::<Vec<_>>());
    let tail = &netted.upsert_tail;
    let logged = |version: &Version| &model.rows[(version.0 - (2 << 44) - 9) as usize];
    for (n, version) in netted.upsert_versions.iter().enumerate() {
        let row = logged(version);
        prop_assert_eq!(
            (tail.coordinates[n].major, tail.coordinates[n].minor, tail.operations[n]),
            (row.coordinate.0, row.coordinate.1, row.operation)
        );
    }
    let transactions: Vec<u64> =
        tail.transactions.iter().flat_map(|run| std::iter::repeat_n(run.transaction.at.0, run.rows)).collect();
    prop_assert_eq!(transactions, netted.upsert_versions.iter().map(|version| logged(version).transaction).collect::<Vec<_>>());
    prop_assert_eq!(netted.upsert_reads.iter().map(|run| run.rows).sum::<usize>(), netted.upserts.num_rows());
    Ok(())
}

#[test]
fn netting_equals_replaying_row_by_row() {
    let classes = Classes::default();
    let mut runner = TestRunner::new(Config { cases: 3_000, ..Config::default() });
    let cuts = || prop::collection::btree_set(0usize..40, 0..6);
    let strategy = (prop::collection::vec(step(), 1..25), cuts(), cuts());
    runner
        .run(&strategy, |(steps, batches, slices)| {
            let mut model = Model::default();
            steps.iter().for_each(|step| model.take(step));
            prop_assume!(!model.rows.is_empty());
            let slices = cut(&model.rows, &batches, &slices);
            let outcome = net(&slices, NUMBERING).expect("nets");

            let is_whole = model.holes().is_empty();
            classes.note(&[
                ("holes", !is_whole),
                ("values filled", model.filled && is_whole),
                ("rows moved", model.moved && is_whole),
                ("keys gone", model.images.len() < model.last.len()),
                ("several slices", slices.len() > 1),
            ]);
            match outcome {
                NetOutcome::Netted(netted) => {
                    prop_assert_eq!(model.holes(), BTreeMap::new());
                    check_net(&model, &netted)
                }
                NetOutcome::Holes(holes) => {
                    let holes: BTreeMap<String, usize> = holes.into_iter().map(|hole| (hole.column, hole.rows)).collect();
                    prop_assert_eq!(holes, model.holes());
                    Ok(())
                }
            }
        })
        .unwrap_or_else(|error| panic!("{error}"));
    classes.assert_all_met();
}

/// What a reading of a key brings.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reading {
    /// The row as it truly is: only what lacks is taken.
    Exact,
    /// A later row, taken whole.
    Later,
    /// No row: it is gone later.
    Gone,
}

fn reading() -> impl Strategy<Value = Reading> {
    prop_oneof![3 => Just(Reading::Exact), 1 => Just(Reading::Later), 1 => Just(Reading::Gone)]
}

/// Rows of these ids as a read brings them, one batch for all.
fn read_rows(rows: &[(i64, Values)]) -> Slice {
    let row = |(n, (id, (status, total))): (usize, &(i64, Values))| {
        let (status, total) = (status.clone(), total.clone());
        Row { operation: Read, transaction: 0, coordinate: (n as u64, 0), id: *id, status, total }
    };
    slice(&rows.iter().enumerate().map(row).collect::<Vec<_>>())
}

#[test]
fn netting_with_rows_that_were_read_again_equals_replaying_with_the_true_values() {
    let cases = 3_000;
    let classes = Classes::default();
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    let cuts = || prop::collection::btree_set(0usize..40, 0..6);
    let before = prop::collection::vec(whole(), 5);
    let readings = prop::collection::vec(reading(), 32);
    let strategy = (before, readings, prop::collection::vec(step(), 1..25), cuts(), cuts());
    runner
        .run(&strategy, |(before, readings, steps, batches, slices)| {
            // One model knows what the checkpoint tells, the other what was there before, too.
            let mut model = Model::default();
            let mut truth = Model { images: (0..).zip(before).collect(), ..Model::default() };
            // What a shift moves has to be the same rows in both.
            let steps: Vec<Step> = steps.into_iter().filter(|step| !matches!(step, Step::ShiftAll(_))).collect();
            for step in &steps {
                model.take(step);
                truth.take(step);
            }
            prop_assume!(!model.rows.is_empty());
            let (mut rows, mut plans) = (vec![], vec![]);
            let mut expected = Model { last: model.last.clone(), rows: model.rows.clone(), ..Model::default() };
            let mut met = BTreeSet::new();
            for (n, (id, image)) in model.images.iter().enumerate() {
                let lacks = image.0 == Cell::Absent || image.1 == Cell::Absent;
                // A row that nobody ever told whole has something, whatever it is.
                let spare = (Cell::Is("spare".to_owned()), Cell::Is(77));
                let known = &truth.images[id];
                let known = (or(&known.0, &spare.0), or(&known.1, &spare.1));
                let reading = readings[n];
                let (row, whole, becomes) = match reading {
                    Reading::Exact => (Some(known.clone()), false, Some(known)),
                    Reading::Later => {
                        let later = (Cell::Is("later".to_owned()), Cell::Null);
                        (Some(later.clone()), true, Some(later))
                    }
                    Reading::Gone => (None, true, None),
                };
                // An image that lacks nothing takes nothing, whatever was read for it.
                let becomes = if lacks { becomes } else { Some(image.clone()) };
                expected.images.extend(becomes.map(|becomes| (*id, becomes)));
                plans.push((*id, row.is_some().then_some(rows.len()), whole));
                rows.extend(row.map(|row| (*id, row)));
                let class = if lacks { reading } else { Reading::Exact };
                let mut saw = |what: &'static str, is: bool| {
                    if is {
                        met.insert(what);
                    }
                };
                saw("values filled", lacks && class == Reading::Exact);
                saw("later rows", class == Reading::Later);
                saw("rows gone", class == Reading::Gone);
                saw("nothing taken", !lacks && reading != Reading::Exact);
            }
            let all = ["values filled", "later rows", "rows gone", "nothing taken"];
            classes.note(&all.map(|class| (class, met.contains(class))));
            rows.push((99, (Cell::Null, Cell::Null)));
            let again = read_rows(&rows);
            let keys: Vec<Vec<u8>> = plans.iter().map(|(id, ..)| (id ^ i64::MIN).to_be_bytes().to_vec()).collect();
            let of = |((_, row, whole), key): (&(i64, Option<usize>, bool), &'_ Vec<u8>)| {
                let row = row.map(|row| Slice { rows: row..row + 1, ..again.clone() });
                (key.clone(), row, *whole)
            };
            let owned: Vec<(Vec<u8>, Option<Slice>, bool)> = plans.iter().zip(&keys).map(of).collect();
            let read: Vec<ReadAgain<'_>> =
                owned.iter().map(|(key, row, whole)| ReadAgain { key, row: row.clone(), whole: *whole }).collect();
            let slices = cut(&model.rows, &batches, &slices);
            match net_filled(&slices, NUMBERING, None, &read).expect("nets") {
                NetOutcome::Netted(netted) => check_net(&expected, &netted),
                NetOutcome::Holes(holes) => Err(TestCaseError::fail(format!("{holes:?}"))),
            }
        })
        .unwrap_or_else(|error| panic!("{error}"));
    classes.assert_all_met();
}

#[test]
fn appending_keeps_every_row_as_replaying_shows_it() {
    let classes = Classes::default();
    let mut runner = TestRunner::new(Config { cases: 1_000, ..Config::default() });
    let cuts = || prop::collection::btree_set(0usize..40, 0..6);
    // Where a row with a hole anywhere is refused as a whole, most logs would be, so half of them have whole rows only.
    let steps = prop_oneof![prop::collection::vec(step(), 1..12), prop::collection::vec(whole_step(), 1..25)];
    runner
        .run(&(steps, cuts(), cuts()), |(steps, batches, slices)| {
            let mut model = Model::default();
            let mut images: Vec<Option<Values>> = Vec::new();
            for step in &steps {
                model.take(step);
                // Each row's image, at the moment after it; a delete has none. Of a shift only the last state is known here.
                for row in &model.rows[images.len()..] {
                    images.push((row.operation != Delete).then(|| model.images.get(&row.id).cloned()).flatten());
                }
            }
            prop_assume!(!model.rows.is_empty());
            let has_hole = images.iter().flatten().any(|values| values.0 == Cell::Absent || values.1 == Cell::Absent);
            let slices = cut(&model.rows, &batches, &slices);
            classes.note(&[
                ("holes", has_hole),
                ("whole rows", !has_hole),
                ("values filled", !has_hole && model.filled),
                ("rows moved", !has_hole && model.moved),
                ("deletes", !has_hole && model.rows.iter().any(|row| row.operation == Delete)),
                ("several slices", !has_hole && slices.len() > 1),
            ]);
            match append(&slices, NUMBERING).expect("appends") {
                NetOutcome::Holes(_) => prop_assert!(has_hole),
                NetOutcome::Netted(netted) => {
                    prop_assert!(!has_hole);
                    let operations: Vec<Operation> = model.rows.iter().map(|row| row.operation).collect();
                    prop_assert_eq!(&netted.upsert_tail.operations, &operations);
                    prop_assert_eq!(netted.upserts.num_rows(), model.rows.len());
                    let versions: Vec<Version> = (0..model.rows.len() as u64).map(|n| Version((2 << 44) + 9 + n)).collect();
                    prop_assert_eq!(&netted.upsert_versions, &versions);
                    for ((id, values), (row, image)) in contents(&netted.upserts).into_iter().zip(model.rows.iter().zip(&images))
                    {
                        prop_assert_eq!(id, row.id);
                        if let Some(image) = image {
                            prop_assert_eq!(&values, image);
                        }
                    }
                }
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    classes.assert_all_met();
}
