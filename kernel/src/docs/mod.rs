//! The longer explanations: why the machines are as they are.
//!
//! Each page tells one concern from its problem to its rules, and names the places in the code that carry them out and the story in
//! `kernel/testdata/` that shows it. Read them in this order:
//!
//! 1. [`checkpoints`]: how rows become durable, and what each outcome of a commit means;
//! 2. [`recovery`]: how a life begins, why nothing is lost or doubled when one dies, and what an older one can still do;
//! 3. [`acknowledging`]: what the source may forget, and how an idle table is proven complete;
//! 4. [`decisions`]: what was decided, when, and because of what.
//!
//! The words: a *position* says how far a log was read; a *cut* where one table's copy stands; a *checkpoint* is what becomes visible
//! together; a *life* is one run of a pipeline, numbered by its *incarnation*; *the record* is the one small state of the pipeline as a
//! whole; *quiet* is the position in it below which no table is owed a row.

pub mod acknowledging;
pub mod checkpoints;
pub mod decisions;
pub mod recovery;
