//! The laws of sinks.

mod generations;
mod life;
mod lives;
mod outcomes;
mod visible;

use std::sync::Arc;

use async_trait::async_trait;

use super::{Law, Report, Word, check_all};
use crate::{Capabilities, Error, Kind, Mode, Sink, SinkTable, StateWrite};

/// How a driver's tests let the kit at its sink.
#[async_trait]
pub trait SinkHarness: Send + Sync {
    /// What the sink and the harness can do.
    fn abilities(&self) -> SinkAbilities;

    /// An empty place for a law: nobody else uses it, and it is removed when it is dropped.
    async fn fresh(&self) -> Result<Box<dyn SinkPlace>, Error>;
}

/// Where a sink keeps things: a directory, a database, a warehouse. It outlives the sinks that are opened over it.
#[async_trait]
pub trait SinkPlace: Send + Sync {
    /// Opens the sink as a new process would. Sinks opened before stay as they are: older lives that have not noticed.
    async fn open(&self) -> Result<Arc<dyn Sink>, Error>;

    /// The rows of one of the kit's tables as its readers see them, in any order. Not asked unless `reads_back`.
    async fn visible_rows(&self, table: &SinkTable) -> Result<Vec<Word>, Error>;

    /// Changes a table as maintenance by somebody else does: the same rows, another version. Not asked unless `foreign_commit`.
    async fn foreign_commit(&self, table: &SinkTable) -> Result<(), Error> {
        Err(unable(table))
    }

    /// Takes a table's last commit back, as an operator can with the sink's own tools. Not asked unless `roll_back`.
    async fn roll_back(&self, table: &SinkTable) -> Result<(), Error> {
        Err(unable(table))
    }

    /// Leaves a table as a power cut during its last commit could have, when `step` of what the commit wrote had reached the
    /// disk. No sink is open. `false` if it has no so many steps. Not asked unless `tear`.
    async fn tear(&self, table: &SinkTable, step: u32) -> Result<bool, Error> {
        let _ = step;
        Err(unable(table))
    }
}

fn unable(table: &SinkTable) -> Error {
    let what = format!("{}: the harness says that it can do this, but has no way to", table.target);
    Error::new(Kind::Fatal, "kit-harness", what, "mend the harness")
}

/// What a sink and its harness can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SinkAbilities {
    /// What the sink says of itself.
    pub capabilities: Capabilities,
    /// How its tables can be written.
    pub modes: Vec<Mode>,
    /// Can its rows be read at all?
    pub reads_back: bool,
    /// [`SinkPlace::foreign_commit`]
    pub foreign_commit: bool,
    /// [`SinkPlace::roll_back`]
    pub roll_back: bool,
    /// [`SinkPlace::tear`]
    pub tear: bool,
}

/// Checks all laws.
pub async fn check(harness: &(dyn SinkHarness + 'static)) -> Report {
    check_all(LAWS, harness, &harness.abilities()).await
}

/// A law of sinks.
pub type SinkLaw = Law<dyn SinkHarness, SinkAbilities>;

/// All of them.
pub const LAWS: &[SinkLaw] = &[
    SinkLaw {
        name: "sink-says-what-it-can",
        statement: "what a sink says of itself is what its tests say of it, whoever opens it",
        exempt: always,
        run: |harness| Box::pin(visible::says_what_it_can(harness)),
    },
    SinkLaw {
        name: "state-and-data-move-together",
        statement: "staging sinks: exactly equal; sinks idempotent by version: visible data may be ahead of the state, never behind",
        exempt: keyed_rows,
        run: |harness| Box::pin(visible::state_and_data_move_together(harness)),
    },
    SinkLaw {
        name: "a-torn-commit-is-whole-or-absent",
        statement: "after a power cut during a commit, data and state are both there or both not",
        exempt: |can| compare_and_set(can).or(keyed_rows(can)).or((!can.tear).then_some("the harness cannot tear a commit")),
        run: |harness| Box::pin(lives::a_torn_commit_is_whole_or_absent(harness)),
    },
    SinkLaw {
        name: "one-image-per-key",
        statement: "a key has one row, that of its last commit, whatever was committed before",
        exempt: keyed_rows,
        run: |harness| Box::pin(visible::one_image_per_key(harness)),
    },
    SinkLaw {
        name: "deletes-remove",
        statement: "a deleted key has no row until it is made again; deleting what is not there does nothing",
        exempt: keyed_rows,
        run: |harness| Box::pin(visible::deletes_remove(harness)),
    },
    SinkLaw {
        name: "truncate-first",
        statement: "a commit that truncates leaves the rows that it brings and no other",
        exempt: |can| {
            keyed_rows(can)
                .or((!can.capabilities.truncates).then_some("the sink cannot remove all rows of a table in one commit"))
        },
        run: |harness| Box::pin(visible::truncate_first(harness)),
    },
    SinkLaw {
        name: "resnapshot-leaves-no-ghost",
        statement: "after the sweep of a generation no row of an older one is seen that was not written again, whoever lived in between",
        exempt: sweeps,
        run: |harness| Box::pin(generations::resnapshot_leaves_no_ghost(harness)),
    },
    SinkLaw {
        name: "a-sweep-spares-its-generation",
        statement: "a sweep removes no row that its generation wrote, of keys old or new, nor of a first generation any",
        exempt: sweeps,
        run: |harness| Box::pin(generations::a_sweep_spares_its_generation(harness)),
    },
    SinkLaw {
        name: "append-keeps-every-row-once",
        statement: "where every change is a row, each row of each commit is there once, equal ones too",
        exempt: |can| rows_of(can, Mode::Append),
        run: |harness| Box::pin(visible::append_keeps_every_row_once(harness)),
    },
    SinkLaw {
        name: "covered-rows-are-refused",
        statement: "append-idempotent: rows that the table's state covers are not added again",
        exempt: |can| rows_of(can, Mode::AppendIdempotent),
        run: |harness| Box::pin(visible::covered_rows_are_refused(harness)),
    },
    SinkLaw {
        name: "state-only-commit-keeps-data",
        statement: "a commit without rows changes the state, under the same commit id, and no row",
        exempt: keyed,
        run: |harness| Box::pin(visible::state_only_commit_keeps_data(harness)),
    },
    SinkLaw {
        name: "tables-are-independent",
        statement: "a commit to one table changes neither rows, state nor token of another",
        exempt: keyed,
        run: |harness| Box::pin(visible::tables_are_independent(harness)),
    },
    SinkLaw {
        name: "staged-published-at-most-once",
        statement: "a staged artefact is in one durable commit at most",
        exempt: keyed,
        run: |harness| Box::pin(outcomes::staged_published_at_most_once(harness)),
    },
    SinkLaw {
        name: "resolve-finds-what-landed",
        statement: "a commit of a life is found by its id while its state is kept, and nothing else is",
        exempt: keyed,
        run: |harness| Box::pin(outcomes::resolve_finds_what_landed(harness)),
    },
    SinkLaw {
        name: "a-stale-token-conflicts",
        statement: "a commit on a token that is not the table's writes nothing, and says what is there",
        exempt: compare_and_set,
        run: |harness| Box::pin(outcomes::a_stale_token_conflicts(harness)),
    },
    SinkLaw {
        name: "tokens-never-repeat",
        statement: "no token of a table comes twice, after a rollback or in another process neither",
        exempt: compare_and_set,
        run: |harness| Box::pin(outcomes::tokens_never_repeat(harness)),
    },
    SinkLaw {
        name: "a-superseded-life-cannot-commit",
        statement: "once a newer life has committed, an older one changes nothing and learns of it",
        exempt: compare_and_set,
        run: |harness| Box::pin(outcomes::a_superseded_life_cannot_commit(harness)),
    },
    SinkLaw {
        name: "the-highest-state-counts",
        statement: "of all states the one of the highest (incarnation, commit) counts, never the one written last",
        exempt: claims,
        run: |harness| Box::pin(outcomes::the_highest_state_counts(harness)),
    },
    SinkLaw {
        name: "the-highest-version-wins",
        statement: "of all images of a key the one of the highest version is seen, whenever they arrive; none below `begun` is",
        exempt: |can| claims(can).or(keyed_rows(can)),
        run: |harness| Box::pin(outcomes::the_highest_version_wins(harness)),
    },
    SinkLaw {
        name: "record-is-compare-and-set",
        statement: "the pipeline's record is replaced only by who knows the one that is there; its tokens never repeat",
        exempt: always,
        run: |harness| Box::pin(outcomes::record_is_compare_and_set(harness)),
    },
    SinkLaw {
        name: "recovery-gives-what-was-stored",
        statement: "a new process finds the states that were stored, byte for byte",
        exempt: keyed,
        run: |harness| Box::pin(lives::recovery_gives_what_was_stored(harness)),
    },
    SinkLaw {
        name: "staged-is-invisible",
        statement: "what was staged and not committed is never seen, not in a later life and not with its commits",
        exempt: |can| compare_and_set(can).or(keyed_rows(can)),
        run: |harness| Box::pin(lives::staged_is_invisible(harness)),
    },
    SinkLaw {
        name: "cleaning-spares-the-published",
        statement: "dropping what was staged touches neither published rows nor what this life has staged otherwise",
        exempt: keyed_rows,
        run: |harness| Box::pin(lives::cleaning_spares_the_published(harness)),
    },
    SinkLaw {
        name: "state-survives-foreign-commits",
        statement: "compaction, expiry or rollback by others neither lose the state nor resurrect rows",
        exempt: |can| {
            keyed_rows(can).or((!can.foreign_commit && !can.roll_back).then_some("nobody else can change a table of this sink"))
        },
        run: |harness| Box::pin(lives::state_survives_foreign_commits(harness)),
    },
    SinkLaw {
        name: "looking-changes-nothing",
        statement: "checking, ensuring, recovering and measuring change nothing that is stored",
        exempt: keyed,
        run: |harness| Box::pin(lives::looking_changes_nothing(harness)),
    },
];

fn always(_: &SinkAbilities) -> Option<&'static str> {
    None
}

fn keyed(can: &SinkAbilities) -> Option<&'static str> {
    (!can.modes.contains(&Mode::Upsert)).then_some("the sink has no tables that are kept by key")
}

fn keyed_rows(can: &SinkAbilities) -> Option<&'static str> {
    keyed(can).or((!can.reads_back).then_some("the sink's rows cannot be read"))
}

fn sweeps(can: &SinkAbilities) -> Option<&'static str> {
    keyed_rows(can).or((!can.capabilities.sweeps).then_some("the sink does not remove what an older generation left"))
}

fn rows_of(can: &SinkAbilities, mode: Mode) -> Option<&'static str> {
    match () {
        () if !can.reads_back => Some("the sink's rows cannot be read"),
        () if !can.modes.contains(&mode) => Some("the sink has no tables of that mode"),
        () => None,
    }
}

fn compare_and_set(can: &SinkAbilities) -> Option<&'static str> {
    let after = can.capabilities.state == StateWrite::AfterData;
    keyed(can).or(after.then_some("the sink's state write is not compare-and-set"))
}

fn claims(can: &SinkAbilities) -> Option<&'static str> {
    let with = can.capabilities.state == StateWrite::WithData;
    keyed(can).or(with.then_some("the sink's state write is compare-and-set"))
}
