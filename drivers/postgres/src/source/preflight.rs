//! Everything at the server that would make a run fail, or make it fail one day, each with the SQL that mends it.

use contract::{Finding, Severity, TableRequest};
use kernel::id::TableName;
use rows::Type;

use super::describe::{self, Known};
use super::{Place, prepare, readable, remedies};
use crate::catalog::{self, Publication, Server, Slot};
use crate::pgoutput::Identity;
use crate::settings::SourceSettings;
use crate::values::PgType;
use crate::wire::identifier;

/// The oldest version that this driver is built for.
const VERSION_MIN: u32 = 140_000;
/// The newest one that it was run against.
const VERSION_TESTED: u32 = 189_999;
/// A slot that holds back so much log deserves a look.
const BEHIND_BYTES: u64 = 10 << 30;

pub(super) async fn findings(place: &Place, tables: &[TableRequest]) -> Vec<Finding> {
    let settings = &place.settings;
    let subject = settings.endpoint.shown();
    let gone = |error: contract::Error| Finding {
        severity: Severity::Error,
        code: error.code,
        subject: subject.clone(),
        what: error.what,
        remedy: error.remedy,
    };
    let mut connection = match place.sql().await {
        Ok(connection) => connection,
        Err(error) => return vec![gone(error)],
    };
    let server = match catalog::server(&mut connection).await {
        Ok(server) => server,
        Err(error) => return vec![gone(place.failed("looking at the server", error))],
    };
    let slot = match catalog::slot(&mut connection, &settings.slot).await {
        Ok(slot) => slot,
        Err(error) => return vec![gone(place.failed("looking at the slot", error))],
    };
    connection.close().await;
    let mut findings = Findings { all: Vec::new() };
    findings.server(&subject, &server);
    findings.slot(settings, &server, slot.as_ref());
    match Known::read(place, tables).await {
        Ok(known) => {
            findings.publication(settings, &server, known.publication.as_ref());
            for request in tables {
                findings.table(settings, &known, request);
            }
            match readable::findings(place, &known, tables).await {
                Ok(more) => findings.all.extend(more),
                Err(error) => findings.all.push(gone(error)),
            }
            match stopping(place, &known, tables).await {
                Ok(more) => findings.all.extend(more),
                Err(error) => findings.all.push(gone(error)),
            }
        }
        Err(error) => findings.all.push(gone(error)),
    }
    findings.all
}

/// What keeps a table from being copied as it is, if something does.
pub(super) fn fault(settings: &SourceSettings, known: &Known, request: &TableRequest) -> Option<Finding> {
    let mut findings = Findings { all: Vec::new() };
    findings.table(settings, known, request);
    findings.all.into_iter().find(|finding| finding.severity == Severity::Error)
}

/// Columns of other tables of the publication at which the server would end the log of all of them.
async fn stopping(place: &Place, known: &Known, tables: &[TableRequest]) -> Result<Vec<Finding>, contract::Error> {
    let mut connection = place.sql().await?;
    let settings = &place.settings;
    let types = known.types.unsendable();
    let found = catalog::columns_of(&mut connection, &settings.publication, &types, known.version).await;
    connection.close().await;
    let found = found.map_err(|e| place.failed("looking at the publication", e))?;
    let mut findings = Findings { all: Vec::new() };
    // Of the tables that were asked for it is said where they are described.
    for (table, column, of) in found.into_iter().filter(|(table, ..)| tables.iter().all(|request| request.table != *table)) {
        if let PgType::Unsendable(of) = known.types.resolve(of, -1) {
            let what = format!("table {table}, which is published too: {}", describe::stops(&column, &of));
            findings.add(Severity::Error, "postgres-type", table.as_str(), what, remedies::leave_out(settings, known, &table));
        }
    }
    Ok(findings.all)
}

struct Findings {
    all: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, severity: Severity, code: &'static str, subject: &str, what: String, remedy: impl Into<String>) {
        self.all.push(Finding { severity, code, subject: subject.to_owned(), what, remedy: remedy.into() });
    }

    fn server(&mut self, subject: &str, server: &Server) {
        let major = server.version / 10_000;
        if server.version < VERSION_MIN {
            let what = format!("the server is PostgreSQL {major}; 14 to 18 are supported");
            self.add(Severity::Error, "postgres-version", subject, what, "upgrade the server");
        } else if server.version > VERSION_TESTED {
            let what = format!("the server is PostgreSQL {major}, which urutau was not tested with");
            self.add(Severity::Warning, "postgres-version", subject, what, "");
        }
        if server.wal_level != "logical" {
            let what = format!("wal_level is {}, expected logical", server.wal_level);
            self.add(
                Severity::Error,
                "postgres-wal-level",
                subject,
                what,
                "ALTER SYSTEM SET wal_level = logical; and restart the server",
            );
        }
        if !server.may_replicate {
            let what = format!("the user {} may not use replication slots", server.user);
            let remedy = format!("ALTER ROLE {} REPLICATION;", identifier(&server.user));
            self.add(Severity::Error, "postgres-privilege", subject, what, remedy);
        }
        if server.encoding == "SQL_ASCII" {
            let what = "the database's encoding is SQL_ASCII: texts that are no UTF-8 will be refused".to_owned();
            self.add(Severity::Warning, "postgres-encoding", subject, what, "");
        }
        if server.slot_wal_keep >= 0 {
            let what = format!("max_slot_wal_keep_size is {} MB: a slot that is further behind is lost", server.slot_wal_keep);
            self.add(Severity::Info, "postgres-slot-wal-keep", subject, what, "");
        }
        if server.senders >= server.senders_max {
            let what = format!("all {} walsenders (max_wal_senders) are taken", server.senders_max);
            self.add(
                Severity::Warning,
                "postgres-senders",
                subject,
                what,
                "ALTER SYSTEM SET max_wal_senders = ...; and restart the server",
            );
        }
    }

    fn slot(&mut self, settings: &SourceSettings, server: &Server, slot: Option<&Slot>) {
        let name = &settings.slot;
        let Some(slot) = slot else {
            let what = format!("there is no replication slot '{name}'");
            match settings.create {
                true => self.add(Severity::Info, "postgres-slot", name, format!("{what}; a run makes it"), ""),
                false => self.add(Severity::Error, "postgres-slot", name, what, prepare::slot_statement(name)),
            }
            if server.slots >= server.slots_max {
                let what = format!("all {} replication slots (max_replication_slots) are taken", server.slots_max);
                let remedy =
                    "drop one that nobody reads, or ALTER SYSTEM SET max_replication_slots = ...; and restart the server";
                self.add(Severity::Error, "postgres-slots", name, what, remedy);
            }
            return;
        };
        if slot.plugin != "pgoutput" || !slot.is_here {
            let what = format!(
                "the slot is of the plugin {} in the database {}, expected pgoutput in this one",
                slot.plugin, slot.database
            );
            self.add(Severity::Error, "postgres-slot", name, what, "take another name: 'source.slotName'");
        }
        if slot.is_lost() {
            let what = "the server has removed log that the slot needs: its position is lost".to_owned();
            let remedy = format!(
                "raise max_slot_wal_keep_size; SELECT pg_drop_replication_slot({}); make it anew, and {}",
                crate::wire::literal(name),
                super::BEGIN_ANEW
            );
            self.add(Severity::Error, "postgres-slot-lost", name, what, remedy);
        }
        if let Some(pid) = slot.active_pid {
            let what = format!("the slot is being read, by the server's process {pid}");
            self.add(Severity::Info, "postgres-slot-active", name, what, "");
        }
        if let Some(safe) = slot.safe.filter(|safe| *safe < 64 << 20 && !slot.is_lost()) {
            let what = format!("after {} more MB of log the slot is lost", safe >> 20);
            self.add(Severity::Warning, "postgres-slot-safe", name, what, "run the pipeline, or raise max_slot_wal_keep_size");
        }
        if slot.behind > BEHIND_BYTES {
            let what = format!("the slot makes the server keep {} GB of log", slot.behind >> 30);
            self.add(Severity::Warning, "postgres-slot-behind", name, what, "run the pipeline, or drop the slot");
        }
    }

    fn publication(&mut self, settings: &SourceSettings, server: &Server, publication: Option<&Publication>) {
        let name = &settings.publication;
        let Some(publication) = publication else {
            if settings.create {
                self.add(
                    Severity::Info,
                    "postgres-publication",
                    name,
                    format!("there is no publication '{name}'; a run makes it"),
                    "",
                );
                if !server.may_create {
                    let what = format!("the user {} may not make publications in this database", server.user);
                    let remedy =
                        format!("GRANT CREATE ON DATABASE ... TO {}; (it must own the tables too)", identifier(&server.user));
                    self.add(Severity::Error, "postgres-privilege", name, what, remedy);
                }
            }
            return;
        };
        let kinds = [(publication.inserts, "insert"), (publication.updates, "update"), (publication.deletes, "delete")];
        let missing: Vec<&str> = kinds.iter().filter(|(is_there, _)| !is_there).map(|(_, kind)| *kind).collect();
        if !missing.is_empty() {
            let what = format!("the publication leaves out: {}. The copy would silently differ", missing.join(", "));
            let remedy = format!("ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate');", identifier(name));
            self.add(Severity::Error, "postgres-publication-kinds", name, what, remedy);
        }
        if !publication.truncates {
            let what = "the publication leaves out TRUNCATE: the copy keeps what is truncated".to_owned();
            let remedy = format!("ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate');", identifier(name));
            self.add(Severity::Warning, "postgres-publication-kinds", name, what, remedy);
        }
    }

    fn table(&mut self, settings: &SourceSettings, known: &Known, request: &TableRequest) {
        let name = request.table.as_str();
        let schema = match describe::table(settings, known, request) {
            Ok(schema) => schema,
            Err(problem) => return self.add(Severity::Error, problem.code, name, problem.what, problem.remedy),
        };
        let Some(found) = known.tables.get(&request.table) else { return };
        if schema.key.is_empty() {
            let what = format!(
                "table {name} has no key: its rows can only be appended, and the server refuses updates and deletes of it"
            );
            let remedy = format!("ALTER TABLE {} ADD PRIMARY KEY (...); or 'tables[].writeMode: append'", prepare::table(name));
            self.add(Severity::Warning, "postgres-no-key", name, what, remedy);
        }
        if found.kind == b'p' && known.publication.as_ref().is_some_and(|publication| !publication.via_root) {
            let what = format!("table {name} is partitioned, and the publication publishes its partitions under their own names");
            let remedy =
                format!("ALTER PUBLICATION {} SET (publish_via_partition_root = true);", identifier(&settings.publication));
            self.add(Severity::Error, "postgres-publication-root", name, what, remedy);
        }
        let sent = |column: &&catalog::CatalogColumn| schema.index_of(&column.name).is_some();
        let outside: Vec<&str> =
            found.columns.iter().filter(sent).filter(|column| column.may_be_outside).map(|column| column.name.as_str()).collect();
        // Of a table that is written by key the row is read again.
        let is_lost = request.keeps_every_row || schema.key.is_empty();
        if is_lost && found.identity != Identity::Full && !outside.is_empty() {
            let what = format!(
                "table {name}: an update that leaves a large value (about 2 kB and more) of {} as it is does not send it, and halts the \
                 table: where every row is kept it can't be found later",
                outside.join(", ")
            );
            // No index has the server send such a value: only whole old rows do.
            let otherwise = |table: &TableName| {
                format!("write the table by key ('tables[].writeMode'), or {}", remedies::leave_out(settings, known, table))
            };
            let remedy = remedies::whole_old_rows(settings, known, found, &request.table, otherwise);
            self.add(Severity::Warning, "postgres-unsent-value", name, what, remedy);
        }
        let published = known.published(&request.table);
        if let Some(problem) = published.and_then(|_| remedies::frozen(settings, known, found, &request.table)) {
            self.add(Severity::Error, problem.code, name, problem.what, problem.remedy);
        }
        let generated: Vec<&catalog::CatalogColumn> =
            found.columns.iter().filter(|column| column.is_generated && !sent(column)).collect();
        if !generated.is_empty() {
            let names: Vec<&str> = generated.iter().map(|column| column.name.as_str()).collect();
            let what = format!("table {name}: generated columns are not published: {}", names.join(", "));
            let could = known.version >= catalog::GENERATED_PUBLISHED && generated.iter().any(|column| !column.is_virtual);
            let remedy = match published.is_some_and(|published| published.is_listed) {
                _ if !could => String::new(),
                true => "name them in the publication's list of the table's columns".into(),
                false => prepare::generated_statement(&settings.publication),
            };
            self.add(Severity::Info, "postgres-generated", name, what, remedy);
        }
        for column in &found.columns {
            let Some(Type::Unknown(called)) = schema.index_of(&column.name).map(|place| &schema.columns[place].kind) else {
                continue;
            };
            let what = format!("table {name}: column '{}' is of the type {called}, which urutau does not read", column.name);
            let of = known.types.resolve(column.type_id, column.modifier);
            let remedy = remedies::unread(settings, known, &request.table, &of);
            self.add(Severity::Error, "postgres-type", name, what, remedy);
        }
    }
}
