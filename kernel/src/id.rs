//! Names and numbers of things. Every id that an answer can carry holds the incarnation of the life that made it,
//! so that an answer meant for an earlier life can be told from our own.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(Arc::from(name))
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(Arc::from(name))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                String::from(name.as_str())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A table as the source calls it, for example `shop.orders`. Its name at the target is another type.
    TableName
}
name! {
    /// One ordered stream of a log: a file, a partition. A log that is one stream calls it the empty name.
    StreamName
}
name! {
    /// What tells one history from another: a system identifier with its timeline, a file's first line, a cluster and topic id.
    Identity
}
name! {
    /// A value that a sink hands out with a table's state and compares at the next write; it never repeats. Opaque here.
    Token
}

name! {
    /// A transaction as the source's visibility knows it: an xid, a GTID. It says nothing of a place in the log.
    TransactionName
}
name! {
    /// Where a range of a snapshot's key space ends, in the words of the source. Only ever compared for equality here (rule S8).
    Bound
}

name! {
    /// What maps keys to slots, named by what it computes: two lives that use the same function call it the same (rule O8).
    LayoutName
}
name! {
    /// A data file of a sink that deletes rows by their place in it.
    FileName
}

/// A row's key in the one canonical encoding. Equal keys are equal bytes, wherever the row was read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncodedKey(Arc<[u8]>);

impl From<&[u8]> for EncodedKey {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }
}

impl EncodedKey {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for EncodedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("k")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One life of a pipeline. Each start takes the next number; what an older life still does must lose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u32);

impl Incarnation {
    /// The last life that a pipeline can have: a [`Version`] holds no more bits of it.
    pub const MAX: Self = Self((1 << (u64::BITS - Version::SEQUENCE_BITS)) - 1);

    /// The next life; `None` behind the last one.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self).filter(|next| *next <= Self::MAX)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "i{}", self.0)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name {
            /// The life that made it.
            pub incarnation: Incarnation,
            /// Its number in that life.
            pub number: u64,
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}.{}"), self.incarnation.0, self.number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}.{}", self.incarnation.0, self.number)
            }
        }
    };
}

numbered! {
    /// One command that wants an answer.
    CommandId, "#"
}
numbered! {
    /// One commit of one table's data. A commit id names data: a write that changes none keeps it (rule A2).
    CommitId, "c"
}
numbered! {
    /// One try at writing one part. Never used twice; every message and staged artefact about a part names it (rule O2).
    AttemptId, "a"
}

/// The number of a checkpoint of one table, within one life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointNumber(pub u64);

/// A share of a table's keys. There is one, number 0, until a table has several owners.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub u32);

/// One slot of one checkpoint of one table: what an owner nets and writes at once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Part {
    /// The table.
    pub table: TableName,
    /// Its checkpoint.
    pub checkpoint: CheckpointNumber,
    /// The slot whose rows these are.
    pub slot: Slot,
}

/// Rows kept in the row store under one id. Numbers are given by the store and never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BatchId(pub u64);

/// A connection to the source's log, numbered by the pump. What is said to an earlier one has no effect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Session(pub u64);

/// A process that owns slots of tables. One that starts again is another one (rule O3); so it chooses the number by chance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkerId(pub u64);

/// A connection between a coordinator and a worker, numbered by the pump on each side, a later one always higher. It is ordered, and
/// its end is the end of all that was sent in it (rule O3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkerSession(pub u64);

/// The order of a row at the sink: `incarnation << 44 | sequence` (rule C9). A later life's rows beat an earlier one's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub u64);

impl Version {
    /// How many bits hold the sequence.
    pub const SEQUENCE_BITS: u32 = 44;

    /// The highest number of a row in one life.
    pub const SEQUENCE_MAX: u64 = (1 << Self::SEQUENCE_BITS) - 1;

    /// The version of the row numbered `sequence` in the life `incarnation`.
    pub fn new(incarnation: Incarnation, sequence: u64) -> Self {
        Self((u64::from(incarnation.0) << Self::SEQUENCE_BITS) | (sequence & Self::SEQUENCE_MAX))
    }

    /// The life that gave it.
    pub fn incarnation(self) -> Incarnation {
        Incarnation((self.0 >> Self::SEQUENCE_BITS) as u32)
    }

    /// The row's number in that life.
    pub fn sequence(self) -> u64 {
        self.0 & Self::SEQUENCE_MAX
    }
}
