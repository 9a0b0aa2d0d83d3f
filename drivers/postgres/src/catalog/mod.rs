//! What the server's catalogue says: types, tables and how to walk through them, publications, slots, the log, and the settings that
//! replication needs.

mod log;
mod publication;
mod server;
mod table;
mod walk;

pub(crate) use log::{identify, sees, standing, unfinished, xids};
pub(crate) use publication::{GENERATED_PUBLISHED, Publication, Published, columns_of, publication, sends};
pub(crate) use server::{Server, Slot, server, slot};
pub(crate) use table::{Attribute, CatalogColumn, CatalogTable, IDENTITY_WORDS, attributes, discover, sizes, tables};
pub(crate) use walk::{Walk, walks};

use std::collections::HashMap;

use crate::pgoutput::TypeId;
use crate::values::{self, TypeEntry, Types};
use crate::wire::{Connection, Row, WireError};

/// All types of the database.
pub(crate) async fn types(connection: &mut Connection) -> Result<Types, WireError> {
    let rows = connection.query(COMPOSITES).await?;
    let mut attributes: HashMap<TypeId, Vec<values::Attribute>> = HashMap::new();
    for row in &rows {
        let row = Cells(row);
        let attribute = values::Attribute { name: row.text(1)?.to_owned(), id: TypeId(row.number(2)?) };
        attributes.entry(TypeId(row.number(0)?)).or_default().push(attribute);
    }
    let rows = connection.query(TYPES).await?;
    let entries: Result<Vec<_>, WireError> = rows.iter().map(|row| type_entry(Cells(row), &mut attributes)).collect();
    let scale = connection.query("SELECT pg_catalog.scale(1::pg_catalog.money::pg_catalog.numeric)").await?;
    let scale = scale.first().map(|row| Cells(row).number(0)).transpose()?.unwrap_or(2);
    Ok(Types::new(entries?, scale))
}

/// Which form a value has on the wire is what its type's send function makes of it. Of extensions only those are named whose forms are
/// read: a type of another one that is called alike is not known.
const TYPES: &str = "
    SELECT t.oid,
           CASE WHEN n.nspname = 'pg_catalog' THEN t.typname ELSE n.nspname || '.' || t.typname END,
           CASE WHEN n.nspname = 'pg_catalog' THEN t.typname
                WHEN e.extname IN ('citext', 'hstore', 'ltree', 'vector', 'postgis') THEN e.extname || '.' || t.typname
                ELSE '' END,
           t.typtype,
           CASE WHEN t.typsend = 'pg_catalog.array_send'::pg_catalog.regproc THEN t.typelem ELSE 0 END,
           CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE coalesce(r.rngsubtype, 0) END,
           t.typtypmod,
           t.typsend <> 0
    FROM pg_catalog.pg_type t
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_range r ON t.oid IN (r.rngtypid, r.rngmultitypid)
    LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.objid = t.oid AND d.deptype = 'e'
    LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid";

/// Of composites that were made as types, and of tables whose rows are values of something.
const COMPOSITES: &str = "
    WITH used(id) AS MATERIALIZED (
        SELECT a.atttypid FROM pg_catalog.pg_attribute a UNION SELECT t.typbasetype FROM pg_catalog.pg_type t
        UNION SELECT r.rngsubtype FROM pg_catalog.pg_range r)
    SELECT t.oid, a.attname, a.atttypid
    FROM pg_catalog.pg_type t
    JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE t.typtype = 'c'
      AND (c.relkind = 'c' OR t.oid IN (SELECT id FROM used) OR t.typarray IN (SELECT id FROM used))
    ORDER BY t.oid, a.attnum";

fn type_entry(row: Cells<'_>, attributes: &mut HashMap<TypeId, Vec<values::Attribute>>) -> Result<TypeEntry, WireError> {
    let id = TypeId(row.number(0)?);
    Ok(TypeEntry {
        id,
        name: row.text(1)?.to_owned(),
        known_as: row.text(2)?.to_owned(),
        kind: row.letter(3)?,
        element: TypeId(row.number(4)?),
        base: TypeId(row.number(5)?),
        modifier: row.number(6)?,
        has_binary: row.boolean(7)?,
        attributes: attributes.remove(&id).unwrap_or_default(),
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
