//! Values in PostgreSQL's binary form: each goes into its column, or leaves it as it was; and two columns that take the same value
//! say the same of it.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type, Int64Type};
use postgres_source::pgoutput::{Datum, TypeId};
use postgres_source::values::{AppendDatum, PgType, Reading, TypeEntry, Types, holds, natural};
use rows::Type;
use rows::build::ColumnBuilder;

use crate::Saw;
use crate::bytes::Bytes;

/// What a column may be declared as.
const DECLARED: [Type; 6] =
    [Type::String, Type::Int32, Type::Int64, Type::Float64, Type::Decimal { precision: 38, scale: 9 }, Type::Binary];

/// The first bytes choose the server's type, then come two values.
pub fn values(bytes: &[u8]) -> Saw {
    let mut from = Bytes::new(bytes);
    let of = server_type(&mut from);
    let as_text = from.chance(16);
    let first = from.some(40);
    let both = [first, from.rest()];
    let datum = |bytes| if as_text { Datum::Text(bytes) } else { Datum::Binary(bytes) };
    let types = resolves(&of, bytes);

    let mut columns: Vec<Type> = DECLARED.iter().filter(|column| holds(&of, column)).cloned().collect();
    columns.push(natural(&of));
    let mut taken = false;
    for column in &columns {
        let mut builder = ColumnBuilder::new(column, 4);
        let mut scratch = String::from("what was here before");
        for value in [datum(both[0]), Datum::Null, datum(both[1])] {
            let before = builder.len();
            let appended = builder.append_datum(&of, value, &mut Reading { types: &types, scratch: &mut scratch });
            assert_eq!(builder.len(), before + usize::from(appended.is_ok()), "{of:?} into {column}");
            taken |= appended.is_ok() && value != Datum::Null;
            if let Err(misfit) = appended {
                assert!(!misfit.to_string().is_empty());
            }
        }
        let rows = builder.len();
        let array = builder.finish(column).unwrap_or_else(|error| panic!("{of:?} into {column}: {error}"));
        assert_eq!(array.len(), rows, "{of:?} into {column}");
    }
    both.iter().for_each(|value| alike(&types, &of, datum(value)));
    Saw::taken_if(taken)
}

/// One value as a column of this type has it.
fn one(types: &Types, of: &PgType, column: &Type, value: Datum<'_>) -> Option<arrow_array::ArrayRef> {
    let mut builder = ColumnBuilder::new(column, 1);
    builder.append_datum(of, value, &mut Reading { types, scratch: &mut String::new() }).ok()?;
    builder.finish(column).ok()
}

/// A number as a number, and as text.
fn alike(types: &Types, of: &PgType, value: Datum<'_>) {
    let text = one(types, of, &Type::String, value).map(|array| array.as_string::<i32>().value(0).to_owned());
    match of {
        PgType::Int4 => {
            let number = one(types, of, &Type::Int32, value).map(|array| array.as_primitive::<Int32Type>().value(0));
            let wide = one(types, of, &Type::Int64, value).map(|array| array.as_primitive::<Int64Type>().value(0));
            assert_eq!((number.map(i64::from), number.map(|n| n.to_string())), (wide, text));
        }
        PgType::Numeric(_) | PgType::Money(_) => {
            let (fine, coarse) = (Type::Decimal { precision: 38, scale: 9 }, Type::Decimal { precision: 38, scale: 2 });
            let unscaled = |column| one(types, of, column, value).map(|array| array.as_primitive::<Decimal128Type>().value(0));
            let (fine, coarse) = (unscaled(&fine), unscaled(&coarse));
            if let (Some(fine), Some(coarse)) = (fine, coarse) {
                assert_eq!(fine, coarse * 10_i128.pow(7), "{of:?}");
            }
            if let (Some(fine), Some(text)) = (fine, &text) {
                assert_eq!(Some(fine), billionths(text), "{of:?} is written '{text}'");
            }
        }
        _ => {}
    }
}

/// `-12.5` as billionths; `None` if it is finer, or no number.
fn billionths(text: &str) -> Option<i128> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let padded = format!("{whole}{fraction:0<9}");
    let all_digits = padded.bytes().all(|byte| byte.is_ascii_digit());
    let number: i128 = padded.parse().ok().filter(|_| fraction.len() <= 9 && all_digits)?;
    Some(if negative { -number } else { number })
}

/// Types that refer to each other in any way, circles among them, resolve to something.
fn resolves(of: &PgType, bytes: &[u8]) -> Types {
    let entries = bytes.chunks(4).take(6).enumerate().map(|(n, piece)| {
        let at = |place: usize| piece.get(place).copied().unwrap_or_default();
        TypeEntry {
            id: TypeId(n as u32),
            name: format!("t{n}"),
            known_as: ["", "int4", "numeric", "text"][usize::from(at(0) % 4)].into(),
            kind: [b'b', b'd', b'e', b'c'][usize::from(at(1) % 4)],
            has_binary: at(1) < 128,
            element: TypeId(u32::from(at(2) % 8)),
            base: TypeId(u32::from(at(3) % 8)),
            modifier: i32::from(at(0)) * 70_000 - 1,
            attributes: Vec::new(),
        }
    });
    let types = Types::new(entries, bytes.first().copied().unwrap_or_default());
    for id in 0..7 {
        let resolved = types.resolve(TypeId(id), i32::from(bytes.len() as u16) - 1);
        assert!(!natural(&resolved).to_string().is_empty(), "{of:?}");
    }
    types
}

fn server_type(from: &mut Bytes<'_>) -> PgType {
    let simple = [
        PgType::Int4,
        PgType::Bool,
        PgType::Int2,
        PgType::Int8,
        PgType::Oid,
        PgType::Xid8,
        PgType::Float4,
        PgType::Float8,
        PgType::Numeric(None),
        PgType::Numeric(Some((12, 2))),
        PgType::Numeric(Some((1_000, -1_000))),
        PgType::Money(2),
        PgType::Money(250),
        PgType::Text,
        PgType::Char,
        PgType::Enum,
        PgType::Json,
        PgType::Jsonb,
        PgType::Bytea,
        PgType::Uuid,
        PgType::Date,
        PgType::Time,
        PgType::TimeTz,
        PgType::Timestamp,
        PgType::TimestampTz,
        PgType::Interval,
        PgType::Inet,
        PgType::Mac,
        PgType::Bits,
        PgType::PgLsn,
        PgType::Other("hstore".into()),
    ];
    let place = from.below(2 * simple.len());
    let of = simple[place % simple.len()].clone();
    if place < simple.len() { of } else { PgType::Array(Box::new(of)) }
}
