//! What a coordinator and the owners of its slots say to each other, in one session: facts by id, never differences (rule O3).

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::Deletions;
use crate::coordinator::RowRange;
use crate::id::{AttemptId, Identity, Incarnation, LayoutName, Part, Slot, TableName, Token, Version, WorkerId};

/// Neighbouring rows of one slot, in log order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// Where they are.
    pub rows: RowRange,
    /// The first one's version. The coordinator gives versions before rows are routed (rule C9): those of other slots lie between, so
    /// the row store keeps how far each row is from the first.
    pub first: Version,
}

/// A coordinator to a worker, in one session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ToOwner {
    /// It is admitted.
    Welcome {
        /// By this life.
        incarnation: Incarnation,
    },
    /// The coordinator is still there.
    Alive,
    /// The next rows of a part.
    Rows {
        /// The try that they are for.
        attempt: AttemptId,
        /// What it is a try of.
        part: Part,
        /// How many of these messages came before it in this attempt.
        index: u32,
        /// The rows, which come with the message.
        run: Run,
    },
    /// That was all of the part: write it, and say where the rows are that it replaces.
    Write {
        /// The try.
        attempt: AttemptId,
        /// What it is a try of.
        part: Part,
        /// How many messages of rows there were.
        batches: u32,
        /// How many rows.
        rows: u64,
        /// Where to look for them; `None` where the sink locates nothing.
        at: Option<IndexAt>,
    },
    /// Forget this attempt. What it staged is not the worker's to delete (rule O10).
    Abandon {
        /// Which.
        attempt: AttemptId,
    },
    /// A commit is durable.
    Committed {
        /// The table.
        table: TableName,
        /// The table itself, of all that ever bore the name.
        identity: Identity,
        /// Of the checkpoint.
        layout: LayoutName,
        /// The snapshot that it was located at.
        from: Token,
        /// The snapshot that it made; `None` if only 'it is in the history' is known, or no row of before is left.
        to: Option<Token>,
        /// The attempts that count, of the slots that had rows.
        published: BTreeMap<Slot, AttemptId>,
    },
}

/// Which key index is needed, and at which snapshot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IndexAt {
    /// The index.
    pub index: IndexName,
    /// The snapshot.
    pub base: Token,
}

/// What a key index is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IndexName {
    /// The table.
    pub table: TableName,
    /// The table itself, of all that ever bore the name.
    pub identity: Identity,
    /// What decides which keys are in the slot.
    pub layout: LayoutName,
    /// The slot.
    pub slot: Slot,
}

/// A worker to a coordinator, in one session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FromOwner {
    /// Its first word.
    Hello {
        /// Who it is.
        worker: WorkerId,
        /// The highest incarnation that it has ever served.
        served: Incarnation,
    },
    /// It is still there.
    Alive,
    /// A part is staged under its attempt: durable but invisible, or visible and idempotent by version.
    Written {
        /// The try.
        attempt: AttemptId,
        /// What it is a try of.
        part: Part,
        /// The snapshot at which the rows that it replaces were located.
        base: Option<Token>,
        /// Where they are.
        deletions: Deletions,
    },
    /// It is not written.
    NotWritten {
        /// The try.
        attempt: AttemptId,
        /// Why.
        why: NotWritten,
    },
}

/// Why a part is not written.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NotWritten {
    /// The sink refuses these rows or this table: trying again changes nothing.
    Rejected {
        /// What is refused and what would help, for people.
        why: String,
    },
    /// It did not happen, or nobody knows.
    Transient {
        /// What happened, for people.
        why: String,
    },
}
