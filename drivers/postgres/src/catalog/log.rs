//! Which log a server writes, where it ends, and what a new snapshot sees of it.

use std::collections::BTreeSet;

use kernel::id::{Identity, StreamName, TransactionName};
use kernel::position::LogIdentity;

use crate::pgoutput::Lsn;
use crate::visibility::{Seen, Xids};
use crate::wire::{Connection, WireError, literal};

use super::Cells;

/// Which log it is, and where it ends.
pub(crate) struct Log {
    pub(crate) identity: LogIdentity,
    pub(crate) end: Lsn,
}

/// A new snapshot: what it sees, and what contains all of that.
pub(crate) struct Standing {
    pub(crate) identity: LogIdentity,
    pub(crate) seen: Seen,
    /// Every commit that the snapshot sees ends at or below it, and the log comes that far also if nothing more happens.
    pub(crate) fence: Lsn,
    /// 150018 is 15.18.
    pub(crate) version: u32,
}

/// Asks over a connection for replication.
pub(crate) async fn identify(connection: &mut Connection) -> Result<Log, WireError> {
    let rows = connection.query("IDENTIFY_SYSTEM").await?;
    let row = only(&rows)?;
    let end = lsn(row.text(2)?)?;
    let more = connection
        .query(
            "SELECT d.oid, CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() END
             FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()",
        )
        .await?;
    let more = only(&more)?;
    // Of a standby's log only what is replayed can be read, and seen.
    let end = more.optional(1).map(lsn).transpose()?.map_or(end, |replayed| end.min(replayed));
    Ok(Log { identity: identity(row.text(0)?, row.text(1)?, more.text(0)?), end })
}

fn identity(system: &str, timeline: &str, database: &str) -> LogIdentity {
    let identity = Identity::from(format!("system {system}, timeline {timeline}, database {database}").as_str());
    LogIdentity {
        streams: [(StreamName::from(""), identity.clone())].into(),
        coordinates: Some(identity),
        ..LogIdentity::default()
    }
}

/// In a transaction with one snapshot: of that one, if it is the first that needs it.
pub(crate) async fn standing(connection: &mut Connection) -> Result<Standing, WireError> {
    let rows = connection.query(STANDING).await?;
    let row = only(&rows)?;
    let is_standby = row.boolean(1)?;
    let malformed = |e: crate::pgoutput::Malformed| WireError::Protocol(e.to_string());
    let no_number = || WireError::Protocol("a server's number is none".into());
    // The server's number is one without a sign, which SQL does not have.
    let system = row.number::<i64>(3)?.cast_unsigned().to_string();
    let timeline = match is_standby {
        true => row.number::<u32>(4)?,
        false => u32::from_str_radix(row.text(4)?, 16).map_err(|_| no_number())?,
    };
    let pages = Pages { bytes: row.number(6)?, segment_bytes: row.number(7)? };
    let end = lsn(row.text(2)?)?;
    Ok(Standing {
        identity: identity(&system, &timeline.to_string(), row.text(5)?),
        seen: Seen::read(row.text(0)?, !is_standby).map_err(malformed)?,
        fence: if is_standby { end } else { pages.end_of_record(end) },
        version: row.number(8)?,
    })
}

/// The end of the log is asked for behind the snapshot: a commit is in the log before any snapshot sees it. A standby sees one a moment
/// before it says that it is replayed, and never before it was received.
const STANDING: &str = "
    SELECT pg_catalog.pg_current_snapshot(),
           pg_catalog.pg_is_in_recovery(),
           CASE WHEN pg_catalog.pg_is_in_recovery()
                THEN greatest(pg_catalog.pg_last_wal_receive_lsn(), pg_catalog.pg_last_wal_replay_lsn())
                ELSE pg_catalog.pg_current_wal_insert_lsn() END,
           (SELECT system_identifier FROM pg_catalog.pg_control_system()),
           CASE WHEN pg_catalog.pg_is_in_recovery()
                THEN (SELECT greatest(c.timeline_id, r.min_recovery_end_timeline)::pg_catalog.text
                      FROM pg_catalog.pg_control_checkpoint() c, pg_catalog.pg_control_recovery() r)
                ELSE pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) END,
           (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()),
           (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'wal_block_size'),
           (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'wal_segment_size'),
           pg_catalog.current_setting('server_version_num')";

/// A number near those of the transactions that a session which begins now reads.
pub(crate) async fn xids(connection: &mut Connection) -> Result<Xids, WireError> {
    let rows = connection.query("SELECT pg_catalog.pg_current_snapshot()").await?;
    let seen = Seen::read(only(&rows)?.text(0)?, false).map_err(|e| WireError::Protocol(e.to_string()))?;
    Ok(Xids::near(seen.next()))
}

/// Does this session see a transaction that the log has told? One that waits for a synchronous standby is told before anybody sees it.
pub(crate) async fn sees(connection: &mut Connection, transaction: &TransactionName) -> Result<bool, WireError> {
    let name = literal(transaction.as_str());
    let seen = format!("SELECT pg_catalog.pg_visible_in_snapshot({name}::pg_catalog.xid8, pg_catalog.pg_current_snapshot())");
    connection.query(&seen).await?.first().map_or(Ok(false), |row| Cells(row).boolean(0))
}

/// Every transaction that is not over, of all databases. A superset: numbers of subtransactions are in it, which are no names.
pub(crate) async fn unfinished(connection: &mut Connection, seen: &Seen) -> Result<BTreeSet<TransactionName>, WireError> {
    // A transaction holds the lock on its number from before its first change until after it is seen.
    let rows = connection
        .query(
            "SELECT l.transactionid FROM pg_catalog.pg_locks l
             WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted",
        )
        .await?;
    let locked: Vec<u32> = rows.iter().map(|row| Cells(row).number(0)).collect::<Result<_, _>>()?;
    Ok(seen.unfinished(locked.into_iter()))
}

/// How the log is divided into pages.
struct Pages {
    bytes: u64,
    segment_bytes: u64,
}

impl Pages {
    /// Where the last record ends if the next one would begin here. Behind a page that is full the server names the place behind
    /// the next page's header; but where nothing follows, the log ends with the full page, and no sign of life names more.
    fn end_of_record(&self, next: Lsn) -> Lsn {
        /// `SizeOfXLogShortPHD` and `SizeOfXLogLongPHD`, the latter at the beginning of a segment.
        const HEADER_BYTES: u64 = 24;
        const SEGMENT_HEADER_BYTES: u64 = 40;
        if self.segment_bytes > 0 && next.0 % self.segment_bytes == SEGMENT_HEADER_BYTES {
            Lsn(next.0 - SEGMENT_HEADER_BYTES)
        } else if self.bytes > 0 && next.0 % self.bytes == HEADER_BYTES {
            Lsn(next.0 - HEADER_BYTES)
        } else {
            next
        }
    }
}

fn only<'a>(rows: &'a [crate::wire::Row]) -> Result<Cells<'a>, WireError> {
    rows.first().map(Cells).ok_or_else(|| WireError::Protocol("a question about the log has no answer".into()))
}

fn lsn(text: &str) -> Result<Lsn, WireError> {
    text.parse().map_err(|e: crate::pgoutput::Malformed| WireError::Protocol(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_ends_with_a_full_page_ends_in_front_of_the_next_header() {
        let pages = Pages { bytes: 0x2000, segment_bytes: 0x100_0000 };
        for (next, end) in [
            (0x0300_2018, 0x0300_2000),
            (0x0300_0028, 0x0300_0000),
            // A record that goes on behind the header, or ends elsewhere.
            (0x0300_2020, 0x0300_2020),
            (0x0300_2028, 0x0300_2028),
            (0x0300_0030, 0x0300_0030),
            (0x0300_1FF8, 0x0300_1FF8),
            (0x0300_2000, 0x0300_2000),
        ] {
            assert_eq!(pages.end_of_record(Lsn(next)), Lsn(end), "{next:X}");
        }
    }
}
