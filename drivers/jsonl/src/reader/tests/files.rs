//! Files that grow, follow one another, are cut, replaced, or hold what is no event.

use std::fs;
use std::time::{Duration, Instant};

use contract::{Error, Kind, LogReader, Source, Start};
use kernel::position::{Offset, Position};
use serde_json::json;

use crate::testing::*;

fn row(id: u64) -> String {
    create("t", id, &format!("{{\"id\":{id}}}"))
}

fn table() -> contract::TableRequest {
    request("s.t", &["id"], &[("id", "int64")])
}

/// The ids of the rows, the kind and code of the error.
fn ids(read: (Vec<String>, Option<Error>)) -> (Vec<String>, Option<(Kind, &'static str)>) {
    let ids = read.0.iter().filter_map(|line| line.split_once("id=").map(|(_, id)| id.to_owned())).collect();
    (ids, read.1.map(|error| (error.kind, error.code)))
}

#[test]
fn the_files_of_a_glob_are_read_one_after_the_other() {
    let folder = Folder::new("*.jsonl", json!({}));
    folder.write("b.jsonl", row(3));
    folder.write("a.jsonl", row(1) + &row(2) + "\n");
    folder.write("c.jsonl", "");
    let tables = folder.describe(&[table()]);
    let at = row(1).len();
    assert_eq!(
        folder.read(&Position::START, &tables, ALL),
        (
            vec![
                "a.jsonl@0 s.t Insert 0.1: id=1".to_owned(),
                format!("a.jsonl@0 ended a.jsonl:{at} Some(1000)"),
                format!("a.jsonl@{at} s.t Insert {at}.1: id=2"),
                format!("a.jsonl@{at} ended a.jsonl:{} Some(2000)", 2 * at),
                // Its last bytes too, so that it is known to be complete before the next one begins.
                format!("keepalive a.jsonl:{}", 2 * at + 1),
                "b.jsonl@0 s.t Insert 0.1: id=3".to_owned(),
                format!("b.jsonl@0 ended b.jsonl:{at} Some(3000)"),
            ],
            None
        )
    );
    let from: Position = [("a.jsonl".into(), Offset(2 * at as u64 + 1))].into_iter().collect();
    assert_eq!(ids(folder.read(&from, &tables, ALL)), (vec!["3".to_owned()], None));
    let from = from.join(&Position::of("b.jsonl".into(), Offset(at as u64)));
    assert_eq!(ids(folder.read(&from, &tables, ALL)), (vec![], None));
}

#[test]
fn a_transaction_never_reaches_into_the_next_file() {
    let folder = Folder::new("*", json!({}));
    folder.write("a", create("t", 1, "{\"id\":1}"));
    folder.write("b", create("t", 1, "{\"id\":2}"));
    let tables = folder.describe(&[table()]);
    let told = folder.read(&Position::START, &tables, ALL).0;
    assert!(told[1].starts_with("a@0 ended a:") && told[2].starts_with("b@0 s.t Insert"), "{told:?}");
    assert_eq!(folder.source.counts().now().pieces, 0);
}

#[test]
fn a_log_that_is_followed_is_read_as_it_grows_and_goes_on_to_new_files() {
    let folder = Folder::new("*", json!({ "follow": true }));
    let tables = folder.describe(&[table()]);
    let mut core = folder.core(&Position::START, &tables).unwrap();
    let begin = Instant::now();
    let mut second = 0;
    let mut look = || {
        second += 1;
        let read = core.read(ALL, begin + Duration::from_secs(second), 0).unwrap();
        assert!(!read.finished);
        ids((told(&read), None)).0
    };
    assert!(look().is_empty());
    folder.write("a", row(1));
    assert_eq!(look(), ["1"]);
    folder.append("a", &row(2)[..10]);
    assert!(look().is_empty());
    folder.append("a", &row(2)[10..]);
    assert_eq!(look(), ["2"]);
    // What was written to the old file before the new one came is read first.
    folder.append("a", row(3));
    folder.write("b", row(4));
    assert_eq!(look(), ["3", "4"]);
    folder.write("c", row(5));
    folder.append("b", row(6));
    assert_eq!(look(), ["6", "5"]);
}

#[test]
fn a_log_that_is_followed_stops_when_an_earlier_file_changes() {
    let begin = Instant::now();
    let late = begin + Duration::from_secs(10);
    let stop = |change: &dyn Fn(&Folder)| {
        let folder = Folder::new("*", json!({ "follow": true }));
        folder.write("b", row(1));
        folder.write("c", row(2));
        let tables = folder.describe(&[table()]);
        let mut core = folder.core(&Position::START, &tables).unwrap();
        assert_eq!(ids((told(&core.read(ALL, begin, 0).unwrap()), None)).0, ["1", "2"]);
        change(&folder);
        // What was open until now is handed out first, and the error comes again.
        let mut errors = (0..4).filter_map(|_| core.read(ALL, late, 0).err()).map(|error| (error.kind, error.code));
        let first = errors.next();
        assert!(first.is_some() && errors.all(|error| Some(error) == first));
        first.unwrap()
    };
    assert_eq!(stop(&|folder| folder.append("b", row(3))), (Kind::Config, "jsonl-file-order"));
    assert_eq!(stop(&|folder| folder.write("a", row(3))), (Kind::Config, "jsonl-file-order"));
    assert_eq!(stop(&|folder| folder.write("c", "")), (Kind::PositionLost, "jsonl-file-shorter"));
    let replace = |folder: &Folder| {
        fs::rename(folder.path("c"), folder.dir.path().join("../moved-away")).ok();
        fs::remove_file(folder.path("c")).ok();
        folder.write("d-new", row(2) + &row(3));
        fs::rename(folder.path("d-new"), folder.path("c")).unwrap();
    };
    assert_eq!(stop(&replace), (Kind::PositionLost, "jsonl-file-replaced"));
    assert_eq!(stop(&|folder| fs::rename(folder.path("c"), folder.path("c.1")).unwrap()), (Kind::Config, "jsonl-file-order"));
}

#[test]
fn a_log_that_is_not_followed_stops_at_its_end_if_an_earlier_file_grew() {
    let folder = Folder::new("*", json!({}));
    folder.write("a", row(1));
    folder.write("b", row(2) + &row(3));
    let tables = folder.describe(&[table()]);
    let mut core = folder.core(&Position::START, &tables).unwrap();
    core.read(contract::Limit { rows: 2, bytes: u64::MAX }, Instant::now(), 0).unwrap();
    folder.append("a", row(4));
    assert_eq!(ids((told(&core.read(ALL, Instant::now(), 0).unwrap()), None)).0, ["3"]);
    let error = core.read(ALL, Instant::now(), 0).unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-file-order"));
}

#[test]
fn a_position_of_another_file_is_lost() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", row(1) + &row(2));
    let tables = folder.describe(&[table()]);
    let at = row(1).len() as u64;
    let open =
        |offset: u64| folder.core(&Position::of("a".into(), Offset(offset)), &tables).map(|_| ()).map_err(|e| (e.kind, e.code));
    assert_eq!(open(at), Ok(()));
    assert_eq!(open(2 * at), Ok(()));
    assert_eq!(open(at + 1), Err((Kind::PositionLost, "jsonl-not-a-line")));
    assert_eq!(open(2 * at + 1), Err((Kind::PositionLost, "jsonl-file-shorter")));
    fs::remove_file(folder.path("a")).unwrap();
    assert_eq!(open(at), Err((Kind::PositionLost, "jsonl-file-gone")));
}

#[test]
fn a_line_that_is_no_event_stops_the_source_after_everything_before_it() {
    let good = row(1);
    for (line, code, what) in [
        (&b"{\"op\":\n"[..], "jsonl-malformed", "not JSON: the text ends where a value is expected, at byte 7 of the line"),
        (b"{\"op\":\"\xff\"}\n", "jsonl-encoding", "not UTF-8 from byte 8 of the line on"),
        (b"{\"a\":1}\n", "jsonl-not-an-event", "JSON, but no change event: 'op' is missing"),
        (
            b"{\"op\":\"x\",\"source\":{\"table\":\"t\"}}\n",
            "jsonl-operation",
            "a change event with the unknown operation 'x'; known are c, u, d, r, t and m",
        ),
        (
            b"{\"schema\":{},\"payload\":{\"op\":\"c\",\"source\":{\"table\":\"t\"}}}\n",
            "jsonl-schema-part",
            "a change event whose schema part cannot be read: missing field `type` at line 1 column 2",
        ),
    ] {
        let folder = Folder::new("a", json!({}));
        folder.write("a", [good.as_bytes(), line, row(2).as_bytes()].concat());
        let tables = folder.describe(&[table()]);
        let (told, error) = folder.read(&Position::START, &tables, ALL);
        assert_eq!(told, ["a@0 s.t Insert 0.1: id=1"], "the transaction may go on after the line");
        let error = error.unwrap();
        assert_eq!((error.kind, error.code), (Kind::Poison, code));
        let place = format!("{}, line 2 (byte {})", folder.path("a").display(), good.len());
        assert_eq!(error.what, format!("{place}: {what}"));
        assert!(error.remedy.contains("onDecodeError: skip"), "{}", error.remedy);
    }
}

#[test]
fn a_finished_transaction_before_a_line_that_is_no_event_is_handed_out_with_its_end() {
    let folder = Folder::new("a", json!({}));
    let lines = row(1) + &end_marker(1) + "nonsense\n" + &row(2);
    folder.write("a", &lines);
    let tables = folder.describe(&[table()]);
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(
        told,
        ["a@0 s.t Insert 0.1: id=1".to_owned(), format!("a@0 ended a:{} Some(1000)", (row(1) + &end_marker(1)).len())]
    );
    assert_eq!(error.unwrap().code, "jsonl-malformed");
    // The same from the place where the copy stands then.
    let from = Position::of("a".into(), Offset((row(1) + &end_marker(1)).len() as u64));
    let (told, error) = folder.read(&from, &tables, ALL);
    assert!(told.is_empty());
    assert!(error.unwrap().what.contains("line 3 (byte"));
}

#[test]
fn lines_that_are_no_events_are_counted_and_passed_over_if_the_pipeline_says_so() {
    let folder = Folder::new("a", json!({ "onDecodeError": "skip" }));
    let lines = create("t", 1, "{\"id\":1}") + "nonsense\n" + &create("t", 1, "{\"id\":2}") + "{}\n";
    folder.write("a", &lines);
    let tables = folder.describe(&[table()]);
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(error, None);
    // A line that cannot be read ends no transaction.
    assert_eq!(told.iter().filter(|line| line.starts_with("a@0 s.t Insert")).count(), 2);
    assert_eq!(told.last().unwrap(), &format!("keepalive a:{}", lines.len()));
    assert_eq!(folder.source.counts().now().skipped, 2);
}

#[test]
fn a_last_line_without_its_end_is_taken_if_it_is_complete() {
    let folder = Folder::new("a", json!({}));
    let line = row(1);
    folder.write("a", line.trim_end());
    let tables = folder.describe(&[table()]);
    let end = line.len() - 1;
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(error, None);
    assert_eq!(told, ["a@0 s.t Insert 0.1: id=1".to_owned(), format!("a@0 ended a:{end} Some(1000)")]);
    let opened = block_on(folder.source.open()).unwrap();
    assert_eq!(opened.end.to_string(), format!("a:{end}"));
    // The next run goes on there, with the line end that came since.
    folder.append("a", "\n".to_owned() + &row(2));
    let from = Position::of("a".into(), Offset(end as u64));
    assert_eq!(ids(folder.read(&from, &tables, ALL)), (vec!["2".to_owned()], None));
}

#[test]
fn a_last_line_without_its_end_that_is_not_complete_is_told_as_such() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", row(1) + &row(2)[..20]);
    let tables = folder.describe(&[table()]);
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(told, ["a@0 s.t Insert 0.1: id=1"]);
    let error = error.unwrap();
    assert_eq!((error.kind, error.code), (Kind::Poison, "jsonl-unfinished-line"));
    assert!(
        error.what.ends_with(&format!("line 2 (byte {}): the file ends in the middle of this line", row(1).len())),
        "{}",
        error.what
    );
    let opened = block_on(folder.source.open()).unwrap();
    assert_eq!(opened.end.to_string(), format!("a:{}", row(1).len()));
}

#[test]
fn an_unfinished_last_line_is_passed_over_but_not_forgotten() {
    let mut folder = Folder::new("*", json!({ "onDecodeError": "skip" }));
    folder.write("a", row(1) + &row(2)[..20]);
    let tables = folder.describe(&[table()]);
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!((told.len(), error), (2, None));
    assert_eq!(told[1], format!("a@0 ended a:{} Some(1000)", row(1).len()));
    assert_eq!(folder.source.counts().now().skipped, 1);
    // Once a later file exists nobody will finish it.
    folder.write("b", row(3));
    folder.again("*", json!({ "onDecodeError": "skip" }));
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(error, None);
    assert_eq!(told[2], format!("keepalive a:{}", row(1).len() + 20));
    assert!(told[3].ends_with("id=3"), "{told:?}");
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_are_no_part_of_the_lines() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", format!("\u{feff}{}\r\n{}\r\n\r\n", row(1).trim_end(), row(2).trim_end()));
    let tables = folder.describe(&[table()]);
    assert_eq!(ids(folder.read(&Position::START, &tables, ALL)), (vec!["1".to_owned(), "2".to_owned()], None));
}

#[test]
fn a_line_of_30_megabytes_is_read() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", row(1) + &create("t", 2, &format!("{{\"id\":2,\"v\":\"{}\"}}", "x".repeat(30 << 20))) + &row(3));
    let tables = folder.describe(&[table()]);
    let mut core = folder.core(&Position::START, &tables).unwrap();
    let read = core.read(ALL, Instant::now(), 0).unwrap();
    assert_eq!(read.batches[0].rows(), 3);
    assert!(read.batches[0].bytes() > 30 << 20);
}

#[test]
fn a_line_beyond_the_bound_is_told_with_the_bound() {
    let long = "x".repeat((64 << 20) + 1);
    let content = row(1) + &end_marker(1) + &long + "\n" + &row(2);
    let folder = Folder::new("a", json!({}));
    folder.write("a", &content);
    let tables = folder.describe(&[table()]);
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(told.len(), 2);
    let error = error.unwrap();
    assert_eq!((error.kind, error.code), (Kind::Poison, "jsonl-line-too-long"));
    assert!(error.what.contains("line 3") && error.what.ends_with("longer than 64 MiB, the most that is read"), "{}", error.what);
    let folder = Folder::new("a", json!({ "onDecodeError": "skip" }));
    folder.write("a", &content);
    assert_eq!(ids(folder.read(&Position::START, &tables, ALL)), (vec!["1".to_owned(), "2".to_owned()], None));
}

#[test]
fn the_reader_answers_again_what_was_running_when_its_caller_went_away() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", (1..=100).map(row).collect::<String>());
    let tables = folder.describe(&[table()]);
    let mut told_all = Vec::new();
    block_on(async {
        let mut reader: Box<dyn LogReader> = folder.source.stream(&Start::default(), &tables).await.unwrap();
        let limit = contract::Limit { rows: 7, bytes: u64::MAX };
        loop {
            // Polled once and dropped, then asked again.
            let _ = futures::future::poll_immediate(reader.next(limit)).await.map(|read| told_all.extend(told(&read.unwrap())));
            let read = reader.next(limit).await.unwrap();
            told_all.extend(told(&read));
            if read.finished {
                break;
            }
        }
    });
    let (expected, _) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(told_all, expected);
}

#[test]
fn a_reader_of_a_log_that_is_followed_answers_with_nothing_after_a_while() {
    let folder = Folder::new("a", json!({ "follow": true }));
    let tables = folder.describe(&[table()]);
    block_on(async {
        let mut reader = folder.source.stream(&Start::default(), &tables).await.unwrap();
        let read = reader.next(ALL).await.unwrap();
        assert!(read.events.is_empty() && !read.finished);
        folder.write("a", row(1));
        let read = reader.next(ALL).await.unwrap();
        assert_eq!(told(&read), ["a@0 s.t Insert 0.1: id=1"]);
    });
}
