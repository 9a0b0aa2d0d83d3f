//! Types by the server's names, resolved down to what lies on the wire.

use std::collections::{HashMap, HashSet};

use super::embedding::Number;
use super::geometry::Geometric;
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
    /// `oid`, `xid`, `cid`, and what names a thing of the catalogue by its number: `regclass`, `regtype` ...
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
    /// `text`, `varchar`, `char(n)`, `name`, `citext`, `xml`, `refcursor`
    Text,
    /// A type that the server has no binary form of: `aclitem`, `isbn` ...
    TextOnly,
    /// Text behind the number of its format: `jsonpath`, `ltree`, `lquery`, `ltxtquery`
    Versioned,
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
    /// `tid`
    RowPlace,
    /// `pg_snapshot`, `txid_snapshot`
    Snapshot,
    /// `point`, `line`, `lseg`, `box`, `path`, `polygon`, `circle`
    Geometric(Geometric),
    /// `tsvector`
    Document,
    /// `tsquery`
    Query,
    /// `hstore`
    Pairs,
    /// `vector`, `halfvec` (pgvector)
    Embedding(Number),
    /// `sparsevec` (pgvector)
    SparseEmbedding,
    /// `geometry`, `geography` (PostGIS), in its extended well-known binary form.
    Spatial,
    /// An array of these.
    Array(Box<PgType>),
    /// `oidvector`, `int2vector`: of these.
    Vector(Box<PgType>),
    /// A composite, whose values say what their attributes are of.
    Composite,
    /// A range of these.
    Range(Box<PgType>),
    /// A multirange of these.
    MultiRange(Box<PgType>),
    /// Anything else, by its name.
    Other(String),
    /// What a server that is asked for binary values fails at, by its name: it has a part without a binary form.
    Unsendable(String),
}

/// A row of `pg_type`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeEntry {
    /// Its oid.
    pub id: TypeId,
    /// Its name, with its schema if that is not `pg_catalog`.
    pub name: String,
    /// Its name alone if the server brought it, with the extension's if one did that is known here; else empty.
    pub known_as: String,
    /// `b`ase, `d`omain, `e`num, `c`omposite, `r`ange, `m`ultirange ...
    pub kind: u8,
    /// Does the server have a binary form of it?
    pub has_binary: bool,
    /// Of an array: what it is made of; else 0.
    pub element: TypeId,
    /// Of a domain: what it is made of. Of a range or multirange: what lies in it. Else 0.
    pub base: TypeId,
    /// Of a domain: the modifier of what it is made of; else -1.
    pub modifier: i32,
    /// Of a composite: its attributes, as they are now.
    pub attributes: Vec<Attribute>,
}

/// An attribute of a composite.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub id: TypeId,
}

/// The types of a database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Types {
    entries: HashMap<TypeId, TypeEntry>,
    /// Each resolved, without a modifier.
    plain: HashMap<TypeId, PgType>,
    money_scale: u8,
}

/// A domain over a domain over an array ...: deeper than anybody goes, and a circle cannot turn for ever.
const DEPTH_MAX: usize = 32;

impl Types {
    /// These, and the digits that `money` has after the point.
    pub fn new(entries: impl IntoIterator<Item = TypeEntry>, money_scale: u8) -> Self {
        let entries: HashMap<TypeId, TypeEntry> = entries.into_iter().map(|entry| (entry.id, entry)).collect();
        let mut types = Self { entries, plain: HashMap::new(), money_scale };
        types.plain = types.entries.keys().map(|id| (*id, types.resolve(*id, -1))).collect();
        types
    }

    /// Is it known?
    pub fn contains(&self, id: TypeId) -> bool {
        self.entries.contains_key(&id)
    }

    /// What a value of this type holds where no modifier is told; `None` if the type is not known.
    pub fn plain(&self, id: TypeId) -> Option<&PgType> {
        self.plain.get(&id)
    }

    /// The types at whose values a server fails that is asked for binary ones.
    pub fn unsendable(&self) -> Vec<TypeId> {
        let mut found: Vec<TypeId> =
            self.plain.iter().filter(|(_, of)| matches!(of, PgType::Unsendable(_))).map(|(id, _)| *id).collect();
        found.sort_unstable();
        found
    }

    /// What a column of this type and modifier holds.
    pub fn resolve(&self, id: TypeId, modifier: i32) -> PgType {
        self.resolve_at(id, modifier, 0)
    }

    fn resolve_at(&self, id: TypeId, modifier: i32, depth: usize) -> PgType {
        let Some(entry) = self.entries.get(&id).filter(|_| depth < DEPTH_MAX) else {
            return PgType::Other(self.name(id));
        };
        let of = |kind: fn(Box<PgType>) -> PgType, called, part, modifier| match self.resolve_at(part, modifier, depth + 1) {
            PgType::TextOnly => PgType::Unsendable(format!("{called} of {}", self.name(part))),
            PgType::Unsendable(part) => PgType::Unsendable(format!("{called} of {part}")),
            part => kind(Box::new(part)),
        };
        match entry.kind {
            b'd' => self.resolve_at(entry.base, if modifier == -1 { entry.modifier } else { modifier }, depth + 1),
            b'e' => PgType::Enum,
            b'c' => self.composite(entry),
            b'r' => of(PgType::Range, "range", entry.base, -1),
            b'm' => of(PgType::MultiRange, "multirange", entry.base, -1),
            _ if entry.element != TypeId(0) => of(PgType::Array, "array", entry.element, modifier),
            _ if !entry.has_binary => PgType::TextOnly,
            _ => self.built_in(&entry.known_as, modifier).unwrap_or_else(|| PgType::Other(entry.name.clone())),
        }
    }

    /// A composite, or what one of its parts makes of it. Each type is looked at once: composites of composites of ... may name one of
    /// them any number of times.
    fn composite(&self, entry: &TypeEntry) -> PgType {
        fn parts(of: &TypeEntry) -> impl Iterator<Item = (&TypeEntry, &Attribute, TypeId)> {
            of.attributes.iter().map(move |attribute| (of, attribute, attribute.id))
        }
        let (mut seen, mut unread) = (HashSet::from([entry.id]), None);
        let mut left: Vec<_> = parts(entry).collect();
        while let Some((composite, attribute, id)) = left.pop() {
            if !seen.insert(id) {
                continue;
            }
            let because = || {
                let whose = if composite.id == entry.id { String::new() } else { format!(" of {}", composite.name) };
                format!("{} (attribute '{}'{whose}: {})", entry.name, attribute.name, self.name(id))
            };
            match self.entries.get(&id) {
                None => unread = Some(because()),
                Some(part) => match part.kind {
                    b'c' => left.extend(parts(part)),
                    b'd' | b'r' | b'm' => left.push((composite, attribute, part.base)),
                    b'e' => {}
                    _ if part.element != TypeId(0) => left.push((composite, attribute, part.element)),
                    _ if !part.has_binary => return PgType::Unsendable(because()),
                    _ if self.built_in(&part.known_as, -1).is_none() => unread = Some(because()),
                    _ => {}
                },
            }
        }
        unread.map_or(PgType::Composite, PgType::Other)
    }

    fn name(&self, id: TypeId) -> String {
        self.entries.get(&id).map_or_else(|| format!("type {}", id.0), |entry| entry.name.clone())
    }

    fn built_in(&self, name: &str, modifier: i32) -> Option<PgType> {
        Some(match name {
            "bool" => PgType::Bool,
            "int2" => PgType::Int2,
            "int4" => PgType::Int4,
            "int8" => PgType::Int8,
            "oid" | "xid" | "cid" => PgType::Oid,
            "regclass" | "regcollation" | "regconfig" | "regdictionary" | "regnamespace" | "regoper" | "regoperator"
            | "regproc" | "regprocedure" | "regrole" | "regtype" => PgType::Oid,
            "xid8" => PgType::Xid8,
            "float4" => PgType::Float4,
            "float8" => PgType::Float8,
            "numeric" => PgType::Numeric(numeric_modifier(modifier)),
            "money" => PgType::Money(self.money_scale),
            "text" | "varchar" | "bpchar" | "name" | "xml" | "refcursor" | "citext.citext" => PgType::Text,
            "jsonpath" | "ltree.ltree" | "ltree.lquery" | "ltree.ltxtquery" => PgType::Versioned,
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
            "tid" => PgType::RowPlace,
            "pg_snapshot" | "txid_snapshot" => PgType::Snapshot,
            "point" => PgType::Geometric(Geometric::Point),
            "line" => PgType::Geometric(Geometric::Line),
            "lseg" => PgType::Geometric(Geometric::Segment),
            "box" => PgType::Geometric(Geometric::Box),
            "path" => PgType::Geometric(Geometric::Path),
            "polygon" => PgType::Geometric(Geometric::Polygon),
            "circle" => PgType::Geometric(Geometric::Circle),
            "tsvector" => PgType::Document,
            "tsquery" => PgType::Query,
            "oidvector" => PgType::Vector(Box::new(PgType::Oid)),
            "int2vector" => PgType::Vector(Box::new(PgType::Int2)),
            "hstore.hstore" => PgType::Pairs,
            "vector.vector" => PgType::Embedding(Number::Single),
            "vector.halfvec" => PgType::Embedding(Number::Half),
            "vector.sparsevec" => PgType::SparseEmbedding,
            "postgis.geometry" | "postgis.geography" => PgType::Spatial,
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
