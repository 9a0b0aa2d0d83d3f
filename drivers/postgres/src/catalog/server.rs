//! The server's settings, the user's rights, and the slot.

use crate::pgoutput::Lsn;
use crate::wire::{Connection, WireError, literal};

use super::Cells;

/// A server as a user sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    /// 150018 is 15.18.
    pub(crate) version: u32,
    pub(crate) wal_level: String,
    pub(crate) encoding: String,
    pub(crate) user: String,
    pub(crate) may_replicate: bool,
    pub(crate) may_create: bool,
    pub(crate) slots_max: u32,
    pub(crate) slots: u32,
    pub(crate) senders_max: u32,
    pub(crate) senders: u32,
    /// Megabytes; -1 is without bound.
    pub(crate) slot_wal_keep: i64,
}

pub(crate) async fn server(connection: &mut Connection) -> Result<Server, WireError> {
    let rows = connection.query(SERVER).await?;
    let row = Cells(rows.first().ok_or_else(|| WireError::Protocol("no answer".into()))?);
    Ok(Server {
        version: row.number(0)?,
        wal_level: row.text(1)?.to_owned(),
        encoding: row.text(2)?.to_owned(),
        user: row.text(3)?.to_owned(),
        may_replicate: row.boolean(4)?,
        may_create: row.boolean(5)?,
        slots_max: row.number(6)?,
        slots: row.number(7)?,
        senders_max: row.number(8)?,
        senders: row.number(9)?,
        slot_wal_keep: row.number(10)?,
    })
}

const SERVER: &str = "
    SELECT pg_catalog.current_setting('server_version_num'),
           pg_catalog.current_setting('wal_level'),
           pg_catalog.pg_encoding_to_char(d.encoding),
           current_user,
           r.rolreplication OR r.rolsuper OR EXISTS (
               SELECT FROM pg_catalog.pg_roles m
               WHERE m.rolname = 'rds_replication' AND pg_catalog.pg_has_role(current_user, m.oid, 'member')),
           pg_catalog.has_database_privilege(d.oid, 'CREATE'),
           pg_catalog.current_setting('max_replication_slots'),
           (SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots),
           pg_catalog.current_setting('max_wal_senders'),
           (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication),
           (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'max_slot_wal_keep_size')
    FROM pg_catalog.pg_database d, pg_catalog.pg_roles r
    WHERE d.datname = pg_catalog.current_database() AND r.rolname = current_user";

/// A replication slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub(crate) plugin: String,
    pub(crate) database: String,
    /// Of this database?
    pub(crate) is_here: bool,
    pub(crate) active_pid: Option<u32>,
    /// What was acknowledged: the log can be read from here. `None` while the slot is being made.
    pub(crate) confirmed: Option<Lsn>,
    /// `reserved`, `extended`, `unreserved`, `lost`.
    pub(crate) wal_status: String,
    /// Bytes of log that the slot makes the server keep.
    pub(crate) behind: u64,
    /// Bytes of log that may still be written before the slot is lost; `None` without a bound.
    pub(crate) safe: Option<i64>,
}

impl Slot {
    /// Has the server thrown away what the slot needs?
    pub(crate) fn is_lost(&self) -> bool {
        self.wal_status == "lost"
    }
}

pub(crate) async fn slot(connection: &mut Connection, name: &str) -> Result<Option<Slot>, WireError> {
    let rows = connection.query(&format!("{SLOT} WHERE slot_name = {}", literal(name))).await?;
    let Some(row) = rows.first().map(Cells) else { return Ok(None) };
    let lsn = |text: &str| text.parse::<Lsn>().map_err(|e| WireError::Protocol(e.to_string()));
    Ok(Some(Slot {
        plugin: row.optional(0).unwrap_or("none, a physical slot").to_owned(),
        database: row.optional(1).unwrap_or("no database").to_owned(),
        is_here: row.optional(2) == Some("t"),
        active_pid: row.optional(3).and_then(|pid| pid.parse().ok()),
        confirmed: row.optional(4).map(lsn).transpose()?,
        wal_status: row.optional(5).unwrap_or("lost").to_owned(),
        behind: row.optional(6).and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
        safe: row.optional(7).and_then(|bytes| bytes.parse().ok()),
    }))
}

const SLOT: &str = "
    SELECT plugin, database, database = pg_catalog.current_database(), active_pid, confirmed_flush_lsn, wal_status,
           pg_catalog.pg_wal_lsn_diff(
               CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                    ELSE pg_catalog.pg_current_wal_lsn() END, restart_lsn)::pg_catalog.int8,
           safe_wal_size
    FROM pg_catalog.pg_replication_slots";
