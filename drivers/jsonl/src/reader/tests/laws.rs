//! Laws over logs of any kind: the same rows, coordinates, transactions and ends come however the log is read and wherever
//! reading begins again.

use std::collections::BTreeMap;
use std::time::Instant;

use contract::{Limit, LogEvent, LogRead};
use kernel::position::{Offset, Position};
use proptest::prelude::*;
use serde_json::json;

use crate::reader::Core;
use crate::testing::*;

/// A line of a generated log.
#[derive(Clone, Debug)]
enum Piece {
    Row { op: char, table: u8, id: u8, other: u8, value: u8 },
    NextTransaction,
    End,
    Tombstone,
    Blank,
    Message,
    NextFile,
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let row = (prop::sample::select(vec!['c', 'c', 'u', 'u', 'k', 'd', 'r', 't', 'x']), 0..3_u8, 0..5_u8, 0..5_u8, any::<u8>())
        .prop_map(|(op, table, id, other, value)| Piece::Row { op, table, id, other, value });
    let piece = prop_oneof![
        12 => row,
        3 => Just(Piece::NextTransaction),
        2 => Just(Piece::End),
        1 => Just(Piece::Tombstone),
        1 => Just(Piece::Blank),
        1 => Just(Piece::Message),
        1 => Just(Piece::NextFile),
    ];
    proptest::collection::vec(piece, 1..60)
}

/// Files by name. Tables 0 and 1 are asked for, table 2 is not.
fn files(pieces: &[Piece]) -> BTreeMap<String, String> {
    let (mut files, mut file, mut transaction) = (BTreeMap::new(), 0, 1);
    files.insert("f00".to_owned(), String::new());
    for piece in pieces {
        let line = match piece {
            Piece::NextFile => {
                file += 1;
                files.insert(format!("f{file:02}"), String::new());
                continue;
            }
            Piece::NextTransaction => {
                transaction += 1;
                continue;
            }
            Piece::End => end_marker(transaction),
            Piece::Tombstone => "null\n".to_owned(),
            Piece::Blank => " \r\n".to_owned(),
            Piece::Message => format!(
                "{{\"op\":\"m\",\"source\":{{\"connector\":\"postgresql\",\"schema\":\"\",\"table\":\"\",\"txId\":{transaction}}}}}\n"
            ),
            Piece::Row { op, table, id, other, value } => {
                let (table, transaction) = (format!("t{table}"), transaction);
                let row = format!("{{\"id\":{id},\"v\":{value}}}");
                match op {
                    'k' => event("u", &table, transaction, &format!("{{\"id\":{other}}}"), &row),
                    'd' => event("d", &table, transaction, &row, "null"),
                    't' => event("t", &table, transaction, "null", "null"),
                    // A value that does not fit.
                    'x' => event("c", &table, transaction, "null", &format!("{{\"id\":{id},\"v\":\"{value}\"}}")),
                    op => event(&op.to_string(), &table, transaction, "null", &row),
                }
            }
        };
        files.get_mut(&format!("f{file:02}")).unwrap().push_str(&line);
    }
    files
}

fn folder(files: &BTreeMap<String, String>) -> Folder {
    let folder = Folder::new("f*", json!({}));
    for (name, content) in files {
        folder.write(name, content);
    }
    folder
}

fn tables(folder: &Folder) -> Vec<std::sync::Arc<rows::TableSchema>> {
    let columns = [("id", "int32"), ("v", "int32")];
    folder.describe(&[request("s.t0", &["id"], &columns), request("s.t1", &["id"], &columns)])
}

fn all_reads(core: &mut Core, limits: &[Limit]) -> Vec<LogRead> {
    let mut reads = Vec::new();
    for limit in limits.iter().cycle() {
        let read = core.read(*limit, Instant::now(), 0).unwrap();
        let finished = read.finished;
        reads.push(read);
        if finished {
            break;
        }
    }
    reads
}

/// All that was told, but keepalives: those depend on where reads end.
fn lasting(reads: &[LogRead]) -> Vec<String> {
    reads.iter().flat_map(told).filter(|line| !line.starts_with("keepalive")).collect()
}

/// Where each thing happened, and the positions that were told, in order.
enum Told {
    At(String, u64),
    Upto(Position),
}

fn places(reads: &[LogRead]) -> Vec<Told> {
    let mut all = Vec::new();
    for read in reads {
        for event in &read.events {
            match event {
                LogEvent::Rows { batch, rows, transaction } => {
                    let coordinates = &read.batches[*batch].tail.coordinates[rows.clone()];
                    all.extend(coordinates.iter().map(|at| Told::At(transaction.stream.to_string(), at.major)));
                }
                LogEvent::Truncated { transaction, coordinate, .. }
                | LogEvent::Schema { transaction, coordinate, .. }
                | LogEvent::Refused { transaction, coordinate, .. } => {
                    all.push(Told::At(transaction.stream.to_string(), coordinate.major));
                }
                LogEvent::Ended { upto, .. } | LogEvent::Keepalive { upto } => all.push(Told::Upto(upto.clone())),
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_read_does_not_depend_on_the_limits(
        pieces in pieces(),
        limits in proptest::collection::vec((1..8_usize, 1..4_000_u64), 1..4),
    ) {
        let folder = folder(&files(&pieces));
        let tables = tables(&folder);
        let whole = all_reads(&mut folder.core(&Position::START, &tables).unwrap(), &[ALL]);
        let limits: Vec<_> = limits.into_iter().map(|(rows, bytes)| Limit { rows, bytes }).collect();
        let divided = all_reads(&mut folder.core(&Position::START, &tables).unwrap(), &limits);
        prop_assert_eq!(lasting(&whole), lasting(&divided));
        for read in &divided {
            // The rows of one change are never divided: a pair may go over the limit by one.
            let rows: usize = read.batches.iter().map(|batch| batch.rows()).sum();
            prop_assert!(rows <= limits.iter().map(|limit| limit.rows).max().unwrap_or_default() + 1);
        }
    }

    #[test]
    fn reading_goes_on_at_any_position_that_was_told(pieces in pieces(), limit in 1..8_usize) {
        let folder = folder(&files(&pieces));
        let tables = tables(&folder);
        let reads = all_reads(&mut folder.core(&Position::START, &tables).unwrap(), &[Limit { rows: limit, bytes: u64::MAX }]);
        let everything = lasting(&reads);
        let mut told_before = 0;
        let mut from = Position::START;
        for line in reads.iter().flat_map(told) {
            let upto: Option<Position> = match line.strip_prefix("keepalive ") {
                Some(upto) => Some(upto.parse().unwrap()),
                None => {
                    told_before += 1;
                    line.split_once(" ended ").map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap())
                }
            };
            let Some(upto) = upto else { continue };
            from.join_with(&upto);
            let suffix = lasting(&all_reads(&mut folder.core(&from, &tables).unwrap(), &[ALL]));
            prop_assert_eq!(&suffix, &everything[told_before..], "from {}", from);
        }
        // At the end of a log that was read, its end was told.
        let end = futures::executor::block_on(contract::Source::open(&folder.source)).unwrap().end;
        prop_assert_eq!(from, end);
    }

    #[test]
    fn no_position_passes_what_was_not_told_before_it(pieces in pieces(), limit in 1..8_usize) {
        let folder = folder(&files(&pieces));
        let tables = tables(&folder);
        let reads = all_reads(&mut folder.core(&Position::START, &tables).unwrap(), &[Limit { rows: limit, bytes: u64::MAX }]);
        let mut passed = Position::START;
        for told in places(&reads) {
            match told {
                Told::At(stream, major) => {
                    prop_assert!(passed.offset(&stream.as_str().into()) <= Offset(major), "{}@{} after {}", stream, major, passed);
                }
                Told::Upto(upto) => passed.join_with(&upto),
            }
        }
    }
}
