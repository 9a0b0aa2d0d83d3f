//! Both sides of a table in one form: encoded keys, and a print of each row's values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow_row::{RowConverter, SortField};
use contract::arrow::array::{ArrayRef, RecordBatch, cast::AsArray as _};
use contract::{ChunkRequest, Chunks, Error, Kind, Mode, RowsByKey, RowsRequest, Sink, SinkTable};
use kernel::coordinator::ChunkRange;
use kernel::id::{Incarnation, TableName};
use kernel::position::{Difference, LogIdentity, Position};
use kernel::state::{Phase, PipelineState, TableState};
use rows::net::{NetOutcome, Numbering, net_filled};
use rows::shape::Missing;
use rows::{ChangeBatch, EncodedKeys, Slice, Type, ValuePolicy};

use crate::Drivers;
use crate::again::conform;
use crate::plan::TablePlan;
use crate::schemas::Agreed;
use crate::stored::Stored;

/// Rows of one chunk.
const CHUNK_ROWS: u32 = 20_000;
/// Bytes of one read of the source, near enough.
const READ_BYTES: u64 = 16 << 20;
/// Keys that are asked for at once.
const KEYS_AT_ONCE: usize = 500;

/// What is compared of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Print {
    /// Of its values.
    pub(super) values: u64,
    /// So many rows have its key.
    pub(super) copies: u32,
}

/// Who is told the key and the print of each row.
type Each<'a> = &'a mut (dyn FnMut(&[u8], Print) -> Result<(), Error> + Send);

/// A table at its source and at its target.
pub(super) struct Sides<'a> {
    chunks: &'a dyn Chunks,
    by_key: &'a dyn RowsByKey,
    sink: &'a dyn Sink,
    agreed: Agreed,
    target: SinkTable,
    /// The columns that are compared, by their place at the target.
    compared: Vec<usize>,
    /// The log that the copy is of.
    identity: LogIdentity,
}

impl<'a> Sides<'a> {
    pub(super) async fn open(drivers: &'a Drivers, plan: &TablePlan) -> Result<Self, Error> {
        let (source, sink) = (&*drivers.source, &*drivers.sink);
        let name = &plan.request.table;
        let unsupported = |why: &str| {
            let what = format!("table {name} can't be verified: {why}");
            Error::new(Kind::Config, "verify-unsupported", what, "compare it with another program")
        };
        let (Some(chunks), Some(by_key)) = (source.chunks(), source.rows_by_key()) else {
            return Err(unsupported("its source has a log, and no tables that could be read beside it"));
        };
        if plan.mode != Mode::Upsert {
            return Err(unsupported("each change of it is a row of its own at the target"));
        }
        let record = sink.pipeline_state().await?.value.unwrap_or_default();
        let not_copied =
            |what: String| Error::new(Kind::Config, "verify-not-copied", what, "run the pipeline until it is 'streaming'");
        let Some(state) = sink.recover(&plan.before_described()).await?.value else {
            return Err(not_copied(format!("table {name} has no copy")));
        };
        if !claims_to_be_whole(&record, name, &state) {
            let phase = record.tables.get(name).map_or(Phase::Pending, |entry| entry.phase);
            return Err(not_copied(format!("table {name} is {}, and its copy does not claim to be whole", phase.as_str())));
        }
        if state.generation == 0 && !source.begins_with_log() {
            return Err(unsupported("its copy began in the midst of the log: rows that have not changed since are not in it"));
        }
        let Some(text) = &state.schema else { return Err(not_copied(format!("table {name} has no copy with rows"))) };
        let stored = Stored::read(name, text)?;
        stored.check(&plan.wanted)?;
        let schema = Arc::new(stored.schema);
        // The source learns which types the pipeline file gives to columns.
        source.describe(std::slice::from_ref(&plan.request), &BTreeMap::from([(name.clone(), Arc::clone(&schema))])).await?;
        let agreed = Agreed::new(plan, schema, Missing::Gone)?;
        let target = agreed.at_target();
        if target.schema.key.is_empty() {
            return Err(unsupported("it has no key"));
        }
        let key = |schema: &rows::TableSchema| -> Vec<(String, Type)> {
            let columns = schema.key.iter().filter_map(|place| schema.columns.get(*place));
            columns.map(|column| (column.name.clone(), column.kind.clone())).collect()
        };
        if key(&target.schema) != key(&agreed.schema) {
            return Err(unsupported("its key has another type at the target than at the source"));
        }
        let is_comparable = |place: &usize| RowConverter::new(vec![sorted(&target.schema.columns[*place].kind)]).is_ok();
        let compared = (0..target.schema.columns.len()).filter(is_comparable).collect();
        Ok(Self { chunks, by_key, sink, agreed, target, compared, identity: state.identity })
    }

    /// Positions of two logs say nothing of each other.
    pub(super) fn is_of(&self, log: &LogIdentity) -> Result<(), Error> {
        let Some(Difference { stream, was, is }) = self.identity.differs_from(log) else { return Ok(()) };
        let stream = stream.map_or_else(String::new, |stream| format!(" (stream '{}')", stream.as_str()));
        let (table, was, is) = (self.name(), was.as_str(), is.as_str());
        let what =
            format!("table {table}: its copy is of the log of '{was}', and the one that is read now is that of '{is}'{stream}");
        Err(Error::new(Kind::Config, "verify-other-log", what, "verify it against the server that the pipeline reads"))
    }

    pub(super) fn name(&self) -> &TableName {
        &self.target.table
    }

    pub(super) fn columns_left_out(&self) -> Vec<String> {
        let columns = self.target.schema.columns.iter().enumerate();
        columns.filter(|(place, _)| !self.compared.contains(place)).map(|(_, column)| column.name.clone()).collect()
    }

    /// How far the copy claims to be: with the quiet record, and behind whatever keys are ahead.
    pub(super) async fn stand(&self) -> Result<Position, Error> {
        let record = self.sink.pipeline_state().await?.value.unwrap_or_default();
        let state = self.sink.recover(&self.target).await?.value;
        Ok(state.map_or(Position::START, |state| stand(&record, self.name(), &state)))
    }

    /// Every row of the copy as it is visible now.
    pub(super) async fn scan(&self, mut each: impl FnMut(&[u8], Print) -> Result<(), Error> + Send) -> Result<(), Error> {
        self.sink.scan(&self.target, &mut |batch| self.prints(&self.canonical(&batch)?, &mut each)).await
    }

    /// Every row of the source that the pipeline copies.
    pub(super) async fn read(&self, mut each: impl FnMut(&[u8], Print) + Send) -> Result<(), Error> {
        let mut after = None;
        loop {
            let request = ChunkRequest {
                table: Arc::clone(&self.agreed.schema),
                range: ChunkRange { after: after.take(), end: None },
                rows_max: CHUNK_ROWS,
                bytes_max: READ_BYTES,
                about: BTreeSet::new(),
            };
            let read = self.chunks.read_chunk(&request).await?;
            if let Some(batch) = read.rows {
                self.prints(&self.copied(batch)?, &mut |key, print| {
                    each(key, print);
                    Ok(())
                })?;
            }
            match read.end {
                None => return Ok(()),
                end => after = end,
            }
        }
    }

    /// The source's rows of these keys, and a place in the log that contains all that was seen.
    pub(super) async fn at_source(&self, keys: &BTreeSet<Vec<u8>>) -> Result<(HashMap<Vec<u8>, Print>, Position), Error> {
        let (mut found, mut fence) = (HashMap::new(), Position::START);
        let mut asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        while !asked.is_empty() {
            let now: Vec<&[u8]> = asked.drain(..asked.len().min(KEYS_AT_ONCE)).collect();
            let decoded = rows::key::decode(&self.agreed.schema, &now).map_err(|e| self.fault(&e.to_string()))?;
            let request = RowsRequest {
                table: Arc::clone(&self.agreed.schema),
                keys: decoded,
                bytes_max: READ_BYTES,
                about: BTreeSet::new(),
            };
            let read = self.by_key.read_rows(&request).await?;
            self.is_of(&read.identity)?;
            fence.join_with(&read.fence);
            let mut told: BTreeSet<Vec<u8>> =
                read.gone.iter().filter_map(|place| now.get(*place)).map(|key| key.to_vec()).collect();
            if let Some(batch) = read.rows {
                let keys = EncodedKeys::encode(&batch.schema, &batch.data).map_err(|e| self.fault(&e.to_string()))?;
                told.extend((0..keys.len()).map(|row| keys.key(row).to_vec()));
                self.prints(&self.copied(batch)?, &mut |key, print| {
                    found.insert(key.to_vec(), print);
                    Ok(())
                })?;
            }
            // Some may not have been read, for the bytes that they would have been.
            let left: Vec<&[u8]> = now.iter().copied().filter(|key| !told.contains(*key)).collect();
            if left.len() == now.len() {
                return Err(self.fault("the source tells nothing of the keys that it was asked for"));
            }
            asked.extend(left);
        }
        Ok((found, fence))
    }

    /// A key for people: a text a column.
    pub(super) fn key_text(&self, key: &[u8]) -> Result<Vec<String>, Error> {
        let schema = &self.target.schema;
        let values = rows::key::decode(schema, &[key]).map_err(|e| self.fault(&e.to_string()))?;
        let columns = schema.key.iter().filter_map(|place| schema.columns.get(*place)).zip(values.columns());
        let text = |(column, value): (&rows::Column, &ArrayRef)| {
            let text = rows::cast::cast(value, &column.name, &column.kind, &Type::String, ValuePolicy::Error);
            let text = text.map_err(|e| self.fault(&e.to_string()))?;
            Ok(text.as_string_opt::<i32>().map(|text| text.value(0).to_owned()).unwrap_or_default())
        };
        columns.map(text).collect()
    }

    /// What is copied of rows of the source: in the target's columns and types, without those that the filter leaves out.
    fn copied(&self, batch: Arc<ChangeBatch>) -> Result<RecordBatch, Error> {
        let wrong = |why: String| {
            let what = format!("table {}: rows of the source can't be compared: {why}", self.name());
            Error::new(Kind::Rejected, "verify-rows", what, "let the pipeline copy what has changed, then verify again")
        };
        let batch = conform(batch, &self.agreed.schema).map_err(wrong)?;
        let shape = &self.agreed.shape;
        let batch = shape.narrow(batch).map_err(|e| wrong(e.to_string()))?;
        let keys = EncodedKeys::encode(&batch.schema, &batch.data).map_err(|e| wrong(e.to_string()))?;
        let slice = Slice { rows: 0..batch.rows(), batch, keys: Arc::new(keys) };
        let numbering = Numbering { incarnation: Incarnation(1), first: 0 };
        let netted = net_filled(&[slice], numbering, shape.filter().map(AsRef::as_ref), &[]).map_err(|e| wrong(e.to_string()))?;
        match netted {
            NetOutcome::Netted(netted) => Ok(shape.apply(*netted).map_err(|e| wrong(e.to_string()))?.upserts),
            NetOutcome::Holes(_) => Err(wrong("some have no values".into())),
        }
    }

    /// Rows of the sink in the types that the pipeline knows: a sink may keep a smaller number in a larger one.
    fn canonical(&self, batch: &RecordBatch) -> Result<RecordBatch, Error> {
        let schema = &self.target.schema;
        let column = |column: &rows::Column| {
            let found = batch.column_by_name(&column.name);
            let found = found.ok_or_else(|| self.unlike(&format!("it has no column '{}'", column.name)))?;
            arrow_cast::cast(found, &column.kind.arrow()).map_err(|e| self.unlike(&format!("column '{}': {e}", column.name)))
        };
        let columns = schema.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        // A null where the source has none would be a difference, and no fault.
        let fields: Vec<_> = schema.columns.iter().map(|column| column.arrow().with_nullable(true)).collect();
        let fields = Arc::new(contract::arrow::schema::Schema::new(fields));
        RecordBatch::try_new(fields, columns).map_err(|e| self.unlike(&e.to_string()))
    }

    /// The key and the print of each row.
    fn prints(&self, batch: &RecordBatch, each: Each<'_>) -> Result<(), Error> {
        let schema = &self.target.schema;
        let keys = EncodedKeys::encode(schema, batch).map_err(|e| self.unlike(&e.to_string()))?;
        let sorted = self.compared.iter().map(|place| sorted(&schema.columns[*place].kind)).collect();
        let converter = RowConverter::new(sorted).map_err(|e| self.fault(&e.to_string()))?;
        let columns: Vec<ArrayRef> = self.compared.iter().map(|place| Arc::clone(batch.column(*place))).collect();
        let rows = converter.convert_columns(&columns).map_err(|e| self.fault(&e.to_string()))?;
        for (row, values) in rows.iter().enumerate() {
            let values = twox_hash::XxHash3_64::oneshot(values.as_ref());
            each(keys.key(row), Print { values, copies: 1 })?;
        }
        Ok(())
    }

    fn unlike(&self, why: &str) -> Error {
        let what = format!("table {}: its copy is not what its state says: {why}", self.name());
        Error::new(Kind::Rejected, "verify-copy", what, "look who else changes the table's columns")
    }

    fn fault(&self, why: &str) -> Error {
        let what = format!("table {}: {why}", self.name());
        Error::new(Kind::Fatal, "verify-fault", what, "this is a fault in urutau itself; please report it")
    }
}

fn sorted(kind: &Type) -> SortField {
    SortField::new(kind.arrow())
}

/// Is every row that the source has in the copy, as far as the copy goes?
fn claims_to_be_whole(record: &PipelineState, table: &TableName, state: &TableState) -> bool {
    let phase = record.tables.get(table).map_or(Phase::Pending, |entry| entry.phase);
    let is_read = !matches!(phase, Phase::Pending | Phase::Snapshotting | Phase::NeedsSnapshot);
    is_read && state.tiling.is_empty()
}

/// Up to here the copy's rows are exactly the source's (what a reader may see).
fn stand(record: &PipelineState, table: &TableName, state: &TableState) -> Position {
    let stands = record.effective_cut(table, state).upto().clone();
    let is_exact = claims_to_be_whole(record, table, state) && stands.contains(&state.ahead);
    if is_exact { stands } else { Position::START }
}
