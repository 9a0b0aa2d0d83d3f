//! Limits and intervals of the pipeline, and how its source behaves: each has a word, and a value that is not written down.

use serde::{Deserialize, Serialize};

use crate::step::Tab;

/// What becomes of a transaction without rows of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EmptyTransactions {
    /// It ends like others.
    End,
    /// A keepalive tells of it.
    Keepalive,
    /// Nothing tells of it.
    Silent,
}

macro_rules! options {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr, $word:literal;)*) => {
        /// The pipeline's limits and its source's habits.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Options {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl Default for Options {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Options {
            /// Every option's word.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// Sets the option with this word. `None` if there is no such option; else what would have been right, if not this.
            pub fn set(&mut self, word: &str, text: &str) -> Option<Result<(), &'static str>> {
                match word {
                    $($word => Some(match <$type as Setting>::read(text) {
                        Some(value) => {
                            self.$field = value;
                            Ok(())
                        }
                        None => Err(<$type as Setting>::EXPECTED),
                    }),)*
                    _ => None,
                }
            }

            /// Makes the option with this word as usual.
            pub fn reset(&mut self, word: &str) {
                let usual = Self::default();
                match word {
                    $($word => self.$field = usual.$field,)*
                    _ => {}
                }
            }

            /// The options that are not as usual, with their words.
            pub fn unusual(&self) -> Vec<(&'static str, String)> {
                let usual = Self::default();
                let mut unusual = vec![];
                $(if self.$field != usual.$field {
                    unusual.push(($word, self.$field.write()));
                })*
                unusual
            }
        }
    };
}

options! {
    /// A checkpoint closes when its first row is so old,
    age: u64 = 10, "age";
    /// or when it has so many rows,
    rows: u64 = 1, "rows";
    /// or so many bytes; a row has ten.
    bytes: u64 = 10_000, "bytes";
    /// How often the record is stored for the quiet position alone.
    record_interval: u64 = 10, "record-interval";
    /// How long after an empty read the log is read again.
    poll_interval: u64 = 5, "poll-interval";
    /// Bytes of rows that are kept for parts not written yet.
    budget: u64 = 100_000_000, "budget";
    /// Bytes that one read may bring.
    read_bytes: u64 = 10_000_000, "read-bytes";
    /// The first wait after a failure.
    retry_first: u64 = 5, "retry-first";
    /// The longest one.
    retry_most: u64 = 20, "retry-most";
    /// How long one step may fail.
    give_up_after: Option<u64> = None, "give-up-after";
    /// How long a blocked table may hold the source back.
    hold: Option<u64> = None, "hold";
    /// How much of the log a halted or paused table may keep.
    hold_distance: Option<u64> = None, "hold-distance";
    /// How often a life asks whether a newer one has begun.
    validate_interval: u64 = 300, "validate-interval";
    /// The least time between two goings back of the reader for a stalled table.
    rewind_interval: u64 = 10, "rewind-interval";
    /// Runs of commits that a state lists as its ancestors.
    ancestors: u64 = 16, "ancestors";
    /// Commits that a life remembers of a table.
    recent: u64 = 64, "recent";
    /// The source never forgets, and nothing is acknowledged.
    keeps_all: bool = false, "keeps-all";
    /// What is acknowledged is forgotten at once.
    discards: bool = true, "discards";
    /// A new session ends the one before it.
    exclusive: bool = false, "exclusive";
    /// The streams are origins of one history, which number their transactions; each server has them in an order of its own. Two that
    /// touch the same key keep theirs.
    sets: bool = false, "sets";
    /// The source promises that two that touch the same key keep their order; a log of sets that does not breaks it, until everything
    /// heals.
    key_order: bool = true, "key-order";
    /// So many intervals of one stream a position may have.
    intervals: u64 = 1_024, "intervals";
    /// Streams change over inside transactions, too.
    interleaves: bool = false, "interleaves";
    /// What becomes of transactions without rows of ours.
    empty: EmptyTransactions = EmptyTransactions::End, "empty-transactions";
    /// Of 1,000 steps in the log, how many send a keepalive.
    keepalives: u64 = 0, "keepalives";
    /// A change of schema is no event of its own: it is told before the first row that has it.
    rows_tell_schemas: bool = false, "rows-tell-schemas";
    /// The source can be read in chunks.
    chunks: bool = false, "chunks";
    /// Chunks of one table that are asked for or held at once.
    chunks_max: u64 = 1, "chunks-max";
    /// Rows of one chunk,
    chunk_rows: u64 = 2, "chunk-rows";
    /// and its bytes.
    chunk_bytes: u64 = 10_000, "chunk-bytes";
    /// Bytes of all chunks that are held or asked for.
    chunk_budget: u64 = 10_000, "chunk-budget";
    /// Keys that a chunk may see touched until it is answered.
    touched_keys: u64 = 100, "touched-keys";
    /// How often it is asked what a new snapshot sees.
    visibility_interval: u64 = 5, "visibility-interval";
    /// So many times its age a checkpoint stays open for values that updates left out.
    absent_ages: u64 = 6, "absent-ages";
    /// Keys that it remembers then,
    absent_keys: u64 = 100, "absent-keys";
    /// and keys with such values.
    absent_holes: u64 = 100, "absent-holes";
    /// Bytes that one reading of rows may bring.
    absent_bytes: u64 = 10_000, "absent-bytes";
    /// Readings for a closed checkpoint that find nothing before the table halts.
    absent_attempts: u64 = 10, "absent-attempts";
    /// The log has an end, until everything heals.
    finishes: bool = false, "finishes";
    /// The one fault of the run: this table's sink is away all the time, and the others must not mind.
    stopped: Option<Tab> = None, "stopped";
    /// When everything heals; else soon after the last thing that happens.
    heals: Option<u64> = None, "heals";
}

/// A value that an option may have.
trait Setting: Sized {
    const EXPECTED: &'static str;
    fn read(text: &str) -> Option<Self>;
    fn write(&self) -> String;
}

impl Setting for u64 {
    const EXPECTED: &'static str = "a number";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn write(&self) -> String {
        self.to_string()
    }
}

impl Setting for Option<u64> {
    const EXPECTED: &'static str = "a number, or no such line";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Some)
    }
    fn write(&self) -> String {
        self.map_or(String::new(), |n| n.to_string())
    }
}

impl Setting for Option<Tab> {
    const EXPECTED: &'static str = "a table, for example t0";
    fn read(text: &str) -> Option<Self> {
        text.strip_prefix('t')?.parse().ok().map(Some)
    }
    fn write(&self) -> String {
        self.map_or(String::new(), |n| format!("t{n}"))
    }
}

impl Setting for bool {
    const EXPECTED: &'static str = "yes or no";
    fn read(text: &str) -> Option<Self> {
        match text {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }
    }
    fn write(&self) -> String {
        if *self { "yes" } else { "no" }.into()
    }
}

impl Setting for EmptyTransactions {
    const EXPECTED: &'static str = "end, keepalive or silent";
    fn read(text: &str) -> Option<Self> {
        match text {
            "end" => Some(EmptyTransactions::End),
            "keepalive" => Some(EmptyTransactions::Keepalive),
            "silent" => Some(EmptyTransactions::Silent),
            _ => None,
        }
    }
    fn write(&self) -> String {
        match self {
            EmptyTransactions::End => "end",
            EmptyTransactions::Keepalive => "keepalive",
            EmptyTransactions::Silent => "silent",
        }
        .into()
    }
}
