//! Positions and cuts: texts that are read back as they were written, and the laws of a partial order with meet and join, held
//! against sets of transactions.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use kernel::id::StreamName;
use kernel::position::{Coordinate, Cut, Digest, Interval, Offset, Position, Transaction};

use crate::Saw;

/// Positions of one input that are compared with each other.
const POSITIONS_MAX: usize = 4;

/// Each line is the text of a position, or a position is made of its bytes: of up to three of the streams `a`, `b` and whatever the
/// line names, so that two lines often speak of the same ones; some of them without their beginning.
pub fn position(bytes: &[u8]) -> Saw {
    let mut found: Vec<Position> = Vec::new();
    let mut taken = false;
    for line in bytes.split(|byte| *byte == b'\n').take(POSITIONS_MAX) {
        let parsed = std::str::from_utf8(line).ok().and_then(read);
        taken |= parsed.is_some();
        found.push(parsed.unwrap_or_else(|| made_of(line)));
    }
    for a in &found {
        reads_back(a);
        for b in &found {
            is_order(a, b);
            found.iter().for_each(|c| is_lattice(a, b, c));
            cuts(a, b);
        }
    }
    Saw::taken_if(taken)
}

/// What is read is written as it was; what is refused is named.
fn read(text: &str) -> Option<Position> {
    match text.parse::<Position>() {
        Ok(position) => {
            assert_eq!(position.to_string(), text, "one position has one text");
            Some(position)
        }
        Err(error) => {
            assert_eq!(error.text, text);
            assert!(!error.why.is_empty());
            None
        }
    }
}

fn reads_back(position: &Position) {
    let text = position.to_string();
    assert_eq!(text.parse::<Position>().as_ref(), Ok(position), "'{text}'");
    let json = serde_json::to_string(position).expect("a position is text");
    assert_eq!(serde_json::from_str::<Position>(&json).expect("it was written"), *position);
}

fn made_of(line: &[u8]) -> Position {
    let entries = line.chunks(4).take(3).map(|piece| {
        let name = match piece.first().map_or(0, |byte| byte % 4) {
            0 => "a".into(),
            1 => "b".into(),
            2 => String::new(),
            _ => String::from_utf8_lossy(piece).into_owned(),
        };
        let low = piece.iter().skip(1).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        let offset = if piece.get(1) == Some(&0xFF) { u64::MAX - low % 3 } else { low };
        let from = if piece.first().is_some_and(|byte| byte & 4 != 0) { offset / 2 } else { 0 };
        (StreamName::from(name), Interval { from: Offset(from), to: Offset(offset) })
    });
    entries.collect()
}

/// Transactions about which these positions could differ.
fn probes(positions: &[&Position]) -> BTreeSet<(StreamName, u64)> {
    let ends_of = |(stream, held): (&StreamName, &[Interval])| {
        let stream = stream.clone();
        held.iter().flat_map(|i| [i.from.0, i.to.0]).map(move |end| (stream.clone(), end)).collect::<Vec<_>>()
    };
    let ends = positions.iter().flat_map(|position| position.intervals()).flat_map(ends_of);
    let around =
        |(stream, end): (StreamName, u64)| [0, end.saturating_sub(1), end, end.saturating_add(1)].map(|at| (stream.clone(), at));
    ends.flat_map(around).collect()
}

fn holds(position: &Position, (stream, at): &(StreamName, u64)) -> bool {
    position.contains_transaction(&Transaction { stream: stream.clone(), at: Offset(*at) })
}

fn is_order(a: &Position, b: &Position) {
    for (_, held) in a.intervals() {
        let apart = held.windows(2).all(|two| two[0].to < two[1].from);
        assert!(!held.is_empty() && apart && held.iter().all(|i| i.from < i.to), "{a}: equal sets are equal values");
    }
    let probes = probes(&[a, b]);
    let within = |inner: &Position, outer: &Position| probes.iter().all(|tx| !holds(inner, tx) || holds(outer, tx));
    let expected = match (within(b, a), within(a, b)) {
        (true, true) => Some(Ordering::Equal),
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (false, false) => None,
    };
    assert_eq!(a.compare(b), expected, "{a} and {b}");
    assert_eq!(a.contains(b), within(b, a), "{a} and {b}");
    assert_eq!(a == b, expected == Some(Ordering::Equal), "{a} and {b}");
    assert_eq!(a.to_string() == b.to_string(), a == b);
    let (join, meet) = (a.join(b), a.meet(b));
    for transaction in &probes {
        assert_eq!(holds(&join, transaction), holds(a, transaction) || holds(b, transaction), "{a} or {b}: {transaction:?}");
        assert_eq!(holds(&meet, transaction), holds(a, transaction) && holds(b, transaction), "{a} and {b}: {transaction:?}");
        let rest = holds(a, transaction) && !holds(b, transaction);
        assert_eq!(holds(&a.without(b), transaction), rest, "{a} without {b}: {transaction:?}");
    }
    assert_eq!(a.beyond(b) == 0, b.contains(a), "{a} beyond {b}");
    let mut joined = a.clone();
    joined.join_with(b);
    assert_eq!(joined, join);
}

fn is_lattice(a: &Position, b: &Position, c: &Position) {
    assert_eq!(a.join(b).join(c), a.join(&b.join(c)));
    assert_eq!(a.meet(b).meet(c), a.meet(&b.meet(c)));
    assert_eq!((a.join(b), a.meet(b)), (b.join(a), b.meet(a)));
    assert_eq!((&a.join(&a.meet(b)), &a.meet(&a.join(b))), (a, a));
    assert_eq!(a.meet(&b.join(c)), a.meet(b).join(&a.meet(c)));
    assert!(!(a.contains(b) && b.contains(c)) || a.contains(c));
}

/// Cuts that stand at these positions and inside the transaction that follows each.
fn cuts(a: &Position, b: &Position) {
    let divided = |position: &Position, inside: &Position| {
        let mut cut = Cut::at(position.clone());
        for (n, (stream, offset)) in (0..).zip(inside.streams()) {
            let last = Coordinate { major: offset.0, minor: n };
            cut.take(&Transaction { stream: stream.clone(), at: offset }, last, Digest { count: 1, hash: offset.0 });
        }
        cut
    };
    let (left, right) = (divided(a, b), divided(b, a));
    for cut in [&left, &right] {
        assert!(cut.within().keys().all(|tx| !cut.upto().contains_transaction(tx)), "{cut:?}");
        let json = serde_json::to_string(cut).expect("a cut is JSON");
        assert_eq!(serde_json::from_str::<Cut>(&json).expect("it was written"), *cut);
    }
    let joined = left.join(&right);
    assert!(joined.contains(&left) && joined.contains(&right), "{left:?} and {right:?}");
    assert_eq!(joined, right.join(&left));
    assert_eq!(left.join(&left), left);
    assert_eq!(left.meet(&right), a.meet(b));
    let mut passed = left.clone();
    passed.join_position(b);
    assert_eq!(passed.upto(), &a.join(b));
    assert!(passed.contains(&left));
}
