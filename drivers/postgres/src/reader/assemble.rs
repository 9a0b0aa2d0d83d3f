//! From frames to what one read brings: events in the order of the log, and rows in batches. No I/O.
//!
//! A transaction is named by where its commit record begins, which its first message tells. A row's coordinate is the LSN of its
//! change and its number there, counted over all tables, so that it is the same whichever tables are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use contract::{Error, Kind, Limit, LogEvent, LogRead};
use kernel::id::{StreamName, TableName, TransactionName};
use kernel::position::{Coordinate, Offset, Position, Transaction};
use rows::build::BatchBuilder;
use rows::{Operation, RowPhase, TableSchema, Type};

use super::batch::{self, Image};
use super::refusal::Refusal;
use super::relation::{self, Bound, Read};
use crate::catalog::Attribute;
use crate::pgoutput::frame::Frame;
use crate::pgoutput::{Lsn, Malformed, Message, OldRow, RelationId, RelationMessage, Tuple, TypeId, decode, frame};
use crate::values::{Reading, Types};
use crate::visibility::Xids;

/// Microseconds from 1970 to 2000.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// What a row takes in memory beside its values, near enough for a budget.
pub(crate) const ROW_BYTES: u64 = 48;
/// Rows that a new builder has room for.
const ROWS_EXPECTED: usize = 64;

/// A table that is read.
pub(crate) struct Selected {
    /// The schema in force.
    pub(crate) schema: Arc<TableSchema>,
    /// Column types that the pipeline file names.
    pub(crate) declared: BTreeMap<String, Type>,
    /// Is every row of it kept, so that what one lacks can't be found later?
    pub(crate) keeps_every_row: bool,
    /// Which relation it is, once that is known: another one of its name is another table.
    pub(crate) relation: Option<RelationId>,
}

/// Puts reads together.
pub(crate) struct Assembler {
    tables: BTreeMap<TableName, Selected>,
    types: Arc<Types>,
    relations: HashMap<RelationId, Known>,
    /// Everything in it was delivered before.
    from: Lsn,
    reached: Lsn,
    xids: Xids,
    transaction: Option<Open>,
    /// Schemas of relations whose change has not come yet: the server says only with that where it is.
    changed: Vec<Arc<TableSchema>>,
    building: Building,
    /// Memory for texts that are made of values.
    scratch: String,
    /// May a frame be left for after types were looked up?
    may_look: bool,
    /// Was the last one?
    lacked: bool,
    /// Types that were looked up in vain. The log is behind the catalogue, so that what is not there by now does not come any more: every
    /// row that has one would cost a connection and the whole catalogue.
    gone: BTreeSet<TypeId>,
    /// Columns by their numbers, as they were looked up for a relation that comes.
    attributes: HashMap<RelationId, BTreeMap<u32, Attribute>>,
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Taken {
    /// It was taken.
    Whole,
    /// Nothing of it: it has values of types that are not known.
    LacksTypes,
    /// Nothing of it: it is not known which columns this relation has.
    LacksAttributes(RelationId),
}

/// What is known of a relation.
enum Known {
    /// Its rows are not asked for.
    Passed,
    /// Its rows are of this table.
    Of { table: TableName, bound: Result<Arc<Bound>, Refusal> },
}

/// The transaction whose changes come.
struct Open {
    transaction: Transaction,
    /// How visibility calls it.
    name: TransactionName,
    commit_time: i64,
    /// Is it contained in where reading began? The server does not send such ones.
    passed: bool,
    last: Lsn,
    index: u32,
    /// The last change but one, for one that is not taken.
    before: (Lsn, u32),
}

/// What a read has so far.
#[derive(Default)]
struct Building {
    events: Vec<LogEvent>,
    /// Of the transactions of these events.
    names: BTreeMap<Transaction, TransactionName>,
    batches: Vec<BatchBuilder>,
    rows: usize,
    bytes: u64,
}

/// Where in the change something stands.
#[derive(Clone, Copy)]
enum Slot {
    Schema = 0,
    Old = 1,
    New = 2,
}

/// Numbers that one change takes.
const SLOTS: u32 = 4;

impl Assembler {
    pub(crate) fn new(tables: BTreeMap<TableName, Selected>, types: Arc<Types>, from: Lsn, xids: Xids) -> Self {
        Self {
            tables,
            types,
            relations: HashMap::new(),
            from,
            reached: from,
            xids,
            transaction: None,
            changed: Vec::new(),
            building: Building::default(),
            scratch: String::new(),
            may_look: false,
            lacked: false,
            gone: BTreeSet::new(),
            attributes: HashMap::new(),
        }
    }

    /// May nothing more be added to the read under this limit?
    pub(crate) fn is_full(&self, limit: Limit) -> bool {
        self.building.rows >= limit.rows || self.building.bytes >= limit.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.building.events.is_empty()
    }

    /// The types of a relation's columns that are not known, and not known to be gone.
    fn lacking(&self, bytes: &[u8]) -> Vec<TypeId> {
        let Some((relation, _)) = self.selected(bytes) else { return Vec::new() };
        let ids = relation.columns.iter().map(|column| column.type_id);
        ids.filter(|id| !self.types.contains(*id) && !self.gone.contains(id)).collect()
    }

    /// A relation of a table that is read, whose columns were not looked up for it. Even one that looks as it did may have another column
    /// of an old name; the server tells a relation again only if something about it may have changed.
    fn unnumbered(&self, bytes: &[u8]) -> Option<RelationId> {
        let (relation, _) = self.selected(bytes)?;
        (!self.attributes.contains_key(&relation.id)).then_some(relation.id)
    }

    /// A relation of a table that is read, if the frame is one.
    fn selected<'a>(&self, bytes: &'a [u8]) -> Option<(RelationMessage<'a>, &Selected)> {
        let Ok(Frame::Data { message: message @ [b'R', ..], .. }) = frame::decode(bytes) else { return None };
        let Ok(Message::Relation(relation)) = decode(message) else { return None };
        let selected = self.tables.get(&table_name(&relation))?;
        Some((relation, selected))
    }

    /// The transaction whose changes come.
    pub(crate) fn transaction(&self) -> Option<&TransactionName> {
        self.transaction.as_ref().map(|open| &open.name)
    }

    pub(crate) fn set_types(&mut self, types: Arc<Types>) {
        self.types = types;
    }

    /// The columns of a relation as the catalogue has them.
    pub(crate) fn set_attributes(&mut self, of: RelationId, attributes: BTreeMap<u32, Attribute>) {
        self.attributes.insert(of, attributes);
    }

    /// Takes a frame, or nothing of it where something must be looked up first. Where it was types, [`Assembler::take_after_looking`] takes
    /// it then.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Taken, Error> {
        if !self.lacking(bytes).is_empty() {
            return Ok(Taken::LacksTypes);
        }
        if let Some(relation) = self.unnumbered(bytes) {
            return Ok(Taken::LacksAttributes(relation));
        }
        self.may_look = true;
        self.lacked = false;
        self.take_frame(bytes)?;
        Ok(if self.lacked { Taken::LacksTypes } else { Taken::Whole })
    }

    /// Takes a frame for which types were looked up. One that is gone by now stays unknown, which says so in its place.
    pub(crate) fn take_after_looking(&mut self, bytes: &[u8]) -> Result<Taken, Error> {
        self.gone.extend(self.lacking(bytes));
        if let Some(relation) = self.unnumbered(bytes) {
            return Ok(Taken::LacksAttributes(relation));
        }
        self.may_look = false;
        self.take_frame(bytes)?;
        Ok(Taken::Whole)
    }

    fn take_frame(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match frame::decode(bytes).map_err(unreadable)? {
            Frame::Keepalive { end, .. } => self.keepalive(end),
            Frame::Data { at, message } => self.message(at, decode(message).map_err(unreadable)?)?,
        }
        Ok(())
    }

    /// Inside a transaction a sign of life says nothing about what was delivered.
    fn keepalive(&mut self, end: Lsn) {
        if self.transaction.is_none() && end > self.reached {
            self.reached = end;
            let upto = Position::scalar(end.0);
            match self.building.events.last_mut() {
                Some(LogEvent::Keepalive { upto: last }) => *last = upto,
                _ => self.building.events.push(LogEvent::Keepalive { upto }),
            }
        }
    }

    fn message(&mut self, at: Lsn, message: Message<'_>) -> Result<(), Error> {
        match message {
            Message::Begin { commit, time, xid } => {
                if self.transaction.is_some() {
                    return Err(out_of_order("a transaction begins inside another one"));
                }
                let transaction = Transaction { stream: StreamName::from(""), at: Offset(commit.0) };
                let (name, commit_time) = (self.xids.widen(xid).name(), time.saturating_add(EPOCH_MICROS));
                let passed = commit < self.from;
                self.transaction =
                    Some(Open { transaction, name, commit_time, passed, last: Lsn(0), index: 0, before: (Lsn(0), 0) });
            }
            Message::Commit { commit, end, time } => {
                let Some(open) = self.transaction.take() else {
                    return Err(out_of_order("a transaction ends that did not begin"));
                };
                if open.transaction.at.0 != commit.0 || end <= commit {
                    return Err(out_of_order("a transaction ends elsewhere than its beginning said"));
                }
                self.reached = self.reached.max(end);
                if !open.passed {
                    let commit_time = Some(time.saturating_add(EPOCH_MICROS));
                    let (upto, transaction) = (Position::scalar(end.0), open.transaction.clone());
                    self.building.tell(&open, LogEvent::Ended { transaction, upto, commit_time });
                }
            }
            Message::Relation(relation) => self.relation(&relation)?,
            Message::Insert { relation, new } => {
                let at = self.place(at)?;
                self.insert(relation, new, at)?;
            }
            Message::Update { relation, old, new } => {
                let at = self.place(at)?;
                self.update(relation, old, new, at)?;
            }
            Message::Delete { relation, old } => {
                let at = self.place(at)?;
                self.delete(relation, old, at)?;
            }
            Message::Truncate { relations, .. } => {
                let at = self.place(at)?;
                self.truncate(&relations, at);
            }
            Message::Origin { .. } | Message::Type { .. } | Message::Logical { .. } => {}
        }
        Ok(())
    }

    /// The next change's place in its transaction. Schemas that came for it stand in front of it.
    fn place(&mut self, at: Lsn) -> Result<(Lsn, u32), Error> {
        let open = self.transaction.as_mut().ok_or_else(|| out_of_order("a change comes outside of a transaction"))?;
        if at < open.last {
            return Err(out_of_order("a change stands before the one that came before it"));
        }
        open.before = (open.last, open.index);
        open.index = if at == open.last { open.index.saturating_add(1) } else { 0 };
        open.last = at;
        let place = (at, open.index);
        for schema in self.changed.drain(..).filter(|_| !open.passed) {
            let transaction = open.transaction.clone();
            self.building.tell(open, LogEvent::Schema { transaction, coordinate: coordinate(place, Slot::Schema), schema });
        }
        Ok(place)
    }

    fn relation(&mut self, relation: &RelationMessage<'_>) -> Result<(), Error> {
        let name = table_name(relation);
        let now = self.attributes.remove(&relation.id).unwrap_or_default();
        // The number says which table it is; a name may move on.
        let is_ours = |selected: &Selected| selected.relation == Some(relation.id);
        if let Some((table, _)) = self.tables.iter().find(|(table, selected)| **table != name && is_ours(selected)) {
            let bound = Err(Refusal::Renamed { name: name.to_string() });
            self.relations.insert(relation.id, Known::Of { table: table.clone(), bound });
            return Ok(());
        }
        let Some(selected) = self.tables.get_mut(&name) else {
            self.relations.insert(relation.id, Known::Passed);
            return Ok(());
        };
        if *selected.relation.get_or_insert(relation.id) != relation.id {
            self.relations.insert(relation.id, Known::Of { table: name, bound: Err(Refusal::Replaced) });
            return Ok(());
        }
        let read = Read { schema: &selected.schema, declared: &selected.declared, types: &self.types, now: &now };
        let binding = relation::bind(relation, read);
        if let (true, Ok(bound)) = (binding.changed, &binding.bound) {
            selected.schema = bound.schema.clone();
            let schema = bound.schema.clone();
            let Some(open) = &self.transaction else { return Err(out_of_order("a relation comes outside of a transaction")) };
            if !open.passed {
                self.changed.push(schema);
            }
        }
        if let Some(column) = binding.remade {
            tracing::warn!(
                table = name.as_str(),
                column,
                "a column was dropped and made again under its name, and the log does not tell in front of which row: rows that changed in \
                 between may have a value that the source has no more. `urutau verify` names them, `urutau table resnapshot` mends them"
            );
        }
        self.relations.insert(relation.id, Known::Of { table: name, bound: binding.bound.map(Arc::new) });
        Ok(())
    }

    fn insert(&mut self, relation: RelationId, new: Tuple<'_>, at: (Lsn, u32)) -> Result<(), Error> {
        let Some((table, bound)) = self.bound(relation)? else { return Ok(()) };
        // A row that comes into a publication's filter is told as an insert, which may lack what an update would.
        let image = Image::New { row: new, old: None };
        let pushed = bound.and_then(|bound| self.push(&bound, &[(image, Operation::Insert, Slot::New)], at));
        self.settle(table, at, pushed);
        Ok(())
    }

    fn update(&mut self, relation: RelationId, old: Option<OldRow<'_>>, new: Tuple<'_>, at: (Lsn, u32)) -> Result<(), Error> {
        let Some((table, bound)) = self.bound(relation)? else { return Ok(()) };
        let pushed = bound.and_then(|bound| {
            if !bound.tells_key {
                return Err(Refusal::Identity);
            }
            let image = Image::New { row: new, old };
            match old.filter(|old| moves(&bound, *old, new)) {
                None => self.push(&bound, &[(image, Operation::Update, Slot::New)], at),
                Some(old) => {
                    let gone = (old_image(old), Operation::Delete, Slot::Old);
                    self.push(&bound, &[gone, (image, Operation::Insert, Slot::New)], at)
                }
            }
        });
        self.settle(table, at, pushed);
        Ok(())
    }

    fn delete(&mut self, relation: RelationId, old: OldRow<'_>, at: (Lsn, u32)) -> Result<(), Error> {
        let Some((table, bound)) = self.bound(relation)? else { return Ok(()) };
        let pushed = bound.and_then(|bound| match bound.tells_key {
            false => Err(Refusal::Identity),
            true => self.push(&bound, &[(old_image(old), Operation::Delete, Slot::New)], at),
        });
        self.settle(table, at, pushed);
        Ok(())
    }

    /// All relations of one TRUNCATE stand at one place: which of them are published is no matter of the log.
    fn truncate(&mut self, relations: &[RelationId], at: (Lsn, u32)) {
        let Some(open) = self.transaction.as_ref().filter(|open| !open.passed) else { return };
        for relation in relations {
            if let Some(Known::Of { table, .. }) = self.relations.get(relation) {
                let (table, transaction) = (table.clone(), open.transaction.clone());
                self.building.tell(open, LogEvent::Truncated { table, transaction, coordinate: coordinate(at, Slot::New) });
            }
        }
    }

    /// The table of a relation and how its rows are read; `None` where its rows are passed over.
    #[expect(clippy::type_complexity, reason = "a table and what became of its binding, used in three places of this file")]
    fn bound(&self, relation: RelationId) -> Result<Option<(TableName, Result<Arc<Bound>, Refusal>)>, Error> {
        match self.relations.get(&relation) {
            None => Err(out_of_order("a row comes before its relation")),
            Some(Known::Passed) => Ok(None),
            Some(Known::Of { .. }) if self.transaction.as_ref().is_none_or(|open| open.passed) => Ok(None),
            Some(Known::Of { table, bound }) => Ok(Some((table.clone(), bound.clone()))),
        }
    }

    /// Adds the rows of one change, all or none.
    fn push(&mut self, bound: &Bound, rows: &[(Image<'_>, Operation, Slot)], at: (Lsn, u32)) -> Result<(), Refusal> {
        let Some(open) = &self.transaction else { return Ok(()) };
        let index = self.building.batch(&bound.schema);
        let batch = &mut self.building.batches[index];
        let first = batch.rows();
        let mut bytes = 0;
        let keeps_every_row = self.tables.get(&bound.schema.table).is_some_and(|selected| selected.keeps_every_row);
        let may_lack = !bound.schema.key.is_empty() && !keeps_every_row;
        for (image, operation, slot) in rows {
            let mut reading = Reading { types: &self.types, scratch: &mut self.scratch };
            if let Err(refusal) = batch::push(batch, bound, *image, may_lack, &mut reading) {
                batch.take_back(first);
                if first == 0 && index + 1 == self.building.batches.len() {
                    self.building.batches.pop();
                }
                return Err(refusal);
            }
            batch.tell(*operation, coordinate(at, *slot), &open.transaction, Some(open.commit_time));
            bytes += ROW_BYTES + image_bytes(*image);
        }
        let last = batch.rows();
        self.building.added(index, first..last, open, bytes);
        Ok(())
    }

    /// A change that was not taken is told in its place, or left for later as if it had not come.
    fn settle(&mut self, table: TableName, at: (Lsn, u32), pushed: Result<(), Refusal>) {
        if let (Err(refusal), Some(open)) = (pushed, &mut self.transaction) {
            if let Some(id) = refusal.lacks_type() {
                if self.may_look && !self.gone.contains(&id) {
                    (open.last, open.index) = open.before;
                    self.lacked = true;
                    return;
                }
                self.gone.insert(id);
            }
            let error = refusal.error(&table);
            let (transaction, coordinate) = (open.transaction.clone(), coordinate(at, Slot::New));
            self.building.tell(open, LogEvent::Refused { table, transaction, coordinate, error });
        }
    }

    /// What was put together so far.
    pub(crate) fn finish(&mut self, ingest_time: i64) -> Result<LogRead, Error> {
        let Building { events, names, batches, .. } = std::mem::take(&mut self.building);
        let finished = batches.into_iter().map(|batch| {
            let table = batch.schema().table.clone();
            batch.finish(ingest_time, RowPhase::Stream).map(Arc::new).map_err(|error| {
                let what = format!("table {table}: a batch of its rows could not be made: {error}");
                Error::new(Kind::Fatal, "postgres-batch", what, "this is a fault in urutau itself; please report it")
            })
        });
        Ok(LogRead { batches: finished.collect::<Result<_, _>>()?, events, names, finished: false })
    }
}

impl Building {
    /// The batch that rows of this schema go into.
    fn batch(&mut self, schema: &Arc<TableSchema>) -> usize {
        let found = self.batches.iter().rposition(|batch| Arc::ptr_eq(batch.schema(), schema) || batch.schema() == schema);
        found.unwrap_or_else(|| {
            self.batches.push(BatchBuilder::new(schema.clone(), ROWS_EXPECTED));
            self.batches.len() - 1
        })
    }

    /// Something that happened in a transaction.
    fn tell(&mut self, of: &Open, event: LogEvent) {
        self.names.entry(of.transaction.clone()).or_insert_with(|| of.name.clone());
        self.events.push(event);
    }

    fn added(&mut self, batch: usize, rows: std::ops::Range<usize>, open: &Open, bytes: u64) {
        self.rows += rows.len();
        self.bytes += bytes;
        match self.events.last_mut() {
            Some(LogEvent::Rows { batch: last, rows: before, transaction: of })
                if *last == batch && before.end == rows.start && *of == open.transaction =>
            {
                before.end = rows.end;
            }
            _ => self.tell(open, LogEvent::Rows { batch, rows, transaction: open.transaction.clone() }),
        }
    }
}

fn old_image(old: OldRow<'_>) -> Image<'_> {
    match old {
        OldRow::Key(row) => Image::Identity(row),
        OldRow::Full(row) => Image::Whole(row),
    }
}

fn image_bytes(image: Image<'_>) -> u64 {
    match image {
        Image::New { row, .. } | Image::Whole(row) | Image::Identity(row) => row.bytes() as u64,
    }
}

/// Has the new row another key than the old one? By its bytes: equal values that are written otherwise, such as 1.0 and 1.00,
/// make a delete and an insert of one key, of which the insert is left.
fn moves(bound: &Bound, old: OldRow<'_>, new: Tuple<'_>) -> bool {
    let (OldRow::Key(old) | OldRow::Full(old)) = old;
    let values = old.values().zip(new.values());
    bound
        .places
        .iter()
        .zip(values)
        .any(|(place, (old, new))| bound.schema.is_key(place.column) && old != new && new != crate::pgoutput::Datum::Unchanged)
}

fn coordinate((at, index): (Lsn, u32), slot: Slot) -> Coordinate {
    Coordinate { major: at.0, minor: index.saturating_mul(SLOTS).saturating_add(slot as u32) }
}

pub(crate) fn table_name(relation: &RelationMessage<'_>) -> TableName {
    let namespace = if relation.namespace.is_empty() { "pg_catalog" } else { relation.namespace };
    TableName::from(format!("{namespace}.{}", relation.name))
}

fn unreadable(malformed: Malformed) -> Error {
    let what = format!("the server's log stream can't be read: {malformed}");
    Error::new(Kind::Poison, "postgres-protocol", what, "please report this, with the server's version")
}

fn out_of_order(what: &str) -> Error {
    let what = format!("the server's log stream makes no sense: {what}");
    Error::new(Kind::Poison, "postgres-protocol", what, "please report this, with the server's version")
}
