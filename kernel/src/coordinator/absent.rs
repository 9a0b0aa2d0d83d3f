//! What is said about values that updates left out: which rows lack some, and what was read for them. Facts of the source.

use alloc::vec::Vec;

use super::{HeldBatch, RowRange, Visibility};
use crate::id::EncodedKey;
use crate::position::{LogIdentity, Position};

/// What a row of the log says of the row with its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Told {
    /// Every value that it has now.
    Whole,
    /// It is gone.
    Gone,
    /// Some values. The others are those that it had before.
    Part,
    /// Some values of a row that came here from another key. The others are those that it had there: the row in front of this one
    /// tells that it is gone from there.
    PartOfMoved,
    /// Some values of a row that is new. What another row with its key had before says nothing of the others.
    PartOfNew,
}

impl Told {
    /// Does the row not tell all of itself?
    pub fn lacks(self) -> bool {
        match self {
            Told::Part | Told::PartOfMoved | Told::PartOfNew => true,
            Told::Whole | Told::Gone => false,
        }
    }
}

/// Rows that were read again by their keys, in one snapshot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RowsAnswer {
    /// The rows that are there, now in the row store, of the schema that was asked for; `None` if there are none.
    pub rows: Option<HeldBatch>,
    /// The key of each row, in their order.
    pub keys: Vec<EncodedKey>,
    /// Keys without a row. One that is in neither list was not read, for the bytes that it would have been.
    pub gone: Vec<EncodedKey>,
    /// What the snapshot saw that the rows are of.
    pub visibility: Visibility,
    /// Where the log ended after the read.
    pub fence: Position,
    /// The log of the server that answered.
    pub identity: LogIdentity,
}

/// What netting takes for the values that the last image of a key lacks. Of a row that is not taken `whole`, an image that lacks nothing
/// takes nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fill {
    /// The key.
    pub key: EncodedKey,
    /// The one row that was read; `None`: there was none, and the key is deleted.
    pub row: Option<RowRange>,
    /// The whole row is taken as it was read, and not only what the image lacks: it may be a later one.
    pub whole: bool,
}
