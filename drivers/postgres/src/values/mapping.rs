//! Which canonical type a type of the server becomes, and which others a pipeline file may declare.

use rows::Type;

use super::PgType;

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
        PgType::Text | PgType::Char | PgType::TimeTz | PgType::Interval => Type::String,
        PgType::Inet | PgType::Mac | PgType::Bits | PgType::PgLsn => Type::String,
        PgType::Enum => Type::Enum,
        PgType::Json | PgType::Jsonb => Type::Json,
        PgType::Bytea => Type::Binary,
        PgType::Uuid => Type::Uuid,
        PgType::Date => Type::Date,
        PgType::Time => Type::Time,
        PgType::Timestamp => Type::Timestamp,
        PgType::TimestampTz => Type::TimestampTz,
        PgType::Array(element) => match natural(element) {
            Type::Unknown(name) => Type::Unknown(format!("array of {name}")),
            element => Type::List(Box::new(element)),
        },
        PgType::Other(name) => Type::Unknown(name.clone()),
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
        (PgType::Other(_), Type::Unknown(_)) => false,
        // The bytes on the wire, for somebody who knows what they mean.
        (PgType::Other(_), column) => *column == Type::Binary,
        (PgType::Array(element), Type::List(of)) => holds(element, of),
        (PgType::Array(element), Type::String) => is_readable(element),
        (PgType::Array(_), _) => false,
        (_, Type::String) => true,
        (PgType::Numeric(_) | PgType::Money(_), Type::Decimal { .. }) => true,
        (PgType::Int2, Type::Int32 | Type::Int64) | (PgType::Int4 | PgType::Oid, Type::Int64) => true,
        (PgType::Float4, Type::Float64) => true,
        (of, column) => natural(of) == *column,
    }
}

fn is_readable(of: &PgType) -> bool {
    match of {
        PgType::Other(_) => false,
        PgType::Array(element) => is_readable(element),
        _ => true,
    }
}

/// The mapping as a table for the documentation: the server's type, what it becomes, what else may be declared, and what to
/// know about it.
pub fn table() -> String {
    let mut page = String::from("| PostgreSQL | column | may be declared | |\n|---|---|---|---|\n");
    for (name, of, note) in DOCUMENTED {
        let also: Vec<String> = others(of).iter().map(|kind| format!("`{kind}`")).collect();
        page.push_str(&format!("| {name} | `{}` | {} | {note} |\n", natural(of), also.join(", ")));
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
        Type::List(Box::new(Type::String)),
    ];
    candidates.into_iter().filter(|kind| holds(of, kind) && natural(of) != *kind).collect()
}

static DOCUMENTED: &[(&str, PgType, &str)] = &[
    ("`boolean`", PgType::Bool, ""),
    ("`smallint`", PgType::Int2, ""),
    ("`integer`", PgType::Int4, ""),
    ("`bigint`", PgType::Int8, ""),
    ("`oid`, `xid`, `cid`", PgType::Oid, ""),
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
    ("`text`, `varchar`, `char(n)`, `name`, `citext`, `xml`", PgType::Text, "`char(n)` keeps its padding"),
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
    ("a domain", PgType::Text, "as the type that it is made of (here: `text`)"),
];
