//! Sets: judged by a set of numbers that knows nothing of intervals, and their text.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use kernel::id::StreamName;
use kernel::position::{Interval, Offset, Position, Transaction};
use proptest::prelude::*;

use super::{Classes, runner};

/// Origins with and without a tag, and one that no position of this log names.
const ORIGINS: [&str; 3] = ["3e11fa47", "3e11fa47:tag", "9c2b"];
const FOREIGN: &str = "elsewhere";

/// What a set holds, by origin and number, and nothing cleverer.
type Naive = BTreeSet<(&'static str, u64)>;

fn stream(origin: &str) -> StreamName {
    StreamName::from(origin)
}

fn of(naive: &Naive) -> Position {
    naive.iter().map(|(origin, n)| (stream(origin), Interval { from: Offset(*n), to: Offset(n + 1) })).collect()
}

/// Runs of numbers, as servers make them, and single ones.
fn naive() -> impl Strategy<Value = Naive> {
    let run = (0..ORIGINS.len(), 0u64..24, prop_oneof![2 => 1u64..3, 1 => 3u64..12]);
    prop::collection::vec(run, 0..7).prop_map(|runs| {
        runs.into_iter().flat_map(|(o, from, count)| (from..from + count).map(move |n| (ORIGINS[o], n))).collect()
    })
}

/// Pairs of every class.
fn pair() -> impl Strategy<Value = (Naive, Naive)> {
    prop_oneof![
        3 => (naive(), naive()),
        1 => naive().prop_map(|a| (a.clone(), a)),
        1 => (naive(), naive()).prop_map(|(a, b)| (&a | &b, b)),
        1 => (naive(), naive()).prop_map(|(a, b)| (&a & &b, b)),
        1 => (naive(), 0u64..9).prop_map(|(a, n)| (a, [(FOREIGN, n)].into())),
    ]
}

fn for_pairs(law: impl Fn(&Naive, &Naive) -> Result<(), TestCaseError>) {
    let classes = Classes::default();
    let run = runner().run(&pair(), |(a, b)| {
        classes.note(order(&a, &b), b.iter().any(|(origin, _)| *origin == FOREIGN));
        law(&a, &b)
    });
    run.unwrap();
    classes.assert_all_met();
}

fn order(a: &Naive, b: &Naive) -> Option<Ordering> {
    match (a.is_superset(b), b.is_superset(a)) {
        (true, true) => Some(Ordering::Equal),
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (false, false) => None,
    }
}

/// How many runs of neighbours there are: the least number of intervals.
fn runs(naive: &Naive) -> usize {
    naive.iter().filter(|(origin, n)| n.checked_sub(1).is_none_or(|before| !naive.contains(&(*origin, before)))).count()
}

fn pieces(position: &Position) -> usize {
    position.intervals().map(|(_, intervals)| intervals.len()).sum()
}

#[test]
fn a_set_is_what_a_set_of_numbers_is() {
    for_pairs(|a, b| {
        let (p, q) = (of(a), of(b));
        prop_assert_eq!(p.compare(&q), order(a, b));
        prop_assert_eq!(p.contains(&q), a.is_superset(b));
        prop_assert_eq!(p.join(&q), of(&(a | b)));
        prop_assert_eq!(p.meet(&q), of(&(a & b)));
        prop_assert_eq!(p.without(&q), of(&(a - b)));
        prop_assert_eq!(p.beyond(&q), (a - b).len() as u64);
        prop_assert_eq!(p.only(|s| s.as_str() == ORIGINS[1]), of(&a.iter().filter(|(o, _)| *o == ORIGINS[1]).copied().collect()));
        for (origin, n) in a | b {
            let transaction = Transaction { stream: stream(origin), at: Offset(n) };
            prop_assert_eq!(p.contains_transaction(&transaction), a.contains(&(origin, n)));
        }
        for origin in ORIGINS {
            let prefix = (0..).take_while(|n| a.contains(&(origin, *n))).count() as u64;
            prop_assert_eq!(p.offset(&stream(origin)), Offset(prefix), "no further than its first hole");
        }
        // One set, one value, whatever was done to get there.
        prop_assert_eq!(pieces(&p.join(&q)), runs(&(a | b)));
        prop_assert_eq!(pieces(&p.without(&q)), runs(&(a - b)));
        Ok(())
    });
}

#[test]
fn a_set_grows_to_the_same_in_whatever_order_its_transactions_come() {
    let holes = RefCell::new(0);
    let shuffled = naive().prop_flat_map(|a| Just(a.into_iter().collect::<Vec<_>>()).prop_shuffle());
    let run = runner().run(&shuffled, |order| {
        let (mut grown, mut known) = (Position::START, Naive::new());
        for (origin, n) in order {
            let transaction = Transaction { stream: stream(origin), at: Offset(n) };
            prop_assert!(!grown.contains_transaction(&transaction));
            grown.join_with(&Position::between(stream(origin), Offset(n), Offset(n + 1)));
            known.insert((origin, n));
            prop_assert_eq!(&grown, &of(&known));
            *holes.borrow_mut() += u32::from(pieces(&grown) > 3);
        }
        Ok(())
    });
    run.unwrap();
    assert!(*holes.borrow() > 1_000, "sets with holes were among them: {}", holes.borrow());
}

#[test]
fn one_set_has_one_text() {
    for_pairs(|a, b| {
        let (p, q) = (of(a), of(b));
        prop_assert_eq!(p.to_string().parse::<Position>(), Ok(p.clone()));
        prop_assert_eq!(p.to_string() == q.to_string(), a == b);
        let stored = serde_json::to_string(&p).unwrap();
        prop_assert_eq!(serde_json::from_str::<Position>(&stored).unwrap(), p);
        Ok(())
    });
}

#[test]
fn a_text_says_from_where_to_where() {
    let held = |runs: &[(&str, u64, u64)]| -> Position {
        runs.iter().map(|(s, from, to)| (stream(s), Interval { from: Offset(*from), to: Offset(*to) })).collect()
    };
    for (text, position) in [
        ("", held(&[])),
        ("42", held(&[("", 0, 42)])),
        ("7..9", held(&[("", 7, 9)])),
        ("a:5+7..9+12..13", held(&[("a", 0, 5), ("a", 7, 9), ("a", 12, 13)])),
        ("a:7..9,a%3Atag:1", held(&[("a", 7, 9), ("a:tag", 0, 1)])),
        ("a%2Cb:7", held(&[("a,b", 0, 7)])),
        ("a:1..18446744073709551615", held(&[("a", 1, u64::MAX)])),
        ("a+b..c:2", held(&[("a+b..c", 0, 2)])),
    ] {
        assert_eq!(text.parse::<Position>(), Ok(position.clone()));
        assert_eq!(position.to_string(), text);
    }
}

#[test]
fn a_text_that_is_not_canonical_is_no_position_and_says_where() {
    for (text, why, at, part) in [
        ("0", "holds nothing", 0, "0"),
        ("07", "without zeros", 0, "07"),
        ("a:0", "holds nothing", 2, "0"),
        ("b:1,a:2", "order of their names", 4, "a:2"),
        ("a:1,a:2", "each once", 4, "a:2"),
        ("a:1,", "no number", 4, ""),
        (",", "no number", 0, ""),
        ("a", "no number", 0, "a"),
        ("a:x", "no number", 2, "x"),
        ("-1", "no number", 0, "-1"),
        (":1", "left out with its colon", 0, ":1"),
        ("a%zz:1", "unknown escape", 0, "a%zz"),
        ("a b:1", "stands escaped", 0, "a b"),
        ("a:b:1", "stands escaped", 0, "a:b"),
        ("18446744073709551616", "larger than any", 0, "18446744073709551616"),
        ("b:1,c:5+7..7", "holds nothing", 8, "7..7"),
        ("c:5+9..7", "holds nothing", 4, "9..7"),
        ("c:5+5..7", "something between", 4, "5..7"),
        ("c:5+3..7", "something between", 4, "3..7"),
        ("c:7..9+1..2", "something between", 7, "1..2"),
        ("c:0..5", "written without it", 2, "0..5"),
        ("c:5+9", "only the first", 4, "9"),
        ("c:5+7..", "no number", 4, "7.."),
        ("c:5+7..9..11", "no number", 4, "7..9..11"),
        ("c:5+", "only the first", 4, ""),
        ("c:+7..9", "no number", 2, ""),
        ("c: 5", "no number", 2, " 5"),
        ("c:+5", "no number", 2, ""),
        ("c:07..9", "without zeros", 2, "07..9"),
    ] {
        let error = text.parse::<Position>().expect_err(text);
        assert!(error.why.contains(why), "{text}: {error}");
        assert_eq!((error.at, error.part.as_str()), (at, part), "{error}");
        assert!(error.to_string().contains(text), "the error names it: {error}");
    }
}

#[test]
fn a_set_with_more_holes_than_it_may_have_says_of_which_stream() {
    let holes = |count: u64| -> Position {
        (0..count).map(|n| (stream("a"), Interval { from: Offset(2 * n), to: Offset(2 * n + 1) })).collect()
    };
    assert_eq!(holes(9).join(&Position::of(stream("b"), Offset(9))).scattered(9), None);
    assert_eq!(holes(10).scattered(9), Some(&stream("a")));
    // A hole that is filled counts no more.
    let filled = holes(10).join(&Position::between(stream("a"), Offset(1), Offset(2)));
    assert_eq!(filled.scattered(9), None);
}
