//! Values by their bytes: into columns, as text, and ones that do not fit.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef};
use proptest::prelude::*;
use rows::Type;
use rows::build::ColumnBuilder;
use rows::value::Unholdable;

use super::*;
use crate::pgoutput::{Datum, TypeId};

mod composites;
mod nested;
mod search;

/// One value in a column of its own.
fn column(of: &PgType, kind: &Type, bytes: &[u8]) -> Result<ArrayRef, Misfit> {
    let mut builder = ColumnBuilder::new(kind, 0);
    append(&mut builder, of, Datum::Binary(bytes))?;
    Ok(builder.finish(kind).unwrap())
}

/// Where no composite names a type, none is looked up.
fn append(builder: &mut ColumnBuilder, of: &PgType, datum: Datum<'_>) -> Result<(), Misfit> {
    builder.append_datum(of, datum, &mut Reading { types: &Types::default(), scratch: &mut String::new() })
}

fn as_text(of: &PgType, bytes: &[u8]) -> String {
    column(of, &Type::String, bytes).unwrap().as_string::<i32>().value(0).to_owned()
}

/// A `numeric` by its groups of four digits.
fn numeric(groups: &[i16], weight: i16, sign: u16, shown: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(u16::try_from(groups.len()).unwrap().to_be_bytes());
    bytes.extend(weight.to_be_bytes());
    bytes.extend(sign.to_be_bytes());
    bytes.extend(shown.to_be_bytes());
    bytes.extend(groups.iter().flat_map(|group| group.to_be_bytes()));
    bytes
}

const NUMERIC: PgType = PgType::Numeric(None);

fn decimal(bytes: &[u8], precision: u8, scale: i8) -> Result<i128, Misfit> {
    let array = column(&NUMERIC, &Type::Decimal { precision, scale }, bytes)?;
    Ok(array.as_primitive::<Decimal128Type>().value(0))
}

#[test]
fn numbers_become_decimals_exactly() {
    // 1234.5 with two digits shown, -0.0001, 10000, 0
    assert_eq!(decimal(&numeric(&[1234, 5000], 0, 0, 2), 12, 2), Ok(123_450));
    assert_eq!(decimal(&numeric(&[1], -1, 0x4000, 4), 12, 4), Ok(-1));
    assert_eq!(decimal(&numeric(&[1], 1, 0, 0), 12, 0), Ok(10_000));
    assert_eq!(decimal(&numeric(&[], 0, 0, 0), 12, 2), Ok(0));
    assert_eq!(
        decimal(&numeric(&[9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999], 8, 0, 0), 38, 0),
        Ok(10_i128.pow(36) - 1)
    );
}

#[test]
fn numbers_that_a_decimal_cannot_hold_are_told_by_kind() {
    assert_eq!(decimal(&numeric(&[1234, 5600], 0, 0, 2), 12, 1), Err(Misfit::Unholdable(Unholdable::TooFine)));
    assert_eq!(decimal(&numeric(&[1000], 0, 0, 0), 3, 0), Err(Misfit::Unholdable(Unholdable::Above)));
    assert_eq!(decimal(&numeric(&[1000], 0, 0x4000, 0), 3, 0), Err(Misfit::Unholdable(Unholdable::Below)));
    assert_eq!(decimal(&numeric(&[1], 30_000, 0, 0), 38, 0), Err(Misfit::Unholdable(Unholdable::Above)));
    assert_eq!(decimal(&numeric(&[1], -4_000, 0, 16_000), 38, 0), Err(Misfit::Unholdable(Unholdable::TooFine)));
    assert_eq!(decimal(&numeric(&[], 0, 0xC000, 0), 38, 0), Err(Misfit::Unholdable(Unholdable::NotANumber)));
    assert_eq!(decimal(&numeric(&[], 0, 0xD000, 0), 38, 0), Err(Misfit::Unholdable(Unholdable::Above)));
    assert_eq!(decimal(&numeric(&[], 0, 0xF000, 0), 38, 0), Err(Misfit::Unholdable(Unholdable::Below)));
    assert_eq!(decimal(&numeric(&[], 0, 0x1234, 0), 38, 0), Err(Misfit::Malformed));
    assert_eq!(decimal(&numeric(&[10_000], 0, 0, 0), 38, 0), Err(Misfit::Malformed));
    // More digits than are shown: as a number it would be another one than as text.
    assert_eq!(decimal(&numeric(&[1], -1, 0, 3), 38, 4), Err(Misfit::HiddenDigits));
    assert_eq!(decimal(&numeric(&[10], -1, 0, 3), 38, 4), Ok(10));
    assert_eq!(decimal(&numeric(&[1], -30_000, 0, 0), 38, 0), Err(Misfit::HiddenDigits));
}

#[test]
fn numbers_are_written_with_the_digits_that_the_server_shows() {
    for (bytes, text) in [
        (numeric(&[1234, 5000], 0, 0, 2), "1234.50"),
        (numeric(&[12, 3456], 1, 0x4000, 0), "-123456"),
        (numeric(&[1], 2, 0, 3), "100000000.000"),
        (numeric(&[5], -2, 0, 8), "0.00000005"),
        (numeric(&[], 0, 0, 0), "0"),
        (numeric(&[], 0, 0, 2), "0.00"),
        (numeric(&[], 0, 0xC000, 0), "NaN"),
        (numeric(&[], 0, 0xD000, 0), "Infinity"),
        (numeric(&[], 0, 0xF000, 0), "-Infinity"),
    ] {
        assert_eq!(as_text(&NUMERIC, &bytes), text);
    }
}

#[test]
fn times_are_counted_from_1970() {
    let day = 86_400_000_000_i64;
    let date = column(&PgType::Date, &Type::Date, &0_i32.to_be_bytes()).unwrap();
    assert_eq!(date.as_primitive::<Date32Type>().value(0), 10_957);
    let at = column(&PgType::TimestampTz, &Type::TimestampTz, &1_i64.to_be_bytes()).unwrap();
    assert_eq!(at.as_primitive::<TimestampMicrosecondType>().value(0), 10_957 * day + 1);
    assert_eq!(*at.data_type(), Type::TimestampTz.arrow());
    let time = column(&PgType::Time, &Type::Time, &(day - 1).to_be_bytes()).unwrap();
    assert_eq!(time.as_primitive::<Time64MicrosecondType>().value(0), day - 1);
}

#[test]
fn infinite_times_and_the_end_of_the_day_are_refused_by_kind() {
    let (above, below) = (Misfit::Unholdable(Unholdable::Above), Misfit::Unholdable(Unholdable::Below));
    assert_eq!(column(&PgType::Date, &Type::Date, &i32::MAX.to_be_bytes()).unwrap_err(), above);
    assert_eq!(column(&PgType::Date, &Type::Date, &i32::MIN.to_be_bytes()).unwrap_err(), below);
    assert_eq!(column(&PgType::Timestamp, &Type::Timestamp, &i64::MAX.to_be_bytes()).unwrap_err(), above);
    assert_eq!(column(&PgType::Timestamp, &Type::Timestamp, &i64::MIN.to_be_bytes()).unwrap_err(), below);
    // The last moment that the server knows: beyond what microseconds since 1970 can say.
    assert_eq!(column(&PgType::Timestamp, &Type::Timestamp, &9_223_371_331_199_999_999_i64.to_be_bytes()).unwrap_err(), above);
    assert_eq!(column(&PgType::Time, &Type::Time, &86_400_000_000_i64.to_be_bytes()).unwrap_err(), above);
    assert_eq!(column(&PgType::Time, &Type::Time, &(-1_i64).to_be_bytes()).unwrap_err(), Misfit::Malformed);
}

#[test]
fn times_are_written_as_the_server_writes_them() {
    let micros = |days: i64, micros: i64| (days * 86_400_000_000 + micros).to_be_bytes();
    assert_eq!(as_text(&PgType::Date, &0_i32.to_be_bytes()), "2000-01-01");
    assert_eq!(as_text(&PgType::Date, &(-730_119_i32).to_be_bytes()), "0001-01-01");
    assert_eq!(as_text(&PgType::Date, &(-730_120_i32).to_be_bytes()), "0001-12-31 BC");
    assert_eq!(as_text(&PgType::Date, &i32::MAX.to_be_bytes()), "infinity");
    assert_eq!(as_text(&PgType::Timestamp, &micros(59, 3_723_004_500)), "2000-02-29 01:02:03.0045");
    assert_eq!(as_text(&PgType::TimestampTz, &micros(-1, 0)), "1999-12-31 00:00:00+00");
    assert_eq!(as_text(&PgType::Timestamp, &i64::MIN.to_be_bytes()), "-infinity");
    assert_eq!(as_text(&PgType::Time, &micros(1, 0)), "24:00:00");
    let zoned = |east: i32| [&3_723_000_000_i64.to_be_bytes()[..], &(-east).to_be_bytes()].concat();
    assert_eq!(as_text(&PgType::TimeTz, &zoned(7_200)), "01:02:03+02");
    assert_eq!(as_text(&PgType::TimeTz, &zoned(-12_600)), "01:02:03-03:30");
    assert_eq!(as_text(&PgType::TimeTz, &zoned(3_601)), "01:02:03+01:00:01");
}

#[test]
fn intervals_keep_months_days_and_time_apart() {
    let interval = |months: i32, days: i32, micros: i64| {
        let bytes = [&micros.to_be_bytes()[..], &days.to_be_bytes(), &months.to_be_bytes()].concat();
        as_text(&PgType::Interval, &bytes)
    };
    assert_eq!(interval(0, 0, 0), "00:00:00");
    assert_eq!(interval(14, 3, 14_706_789_000), "1 year 2 mons 3 days 04:05:06.789");
    assert_eq!(interval(-1, 1, 0), "-1 mons +1 day");
    assert_eq!(interval(0, -1, 3_600_000_000), "-1 days +01:00:00");
    assert_eq!(interval(0, 0, -1), "-00:00:00.000001");
    assert_eq!(interval(0, 0, 360_000_000_000_000), "100000:00:00");
}

#[test]
fn floats_are_the_shortest_that_give_the_number_back() {
    for (value, text) in [
        (1.5, "1.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (123_456_789_012_345.0, "123456789012345"),
        (1e15, "1e+15"),
        (-1.25e-7, "-1.25e-07"),
        (f64::INFINITY, "Infinity"),
        (f64::NAN, "NaN"),
        (-0.0, "-0"),
    ] {
        assert_eq!(as_text(&PgType::Float8, &f64::to_be_bytes(value)), text);
    }
    assert_eq!(as_text(&PgType::Float4, &100_000_f32.to_be_bytes()), "100000");
    assert_eq!(as_text(&PgType::Float4, &1_000_000_f32.to_be_bytes()), "1e+06");
}

#[test]
fn the_small_types_are_written_as_the_server_writes_them() {
    assert_eq!(as_text(&PgType::Inet, &[2, 32, 0, 4, 10, 0, 0, 1]), "10.0.0.1");
    assert_eq!(as_text(&PgType::Inet, &[2, 8, 0, 4, 10, 0, 0, 0]), "10.0.0.0/8");
    assert_eq!(as_text(&PgType::Inet, &[2, 32, 1, 4, 10, 0, 0, 1]), "10.0.0.1/32");
    let six = [&[3, 128, 0, 16][..], &[0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]].concat();
    assert_eq!(as_text(&PgType::Inet, &six), "2001:db8::1");
    assert_eq!(as_text(&PgType::Mac, &[8, 0, 0x2B, 1, 2, 3]), "08:00:2b:01:02:03");
    assert_eq!(as_text(&PgType::Bits, &[0, 0, 0, 10, 0b1010_1100, 0b0100_0000]), "1010110001");
    assert_eq!(as_text(&PgType::PgLsn, &0x1_0000_00AB_u64.to_be_bytes()), "1/AB");
    assert_eq!(as_text(&PgType::Money(2), &(-105_i64).to_be_bytes()), "-1.05");
    assert_eq!(as_text(&PgType::Bytea, &[0, 255]), "\\x00ff");
    assert_eq!(as_text(&PgType::Jsonb, b"\x01{}"), "{}");
    assert_eq!(as_text(&PgType::Char, &[0xE9]), "\\351");
    assert_eq!(as_text(&PgType::Uuid, &[0x11; 16]), "11111111-1111-1111-1111-111111111111");
    assert_eq!(as_text(&PgType::Bool, &[1]), "true");
}

/// An array by its dimensions, each a length and a first index, and its elements.
fn array(dimensions: &[(i32, i32)], elements: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(i32::try_from(dimensions.len()).unwrap().to_be_bytes());
    bytes.extend([0; 8]);
    for (length, first) in dimensions {
        bytes.extend(length.to_be_bytes());
        bytes.extend(first.to_be_bytes());
    }
    for element in elements {
        match element {
            None => bytes.extend((-1_i32).to_be_bytes()),
            Some(element) => {
                bytes.extend(i32::try_from(element.len()).unwrap().to_be_bytes());
                bytes.extend(*element);
            }
        }
    }
    bytes
}

#[test]
fn arrays_become_lists_with_their_nulls() {
    let (of, kind) = (PgType::Array(Box::new(PgType::Int8)), Type::List(Box::new(Type::Int64)));
    let two = 2_i64.to_be_bytes();
    let list = column(&of, &kind, &array(&[(2, 1)], &[Some(&two), None])).unwrap();
    let elements = list.as_list::<i32>().value(0);
    assert_eq!((elements.len(), elements.as_primitive::<Int64Type>().value(0), elements.is_null(1)), (2, 2, true));
    assert_eq!(column(&of, &kind, &array(&[], &[])).unwrap().as_list::<i32>().value(0).len(), 0);
}

#[test]
fn an_array_that_a_list_cannot_say_is_refused_and_text_can() {
    let of = PgType::Array(Box::new(PgType::Text));
    let kind = Type::List(Box::new(Type::String));
    let square = array(&[(2, 1), (2, 1)], &[Some(b"a"), Some(b"b c"), None, Some(b"null")]);
    assert_eq!(column(&of, &kind, &square).unwrap_err(), Misfit::Shape);
    assert_eq!(as_text(&of, &square), r#"{{a,"b c"},{NULL,"null"}}"#);
    let shifted = array(&[(1, 5)], &[Some(br#"say "hi"\"#)]);
    assert_eq!(column(&of, &kind, &shifted).unwrap_err(), Misfit::Shape);
    assert_eq!(as_text(&of, &shifted), r#"[5:5]={"say \"hi\"\\"}"#);
    assert_eq!(as_text(&PgType::Array(Box::new(PgType::Bool)), &array(&[(2, 1)], &[Some(&[1]), Some(&[0])])), "{t,f}");
}

#[test]
fn a_value_that_does_not_fit_leaves_the_column_as_it_was() {
    let (of, kind) = (PgType::Array(Box::new(PgType::Date)), Type::List(Box::new(Type::Date)));
    let mut builder = ColumnBuilder::new(&kind, 0);
    let (day, never) = (1_i32.to_be_bytes(), i32::MAX.to_be_bytes());
    append(&mut builder, &of, Datum::Binary(&array(&[(1, 1)], &[Some(&day)]))).unwrap();
    append(&mut builder, &of, Datum::Binary(&array(&[(2, 1)], &[Some(&day), Some(&never)]))).unwrap_err();
    append(&mut builder, &of, Datum::Null).unwrap();
    assert_eq!(builder.len(), 2);
    let lists = builder.finish(&kind).unwrap();
    let lists = lists.as_list::<i32>();
    assert_eq!((lists.len(), lists.values().len(), lists.is_null(1)), (2, 1, true));
}

/// A row of the catalogue: what it is called, which kind it is, what it is made of.
fn entry(id: u32, known_as: &str, kind: u8, element: u32, base: u32, modifier: i32) -> TypeEntry {
    TypeEntry {
        id: TypeId(id),
        name: known_as.to_owned(),
        known_as: known_as.to_owned(),
        kind,
        has_binary: true,
        element: TypeId(element),
        base: TypeId(base),
        modifier,
        attributes: Vec::new(),
    }
}

#[test]
fn types_are_resolved_through_domains_and_arrays() {
    let modifier = (12 << 16 | 2) + 4;
    let types = Types::new(
        [
            entry(1700, "numeric", b'b', 0, 0, -1),
            entry(100, "", b'd', 0, 1700, modifier),
            entry(101, "", b'd', 0, 100, -1),
            entry(102, "", b'b', 101, 0, -1),
            entry(103, "", b'e', 0, 0, -1),
            entry(104, "", b'd', 0, 104, -1),
            entry(790, "money", b'b', 0, 0, -1),
        ],
        3,
    );
    assert_eq!(types.resolve(TypeId(1700), -1), PgType::Numeric(None));
    assert_eq!(types.resolve(TypeId(1700), modifier), PgType::Numeric(Some((12, 2))));
    assert_eq!(types.resolve(TypeId(101), -1), PgType::Numeric(Some((12, 2))));
    assert_eq!(types.resolve(TypeId(102), -1), PgType::Array(Box::new(PgType::Numeric(Some((12, 2))))));
    assert_eq!(types.resolve(TypeId(103), -1), PgType::Enum);
    assert_eq!(types.resolve(TypeId(790), -1), PgType::Money(3));
    // numeric(5,-3), as 15 and later allow it
    assert_eq!(types.resolve(TypeId(1700), (5 << 16 | (-3 & 0x7FF)) + 4), PgType::Numeric(Some((5, -3))));
    assert!(matches!(types.resolve(TypeId(104), -1), PgType::Other(_)));
    assert!(matches!(types.resolve(TypeId(999), -1), PgType::Other(_)));
}

#[test]
fn a_decimal_holds_every_number_of_its_numeric() {
    let of = |precision, scale| natural(&PgType::Numeric(Some((precision, scale))));
    assert_eq!(of(12, 2), Type::Decimal { precision: 12, scale: 2 });
    assert_eq!(of(38, 0), Type::Decimal { precision: 38, scale: 0 });
    assert_eq!(of(2, 4), Type::Decimal { precision: 4, scale: 4 });
    assert_eq!(of(5, -3), Type::Decimal { precision: 8, scale: 0 });
    assert_eq!(of(39, 0), Type::String);
    assert_eq!(natural(&PgType::Numeric(None)), Type::String);
}

#[test]
fn the_documented_mapping_is_the_one_that_is_built() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sources/postgres.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.contains(&table()), "docs/sources/postgres.md must hold this table:\n\n{}", table());
}

fn every_type() -> Vec<PgType> {
    use PgType::*;
    let simple = vec![
        Bool,
        Int2,
        Int4,
        Int8,
        Oid,
        Xid8,
        Float4,
        Float8,
        Numeric(None),
        Numeric(Some((12, 2))),
        Money(2),
        Text,
        Char,
        Enum,
        Json,
        Jsonb,
        Bytea,
        Uuid,
        Date,
        Time,
        TimeTz,
        Timestamp,
        TimestampTz,
        Interval,
        Inet,
        Mac,
        Bits,
        PgLsn,
        TextOnly,
        Versioned,
        RowPlace,
        Snapshot,
        Geometric(super::Geometric::Point),
        Geometric(super::Geometric::Line),
        Geometric(super::Geometric::Segment),
        Geometric(super::Geometric::Box),
        Geometric(super::Geometric::Path),
        Geometric(super::Geometric::Polygon),
        Geometric(super::Geometric::Circle),
        Document,
        Query,
        Pairs,
        Embedding(Number::Single),
        Embedding(Number::Half),
        SparseEmbedding,
        Spatial,
        Composite,
    ];
    let of = |kind: fn(Box<PgType>) -> PgType| simple.iter().cloned().map(move |of| kind(Box::new(of))).collect::<Vec<_>>();
    let made = [of(Array), of(Vector), of(Range), of(MultiRange)].concat();
    let unread = vec![Other("weird".into()), Unsendable("weirder".into()), Array(Box::new(Other("weird".into())))];
    [simple.clone(), made, unread].concat()
}

proptest! {
    #[test]
    fn whatever_the_bytes_are_each_column_that_holds_a_type_takes_or_refuses_them(
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        for of in every_type() {
            for kind in [natural(&of), Type::String, Type::Binary, Type::Int64, Type::Decimal { precision: 9, scale: 3 }, Type::List(Box::new(Type::Float32))] {
                let mut builder = ColumnBuilder::new(&kind, 0);
                let taken = append(&mut builder, &of, Datum::Binary(&bytes));
                prop_assert_eq!(builder.len(), usize::from(taken.is_ok()));
                if !holds(&of, &kind) {
                    // An unknown type's column is there, and no value of it is.
                    prop_assert!(taken.is_err(), "{:?} goes into {}", of, kind);
                }
                prop_assert_eq!(builder.finish(&kind).unwrap().len(), usize::from(taken.is_ok()));
            }
        }
    }

    #[test]
    fn a_number_is_the_same_as_a_decimal_and_as_text(units in -10_i128.pow(17)..10_i128.pow(17)) {
        // Groups of four digits of `units` with four digits after the point.
        let mut groups = Vec::new();
        let mut rest = units.unsigned_abs();
        while rest > 0 {
            groups.insert(0, i16::try_from(rest % 10_000).unwrap());
            rest /= 10_000;
        }
        let weight = i16::try_from(groups.len()).unwrap() - 2;
        let bytes = numeric(&groups, weight, if units < 0 { 0x4000 } else { 0 }, 4);
        prop_assert_eq!(decimal(&bytes, 38, 4).unwrap(), units);
        let text = as_text(&NUMERIC, &bytes);
        let digits: i128 = text.replace('.', "").parse().unwrap();
        prop_assert_eq!(digits, units);
    }
}
