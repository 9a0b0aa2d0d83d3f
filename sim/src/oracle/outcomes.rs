//! Commit outcomes.

use kernel::coordinator::Output;
use kernel::id::{AttemptId, TableName};
use kernel::state::{PipelineState, Skipped};

use super::Verdict;
use crate::sinks::{Deleted, Landed};

/// A staged artefact is visible in one commit at most.
pub fn staged_published_at_most_once(landed: &Landed) -> Verdict {
    match landed {
        Landed::Twice(attempt) => Err(format!("{attempt:?} is visible already")),
        _ => Ok(()),
    }
}

/// Nothing that may be visible, or may become so, is dropped.
pub fn staged_kept_while_unknown(landed: &Landed) -> Verdict {
    match landed {
        Landed::Gone(attempt, Deleted::Dropped) => Err(format!("{attempt:?} was dropped, and a commit shows it")),
        _ => Ok(()),
    }
}

/// And nothing that is or was visible is deleted.
pub fn dropped_was_never_visible(attempt: AttemptId, was_visible: bool) -> Verdict {
    if was_visible { Err(format!("{attempt:?} was visible, and is deleted")) } else { Ok(()) }
}

/// What a newer life still needs is not taken away as an older life's.
pub fn discarded_was_not_needed(landed: &Landed) -> Verdict {
    match landed {
        Landed::Gone(attempt, Deleted::Discarded) => {
            Err(format!("{attempt:?} was discarded as an older life's, and a commit shows it"))
        }
        _ => Ok(()),
    }
}

/// An event is passed over only by a life whose record says so.
pub fn skip_recorded_before_passed(record: Option<&PipelineState>, table: &TableName, passed: &Skipped) -> Verdict {
    let entry = record.and_then(|record| record.tables.get(table));
    if entry.is_some_and(|entry| entry.skipped.contains(passed)) {
        return Ok(());
    }
    Err(format!("{passed:?} of {table} was passed over, and the record does not say so"))
}

/// A life that is superseded stops in time, whether it has anything to write or not.
pub fn superseded_is_learned_in_time(now: u64, since: u64, bound: u64) -> Verdict {
    if now <= since + bound { Ok(()) } else { Err(format!("superseded and awake since {since}, it lives still")) }
}

/// A life that was told of a newer one says nothing but that it stops.
pub fn superseded_means_stopped(said: &Output) -> Verdict {
    match said {
        Output::Stop { .. } => Ok(()),
        other => Err(format!("after it was told of a newer life: {other:?}")),
    }
}
