//! Transactions and positions: where they begin and end, and what is said when there is nothing to say.

use std::time::{Duration, Instant};

use kernel::position::{Offset, Position};
use serde_json::json;

use crate::testing::*;

/// Lines with the byte where each begins, and the end of all.
fn log(lines: &[String]) -> (String, Vec<usize>) {
    let at = (0..=lines.len()).map(|n| lines[..n].iter().map(String::len).sum()).collect();
    (lines.concat(), at)
}

fn row(id: u64) -> String {
    format!("{{\"id\":{id}}}")
}

#[test]
fn a_transaction_ends_at_its_marker_at_another_id_and_at_the_end_of_the_file() {
    let folder = Folder::new("a", json!({}));
    let (content, at) = log(&[
        create("t", 1, &row(1)),
        create("t", 1, &row(2)),
        end_marker(1),
        create("t", 2, &row(3)),
        create("t", 3, &row(4)),
        create("other", 3, &row(5)),
    ]);
    folder.write("a", &content);
    let tables = folder.describe(&[request("s.t", &["id"], &[])]);
    assert_eq!(
        folder.read(&Position::START, &tables, ALL),
        (
            vec![
                "a@0 s.t Insert 0.1: id=1".to_owned(),
                format!("a@0 s.t Insert {}.1: id=2", at[1]),
                format!("a@0 ended a:{} Some(1000)", at[3]),
                format!("a@{} s.t Insert {}.1: id=3", at[3], at[3]),
                format!("a@{} ended a:{} Some(2000)", at[3], at[4]),
                format!("a@{} s.t Insert {}.1: id=4", at[4], at[4]),
                format!("a@{} ended a:{} Some(3000)", at[4], at[6]),
            ],
            None
        )
    );
    assert_eq!(folder.source.counts().now().other_tables, 1);
}

#[test]
fn a_transaction_begins_at_its_first_event_whichever_tables_are_asked_for() {
    let folder = Folder::new("a", json!({}));
    let (content, at) = log(&[create("other", 1, &row(1)), create("t", 1, &row(2)), create("other", 2, &row(3))]);
    folder.write("a", &content);
    let tables = folder.describe(&[request("s.t", &["id"], &[])]);
    let (told, _) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(
        told,
        [
            format!("a@0 s.t Insert {}.1: id=2", at[1]),
            format!("a@0 ended a:{} Some(1000)", at[2]),
            format!("keepalive a:{}", at[3]),
        ]
    );
    let both = folder.describe(&[request("s.t", &["id"], &[]), request("s.other", &["id"], &[])]);
    let (told, _) = folder.read(&Position::START, &both, ALL);
    assert_eq!(told[1], format!("a@0 s.t Insert {}.1: id=2", at[1]));
}

#[test]
fn stretches_that_concern_nobody_move_the_position_on() {
    let folder = Folder::new("a", json!({}));
    let message =
        "{\"op\":\"m\",\"source\":{\"connector\":\"postgresql\",\"table\":\"\"},\"transaction\":{\"id\":\"9:1\"}}\n".to_owned();
    let (content, at) = log(&[
        create("t", 1, &row(1)),
        end_marker(1),
        "\n".to_owned(),
        "null\n".to_owned(),
        message,
        create("other", 2, &row(1)),
    ]);
    folder.write("a", &content);
    let tables = folder.describe(&[request("s.t", &["id"], &[])]);
    let (told, _) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(
        told,
        ["a@0 s.t Insert 0.1: id=1".to_owned(), format!("a@0 ended a:{} Some(1000)", at[2]), format!("keepalive a:{}", at[6])]
    );
    let counted = folder.source.counts().now();
    assert_eq!((counted.other_tables, counted.messages, counted.tombstones), (1, 1, 1));
}

#[test]
fn no_keepalive_stands_inside_a_transaction_that_was_begun() {
    let folder = Folder::new("a", json!({ "follow": true }));
    let (content, at) = log(&[create("t", 1, &row(1)), "\n".to_owned(), create("other", 1, &row(1))]);
    folder.write("a", &content);
    let tables = folder.describe(&[request("s.t", &["id"], &[("id", "int64")])]);
    let mut core = folder.core(&Position::START, &tables).unwrap();
    let now = Instant::now();
    assert_eq!(told(&core.read(ALL, now, 0).unwrap()), ["a@0 s.t Insert 0.1: id=1"]);
    assert!(told(&core.read(ALL, now, 0).unwrap()).is_empty());
    folder.append("a", end_marker(1));
    let end = at[3] + end_marker(1).len();
    assert_eq!(told(&core.read(ALL, now, 0).unwrap()), [format!("a@0 ended a:{end} Some(1000)")]);
}

#[test]
fn an_open_transaction_of_a_log_that_is_followed_ends_when_nothing_comes() {
    let folder = Folder::new("a", json!({ "follow": true, "transactionIdle": "5s" }));
    let first = create("t", 1, &row(1));
    folder.write("a", &first);
    let tables = folder.describe(&[request("s.t", &["id"], &[("id", "int64")])]);
    let mut core = folder.core(&Position::START, &tables).unwrap();
    let begin = Instant::now();
    let after = |millis| begin + Duration::from_millis(millis);
    assert_eq!(told(&core.read(ALL, after(0), 0).unwrap()), ["a@0 s.t Insert 0.1: id=1"]);
    assert!(told(&core.read(ALL, after(4_999), 0).unwrap()).is_empty());
    assert_eq!(told(&core.read(ALL, after(5_000), 0).unwrap()), [format!("a@0 ended a:{} Some(1000)", first.len())]);
    assert!(told(&core.read(ALL, after(60_000), 0).unwrap()).is_empty());
    // What comes later under the same id is a piece of its own.
    let second = create("t", 1, &row(2));
    folder.append("a", &second);
    let at = first.len();
    assert_eq!(told(&core.read(ALL, after(60_001), 0).unwrap()), [format!("a@{at} s.t Insert {at}.1: id=2")]);
    assert_eq!(folder.source.counts().now().pieces, 1);
    assert!(told(&core.read(ALL, after(65_000), 0).unwrap()).is_empty());
    let end = first.len() + second.len();
    assert_eq!(told(&core.read(ALL, after(65_001), 0).unwrap()), [format!("a@{at} ended a:{end} Some(1000)")]);
}

#[test]
fn the_pieces_of_a_transaction_are_the_same_when_the_log_is_read_again() {
    let folder = Folder::new("a", json!({ "follow": true }));
    let (content, at) =
        log(&[create("t", 1, &row(1)), create("t", 1, &row(2)), create("t", 1, &row(3)), create("t", 2, &row(4))]);
    folder.write("a", &content[..at[2]]);
    let tables = folder.describe(&[request("s.t", &["id"], &[("id", "int64")])]);
    let mut core = folder.core(&Position::START, &tables).unwrap();
    let begin = Instant::now();
    let late = begin + Duration::from_secs(60);
    core.read(ALL, begin, 0).unwrap();
    assert_eq!(told(&core.read(ALL, late, 0).unwrap()), [format!("a@0 ended a:{} Some(1000)", at[2])]);
    folder.append("a", &content[at[2]..]);
    let pieces = [
        format!("a@{} s.t Insert {}.1: id=3", at[2], at[2]),
        format!("a@{} ended a:{} Some(1000)", at[2], at[3]),
        format!("a@{} s.t Insert {}.1: id=4", at[3], at[3]),
    ];
    assert_eq!(told(&core.read(ALL, late, 0).unwrap()), pieces);
    let mut again = folder.core(&Position::START, &tables).unwrap();
    let told_again = told(&again.read(ALL, late, 0).unwrap());
    assert_eq!(told_again[..2], ["a@0 s.t Insert 0.1: id=1".to_owned(), format!("a@0 s.t Insert {}.1: id=2", at[1])]);
    assert_eq!(told_again[2], format!("a@0 ended a:{} Some(1000)", at[2]));
    assert_eq!(told_again[3..], pieces);
    // Nothing before what may be forgotten is read again.
    block_on(contract::Source::acknowledge(&folder.source, &Position::of("a".into(), Offset(at[4] as u64)))).unwrap();
    let mut forgotten = folder.core(&Position::START, &tables).unwrap();
    assert_eq!(told(&forgotten.read(ALL, late, 0).unwrap())[3], format!("a@0 ended a:{} Some(1000)", at[3]));
}

#[test]
fn another_life_divides_where_a_table_stands_though_nothing_in_the_log_says_so() {
    let folder = Folder::new("a", json!({}));
    let (content, at) = log(&[create("t", 1, &row(1)), create("t", 1, &row(2)), create("t", 1, &row(3))]);
    folder.write("a", &content);
    let tables = folder.describe(&[request("s.t", &["id"], &[("id", "int64")])]);
    let stand = |offset: usize| Position::of("a".into(), Offset(offset as u64));
    // One table took an earlier end of the file for the end of the transaction; another one has nothing of it yet.
    let start = contract::Start { from: Position::START, stands: vec![Position::START, stand(at[1])] };
    let mut core = folder.source.reader(&start, &tables).unwrap();
    let whole = told(&core.read(ALL, Instant::now(), 0).unwrap());
    let divided = [
        "a@0 s.t Insert 0.1: id=1".to_owned(),
        format!("a@0 ended a:{} Some(1000)", at[1]),
        format!("a@{} s.t Insert {}.1: id=2", at[1], at[1]),
        format!("a@{} s.t Insert {}.1: id=3", at[1], at[2]),
        format!("a@{} ended a:{} Some(1000)", at[1], at[3]),
    ];
    assert_eq!(whole, divided);
}

#[test]
fn a_stand_behind_lines_that_concern_nobody_divides_too() {
    let folder = Folder::new("a", json!({}));
    let noise = "\n".to_owned();
    let (content, at) = log(&[create("t", 1, &row(1)), noise, create("t", 1, &row(2))]);
    folder.write("a", &content);
    let tables = folder.describe(&[request("s.t", &["id"], &[("id", "int64")])]);
    let start = contract::Start { from: Position::START, stands: vec![Position::of("a".into(), Offset(at[2] as u64))] };
    let mut core = folder.source.reader(&start, &tables).unwrap();
    let told = told(&core.read(ALL, Instant::now(), 0).unwrap());
    assert_eq!(told[1], format!("a@0 ended a:{} Some(1000)", at[1]));
    assert_eq!(told[2], format!("a@{} s.t Insert {}.1: id=2", at[2], at[2]));
}

#[test]
fn events_without_an_id_are_transactions_of_their_own() {
    let folder = Folder::new("a", json!({}));
    let line = |id: u64| format!("{{\"op\":\"c\",\"source\":{{\"table\":\"t\"}},\"after\":{{\"id\":{id}}}}}\n");
    folder.write("a", line(1) + &line(2));
    let tables = folder.describe(&[request("t", &["id"], &[])]);
    let at = line(1).len();
    assert_eq!(
        folder.read(&Position::START, &tables, ALL).0,
        [
            "a@0 t Insert 0.1: id=1".to_owned(),
            format!("a@0 ended a:{at} None"),
            format!("a@{at} t Insert {at}.1: id=2"),
            format!("a@{at} ended a:{} None", 2 * at),
        ]
    );
}

#[test]
fn a_change_of_two_rows_is_never_divided_by_a_limit() {
    let folder = Folder::new("a", json!({}));
    let change = event("u", "t", 1, &row(1), &row(2));
    folder
        .write("a", create("t", 1, &row(1)) + &change + &change.replace("\"id\":2", "\"id\":3").replace("\"id\":1", "\"id\":2"));
    let tables = folder.describe(&[request("s.t", &["id"], &[])]);
    let mut core = folder.core(&Position::START, &tables).unwrap();
    let limit = contract::Limit { rows: 2, bytes: u64::MAX };
    let mut sizes = Vec::new();
    loop {
        let read = core.read(limit, Instant::now(), 0).unwrap();
        sizes.push(read.batches.iter().map(|batch| batch.rows()).sum::<usize>());
        if read.finished {
            break;
        }
    }
    assert_eq!(sizes[..2], [3, 2]);
}

#[test]
fn a_limit_of_bytes_ends_a_read_and_no_limit_stops_it() {
    let folder = Folder::new("a", json!({}));
    let lines: String = (0..50).map(|id| create("t", 1, &format!("{{\"id\":{id},\"v\":\"{}\"}}", "x".repeat(1_000)))).collect();
    folder.write("a", lines);
    let tables = folder.describe(&[request("s.t", &["id"], &[])]);
    let mut core = folder.core(&Position::START, &tables).unwrap();
    let read = core.read(contract::Limit { rows: usize::MAX, bytes: 10_000 }, Instant::now(), 0).unwrap();
    let rows: usize = read.batches.iter().map(|batch| batch.rows()).sum();
    assert!((8..=10).contains(&rows), "{rows}");
    let read = core.read(contract::Limit { rows: 0, bytes: 0 }, Instant::now(), 0).unwrap();
    assert_eq!(read.batches[0].rows(), 1);
}
