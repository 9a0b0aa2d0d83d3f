//! Decisions, with their dates. They are not rewritten: a later one says what it replaces.
//!
//! **2026-11-30. Machines without I/O.** What may happen and what is durable is decided by state machines that are handed facts and the time. *Because*
//! the faults that lose rows are interleavings (a kill between two writes, a late answer, a process that wakes up), which nobody finds by running
//! real servers, and a machine that is a plain value can be played through millions of them. *It costs* ids on every command and a pump.
//!
//! **2026-11-30. The position is stored with the data, at the sink.** Not in a store of our own beside it, which could drift. *It costs* that a sink must be
//! able to keep a small state; for those that cannot, a position store with compare-and-set.
//!
//! **2026-11-30. One record for all tables, by compare-and-set.** It fences lives (their number is taken there) and proves idle tables complete. The first
//! idea, a heartbeat commit in every idle table, writes thousands of snapshots a day that nobody wants; the second, a lowest stored cut, lets one
//! idle table hold the source for ever. See [`acknowledging`](super::acknowledging).
//!
//! **2026-11-30. The record names commits, and states list their ancestors.** A record that named the newest commits, or compared numbers, was proven wrong
//! by a rollback within two lives. The planted bugs `RecordNamesNewest` and `LineageByNumber` keep those versions.
//!
//! **2026-11-30. Positions have no total order.** A vector of streams is compared by containment; rules say join, meet and contains. *It costs* that
//! 'the smaller one' cannot be said. The planted bug `MinimumInsteadOfMeet` says it.
//!
//! **2026-11-30. A transaction may be divided.** The alternatives are a bound on its size, or spilling to disk. *It costs* that a reader may see a part of it, that
//! coordinates inside a transaction must repeat, and that count and hash of what is covered are kept to notice when they do not.
//!
//! **2026-11-30. One reader that goes back**, instead of one reader a table or queues on disk. *It costs* that rows are read twice after a halt or a stall; so it
//! goes back at most once in `rewind_interval` for stalls.
//!
//! **2026-11-30. Fields for what comes next are stored from the first day** (`generation`, `base`, `begun`, tiling, `in_doubt`, `ahead`, several
//! divided transactions): a stored form that changes is a migration in the field.
//!
//! **2026-11-30. Golden scripts play against a sink on paper.** Whether 'committed' means durable or a conflict follows from what the script did before,
//! not from what its author wrote: a story cannot claim an outcome that no sink would give.
//!
//! **2026-12-01. One position for all shapes.** A position holds intervals of each stream; a prefix is one interval that begins at the beginning.
//! No rule asks which shape it has, so none can treat one otherwise. *It costs* that 'how far in this stream' has an answer
//! only where there is no hole, which is what `Position::offset` says. The planted bugs `LostByLastNumber` and `CoveredByLastNumber` ask for the last number.
//!
//! **2026-12-01. Sets have a bound, and it ends the run.** What is behind too many holes could only be forgotten (a stored cut that falls) or claimed
//! (rows that were never read). Both were refused: the run ends, and says which server setting makes the holes.
//!
//! **2026-12-01. A log of sets has one identity, its lineage.** Origins come and go, and a server never says that it does not know one; where each stream had its
//! own identity, a transaction that only a lost server had was judged by nobody. So the end of such a log counts for every origin.
//!
//! **2026-12-01. A part begins anew with each session.** Several owners of a table name every try at a part by an attempt, a number never used twice, and
//! only the present one counts, once; the rows stay with the router until it is written. The alternative, going on with a part in the next session,
//! needs acknowledged batches, a list of live parts in each welcome and rules for what was abandoned meanwhile, and sent as many rows again where
//! it was tried. *It costs* those rows. The planted bug `PartsOutliveSessions` goes on with them.
//!
//! **2026-12-01. Both sides of a session end it when it is silent, and a later one has a higher number.** The simulator showed what lacked: a worker whose
//! welcome was lost waited for ever, and a first word that came late took a worker out of the session that it was in. The planted bug
//! `SilenceIgnored` and the script `28-owner-sessions` keep that.
