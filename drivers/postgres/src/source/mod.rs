//! The source: what the contract asks of a log, answered by a server.

mod describe;
mod preflight;
pub(crate) mod prepare;
mod readable;
mod remedies;
mod sketch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use contract::registry::Settings;
use contract::{
    Chunks, Error, Finding, Kind, LogReader, OpenedLog, Retention, RowsByKey, Sketch, Source, SourceTable, Start, TableRequest,
};
use kernel::id::{StreamName, TableName};
use kernel::position::{LogIdentity, Position};
use rows::{TableSchema, Type};
use tokio::sync::watch;

use crate::catalog::{self, Slot};
use crate::pgoutput::{Lsn, RelationId};
use crate::reader::{Assembler, Reader, Selected};
use crate::settings::SourceSettings;
use crate::values::Types;
use crate::wire::{Connection, Ended, Purpose, Session, StreamOptions, WireError};

/// Opens `postgres` sources.
#[derive(Clone, Copy, Default, Debug)]
pub struct SourceFactory;

#[async_trait]
impl contract::registry::SourceFactory for SourceFactory {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn summary(&self) -> &'static str {
        "PostgreSQL, by logical replication"
    }

    async fn open(&self, pipeline: &str, settings: &Settings) -> Result<Arc<dyn Source>, Error> {
        Ok(Arc::new(PostgresSource::new(pipeline, settings)?))
    }
}

/// A database, read by a replication slot.
pub struct PostgresSource {
    pub(crate) place: Arc<Place>,
    /// What was asked for last: a schema does not tell which types the pipeline file named.
    requests: Mutex<BTreeMap<TableName, TableRequest>>,
    /// Which log was opened last.
    opened: Mutex<Option<LogIdentity>>,
    /// Which relations the tables were when reading the log last began.
    streamed: Mutex<BTreeMap<TableName, RelationId>>,
    /// The database's types, as far as they were there when they were last looked up for a chunk.
    pub(crate) types: Mutex<Arc<Types>>,
    durable: watch::Sender<Lsn>,
    /// The session before: a slot has one reader at a time.
    session: tokio::sync::Mutex<Option<Ended>>,
}

/// Where the server is, and how it is asked.
pub(crate) struct Place {
    pub(crate) settings: SourceSettings,
}

/// What a value's text is made by, in every session in which values come: a type without a binary form has its text alone, and a key is
/// written as text and read again. So it is whole, and the same, whatever the server, the database, the user or the pipeline file sets;
/// and names mean what the server itself calls so. By statements, since what stands between us and the server may know few parameters of
/// a session's beginning.
pub(crate) const TEXTS: &str = "
    SET search_path = pg_catalog; SET quote_all_identifiers = off; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = postgres;
    SET TimeZone = 'UTC'; SET extra_float_digits = 3; SET bytea_output = hex";

/// The slot of a session that has just ended is not free at once.
const SLOT_ATTEMPTS: u32 = 40;
const SLOT_PAUSE: Duration = Duration::from_millis(250);

impl Place {
    /// A connection for statements.
    pub(crate) async fn sql(&self) -> Result<Connection, Error> {
        self.settings.endpoint.connect(Purpose::Sql).await.map_err(|e| self.failed("connecting", e))
    }

    async fn replication(&self) -> Result<Connection, Error> {
        let failed = |e| self.failed("connecting for replication", e);
        let mut connection = self.settings.endpoint.connect(Purpose::Replication).await.map_err(failed)?;
        connection.query(TEXTS).await.map_err(|e| self.failed("preparing a session", e))?;
        Ok(connection)
    }

    /// What ended the log.
    pub(crate) fn stream_failed(&self, error: WireError) -> Error {
        let said = match error {
            WireError::Server(said) if said.code == UNDEFINED_FUNCTION => said,
            error => return self.failed("streaming", error),
        };
        let SourceSettings { endpoint, slot, publication, .. } = &self.settings;
        let what = format!(
            "{}: a published column came whose values the server cannot send in binary, and the log ends in front of its first row, for \
             all tables: {said}",
            endpoint.shown()
        );
        let remedy = format!(
            "leave the column out of the publication '{publication}' (`urutau doctor` names it), SELECT pg_drop_replication_slot({}); make it \
             anew, and {BEGIN_ANEW}",
            crate::wire::literal(slot)
        );
        Error::new(Kind::Config, "postgres-type", what, remedy)
    }

    /// An error, with what was to be done.
    pub(crate) fn failed(&self, doing: &str, error: WireError) -> Error {
        let SourceSettings { endpoint, slot, .. } = &self.settings;
        let gone = match &error {
            WireError::Server(said) => said.code == "55000" && said.message.contains("replication slot"),
            WireError::Io { .. } | WireError::Refused { .. } | WireError::Protocol(_) => false,
        };
        let what = format!("{}: {doing}", endpoint.shown());
        if gone {
            lost(&format!("{what}: slot '{slot}': the server has removed log that it needs"))
        } else {
            error.into_error(&what)
        }
    }
}

/// The server's word for a function that is not there: of those that it calls while it streams, one that sends values in binary.
const UNDEFINED_FUNCTION: &str = "42883";

/// The slot is of no use any more.
fn lost(what: &str) -> Error {
    let remedy = format!("raise max_slot_wal_keep_size, drop the slot, make it anew, and {BEGIN_ANEW}");
    Error::new(Kind::PositionLost, "postgres-slot-lost", what, remedy)
}

/// What helps where log is gone.
const BEGIN_ANEW: &str = "read the tables anew: `urutau table resnapshot`, or `snapshot: { mode: when-needed }`";

impl PostgresSource {
    /// The source that a pipeline file's section describes. Connects to nothing.
    pub fn new(pipeline: &str, settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            place: Arc::new(Place { settings: SourceSettings::read(pipeline, settings)? }),
            requests: Mutex::default(),
            opened: Mutex::default(),
            streamed: Mutex::default(),
            types: Mutex::default(),
            durable: watch::Sender::new(Lsn(0)),
            session: tokio::sync::Mutex::default(),
        })
    }

    fn remember(&self, tables: &[TableRequest]) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.extend(tables.iter().map(|request| (request.table.clone(), request.clone())));
    }

    /// The column types that the pipeline file names for a table.
    pub(crate) fn declared(&self, table: &TableName) -> BTreeMap<String, Type> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.get(table).map(|request| request.columns.clone()).unwrap_or_default()
    }

    /// Is every row of a table kept?
    fn keeps_every_row(&self, table: &TableName) -> bool {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.get(table).is_some_and(|request| request.keeps_every_row)
    }

    /// Which log was opened last.
    pub(crate) fn opened(&self) -> Option<LogIdentity> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Which relation a table was when reading the log last began.
    pub(crate) fn streamed(&self, table: &TableName) -> Option<RelationId> {
        self.streamed.lock().unwrap_or_else(PoisonError::into_inner).get(table).copied()
    }

    /// The slot, fit for reading, or why it is not.
    async fn slot(&self, connection: &mut Connection) -> Result<Option<Slot>, Error> {
        let SourceSettings { slot: name, create, .. } = &self.place.settings;
        let found = catalog::slot(connection, name).await.map_err(|e| self.place.failed("looking at the slot", e))?;
        let config = |code, what: String, remedy: String| Err(Error::new(Kind::Config, code, what, remedy));
        match found {
            None if *create => Ok(None),
            None => config("postgres-slot", format!("there is no replication slot '{name}'"), prepare::slot_statement(name)),
            Some(slot) if slot.is_lost() => {
                Err(lost(&format!("the server has removed log that the replication slot '{name}' needs")))
            }
            Some(slot) if slot.plugin != "pgoutput" || !slot.is_here => {
                let what = format!(
                    "the replication slot '{name}' is of the plugin {} in the database {}: expected pgoutput, in {}",
                    slot.plugin, slot.database, self.place.settings.endpoint.database
                );
                config("postgres-slot", what, "take another name: 'source.slotName'".into())
            }
            Some(slot) => Ok(Some(slot)),
        }
    }

    async fn begin(&self, from: Lsn) -> Result<Session, Error> {
        let mut attempts = 0;
        loop {
            let settings = &self.place.settings;
            let options = StreamOptions {
                slot: settings.slot.clone(),
                publication: settings.publication.clone(),
                from,
                durable: self.durable.subscribe(),
            };
            match Session::start(self.place.replication().await?, options).await {
                Ok(session) => return Ok(session),
                // Of ours that has just ended, or of another process: that one is told once it does not go away.
                Err(error) if error.sqlstate() == Some("55006") && attempts < SLOT_ATTEMPTS => {
                    attempts += 1;
                    tokio::time::sleep(SLOT_PAUSE).await;
                }
                Err(error) => return Err(self.place.failed("starting to stream", error)),
            }
        }
    }
}

#[async_trait]
impl Source for PostgresSource {
    async fn preflight(&self, tables: &[TableRequest]) -> Vec<Finding> {
        preflight::findings(&self.place, tables).await
    }

    async fn prepare(&self, tables: &[TableRequest]) -> Result<(), Error> {
        if self.place.settings.create { prepare::prepare(&self.place, tables).await } else { Ok(()) }
    }

    async fn describe(
        &self,
        tables: &[TableRequest],
        stored: &BTreeMap<TableName, Arc<TableSchema>>,
    ) -> Result<Vec<SourceTable>, Error> {
        self.remember(tables);
        describe::describe(&self.place, tables, stored).await
    }

    async fn sketch(&self, tables: &[TableRequest]) -> Result<Vec<Sketch>, Error> {
        sketch::sketch(&self.place, tables).await
    }

    async fn discover(&self) -> Result<Vec<TableName>, Error> {
        let mut connection = self.place.sql().await?;
        let found = catalog::discover(&mut connection, &self.place.settings.schemas).await;
        connection.close().await;
        found.map_err(|e| self.place.failed("looking for tables", e))
    }

    async fn open(&self) -> Result<OpenedLog, Error> {
        let mut connection = self.place.replication().await?;
        let log = catalog::identify(&mut connection).await.map_err(|e| self.place.failed("asking which log it is", e))?;
        let slot = self.slot(&mut connection).await?;
        connection.close().await;
        let making = || {
            let what = format!("the replication slot '{}' is still being made", self.place.settings.slot);
            Error::new(
                Kind::Transient,
                "postgres-slot",
                what,
                "it waits for all transactions that were running when it was begun",
            )
        };
        let floor = match slot {
            // It is made when the run begins, and begins there.
            None => log.end,
            Some(slot) => slot.confirmed.ok_or_else(making)?,
        };
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(log.identity.clone());
        Ok(OpenedLog { identity: log.identity, floor: Position::scalar(floor.0), end: Position::scalar(log.end.max(floor).0) })
    }

    /// Positions are ends of transactions and places between them, and the log marks every end: each reading divides there by itself.
    async fn stream(&self, start: &Start, tables: &[Arc<TableSchema>]) -> Result<Box<dyn LogReader>, Error> {
        let mut before = self.session.lock().await;
        if let Some(session) = before.take() {
            session.wait().await;
        }
        let from = Lsn(start.from.offset(&StreamName::from("")).0);
        let mut connection = self.place.sql().await?;
        let Some(slot) = self.slot(&mut connection).await? else {
            let name = &self.place.settings.slot;
            let what = format!("the replication slot '{name}' is gone");
            return Err(Error::new(Kind::Config, "postgres-slot", what, prepare::slot_statement(name)));
        };
        // The server would begin at what was acknowledged without a word.
        if let Some(confirmed) = slot.confirmed.filter(|confirmed| from < *confirmed) {
            let what = format!("the log can be read from {confirmed} on only, reading was to go on at {from}");
            return Err(Error::new(Kind::PositionLost, "postgres-position-lost", what, BEGIN_ANEW));
        }
        let failed = |e| self.place.failed("looking at the catalogue", e);
        let types = catalog::types(&mut connection).await.map_err(failed)?;
        let names: Vec<&TableName> = tables.iter().map(|schema| &schema.table).collect();
        let relations = catalog::tables(&mut connection, &names).await.map_err(failed)?;
        let xids = catalog::xids(&mut connection).await.map_err(failed)?;
        connection.close().await;
        let selected = {
            let select = |schema: &Arc<TableSchema>| {
                let (declared, relation) = (self.declared(&schema.table), relations.get(&schema.table).map(|table| table.id));
                let keeps_every_row = self.keeps_every_row(&schema.table);
                (schema.table.clone(), Selected { schema: schema.clone(), declared, keeps_every_row, relation })
            };
            tables.iter().map(select).collect()
        };
        let streamed = relations.iter().map(|(table, found)| (table.clone(), found.id)).collect();
        *self.streamed.lock().unwrap_or_else(PoisonError::into_inner) = streamed;
        let mut session = self.begin(from).await?;
        *before = Some(session.ended());
        let assembler = Assembler::new(selected, Arc::new(types), from, xids);
        Ok(Box::new(Reader::new(session, assembler, self.place.clone())))
    }

    fn begins_with_log(&self) -> bool {
        false
    }

    fn chunks(&self) -> Option<&dyn Chunks> {
        Some(self)
    }

    fn rows_by_key(&self) -> Option<&dyn RowsByKey> {
        Some(self)
    }

    async fn retention(&self) -> Result<Option<Retention>, Error> {
        let mut connection = self.place.sql().await?;
        let found = catalog::slot(&mut connection, &self.place.settings.slot).await;
        connection.close().await;
        let slot = found.map_err(|e| self.place.failed("looking at the slot", e))?;
        Ok(slot.map(|slot| Retention {
            kept_bytes: slot.behind,
            left_bytes: slot.safe.map(|safe| u64::try_from(safe).unwrap_or(0)),
        }))
    }

    async fn acknowledge(&self, upto: &Position) -> Result<(), Error> {
        let upto = Lsn(upto.offset(&StreamName::from("")).0);
        self.durable.send_if_modified(|durable| {
            let more = upto > *durable;
            if more {
                *durable = upto;
            }
            more
        });
        Ok(())
    }

    fn describe_position(&self, position: &Position) -> String {
        Lsn(position.offset(&StreamName::from("")).0).to_string()
    }
}
