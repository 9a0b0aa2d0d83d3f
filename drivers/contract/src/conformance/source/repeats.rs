//! What is the same each time: coordinates, identity, refusals, descriptions.

use std::collections::BTreeMap;

use kernel::id::TableName;
use kernel::position::{Coordinate, Position, Transaction};

use super::reading::{ALL, Connection, IDLE_READS_MAX, Reading};
use super::script::{self, TABLES};
use super::shape::{beginning, fresh, story, told};
use super::{SourceHarness, SourcePlace};
use crate::conformance::{Held, ensure, equal, failed};
use crate::{Kind, Limit, LogEvent};

pub(super) async fn within_names_the_same_row(harness: &dyn SourceHarness) -> Held {
    let (place, begin) = told(harness).await?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let first = connection.read(&begin, ALL, &story()).await?;
    ensure(first.rows.len() == 18, || format!("of 18 rows {} came", first.rows.len()))?;

    let again = connection.read(&begin, ALL, &story()).await?;
    equal("rows in a second session", &first.rows, &again.rows)?;
    let another = Connection::open(&*place, &TABLES).await?;
    let again = another.read(&begin, ALL, &story()).await?;
    equal("rows in another process", &first.rows, &again.rows)?;

    for limit in [Limit { rows: 1, ..ALL }, Limit { rows: 3, ..ALL }, Limit { bytes: 1, ..ALL }] {
        let again = connection.read(&begin, limit, &story()).await?;
        equal(&format!("rows under {limit:?}"), &first.rows, &again.rows)?;
    }
    for table in TABLES {
        let alone = Connection::open(&*place, &[table]).await?;
        let expected = script::expected(&script::story(), &[table]);
        let again = alone.read(&begin, ALL, &expected).await?;
        equal(&format!("rows of {table} where it alone is selected"), &first.of(table), &again.rows)?;
    }
    Ok(())
}

pub(super) async fn reading_can_be_given_up(harness: &dyn SourceHarness) -> Held {
    let (place, begin) = told(harness).await?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let limit = Limit { rows: 2, ..ALL };
    let patient = connection.read(&begin, limit, &story()).await?;
    let mut reader = connection.reader(&begin).await?;
    let reading = Reading::to(&mut *reader, limit, &story(), true).await?;
    equal("how many rows come where waiting is given up again and again", &patient.rows.len(), &reading.rows.len())
}

pub(super) async fn same_log_identity(harness: &dyn SourceHarness) -> Held {
    let place = fresh(harness).await?;
    let begin = beginning(&*place).await?;
    place.write(&script::story()).await.map_err(failed("writing the log"))?;
    let connection = Connection::open(&*place, &TABLES).await?;
    let identity = connection.source.open().await.map_err(failed("opening the log"))?.identity;
    let all = connection.read(&begin, ALL, &story()).await?;
    let unnamed = all.rows.iter().map(|row| &row.transaction.stream).find(|stream| !identity.streams.contains_key(*stream));
    ensure(unnamed.is_none(), || format!("the identity does not name the stream '{unnamed:?}', of which rows came"))?;

    place.write(&script::many(100, 5)).await.map_err(failed("writing more"))?;
    let again = connection.source.open().await.map_err(failed("opening the log again"))?.identity;
    equal("how the log differs from itself after it grew", &None, &identity.differs_from(&again))?;
    equal("what coordinates are valid under, after the log grew", &identity.coordinates, &again.coordinates)?;
    let other = place.open().await.map_err(failed("opening the source"))?;
    let again = other.open().await.map_err(failed("opening the log elsewhere"))?.identity;
    equal("how the log differs from itself in another process", &None, &identity.differs_from(&again))?;
    equal("what coordinates are valid under, in another process", &identity.coordinates, &again.coordinates)
}

pub(super) async fn refusals_repeat(harness: &dyn SourceHarness) -> Held {
    let place = fresh(harness).await?;
    let begin = beginning(&*place).await?;
    let (before, after) = (script::many(1, 3), script::many(4, 3));
    place.write(&before).await.map_err(failed("writing the log"))?;
    place.write_refused().await.map_err(failed("writing what is refused"))?;
    place.write(&after).await.map_err(failed("writing the log"))?;
    place.finish().await.map_err(failed("ending the log"))?;

    let first = refused(&*place, &begin, ALL).await?;
    let [(table, _, _, _)] = &first[..] else {
        return Err(format!("one change is to be refused, {} are: {first:?}", first.len()));
    };
    equal("the table of the refused change", &TableName::from(TABLES[0]), table)?;
    for limit in [ALL, Limit { rows: 1, ..ALL }] {
        let again = refused(&*place, &begin, limit).await?;
        equal(&format!("what is refused in another session, under {limit:?}"), &first, &again)?;
    }
    Ok(())
}

type Refused = (TableName, Transaction, Coordinate, &'static str);

/// What is refused of six rows around one; the six must come.
async fn refused(place: &dyn SourcePlace, begin: &Position, limit: Limit) -> Result<Vec<Refused>, String> {
    let connection = Connection::open(place, &TABLES).await?;
    let expected = script::expected(&script::many(1, 6), &TABLES);
    let reading = connection.read(begin, limit, &expected).await?;
    ensure(reading.rows.len() == 6, || format!("of 6 rows around a refused change {} came", reading.rows.len()))?;
    let refused = reading.events().filter_map(|event| match event {
        LogEvent::Refused { table, transaction, coordinate, error } => {
            Some((table.clone(), transaction.clone(), *coordinate, error.code))
        }
        LogEvent::Rows { .. }
        | LogEvent::Truncated { .. }
        | LogEvent::Schema { .. }
        | LogEvent::Ended { .. }
        | LogEvent::Keepalive { .. } => None,
    });
    Ok(refused.collect())
}

pub(super) async fn poison_comes_last(harness: &dyn SourceHarness) -> Held {
    let place = fresh(harness).await?;
    let begin = beginning(&*place).await?;
    place.write(&script::many(1, 3)).await.map_err(failed("writing the log"))?;
    place.write_poison().await.map_err(failed("writing what cannot be read"))?;
    place.write(&script::many(4, 3)).await.map_err(failed("writing the log"))?;
    place.finish().await.map_err(failed("ending the log"))?;
    let first = poisoned(&*place, &begin, ALL).await?;
    for limit in [ALL, Limit { rows: 1, ..ALL }] {
        let again = poisoned(&*place, &begin, limit).await?;
        equal(&format!("the code of the error in another session, under {limit:?}"), &first, &again)?;
    }
    Ok(())
}

/// The code of the error that comes after three rows and the ends of their transactions.
async fn poisoned(place: &dyn SourcePlace, begin: &Position, limit: Limit) -> Result<&'static str, String> {
    let connection = Connection::open(place, &TABLES).await?;
    let mut reader = connection.reader(begin).await?;
    let mut reading = Reading::default();
    for _ in 0..IDLE_READS_MAX {
        match reader.next(limit).await {
            Ok(read) if read.finished => return Err("the log ends as if all of it could be read".into()),
            Ok(read) => reading.take(read),
            Err(error) => {
                equal("the kind of the error", &Kind::Poison, &error.kind)?;
                let (rows, ends) = (reading.rows.len(), reading.ends.len());
                ensure((rows, ends) == (3, 3), || format!("before the error come {rows} rows and {ends} ends, of 3 each"))?;
                return Ok(error.code);
            }
        }
    }
    Err(format!("after {IDLE_READS_MAX} reads no error has come"))
}

pub(super) async fn describing_repeats(harness: &dyn SourceHarness) -> Held {
    let (place, _) = told(harness).await?;
    let source = place.open().await.map_err(failed("opening the source"))?;
    let mut requests: Vec<_> = TABLES.iter().map(|table| place.request(table)).collect();
    let describe = failed("describing the tables");
    let first = source.describe(&requests, &BTreeMap::new()).await.map_err(&describe)?;
    let again = source.describe(&requests, &BTreeMap::new()).await.map_err(&describe)?;
    equal("the tables, described again", &first, &again)?;
    requests.reverse();
    let mut reversed = source.describe(&requests, &BTreeMap::new()).await.map_err(&describe)?;
    reversed.reverse();
    equal("the tables, asked for in the other order", &first, &reversed)?;
    requests.reverse();
    for (request, described) in requests.iter().zip(&first) {
        equal("the table described", &request.table, &described.schema.table)?;
        let key: Vec<&String> = described.schema.key.iter().map(|index| &described.schema.columns[*index].name).collect();
        let asked = request.primary_key.iter().flatten().collect::<Vec<_>>();
        ensure(request.primary_key.is_none() || key == asked, || {
            format!("the key asked for is {asked:?}, described is {key:?}")
        })?;
    }
    // What is stored with a copy is what the copy was made under; asking again does not change it.
    let stored: BTreeMap<_, _> = first.iter().map(|table| (table.schema.table.clone(), table.schema.clone())).collect();
    let again = source.describe(&requests, &stored).await.map_err(&describe)?;
    let schemas = |tables: &[crate::SourceTable]| tables.iter().map(|table| table.schema.clone()).collect::<Vec<_>>();
    equal("the schemas, beside those stored", &schemas(&first), &schemas(&again))
}
