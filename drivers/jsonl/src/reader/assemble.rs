//! Lines in, batches and events out: what a log reader does, without its files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contract::{Error, Kind, LogEvent, LogRead};
use kernel::id::StreamName;
use kernel::position::{Coordinate, Offset, Position, Transaction};
use rows::build::{BatchBuilder, ColumnBuilder};
use rows::{EncodedKeys, Operation as RowOperation, RowPhase, TableSchema};

use super::batch::{self, Fill, Refusal};
use super::breaks::Breaks;
use super::report::refused;
use super::table::{Declared, Table};
use super::transaction::{Grouping, Open};
use crate::counts::Counts;
use crate::envelope::{Change, Decoder, Format, Image, Line, Malformed, Operation};
use crate::json;
use crate::values::{Options, PushJson};

/// Where a line stands, for its coordinate and for people.
pub(crate) struct Place<'a> {
    pub(crate) begin: u64,
    /// The byte after its line end.
    pub(crate) end: u64,
    /// Counts lines, when somebody wants to know.
    pub(crate) number: &'a mut dyn FnMut() -> Option<u64>,
}

/// What lines become.
pub(crate) struct Assembler {
    decoder: Decoder,
    state: State,
}

/// All but the decoder, from whose memory a line's event borrows.
struct State {
    tables: Vec<Table>,
    by_name: HashMap<String, usize>,
    options: Options,
    grouping: Grouping,
    breaks: Breaks,
    counts: Arc<Counts>,
    stream: StreamName,
    path: PathBuf,
    batches: Vec<BatchBuilder>,
    events: Vec<LogEvent>,
    rows: usize,
    bytes: u64,
    /// Everything before this byte of the file was delivered or concerns nobody.
    passed: u64,
    /// How far the reader of these events was told so.
    announced: u64,
    name: String,
}

/// Rows that a new builder has room for: enough to seldom grow, little enough to make many.
const ROWS_EXPECTED: usize = 1_024;

impl Assembler {
    pub(crate) fn new(
        format: Format,
        tables: impl IntoIterator<Item = (Arc<TableSchema>, Declared)>,
        options: Options,
        breaks: Breaks,
        counts: Arc<Counts>,
    ) -> Self {
        let tables: Vec<_> = tables.into_iter().map(|(schema, declared)| Table::new(schema, declared, &options)).collect();
        let by_name = tables.iter().enumerate().map(|(at, table)| (table.name().to_string(), at)).collect();
        let state = State {
            tables,
            by_name,
            options,
            grouping: Grouping::default(),
            breaks,
            counts,
            stream: StreamName::from(""),
            path: PathBuf::new(),
            batches: Vec::new(),
            events: Vec::new(),
            rows: 0,
            bytes: 0,
            passed: 0,
            announced: 0,
            name: String::new(),
        };
        Self { decoder: Decoder::new(format), state }
    }

    /// A file is read from a byte on.
    pub(crate) fn begin_file(&mut self, stream: &StreamName, path: &Path, offset: u64) {
        let state = &mut self.state;
        state.stream = stream.clone();
        state.breaks.begin_file(stream);
        state.path = path.to_owned();
        (state.passed, state.announced) = (offset, offset);
        state.grouping.next_file();
    }

    /// Takes a line. An error changes nothing, so that the line can be given again.
    pub(crate) fn line(&mut self, place: Place<'_>, bytes: &[u8]) -> Result<(), Malformed> {
        let state = &mut self.state;
        match self.decoder.decode(bytes)? {
            Line::Change(change) => state.change(change, place),
            Line::Marker(marker) => {
                let ended = state.grouping.marker(&marker, place.end);
                state.ended(ended);
                state.pass(place.end);
            }
            Line::Message(tag) => {
                state.counts.messages();
                let ended = state.grouping.message(&tag, place.end);
                state.ended(ended);
                state.pass(place.end);
            }
            Line::Silent(silent) => {
                state.counts.silent(silent);
                state.pass(place.end);
            }
        }
        Ok(())
    }

    /// Passes over a line that could not be read.
    pub(crate) fn skip(&mut self, end: u64) {
        self.state.counts.skipped();
        self.state.pass(end);
    }

    /// The file ends here, for good.
    pub(crate) fn end_file(&mut self, end: u64) {
        let ended = self.state.grouping.close();
        self.state.ended(ended);
        self.state.pass(end);
        self.state.announce();
    }

    /// Nothing more has come, or nothing more is waited for: what is open counts as ended, and may yet go on.
    pub(crate) fn end_silently(&mut self) {
        let ended = self.state.grouping.close_without_a_word();
        if let Some(open) = &ended {
            self.state.breaks.insert(&self.state.stream, open.end);
        }
        self.state.ended(ended);
    }

    /// Is a transaction open?
    pub(crate) fn in_transaction(&self) -> bool {
        self.state.grouping.open().is_some()
    }

    pub(crate) fn rows(&self) -> usize {
        self.state.rows
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.state.bytes
    }

    /// Hands out what was assembled.
    pub(crate) fn take(&mut self, ingest_time: i64) -> Result<LogRead, Error> {
        let state = &mut self.state;
        state.announce();
        state.tables.iter_mut().for_each(|table| table.batch = None);
        (state.rows, state.bytes) = (0, 0);
        state.counts.pieces(state.grouping.take_pieces());
        let batches: Result<Vec<_>, _> =
            state.batches.drain(..).map(|batch| batch.finish(ingest_time, RowPhase::Stream).map(Arc::new)).collect();
        let batches = batches.map_err(|e| {
            Error::new(
                Kind::Fatal,
                "jsonl-batch",
                format!("a batch of rows could not be built: {e}"),
                "this is a fault in urutau: please report it with this message",
            )
        })?;
        Ok(LogRead { batches, events: std::mem::take(&mut state.events), ..LogRead::default() })
    }
}

impl State {
    fn change(&mut self, change: Change<'_>, place: Place<'_>) {
        if let Some(end) = self.grouping.did_not_go_on(&change.tag) {
            self.breaks.remove(&self.stream, end);
        }
        if self.grouping.open().is_some_and(|open| self.breaks.divides(&self.stream, open.end, place.begin)) {
            let ended = self.grouping.close();
            self.ended(ended);
        }
        let ended = self.grouping.event(&change.tag, place.begin, place.end);
        self.ended(ended);
        match self.table_of(&change) {
            Some(table) => self.table_change(table, &change, place),
            None => self.counts.other_tables(),
        }
        let ended = self.grouping.event_done();
        self.ended(ended);
    }

    fn table_of(&mut self, change: &Change<'_>) -> Option<usize> {
        self.name.clear();
        if let Some(qualifier) = &change.qualifier {
            self.name.push_str(qualifier);
            self.name.push('.');
        }
        self.name.push_str(&change.table);
        self.by_name.get(&self.name).copied()
    }

    fn table_change(&mut self, table: usize, change: &Change<'_>, place: Place<'_>) {
        let Some(open) = self.grouping.open().copied() else { return };
        self.grouping.deliver();
        let transaction = Transaction { stream: self.stream.clone(), at: Offset(open.at) };
        // A line's rows are numbered from 1; below them its schema is told, if it is a new one.
        let coordinate = Coordinate { major: place.begin, minor: 1 };
        let done = match self.tables[table].adopt(change.schema, &self.options) {
            Err(what) => Err(Refusal::Row { what }),
            Ok(schema) => {
                if let Some(schema) = schema {
                    let coordinate = Coordinate { minor: 0, ..coordinate };
                    self.events.push(LogEvent::Schema { transaction: transaction.clone(), coordinate, schema });
                }
                self.operate(table, change, &transaction, coordinate, open.time)
            }
        };
        if let Err(refusal) = done {
            self.counts.refused();
            let name = self.tables[table].name().clone();
            let error = refused(&refusal, &name, &self.path, place.begin, (place.number)());
            self.events.push(LogEvent::Refused { table: name, transaction, coordinate, error });
        }
    }

    fn operate(
        &mut self,
        table: usize,
        change: &Change<'_>,
        transaction: &Transaction,
        at: Coordinate,
        time: Option<i64>,
    ) -> Result<(), Refusal> {
        let whole = || change.after.ok_or_else(|| Refusal::Row { what: "'after' is missing or null".to_owned() });
        let full = self.tables[table].declared.before_is_full;
        let second = Coordinate { minor: 2, ..at };
        match change.operation {
            Operation::Truncate => {
                let table = self.tables[table].name().clone();
                self.events.push(LogEvent::Truncated { table, transaction: transaction.clone(), coordinate: at });
                Ok(())
            }
            Operation::Create => {
                self.rows_of(table, transaction, time, &[(RowOperation::Insert, at, whole()?, Fill::Whole { old: None })])
            }
            Operation::Read => {
                self.rows_of(table, transaction, time, &[(RowOperation::Read, at, whole()?, Fill::Whole { old: None })])
            }
            Operation::Update => {
                let after = whole()?;
                let fill = Fill::Whole { old: change.before.filter(|_| full) };
                match change.before {
                    Some(before) if self.key_differs(table, &before, &after)? => {
                        let old = if full { Fill::Partial } else { Fill::KeyOnly };
                        let rows = [(RowOperation::Delete, at, before, old), (RowOperation::Insert, second, after, fill)];
                        self.rows_of(table, transaction, time, &rows)
                    }
                    _ => self.rows_of(table, transaction, time, &[(RowOperation::Update, at, after, fill)]),
                }
            }
            Operation::Delete => {
                let (old, fill) = self.old_row(table, change, full)?;
                self.rows_of(table, transaction, time, &[(RowOperation::Delete, at, old, fill)])
            }
        }
    }

    /// The image that says which row was deleted: `before`, or the record's key where that does not hold the key.
    fn old_row<'a>(&self, table: usize, change: &Change<'a>, full: bool) -> Result<(Image<'a>, Fill<'a>), Refusal> {
        let table = &self.tables[table];
        let fill = if full { Fill::Partial } else { Fill::KeyOnly };
        match (change.before, change.key) {
            (Some(before), _) if table.holds_key(&before) => Ok((before, fill)),
            (_, Some(key)) if table.holds_key(&key) => Ok((key, Fill::KeyOnly)),
            (Some(before), _) => Ok((before, fill)),
            (None, _) if table.schema.key.is_empty() => Ok((Image::default(), Fill::KeyOnly)),
            (None, _) => {
                Err(Refusal::Row { what: "'before' is missing or null, so it is not known which row was deleted".to_owned() })
            }
        }
    }

    /// Appends the rows of one change, all or none.
    fn rows_of(
        &mut self,
        table: usize,
        transaction: &Transaction,
        time: Option<i64>,
        rows: &[(RowOperation, Coordinate, Image<'_>, Fill<'_>)],
    ) -> Result<(), Refusal> {
        let number = self.batch_of(table);
        let builder = &mut self.batches[number];
        let before = builder.rows();
        for (operation, coordinate, image, fill) in rows {
            if let Err(refusal) = batch::push(builder, &mut self.tables[table], *image, *fill, &self.options) {
                builder.take_back(before);
                return Err(refusal);
            }
            builder.tell(*operation, *coordinate, transaction, time);
            self.bytes += image.bytes() as u64 + 16 * self.tables[table].readings.len() as u64;
        }
        let after = builder.rows();
        self.rows += rows.len();
        match self.events.last_mut() {
            Some(LogEvent::Rows { batch: last, rows, transaction: same })
                if *last == number && same.at == transaction.at && same.stream == transaction.stream =>
            {
                rows.end = after;
            }
            _ => self.events.push(LogEvent::Rows { batch: number, rows: before..after, transaction: transaction.clone() }),
        }
        Ok(())
    }

    fn batch_of(&mut self, table: usize) -> usize {
        let table = &mut self.tables[table];
        *table.batch.get_or_insert_with(|| {
            self.batches.push(BatchBuilder::new(table.schema.clone(), ROWS_EXPECTED));
            self.batches.len() - 1
        })
    }

    /// Does an update change the key? Values are compared, not their texts.
    fn key_differs(&self, table: usize, before: &Image<'_>, after: &Image<'_>) -> Result<bool, Refusal> {
        let table = &self.tables[table];
        for place in &table.schema.key {
            let column = &table.schema.columns[*place];
            let key = |found| Refusal::Key { column: column.name.clone(), found };
            let old = before.get(&column.name).ok_or_else(|| key("nothing in 'before'"))?;
            let Some(new) = after.get(&column.name) else { continue };
            if old.raw == new.raw {
                continue;
            }
            if old.kind == json::Kind::Null {
                return Err(key("null in 'before'"));
            }
            let mut both = ColumnBuilder::new(&column.kind, 2);
            for value in [old, new] {
                both.push(&table.readings[*place], value, true).map_err(|misfit| Refusal::Value {
                    column: column.name.clone(),
                    expected: column.kind.to_string(),
                    misfit,
                })?;
            }
            // The one encoding by which everybody compares keys.
            let encoded = both
                .finish(&column.kind)
                .ok()
                .and_then(|both| EncodedKeys::encode_columns(&[both], std::slice::from_ref(&column.kind)).ok());
            if encoded.is_none_or(|keys| keys.key(0) != keys.key(1)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A transaction ended.
    fn ended(&mut self, ended: Option<Open>) {
        let Some(open) = ended else { return };
        self.passed = self.passed.max(open.end);
        if open.delivered {
            self.announced = self.announced.max(open.end);
            self.events.push(LogEvent::Ended {
                transaction: Transaction { stream: self.stream.clone(), at: Offset(open.at) },
                upto: Position::of(self.stream.clone(), Offset(open.end)),
                commit_time: open.time,
            });
        }
    }

    /// A line that concerns no table. Inside a transaction it may still be followed by a row.
    fn pass(&mut self, end: u64) {
        if self.grouping.open().is_none() {
            self.passed = self.passed.max(end);
        }
    }

    /// Says how far the file was read, if that was not said and no delivered transaction is open.
    fn announce(&mut self) {
        let inside = self.grouping.open().is_some_and(|open| open.delivered);
        if !inside && self.passed > self.announced {
            self.announced = self.passed;
            self.events.push(LogEvent::Keepalive { upto: Position::of(self.stream.clone(), Offset(self.passed)) });
        }
    }
}
