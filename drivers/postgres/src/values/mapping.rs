//! Which canonical type a type of the server becomes, and which others a pipeline file may declare.

use rows::Type;

use super::{Geometric, Number, PgType};

/// The canonical type, where the pipeline file says nothing.
pub fn natural(of: &PgType) -> Type {
    match of {
        PgType::Bool => Type::Bool,
        PgType::Int2 => Type::Int16,
        PgType::Int4 => Type::Int32,
        PgType::Int8 => Type::Int64,
        PgType::Oid => Type::UInt32,
        PgType::Xid8 => Type::UInt64,
        PgType::Float4 => Type::Float32,
        PgType::Float8 => Type::Float64,
        PgType::Numeric(declared) => declared.and_then(decimal).unwrap_or(Type::String),
        PgType::Money(scale) => Type::Decimal { precision: 19, scale: i8::try_from(*scale).unwrap_or(0).min(19) },
        PgType::Text | PgType::TextOnly | PgType::Versioned | PgType::Char | PgType::TimeTz | PgType::Interval => Type::String,
        PgType::Inet | PgType::Mac | PgType::Bits | PgType::PgLsn | PgType::RowPlace | PgType::Snapshot => Type::String,
        PgType::Geometric(_) | PgType::Document | PgType::Query | PgType::SparseEmbedding | PgType::Composite => Type::String,
        PgType::Enum => Type::Enum,
        PgType::Json | PgType::Jsonb => Type::Json,
        PgType::Bytea | PgType::Spatial => Type::Binary,
        PgType::Uuid => Type::Uuid,
        PgType::Date => Type::Date,
        PgType::Time => Type::Time,
        PgType::Timestamp => Type::Timestamp,
        PgType::TimestampTz => Type::TimestampTz,
        PgType::Pairs => Type::Map(Box::new(Type::String), Box::new(Type::String)),
        PgType::Embedding(_) => Type::List(Box::new(Type::Float32)),
        PgType::Array(element) | PgType::Vector(element) => match natural(element) {
            Type::Unknown(name) => Type::Unknown(format!("array of {name}")),
            element => Type::List(Box::new(element)),
        },
        PgType::Range(of) | PgType::MultiRange(of) => match natural(of) {
            Type::Unknown(name) => Type::Unknown(format!("range of {name}")),
            _ => Type::String,
        },
        PgType::Other(name) | PgType::Unsendable(name) => Type::Unknown(name.clone()),
    }
}

/// A decimal that holds every number of `numeric(p,s)`, if 38 digits are enough.
fn decimal((precision, scale): (u16, i16)) -> Option<Type> {
    // numeric(2,-3) has five digits, numeric(2,4) has four behind the point and may have none before it.
    let digits = i32::from(precision).max(i32::from(scale)) + (-i32::from(scale)).max(0);
    let (precision, scale) = (u8::try_from(digits).ok()?, i8::try_from(scale.max(0)).ok()?);
    (1..=38).contains(&precision).then_some(Type::Decimal { precision, scale })
}

/// Can values of a type of the server be read into a column of this type?
pub fn holds(of: &PgType, column: &Type) -> bool {
    match (of, column) {
        (PgType::Unsendable(_), _) => false,
        // The bytes on the wire, for somebody who knows what they mean.
        (PgType::Other(_), column) => *column == Type::Binary,
        (PgType::Array(element) | PgType::Vector(element), Type::List(of)) => holds(element, of),
        (of, Type::String) => is_readable(of),
        (PgType::Array(_) | PgType::Vector(_) | PgType::Range(_) | PgType::MultiRange(_), _) => false,
        (PgType::Embedding(_), Type::List(of)) => matches!(**of, Type::Float32 | Type::Float64),
        (PgType::Numeric(_) | PgType::Money(_), Type::Decimal { .. }) => true,
        (PgType::Int2, Type::Int32 | Type::Int64) | (PgType::Int4 | PgType::Oid, Type::Int64) => true,
        (PgType::Float4, Type::Float64) => true,
        (of, column) => natural(of) == *column,
    }
}

fn is_readable(of: &PgType) -> bool {
    match of {
        PgType::Other(_) | PgType::Unsendable(_) => false,
        PgType::Array(of) | PgType::Vector(of) | PgType::Range(of) | PgType::MultiRange(of) => is_readable(of),
        _ => true,
    }
}

/// The mapping as a table for the documentation: the server's type, what it becomes, what else may be declared, and what to
/// know about it.
pub fn table() -> String {
    let mut page = String::from("| PostgreSQL | column | may be declared | |\n|---|---|---|---|\n");
    for (name, of, note) in documented() {
        let also: Vec<String> = others(&of).iter().map(|kind| format!("`{kind}`")).collect();
        page.push_str(&format!("| {name} | `{}` | {} | {note} |\n", natural(&of), also.join(", ")));
    }
    page
}

fn others(of: &PgType) -> Vec<Type> {
    let candidates = [
        Type::Int32,
        Type::Int64,
        Type::Float64,
        Type::Decimal { precision: 38, scale: 9 },
        Type::String,
        Type::Binary,
        Type::List(Box::new(Type::Float64)),
        Type::List(Box::new(Type::Int64)),
        Type::List(Box::new(Type::String)),
    ];
    candidates.into_iter().filter(|kind| holds(of, kind) && natural(of) != *kind).collect()
}

fn documented() -> Vec<(&'static str, PgType, &'static str)> {
    vec![
        ("`boolean`", PgType::Bool, ""),
        ("`smallint`", PgType::Int2, ""),
        ("`integer`", PgType::Int4, ""),
        ("`bigint`", PgType::Int8, ""),
        (
            "`oid`, `xid`, `cid`, `regclass`, `regtype` and the like",
            PgType::Oid,
            "the number: which name a thing has is a matter of the catalogue, and of the moment",
        ),
        ("`xid8`", PgType::Xid8, ""),
        ("`real`", PgType::Float4, "NaN and infinities are kept"),
        ("`double precision`", PgType::Float8, "NaN and infinities are kept"),
        ("`numeric(12,2)`", PgType::Numeric(Some((12, 2))), "up to 38 digits; NaN is refused"),
        (
            "`numeric`, and more than 38 digits",
            PgType::Numeric(None),
            "all digits as written; declare `decimal(p,s)` for numbers: NaN, infinities and what has more digits is refused then",
        ),
        ("`money`", PgType::Money(2), "with the digits after the point that the server's `lc_monetary` gives it"),
        ("`text`, `varchar`, `char(n)`, `name`, `citext`, `xml`, `refcursor`", PgType::Text, "`char(n)` keeps its padding"),
        ("`\"char\"`", PgType::Char, ""),
        ("an enum", PgType::Enum, "the label"),
        ("`json`", PgType::Json, "the text as it was written"),
        ("`jsonb`", PgType::Jsonb, ""),
        ("`bytea`", PgType::Bytea, ""),
        ("`uuid`", PgType::Uuid, ""),
        ("`date`", PgType::Date, "`infinity` is refused, years before Christ are not"),
        ("`time`", PgType::Time, "`24:00:00` is refused"),
        ("`time with time zone`", PgType::TimeTz, "the text, with its offset"),
        ("`timestamp`", PgType::Timestamp, "`infinity` is refused"),
        ("`timestamp with time zone`", PgType::TimestampTz, "`infinity` is refused; as text: in UTC"),
        ("`interval`", PgType::Interval, "the text, months, days and time apart"),
        ("`inet`, `cidr`", PgType::Inet, ""),
        ("`macaddr`, `macaddr8`", PgType::Mac, ""),
        ("`bit(n)`, `bit varying(n)`", PgType::Bits, "zeros and ones"),
        ("`pg_lsn`", PgType::PgLsn, ""),
        ("`pg_snapshot`, `txid_snapshot`", PgType::Snapshot, ""),
        ("`tid`", PgType::RowPlace, ""),
        (
            "`point`, `line`, `lseg`, `box`, `path`, `polygon`, `circle`",
            PgType::Geometric(Geometric::Point),
            "the text: `(1,2)`, `<(1,2),3>` ...; a path is open or closed, and no list of points says which",
        ),
        ("`tsvector`, `tsquery`", PgType::Document, "the text"),
        ("`jsonpath`, `ltree`, `lquery`, `ltxtquery`", PgType::Versioned, "the text"),
        (
            "a range, a multirange",
            PgType::Range(Box::new(PgType::Int4)),
            "the text: `[1,10)`, `empty`, `(,5]`, `{[1,3),[7,9)}`; a bound may be part of the range or not, or not be there, and an empty range \
         has none",
        ),
        (
            "a composite",
            PgType::Composite,
            "the text: `(1,\"a b\",)`. The log has the attributes' values without their names, and does not tell that the type was changed: in \
         a struct a value could come to stand under another attribute's name",
        ),
        ("`hstore`", PgType::Pairs, "as text: in the server's form, `\"a\"=>\"1\", \"b\"=>NULL`"),
        ("`vector`, `halfvec` (pgvector)", PgType::Embedding(Number::Single), "as text: `[1,2.5]`"),
        ("`sparsevec` (pgvector)", PgType::SparseEmbedding, "the text: `{1:1.5,3:-2}/5`"),
        (
            "`geometry`, `geography` (PostGIS)",
            PgType::Spatial,
            "extended well-known binary (EWKB); as text: its hexadecimal digits, as PostGIS writes them",
        ),
        ("`oidvector`, `int2vector`", PgType::Vector(Box::new(PgType::Int2)), "(here: `int2vector`)"),
        (
            "a type without a binary form: `aclitem`, `isbn`, `seg` ...",
            PgType::TextOnly,
            "the text, which is what the server sends of it; chunks cast such columns to `text`",
        ),
        ("a domain", PgType::Text, "as the type that it is made of (here: `text`)"),
    ]
}
