//! How rows become durable (rules C).
//!
//! # The problem
//!
//! A copy is right if, whatever died in between, each change of the log is in it once, in order, and somebody can say up to where.
//! If the position is written before the data, a crash between the two loses rows; if after, they come twice. So the position is
//! written *with* the data, in one act of the sink: a [`TableState`](crate::state::TableState) becomes visible together with the rows
//! that it describes, or not at all (rule C4). Everything else follows from guarding that act.
//!
//! # From the log to the sink
//!
//! One reader reads the log; each change is judged at one place (`judge` in `checkpoint/intake.rs`): it is covered by what the table has
//! taken and has no effect, or it is taken, or the table is *blocked* from here on. Nothing above a table's `taken` is ever skipped.
//! Taken rows go to the table's **open** checkpoint.
//!
//! A checkpoint **closes** at a transaction's end when its age, rows or bytes say so and no commit of the table runs (rule C1): while one
//! runs the next collects more, which is group commit without a setting. At a hard limit (twice the rows or bytes, three times the
//! age, or where the budget is full) it closes *inside* a transaction, so that none is too large. Its cut then says how far inside:
//! [`Cut`](crate::position::Cut) holds, for each divided transaction, the last row's coordinate and a
//! [`Digest`](crate::position::Digest) of all rows up to it. When the transaction is read again these are compared; a log that tells it
//! otherwise halts the table (story 10 and 11).
//!
//! At most two closed ones wait. While the one **in flight** makes its way the reader waits too; if it stands still the reader goes on for
//! the other tables, and this one passes over rows until it has caught up (rule C3, story 12).
//!
//! The flight has four steps (`checkpoint/commit.rs`):
//!
//! | step | the machine says | and waits for |
//! |---|---|---|
//! | write | [`ToWorker::Write`](crate::coordinator::ToWorker::Write), under a new attempt each time | `Written` of this attempt |
//! | commit | [`Output::Commit`](crate::coordinator::Output::Commit), with the token of the state that it is built upon | an outcome |
//! | resolve | [`Output::Resolve`](crate::coordinator::Output::Resolve), if the outcome was unknown | is the commit id in the history? |
//! | validate | [`Output::ReadPipelineState`](crate::coordinator::Output::ReadPipelineState), if others committed | is this life still the newest? |
//!
//! # What each outcome means (rule C5)
//!
//! | [`CommitOutcome`](crate::outcome::CommitOutcome) | the decision |
//! |---|---|
//! | `Durable` | the table stands at the new state |
//! | `Unknown` | nothing is concluded: the history is asked for the commit id, then the same commit id is tried with the same token, so that it lands once at most. What it staged is deleted by nobody (C8) |
//! | `Conflict`, a higher incarnation is there | this life is superseded and stops everything |
//! | `Conflict`, our own commit is there | it had landed: durable |
//! | `Conflict`, the state that we expected is there | somebody committed upon it and changed nothing of ours: ask the record whether we are the newest, then the same commit at the new token |
//! | `Conflict`, anything else | what we hold was netted upon another base. The table is *set back*: all of it is given up, the table stands where the sink says, the reader goes back |
//! | `Superseded` | as it says |
//! | `Rejected` | the table halts, the others go on |
//! | `Transient` | again, later, for as long as `retry.give_up_after` allows |
//!
//! Stories 03 to 06 play all of them.
//!
//! # Sinks that do not compare
//!
//! Where the state is written after the data and nothing compares, the data must be idempotent by row version
//! ([`Version`](crate::id::Version): incarnation above sequence, so that a newer life's rows win), and each life *claims* every table
//! first (rule R3, story 15): the state that it found, under its own incarnation. What counts is the highest, never the latest written.
//!
//! # Values that are not there
//!
//! A checkpoint whose rows lack values that their updates did not send is not written before these are found: it stays open several
//! times its age, or waits closed in the queue, while the rows are read again (rules H; `kernel/src/absent/mod.rs`, stories 19 and 20).
//!
//! # What is checked
//!
//! `commit-in-order-per-table`, `everything-owed-is-tracked`, `effective-cut-never-falls`, `budget-conserved`, and in front of each commit
//! `one-attempt-counts`: see [`invariant`](crate::invariant). `kernel/tests/recovery` plays any interleaving and compares what is visible at each stored
//! cut with what the log up to it defines.
