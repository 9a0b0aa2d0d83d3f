//! Answers that are broken on their way: what only a fault of ours, or somebody's mischief, could bring.

use kernel::coordinator::{Input, LogEvent};
use kernel::id::{CommandId, CommitId, Incarnation};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::position::{Offset, Position};
use kernel::state::{PipelineState, TableState};

use super::log::key;
use crate::bytes::Bytes;

/// A number, small or at an edge.
fn number(from: &mut Bytes<'_>) -> u64 {
    match from.below(4) {
        0 => from.u8().into(),
        1 => u64::MAX - u64::from(from.u8() % 4),
        2 => (1 << 44) - 2 + u64::from(from.u8() % 4),
        _ => from.u64(),
    }
}

pub(super) fn spoil(input: &mut Input, from: &mut Bytes<'_>) {
    match input {
        Input::PipelineStateRead { id, state, .. } => match state {
            Some(state) if from.chance(200) => record(state, from),
            _ => spoil_id(id, from),
        },
        Input::PipelineStateStored { id, outcome } => match outcome {
            StoreOutcome::Conflict { found: Some(found), .. } => record(found, from),
            StoreOutcome::Stored { token } => *token = "made up".into(),
            StoreOutcome::Conflict { .. } | StoreOutcome::Unknown { .. } => spoil_id(id, from),
        },
        Input::TableRecovered { id, state, .. } => match state {
            Some(state) => table(state, from),
            None => spoil_id(id, from),
        },
        Input::Committed { id, outcome, .. } => match outcome {
            CommitOutcome::Conflict { found: Some(found), .. } => table(found, from),
            _ => spoil_id(id, from),
        },
        Input::LogOpened { floor, end, .. } => {
            let far = floor.streams().chain(end.streams()).map(|(stream, _)| (stream.clone(), Offset(number(from))));
            let far: Position = far.collect();
            if from.chance(128) { *floor = far } else { *end = far }
        }
        Input::LogRead { batches, events, .. } => {
            for batch in batches.iter_mut() {
                match from.below(3) {
                    0 => batch.bytes = number(from),
                    1 => batch.rows = number(from) as u32,
                    _ => {}
                }
            }
            for event in events {
                if from.chance(128) {
                    spoil_event(event, from);
                }
            }
        }
        Input::ChunkRead { chunk, .. } => match from.below(4) {
            0 => chunk.keys.push(key(from.u8())),
            1 => chunk.end = Some("nowhere".into()),
            2 => chunk.fence = Position::scalar(number(from)),
            _ => chunk.rows.iter_mut().for_each(|rows| rows.bytes = number(from)),
        },
        Input::RowsRead { answer, .. } => match from.below(4) {
            0 => answer.keys.push(key(from.u8())),
            1 => answer.gone.push(key(from.u8())),
            2 => answer.fence = Position::scalar(number(from)),
            _ => answer.rows.iter_mut().for_each(|rows| rows.rows = number(from) as u32),
        },
        Input::RangesPlanned { bounds, .. } => bounds.extend(["1".into(), "1".into()]),
        Input::VisibilityRead { visibility, .. } => visibility.unfinished = None,
        Input::Failed { id, .. } | Input::Refused { id, .. } | Input::Resolved { id, .. } | Input::LogFailed { id, .. } => {
            spoil_id(id, from);
        }
        Input::Written { attempt, .. } => attempt.number = number(from),
        Input::Operator(_) | Input::Timeout => {}
    }
}

fn spoil_id(id: &mut CommandId, from: &mut Bytes<'_>) {
    match from.below(2) {
        0 => id.number = number(from),
        _ => id.incarnation = Incarnation(number(from) as u32),
    }
}

fn spoil_commit(commit: &mut CommitId, from: &mut Bytes<'_>) {
    match from.below(2) {
        0 => commit.number = number(from),
        _ => commit.incarnation = Incarnation(number(from) as u32),
    }
}

fn record(state: &mut PipelineState, from: &mut Bytes<'_>) {
    match from.below(4) {
        0 => state.incarnation = Incarnation(number(from) as u32),
        1 => state.quiet = state.quiet.join(&Position::scalar(number(from))),
        _ => {
            for entry in state.tables.values_mut() {
                match from.below(3) {
                    0 => entry.generation = number(from),
                    1 => entry.named.iter_mut().for_each(|commit| spoil_commit(commit, from)),
                    _ => entry.named = None,
                }
            }
        }
    }
}

fn table(state: &mut TableState, from: &mut Bytes<'_>) {
    match from.below(8) {
        0 => state.sequence = number(from),
        1 => state.generation = number(from),
        2 => spoil_commit(&mut state.commit, from),
        3 => state.incarnation = Incarnation(number(from) as u32),
        4 => state.begun = kernel::id::Version(number(from)),
        5 => state.ancestors.push(CommitId { incarnation: state.incarnation, number: number(from) }),
        6 => state.in_doubt.push("t99".into()),
        _ => state.base = Position::scalar(number(from)),
    }
}

fn spoil_event(event: &mut LogEvent, from: &mut Bytes<'_>) {
    match event {
        LogEvent::Rows { rows, bytes, first, last, touched, .. } => match from.below(5) {
            0 => *bytes = number(from),
            1 => rows.rows = number(from) as u32..number(from) as u32,
            2 => std::mem::swap(first, last),
            3 => last.major = number(from),
            _ => {
                if let Some(touched) = touched {
                    touched.told.pop();
                }
            }
        },
        LogEvent::Ended { upto, .. } | LogEvent::Keepalive { upto } => {
            *upto = upto.streams().map(|(stream, _)| (stream.clone(), Offset(number(from)))).collect();
        }
        LogEvent::Truncated { by, .. } => *by = None,
        LogEvent::Schema { coordinate, .. } | LogEvent::Refused { coordinate, .. } => coordinate.major = number(from),
    }
}
