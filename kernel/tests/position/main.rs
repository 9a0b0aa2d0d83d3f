//! The laws of positions and cuts, of every shape. Every generator says how often it made each class of pair, and at least one in twenty is of each.

mod sets;

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use kernel::id::{Identity, StreamName};
use kernel::position::{Coordinate, Cut, Difference, Digest, Interval, LogIdentity, Offset, Position, Transaction};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Streams of one log, one with a name that must be escaped.
const STREAMS: [&str; 3] = ["", "b,: %", "c"];
/// A stream that no position of that log names.
const FOREIGN: &str = "elsewhere";

/// Places of a stream that a position may hold: the beginnings of transactions, or of what lies between them.
const PLACES: u64 = 5;

/// The places whose bits are set.
fn places(bits: u64) -> impl Iterator<Item = u64> {
    (0..PLACES).filter(move |at| bits & (1 << at) != 0)
}

/// A prefix of each stream, or any set.
fn position() -> impl Strategy<Value = Position> {
    let prefix = (0u64..4).prop_map(|offset| (1 << offset) - 1);
    let held = prop_oneof![prefix, 0u64..1 << PLACES];
    proptest::collection::vec(held, STREAMS.len()).prop_map(|held| {
        let of = |(stream, bits): (&&str, u64)| {
            let stream = StreamName::from(*stream);
            places(bits).map(move |at| (stream.clone(), Interval { from: Offset(at), to: Offset(at + 1) })).collect::<Vec<_>>()
        };
        STREAMS.iter().zip(held).flat_map(of).collect()
    })
}

/// Pairs of every class: any two, the same twice, one that contains the other, one of another log.
fn pair() -> impl Strategy<Value = (Position, Position)> {
    prop_oneof![
        3 => (position(), position()),
        1 => position().prop_map(|p| (p.clone(), p)),
        1 => (position(), position()).prop_map(|(a, b)| (a.join(&b), b)),
        1 => (position(), position()).prop_map(|(a, b)| (a.meet(&b), b)),
        1 => (position(), 0u64..3, 1u64..4).prop_map(|(a, from, o)| (a, elsewhere(from, from + o))),
    ]
}

fn elsewhere(from: u64, to: u64) -> Position {
    Position::between(StreamName::from(FOREIGN), Offset(from), Offset(to))
}

/// The same cases at every run. `PROPTEST_CASES` tries more of them, `PROPTEST_RNG_SEED` others.
fn runner() -> TestRunner {
    let asked = Config::default();
    let rng_seed = if asked.rng_seed == RngSeed::Random { RngSeed::Fixed(2026) } else { asked.rng_seed };
    TestRunner::new(Config { cases: asked.cases.max(2_000), rng_seed, failure_persistence: None, ..asked })
}

#[derive(Default)]
struct Classes(RefCell<BTreeMap<&'static str, u32>>);

impl Classes {
    fn note(&self, order: Option<Ordering>, foreign: bool) {
        let class = match order {
            _ if foreign => "foreign",
            Some(Ordering::Equal) => "equal",
            Some(Ordering::Less) => "less",
            Some(Ordering::Greater) => "greater",
            None => "incomparable",
        };
        *self.0.borrow_mut().entry(class).or_default() += 1;
    }

    fn assert_all_met(&self) {
        let classes = self.0.borrow();
        let all: u32 = classes.values().sum();
        for class in ["equal", "less", "greater", "incomparable", "foreign"] {
            let met = classes.get(class).copied().unwrap_or(0);
            assert!(met * 20 >= all, "{class}: {met} of {all}: {classes:?}");
        }
    }
}

fn is_foreign(position: &Position) -> bool {
    position.streams().any(|(s, _)| s.as_str() == FOREIGN)
}

fn for_pairs(law: impl Fn(Position, Position) -> Result<(), TestCaseError>) {
    let classes = Classes::default();
    let run = runner().run(&pair(), |(a, b)| {
        classes.note(a.compare(&b), is_foreign(&b));
        law(a, b)
    });
    run.unwrap();
    classes.assert_all_met();
}

/// Three positions, the first two of every class.
fn for_triples(law: impl Fn(Position, Position, Position) -> Result<(), TestCaseError>) {
    let classes = Classes::default();
    let run = runner().run(&(pair(), position()), |((a, b), c)| {
        classes.note(a.compare(&b), is_foreign(&b));
        law(a, b, c)
    });
    run.unwrap();
    classes.assert_all_met();
}

#[test]
fn containing_is_a_partial_order() {
    for_pairs(|a, b| {
        prop_assert!(a.contains(&a) && a.contains(&Position::START));
        prop_assert_eq!(a.contains(&b) && b.contains(&a), a == b);
        prop_assert_eq!(a.compare(&b), b.compare(&a).map(Ordering::reverse));
        Ok(())
    });
    for_triples(|a, b, c| {
        for (a, b, c) in [(&a, &b, &c), (&a.join(&b).join(&c), &a.join(&b), &a), (&b.join(&c), &b, &b.meet(&c))] {
            prop_assert!(!(a.contains(b) && b.contains(c)) || a.contains(c), "transitive: {a} {b} {c}");
        }
        Ok(())
    });
}

#[test]
fn join_is_the_smallest_that_contains_both_and_meet_the_largest_that_both_contain() {
    for_pairs(|a, b| {
        let (join, meet) = (a.join(&b), a.meet(&b));
        prop_assert!(join.contains(&a) && join.contains(&b) && a.contains(&meet) && b.contains(&meet));
        prop_assert_eq!(&join, &b.join(&a));
        prop_assert_eq!(&meet, &b.meet(&a));
        prop_assert_eq!(a.join(&meet), a.clone());
        prop_assert_eq!(a.meet(&join), a.clone());
        prop_assert_eq!(join == a, a.contains(&b));
        prop_assert_eq!(meet == b, a.contains(&b));
        Ok(())
    });
    for_triples(|a, b, c| {
        prop_assert_eq!(a.join(&b).join(&c), a.join(&b.join(&c)));
        prop_assert_eq!(a.meet(&b).meet(&c), a.meet(&b.meet(&c)));
        prop_assert_eq!(a.meet(&b.join(&c)), a.meet(&b).join(&a.meet(&c)));
        prop_assert_eq!(c.contains(&a) && c.contains(&b), c.contains(&a.join(&b)), "the smallest");
        prop_assert_eq!(a.contains(&c) && b.contains(&c), a.meet(&b).contains(&c), "the largest");
        Ok(())
    });
}

#[test]
fn a_position_is_the_set_of_its_transactions() {
    for_pairs(|a, b| {
        let streams = STREAMS.iter().chain([&FOREIGN]);
        let all = streams.flat_map(|s| (0..6).map(|at| Transaction { stream: StreamName::from(*s), at: Offset(at) }));
        let mut within = true;
        for transaction in all {
            let (in_a, in_b) = (a.contains_transaction(&transaction), b.contains_transaction(&transaction));
            prop_assert_eq!(a.join(&b).contains_transaction(&transaction), in_a || in_b);
            prop_assert_eq!(a.meet(&b).contains_transaction(&transaction), in_a && in_b);
            prop_assert_eq!(a.without(&b).contains_transaction(&transaction), in_a && !in_b);
            within &= in_a || !in_b;
        }
        prop_assert_eq!(a.contains(&b), within);
        prop_assert_eq!(b.beyond(&a) == 0, within, "what is beyond is nothing where all is contained");
        Ok(())
    });
}

#[test]
fn equal_positions_have_equal_texts_and_different_ones_different_texts() {
    for_pairs(|a, b| {
        let (text, other) = (a.to_string(), b.to_string());
        prop_assert_eq!(text.parse::<Position>(), Ok(a.clone()));
        prop_assert_eq!(text == other, a == b);
        Ok(())
    });
}

#[test]
fn a_transaction_is_in_a_position_that_goes_beyond_its_beginning() {
    let at = |stream: &str, at| Transaction { stream: StreamName::from(stream), at: Offset(at) };
    let position: Position = "5,c:2".parse().unwrap();
    assert!(position.contains_transaction(&at("", 4)) && position.contains_transaction(&at("c", 1)));
    assert!(!position.contains_transaction(&at("", 5)) && !position.contains_transaction(&at("c", 2)));
    assert!(!position.contains_transaction(&at("elsewhere", 0)), "a stream that it does not name is at its beginning");
}

/// A cut over the three streams, with parts of transactions behind its whole ones.
fn cut() -> impl Strategy<Value = Cut> {
    (position(), proptest::collection::vec((0usize..3, 0u64..5, 0u64..4), 0..4)).prop_map(|(upto, parts)| {
        let mut cut = Cut::at(upto);
        // A digest is a function of the log: two cuts that got equally far in a transaction have the same.
        let furthest: BTreeMap<(usize, u64), u64> = parts.into_iter().map(|(stream, at, last)| ((stream, at), last)).collect();
        for ((stream, at), last) in furthest {
            let transaction = Transaction { stream: StreamName::from(STREAMS[stream]), at: Offset(at) };
            cut.take(&transaction, Coordinate { major: last, minor: 0 }, Digest { count: last + 1, hash: last });
        }
        cut
    })
}

fn rows() -> impl Iterator<Item = (Transaction, Coordinate)> {
    let transactions = STREAMS.iter().flat_map(|s| (0..6).map(|at| Transaction { stream: StreamName::from(*s), at: Offset(at) }));
    transactions.flat_map(|t| (0..5).map(move |major| (t.clone(), Coordinate { major, minor: 0 })))
}

#[test]
fn a_joined_cut_covers_exactly_the_rows_that_one_of_the_two_covers() {
    let (divided, several) = (RefCell::new(0), RefCell::new(0));
    let run = runner().run(&(cut(), cut()), |(a, b)| {
        *divided.borrow_mut() += u32::from(!a.is_whole());
        *several.borrow_mut() += u32::from(a.within().len() > 1);
        let joined = a.join(&b);
        for (transaction, coordinate) in rows() {
            let (of_a, of_b) = (a.covers(&transaction, coordinate), b.covers(&transaction, coordinate));
            prop_assert_eq!(joined.covers(&transaction, coordinate), of_a || of_b, "{:?} at {:?}", transaction, coordinate);
        }
        prop_assert!(joined.contains(&a) && joined.contains(&b));
        prop_assert_eq!(&joined, &b.join(&a));
        prop_assert_eq!(a.meet(&b), a.upto().meet(b.upto()), "a meet drops what is divided");
        Ok(())
    });
    run.unwrap();
    assert!(*divided.borrow() > 100 && *several.borrow() > 100, "cuts that divide transactions were among them");
}

/// Pairs of cuts of every class, as for positions.
fn cut_pair() -> impl Strategy<Value = (Cut, Cut)> {
    prop_oneof![
        4 => (cut(), cut()),
        1 => cut().prop_map(|c| (c.clone(), c)),
        1 => (cut(), cut()).prop_map(|(a, b)| (a.join(&b), b)),
        1 => (cut(), cut()).prop_map(|(a, b)| (a.clone(), a.join(&b))),
        1 => (cut(), 1u64..4).prop_map(|(a, offset)| (a, Cut::at(elsewhere(0, offset)))),
    ]
}

fn order(a: &Cut, b: &Cut) -> Option<Ordering> {
    match (a.contains(b), b.contains(a)) {
        (true, true) => Some(Ordering::Equal),
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (false, false) => None,
    }
}

fn for_cuts(law: impl Fn(Cut, Cut, Cut) -> Result<(), TestCaseError>) {
    let classes = Classes::default();
    let run = runner().run(&(cut_pair(), cut()), |((a, b), c)| {
        classes.note(order(&a, &b), is_foreign(b.upto()));
        law(a, b, c)
    });
    run.unwrap();
    classes.assert_all_met();
}

#[test]
fn a_cut_contains_another_where_it_covers_all_its_rows() {
    for_cuts(|a, b, _| {
        let all = rows().chain([(Transaction { stream: StreamName::from(FOREIGN), at: Offset(0) }, Coordinate::default())]);
        let within = all.into_iter().all(|(transaction, at)| a.covers(&transaction, at) || !b.covers(&transaction, at));
        prop_assert_eq!(a.contains(&b), within);
        Ok(())
    });
}

#[test]
fn cuts_are_a_partial_order_whose_join_is_the_smallest_that_contains_both() {
    for_cuts(|a, b, c| {
        prop_assert!(a.contains(&a) && a.contains(&Cut::default()));
        prop_assert_eq!(a.contains(&b) && b.contains(&a), a == b);
        prop_assert!(!(a.contains(&b) && b.contains(&c)) || a.contains(&c));
        prop_assert_eq!(&a.join(&a), &a);
        prop_assert_eq!(a.join(&b), b.join(&a));
        prop_assert_eq!(a.join(&b).join(&c), a.join(&b.join(&c)));
        prop_assert_eq!(c.contains(&a) && c.contains(&b), c.contains(&a.join(&b)));
        prop_assert_eq!(a.join(&b) == a, a.contains(&b));
        Ok(())
    });
}

#[test]
fn the_meet_of_cuts_is_the_largest_whole_position_that_both_contain() {
    for_cuts(|a, b, c| {
        let meet = a.meet(&b);
        prop_assert_eq!(&meet, &b.meet(&a));
        prop_assert!(a.contains(&Cut::at(meet.clone())) && b.contains(&Cut::at(meet.clone())));
        let whole = Cut::at(c.upto().clone());
        prop_assert_eq!(a.contains(&whole) && b.contains(&whole), meet.contains(c.upto()));
        Ok(())
    });
}

/// Rows of one transaction, and where a reader happens to divide them (rules P2, P3).
fn grouped() -> impl Strategy<Value = (Vec<u64>, Vec<bool>)> {
    (prop::collection::vec(any::<u64>(), 1..12), prop::collection::vec(any::<bool>(), 12))
}

#[test]
fn a_digest_does_not_depend_on_how_rows_are_grouped() {
    let groups = RefCell::new(0);
    let run = runner().run(&(position(), grouped()), |(upto, (hashes, divides))| {
        let transaction = Transaction { stream: StreamName::from("c"), at: Offset(5) };
        let one = |hash: &u64| Digest { count: 1, hash: *hash };
        let whole = hashes.iter().map(one).fold(Digest::default(), Digest::plus);
        let backwards = hashes.iter().rev().map(one).fold(Digest::default(), Digest::plus);
        prop_assert_eq!((whole.count, whole), (hashes.len() as u64, backwards));
        let mut cut = Cut::at(upto.clone());
        let mut group = Digest::default();
        for (row, hash) in hashes.iter().enumerate() {
            group = group.plus(one(hash));
            if divides[row] || row + 1 == hashes.len() {
                *groups.borrow_mut() += 1;
                cut.take(&transaction, Coordinate { major: row as u64, minor: 0 }, group);
                group = Digest::default();
            }
        }
        let within = cut.within().get(&transaction).copied();
        let last = Coordinate { major: hashes.len() as u64 - 1, minor: 0 };
        prop_assert_eq!(within.map(|w| (w.last, w.digest)), Some((last, whole)));
        prop_assert_eq!(cut.upto(), &upto, "a transaction is in `upto` from its end on, not from its first row (rule P1)");
        // Its end, and it is one of the whole ones.
        let end = Position::of(transaction.stream.clone(), Offset(6));
        cut.join_position(&end);
        prop_assert!(cut.is_whole() && cut.upto() == &upto.join(&end));
        Ok(())
    });
    run.unwrap();
    assert!(*groups.borrow() > 4_000, "transactions were divided: {}", groups.borrow());
}

#[test]
fn one_row_less_is_another_digest() {
    let run = runner().run(&grouped(), |(hashes, _)| {
        let sum = |hashes: &[u64]| hashes.iter().fold(Digest::default(), |sum, h| sum.plus(Digest { count: 1, hash: *h }));
        prop_assert_ne!(sum(&hashes), sum(&hashes[1..]));
        Ok(())
    });
    run.unwrap();
}

#[test]
fn any_name_and_any_offset_go_through_the_text() {
    let named = (".{0,6}", any::<u64>());
    let run = runner().run(&prop::collection::vec(named, 0..4), |streams| {
        let position: Position = streams.iter().map(|(s, o)| (StreamName::from(s.as_str()), Offset(*o))).collect();
        let text = position.to_string();
        prop_assert_eq!(text.parse::<Position>(), Ok(position.clone()));
        let stored = serde_json::to_string(&position).unwrap();
        prop_assert_eq!(serde_json::from_str::<Position>(&stored).unwrap(), position);
        Ok(())
    });
    run.unwrap();
    // And what is not made by us is refused or means exactly itself.
    let parsed = RefCell::new(0);
    let any_text = runner().run(&"[ab]?:?[1-9]?(\\.\\.)?[1-9](\\+[1-9]\\.\\.[1-9])?|[a-c0-9:,% .+]{0,12}", |text| {
        match text.parse::<Position>() {
            Ok(position) => {
                *parsed.borrow_mut() += 1;
                prop_assert_eq!(position.to_string(), text);
            }
            Err(error) => prop_assert!(text[error.at..].starts_with(&error.part), "it says where: {}", error),
        }
        Ok(())
    });
    any_text.unwrap();
    assert!(*parsed.borrow() > 100, "some are positions: {}", parsed.borrow());
    for name in ["%", ",", ":", " ", "a:b,c d%25"] {
        let position = Position::of(StreamName::from(name), Offset(7));
        assert_eq!(position.to_string().parse::<Position>(), Ok(position));
    }
}

#[test]
fn a_stored_cut_is_read_back_as_it_was() {
    for_cuts(|a, b, _| {
        let text = |cut: &Cut| serde_json::to_string(cut).unwrap();
        prop_assert_eq!(serde_json::from_str::<Cut>(&text(&a)).unwrap(), a.clone());
        prop_assert_eq!(text(&a) == text(&b), a == b, "equal byte for byte, and only then");
        Ok(())
    });
}

#[test]
fn a_position_of_another_history_is_told_by_its_streams() {
    let log = |streams: &[(&str, &str)]| LogIdentity {
        streams: streams.iter().map(|(s, i)| (StreamName::from(*s), Identity::from(*i))).collect(),
        ..LogIdentity::default()
    };
    let stored = log(&[("a", "1"), ("b", "2")]);
    assert_eq!(stored.differs_from(&log(&[("a", "1"), ("b", "2"), ("c", "3")])), None, "a stream that appeared is no difference");
    assert_eq!(stored.differs_from(&log(&[("a", "1")])), None, "nor is one that is gone");
    let other = log(&[("a", "1"), ("b", "9")]);
    let difference = |stream: Option<&str>, was: &str, is: &str| {
        Some(Difference { stream: stream.map(StreamName::from), was: Identity::from(was), is: Identity::from(is) })
    };
    assert_eq!(stored.differs_from(&other), difference(Some("b"), "2", "9"));
    assert!(
        stored.knows(&StreamName::from("a")) && !stored.knows(&StreamName::from("c")),
        "of a stream that is gone it says nothing"
    );

    let group = |lineage: &str| LogIdentity { lineage: Some(Identity::from(lineage)), ..LogIdentity::default() };
    assert_eq!(group("g1").differs_from(&group("g1")), None);
    assert_eq!(group("g1").differs_from(&group("g2")), difference(None, "g1", "g2"));
    assert_eq!(
        group("g1").differs_from(&stored),
        difference(None, "g1", "its streams"),
        "a history as a whole is none of streams"
    );
    assert_eq!(stored.differs_from(&group("g1")), difference(None, "its streams", "g1"));
    assert_eq!(group("g1").differs_from(&LogIdentity::default()), None, "what was never read is no other log");
    assert!(group("g1").knows(&StreamName::from("a")), "an origin that its end does not name is at its beginning");
}
