//! The laws of positions and cuts. Every generator says how often it made each class of pair, and at least one in twenty is of each.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use kernel::id::{Identity, StreamName};
use kernel::position::{Coordinate, Cut, Digest, LogIdentity, Offset, Position, Transaction};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Streams of one log, one with a name that must be escaped.
const STREAMS: [&str; 3] = ["", "b,: %", "c"];
/// A stream that no position of that log names.
const FOREIGN: &str = "elsewhere";

fn position() -> impl Strategy<Value = Position> {
    proptest::collection::vec(0u64..4, STREAMS.len())
        .prop_map(|offsets| STREAMS.iter().zip(offsets).map(|(s, o)| (StreamName::from(*s), Offset(o))).collect())
}

/// Pairs of every class: any two, the same twice, one that contains the other, one of another log.
fn pair() -> impl Strategy<Value = (Position, Position)> {
    prop_oneof![
        3 => (position(), position()),
        1 => position().prop_map(|p| (p.clone(), p)),
        1 => (position(), position()).prop_map(|(a, b)| (a.join(&b), b)),
        1 => (position(), position()).prop_map(|(a, b)| (a.meet(&b), b)),
        1 => (position(), 1u64..4).prop_map(|(a, o)| (a, Position::of(StreamName::from(FOREIGN), Offset(o)))),
    ]
}

#[derive(Default)]
struct Classes(RefCell<BTreeMap<&'static str, u32>>);

impl Classes {
    fn note(&self, a: &Position, b: &Position) {
        let foreign = b.streams().any(|(s, _)| s.as_str() == FOREIGN);
        let class = match a.compare(b) {
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

fn for_pairs(law: impl Fn(Position, Position) -> Result<(), TestCaseError>) {
    let classes = Classes::default();
    let mut runner = TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
    let run = runner.run(&pair(), |(a, b)| {
        classes.note(&a, &b);
        law(a, b)
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
    let mut runner = TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
    let transitive = runner.run(&(position(), position(), position()), |(a, b, c)| {
        let (ab, abc) = (a.join(&b), a.join(&b).join(&c));
        prop_assert!(abc.contains(&ab) && ab.contains(&a) && abc.contains(&a));
        Ok(())
    });
    transitive.unwrap();
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
    let mut runner = TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
    let associative = runner.run(&(position(), position(), position()), |(a, b, c)| {
        prop_assert_eq!(a.join(&b).join(&c), a.join(&b.join(&c)));
        prop_assert_eq!(a.meet(&b).meet(&c), a.meet(&b.meet(&c)));
        prop_assert_eq!(a.meet(&b.join(&c)), a.meet(&b).join(&a.meet(&c)));
        Ok(())
    });
    associative.unwrap();
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
fn a_text_that_is_not_canonical_is_no_position() {
    for text in ["0", "07", "a:0", "b:1,a:2", "a:1,a:2", "a:1,", ",", "a", "a:x", "-1", "a%zz:1", "18446744073709551616"] {
        let error = text.parse::<Position>().expect_err(text);
        assert!(error.to_string().contains(text), "the error names it: {error}");
    }
    assert_eq!("a%2Cb:7".parse::<Position>().map(|p| p.offset(&StreamName::from("a,b"))), Ok(Offset(7)));
    assert_eq!("".parse::<Position>(), Ok(Position::START));
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
    let mut runner = TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
    let (divided, several) = (RefCell::new(0), RefCell::new(0));
    let run = runner.run(&(cut(), cut()), |(a, b)| {
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

#[test]
fn a_stored_cut_is_read_back_as_it_was() {
    let mut runner = TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
    let run = runner.run(&cut(), |cut| {
        let text = serde_json::to_string(&cut).unwrap();
        prop_assert_eq!(serde_json::from_str::<Cut>(&text).unwrap(), cut);
        Ok(())
    });
    run.unwrap();
}

#[test]
fn a_position_of_another_history_is_told_by_its_streams() {
    let log = |streams: &[(&str, &str)]| LogIdentity {
        streams: streams.iter().map(|(s, i)| (StreamName::from(*s), Identity::from(*i))).collect(),
        coordinates: None,
    };
    let stored = log(&[("a", "1"), ("b", "2")]);
    assert_eq!(stored.differs_from(&log(&[("a", "1"), ("b", "2"), ("c", "3")])), None, "a stream that appeared is no difference");
    assert_eq!(stored.differs_from(&log(&[("a", "1")])), None, "nor is one that is gone");
    let other = log(&[("a", "1"), ("b", "9")]);
    let found = stored.differs_from(&other).map(|(s, was, is)| (s.as_str(), was.as_str(), is.as_str()));
    assert_eq!(found, Some(("b", "2", "9")));
}
