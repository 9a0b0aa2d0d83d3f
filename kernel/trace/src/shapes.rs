//! What the machines' own types look like in a trace, made of words (`words`): one list of fields for telling and for reading, so that
//! nothing that a machine is told can be left out, and no new field be forgotten.

use kernel::config::{
    AbsentLimits, CheckpointLimits, Config, Join, OnError, OnTruncate, Resnapshot, Retry, SnapshotLimits, TableConfig,
};
use kernel::coordinator::{ChunkAnswer, HeldBatch, Input, LogEvent, Operator, RowsAnswer, Told, Touched, Visibility};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::position::LogIdentity;
use kernel::state::{PipelineState, TableState};
use kernel::worker::NetOutcome;

use crate::text::{Parse, Say, Text, Words, Wrong};

// ---- what is stored, in its stored form

macro_rules! stored {
    ($($state:ident $veil:ident),*) => { $(
        impl Say for $state {
            fn say(&self, text: &mut Text) {
                let state = text.veil.$veil(self);
                // Numbers, names and lists of them: there is nothing that could not be told.
                let json = serde_json::to_string(&state).unwrap_or_default();
                text.word(&json);
            }
        }

        impl Parse for $state {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                let json = words.json()?;
                serde_json::from_str(json).map_err(|error| words.wrong(format!("a stored state can't be read: {error}")))
            }
        }
    )* };
}
stored!(TableState table_state, PipelineState pipeline_state);

// ---- what is made of others

/// `struct Name { field "label", ... }`, or `enum Name { Variant "word" { field "label", ... }, Variant "word" (of), ... }`. A field
/// without a label stands by itself; `(LINES)` behind the name: in a list each one has a line of its own.
macro_rules! shape {
    (struct $type:ident $(($lines:ident))? { $($field:ident $($label:literal)?),* $(,)? }) => {
        impl Say for $type {
            $(const $lines: bool = true;)?

            fn say(&self, text: &mut Text) {
                let Self { $($field),* } = self;
                $( $(text.word($label);)? $field.say(text); )*
            }
        }

        impl Parse for $type {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                $( $(words.label($label)?;)? let $field = Parse::parse(words)?; )*
                Ok(Self { $($field),* })
            }
        }
    };
    (enum $type:ident $(($lines:ident))? {
        $($variant:ident $word:literal $({ $($field:ident $($label:literal)?),* })? $(($inner:ident))?),* $(,)?
    }) => {
        impl Say for $type {
            $(const $lines: bool = true;)?

            fn say(&self, text: &mut Text) {
                match self {
                    $( Self::$variant $({ $($field),* })? $(($inner))? => {
                        text.word($word);
                        $( $( $(text.word($label);)? $field.say(text); )* )?
                        $( $inner.say(text); )?
                    } )*
                }
            }
        }

        impl Parse for $type {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                let word = words.word()?;
                match &*word {
                    $( $word => {
                        $( $( $(words.label($label)?;)? let $field = Parse::parse(words)?; )* )?
                        $( let $inner = Parse::parse(words)?; )?
                        Ok(Self::$variant $({ $($field),* })? $(($inner))?)
                    } )*
                    _ => {
                        let known = [$($word),*].join(", ");
                        Err(words.wrong(format!("'{word}' is none of {known}")))
                    }
                }
            }
        }
    };
}

shape! { enum Input {
    PipelineStateRead "record-read" { id, state "record", token "token" },
    PipelineStateStored "record-stored" { id, outcome },
    TableRecovered "table-recovered" { id, table, state "state", token "token" },
    LogOpened "log-opened" { id, session "session", identity "of", floor "from", end "to" },
    LogRead "log-read" { id, finished "finished", batches "batches", events "events" },
    LogFailed "log-failed" { id, failure },
    RangesPlanned "ranges-planned" { id, bounds },
    ChunkRead "chunk-read" { id, chunk },
    VisibilityRead "visibility-read" { id, visibility },
    RowsRead "rows-read" { id, answer },
    Written "written" { attempt, outcome },
    Committed "committed" { id, table, outcome },
    Resolved "resolved" { id, table, found "found", token "token" },
    Failed "failed" { id, why },
    Refused "refused" { id, why },
    Operator "person" (operator),
    Timeout "time",
} }

shape! { enum Operator {
    Pause "pauses" (table),
    Resume "resumes" (table),
    Skip "skips" (table),
    Release "releases" (table),
    Resnapshot "resnapshots" (table),
    Drain "drains",
} }

shape! { enum LogEvent (LINES) {
    Rows "rows" { table, transaction, rows, bytes, first, last, digest, touched },
    Truncated "truncated" { table, transaction, coordinate, by },
    Schema "schema" { table, transaction, coordinate, schema, by },
    Refused "refused" { table, transaction, coordinate, why },
    Ended "ended" { transaction, upto },
    Keepalive "keepalive" { upto },
} }

shape! { struct HeldBatch { batch, rows "rows", bytes "bytes" } }
shape! { struct Touched { by, keys, told } }
shape! { enum Told { Whole "whole", Gone "gone", Part "part", PartOfMoved "part-of-moved", PartOfNew "part-of-new" } }
shape! { struct Visibility { proven "proven", unfinished "unfinished" } }
shape! { struct ChunkAnswer {
    rows, end "up-to", visibility, fence "fence", schema "schema", identity "of", keys "keys",
} }
shape! { struct RowsAnswer { rows, gone "gone", visibility, fence "fence", identity "of", keys "keys" } }

impl Say for LogIdentity {
    fn say(&self, text: &mut Text) {
        let Self { streams, coordinates, lineage } = self;
        streams.say(text);
        text.word("numbered-by");
        coordinates.say(text);
        // Few logs have one.
        if let Some(lineage) = lineage {
            text.word("lineage");
            lineage.say(text);
        }
    }
}

impl Parse for LogIdentity {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        let streams = Parse::parse(words)?;
        words.label("numbered-by")?;
        let coordinates = Parse::parse(words)?;
        let lineage = if words.take("lineage") { Some(Parse::parse(words)?) } else { None };
        Ok(Self { streams, coordinates, lineage })
    }
}

shape! { enum StoreOutcome {
    Stored "stored" { token },
    Conflict "conflict" { found, token },
    Unknown "unknown" { why },
} }
shape! { enum CommitOutcome {
    Durable "durable" { token },
    Conflict "conflict" { found, token },
    Unknown "unknown" { why },
    Superseded "superseded",
    Rejected "rejected" { why },
    Transient "transient" { why },
} }
shape! { enum WriteOutcome { Written "written", Rejected "rejected" { why }, Transient "transient" { why } } }
shape! { enum NetOutcome { Netted "netted" { rows "rows", images "images", keys "keys" }, Rejected "rejected" { why } } }
shape! { enum LogFailure {
    SessionLost "session-lost" { why },
    Poison "poison" { why },
    PositionLost "position-lost" { why },
    Config "config" { why },
} }

// ---- the configuration

shape! { struct CheckpointLimits { age "age", rows "rows", bytes "bytes" } }
shape! { struct Retry { first "first", most "most", give_up_after "give-up-after" } }
shape! { struct SnapshotLimits {
    chunks_max "chunks", chunk_rows_max "chunk-rows", chunk_bytes_max "chunk-bytes", held_bytes_max "held-bytes",
    touched_keys_max "touched-keys", visibility_interval "visibility",
} }
shape! { struct AbsentLimits {
    keys_max "keys", holes_max "holes", read_bytes_max "read-bytes", ages "ages", attempts_max "attempts",
} }
shape! { struct TableConfig (LINES) {
    join "join", keyed "keyed", state_with_data "state-with-data", on_truncate "truncate", on_error "error",
    resnapshot "resnapshot",
} }
shape! { enum Join { Beginning "beginning", Now "now", Snapshot "snapshot" } }
shape! { enum OnTruncate { Propagate "propagate", Ignore "ignore", Fail "fail" } }
shape! { enum OnError { Halt "halt", Stop "stop" } }
shape! { enum Resnapshot { WhenAsked "when-asked", AtStart "at-start" } }

/// Each field in a line of its own. Those that came `later` stand only where they are not what they are if nobody says it, so that
/// a trace of an older release is one of this one. Where wrong rules can be planted there is a field more, which no trace has: so
/// this is a list by hand, and a test holds it against what a configuration shows of itself.
macro_rules! config {
    ($($field:ident),*; later $($later:ident),* $(,)?) => {
        impl Say for Config {
            fn say(&self, text: &mut Text) {
                $( text.new_line(); text.word(stringify!($field)); self.$field.say(text); )*
                let usual = Config::new(Default::default());
                $( if self.$later != usual.$later {
                    text.new_line();
                    text.word(stringify!($later));
                    self.$later.say(text);
                } )*
            }
        }

        impl Parse for Config {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                let mut config = Config::new(Default::default());
                $( words.label(stringify!($field))?; config.$field = Parse::parse(words)?; )*
                $( if words.take(stringify!($later)) { config.$later = Parse::parse(words)?; } )*
                Ok(config)
            }
        }
    };
}
config! {
    checkpoint, record_interval, poll_interval, budget_bytes_max, read_bytes_max, retry, source_keeps_all, hold, validate_interval,
    rewind_interval, ancestor_runs_max, recent_commits_max, until_current, source_reads_chunks, snapshot, absent, tables;
    later source_keeps_key_order, hold_distance, intervals_max,
}
