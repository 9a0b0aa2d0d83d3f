//! Every canonical type, written out.

use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use rows::Operation::Insert;

use super::*;

/// The text that each of two values and a null are written as.
async fn written(kind: Type, values: ArrayRef) -> Vec<String> {
    let (directory, sink) = sink().await;
    let table = table(&[("id", Type::Int64), ("v", kind)], 1, Mode::Upsert);
    let mut desk = Desk::new(&sink, table.clone()).await;
    let ids = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    let rows = values.len();
    let data = RecordBatch::try_new(Arc::new(table.schema.arrow()), vec![ids, values]).unwrap();
    desk.commit(netted(&table, &vec![Insert; rows], data, 0)).await;
    let content = std::fs::read_to_string(path_of(&directory)).unwrap();
    let value = |line: &str| line.split_once(",\"v\":").map(|(_, rest)| rest.strip_suffix("}}").unwrap().to_owned());
    content.lines().filter_map(value).collect()
}

fn array(values: impl arrow_array::Array + 'static) -> ArrayRef {
    Arc::new(values)
}

#[tokio::test]
async fn every_type_has_one_form() {
    let cases: Vec<(Type, ArrayRef, Vec<&str>)> = vec![
        (Type::Bool, array(BooleanArray::from(vec![Some(true), Some(false), None])), vec!["true", "false", "null"]),
        (Type::Int8, array(Int8Array::from(vec![Some(i8::MIN), Some(i8::MAX), None])), vec!["-128", "127", "null"]),
        (Type::Int16, array(Int16Array::from(vec![Some(i16::MIN), None])), vec!["-32768", "null"]),
        (Type::Int32, array(Int32Array::from(vec![Some(i32::MIN), None])), vec!["-2147483648", "null"]),
        (
            Type::Int64,
            array(Int64Array::from(vec![Some(i64::MIN), Some(i64::MAX), Some(9_007_199_254_740_993), None])),
            vec!["-9223372036854775808", "9223372036854775807", "9007199254740993", "null"],
        ),
        (Type::UInt8, array(UInt8Array::from(vec![Some(255), None])), vec!["255", "null"]),
        (Type::UInt16, array(UInt16Array::from(vec![Some(65_535), None])), vec!["65535", "null"]),
        (Type::UInt32, array(UInt32Array::from(vec![Some(u32::MAX), None])), vec!["4294967295", "null"]),
        (Type::UInt64, array(UInt64Array::from(vec![Some(u64::MAX), None])), vec!["18446744073709551615", "null"]),
        (
            Type::Float32,
            array(Float32Array::from(vec![Some(0.1), Some(-0.0), Some(f32::NAN), Some(f32::NEG_INFINITY), None])),
            vec!["0.1", "-0.0", "\"NaN\"", "\"-Infinity\"", "null"],
        ),
        (
            Type::Float64,
            array(Float64Array::from(vec![Some(0.1), Some(1e300), Some(5e-324), Some(f64::INFINITY), None])),
            vec!["0.1", "1e+300", "5e-324", "\"Infinity\"", "null"],
        ),
        (
            Type::Decimal { precision: 12, scale: 2 },
            array(Decimal128Array::from(vec![Some(1230), Some(-7), None]).with_precision_and_scale(12, 2).unwrap()),
            vec!["\"12.30\"", "\"-0.07\"", "null"],
        ),
        (
            Type::String,
            array(StringArray::from(vec![Some("a\"b\\c\n\u{1}\u{1F980}/"), Some(""), None])),
            vec!["\"a\\\"b\\\\c\\n\\u0001\u{1F980}/\"", "\"\"", "null"],
        ),
        (Type::Enum, array(StringArray::from(vec![Some("open"), None])), vec!["\"open\"", "null"]),
        (
            Type::Json,
            array(StringArray::from(vec![Some("{ \"a\" : [1.0, null ] }"), Some("null"), Some("\" x \""), None])),
            vec!["{\"a\":[1.0,null]}", "null", "\" x \"", "null"],
        ),
        (
            Type::Binary,
            array(BinaryArray::from(vec![Some(&[0, 255, 62][..]), Some(&[1]), Some(&[]), None])),
            vec!["\"AP8+\"", "\"AQ==\"", "\"\"", "null"],
        ),
        (
            Type::FixedBinary(2),
            array(FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some([1, 2]), None].into_iter(), 2).unwrap()),
            vec!["\"AQI=\"", "null"],
        ),
        (
            Type::Date,
            array(Date32Array::from(vec![Some(19_782), Some(-1), None])),
            vec!["\"2024-02-29\"", "\"1969-12-31\"", "null"],
        ),
        (
            Type::Time,
            array(Time64MicrosecondArray::from(vec![Some(0), Some(86_399_000_001), None])),
            vec!["\"00:00:00.000000\"", "\"23:59:59.000001\"", "null"],
        ),
        (
            Type::Timestamp,
            array(TimestampMicrosecondArray::from(vec![Some(1_709_251_199_000_001), Some(-1), None])),
            vec!["\"2024-02-29T23:59:59.000001\"", "\"1969-12-31T23:59:59.999999\"", "null"],
        ),
        (
            Type::TimestampTz,
            array(TimestampMicrosecondArray::from(vec![Some(1_709_251_199_000_001), None]).with_timezone("+00:00")),
            vec!["\"2024-02-29T23:59:59.000001Z\"", "null"],
        ),
        (
            Type::Uuid,
            array(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    [
                        Some([0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x0a]),
                        None,
                    ]
                    .into_iter(),
                    16,
                )
                .unwrap(),
            ),
            vec!["\"123e4567-e89b-12d3-a456-42661417400a\"", "null"],
        ),
        (
            Type::List(Box::new(Type::Int64)),
            array(list(vec![Some(vec![Some(1), None, Some(3)]), Some(vec![]), None])),
            vec!["[1,null,3]", "[]", "null"],
        ),
        (Type::Map(Box::new(Type::String), Box::new(Type::Int64)), array(named()), vec!["{\"b\":1,\"a\":null}", "{}", "null"]),
        (
            Type::Map(Box::new(Type::Int64), Box::new(Type::Int64)),
            array(numbered()),
            vec!["[{\"key\":7,\"value\":1},{\"key\":7,\"value\":null}]", "null"],
        ),
        (
            Type::Struct(vec![column("z", Type::Date), column("a", Type::List(Box::new(Type::Int64)))]),
            array(nested()),
            vec!["{\"z\":\"1970-01-02\",\"a\":[1]}", "{\"z\":null,\"a\":null}", "null"],
        ),
    ];
    for (kind, values, expected) in cases {
        assert_eq!(written(kind.clone(), values).await, expected, "{kind}");
    }
}

/// With the field names that the canonical types have.
fn list(rows: Vec<Option<Vec<Option<i64>>>>) -> ListArray {
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>(rows);
    let DataType::List(field) = Type::List(Box::new(Type::Int64)).arrow() else { panic!("a list is a list") };
    let (_, offsets, values, nulls) = list.into_parts();
    ListArray::new(field, offsets, values, nulls)
}

fn map(kind: &Type, map: MapArray) -> MapArray {
    let DataType::Map(field, ordered) = kind.arrow() else { panic!("a map is a map") };
    let DataType::Struct(fields) = field.data_type().clone() else { panic!("its entries are structs") };
    let (_, offsets, entries, nulls, _) = map.into_parts();
    let entries = StructArray::new(fields, entries.columns().to_vec(), None);
    MapArray::new(field, offsets, entries, nulls, ordered)
}

fn named() -> MapArray {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    builder.keys().append_value("b");
    builder.values().append_value(1);
    builder.keys().append_value("a");
    builder.values().append_null();
    builder.append(true).unwrap();
    builder.append(true).unwrap();
    builder.append(false).unwrap();
    map(&Type::Map(Box::new(Type::String), Box::new(Type::Int64)), builder.finish())
}

fn numbered() -> MapArray {
    let kind = Type::Map(Box::new(Type::Int64), Box::new(Type::Int64));
    let mut builder = MapBuilder::new(None, Int64Builder::new(), Int64Builder::new());
    builder.keys().append_value(7);
    builder.values().append_value(1);
    builder.keys().append_value(7);
    builder.values().append_null();
    builder.append(true).unwrap();
    builder.append(false).unwrap();
    map(&kind, builder.finish())
}

fn nested() -> StructArray {
    let DataType::Struct(fields) =
        Type::Struct(vec![column("z", Type::Date), column("a", Type::List(Box::new(Type::Int64)))]).arrow()
    else {
        panic!("a struct is a struct")
    };
    let days = array(Date32Array::from(vec![Some(1), None, Some(3)]));
    let lists = array(list(vec![Some(vec![Some(1)]), None, Some(vec![])]));
    StructArray::new(fields, vec![days, lists], Some(vec![true, true, false].into()))
}

/// What is said of a column whose second value cannot be written.
async fn refusal(kind: Type, values: ArrayRef) -> String {
    let (_directory, sink) = sink().await;
    let table = table(&[("id", Type::Int64), ("v", kind)], 1, Mode::Upsert);
    let mut desk = Desk::new(&sink, table.clone()).await;
    let ids = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    let rows = values.len();
    let data = RecordBatch::try_new(Arc::new(table.schema.arrow()), vec![ids, values]).unwrap();
    let rows = netted(&table, &vec![Insert; rows], data, 0);
    let attempt = AttemptId { incarnation: Incarnation(1), number: 1 };
    match desk.open.writer.write(attempt, rows).await {
        Err(error) => error.what,
        Ok(_) => panic!("it must be refused"),
    }
}

#[tokio::test]
async fn what_json_cannot_hold_is_refused_with_the_way_to_it() {
    let times = array(Time64MicrosecondArray::from(vec![0, -1]));
    assert_eq!(
        refusal(Type::Time, times).await,
        "table shop.orders, column 'v', row 2 of a part: it is a time of day that no day has"
    );

    let kind = Type::Map(Box::new(Type::String), Box::new(Type::Int64));
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    builder.append(true).unwrap();
    for value in [1, 2] {
        builder.keys().append_value("twice");
        builder.values().append_value(value);
    }
    builder.append(true).unwrap();
    let twice = array(map(&kind, builder.finish()));
    assert_eq!(refusal(kind, twice).await, "table shop.orders, column 'v', row 2 of a part: a map in it holds one key twice");

    let kind = Type::List(Box::new(Type::Struct(vec![column("doc", Type::Json)])));
    let DataType::List(field) = kind.arrow() else { panic!("a list is a list") };
    let DataType::Struct(fields) = field.data_type().clone() else { panic!("of structs") };
    let docs = StructArray::new(fields, vec![array(StringArray::from(vec!["1", "{secret"]))], None);
    let lists = ListArray::new(field, OffsetBuffer::new(ScalarBuffer::from(vec![0, 1, 2])), array(docs), None);
    assert_eq!(
        refusal(kind, array(lists)).await,
        "table shop.orders, column 'v.element.doc', row 2 of a part: it is no JSON, or JSON nested more than 128 deep"
    );
}
