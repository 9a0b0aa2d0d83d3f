//! From the drivers' words to the kernel's: errors become outcomes by what can be done about them, rows become chunks.

use contract::{Error, Kind, LogEvent, LogRead};
use kernel::outcome::{LogFailure, WriteOutcome};
use pump::{Chunk, ChunkEvent, Failure};
use rows::shape::ShapeRowsError;

use crate::schemas::Schemas;

/// Of a command that only reads.
pub(crate) fn failure(error: Error) -> Failure {
    match error.kind {
        Kind::Transient => Failure::Transient(error.to_string()),
        Kind::PositionLost | Kind::Config | Kind::Rejected | Kind::Poison | Kind::Fatal => Failure::Refused(error.to_string()),
    }
}

/// Of opening the log: the same life may try again what is transient.
pub(crate) fn opening_failure(error: Error) -> LogFailure {
    reading_failure(error)
}

/// Of reading the log.
pub(crate) fn reading_failure(error: Error) -> LogFailure {
    let why = error.to_string();
    match error.kind {
        Kind::Transient => LogFailure::SessionLost { why },
        Kind::PositionLost => LogFailure::PositionLost { why },
        Kind::Poison => LogFailure::Poison { why },
        Kind::Config | Kind::Rejected | Kind::Fatal => LogFailure::Config { why },
    }
}

/// Of staging a part.
pub(crate) fn write_outcome(error: Error) -> WriteOutcome {
    let why = error.to_string();
    match error.kind {
        Kind::Transient => WriteOutcome::Transient { why },
        Kind::PositionLost | Kind::Config | Kind::Rejected | Kind::Poison | Kind::Fatal => WriteOutcome::Rejected { why },
    }
}

/// What one read brought, as the pump takes it: changes of schema followed, and then rows without what nobody needs.
pub(crate) fn chunk(read: LogRead, schemas: &Schemas) -> Result<Chunk, ShapeRowsError> {
    let events = read.events.into_iter().map(|told| event(told, schemas)).collect();
    let batches = read.batches.into_iter().map(|batch| schemas.narrow(batch)).collect::<Result<_, _>>()?;
    Ok(Chunk { batches, events, names: read.names, finished: read.finished })
}

fn event(event: LogEvent, schemas: &Schemas) -> ChunkEvent {
    match event {
        LogEvent::Rows { batch, rows, transaction } => ChunkEvent::Rows { batch, rows, transaction },
        LogEvent::Truncated { table, transaction, coordinate } => ChunkEvent::Truncated { table, transaction, coordinate },
        LogEvent::Schema { transaction, coordinate, schema } => {
            let table = schema.table.clone();
            match schemas.changed(&schema) {
                Ok(schema) => ChunkEvent::Schema { table, transaction, coordinate, schema },
                Err(why) => ChunkEvent::Refused { table, transaction, coordinate, why },
            }
        }
        LogEvent::Refused { table, transaction, coordinate, error } => {
            ChunkEvent::Refused { table, transaction, coordinate, why: error.to_string() }
        }
        LogEvent::Ended { transaction, upto, commit_time: _ } => ChunkEvent::Ended { transaction, upto },
        LogEvent::Keepalive { upto } => ChunkEvent::Keepalive { upto },
    }
}
