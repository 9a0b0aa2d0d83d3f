//! Where the generation of a table's state began in the table's own history, so that its sweep can tell the data files that
//! older generations left from its own (rule G2).
//!
//! Noted is the sequence number of the table's last snapshot *before* the commit that began the generation: the files that were
//! there then were added at or below it, and whatever is added later lies above it, on whatever branch: sequence numbers only
//! grow, and a rollback takes none back. The note stands beside the state, in the summary and as a property, and each later
//! commit of the generation carries it on, so that the state that is true after a rollback has the note that belongs to it.

use std::fmt;
use std::str::FromStr;

use iceberg::spec::TableMetadata;
use kernel::state::TableState;

use super::Standing;

/// Where a generation began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Began {
    /// Which generation.
    pub(crate) generation: u64,
    /// The table's last sequence number before it.
    pub(crate) after: i64,
}

impl Began {
    /// Where the generation of the state `new` began, if it is written upon what was `found` in `metadata`. Nobody knows where the
    /// state that was found lacks its note. A table that began at a place in the log (generation 0) has nothing older.
    pub(crate) fn of(new: &TableState, found: &Standing, metadata: &TableMetadata) -> Option<Self> {
        match &found.state {
            _ if new.generation == 0 => None,
            Some(state) if state.generation == new.generation => found.began,
            Some(_) | None => Some(Self { generation: new.generation, after: metadata.last_sequence_number() }),
        }
    }
}

impl fmt::Display for Began {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.generation, self.after)
    }
}

impl FromStr for Began {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once(':').and_then(|(generation, after)| Some((generation.parse().ok()?, after.parse().ok()?)));
        let (generation, after) = numbers.ok_or("it is not two numbers with a colon between them")?;
        Ok(Self { generation, after })
    }
}
