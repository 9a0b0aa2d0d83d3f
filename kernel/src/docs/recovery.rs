//! How a life begins, and why it may end at any moment (rules R, P4).
//!
//! # The law
//!
//! *From any reachable state, a new machine over what is stored, fed the replayed log, reaches the same final cuts, and at each cut that it
//! stores the contents that the log up to that cut defines.* There is no clean end that a life could miss, and nothing that only memory
//! knows may matter. `kernel/tests/recovery` states this as a property over arbitrary interleavings; `sim` does so over thousands of seeds.
//!
//! # The order of a beginning (rule R1)
//!
//! 1. **Read the record.** Its token is what the next write must find.
//! 2. **Take the next incarnation**, by compare-and-set. A take whose answer is lost is *not* taken: the record is read again and the next
//!    number is tried. Two processes can never live the same life.
//! 3. **Then read the tables' states.** Not before: a life that read them first could read what an older life, not yet fenced off by the
//!    number, is about to change. A state of a higher incarnation than ours ends this life. A missing record beside existing states is a
//!    typed stop: without it nobody can tell what the source may have forgotten.
//! 4. **Open the log**, and judge each table against it (rule P4, story 14):
//!    *lost*, the [effective cut](crate::docs::acknowledging#where-a-table-really-stands) does not contain what can no longer be streamed (not 'is less than': positions
//!    are a partial order); *foreign*, the log is another history, whatever its numbers; *ahead*, the log ends before the cut.
//!    A table is ahead, too, if it has a part of a transaction that the log does not have: on another server its coordinates count for
//!    nothing, so nothing would take those rows back (story 22).
//!    Lost puts one table into needs-snapshot, and is said to people when the record that says so is stored. Foreign and ahead end the life.
//! 5. **Read from the meet** of what the tables have taken. Each passes over what it has already.
//!
//! The stages are [`coordinator`](crate::coordinator)'s `Stage`, the code is `coordinator/start.rs`.
//!
//! # The older life
//!
//! A process that stands still cannot be stopped from outside, only made harmless:
//!
//! - what it commits before our first commit in a table is an ordinary commit, which we find as a conflict, and stand upon (R2, story 06);
//! - what it commits afterwards fails at the token, and the state that it finds names a higher incarnation: superseded, it stops
//!   everything, not only its commits (R5);
//! - the record is replaced by compare-and-set, and it learns the same there (story 07);
//! - on a quiet day, when it has nothing to write, it reads the record once in `validate_interval` and learns it there (O4, story 18);
//! - where nothing compares, our claim is higher than whatever it writes (R3);
//! - before it opens a lost log session again it asks the record whether it is still the newest (R4): two lives that reconnect blindly
//!   take an exclusive session from each other for ever;
//! - its staged files are deleted in a table only after our own first commit there is durable (C8): before that one of them may still become
//!   visible.
//!
//! # Going back (rule R6)
//!
//! There is one reader. A table that passed over rows (paused, halted, stalled, set back) needs it to go back; then it begins anew at the
//! meet of what the tables that can take rows have taken, with no transaction begun. [`Output::ReadLog`](crate::coordinator::Output::ReadLog)
//! carries an id, so the answer to the read that was under way is stale and its rows are dropped. It carries, too, the places behind which rows must
//! be divided, so that a cut inside a transaction covers all of an event or nothing of it.
//!
//! # Every wait ends (rule R7)
//!
//! [`Coordinator::waiting`](crate::coordinator::Coordinator::waiting) names each wait, since when, and what ends it: an answer, a time, or a person.
//! A step that keeps failing ends the life after `retry.give_up_after`; a table that holds the source is released after `hold`.
