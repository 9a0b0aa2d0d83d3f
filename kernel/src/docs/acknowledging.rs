//! What the source may forget (rules A).
//!
//! # The problem
//!
//! An acknowledgement is permission to destroy the only other copy. Nothing in this crate is asserted harder. The obvious answer, the lowest
//! of the tables' stored cuts, has a flaw: a table's state stands where its *last row* put it. An idle table would hold the log for ever; and
//! after a restart, when the source has forgotten what lies behind, it would look lost. Writing a state for it now and then would mean commits
//! without rows, in every idle table, for ever.
//!
//! # The quiet record
//!
//! So one small record of the pipeline says for all tables together: **at or below `quiet` no member has a row that is not durable**
//! ([`PipelineState`](crate::state::PipelineState)).
//!
//! - A table is *complete* up to what it had taken when the oldest row that is not yet durable came; if nothing is on its way, up to
//!   all that it has taken. `quiet` is the meet of that over all members, joined with what is stored already: it never decreases (A1).
//! - A statement about a table is true of a *state* of it, and states can be set back by foreign hands. So the record **names**, for each
//!   table, the oldest remembered commit whose successor's first row lies above `quiet` (A2). Not simply the newest: if that one is rolled back,
//!   an older one would do just as well, and the table would be called lost for nothing.
//!
//! ## Where a table really stands
//!
//! The **effective cut** is the table's own cut joined with `quiet`, if the table's commit is the named one *or was built upon it*. States list
//! their [`Ancestors`](crate::state::Ancestors); it is looked up in the list, never concluded from numbers: after a rollback a higher number says
//! nothing. The lists are bounded, so a commit that would push the named one out waits until the record names a later one.
//!
//! Story 13 shows an idle table that is found at 3 and stands at 50.
//!
//! # The order that matters (rule A3)
//!
//! 1. rows are durable, with the state that says so;
//! 2. the record that says `quiet` is **known to be stored**;
//! 3. then, and only then, `quiet` is acknowledged, where the record names every member by a commit that its state is, or is built upon.
//!
//! It is recomputed after every fact (level, not edge), and said again in each session, since an acknowledgement has no answer and may die
//! with its session.
//!
//! # Tables that stand in the way (rule A5)
//!
//! A halted, paused or unreachable table holds `quiet` back. That ends by resume, by skip, or by **release**: the table needs a snapshot then.
//! First needs-snapshot is stored, and only after that `quiet` passes the table (story 09): in the other order a crash between the two would leave a
//! table that looks fine and lacks rows that nobody has any more. Nothing but a generation of its own takes needs-snapshot back, no later
//! halt, pause or resume. A table that is removed from the pipeline is released like any other.
//!
//! The record also keeps *why* a table is halted or needs a snapshot, since the life that knew it may be long over
//! ([`TableRecord::why`](crate::state::TableRecord::why), story 08). It is for people, and bounded. No machine decides by what is in it: a
//! record is not replaced because its text differs, but because a reason is there that was not, or because a table has halted since.
//!
//! # What counts as received (rule A4)
//!
//! Ends of transactions, keepalives *outside* of transactions, and where the reader began. A keepalive inside one may name a position beyond rows that
//! were not delivered yet.
//!
//! # What is checked
//!
//! `acknowledged-within-received`, `quiet-before-acknowledged`, `release-before-pass`, `position-covers-only-durable`: after every input, and the first two in
//! front of every acknowledgement. The simulator's oracle adds what one life cannot see: `record-claims-truth` looks the named commits up in the
//! table's history, lives before anything could be lost.
