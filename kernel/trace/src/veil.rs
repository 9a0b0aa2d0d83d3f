//! What of a process never stands in a trace, and what stands in its place.
//!
//! Keys, the bounds of chunks, the identity of a log, a sink's tokens, schemas and free texts become keyed hashes: equal ones equal
//! within a file, and nothing else can be told of them. The key is drawn for each file from the system's randomness and is forgotten
//! with the process, so that nobody can hash a list of likely keys and compare, and the same key is another hash in the next
//! file. A hash has 64 bits: of files with a million keys one in thirty million has two keys that look like one.
//! Of a free text its error code is kept. Digests are sums over hashes of keys that are the same everywhere: of them the count is
//! kept, and their sum is that of so many changes that are no rows ([`Digest::EVENT`]). So a replay sees a transaction that is told with
//! another number of changes, and does not see one that is told with others.

use std::hash::{BuildHasher, Hasher, RandomState};

use kernel::id::Identity;
use kernel::position::{Cut, Digest, LogIdentity, Within};
use kernel::state::{PipelineState, Range, TableRecord, TableState};

/// Through what something is written.
#[derive(Clone)]
pub(crate) enum Veil {
    /// Everything as it is: what a replay says of machines that never knew a key.
    Lifted,
    /// Under a key that nobody knows.
    Drawn(RandomState),
}

/// What a hash is of: equal bytes of two kinds have nothing to do with each other.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Of {
    Key,
    Bound,
    Identity,
    Token,
    Text,
}

impl Veil {
    /// A veil with a key of its own.
    pub(crate) fn draw() -> Self {
        Veil::Drawn(RandomState::new())
    }

    /// What stands for some bytes; `None` if they stand for themselves.
    pub(crate) fn hash(&self, of: Of, bytes: &[u8]) -> Option<u64> {
        let Veil::Drawn(key) = self else { return None };
        let mut hasher = key.build_hasher();
        hasher.write_u8(of as u8);
        hasher.write(bytes);
        Some(hasher.finish())
    }

    /// A name that says nothing.
    pub(crate) fn name<'a>(&self, of: Of, name: &'a str) -> std::borrow::Cow<'a, str> {
        match self.hash(of, name.as_bytes()) {
            Some(hash) => format!("~{hash:016x}").into(),
            None => name.into(),
        }
    }

    /// A text for people: its code, if it ends with one.
    pub(crate) fn text<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        match self.hash(Of::Text, text.as_bytes()) {
            Some(hash) => format!("{}~{hash:016x}", code(text).unwrap_or_default()).into(),
            None => text.into(),
        }
    }

    pub(crate) fn digest(&self, digest: Digest) -> Digest {
        match self {
            Veil::Lifted => digest,
            Veil::Drawn(_) => changes(digest.count),
        }
    }

    pub(crate) fn identity(&self, identity: &LogIdentity) -> LogIdentity {
        let name = |identity: &Identity| Identity::from(&*self.name(Of::Identity, identity.as_str()));
        LogIdentity {
            streams: identity.streams.iter().map(|(stream, identity)| (stream.clone(), name(identity))).collect(),
            coordinates: identity.coordinates.as_ref().map(name),
            lineage: identity.lineage.as_ref().map(name),
        }
    }

    pub(crate) fn table_state(&self, state: &TableState) -> TableState {
        let TableState {
            format,
            cut,
            identity,
            incarnation,
            commit,
            ancestors,
            sequence,
            generation,
            base,
            begun,
            tiling,
            in_doubt,
            ahead,
            schema,
        } = state;
        let range = |range: &Range| {
            let Range { end, durable } = range;
            Range { end: end.as_ref().map(|end| self.name(Of::Bound, end).into_owned()), durable: *durable }
        };
        TableState {
            format: *format,
            cut: self.cut(cut),
            identity: self.identity(identity),
            incarnation: *incarnation,
            commit: *commit,
            ancestors: ancestors.clone(),
            sequence: *sequence,
            generation: *generation,
            base: base.clone(),
            begun: *begun,
            tiling: tiling.iter().map(range).collect(),
            in_doubt: in_doubt.clone(),
            ahead: ahead.clone(),
            schema: schema.as_ref().map(|schema| self.text(schema).into_owned()),
        }
    }

    pub(crate) fn pipeline_state(&self, state: &PipelineState) -> PipelineState {
        let PipelineState { format, incarnation, identity, quiet, tables } = state;
        let entry = |entry: &TableRecord| {
            let TableRecord { phase, generation, named, skipped, why } = entry;
            // An empty one is what `said` leaves of it.
            let veiled = |why: &String| if why.is_empty() { String::new() } else { self.text(why).into_owned() };
            let why = why.as_ref().map(veiled);
            TableRecord { phase: *phase, generation: *generation, named: *named, skipped: skipped.clone(), why }
        };
        PipelineState {
            format: *format,
            incarnation: *incarnation,
            identity: self.identity(identity),
            quiet: quiet.clone(),
            tables: tables.iter().map(|(table, told)| (table.clone(), entry(told))).collect(),
        }
    }

    fn cut(&self, cut: &Cut) -> Cut {
        let mut veiled = Cut::at(cut.upto().clone());
        for (transaction, within) in cut.within() {
            let Within { last, digest } = within;
            veiled.take(transaction, *last, self.digest(*digest));
        }
        veiled
    }
}

/// The digest of so many changes that are no rows.
pub(crate) fn changes(count: u64) -> Digest {
    Digest { count, hash: Digest::EVENT.hash.wrapping_mul(count) }
}

/// The code that an error for people ends with: `... [jsonl-value]`.
fn code(text: &str) -> Option<&str> {
    let (_, code) = text.strip_suffix(']')?.rsplit_once('[')?;
    let is_code = code.len() <= 40 && code.contains('-') && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    is_code.then_some(code)
}
