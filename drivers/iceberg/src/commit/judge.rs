//! What a table's standing makes of a commit, before anything is written for it.

use contract::CommitRequest;
use kernel::id::Token;
use kernel::outcome::CommitOutcome;
use kernel::state::TableState;

use crate::state::Standing;

/// Says what a table's standing makes of a request, or `None` if it is to be carried out.
pub(super) fn judge(request: &CommitRequest, found: &Standing, token: Token) -> Option<CommitOutcome> {
    if let Some(state) = &found.state {
        if state.incarnation > request.state.incarnation {
            return Some(CommitOutcome::Superseded);
        }
        if has_landed(request, state) {
            return Some(CommitOutcome::Durable { token });
        }
    }
    (token != request.token).then(|| CommitOutcome::Conflict { found: found.state.clone().map(Box::new), token })
}

/// Is the request in the history that ends with `found`? A commit id names data; a write without any is known by its state.
fn has_landed(request: &CommitRequest, found: &TableState) -> bool {
    if has_data(request) {
        found.commit == request.state.commit || found.ancestors.contains(request.state.commit)
    } else {
        *found == request.state
    }
}

pub(super) fn has_data(request: &CommitRequest) -> bool {
    request.truncate_first || request.sweep || !request.staged.is_empty()
}

impl Standing {
    /// Can this state stand as a property, without a snapshot of its own? Only if the newest snapshot with a state
    /// describes the same data, or if there is none (see `state`).
    pub(super) fn describes_same_data(&self, new: &TableState) -> bool {
        self.snapshot.is_none() || self.state.as_ref().is_some_and(|found| found.commit == new.commit)
    }
}
