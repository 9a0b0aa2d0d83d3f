//! Rows that are read again by their keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::Schema;
use kernel::id::TransactionName;
use rows::Operation;

use super::SourceHarness;
use super::reading::ALL;
use super::script::{self, TABLES};
use super::shape::{self, story};
use crate::conformance::{Held, ensure, equal, failed};
use crate::{LogEvent, RowsRead, RowsRequest};

/// What the keys of the first table hold when the story is over, asked for in this order.
const ASKED: [(i64, Option<&str>); 6] =
    [(4, Some("vier")), (2, None), (1, Some("un")), (20, None), (3, Some("drei")), (77, None)];

pub(super) async fn rows_are_read_again(harness: &dyn SourceHarness) -> Held {
    let (place, begin) = shape::told(harness).await?;
    let connection = super::reading::Connection::open(&*place, &TABLES).await?;
    let reading = connection.read(&begin, ALL, &story()).await?;
    let names: BTreeMap<_, TransactionName> = reading.reads.iter().flat_map(|read| read.names.clone()).collect();
    let rows = reading.events().filter_map(|event| match event {
        LogEvent::Rows { transaction, .. } => Some(transaction),
        _ => None,
    });
    for transaction in rows {
        ensure(names.contains_key(transaction), || format!("a read does not say how visibility calls {transaction:?}"))?;
    }
    let opened = connection.source.open().await.map_err(failed("opening the log"))?;
    let by_key =
        connection.source.rows_by_key().ok_or("the harness says that rows can be read again, and the source that they can't")?;
    let schema =
        connection.schemas.iter().find(|schema| schema.table.as_str() == TABLES[0]).ok_or("the table is not described")?;

    let ids: ArrayRef = Arc::new(Int64Array::from(ASKED.map(|(id, _)| id).to_vec()));
    let key = schema.key.first().map(|place| schema.columns[*place].arrow()).ok_or("the table has no key")?;
    let keys = RecordBatch::try_new(Arc::new(Schema::new(vec![key])), vec![ids]).map_err(|e| e.to_string())?;
    let about: BTreeSet<TransactionName> = names.values().cloned().chain([TransactionName::from("none of this log")]).collect();
    let request = |bytes_max| RowsRequest { table: schema.clone(), keys: keys.clone(), bytes_max, about: about.clone() };
    let read = by_key.read_rows(&request(ALL.bytes)).await.map_err(failed("reading rows again"))?;

    let expected: Vec<_> = ASKED.iter().filter_map(|(id, word)| Some((*id, (*word)?.to_owned()))).collect();
    equal("the rows", &expected.iter().cloned().collect::<BTreeSet<_>>(), &words(&read)?.into_iter().collect())?;
    equal("each row once", &expected.len(), &words(&read)?.len())?;
    let gone: BTreeSet<usize> = (0..ASKED.len()).filter(|place| ASKED[*place].1.is_none()).collect();
    equal("the places of keys without a row", &gone, &read.gone.iter().copied().collect())?;
    // All that is in the log was committed before it was asked for.
    equal("what its snapshot saw", &names.values().cloned().collect::<BTreeSet<_>>(), &read.visibility.proven)?;
    for (_, upto) in &reading.ends {
        ensure(read.fence.contains(upto), || format!("its fence is '{}', and its snapshot saw '{upto}'", read.fence))?;
    }
    let differs = opened.identity.differs_from(&read.identity);
    ensure(differs.is_none(), || format!("it is of another log: {:?}, opened was {:?}", read.identity, opened.identity))?;

    let few = by_key.read_rows(&request(1)).await.map_err(failed("reading rows again, few bytes at once"))?;
    ensure(!words(&few)?.is_empty() || few.gone.len() == ASKED.len(), || "of a limit of one byte nothing comes of a row".into())
}

/// The rows that came, checked for what the contract says of them.
fn words(read: &RowsRead) -> Result<Vec<(i64, String)>, String> {
    let Some(batch) = &read.rows else { return Ok(Vec::new()) };
    batch.check().map_err(|e| e.to_string())?;
    ensure(batch.absent.iter().all(Option::is_none), || "a row that was read again lacks a value".into())?;
    ensure(batch.tail.operations.iter().all(|operation| *operation == Operation::Read), || "a row is no Read".into())?;
    let names: Vec<String> = script::columns().into_iter().map(|column| column.name).collect();
    let column = |name: &str| batch.data.column_by_name(name).ok_or(format!("there is no column {name}"));
    let ids = column(&names[0])?.as_primitive_opt::<Int64Type>().ok_or("the ids are none")?;
    let words = column(&names[1])?.as_string_opt::<i32>().ok_or("the words are none")?;
    Ok((0..batch.rows()).map(|row| (ids.value(row), words.value(row).to_owned())).collect())
}
