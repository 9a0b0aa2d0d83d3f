//! Types by the server's names, resolved down to what lies on the wire.

use std::collections::HashMap;

use crate::pgoutput::TypeId;

/// A type, as far as reading its values needs it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PgType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `oid`, `xid`, `cid`
    Oid,
    /// `xid8`
    Xid8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`, with precision and scale if they are declared.
    Numeric(Option<(u16, i16)>),
    /// `money`, with the digits after the point that the server's locale gives it.
    Money(u8),
    /// `text`, `varchar`, `char(n)`, `name`, `citext`, `xml`
    Text,
    /// `"char"`
    Char,
    /// An enum.
    Enum,
    /// `json`
    Json,
    /// `jsonb`
    Jsonb,
    /// `bytea`
    Bytea,
    /// `uuid`
    Uuid,
    /// `date`
    Date,
    /// `time`
    Time,
    /// `time with time zone`
    TimeTz,
    /// `timestamp`
    Timestamp,
    /// `timestamp with time zone`
    TimestampTz,
    /// `interval`
    Interval,
    /// `inet`, `cidr`
    Inet,
    /// `macaddr`, `macaddr8`
    Mac,
    /// `bit(n)`, `bit varying(n)`
    Bits,
    /// `pg_lsn`
    PgLsn,
    /// An array of these.
    Array(Box<PgType>),
    /// Anything else, by its name.
    Other(String),
}

/// A row of `pg_type`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeEntry {
    /// Its oid.
    pub id: TypeId,
    /// Its name, with its schema if that is not `pg_catalog`.
    pub name: String,
    /// Its name alone, if the server or an extension of a known name brought it; else empty.
    pub known_as: String,
    /// `b`ase, `d`omain, `e`num, `c`omposite, `r`ange ...
    pub kind: u8,
    /// Of an array: what it is made of; else 0.
    pub element: TypeId,
    /// Of a domain: what it is made of; else 0.
    pub base: TypeId,
    /// Of a domain: the modifier of what it is made of; else -1.
    pub modifier: i32,
}

/// The types of a database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Types {
    entries: HashMap<TypeId, TypeEntry>,
    money_scale: u8,
}

/// A domain over a domain over an array ...: deeper than anybody goes, and a circle cannot turn for ever.
const DEPTH_MAX: usize = 32;

impl Types {
    /// These, and the digits that `money` has after the point.
    pub fn new(entries: impl IntoIterator<Item = TypeEntry>, money_scale: u8) -> Self {
        Self { entries: entries.into_iter().map(|entry| (entry.id, entry)).collect(), money_scale }
    }

    /// Is it known?
    pub fn contains(&self, id: TypeId) -> bool {
        self.entries.contains_key(&id)
    }

    /// What a column of this type and modifier holds.
    pub fn resolve(&self, id: TypeId, modifier: i32) -> PgType {
        self.resolve_at(id, modifier, 0)
    }

    fn resolve_at(&self, id: TypeId, modifier: i32, depth: usize) -> PgType {
        let Some(entry) = self.entries.get(&id).filter(|_| depth < DEPTH_MAX) else {
            return PgType::Other(format!("type {}", id.0));
        };
        match entry.kind {
            b'd' => self.resolve_at(entry.base, if modifier == -1 { entry.modifier } else { modifier }, depth + 1),
            b'e' => PgType::Enum,
            _ if entry.element != TypeId(0) => PgType::Array(Box::new(self.resolve_at(entry.element, modifier, depth + 1))),
            _ => self.built_in(&entry.known_as, modifier).unwrap_or_else(|| PgType::Other(entry.name.clone())),
        }
    }

    fn built_in(&self, name: &str, modifier: i32) -> Option<PgType> {
        Some(match name {
            "bool" => PgType::Bool,
            "int2" => PgType::Int2,
            "int4" => PgType::Int4,
            "int8" => PgType::Int8,
            "oid" | "xid" | "cid" => PgType::Oid,
            "xid8" => PgType::Xid8,
            "float4" => PgType::Float4,
            "float8" => PgType::Float8,
            "numeric" => PgType::Numeric(numeric_modifier(modifier)),
            "money" => PgType::Money(self.money_scale),
            "text" | "varchar" | "bpchar" | "name" | "citext" | "xml" => PgType::Text,
            "char" => PgType::Char,
            "json" => PgType::Json,
            "jsonb" => PgType::Jsonb,
            "bytea" => PgType::Bytea,
            "uuid" => PgType::Uuid,
            "date" => PgType::Date,
            "time" => PgType::Time,
            "timetz" => PgType::TimeTz,
            "timestamp" => PgType::Timestamp,
            "timestamptz" => PgType::TimestampTz,
            "interval" => PgType::Interval,
            "inet" | "cidr" => PgType::Inet,
            "macaddr" | "macaddr8" => PgType::Mac,
            "bit" | "varbit" => PgType::Bits,
            "pg_lsn" => PgType::PgLsn,
            _ => return None,
        })
    }
}

/// Precision and scale of `numeric(p,s)`: the scale has eleven bits, with a sign since 15.
fn numeric_modifier(modifier: i32) -> Option<(u16, i16)> {
    let packed = modifier.checked_sub(4).filter(|packed| *packed >= 0)?;
    let scale = ((packed & 0x7FF) ^ 1024) - 1024;
    Some((u16::try_from(packed >> 16).ok()?, i16::try_from(scale).ok()?))
}
