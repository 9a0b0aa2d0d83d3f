//! What a read looks like: order, batches, keys, schemas, limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::id::TableName;
use kernel::position::Position;
use rows::{ChangeBatch, EncodedKeys, Operation, TableSchema};

use super::reading::{ALL, Connection, Reading, Row};
use super::script::{self, Expected, TABLES};
use super::{SourceHarness, SourcePlace};
use crate::conformance::{Held, ensure, failed};
use crate::{Limit, LogEvent, LogRead};

pub(super) async fn fresh(harness: &dyn SourceHarness) -> Result<Box<dyn SourcePlace>, String> {
    harness.fresh().await.map_err(failed("making a fresh log"))
}

/// A log that holds the story, to its end, and where it began.
pub(super) async fn told(harness: &dyn SourceHarness) -> Result<(Box<dyn SourcePlace>, Position), String> {
    let place = fresh(harness).await?;
    let begin = beginning(&*place).await?;
    place.write(&script::story()).await.map_err(failed("writing the log"))?;
    place.finish().await.map_err(failed("ending the log"))?;
    Ok((place, begin))
}

/// Where a log begins whose source may have been used before.
pub(super) async fn beginning(place: &dyn SourcePlace) -> Result<Position, String> {
    let source = place.open().await.map_err(failed("opening the source"))?;
    let opened = source.open().await.map_err(failed("opening the log"))?;
    Ok(opened.floor)
}

/// The story, read at once.
pub(super) async fn whole(harness: &dyn SourceHarness) -> Result<(Connection, Reading), String> {
    let (place, begin) = told(harness).await?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let reading = connection.read(&begin, ALL, &story()).await?;
    Ok((connection, reading))
}

/// What must be read of the story.
pub(super) fn story() -> Vec<Vec<Expected>> {
    script::expected(&script::story(), &TABLES)
}

pub(super) async fn changes_come_as_they_were_made(harness: &dyn SourceHarness) -> Held {
    let (_, reading) = whole(harness).await?;
    are_rows(&reading.rows, &story())?;
    let mut groups = reading.rows.chunk_by(|a, b| a.transaction == b.transaction);
    for transaction in &story() {
        let found = groups.next().map_or(0, <[Row]>::len);
        ensure(found == transaction.len(), || format!("a transaction of {} rows came with {found}", transaction.len()))?;
    }
    let ordered = |pair: &[Row]| pair[0].transaction != pair[1].transaction || pair[0].coordinate < pair[1].coordinate;
    match reading.rows.windows(2).find(|pair| !ordered(pair)) {
        Some(pair) => Err(format!("a row at {:?} comes after one at {:?}", pair[1].coordinate, pair[0].coordinate)),
        None => Ok(()),
    }
}

/// The rows are these, in this order.
fn are_rows(found: &[Row], expected: &[Vec<Expected>]) -> Held {
    let expected: Vec<&Expected> = expected.iter().flatten().collect();
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        ensure(found.is(expected), || format!("row {number}: expected {expected:?}, found {found:?}"))?;
    }
    ensure(found.len() == expected.len(), || format!("expected {} rows, found {}", expected.len(), found.len()))
}

pub(super) async fn batches_are_whole(harness: &dyn SourceHarness) -> Held {
    let (_, reading) = whole(harness).await?;
    for read in &reading.reads {
        for batch in &read.batches {
            batch.check_shape().map_err(|malformed| malformed.to_string())?;
        }
        covers_its_batches(read)?;
    }
    Ok(())
}

/// The events of a read name each row of its batches once, from the first to the last.
fn covers_its_batches(read: &LogRead) -> Held {
    let mut next = vec![0; read.batches.len()];
    for event in &read.events {
        let LogEvent::Rows { batch: index, rows, transaction } = event else { continue };
        let Some(batch) = read.batches.get(*index) else {
            return Err(format!("an event names batch {index} of {}", read.batches.len()));
        };
        ensure(rows.start == next[*index] && rows.start < rows.end && rows.end <= batch.rows(), || {
            format!("an event names rows {rows:?} of {}, the next one is {}", batch.rows(), next[*index])
        })?;
        next[*index] = rows.end;
        let runs = batch.tail.transactions.iter().flat_map(|run| std::iter::repeat_n(&run.transaction, run.rows));
        let other = runs.skip(rows.start).take(rows.len()).find(|of| *of != transaction);
        ensure(other.is_none(), || format!("rows of {other:?} are in an event of {transaction:?}"))?;
    }
    for (batch, named) in read.batches.iter().zip(next) {
        ensure(named == batch.rows(), || format!("{named} of {} rows of a batch are in an event", batch.rows()))?;
    }
    Ok(())
}

pub(super) async fn keys_are_present(harness: &dyn SourceHarness) -> Held {
    let (_, reading) = whole(harness).await?;
    for batch in batches(&reading) {
        for column in &batch.schema.key {
            let name = &batch.schema.columns[*column].name;
            let absent = (0..batch.rows()).find(|row| batch.is_absent(*column, *row));
            ensure(absent.is_none(), || format!("the key column '{name}' of row {absent:?} is said to be absent"))?;
        }
        EncodedKeys::encode(&batch.schema, &batch.data).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn batches(reading: &Reading) -> impl Iterator<Item = &Arc<ChangeBatch>> {
    reading.reads.iter().flat_map(|read| &read.batches)
}

pub(super) async fn rows_decode_under_their_schema(harness: &dyn SourceHarness) -> Held {
    let (connection, reading) = whole(harness).await?;
    let mut schemas: BTreeMap<TableName, Arc<TableSchema>> =
        connection.schemas.iter().map(|schema| (schema.table.clone(), Arc::clone(schema))).collect();
    for read in &reading.reads {
        for event in &read.events {
            match event {
                LogEvent::Schema { schema, .. } => {
                    schemas.insert(schema.table.clone(), Arc::clone(schema));
                }
                LogEvent::Rows { batch, .. } => {
                    let Some(batch) = read.batches.get(*batch) else { continue };
                    let table = &batch.schema.table;
                    let in_force = schemas.get(table).ok_or_else(|| format!("rows of {table}, which was not asked for"))?;
                    ensure(batch.schema == *in_force, || {
                        format!("rows of {table} come under {:?}, in force is {in_force:?}", batch.schema)
                    })?;
                }
                LogEvent::Truncated { .. } | LogEvent::Refused { .. } | LogEvent::Ended { .. } | LogEvent::Keepalive { .. } => {}
            }
        }
    }
    Ok(())
}

pub(super) async fn a_change_is_not_divided(harness: &dyn SourceHarness) -> Held {
    let (place, begin) = told(harness).await?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let mut seen = false;
    for rows in 1..4 {
        let reading = connection.read(&begin, Limit { rows, ..ALL }, &story()).await?;
        for group in reading.events_of_rows() {
            // The story changes the key 2 to 20, once.
            let Some(new) = group.iter().position(|row| row.id == Some(20) && row.operation == Operation::Insert) else {
                continue;
            };
            let old = new.checked_sub(1).and_then(|old| group.get(old));
            let whole = old.is_some_and(|old| old.id == Some(2) && old.operation == Operation::Delete);
            ensure(whole, || format!("under a limit of {rows} rows, before the new row of a changed key comes {old:?}"))?;
            seen = true;
        }
    }
    ensure(seen, || "the changed key did not come at all".into())
}

pub(super) async fn reads_keep_their_limit(harness: &dyn SourceHarness) -> Held {
    let place = fresh(harness).await?;
    let begin = beginning(&*place).await?;
    let written = script::many(1, 60);
    place.write(&written).await.map_err(failed("writing the log"))?;
    place.finish().await.map_err(failed("ending the log"))?;
    let connection = Connection::open(&*place, &TABLES[..1]).await?;
    let limit = Limit { rows: 7, ..ALL };
    let reading = connection.read(&begin, limit, &script::expected(&written, &TABLES)).await?;
    // Each transaction is one row, so nothing is indivisible.
    let most = reading.reads.iter().map(|read| read.batches.iter().map(|batch| batch.rows()).sum::<usize>()).max().unwrap_or(0);
    ensure(most <= 7, || format!("a read that may bring 7 rows brought {most}"))?;
    ensure(reading.rows.len() == 60, || format!("of 60 rows {} came", reading.rows.len()))
}
