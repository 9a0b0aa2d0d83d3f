//! Casts: the whole table of them, what they do to values, and what they refuse.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};
use rows::cast::{CastError, Fit, cast, fit, held_as, json};
use rows::key::KeyTextError;
use rows::value::{Offence, Unholdable};
use rows::{Column, EncodedKeys, TableSchema, Type, ValuePolicy};

fn kind(text: &str) -> Type {
    text.parse().expect("a type")
}

/// From the row's type to the column's: `=` the same, `L` lossless, `C` checked, `.` refused.
const TABLE: &str = "
                  bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 dec str json bin b16 date time ts tz uuid enum list map struct unk
bool              =    L  L   L   L   L  L   L   L   .   .   .   L   L    .   .   .    .    .  .  .    .    .    .   .      .
int8              C    =  L   L   L   C  C   C   C   L   L   L   L   L    .   .   .    .    .  .  .    .    .    .   .      .
int16             C    C  =   L   L   C  C   C   C   L   L   L   L   L    .   .   .    .    .  .  .    .    .    .   .      .
int32             C    C  C   =   L   C  C   C   C   C   L   L   L   L    .   .   .    .    .  .  .    .    .    .   .      .
int64             C    C  C   C   =   C  C   C   C   C   C   C   L   L    .   .   .    .    .  .  .    .    .    .   .      .
uint8             C    C  L   L   L   =  L   L   L   L   L   L   L   L    .   .   .    .    .  .  .    .    .    .   .      .
uint16            C    C  C   L   L   C  =   L   L   L   L   L   L   L    .   .   .    .    .  .  .    .    .    .   .      .
uint32            C    C  C   C   L   C  C   =   L   C   L   L   L   L    .   .   .    .    .  .  .    .    .    .   .      .
uint64            C    C  C   C   C   C  C   C   =   C   C   C   L   L    .   .   .    .    .  .  .    .    .    .   .      .
float32           .    C  C   C   C   C  C   C   C   =   L   C   L   L    .   .   .    .    .  .  .    .    .    .   .      .
float64           .    C  C   C   C   C  C   C   C   C   =   C   L   L    .   .   .    .    .  .  .    .    .    .   .      .
decimal(12,2)     .    C  C   C   C   C  C   C   C   C   L   =   L   L    .   .   .    .    .  .  .    .    .    .   .      .
string            C    C  C   C   C   C  C   C   C   C   C   C   =   C    C   C   C    C    C  C  C    .    .    .   .      .
json              .    .  .   .   .   .  .   .   .   .   .   .   L   =    .   .   .    .    .  .  .    .    .    .   .      .
binary            .    .  .   .   .   .  .   .   .   .   .   .   L   L    =   C   .    .    .  .  C    .    .    .   .      .
binary(16)        .    .  .   .   .   .  .   .   .   .   .   .   L   L    L   =   .    .    .  .  L    .    .    .   .      .
date              .    .  .   .   .   .  .   .   .   .   .   .   L   L    .   .   =    .    C  .  .    .    .    .   .      .
time              .    .  .   .   .   .  .   .   .   .   .   .   L   L    .   .   .    =    .  .  .    .    .    .   .      .
timestamp         .    .  .   .   .   .  .   .   .   .   .   .   L   L    .   .   C    .    =  .  .    .    .    .   .      .
timestamptz       .    .  .   .   .   .  .   .   .   .   .   .   L   L    .   .   .    .    .  =  .    .    .    .   .      .
uuid              .    .  .   .   .   .  .   .   .   .   .   .   L   L    L   L   .    .    .  .  =    .    .    .   .      .
enum              .    .  .   .   .   .  .   .   .   .   .   .   L   L    .   .   .    .    .  .  .    =    .    .   .      .
list(int64)       .    .  .   .   .   .  .   .   .   .   .   .   L   L    .   .   .    .    .  .  .    .    =    .   .      .
map(string,int64) .    .  .   .   .   .  .   .   .   .   .   .   L   L    .   .   .    .    .  .  .    .    .    =   .      .
struct(a@int64)   .    .  .   .   .   .  .   .   .   .   .   .   L   L    .   .   .    .    .  .  .    .    .    .   =      .
unknown(money)    C    C  C   C   C   C  C   C   C   C   C   C   L   .    C   C   C    C    C  C  C    .    .    .   .      =
";

#[test]
fn the_table_of_casts_is_as_written() {
    let rows: Vec<Vec<&str>> = TABLE.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    // The text of a struct has a space in it, which the table cannot have.
    let types: Vec<Type> = rows.iter().map(|row| kind(&row[0].replace('@', " "))).collect();
    assert_eq!((types.len(), rows[0].len()), (26, 27));
    for (row, from) in rows.iter().zip(&types) {
        for (expected, to) in row[1..].iter().zip(&types) {
            let found = match fit(from, to) {
                Fit::Same => "=",
                Fit::Lossless => "L",
                Fit::Checked => "C",
                Fit::Refused => ".",
            };
            assert_eq!(found, *expected, "from {from} to {to}");
        }
    }
}

#[test]
fn what_a_type_can_hold_decides_between_lossless_and_checked() {
    let of = |from: &str, to: &str| fit(&kind(from), &kind(to));
    assert_eq!(of("int64", "decimal(19,0)"), Fit::Lossless);
    assert_eq!(of("int64", "decimal(18,0)"), Fit::Checked);
    assert_eq!(of("uint64", "decimal(20,0)"), Fit::Lossless);
    assert_eq!(of("uint64", "decimal(22,3)"), Fit::Checked);
    assert_eq!(of("decimal(18,0)", "int64"), Fit::Lossless);
    assert_eq!(of("decimal(18,0)", "uint64"), Fit::Checked);
    assert_eq!(of("decimal(19,0)", "int64"), Fit::Checked);
    assert_eq!(of("decimal(12,2)", "decimal(13,3)"), Fit::Lossless);
    assert_eq!(of("decimal(12,2)", "decimal(13,4)"), Fit::Checked);
    assert_eq!(of("decimal(12,2)", "decimal(20,1)"), Fit::Checked);
    assert_eq!(of("decimal(15,2)", "float64"), Fit::Lossless);
    assert_eq!(of("decimal(16,2)", "float64"), Fit::Checked);
    assert_eq!(of("decimal(6,2)", "float32"), Fit::Lossless);
    assert_eq!(of("binary(16)", "binary(17)"), Fit::Refused);
    assert_eq!(of("list(int32)", "list(int64)"), Fit::Lossless);
    assert_eq!(of("list(int64)", "list(int32)"), Fit::Checked);
    assert_eq!(of("list(int64)", "list(date)"), Fit::Refused);
    assert_eq!(of("map(int32,int64)", "map(int64,int32)"), Fit::Checked);
    assert_eq!(of("map(int64,string)", "map(int32,string)"), Fit::Refused);
    assert_eq!(of("struct(a int32, b string)", "struct(a int64, b string)"), Fit::Lossless);
    assert_eq!(of("struct(a int32 not null)", "struct(a int32)"), Fit::Lossless);
    assert_eq!(of("struct(a int32)", "struct(a int32 not null)"), Fit::Refused);
    assert_eq!(of("struct(a int32)", "struct(b int32)"), Fit::Refused);
    assert_eq!(of("struct(a int32, b int32)", "struct(b int32, a int32)"), Fit::Refused);
    assert_eq!(of("unknown(money)", "unknown(box)"), Fit::Refused);
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn run(column: &ArrayRef, from: &str, to: &str, policy: ValuePolicy) -> Result<ArrayRef, CastError> {
    let cast = cast(column, "c", &kind(from), &kind(to), policy)?;
    let held = held_as(&kind(from), &kind(to), policy);
    assert_eq!(cast.data_type(), &held.arrow(), "from {from} to {to}");
    Ok(cast)
}

fn as_text(column: &ArrayRef, from: &str) -> Vec<String> {
    let cast = run(column, from, "string", ValuePolicy::Error).expect("everything has a text");
    cast.as_string::<i32>().iter().map(|text| text.unwrap_or("(null)").to_owned()).collect()
}

#[test]
fn an_error_names_column_row_type_and_reason_and_no_value() {
    let error = run(&texts(&["secret"]), "string", "int64", ValuePolicy::Error).expect_err("no number").to_string();
    assert_eq!(error, "row 0: the value of column 'c' cannot be held as int64: it is not written as such a value is");
    let error = run(&texts(&["1"]), "json", "int64", ValuePolicy::Error).expect_err("refused").to_string();
    assert_eq!(error, "column 'c': there is no cast from json to int64; string holds every value");
    let error = run(&texts(&["1"]), "int64", "int32", ValuePolicy::Error).expect_err("no integers").to_string();
    assert_eq!(error, "column 'c' has the type int64, so Int64 is expected, Utf8 found");
}

#[test]
fn numbers_change_type_only_if_they_stay_what_they_are() {
    let one = |column: ArrayRef, from: &str, to: &str| match run(&column, from, to, ValuePolicy::Error) {
        Ok(cast) => Ok(as_text(&cast, to).remove(0)),
        Err(CastError::Value(offence)) => Err(offence.why),
        Err(other) => panic!("{other}"),
    };
    let double = |value: f64| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
    let long = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    let price = |value: i128| Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(12, 2).unwrap()) as ArrayRef;
    let text = |text: &str| Ok(text.to_owned());

    assert_eq!(one(long(1 << 60), "int64", "float64"), text("1.152921504606847e18"));
    assert_eq!(one(long((1 << 53) + 1), "int64", "float64"), Err(Unholdable::TooFine));
    assert_eq!(one(long(1), "int64", "bool"), text("true"));
    assert_eq!(one(long(2), "int64", "bool"), Err(Unholdable::Above));
    assert_eq!(one(long(-1), "int64", "uint8"), Err(Unholdable::Below));
    assert_eq!(one(long(9_999_999_999), "int64", "decimal(12,2)"), text("9999999999.00"));
    assert_eq!(one(long(10_000_000_000), "int64", "decimal(12,2)"), Err(Unholdable::Above));

    assert_eq!(one(double(3.0), "float64", "int8"), text("3"));
    assert_eq!(one(double(3.5), "float64", "int8"), Err(Unholdable::TooFine));
    assert_eq!(one(double(f64::NAN), "float64", "int8"), Err(Unholdable::NotANumber));
    assert_eq!(one(double(f64::INFINITY), "float64", "int8"), Err(Unholdable::Above));
    assert_eq!(one(double(1e300), "float64", "int64"), Err(Unholdable::Above));
    assert_eq!(one(double(0.1), "float64", "decimal(12,2)"), text("0.10"));
    assert_eq!(one(double(0.125), "float64", "decimal(12,2)"), Err(Unholdable::TooFine));
    // Its shortest text, 1e23, is not its value: nobody can say which is meant.
    assert_eq!(one(double(1e23), "float64", "decimal(38,0)"), Err(Unholdable::TooFine));
    assert_eq!(one(double(1e22), "float64", "decimal(38,0)"), text("10000000000000000000000"));
    assert_eq!(one(double(0.5), "float64", "float32"), text("0.5"));
    assert_eq!(one(double(0.1), "float64", "float32"), Err(Unholdable::TooFine));
    assert_eq!(one(double(1e300), "float64", "float32"), Err(Unholdable::Above));
    assert_eq!(one(double(f64::NAN), "float64", "float32"), text("NaN"));

    assert_eq!(one(price(150), "decimal(12,2)", "float64"), text("1.5"));
    assert_eq!(one(price(150), "decimal(12,2)", "int32"), Err(Unholdable::TooFine));
    assert_eq!(one(price(-200), "decimal(12,2)", "int32"), text("-2"));
    assert_eq!(one(price(150), "decimal(12,2)", "decimal(12,1)"), text("1.5"));
    assert_eq!(one(price(155), "decimal(12,2)", "decimal(12,1)"), Err(Unholdable::TooFine));
    assert_eq!(one(price(155), "decimal(12,2)", "decimal(3,2)"), text("1.55"));
    assert_eq!(one(price(1_000), "decimal(12,2)", "decimal(3,2)"), Err(Unholdable::Above));
}

#[test]
fn days_become_midnights_and_only_midnights_become_days() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(-1), None, Some(19_000)]));
    let midnights = run(&days, "date", "timestamp", ValuePolicy::Error).unwrap();
    assert_eq!(as_text(&midnights, "timestamp"), ["1969-12-31T00:00:00", "(null)", "2022-01-08T00:00:00"]);
    assert_eq!(&run(&midnights, "timestamp", "date", ValuePolicy::Error).unwrap(), &days);
    let noon: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![-43_200_000_000]));
    let error = run(&noon, "timestamp", "date", ValuePolicy::Error).expect_err("noon").to_string();
    assert_eq!(error, "row 0: the value of column 'c' cannot be held as date: it has more digits than can be kept");
    let far: ArrayRef = Arc::new(Date32Array::from(vec![i32::MAX]));
    assert!(matches!(
        run(&far, "date", "timestamp", ValuePolicy::Error),
        Err(CastError::Value(Offence { why: Unholdable::Above, .. }))
    ));
}

#[test]
fn each_policy_does_what_it_says() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), Some(300), None, Some(-300)]));
    let (to, run) = ("int8", |policy| run(&column, "int64", "int8", policy));
    assert!(matches!(run(ValuePolicy::Error), Err(CastError::Value(Offence { row: 1, why: Unholdable::Above, .. }))));
    assert_eq!(as_text(&run(ValuePolicy::Null).unwrap(), to), ["5", "(null)", "(null)", "(null)"]);
    assert_eq!(as_text(&run(ValuePolicy::Clamp).unwrap(), to), ["5", "127", "(null)", "-128"]);
    assert_eq!(as_text(&run(ValuePolicy::String).unwrap(), "string"), ["5", "300", "(null)", "-300"]);
    assert_eq!(held_as(&Type::Int64, &Type::Int8, ValuePolicy::String), Type::String);
    assert_eq!(held_as(&Type::Int8, &Type::Int64, ValuePolicy::String), Type::Int64);
    assert_eq!(held_as(&Type::Int64, &Type::Int8, ValuePolicy::Null), Type::Int8);
}

#[test]
fn what_has_no_nearest_value_is_not_clamped() {
    let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
    assert!(matches!(
        run(&nan, "float64", "decimal(3,1)", ValuePolicy::Clamp),
        Err(CastError::Value(Offence { why: Unholdable::NotANumber, .. }))
    ));
    let infinite: ArrayRef = Arc::new(Float64Array::from(vec![f64::INFINITY, f64::NEG_INFINITY]));
    assert_eq!(
        as_text(&run(&infinite, "float64", "decimal(3,1)", ValuePolicy::Clamp).unwrap(), "decimal(3,1)"),
        ["99.9", "-99.9"]
    );
    assert!(matches!(
        run(&texts(&["x"]), "string", "int8", ValuePolicy::Clamp),
        Err(CastError::Value(Offence { why: Unholdable::Malformed, .. }))
    ));
}

fn lists() -> ArrayRef {
    let mut builder = ListBuilder::new(Int32Builder::new()).with_field(Field::new("element", DataType::Int32, true));
    builder.append_value([Some(1), None]);
    builder.append_null();
    builder.append_value([]);
    builder.append_value([Some(300)]);
    Arc::new(builder.finish())
}

fn structs() -> ArrayRef {
    let fields = Fields::from(vec![Field::new("n", DataType::Int32, true), Field::new("at \"x\"", DataType::Date32, true)]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![Some(1), None])), Arc::new(Date32Array::from(vec![Some(0), Some(1)]))];
    Arc::new(StructArray::new(fields, columns, Some(NullBuffer::from(vec![true, false]))))
}

fn maps() -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new()).with_keys_field(Field::new(
        "key",
        DataType::Utf8,
        false,
    ));
    builder = builder.with_values_field(Field::new("value", DataType::Int32, true));
    builder.keys().append_value("a");
    builder.values().append_value(300);
    builder.append(true).unwrap();
    builder.append(true).unwrap();
    let built = builder.finish();
    let entries = built.entries().clone();
    let DataType::Map(field, _) = kind("map(string,int32)").arrow() else { unreachable!("a map") };
    let entries = StructArray::new(
        match field.data_type() {
            DataType::Struct(fields) => fields.clone(),
            other => panic!("{other}"),
        },
        entries.columns().to_vec(),
        None,
    );
    Arc::new(MapArray::new(field, built.offsets().clone(), entries, None, false))
}

#[test]
fn nested_values_are_written_as_json() {
    assert_eq!(as_text(&lists(), "list(int32)"), ["[1,null]", "(null)", "[]", "[300]"]);
    assert_eq!(
        as_text(&structs(), "struct(n int32, \"at \"\"x\"\"\" date)"),
        ["{\"n\":1,\"at \\\"x\\\"\":\"1970-01-01\"}", "(null)"]
    );
    assert_eq!(as_text(&maps(), "map(string,int32)"), ["{\"a\":300}", "{}"]);
    let of = |column: ArrayRef, from: &str| {
        let cast = run(&column, from, "json", ValuePolicy::Error).unwrap();
        cast.as_string::<i32>().iter().map(|text| text.unwrap_or("(null)").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of(Arc::new(BooleanArray::from(vec![Some(true), None])), "bool"), ["true", "(null)"]);
    assert_eq!(of(Arc::new(Float64Array::from(vec![1.5, f64::NAN])), "float64"), ["1.5", "\"NaN\""]);
    assert_eq!(
        of(Arc::new(Decimal128Array::from(vec![150]).with_precision_and_scale(12, 2).unwrap()), "decimal(12,2)"),
        ["1.50"]
    );
    assert_eq!(of(texts(&["new\n\"\u{1}é"]), "enum"), ["\"new\\n\\\"\\u0001é\""]);
    assert_eq!(of(Arc::new(Date32Array::from(vec![0])), "date"), ["\"1970-01-01\""]);
    let mut out = String::new();
    json::write(&texts(&["{}"]), &Type::Json, 0, &mut out);
    assert_eq!(out, "{}");
}

#[test]
fn nested_values_are_cast_part_by_part() {
    let wide = run(&lists(), "list(int32)", "list(int64)", ValuePolicy::Error).unwrap();
    assert_eq!(as_text(&wide, "list(int64)"), ["[1,null]", "(null)", "[]", "[300]"]);
    // The row is the list's, not its element's.
    assert!(matches!(
        run(&lists(), "list(int32)", "list(int8)", ValuePolicy::Error),
        Err(CastError::Value(Offence { row: 3, .. }))
    ));
    let sliced = lists().slice(2, 2);
    assert!(matches!(
        run(&sliced, "list(int32)", "list(int8)", ValuePolicy::Error),
        Err(CastError::Value(Offence { row: 1, .. }))
    ));
    assert_eq!(as_text(&run(&sliced, "list(int32)", "list(int8)", ValuePolicy::Clamp).unwrap(), "list(int8)"), ["[]", "[127]"]);
    assert_eq!(as_text(&run(&lists(), "list(int32)", "list(int8)", ValuePolicy::String).unwrap(), "string")[3], "[300]");

    let (from, to) = ("struct(n int32, \"at \"\"x\"\"\" date)", "struct(n string, \"at \"\"x\"\"\" date)");
    let cast = run(&structs(), from, to, ValuePolicy::Error).unwrap();
    assert_eq!(as_text(&cast, to), ["{\"n\":\"1\",\"at \\\"x\\\"\":\"1970-01-01\"}", "(null)"]);
    assert_eq!(
        as_text(&run(&maps(), "map(string,int32)", "map(string,int64)", ValuePolicy::Error).unwrap(), "map(string,int64)"),
        ["{\"a\":300}", "{}"]
    );
    assert!(matches!(
        run(&maps(), "map(string,int32)", "map(string,int8)", ValuePolicy::Error),
        Err(CastError::Value(Offence { row: 0, .. }))
    ));
}

#[test]
fn a_key_given_as_text_is_the_key_of_the_value() {
    let columns = [("k", "int32"), ("day", "date"), ("label", "enum")];
    let columns = columns.map(|(name, of)| Column::new(name, kind(of), false)).to_vec();
    let schema = TableSchema::new("t".into(), columns, vec![2, 0, 1]).unwrap();
    let key = EncodedKeys::of_text(&schema, &["new", "5", "1970-01-02"]).unwrap();
    let parts: Vec<ArrayRef> = vec![texts(&["new"]), Arc::new(Int64Array::from(vec![5])), Arc::new(Date32Array::from(vec![1]))];
    assert_eq!(key, EncodedKeys::encode_columns(&parts, &[Type::Enum, Type::Int32, Type::Date]).unwrap());

    let refused = |values: &[&str]| EncodedKeys::of_text(&schema, values).expect_err("refused");
    assert_eq!(refused(&["new", "5"]).to_string(), "the key is (label, k, day), 2 values are given");
    assert!(matches!(refused(&["new", "5", "today"]), KeyTextError::Text(_)));
    assert_eq!(
        refused(&["new", "5000000000", "1970-01-02"]).to_string(),
        "row 0: the value of column 'k' cannot be held as int32: it is above the highest such value"
    );
}
