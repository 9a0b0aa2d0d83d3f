//! One message of the output plugin.

use super::cursor::Cursor;
use super::{Lsn, Malformed, RelationId, Tuple, TypeId};

/// What the server says, in the order of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// A transaction's changes follow, up to its commit.
    Begin {
        /// Where its commit record begins. Grows from transaction to transaction.
        commit: Lsn,
        /// Microseconds since 2000.
        time: i64,
        /// Its number at the server.
        xid: u32,
    },
    /// The transaction is over.
    Commit {
        /// Where its commit record begins.
        commit: Lsn,
        /// Where its commit record ends: everything before is delivered.
        end: Lsn,
        /// Microseconds since 2000.
        time: i64,
    },
    /// The transaction came to this server by replication.
    Origin {
        /// Where it was committed there.
        commit: Lsn,
        /// The name of the other server.
        name: &'a str,
    },
    /// What the rows of a relation look like from here on.
    Relation(RelationMessage<'a>),
    /// A type that is not built in, before the first relation that needs it. Of a domain: the name of what it is made of.
    Type {
        /// Which one.
        id: TypeId,
        /// Its schema; empty for `pg_catalog`.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// A row was made.
    Insert {
        /// Where.
        relation: RelationId,
        /// The row.
        new: Tuple<'a>,
    },
    /// A row was changed.
    Update {
        /// Where.
        relation: RelationId,
        /// What it was; absent if its identity did not change and is not the whole row.
        old: Option<OldRow<'a>>,
        /// What it is.
        new: Tuple<'a>,
    },
    /// A row is gone.
    Delete {
        /// Where.
        relation: RelationId,
        /// What it was.
        old: OldRow<'a>,
    },
    /// Relations were emptied.
    Truncate {
        /// Which.
        relations: Vec<RelationId>,
        /// With CASCADE: all that it reached are in the list.
        cascade: bool,
        /// With RESTART IDENTITY.
        restart_identity: bool,
    },
    /// Somebody put a message into the log.
    Logical {
        /// Does it belong to the transaction around it?
        transactional: bool,
        /// Where it stands.
        at: Lsn,
        /// What kind of message, by the sender's words.
        prefix: &'a str,
        /// What it says.
        content: &'a [u8],
    },
}

/// The old row of an update or a delete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OldRow<'a> {
    /// The columns of its identity; all others are null.
    Key(Tuple<'a>),
    /// The whole row.
    Full(Tuple<'a>),
}

/// By what a table's old rows are known (REPLICA IDENTITY).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Identity {
    /// The primary key.
    Default,
    /// Nothing.
    Nothing,
    /// The whole row.
    Full,
    /// An index.
    Index,
}

/// What the rows of a relation look like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelationMessage<'a> {
    /// Which one.
    pub id: RelationId,
    /// Its schema; empty for `pg_catalog`.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// By what its old rows are known.
    pub identity: Identity,
    /// Its columns, in the order of its rows.
    pub columns: Vec<RelationColumn<'a>>,
}

/// A column of a relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RelationColumn<'a> {
    /// Is it part of the identity?
    pub in_identity: bool,
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub type_id: TypeId,
    /// The type's modifier (length, precision), or -1.
    pub modifier: i32,
}

/// Reads one message. All of the bytes must belong to it.
pub fn decode(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut from = Cursor::new(bytes);
    let kind = from.u8("the kind of the message")?;
    let message = match kind {
        b'B' => {
            let commit = Lsn(from.u64("the LSN of a transaction")?);
            Message::Begin { commit, time: from.i64("the time of a transaction")?, xid: from.u32("the number of a transaction")? }
        }
        b'C' => {
            from.u8("the flags of a commit")?;
            let commit = Lsn(from.u64("the LSN of a commit")?);
            let end = Lsn(from.u64("the end of a commit")?);
            Message::Commit { commit, end, time: from.i64("the time of a commit")? }
        }
        b'O' => Message::Origin { commit: Lsn(from.u64("the LSN of an origin")?), name: from.text("the name of an origin")? },
        b'R' => Message::Relation(relation(&mut from)?),
        b'Y' => {
            let id = TypeId(from.u32("the number of a type")?);
            Message::Type { id, namespace: from.text("the schema of a type")?, name: from.text("the name of a type")? }
        }
        b'I' => insert(&mut from)?,
        b'U' => update(&mut from)?,
        b'D' => delete(&mut from)?,
        b'T' => truncate(&mut from)?,
        b'M' => logical(&mut from)?,
        b'S' | b'E' | b'c' | b'A' | b'b' | b'P' | b'K' | b'r' | b'p' => return Err(Malformed::NotAskedFor { kind }),
        found => return Err(Malformed::Unknown { what: "the kind of the message", found }),
    };
    from.end()?;
    Ok(message)
}

fn relation<'a>(from: &mut Cursor<'a>) -> Result<RelationMessage<'a>, Malformed> {
    let id = RelationId(from.u32("the number of a relation")?);
    let namespace = from.text("the schema of a relation")?;
    let name = from.text("the name of a relation")?;
    let identity = match from.u8("the identity of a relation")? {
        b'd' => Identity::Default,
        b'n' => Identity::Nothing,
        b'f' => Identity::Full,
        b'i' => Identity::Index,
        found => return Err(Malformed::Unknown { what: "the identity of a relation", found }),
    };
    let count = usize::from(from.u16("the number of a relation's columns")?);
    // A column takes ten bytes at least: what a lying count could make us reserve is bounded by what has come.
    let mut columns = Vec::with_capacity(count.min(from.rest().len() / COLUMN_BYTES_MIN));
    for _ in 0..count {
        let in_identity = from.u8("the flags of a column")? & 1 == 1;
        let name = from.text("the name of a column")?;
        let type_id = TypeId(from.u32("the type of a column")?);
        columns.push(RelationColumn { in_identity, name, type_id, modifier: from.i32("the modifier of a column")? });
    }
    Ok(RelationMessage { id, namespace, name, identity, columns })
}

/// Flags, an empty name, a type, a modifier.
const COLUMN_BYTES_MIN: usize = 10;

fn insert<'a>(from: &mut Cursor<'a>) -> Result<Message<'a>, Malformed> {
    let relation = RelationId(from.u32("the relation of an insert")?);
    match from.u8("the kind of an insert's row")? {
        b'N' => Ok(Message::Insert { relation, new: Tuple::read(from)? }),
        found => Err(Malformed::Unknown { what: "the kind of an insert's row", found }),
    }
}

fn update<'a>(from: &mut Cursor<'a>) -> Result<Message<'a>, Malformed> {
    let relation = RelationId(from.u32("the relation of an update")?);
    let what = "the kind of an update's row";
    let mut kind = from.u8(what)?;
    let mut old = None;
    if kind != b'N' {
        old = Some(old_row(kind, what, from)?);
        kind = from.u8(what)?;
    }
    match kind {
        b'N' => Ok(Message::Update { relation, old, new: Tuple::read(from)? }),
        found => Err(Malformed::Unknown { what, found }),
    }
}

fn delete<'a>(from: &mut Cursor<'a>) -> Result<Message<'a>, Malformed> {
    let relation = RelationId(from.u32("the relation of a delete")?);
    let what = "the kind of a delete's row";
    let kind = from.u8(what)?;
    Ok(Message::Delete { relation, old: old_row(kind, what, from)? })
}

fn old_row<'a>(kind: u8, what: &'static str, from: &mut Cursor<'a>) -> Result<OldRow<'a>, Malformed> {
    match kind {
        b'K' => Tuple::read(from).map(OldRow::Key),
        b'O' => Tuple::read(from).map(OldRow::Full),
        found => Err(Malformed::Unknown { what, found }),
    }
}

fn truncate<'a>(from: &mut Cursor<'a>) -> Result<Message<'a>, Malformed> {
    let count = from.length("the number of a truncate's relations")?;
    let options = from.u8("the options of a truncate")?;
    if options & !3 != 0 {
        return Err(Malformed::Unknown { what: "the options of a truncate", found: options });
    }
    let mut relations = Vec::with_capacity(count.min(from.rest().len() / size_of::<u32>()));
    for _ in 0..count {
        relations.push(RelationId(from.u32("the relations of a truncate")?));
    }
    Ok(Message::Truncate { relations, cascade: options & 1 != 0, restart_identity: options & 2 != 0 })
}

fn logical<'a>(from: &mut Cursor<'a>) -> Result<Message<'a>, Malformed> {
    let transactional = match from.u8("the flags of a logical message")? {
        0 => false,
        1 => true,
        found => return Err(Malformed::Unknown { what: "the flags of a logical message", found }),
    };
    let at = Lsn(from.u64("the LSN of a logical message")?);
    let prefix = from.text("the prefix of a logical message")?;
    let length = from.length("the length of a logical message")?;
    Ok(Message::Logical { transactional, at, prefix, content: from.take(length, "a logical message")? })
}
