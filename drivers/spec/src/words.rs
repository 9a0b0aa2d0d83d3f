//! The fields that accept a few words, as types: one description for the reader, the schema, the reference and the model.

use std::fmt;

use serde::Serialize;

use crate::field::Word;

macro_rules! words {
    ($($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $meaning:literal])+ $variant:ident = $text:literal $(or $alias:literal)? $([$state:ident])?,)+ })+) => { $(
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
        pub enum $name {
            $($(#[doc = $meaning])+ #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            pub(crate) const WORDS: &'static [Word] = &[$(Word {
                name: $text,
                alias: words!(@alias $($alias)?),
                built: words!(@built $($state)?),
                meaning: concat!($($meaning),+),
            },)+];

            /// The word in a pipeline file.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }

            /// What the word means, by its name in a pipeline file.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($text => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )+ };
    (@alias) => { None };
    (@alias $alias:literal) => { Some($alias) };
    (@built) => { true };
    (@built not_yet) => { false };
}

words! {
    /// Whose defaults hold.
    Compat {
        /// The defaults of the Go urutau, for a file that was written for it.
        Go = "go",
    }

    /// What a TRUNCATE at the source does.
    OnTruncate {
        /// It empties the target.
        Propagate = "propagate",
        /// It is counted and passed over: from then on the target holds rows that the source does not.
        Ignore = "ignore",
        /// It halts the table.
        Fail = "fail",
    }

    /// What a line or message that cannot be read does.
    OnDecodeError {
        /// It stops the source; all finished transactions before it are committed.
        Fail = "fail",
        /// It is counted and logged, and the log goes on.
        Skip = "skip",
    }

    /// What a schema change at the source does to the target.
    SchemaEvolution {
        /// New columns are added, types are widened.
        Evolve = "evolve",
        /// The target keeps its columns; new ones are left out.
        Ignore = "ignore" [not_yet],
        /// The table halts.
        Fail = "fail",
    }

    /// How rows are applied.
    WriteMode {
        /// By key: the target is what the source is.
        Upsert = "upsert",
        /// Every change is a row of its own.
        Append = "append",
        /// Like append, but rows that the stored position covers are refused.
        AppendIdempotent = "append-idempotent",
    }

    /// What a delete does in a table that is appended to.
    OnDelete {
        /// It is a row of its own.
        Record = "record",
        /// It is left out.
        Skip = "skip" [not_yet],
    }

    /// What a fault of one table does to the run.
    OnError {
        /// This table halts, the others go on.
        Halt = "halt",
        /// The run stops.
        Stop = "stop",
    }

    /// What happens to a value that the target cannot hold.
    OnValue {
        /// The table halts.
        Error = "error",
        /// Null is written in its place.
        Null = "null",
        /// The nearest value that the target can hold is written in its place.
        Clamp = "clamp",
        /// The column is a text at the target, and the value is written as text.
        String = "string",
    }

    /// What the image of a row before its change holds.
    BeforeImage {
        /// Its key; the other columns are not trusted.
        Key = "key",
        /// The whole row.
        Full = "full",
    }

    /// How a table's changes are found.
    TableMode {
        /// In the source's log.
        Cdc = "cdc",
        /// By reading again, at each start, what lies behind a cursor.
        Incremental = "incremental" [not_yet],
    }

    /// How a table's rows get to the target before its changes do.
    SnapshotMode {
        /// A table that the sink does not know yet is read once.
        Initial = "initial",
        /// Never: only what changes from then on gets to the target.
        Never = "never",
        /// Read once, then the run ends.
        Only = "only" [not_yet],
        /// As initial, and again at the next start after a lost position.
        WhenNeeded = "when-needed",
    }

    /// What a column is filled with that the source's table does not have.
    MetadataSource {
        /// What happened to the row.
        Op = "op",
        /// When the source committed the change.
        CommitTs = "commit_ts",
        /// When urutau read the change.
        IngestTs = "ingest_ts",
        /// Where in the log the change stands.
        Position = "position",
        /// Where the row came from: snapshot, stream or incremental.
        Phase = "phase",
        /// The table's name at the source.
        SourceTable = "source_table" [not_yet],
        /// The topic.
        Stream = "stream" [not_yet],
        /// The partition.
        Shard = "shard" [not_yet],
        /// The offset.
        Sequence = "sequence" [not_yet],
        /// The message's own time.
        MessageTs = "msg_ts" [not_yet],
        /// The message's key.
        MessageKey = "msg_key" [not_yet],
        /// The message's headers.
        Headers = "headers" [not_yet],
    }

    /// How a comparison of a row filter is made. Null never satisfies one, except the two that ask for it.
    FilterOp {
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Neq = "neq",
        /// Less.
        Lt = "lt",
        /// Less or equal.
        Lte = "lte",
        /// Greater.
        Gt = "gt",
        /// Greater or equal.
        Gte = "gte",
        /// One of a list.
        In = "in",
        /// None of a list.
        NotIn = "not_in",
        /// It is null.
        IsNull = "is_null",
        /// It is not null.
        IsNotNull = "is_not_null",
    }
}
