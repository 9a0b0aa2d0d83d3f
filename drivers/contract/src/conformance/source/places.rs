//! Positions: what they contain, where reading can go on, what may be forgotten.

use std::collections::BTreeSet;

use kernel::position::{Coordinate, Offset, Position, Transaction};

use super::SourceHarness;
use super::reading::{ALL, Connection, Row};
use super::script::{self, TABLES};
use super::shape::{beginning, fresh, story, told, whole};
use crate::conformance::{Held, ensure, equal, failed};
use crate::{Kind, LogEvent};

pub(super) async fn positions_grow(harness: &dyn SourceHarness) -> Held {
    let (_, reading) = whole(harness).await?;
    let mut reached = Position::START;
    for event in reading.events() {
        match event {
            LogEvent::Ended { transaction, upto, .. } => {
                ensure(!reached.contains_transaction(transaction), || {
                    format!("{transaction:?} ends, which an earlier position contains: {reached}")
                })?;
                no_step_back(&reached, upto)?;
                reached.join_with(upto);
            }
            LogEvent::Keepalive { upto } => {
                no_step_back(&reached, upto)?;
                reached.join_with(upto);
            }
            LogEvent::Rows { transaction, .. } => ensure(!reached.contains_transaction(transaction), || {
                format!("rows of {transaction:?} come, which an earlier position contains: {reached}")
            })?,
            LogEvent::Truncated { .. } | LogEvent::Schema { .. } | LogEvent::Refused { .. } => {}
        }
    }
    Ok(())
}

/// In no stream that it names from its beginning on does a position say less than was said before. In a log of sets it names one
/// transaction of an origin, and says nothing of the others.
fn no_step_back(reached: &Position, upto: &Position) -> Held {
    let mut from_the_beginning = upto.streams().filter(|(_, offset)| *offset > Offset(0));
    match from_the_beginning.find(|(stream, offset)| *offset < reached.offset(stream)) {
        Some((stream, offset)) => {
            Err(format!("in the stream '{stream}' a position goes back from {} to {}", reached.offset(stream).0, offset.0))
        }
        None => Ok(()),
    }
}

pub(super) async fn position_names_finished_transactions(harness: &dyn SourceHarness) -> Held {
    let (_, reading) = whole(harness).await?;
    let mut ended: BTreeSet<Transaction> = BTreeSet::new();
    let all: BTreeSet<&Transaction> = reading.rows.iter().map(|row| &row.transaction).collect();
    for event in reading.events() {
        let upto = match event {
            LogEvent::Ended { transaction, upto, .. } => {
                ended.insert(transaction.clone());
                ensure(upto.contains_transaction(transaction), || format!("the end of {transaction:?}, {upto}, lacks it"))?;
                upto
            }
            LogEvent::Keepalive { upto } => upto,
            LogEvent::Rows { .. } | LogEvent::Truncated { .. } | LogEvent::Schema { .. } | LogEvent::Refused { .. } => continue,
        };
        let early = all.iter().find(|of| upto.contains_transaction(of) && !ended.contains(**of));
        ensure(early.is_none(), || format!("the position {upto} contains {early:?}, which has not ended"))?;
    }
    let open = all.iter().find(|of| !ended.contains(**of));
    ensure(open.is_none(), || format!("{open:?} never ends"))
}

pub(super) async fn any_end_is_a_place_to_go_on(harness: &dyn SourceHarness) -> Held {
    let (place, begin) = told(harness).await?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let all = connection.read(&begin, ALL, &story()).await?;
    let mut from = begin;
    for (_, upto) in &all.ends {
        from.join_with(upto);
        let rest = all.beyond(&from);
        let skipped = all.rows.len() - rest.len();
        let expected: Vec<_> = vec![story().into_iter().flatten().skip(skipped).collect()];
        let found = connection.read(&from, ALL, &expected).await?;
        equal(&format!("the rows that are not in {from}"), &without_places(&rest), &without_places(&found.rows))?;
    }
    ensure(all.rows.len() > all.beyond(&from).len(), || "no end of a transaction contains a row".into())
}

/// The rows and their transactions; where in these they stand is another law's matter.
fn without_places(rows: &[Row]) -> Vec<Row> {
    rows.iter().map(|row| Row { coordinate: Coordinate::default(), ..row.clone() }).collect()
}

pub(super) async fn start_within_streamable(harness: &dyn SourceHarness) -> Held {
    let (place, begin) = told(harness).await?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let all = connection.read(&begin, ALL, &story()).await?;
    let Some((_, second)) = all.ends.get(1) else { return Err("two transactions must have ended".into()) };
    let mut gone = begin.clone();
    gone.join_with(&all.ends[0].1);
    gone.join_with(second);
    place.discard(&gone).await.map_err(failed("making the source forget"))?;

    let connection = Connection::open(&*place, &TABLES).await?;
    let opened = connection.source.open().await.map_err(failed("opening the log"))?;
    ensure(opened.floor.contains(second), || {
        format!("the source forgot {second}, but says that it can be streamed from {}", opened.floor)
    })?;
    let lost = |error: crate::Error| match error.kind {
        Kind::PositionLost => Ok(()),
        kind => Err(format!("reading from what is forgotten fails as {kind:?} instead of PositionLost: {error}")),
    };
    match connection.source.stream(&begin.clone().into(), &connection.schemas).await {
        Err(error) => return lost(error),
        Ok(mut reader) => match reader.next(ALL).await {
            Err(error) => lost(error)?,
            Ok(read) => return Err(format!("from '{begin}', which is forgotten, {} events come", read.events.len())),
        },
    }
    Ok(())
}

pub(super) async fn never_ahead_of_source(harness: &dyn SourceHarness) -> Held {
    let (place, begin) = told(harness).await?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let opened = connection.source.open().await.map_err(failed("opening the log"))?;
    ensure(opened.end.contains(&opened.floor), || format!("the log ends at {}, before it begins: {}", opened.end, opened.floor))?;
    let all = connection.read(&begin, ALL, &story()).await?;
    let beyond = all.ends.iter().find(|(_, upto)| !opened.end.contains(upto));
    ensure(beyond.is_none(), || format!("the log was to end at {}, and goes to {beyond:?}", opened.end))
}

pub(super) async fn sole_confirmer(harness: &dyn SourceHarness) -> Held {
    let place = fresh(harness).await?;
    let begin = beginning(&*place).await?;
    place.write(&script::story()).await.map_err(failed("writing the log"))?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let all = connection.read(&begin, ALL, &story()).await?;
    let floor = beginning(&*place).await?;
    equal("what can no longer be streamed, after everything was read", &begin, &floor)?;
    drop(connection);

    let Some((_, first)) = all.ends.first() else { return Err("no transaction ends".into()) };
    let told = begin.join(first);
    let connection = Connection::open(&*place, &TABLES).await?;
    connection.source.acknowledge(&told).await.map_err(failed("acknowledging"))?;
    connection.reader(&told).await?.next(ALL).await.map_err(failed("reading on from what was acknowledged"))?;
    let keeps_all = connection.source.keeps_all();
    drop(connection);
    let floor = beginning(&*place).await?;
    ensure(!keeps_all || floor == begin, || format!("a source that keeps everything has forgotten {floor}"))?;
    ensure(told.contains(&floor), || format!("'{told}' was acknowledged, and {floor} is forgotten"))
}
