//! The key encoding: its bytes, its hash, and the law that makes it one: equal values, equal bytes; different ones, different.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::i256;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rows::key::{DecodeError, KeyError, decode, hash};
use rows::{Column, EncodedKeys, TableSchema, Type};

fn kind(text: &str) -> Type {
    text.parse().expect("a type")
}

fn encoded(column: impl Array + 'static, of: &str) -> Vec<Vec<u8>> {
    let keys = EncodedKeys::encode_columns(&[Arc::new(column)], &[kind(of)]).expect("encodes");
    keys.iter().map(<[u8]>::to_vec).collect()
}

fn hex(keys: &[Vec<u8>]) -> Vec<String> {
    keys.iter().map(|key| key.iter().map(|byte| format!("{byte:02x}")).collect()).collect()
}

/// Stored, so they never change.
#[test]
fn every_type_has_its_bytes() {
    assert_eq!(hex(&encoded(BooleanArray::from(vec![false, true]), "bool")), ["00", "01"]);
    assert_eq!(
        hex(&encoded(Int64Array::from(vec![i64::MIN, -1, 0, 5, i64::MAX - 1, i64::MAX]), "int64")),
        [
            "0000000000000000",
            "7fffffffffffffff",
            "8000000000000000",
            "8000000000000005",
            "fffffffffffffffe",
            "ffffffffffffffff0000000000000000"
        ]
    );
    assert_eq!(
        hex(&encoded(UInt64Array::from(vec![5, i64::MAX as u64, 1 << 63, u64::MAX]), "uint64")),
        [
            "8000000000000005",
            "ffffffffffffffff0000000000000000",
            "ffffffffffffffff0000000000000001",
            "ffffffffffffffff8000000000000000"
        ]
    );
    let price = Decimal128Array::from(vec![-1, 150]).with_precision_and_scale(12, 2).unwrap();
    assert_eq!(hex(&encoded(price, "decimal(12,2)")), ["7fffffffffffffffffffffffffffffff", "80000000000000000000000000000096"]);
    assert_eq!(hex(&encoded(StringArray::from(vec!["", "ab", "a\0b"]), "string")), ["0000", "61620000", "6100ff620000"]);
    assert_eq!(hex(&encoded(StringArray::from(vec!["new"]), "enum")), ["6e65770000"]);
    assert_eq!(hex(&encoded(BinaryArray::from(vec![&[0u8, 0xFF][..]]), "binary")), ["00ffff0000"]);
    let fixed = FixedSizeBinaryArray::try_from_iter([[0u8, 1].to_vec()].into_iter()).unwrap();
    assert_eq!(hex(&encoded(fixed, "binary(2)")), ["0001"]);
    assert_eq!(hex(&encoded(Date32Array::from(vec![-1, 19_000]), "date")), ["7fffffff", "80004a38"]);
    assert_eq!(hex(&encoded(Time64MicrosecondArray::from(vec![1]), "time")), ["8000000000000001"]);
    assert_eq!(hex(&encoded(TimestampMicrosecondArray::from(vec![-1]), "timestamp")), ["7fffffffffffffff"]);
    let instant = TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC");
    assert_eq!(hex(&encoded(instant, "timestamptz")), ["8000000000000001"]);
}

/// The expectations come from another implementation of XXH3 (python-xxhash, `xxh3_64`).
#[test]
fn the_hash_is_xxh3_of_64_bits() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(hash(b""), 0x2D06_8005_38D3_94C2);
    assert_eq!(hash(b"a"), 0xE6C6_32B6_1E96_4E1F);
    assert_eq!(hash(b"abc"), 0x78AF_5F94_892F_3950);
    assert_eq!(hash(&[0x80, 0, 0, 0, 0, 0, 0, 5]), VECTOR_8);
    assert_eq!(hash(&all[..16]), VECTOR_16);
    assert_eq!(hash(b"order-4711\0\0"), VECTOR_12);
    assert_eq!(hash(&all), VECTOR_256);
    let keys = EncodedKeys::encode_columns(&[Arc::new(Int32Array::from(vec![5]))], &[Type::Int32]).unwrap();
    assert_eq!(keys.hash(0), VECTOR_8);
}

const VECTOR_8: u64 = 0xD52D_A18B_6AAA_2A9C;
const VECTOR_16: u64 = 0x8355_E3A6_F617_70DB;
const VECTOR_12: u64 = 0xEE45_C7B8_EB5B_D005;
const VECTOR_256: u64 = 0x9408_A443_3B95_2D71;

fn schema(columns: &[(&str, &str)], key: &[usize]) -> TableSchema {
    let columns = columns.iter().map(|(name, of)| Column::new(*name, kind(of), true)).collect();
    TableSchema::new("shop.orders".into(), columns, key.to_vec()).expect("valid")
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).expect("a batch")
}

#[test]
fn a_key_is_its_columns_in_key_order() {
    let schema = schema(&[("line", "int32"), ("note", "string"), ("order", "string")], &[2, 0]);
    let data = batch(vec![
        ("line", Arc::new(Int32Array::from(vec![1, 2]))),
        ("note", Arc::new(StringArray::from(vec![None, Some("x")]))),
        ("order", Arc::new(StringArray::from(vec!["a", ""]))),
    ]);
    let keys = EncodedKeys::encode(&schema, &data).unwrap();
    assert_eq!(hex(&keys.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()), ["6100008000000000000001", "00008000000000000002"]);
}

#[test]
fn a_table_without_a_key_has_empty_keys() {
    let data = batch(vec![("note", Arc::new(StringArray::from(vec![None, Some("x")])))]);
    let keys = EncodedKeys::encode(&schema(&[("note", "string")], &[]), &data).unwrap();
    assert_eq!(keys, EncodedKeys::empty(2));
    assert_eq!((keys.len(), keys.key(1), keys.hash(1)), (2, &[][..], 0x2D06_8005_38D3_94C2));
}

#[test]
fn a_null_key_is_refused_with_its_first_row_and_column() {
    let schema = schema(&[("a", "int64"), ("b", "string")], &[0, 1]);
    let data = batch(vec![
        ("a", Arc::new(Int64Array::from(vec![Some(1), Some(2), None]))),
        ("b", Arc::new(StringArray::from(vec![Some("x"), None, None]))),
    ]);
    let error = EncodedKeys::encode(&schema, &data).expect_err("null");
    assert_eq!(error, KeyError::Null { row: 1, column: "b".into() });
    assert_eq!(error.to_string(), "row 1: the key column 'b' is null; a row of a keyed table needs a value there");

    // A null can also hide behind a dictionary's index.
    let dictionary: DictionaryArray<Int32Type> = vec![Some("x"), None].into_iter().collect();
    let error = EncodedKeys::encode_columns(&[Arc::new(dictionary)], &[Type::String]).expect_err("null");
    assert_eq!(error, KeyError::Null { row: 1, column: "number 1".into() });
}

#[test]
fn a_form_in_which_a_types_values_do_not_come_is_refused() {
    let refused = |column: ArrayRef, of: &str| EncodedKeys::encode_columns(&[column], &[kind(of)]).expect_err(of).to_string();
    let wall: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1]));
    assert_eq!(
        refused(wall, "timestamptz"),
        "the key column 'number 1' has the type timestamptz, but its values come as Timestamp(µs)"
    );
    let instant: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC"));
    assert_eq!(
        refused(instant, "timestamp"),
        "the key column 'number 1' has the type timestamp, but its values come as Timestamp(µs, \"UTC\")"
    );
    assert_eq!(
        refused(Arc::new(StringArray::from(vec!["5"])), "int64"),
        "the key column 'number 1' has the type int64, but its values come as Utf8"
    );
    assert_eq!(
        refused(Arc::new(Float64Array::from(vec![5.0])), "int64"),
        "the key column 'number 1' has the type int64, but its values come as Float64"
    );
    assert_eq!(
        refused(Arc::new(Float64Array::from(vec![5.0])), "float64"),
        "the key column 'number 1' has the type float64, but its values come as Float64"
    );
}

#[test]
fn a_value_that_cannot_be_brought_to_the_column_exactly_is_refused() {
    let refused = |column: ArrayRef, of: &str| match EncodedKeys::encode_columns(&[column], &[kind(of)]) {
        Err(KeyError::Value { row, why, .. }) => (row, why),
        other => panic!("{other:?}"),
    };
    let decimal = |values: Vec<i128>, scale| Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, scale).unwrap());
    assert_eq!(refused(decimal(vec![1500, 1505], 3), "decimal(12,2)"), (1, "it has more digits after the point"));
    assert_eq!(refused(decimal(vec![10i128.pow(37)], 0), "decimal(38,2)"), (0, "it has more than 38 digits"));
    assert_eq!(refused(decimal(vec![0, -1], 0), "uint64"), (1, "it is not within 0 to 2^64 - 1"));
    let wide = Decimal256Array::from(vec![i256::MAX]).with_precision_and_scale(76, 2).unwrap();
    assert_eq!(refused(Arc::new(wide), "decimal(12,2)"), (0, "it has more than 38 digits"));
    let nanos = TimestampNanosecondArray::from(vec![1_000, 1_001]);
    assert_eq!(refused(Arc::new(nanos), "timestamp"), (1, "it is finer than a microsecond"));
    assert_eq!(refused(Arc::new(TimestampSecondArray::from(vec![i64::MAX])), "timestamp"), (0, "it is out of range"));
    assert_eq!(refused(Arc::new(BinaryArray::from(vec![&[1u8][..]])), "uuid"), (0, "it has another length"));
}

#[test]
fn columns_that_do_not_make_a_key_are_refused() {
    let (one, two): (ArrayRef, ArrayRef) = (Arc::new(Int64Array::from(vec![1])), Arc::new(Int64Array::from(vec![1, 2])));
    let both = [Type::Int64, Type::Int64];
    let refused = |columns: &[ArrayRef], types: &[Type]| EncodedKeys::encode_columns(columns, types).expect_err("refused");
    assert_eq!(refused(&[one.clone(), two], &both), KeyError::Columns { expected: 2, found: vec![1, 2] });
    assert_eq!(refused(&[one], &both), KeyError::Columns { expected: 2, found: vec![1] });
    assert_eq!(refused(&[], &[]), KeyError::Columns { expected: 0, found: vec![] });
}

#[test]
fn keys_can_be_selected_joined_and_pushed() {
    let of = |values: Vec<&str>| EncodedKeys::encode_columns(&[Arc::new(StringArray::from(values))], &[Type::String]).unwrap();
    let keys = of(vec!["a", "bb", "ccc"]);
    assert_eq!(keys.select(&[2, 0, 2]), of(vec!["ccc", "a", "ccc"]));
    assert_eq!(EncodedKeys::concat(&[&of(vec!["a"]), &EncodedKeys::default(), &of(vec!["bb", "ccc"])]), keys);
    let mut pushed = EncodedKeys::default();
    keys.iter().for_each(|key| pushed.push(key));
    assert_eq!(pushed, keys);
}

/// A value by itself, to compare by; the arrays are made from it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Value {
    Bool(bool),
    Integer(i128),
    Unscaled(i128),
    Bytes(Vec<u8>),
    Text(String),
}

fn a_value(of: &Type) -> BoxedStrategy<Value> {
    // Few values, so that pairs collide; the edges of each type among them.
    match of {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int32 => {
            prop_oneof![-3i128..4, Just(i128::from(i32::MAX)), Just(i128::from(i32::MIN))].prop_map(Value::Integer).boxed()
        }
        Type::Int64 => prop_oneof![
            -3i128..4,
            (-2i128..=0).prop_map(|d| i128::from(i64::MAX) + d),
            Just(i128::from(i64::MIN)),
            any::<i64>().prop_map(i128::from)
        ]
        .prop_map(Value::Integer)
        .boxed(),
        Type::UInt64 => prop_oneof![
            0i128..4,
            (-3i128..4).prop_map(|d| i128::from(i64::MAX) + d),
            (-2i128..=0).prop_map(|d| i128::from(u64::MAX) + d)
        ]
        .prop_map(Value::Integer)
        .boxed(),
        Type::Decimal { .. } => prop_oneof![-300i128..300, any::<i32>().prop_map(i128::from)].prop_map(Value::Unscaled).boxed(),
        Type::Date | Type::Time | Type::Timestamp | Type::TimestampTz => {
            (0i128..4).prop_map(|n| Value::Integer(n * 1_000_000)).boxed()
        }
        Type::Uuid => prop::collection::vec(0u8..2, 16).prop_map(Value::Bytes).boxed(),
        Type::Binary => prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xFF]), 0..4).prop_map(Value::Bytes).boxed(),
        _ => "[\0ab]{0,3}".prop_map(Value::Text).boxed(),
    }
}

/// All physical forms in which the value may come, one row each.
fn forms(value: &Value, of: &Type) -> Vec<ArrayRef> {
    let with_dictionary = |plain: ArrayRef| {
        let keys = Int32Array::from(vec![0]);
        vec![plain.clone(), Arc::new(DictionaryArray::new(keys, plain)) as ArrayRef]
    };
    match (value, of) {
        (Value::Bool(value), _) => with_dictionary(Arc::new(BooleanArray::from(vec![*value]))),
        (Value::Integer(value), Type::Date) => with_dictionary(Arc::new(Date32Array::from(vec![i32::try_from(*value).unwrap()]))),
        (Value::Integer(value), Type::Time) => {
            let (micros, seconds) = (i64::try_from(*value).unwrap(), i32::try_from(*value / 1_000_000).unwrap());
            vec![
                Arc::new(Time64MicrosecondArray::from(vec![micros])),
                Arc::new(Time64NanosecondArray::from(vec![micros * 1_000])),
                Arc::new(Time32SecondArray::from(vec![seconds])),
                Arc::new(Time32MillisecondArray::from(vec![seconds * 1_000])),
            ]
        }
        (Value::Integer(value), Type::Timestamp) => {
            let micros = i64::try_from(*value).unwrap();
            vec![
                Arc::new(TimestampMicrosecondArray::from(vec![micros])),
                Arc::new(TimestampNanosecondArray::from(vec![micros * 1_000])),
                Arc::new(TimestampMillisecondArray::from(vec![micros / 1_000])),
                Arc::new(TimestampSecondArray::from(vec![micros / 1_000_000])),
            ]
        }
        (Value::Integer(value), Type::TimestampTz) => {
            let micros = i64::try_from(*value).unwrap();
            let in_zone = |zone: &str| Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone(zone)) as ArrayRef;
            let nanos = TimestampNanosecondArray::from(vec![micros * 1_000]).with_timezone("+00:00");
            vec![in_zone("+00:00"), in_zone("UTC"), in_zone("+02:00"), Arc::new(nanos)]
        }
        (Value::Integer(value), of) => {
            let mut all: Vec<ArrayRef> = Vec::new();
            let mut add = |array: Option<ArrayRef>| all.extend(array);
            add(i8::try_from(*value).ok().map(|v| Arc::new(Int8Array::from(vec![v])) as _));
            add(i16::try_from(*value).ok().map(|v| Arc::new(Int16Array::from(vec![v])) as _));
            add(i32::try_from(*value).ok().map(|v| Arc::new(Int32Array::from(vec![v])) as _));
            add(i64::try_from(*value).ok().map(|v| Arc::new(Int64Array::from(vec![v])) as _));
            add(u8::try_from(*value).ok().map(|v| Arc::new(UInt8Array::from(vec![v])) as _));
            add(u16::try_from(*value).ok().map(|v| Arc::new(UInt16Array::from(vec![v])) as _));
            add(u32::try_from(*value).ok().map(|v| Arc::new(UInt32Array::from(vec![v])) as _));
            add(u64::try_from(*value).ok().map(|v| Arc::new(UInt64Array::from(vec![v])) as _));
            if *of == Type::UInt64 {
                add(Some(Arc::new(Decimal128Array::from(vec![*value]).with_precision_and_scale(20, 0).unwrap())));
            }
            let last = all.last().cloned().expect("one form at least");
            all.extend(with_dictionary(last).pop());
            all
        }
        (Value::Unscaled(value), _) => {
            let scaled =
                |by: i128, scale| Arc::new(Decimal128Array::from(vec![*value * by]).with_precision_and_scale(38, scale).unwrap());
            let wide = Decimal256Array::from(vec![i256::from_i128(*value * 10)]).with_precision_and_scale(40, 3).unwrap();
            let mut all: Vec<ArrayRef> = vec![scaled(1, 2), scaled(100, 4), Arc::new(wide)];
            if value % 100 == 0 {
                all.push(Arc::new(Int64Array::from(vec![i64::try_from(*value / 100).unwrap()])));
            }
            all
        }
        (Value::Bytes(value), of) => {
            let mut all: Vec<ArrayRef> = vec![
                Arc::new(BinaryArray::from(vec![value.as_slice()])),
                Arc::new(LargeBinaryArray::from(vec![value.as_slice()])),
                Arc::new(BinaryViewArray::from(vec![value.as_slice()])),
            ];
            if *of == Type::Uuid {
                all.push(Arc::new(FixedSizeBinaryArray::try_from_iter([value].into_iter()).unwrap()));
            }
            all
        }
        (Value::Text(value), _) => {
            let mut all = with_dictionary(Arc::new(StringArray::from(vec![value.as_str()])));
            all.push(Arc::new(LargeStringArray::from(vec![value.as_str()])));
            all.push(Arc::new(StringViewArray::from(vec![value.as_str()])));
            let run_ends = Int32Array::from(vec![1]);
            all.push(Arc::new(RunArray::<Int32Type>::try_new(&run_ends, &StringArray::from(vec![value.as_str()])).unwrap()));
            all
        }
    }
}

fn encode_one(values: &[Value], types: &[Type], form: usize) -> EncodedKeys {
    let columns: Vec<ArrayRef> = values
        .iter()
        .zip(types)
        .map(|(value, of)| {
            let forms = forms(value, of);
            forms[form % forms.len()].clone()
        })
        .collect();
    EncodedKeys::encode_columns(&columns, types).expect("encodes")
}

/// Two keys of one schema. Classes: the same; unrelated; alike, that is one text differently divided, or one the other's beginning.
fn two_keys() -> impl Strategy<Value = (Vec<Type>, Vec<Value>, Vec<Value>)> {
    let types = [
        "bool",
        "int32",
        "int64",
        "uint64",
        "decimal(12,2)",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "uuid",
        "binary",
        "string",
        "enum",
    ];
    let types = prop::collection::vec(prop::sample::select(types.map(kind).to_vec()), 1..4);
    let unrelated = types.prop_flat_map(|types| {
        let row: Vec<_> = types.iter().map(a_value).collect();
        (Just(types), row.clone(), row)
    });
    let same = unrelated.clone().prop_map(|(types, row, _)| (types, row.clone(), row));
    let alike = ("[\0ab]{2,6}", 0usize..7, 0usize..7, 0usize..2).prop_map(|(text, first, second, cut)| {
        let divide = |text: &str, at: usize| {
            let (head, tail) = text.split_at(at.min(text.len()));
            vec![Value::Text(head.into()), Value::Text(tail.into())]
        };
        (vec![Type::String, Type::String], divide(&text, first), divide(&text[..text.len() - cut], second))
    });
    prop_oneof![2 => unrelated, 1 => same, 2 => alike]
}

fn is_alike(first: &[Value], second: &[Value]) -> bool {
    let whole = |row: &[Value]| {
        row.iter()
            .map(|value| if let Value::Text(text) = value { text.clone() } else { format!("{value:?}") })
            .collect::<String>()
    };
    let (first_whole, second_whole) = (whole(first), whole(second));
    first != second && (first_whole.starts_with(&second_whole) || second_whole.starts_with(&first_whole))
}

/// Invariant `key-encoding-is-one`. Runs by hand, to count what the generator made.
#[test]
fn equal_values_have_equal_bytes_and_different_values_have_others_in_the_order_of_the_values() {
    let cases = 4_000;
    let (equal, different, alike) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    let strategy = (two_keys(), any::<[usize; 2]>());
    runner
        .run(&strategy, |((types, first, second), forms)| {
            let class = if first == second {
                &equal
            } else if is_alike(&first, &second) {
                &alike
            } else {
                &different
            };
            class.set(class.get() + 1);
            let (a, b) = (encode_one(&first, &types, forms[0]), encode_one(&second, &types, forms[1]));
            prop_assert_eq!(a.key(0).cmp(b.key(0)), first.cmp(&second), "{:?} {:?} {:?}", types, first, second);
            prop_assert_eq!(a.key(0) == b.key(0), first.cmp(&second) == Ordering::Equal);
            if first == second {
                prop_assert_eq!(a.hash(0), b.hash(0));
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    for (class, count) in [("equal", equal.get()), ("different", different.get()), ("alike", alike.get())] {
        assert!(count * 20 >= cases, "only {count} of {cases} pairs are {class}");
    }
}

/// As the bytes of a negative number would be, of which there are none.
#[test]
fn a_large_number_in_the_bytes_of_a_small_one_is_no_key() {
    let columns = vec![Column::new("id", Type::UInt64, false)];
    let schema = TableSchema::new("shop.orders".into(), columns, vec![0]).unwrap();
    for (first, is_key) in [(0x00, false), (0x7F, false), (0x80, true), (0xFE, true)] {
        let bytes = [first, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(decode(&schema, &[&bytes]).is_ok(), is_key, "{first:#x}");
    }
}

proptest! {
    #[test]
    fn all_physical_forms_of_a_value_encode_alike((types, row, _) in two_keys()) {
        let plain = encode_one(&row, &types, 0);
        for form in 1..12 {
            prop_assert_eq!(&encode_one(&row, &types, form), &plain, "{:?} {:?} form {}", types, row, form);
        }
    }

    #[test]
    fn a_key_is_decoded_to_what_it_was_encoded_from((types, first, second) in two_keys()) {
        let columns = types.iter().enumerate().map(|(n, of)| Column::new(format!("c{n}"), of.clone(), false));
        // Backwards, so that the order of the key is not that of the table.
        let schema = TableSchema::new("shop.orders".into(), columns.collect(), (0..types.len()).rev().collect()).unwrap();
        let (types, mut keys): (Vec<Type>, _) = (types.into_iter().rev().collect(), EncodedKeys::empty(0));
        for row in [first, second] {
            let row: Vec<Value> = row.into_iter().rev().collect();
            keys.push(encode_one(&row, &types, 0).key(0));
        }
        let decoded = decode(&schema, &keys.iter().collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(decoded.num_rows(), 2);
        prop_assert_eq!(EncodedKeys::encode_columns(decoded.columns(), &types).unwrap(), keys);
    }

    #[test]
    fn what_is_no_key_is_refused_and_never_panics((types, row, _) in two_keys(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let columns = types.iter().enumerate().map(|(n, of)| Column::new(format!("c{n}"), of.clone(), false));
        let schema = TableSchema::new("shop.orders".into(), columns.collect(), (0..types.len()).collect()).unwrap();
        let whole = encode_one(&row, &types, 0).key(0).to_vec();
        let cut = &whole[..whole.len() - 1];
        prop_assert!(matches!(decode(&schema, &[cut]), Err(DecodeError::Bytes { key: 0, .. })), "cut short");
        let longer = [&whole[..], &[7]].concat();
        prop_assert!(matches!(decode(&schema, &[&whole[..], &longer[..]]), Err(DecodeError::Longer { key: 1 })), "longer");
        if let Ok(decoded) = decode(&schema, &[&bytes[..]]) {
            let again = EncodedKeys::encode_columns(decoded.columns(), &types).unwrap();
            prop_assert_eq!(again.key(0), &bytes[..], "one encoding a value");
        }
    }

    #[test]
    fn rows_encode_alone_as_in_a_batch(texts in prop::collection::vec("[\0ab]{0,3}", 0..20)) {
        let together = EncodedKeys::encode_columns(&[Arc::new(StringArray::from(texts.clone()))], &[Type::String]).unwrap();
        let alone: Vec<EncodedKeys> = texts.iter().map(|text| encode_one(&[Value::Text(text.clone())], &[Type::String], 0)).collect();
        prop_assert_eq!(EncodedKeys::concat(&alone.iter().collect::<Vec<_>>()), together);
    }
}
