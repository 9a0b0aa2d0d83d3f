//! How the values of a column are to be read: a function of the column's type, of what the schema part calls it, and of the
//! pipeline's settings. Also: which type a column gets from a schema part, and which type holds another.

use rows::{Column, Type};

use super::decimal::DecimalForm;
use crate::envelope::{Unit, Wire};

/// What the pipeline file says about values that do not say it themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    /// How decimals are written in strings.
    pub(crate) decimals: DecimalText,
    /// How bytes are written in strings.
    pub(crate) binary: BinaryText,
    /// What numbers in columns of times count, where no schema part says it.
    pub(crate) time_unit: Option<Unit>,
    /// What stands for a value that was not sent.
    pub(crate) unavailable: String,
    /// The same in base64.
    pub(crate) unavailable_base64: String,
}

/// How decimals are written in strings, where no schema part says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DecimalText {
    /// As they look; what looks like both is refused.
    Auto,
    /// As digits.
    Text,
    /// As base64 of the unscaled value.
    Base64,
}

/// How bytes are written in strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BinaryText {
    /// As base64.
    Base64,
    /// As base64 with `-` and `_`.
    Base64Url,
    /// As hexadecimal digits.
    Hex,
}

impl BinaryText {
    pub(super) fn misfit(self) -> &'static str {
        match self {
            BinaryText::Base64 => "a string that is not base64",
            BinaryText::Base64Url => "a string that is not base64url",
            BinaryText::Hex => "a string that is not hexadecimal",
        }
    }
}

/// How a column's values are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// `true`, `false`
    Bool,
    /// A number without a fraction.
    Integer,
    /// A number or the name of one.
    Float,
    /// Into a decimal or integer column; of one form also as plain digits into a text column.
    Decimal(DecimalForm),
    /// A string's content.
    Text,
    /// A string's content; any other value as it is written.
    Verbatim,
    /// A string that holds JSON; any other value as it is written.
    Json,
    /// A string that holds bytes.
    Bytes(BinaryText),
    /// A string.
    Uuid,
    /// A number of days, or a string.
    Date,
    /// A number that counts these, or a string.
    Time(Option<Unit>),
    /// As `Time`.
    Timestamp(Option<Unit>),
    /// As `Time`.
    TimestampTz(Option<Unit>),
    /// An array.
    List(Box<Reading>),
    /// An object, or an array of pairs.
    Map(Box<Reading>, Box<Reading>),
    /// An object.
    Struct(Vec<Reading>),
    /// What the schema part announces does not go into the column, whatever the value.
    Impossible(&'static str),
}

impl Reading {
    /// How to read what is written as `wire` (unknown without a schema part) into a column of `kind`.
    pub(crate) fn of(kind: &Type, wire: Option<&Wire>, options: &Options) -> Reading {
        match wire {
            None => Self::unannounced(kind, options),
            Some(wire) => Self::announced(kind, wire, options).unwrap_or_else(|| Reading::Impossible(announces(wire))),
        }
    }

    fn unannounced(kind: &Type, options: &Options) -> Reading {
        let inner = |kind: &Type| Box::new(Self::of(kind, None, options));
        match kind {
            Type::Bool => Reading::Bool,
            Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 => Reading::Integer,
            Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => Reading::Integer,
            Type::Float32 | Type::Float64 => Reading::Float,
            Type::Decimal { .. } => Reading::Decimal(match options.decimals {
                DecimalText::Auto => DecimalForm::Any,
                DecimalText::Text => DecimalForm::Text,
                DecimalText::Base64 => DecimalForm::Base64 { scale: None },
            }),
            Type::String | Type::Enum => Reading::Text,
            Type::Json => Reading::Json,
            Type::Binary | Type::FixedBinary(_) => Reading::Bytes(options.binary),
            Type::Date => Reading::Date,
            Type::Time => Reading::Time(options.time_unit),
            Type::Timestamp => Reading::Timestamp(options.time_unit),
            Type::TimestampTz => Reading::TimestampTz(options.time_unit),
            Type::Uuid => Reading::Uuid,
            Type::List(element) => Reading::List(inner(element)),
            Type::Map(key, value) => Reading::Map(inner(key), inner(value)),
            Type::Struct(columns) => {
                Reading::Struct(columns.iter().map(|column| Self::of(&column.kind, None, options)).collect())
            }
            Type::Unknown(_) => Reading::Verbatim,
        }
    }

    /// `None` where the one is never the other. The pipeline file may give a column another type than the connector: what can
    /// be read so without a loss is read.
    fn announced(kind: &Type, wire: &Wire, options: &Options) -> Option<Reading> {
        let inner = |kind: &Type, wire: &Wire| Box::new(Self::of(kind, Some(wire), options));
        let is_integer = matches!(wire, Wire::Int8 | Wire::Int16 | Wire::Int32 | Wire::Int64);
        let is_float = matches!(wire, Wire::Float32 | Wire::Float64);
        let decimal = match wire {
            Wire::Decimal { scale, .. } => Some(DecimalForm::Base64 { scale: Some(*scale) }),
            Wire::VariableScaleDecimal => Some(DecimalForm::Variable),
            _ => None,
        };
        Some(match (kind, wire) {
            (Type::Bool, Wire::Bool) => Reading::Bool,
            (Type::Bool, _) if is_integer => Reading::Bool,
            (Type::Decimal { .. }, Wire::String) => Reading::Decimal(DecimalForm::Text),
            (Type::Decimal { .. }, _) if is_integer || is_float => Reading::Decimal(DecimalForm::Text),
            (Type::Decimal { .. } | Type::String | Type::Unknown(_), _) if decimal.is_some() => Reading::Decimal(decimal?),
            (Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64, _)
            | (Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64, _) => match (decimal, wire) {
                (Some(form), _) => Reading::Decimal(form),
                (None, Wire::Date | Wire::Time(_) | Wire::Timestamp(_)) => Reading::Integer,
                _ if is_integer => Reading::Integer,
                _ => return None,
            },
            (Type::Float32 | Type::Float64, _) if is_integer || is_float => Reading::Float,
            (Type::String | Type::Enum, Wire::String | Wire::Enum | Wire::Json | Wire::Uuid | Wire::Bytes)
            | (Type::String, Wire::ZonedTime | Wire::ZonedTimestamp | Wire::IsoDate | Wire::IsoTime | Wire::IsoTimestamp) => {
                Reading::Text
            }
            (Type::String, Wire::Bool) => Reading::Verbatim,
            (Type::String, _) if is_integer || is_float => Reading::Verbatim,
            (Type::Unknown(_), _) => Reading::Verbatim,
            (Type::Json, Wire::Bytes | Wire::Decimal { .. }) => return None,
            (Type::Json, _) => Reading::Json,
            (Type::Binary | Type::FixedBinary(_), Wire::Bytes) => Reading::Bytes(BinaryText::Base64),
            (Type::Binary | Type::FixedBinary(_), Wire::String) => Reading::Bytes(options.binary),
            (Type::Uuid, Wire::Uuid | Wire::String) => Reading::Uuid,
            (Type::Date, Wire::Date | Wire::IsoDate | Wire::String) => Reading::Date,
            (Type::Time, Wire::Time(unit)) => Reading::Time(Some(*unit)),
            (Type::Time, Wire::IsoTime | Wire::ZonedTime | Wire::String) => Reading::Time(None),
            (Type::Timestamp, Wire::Timestamp(unit)) => Reading::Timestamp(Some(*unit)),
            (Type::Timestamp, Wire::IsoTimestamp | Wire::String) => Reading::Timestamp(None),
            (Type::TimestampTz, Wire::Timestamp(unit)) => Reading::TimestampTz(Some(*unit)),
            (Type::TimestampTz, Wire::ZonedTimestamp | Wire::String) => Reading::TimestampTz(None),
            (Type::List(element), Wire::Array(wire)) => Reading::List(inner(element, wire)),
            (Type::Map(key, value), Wire::Map(keys, values)) => Reading::Map(inner(key, keys), inner(value, values)),
            (Type::Struct(columns), Wire::Struct(fields)) => {
                let wire = |column: &Column| fields.iter().find(|field| field.name == column.name).map(|field| &field.wire);
                Reading::Struct(columns.iter().map(|column| Self::of(&column.kind, wire(column), options)).collect())
            }
            _ => return None,
        })
    }
}

/// The type of a column that a schema part announces.
pub(crate) fn canonical(wire: &Wire) -> Type {
    match wire {
        Wire::Bool => Type::Bool,
        Wire::Int8 => Type::Int8,
        Wire::Int16 => Type::Int16,
        Wire::Int32 => Type::Int32,
        Wire::Int64 => Type::Int64,
        Wire::Float32 => Type::Float32,
        Wire::Float64 => Type::Float64,
        // A numeric without bounds fits no decimal type, and a time of day with a zone no time: their text loses nothing.
        Wire::String | Wire::VariableScaleDecimal | Wire::ZonedTime => Type::String,
        Wire::Bytes => Type::Binary,
        Wire::Decimal { precision, scale } => decimal_type(*precision, *scale),
        Wire::Date | Wire::IsoDate => Type::Date,
        Wire::Time(_) | Wire::IsoTime => Type::Time,
        Wire::Timestamp(_) | Wire::IsoTimestamp => Type::Timestamp,
        Wire::ZonedTimestamp => Type::TimestampTz,
        Wire::Uuid => Type::Uuid,
        Wire::Json => Type::Json,
        Wire::Enum => Type::Enum,
        Wire::Array(element) => Type::List(Box::new(canonical(element))),
        Wire::Map(key, value) => Type::Map(Box::new(canonical(key)), Box::new(canonical(value))),
        Wire::Struct(fields) if fields.is_empty() => Type::Json,
        Wire::Struct(fields) => {
            let column =
                |field: &crate::envelope::WireField| Column::new(field.name.clone(), canonical(&field.wire), field.optional);
            Type::Struct(fields.iter().map(column).collect())
        }
    }
}

/// A scale below 0 is a wider decimal of scale 0. More than 38 digits need a decision of the pipeline's.
fn decimal_type(precision: Option<u32>, scale: i32) -> Type {
    let wide = |digits: u32| i64::from(digits) - i64::from(scale.min(0));
    let digits = precision.map_or(38, wide).max(i64::from(scale));
    match (u8::try_from(digits), i8::try_from(scale.max(0))) {
        (Ok(precision @ 1..=38), Ok(scale)) => Type::Decimal { precision, scale },
        _ => Type::Unknown(format!("decimal({},{scale})", precision.map_or("?".to_owned(), |digits| digits.to_string()))),
    }
}

/// Does every value of type `other` go into a column of `kind` unchanged?
pub(crate) fn holds(kind: &Type, other: &Type) -> bool {
    let bits = |kind: &Type| match kind {
        Type::Int8 => Some((true, 8_u8)),
        Type::Int16 => Some((true, 16)),
        Type::Int32 => Some((true, 32)),
        Type::Int64 => Some((true, 64)),
        Type::UInt8 => Some((false, 8)),
        Type::UInt16 => Some((false, 16)),
        Type::UInt32 => Some((false, 32)),
        Type::UInt64 => Some((false, 64)),
        _ => None,
    };
    match (kind, other) {
        (Type::Decimal { precision: p, scale: s }, Type::Decimal { precision: op, scale: os }) => {
            s >= os && i16::from(*p) - i16::from(*s) >= i16::from(*op) - i16::from(*os)
        }
        (Type::Float64, Type::Float32) | (Type::String, Type::Enum | Type::Uuid | Type::Json) => true,
        (Type::List(kind), Type::List(other)) => holds(kind, other),
        (Type::Map(key, value), Type::Map(other_key, other)) => holds(key, other_key) && holds(value, other),
        (Type::Struct(columns), Type::Struct(others)) => {
            let held = |other: &Column| columns.iter().any(|column| column.name == other.name && column_holds(column, other));
            let there = |column: &Column| column.nullable || others.iter().any(|other| other.name == column.name);
            others.iter().all(held) && columns.iter().all(there)
        }
        _ => match (bits(kind), bits(other)) {
            (Some((true, bits)), Some((false, other))) => bits > other,
            (Some((signed, bits)), Some((other_signed, other))) => signed == other_signed && bits >= other,
            _ => kind == other,
        },
    }
}

/// [`holds`], and null where the other may be null.
pub(crate) fn column_holds(column: &Column, other: &Column) -> bool {
    (column.nullable || !other.nullable) && holds(&column.kind, &other.kind)
}

fn announces(wire: &Wire) -> &'static str {
    match wire {
        Wire::Bool => "a column that the event's schema part calls boolean",
        Wire::Int8 | Wire::Int16 | Wire::Int32 | Wire::Int64 => "a column that the event's schema part calls an integer",
        Wire::Float32 | Wire::Float64 => "a column that the event's schema part calls a floating point number",
        Wire::String => "a column that the event's schema part calls a string",
        Wire::Bytes => "a column that the event's schema part calls bytes",
        Wire::Decimal { .. } | Wire::VariableScaleDecimal => "a column that the event's schema part calls a decimal",
        Wire::Date | Wire::IsoDate => "a column that the event's schema part calls a date",
        Wire::Time(_) | Wire::IsoTime | Wire::ZonedTime => "a column that the event's schema part calls a time of day",
        Wire::Timestamp(_) | Wire::IsoTimestamp => "a column that the event's schema part calls a timestamp without a zone",
        Wire::ZonedTimestamp => "a column that the event's schema part calls a timestamp with a zone",
        Wire::Uuid => "a column that the event's schema part calls a UUID",
        Wire::Json => "a column that the event's schema part calls JSON",
        Wire::Enum => "a column that the event's schema part calls an enum",
        Wire::Array(_) => "a column that the event's schema part calls an array",
        Wire::Map(..) => "a column that the event's schema part calls a map",
        Wire::Struct(_) => "a column that the event's schema part calls a struct",
    }
}
