//! Every canonical type: its extremes and its null come back as what was written, in the type that the table has for it.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;
use contract::rows::{Column, Type};
use contract::{Mode, Peek, Sink, SinkTable};
use iceberg::spec::Datum;
use kernel::outcome::CommitOutcome;

use super::world::{Life, World, netted, table_of};
use crate::delta::tests_only::data_files;
use crate::storage::Local;

fn column(name: &str, kind: Type) -> Column {
    Column::new(name, kind, true)
}

/// A column of each type with its least value, its greatest and null, and what a reader finds.
fn columns() -> Vec<(Column, ArrayRef, ArrayRef)> {
    let same = |name: &str, kind: Type, values: ArrayRef| (column(name, kind), Arc::clone(&values), values);
    let as_int = |values: [Option<i32>; 3]| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef;
    let as_long = |values: [Option<i64>; 3]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let decimals = |values: [Option<i128>; 3], precision, scale| {
        Arc::new(Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, scale).unwrap()) as ArrayRef
    };
    let great = 10i128.pow(38) - 1;
    let micros = i64::MAX / 4;
    let fixed = |bytes: [&[u8]; 2]| {
        let size = bytes[0].len() as i32;
        let values = [Some(bytes[0]), Some(bytes[1]), None];
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), size).unwrap()) as ArrayRef
    };
    let timestamps = || TimestampMicrosecondArray::from(vec![Some(-micros), Some(micros), None]);
    vec![
        same("bool", Type::Bool, Arc::new(BooleanArray::from(vec![Some(false), Some(true), None]))),
        (
            column("int8", Type::Int8),
            Arc::new(Int8Array::from(vec![Some(i8::MIN), Some(i8::MAX), None])),
            as_int([Some(-128), Some(127), None]),
        ),
        (
            column("int16", Type::Int16),
            Arc::new(Int16Array::from(vec![Some(i16::MIN), Some(i16::MAX), None])),
            as_int([Some(-32_768), Some(32_767), None]),
        ),
        same("int32", Type::Int32, as_int([Some(i32::MIN), Some(i32::MAX), None])),
        same("int64", Type::Int64, as_long([Some(i64::MIN), Some(i64::MAX), None])),
        (
            column("uint8", Type::UInt8),
            Arc::new(UInt8Array::from(vec![Some(0), Some(u8::MAX), None])),
            as_int([Some(0), Some(255), None]),
        ),
        (
            column("uint16", Type::UInt16),
            Arc::new(UInt16Array::from(vec![Some(0), Some(u16::MAX), None])),
            as_int([Some(0), Some(65_535), None]),
        ),
        (
            column("uint32", Type::UInt32),
            Arc::new(UInt32Array::from(vec![Some(0), Some(u32::MAX), None])),
            as_long([Some(0), Some(4_294_967_295), None]),
        ),
        (
            column("uint64", Type::UInt64),
            Arc::new(UInt64Array::from(vec![Some(0), Some(u64::MAX), None])),
            decimals([Some(0), Some(18_446_744_073_709_551_615), None], 20, 0),
        ),
        same("float32", Type::Float32, Arc::new(Float32Array::from(vec![Some(f32::MIN), Some(f32::NAN), None]))),
        same("float64", Type::Float64, Arc::new(Float64Array::from(vec![Some(-0.0), Some(f64::INFINITY), None]))),
        same("decimal9", Type::Decimal { precision: 9, scale: 2 }, decimals([Some(-999_999_999), Some(999_999_999), None], 9, 2)),
        same(
            "decimal18",
            Type::Decimal { precision: 18, scale: 18 },
            decimals([Some(-1), Some(999_999_999_999_999_999), None], 18, 18),
        ),
        same("decimal38", Type::Decimal { precision: 38, scale: 10 }, decimals([Some(-great), Some(great), None], 38, 10)),
        same("string", Type::String, Arc::new(StringArray::from(vec![Some(""), Some("straße \u{1F980}\0"), None]))),
        same("json", Type::Json, Arc::new(StringArray::from(vec![Some("null"), Some("{\"a\": [1, 2.50]}"), None]))),
        same("enum", Type::Enum, Arc::new(StringArray::from(vec![Some("open"), Some("closed"), None]))),
        same("binary", Type::Binary, Arc::new(BinaryArray::from(vec![Some(&b""[..]), Some(&[0, 255][..]), None]))),
        same("fixed", Type::FixedBinary(3), fixed([&[0, 0, 0], &[255, 254, 253]])),
        (
            column("fixed0", Type::FixedBinary(0)),
            Arc::new(FixedSizeBinaryArray::try_new(0, Vec::<u8>::new().into(), Some(vec![true, true, false].into())).unwrap()),
            Arc::new(BinaryArray::from(vec![Some(&b""[..]), Some(&b""[..]), None])),
        ),
        same("date", Type::Date, Arc::new(Date32Array::from(vec![Some(-719_162), Some(2_932_896), None]))),
        same("time", Type::Time, Arc::new(Time64MicrosecondArray::from(vec![Some(0), Some(86_399_999_999), None]))),
        same("timestamp", Type::Timestamp, Arc::new(timestamps())),
        same("timestamptz", Type::TimestampTz, Arc::new(timestamps().with_timezone("+00:00"))),
        same("uuid", Type::Uuid, fixed([&[0; 16], &[255; 16]])),
    ]
}

async fn written(table: &SinkTable, upserts: RecordBatch) -> (World, RecordBatch) {
    let world = World::new();
    let mut life = Life::begin(&world, table, 1).await;
    let none = upserts.slice(0, 0);
    let staged = life.write_netted(netted(table, 0, upserts, none)).await.unwrap();
    let request = life.request(vec![staged]);
    let outcome = life.commit(&request).await;
    assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
    let mut read = life.sink.peek(table, &Peek { limit: 100, key: None }).await.unwrap();
    assert_eq!(read.len(), 1);
    (world, read.remove(0))
}

/// The data of an array, without the names and ids that nested types carry.
fn same_values(found: &ArrayRef, expected: &ArrayRef) -> bool {
    let plain = arrow_cast::cast(found, expected.data_type()).unwrap();
    plain.to_data() == expected.to_data()
}

#[tokio::test]
async fn extremes_and_nulls_of_every_type_come_back() {
    let all = columns();
    let key: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let mut kinds = vec![column("id", Type::Int64)];
    kinds.extend(all.iter().map(|(column, _, _)| column.clone()));
    let table = table_of("types", kinds, &[0], Mode::Upsert);
    let arrays = std::iter::once(key).chain(all.iter().map(|(_, given, _)| Arc::clone(given))).collect();
    let upserts = RecordBatch::try_new(Arc::new(table.schema.arrow()), arrays).unwrap();
    let (_world, found) = written(&table, upserts).await;
    for (column, _, expected) in &all {
        let array = found.column_by_name(&column.name).unwrap();
        assert_eq!(array.data_type(), expected.data_type(), "{}", column.name);
        assert_eq!(array.to_data(), expected.to_data(), "{}", column.name);
    }
}

#[tokio::test]
async fn lists_maps_and_structs_come_back_with_their_narrow_types_widened() {
    let inner = Type::Struct(vec![column("small", Type::Int8), column("big", Type::UInt64)]);
    let table = table_of(
        "nested",
        vec![
            column("id", Type::Int64),
            column("list", Type::List(Box::new(Type::Int8))),
            column("map", Type::Map(Box::new(Type::String), Box::new(Type::UInt64))),
            column("struct", inner.clone()),
            column("structs", Type::List(Box::new(inner))),
        ],
        &[0],
        Mode::Upsert,
    );
    let offsets = || OffsetBuffer::<i32>::new(vec![0, 2, 2, 3].into());
    let nulls = || Some(vec![true, false, true].into());
    let arrow = table.schema.arrow();
    let DataType::List(element) = arrow.field(1).data_type().clone() else { panic!() };
    let small: ArrayRef = Arc::new(Int8Array::from(vec![Some(1), None, Some(-128)]));
    let list = ListArray::new(element, offsets(), Arc::clone(&small), nulls());
    let DataType::Map(entries, _) = arrow.field(2).data_type().clone() else { panic!() };
    let DataType::Struct(pair) = entries.data_type().clone() else { panic!() };
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
    let big: ArrayRef = Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]));
    let map = MapArray::new(entries, offsets(), StructArray::new(pair, vec![keys, Arc::clone(&big)], None), nulls(), false);
    let DataType::Struct(fields) = arrow.field(3).data_type().clone() else { panic!() };
    let one = StructArray::new(fields, vec![small, big], nulls());
    let DataType::List(of_structs) = arrow.field(4).data_type().clone() else { panic!() };
    let many = ListArray::new(of_structs, offsets(), Arc::new(one.clone()), nulls());
    let id = Int64Array::from(vec![1, 2, 3]);
    let columns: Vec<ArrayRef> = vec![Arc::new(id), Arc::new(list), Arc::new(map), Arc::new(one), Arc::new(many)];
    let given = RecordBatch::try_new(Arc::new(arrow), columns).unwrap();
    let (_world, found) = written(&table, given.clone()).await;
    for (name, expected) in given.schema().fields().iter().map(|f| f.name().clone()).zip(given.columns()) {
        assert!(same_values(found.column_by_name(&name).unwrap(), expected), "{name}: {:?}", found.column_by_name(&name));
    }
    let types: Vec<String> = found.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
    assert!(types[1].contains("Int32") && types[2].contains("Decimal128(20, 0)") && types[3].contains("Int32"), "{types:?}");
}

#[tokio::test]
async fn a_key_of_every_type_that_may_be_one_is_found_again_by_a_new_life() {
    let keyable: Vec<_> = columns()
        .into_iter()
        .filter(|(c, _, _)| !matches!(c.kind, Type::Float32 | Type::Float64 | Type::Json | Type::FixedBinary(0)))
        .collect();
    assert_eq!(keyable.len(), 21);
    for (key, given, _) in keyable {
        let name = key.name.clone();
        let table = table_of("keyed", vec![column("word", Type::String), key], &[1], Mode::Upsert);
        let rows = |words: [&str; 2]| {
            let words: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
            RecordBatch::try_new(Arc::new(table.schema.arrow()), vec![words, given.slice(0, 2)]).unwrap()
        };
        let (world, read) = written(&table, rows(["a", "b"])).await;
        assert_eq!(read.num_rows(), 2, "{name}");
        let mut next = Life::begin(&world, &table, 2).await;
        let replaced = rows(["c", "d"]);
        let none = replaced.slice(0, 0);
        let staged = next.write_netted(netted(&table, 50, replaced, none)).await.unwrap();
        let request = next.request(vec![staged]);
        let outcome = next.commit(&request).await;
        assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{name}: {outcome:?}");
        let after = next.sink.peek(&table, &Peek { limit: 100, key: None }).await.unwrap();
        assert_eq!(after.len(), 1, "{name}");
        assert_eq!(after[0].column(0).to_data(), StringArray::from(vec!["c", "d"]).to_data(), "{name}");
    }
}

#[tokio::test]
async fn metadata_columns_hold_what_the_log_said() {
    let mut table = table_of("events", vec![column("id", Type::Int64)], &[], Mode::Append);
    table.metadata = vec![("__op".into(), "op".into()), ("__pos".into(), "pos".into()), ("__commit_ts".into(), "at".into())];
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
    let rows = RecordBatch::try_new(Arc::new(table.schema.arrow()), vec![ids]).unwrap();
    let (_world, found) = written(&table, rows).await;
    let text = |name: &str| {
        let array = found.column_by_name(name).unwrap().as_any().downcast_ref::<StringArray>().unwrap().clone();
        array.iter().map(|text| text.unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(text("op"), ["insert", "insert"]);
    assert_eq!(text("pos"), ["log@0/0.0", "log@0/1.0"]);
    let at = found.column_by_name("at").unwrap().as_any().downcast_ref::<TimestampMicrosecondArray>().unwrap();
    assert_eq!(at.values()[..], [1_000, 1_000]);
}

#[tokio::test]
async fn manifests_tell_counts_and_bounds_of_each_column() {
    let all = columns();
    let names: Vec<String> = all.iter().map(|(column, _, _)| column.name.clone()).collect();
    let table = table_of("bounds", all.iter().map(|(column, _, _)| column.clone()).collect(), &[], Mode::Append);
    let arrays = all.iter().map(|(_, given, _)| Arc::clone(given)).collect();
    let (world, _) = written(&table, RecordBatch::try_new(Arc::new(table.schema.arrow()), arrays).unwrap()).await;
    let loaded = world.load("bounds").await;
    let file = data_files(&Local, &loaded.metadata, loaded.metadata.current_snapshot().unwrap()).remove(0);
    let id = |name: &str| names.iter().position(|n| n == name).unwrap() as i32 + 1;
    for name in &names {
        assert_eq!(file.value_counts()[&id(name)], 3, "{name}");
        assert_eq!(file.null_value_counts()[&id(name)], 1, "{name}");
    }
    let bounds = |name: &str| {
        let text = |bound: Option<&Datum>| bound.map(ToString::to_string);
        (text(file.lower_bounds().get(&id(name))), text(file.upper_bounds().get(&id(name))))
    };
    let some = |lower: &str, upper: &str| (Some(lower.to_owned()), Some(upper.to_owned()));
    assert_eq!(bounds("int8"), some("-128", "127"));
    assert_eq!(bounds("uint64"), some("0", "18446744073709551615"));
    assert_eq!(bounds("decimal9"), some("-9999999.99", "9999999.99"));
    assert_eq!(bounds("decimal38"), some("-9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999"));
    assert_eq!(bounds("date"), some("0001-01-01", "9999-12-31"));
    assert_eq!(bounds("time"), some("00:00:00", "23:59:59.999999"));
    assert_eq!(bounds("enum"), some("\"closed\"", "\"open\""));
    assert_eq!(bounds("uuid"), some("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"));
    assert_eq!(bounds("bool"), some("false", "true"));
    assert_eq!((file.nan_value_counts()[&id("float32")], file.nan_value_counts()[&id("float64")]), (1, 0));
    assert_eq!(file.upper_bounds()[&id("float32")].to_string(), f32::MIN.to_string());
}
