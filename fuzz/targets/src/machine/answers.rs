//! Commands and answers as such: in which order they run, which answers bring rows, and what is answered where nothing happened.

use kernel::coordinator::{HeldBatch, Input, Output, ToWorker};
use kernel::id::{CommandId, TableName};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};

/// What runs first in, first out.
pub(super) fn lane(command: &Output) -> Option<(u8, Option<&TableName>)> {
    match command {
        Output::Send(ToWorker::Write { part, .. }) => Some((0, Some(&part.table))),
        Output::Commit { table, .. }
        | Output::Resolve { table, .. }
        | Output::ReleaseStaged { table, .. }
        | Output::DiscardOlder { table, .. } => Some((1, Some(table))),
        Output::Acknowledge { .. } => Some((2, None)),
        Output::ReadLog { .. } => Some((3, None)),
        _ => None,
    }
}

pub(super) fn rows_of(input: &Input) -> Vec<HeldBatch> {
    match input {
        Input::LogRead { batches, .. } => batches.clone(),
        Input::ChunkRead { chunk, .. } => chunk.rows.into_iter().collect(),
        Input::RowsRead { answer, .. } => answer.rows.into_iter().collect(),
        _ => Vec::new(),
    }
}

pub(super) fn brings_rows(input: &Input) -> bool {
    matches!(input, Input::LogRead { .. } | Input::ChunkRead { .. } | Input::RowsRead { .. })
}

fn why() -> String {
    "no answer".into()
}

/// What silence is told as.
pub(super) fn unknown(command: &Output) -> Option<Input> {
    Some(match command {
        Output::Send(ToWorker::Write { attempt, .. }) => {
            Input::Written { attempt: *attempt, outcome: WriteOutcome::Transient { why: why() } }
        }
        Output::Commit { id, table, .. } => {
            Input::Committed { id: *id, table: table.clone(), outcome: CommitOutcome::Unknown { why: why() } }
        }
        Output::StorePipelineState { id, .. } => {
            Input::PipelineStateStored { id: *id, outcome: StoreOutcome::Unknown { why: why() } }
        }
        other => return fails(other),
    })
}

/// The id of a command that reads.
fn read_by(command: &Output) -> Option<CommandId> {
    match command {
        Output::ReadPipelineState { id }
        | Output::RecoverTable { id, .. }
        | Output::Resolve { id, .. }
        | Output::PlanRanges { id, .. }
        | Output::ReadChunk { id, .. }
        | Output::ReadVisibility { id, .. }
        | Output::ReadRows { id, .. } => Some(*id),
        _ => None,
    }
}

/// It did not happen.
pub(super) fn fails(command: &Output) -> Option<Input> {
    Some(match command {
        Output::Send(ToWorker::Write { .. }) | Output::StorePipelineState { .. } => return unknown(command),
        Output::Commit { id, table, .. } => {
            Input::Committed { id: *id, table: table.clone(), outcome: CommitOutcome::Transient { why: why() } }
        }
        Output::ReadLog { id, .. } | Output::OpenLog { id } => {
            Input::LogFailed { id: *id, failure: LogFailure::SessionLost { why: why() } }
        }
        other => Input::Failed { id: read_by(other)?, why: why() },
    })
}

/// It can never work.
pub(super) fn refused(command: &Output, how: u8) -> Option<Input> {
    Some(match command {
        Output::Send(ToWorker::Write { attempt, .. }) => {
            Input::Written { attempt: *attempt, outcome: WriteOutcome::Rejected { why: why() } }
        }
        Output::Commit { id, table, .. } => {
            Input::Committed { id: *id, table: table.clone(), outcome: CommitOutcome::Rejected { why: why() } }
        }
        Output::StorePipelineState { .. } => return unknown(command),
        Output::ReadLog { id, .. } | Output::OpenLog { id } => {
            let failure = match how % 4 {
                0 => LogFailure::Poison { why: why() },
                1 => LogFailure::Config { why: why() },
                _ => LogFailure::PositionLost { why: why() },
            };
            Input::LogFailed { id: *id, failure }
        }
        other => Input::Refused { id: read_by(other)?, why: why() },
    })
}
