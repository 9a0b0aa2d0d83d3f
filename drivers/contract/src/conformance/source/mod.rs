//! The laws of sources.

mod again;
mod places;
mod reading;
mod repeats;
mod script;
mod shape;

use std::sync::Arc;

use async_trait::async_trait;
use kernel::position::Position;

pub use script::{Step, TABLES, What, columns, request};

use super::{Law, Report, check_all};
use crate::{Error, Kind, Source, TableRequest};

/// How a driver's tests let the kit at its source.
#[async_trait]
pub trait SourceHarness: Send + Sync {
    /// What the source and the harness can do.
    fn abilities(&self) -> SourceAbilities;

    /// A log for a law, that has the kit's [`TABLES`] and no change of them yet. It is removed when it is dropped.
    async fn fresh(&self) -> Result<Box<dyn SourcePlace>, Error>;
}

/// A log: files, a database. It outlives the sources that are opened over it.
#[async_trait]
pub trait SourcePlace: Send + Sync {
    /// Connects as a new process would.
    async fn open(&self) -> Result<Arc<dyn Source>, Error>;

    /// How one of the kit's tables is asked for.
    fn request(&self, table: &str) -> TableRequest {
        request(table)
    }

    /// Makes these changes at the source, one committed transaction each.
    async fn write(&self, transactions: &[Vec<Step>]) -> Result<(), Error>;

    /// Makes a change of `kit.words` that the source must refuse: a null key, a value that does not fit. In a transaction of
    /// its own. Not asked unless `refuses`.
    async fn write_refused(&self) -> Result<(), Error> {
        Err(unable())
    }

    /// Writes something that cannot be read and that belongs to no table. Not asked unless `poisons`.
    async fn write_poison(&self) -> Result<(), Error> {
        Err(unable())
    }

    /// Says that nothing more will be written, where a log can end.
    async fn finish(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the source forget what is in `upto`. Not asked unless `discards`.
    async fn discard(&self, upto: &Position) -> Result<(), Error> {
        let _ = upto;
        Err(unable())
    }
}

fn unable() -> Error {
    Error::new(Kind::Fatal, "kit-harness", "the harness says that it can do this, but has no way to", "mend the harness")
}

/// What a source and its harness can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceAbilities {
    /// [`SourcePlace::write_refused`]
    pub refuses: bool,
    /// [`SourcePlace::write_poison`]
    pub poisons: bool,
    /// [`SourcePlace::discard`]
    pub discards: bool,
    /// Its rows can be read again: [`Source::rows_by_key`].
    pub reads_rows: bool,
}

/// Checks all laws.
pub async fn check(harness: &(dyn SourceHarness + 'static)) -> Report {
    check_all(LAWS, harness, &harness.abilities()).await
}

/// A law of sources.
pub type SourceLaw = Law<dyn SourceHarness, SourceAbilities>;

/// All of them.
pub const LAWS: &[SourceLaw] = &[
    SourceLaw {
        name: "within-names-the-same-row",
        statement: "a coordinate means the same row on every read under the same identity: \
                    after a reconnect, under other limits, with one table more selected",
        exempt: always,
        run: |harness| Box::pin(repeats::within_names_the_same_row(harness)),
    },
    SourceLaw {
        name: "key-order-is-one",
        statement: "changes come in the order in which they were made, each once and as what it was",
        exempt: always,
        run: |harness| Box::pin(shape::changes_come_as_they_were_made(harness)),
    },
    SourceLaw {
        name: "positions-grow",
        statement: "each position of an end or a keepalive adds something to those before it, or nothing, and lacks nothing \
                    that the one before it in its streams has",
        exempt: always,
        run: |harness| Box::pin(places::positions_grow(harness)),
    },
    SourceLaw {
        name: "position-names-finished-transactions",
        statement: "`upto` gains a transaction at its end, and holds nothing that comes later",
        exempt: always,
        run: |harness| Box::pin(places::position_names_finished_transactions(harness)),
    },
    SourceLaw {
        name: "batches-are-whole",
        statement: "each row of a batch is in one event, in order and under its own transaction, and each event's rows are there",
        exempt: always,
        run: |harness| Box::pin(shape::batches_are_whole(harness)),
    },
    SourceLaw {
        name: "keys-are-present",
        statement: "every row has its whole key, deleted ones too",
        exempt: always,
        run: |harness| Box::pin(shape::keys_are_present(harness)),
    },
    SourceLaw {
        name: "rows-decode-under-their-schema",
        statement: "log rows use the schema of their position: the one that was asked for, or announced before them",
        exempt: always,
        run: |harness| Box::pin(shape::rows_decode_under_their_schema(harness)),
    },
    SourceLaw {
        name: "a-change-is-not-divided",
        statement: "both rows of a changed key come in one event, whatever the limit",
        exempt: always,
        run: |harness| Box::pin(shape::a_change_is_not_divided(harness)),
    },
    SourceLaw {
        name: "reads-keep-their-limit",
        statement: "a read brings no more rows than asked for, but for a piece of one transaction that cannot be divided",
        exempt: always,
        run: |harness| Box::pin(shape::reads_keep_their_limit(harness)),
    },
    SourceLaw {
        name: "reading-can-be-given-up",
        statement: "a read that is given up while it waits loses nothing",
        exempt: always,
        run: |harness| Box::pin(repeats::reading_can_be_given_up(harness)),
    },
    SourceLaw {
        name: "any-end-is-a-place-to-go-on",
        statement: "from the end of any transaction exactly the transactions come that are not in it, whole",
        exempt: always,
        run: |harness| Box::pin(places::any_end_is_a_place_to_go_on(harness)),
    },
    SourceLaw {
        name: "start-within-streamable",
        statement: "what can no longer be streamed is said when the log is opened, and reading from below it is refused",
        exempt: |can| (!can.discards).then_some("nothing makes this source forget"),
        run: |harness| Box::pin(places::start_within_streamable(harness)),
    },
    SourceLaw {
        name: "never-ahead-of-source",
        statement: "the end that opening the log tells contains everything that was written before",
        exempt: always,
        run: |harness| Box::pin(places::never_ahead_of_source(harness)),
    },
    SourceLaw {
        name: "sole-confirmer",
        statement: "only `acknowledge` moves the source's discard point, and no further than it says",
        exempt: always,
        run: |harness| Box::pin(places::sole_confirmer(harness)),
    },
    SourceLaw {
        name: "same-log-identity",
        statement: "a log keeps its identity while it grows and whoever opens it, and names every stream that it has",
        exempt: always,
        run: |harness| Box::pin(repeats::same_log_identity(harness)),
    },
    SourceLaw {
        name: "refusals-repeat",
        statement: "a change that is refused is refused on every reading, at the same place, and nothing else is held up by it",
        exempt: |can| (!can.refuses).then_some("nothing that can be written is refused by this source"),
        run: |harness| Box::pin(repeats::refusals_repeat(harness)),
    },
    SourceLaw {
        name: "poison-comes-last",
        statement: "what cannot be read and belongs to no table is an error, after everything before it, on every reading",
        exempt: |can| (!can.poisons).then_some("nothing that can be written is unreadable to this source"),
        run: |harness| Box::pin(repeats::poison_comes_last(harness)),
    },
    SourceLaw {
        name: "rows-are-read-again-by-key",
        statement: "rows that are asked for by their keys come as they are, each once; of the others it is said that there is none; \
                    the answer's snapshot provably saw what was finished before, and its fence contains that",
        exempt: |can| (!can.reads_rows).then_some("this source's rows can't be read again"),
        run: |harness| Box::pin(again::rows_are_read_again(harness)),
    },
    SourceLaw {
        name: "describing-repeats",
        statement: "tables are described in the order asked for, alike each time, with the key that was asked for",
        exempt: always,
        run: |harness| Box::pin(repeats::describing_repeats(harness)),
    },
];

fn always(_: &SourceAbilities) -> Option<&'static str> {
    None
}
