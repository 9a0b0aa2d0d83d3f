//! What the server's catalogue says: types, tables and how to walk through them, publications, slots, the log, and the settings that
//! replication needs.

mod log;
mod publication;
mod server;
mod table;
mod walk;

pub(crate) use log::{identify, standing, unfinished, xids};
pub(crate) use publication::{Publication, Published, publication, sends};
pub(crate) use server::{Server, Slot, server, slot};
pub(crate) use table::{CatalogColumn, CatalogTable, IDENTITY_WORDS, discover, sizes, tables};
pub(crate) use walk::{Walk, walks};

use crate::pgoutput::TypeId;
use crate::values::{TypeEntry, Types};
use crate::wire::{Connection, Row, WireError};

/// All types of the database. What an extension calls `citext` counts as built in.
pub(crate) async fn types(connection: &mut Connection) -> Result<Types, WireError> {
    let rows = connection.query(TYPES).await?;
    let entries: Result<Vec<_>, WireError> = rows.iter().map(|row| type_entry(Cells(row))).collect();
    let scale = connection.query("SELECT pg_catalog.scale(1::pg_catalog.money::pg_catalog.numeric)").await?;
    let scale = scale.first().map(|row| Cells(row).number(0)).transpose()?.unwrap_or(2);
    Ok(Types::new(entries?, scale))
}

const TYPES: &str = "
    SELECT t.oid,
           CASE WHEN n.nspname = 'pg_catalog' THEN t.typname ELSE n.nspname || '.' || t.typname END,
           CASE WHEN n.nspname = 'pg_catalog' OR e.extname = 'citext' THEN t.typname ELSE '' END,
           t.typtype,
           CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END,
           t.typbasetype,
           t.typtypmod
    FROM pg_catalog.pg_type t
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.objid = t.oid AND d.deptype = 'e'
    LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid";

fn type_entry(row: Cells<'_>) -> Result<TypeEntry, WireError> {
    Ok(TypeEntry {
        id: TypeId(row.number(0)?),
        name: row.text(1)?.to_owned(),
        known_as: row.text(2)?.to_owned(),
        kind: row.letter(3)?,
        element: TypeId(row.number(4)?),
        base: TypeId(row.number(5)?),
        modifier: row.number(6)?,
    })
}

/// The values of a row, by what they must be.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a>(pub(crate) &'a Row);

impl<'a> Cells<'a> {
    pub(crate) fn optional(self, place: usize) -> Option<&'a str> {
        self.0.get(place).and_then(Option::as_deref)
    }

    pub(crate) fn text(self, place: usize) -> Result<&'a str, WireError> {
        self.optional(place).ok_or_else(|| WireError::Protocol("an answer lacks a value".into()))
    }

    pub(crate) fn number<N: std::str::FromStr>(self, place: usize) -> Result<N, WireError> {
        self.text(place)?.parse().map_err(|_| WireError::Protocol("an answer has something else in place of a number".into()))
    }

    pub(crate) fn boolean(self, place: usize) -> Result<bool, WireError> {
        self.text(place).map(|text| text == "t")
    }

    /// The first byte; 0 for an empty text.
    pub(crate) fn letter(self, place: usize) -> Result<u8, WireError> {
        self.text(place).map(|text| text.bytes().next().unwrap_or(0))
    }
}
