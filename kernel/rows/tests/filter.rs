//! The row filter: how it is written, what it says of rows, and that rows which stop matching are removed.

mod shop;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::*;
use proptest::prelude::*;
use rows::Operation::{Delete, Insert, Read, Update};
use rows::filter::Filter;
use rows::net::{NetError, net_filled};
use rows::{ChangeBatch, Column, EncodedKeys, NetOutcome, Numbering, Operation, Slice, TableSchema};
use shop::{Cell, Row, batch, data, delete, row, schema};

fn matching(text: &str, batch: &ChangeBatch) -> Vec<bool> {
    let column = |column: usize| batch.data.column(column).clone();
    Filter::new(text, &batch.schema).expect(text).matching(batch.rows(), &column).iter().collect()
}

#[test]
fn a_row_matches_only_if_the_whole_is_true() {
    let rows = [
        row(Insert, (1, 0), 1, "new", 50),
        row(Insert, (2, 0), 2, "paid", 150),
        row(Insert, (3, 0), 3, "paid", 0).null_total(),
        Row { status: Cell::Null, ..row(Read, (4, 0), 4, "", 200) },
    ];
    let batch = batch(&rows);
    let expected = [
        ("status = 'paid'", [false, true, true, false]),
        ("status != 'paid'", [true, false, false, false]),
        ("status <> 'paid'", [true, false, false, false]),
        ("not status = 'paid'", [true, false, false, false]),
        ("status is null", [false, false, false, true]),
        ("status IS NOT NULL", [true, true, true, false]),
        ("total > 1.0", [false, true, false, true]),
        ("total >= 1.5", [false, true, false, true]),
        ("total < 2", [true, true, false, false]),
        ("total <= 0.5", [true, false, false, false]),
        ("total = 1.50", [false, true, false, false]),
        ("id = 2 or id = 4", [false, true, false, true]),
        ("id > 1 and total is not null", [false, true, false, true]),
        // True or unknown is true, false and unknown is false; the rest of unknown is no match.
        ("total is null or status = 'new'", [true, false, true, false]),
        ("total > 1 or id = 3", [false, true, true, true]),
        ("not (total > 1 and status = 'paid')", [true, false, false, false]),
        ("not (total > 1 or status = 'paid')", [true, false, false, false]),
        // 'and' binds closer than 'or', 'not' closer than both.
        ("id = 1 or id = 2 and status = 'new'", [true, false, false, false]),
        ("(id = 1 or id = 2) and status = 'new'", [true, false, false, false]),
        ("not id = 1 and id < 3", [false, true, false, false]),
        ("\"id\" = -1 or \"status\" = 'it''s'", [false, false, false, false]),
    ];
    for (text, expected) in expected {
        assert_eq!(matching(text, &batch), expected, "{text}");
    }
}

#[test]
fn every_type_with_an_order_can_be_compared() {
    let one = |column: ArrayRef, kind: &str| {
        let columns = vec![Column::new("c", kind.parse().unwrap(), true)];
        let schema = Arc::new(TableSchema::new("t".into(), columns, vec![]).unwrap());
        let template = batch(&[row(Insert, (1, 0), 1, "", 0), row(Insert, (2, 0), 2, "", 0)]);
        let data = RecordBatch::try_new(Arc::new(schema.arrow()), vec![column]).unwrap();
        ChangeBatch { schema, data, absent: vec![None], tail: template.tail }
    };
    let columns: Vec<(ArrayRef, &str, &str)> = vec![
        (Arc::new(BooleanArray::from(vec![true, false])), "bool", "c = TRUE"),
        (Arc::new(Int8Array::from(vec![5, 4])), "int8", "c >= 5"),
        (Arc::new(Int16Array::from(vec![5, 4])), "int16", "c >= 5"),
        (Arc::new(Int32Array::from(vec![5, 4])), "int32", "c >= 5"),
        (Arc::new(UInt8Array::from(vec![5, 4])), "uint8", "c >= 5"),
        (Arc::new(UInt16Array::from(vec![5, 4])), "uint16", "c >= 5"),
        (Arc::new(UInt32Array::from(vec![5, 4])), "uint32", "c >= 5"),
        (Arc::new(UInt64Array::from(vec![u64::MAX, 4])), "uint64", "c = 18446744073709551615"),
        (Arc::new(Float32Array::from(vec![0.5, f32::NAN])), "float32", "c < 1"),
        (Arc::new(Float64Array::from(vec![-0.0, f64::NAN])), "float64", "c = 0"),
        (Arc::new(Date32Array::from(vec![19_000, 18_999])), "date", "c > '2022-01-07'"),
        (Arc::new(Time64MicrosecondArray::from(vec![3_600_000_000, 0])), "time", "c = '01:00:00'"),
        (Arc::new(TimestampMicrosecondArray::from(vec![1_000_000, 0])), "timestamp", "c > '1970-01-01 00:00:00'"),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![0, 1]).with_timezone("+00:00")),
            "timestamptz",
            "c = '1970-01-01T02:00:00+02:00'",
        ),
        (
            Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8; 16], [2u8; 16]].iter()).unwrap()),
            "uuid",
            "c < '02020202-0202-0202-0202-020202020202'",
        ),
        (Arc::new(BinaryArray::from(vec![&[0xAAu8][..], &[0xAB]])), "binary", "c = 'aa'"),
        (Arc::new(StringArray::from(vec!["new", "old"])), "enum", "c = 'new'"),
    ];
    for (column, kind, text) in columns {
        assert_eq!(matching(text, &one(column, kind)), [true, false], "{kind}: {text}");
    }
}

#[test]
fn a_text_that_is_no_filter_is_refused_at_its_place() {
    let refused = [
        ("", 1, "a column, 'not' or '(' is expected, the end found"),
        ("status", 7, "=, !=, <, <=, >, >= or 'is' is expected, the end found"),
        ("status like 'a'", 8, "=, !=, <, <=, >, >= or 'is' is expected, 'like' found"),
        ("status = new", 10, "a number, a text in single quotes, true or false is expected, 'new' found"),
        ("status = null", 10, "nothing compares with null; write 'is null' or 'is not null'"),
        ("status is 5", 11, "'null' or 'not null' is expected, '5' found"),
        ("status = 'new", 10, "a single quote is not closed"),
        ("(id = 1", 8, "')' is expected, the end found"),
        ("id = 1)", 7, "'and', 'or' or the end is expected, ')' found"),
        ("id = 1 id = 2", 8, "'and', 'or' or the end is expected, 'id' found"),
        ("id = 1 and", 11, "a column, 'not' or '(' is expected, the end found"),
        ("é; drop", 2, "';' has no meaning here"),
        ("and = 1", 1, "a column, 'not' or '(' is expected, 'and' found"),
    ];
    for (text, at, why) in refused {
        let error = Filter::new(text, &schema()).expect_err(text).to_string();
        let expected = format!("the filter cannot be read at character {at}: {why}\n  {text}\n  {}^", " ".repeat(at - 1));
        assert_eq!(error, expected);
    }
    let deep = format!("{}id = 1{}", "(".repeat(65), ")".repeat(65));
    assert!(Filter::new(&deep[1..deep.len() - 1], &schema()).is_ok());
    assert!(Filter::new(&deep, &schema()).expect_err("deep").to_string().contains("nested at most 64 deep"));
    assert!(Filter::new(&"not ".repeat(1_000_000), &schema()).is_err());
}

#[test]
fn a_filter_that_does_not_fit_its_table_is_refused() {
    let refused = |text: &str| Filter::new(text, &schema()).expect_err(text).to_string();
    assert_eq!(
        refused("statsu = 'a'"),
        "the filter of table shop.orders names column 'statsu', which it does not have; did you mean 'status'?"
    );
    assert_eq!(
        refused("id = 'a'"),
        "the filter of table shop.orders compares column 'id' with 'a', which is no int64: write a number without quotes"
    );
    assert_eq!(
        refused("status = 5"),
        "the filter of table shop.orders compares column 'status' with 5, which is no string: write it in single quotes"
    );
    assert_eq!(
        refused("id = 1.5"),
        "the filter of table shop.orders compares column 'id' with 1.5, which is no int64: it is not written as such a value is"
    );
    assert_eq!(
        refused("total = 1.005"),
        "the filter of table shop.orders compares column 'total' with 1.005, which is no decimal(12,2): it has more digits than can be kept"
    );
    let columns = vec![Column::new("tags", "list(string)".parse().unwrap(), true)];
    let schema = Arc::new(TableSchema::new("t".into(), columns, vec![]).unwrap());
    assert_eq!(
        Filter::new("tags = 'a'", &schema).expect_err("a list").to_string(),
        "the filter of table t compares column 'tags', whose type list(string) can only be asked for null"
    );
    assert!(Filter::new("tags is null", &schema).is_ok());
}

fn netted(rows: &[Row], text: &str) -> Result<NetOutcome, NetError> {
    let batch = batch(rows);
    let keys = Arc::new(EncodedKeys::encode(&batch.schema, &batch.data).unwrap());
    let filter = Filter::new(text, &batch.schema).unwrap();
    let slice = Slice { rows: 0..batch.rows(), batch: Arc::new(batch), keys };
    net_filled(&[slice], Numbering { incarnation: kernel::id::Incarnation(1), first: 0 }, Some(&filter), &[])
}

#[test]
fn a_row_that_stops_matching_becomes_a_delete_of_its_key() {
    let rows = [
        row(Insert, (1, 0), 1, "open", 5),
        row(Insert, (2, 0), 2, "open", 7),
        row(Update, (3, 0), 1, "closed", 6),
        row(Update, (4, 0), 2, "open", 0).without_total(),
        delete((5, 0), 3),
        row(Read, (6, 0), 4, "closed", 8),
    ];
    let NetOutcome::Netted(netted) = netted(&rows, "status = 'open'").unwrap() else { panic!("no holes") };
    // What an update did not send is there when it is judged.
    assert_eq!(netted.upserts, data(&[row(Update, (4, 0), 2, "open", 7)]));
    let ids = netted.deletes.column(0).as_primitive::<types::Int64Type>().values().to_vec();
    let sequences: Vec<u64> = netted.delete_versions.iter().map(|version| version.sequence()).collect();
    assert_eq!((ids, sequences), (vec![1, 3, 4], vec![2, 4, 5]), "in log order, each once");
}

#[test]
fn a_value_that_nobody_has_is_missed_only_where_it_is_needed() {
    let missed = |rows: &[Row], text: &str| match netted(rows, text).unwrap() {
        NetOutcome::Holes(holes) => holes.into_iter().map(|hole| hole.column).collect(),
        NetOutcome::Netted(_) => Vec::new(),
    };
    let without_status = [row(Update, (1, 0), 1, "", 6).without_status()];
    assert_eq!(missed(&without_status, "status = 'open'"), ["status"], "it can't be judged");
    assert_eq!(missed(&without_status, "total > 0"), ["status"], "it goes on, and not whole");
    let nothing: Vec<String> = Vec::new();
    assert_eq!(missed(&without_status, "total < 0"), nothing, "it does not go on");
    assert_eq!(missed(&[row(Insert, (1, 0), 1, "open", 1), delete((2, 0), 1)], "status = 'open'"), nothing);
}

#[test]
fn a_filter_of_other_rows_is_refused() {
    let rows = batch(&[row(Insert, (1, 0), 1, "open", 5)]);
    let other = Arc::new(TableSchema { table: "shop.lines".into(), ..(*schema()).clone() });
    let filter = Filter::new("id = 2", &other).unwrap();
    let keys = Arc::new(EncodedKeys::encode(&rows.schema, &rows.data).unwrap());
    let slice = Slice { rows: 0..1, batch: Arc::new(rows), keys };
    let error =
        net_filled(&[slice], Numbering { incarnation: kernel::id::Incarnation(1), first: 0 }, Some(&filter), &[]).unwrap_err();
    assert_eq!(error.to_string(), "rows of table shop.orders came to a filter of table shop.lines, or under another schema");
}

proptest! {
    /// What a target holds after a filtered checkpoint is what it would hold after the whole one, without the rows that do not match.
    #[test]
    fn a_filtered_result_is_the_result_without_what_does_not_match(
        changes in prop::collection::vec((prop::sample::select(vec![Insert, Update, Delete, Read]), 0i64..4, 0i128..10), 1..20),
        bound in 0i128..10,
    ) {
        let make = |(n, (operation, id, total)): (usize, &(Operation, i64, i128))| match operation {
            Delete => delete((n as u64, 0), *id),
            operation => row(*operation, (n as u64, 0), *id, "s", *total),
        };
        let rows: Vec<Row> = changes.iter().enumerate().map(make).collect();
        let text = format!("total >= {}.{:02}", bound / 100, bound % 100);
        let NetOutcome::Netted(netted) = netted(&rows, &text).unwrap() else { panic!("no holes") };

        let last = |id: i64| rows.iter().rev().find(|row| row.id == id);
        let is_kept = |row: &&Row| row.operation != Delete && matches!(row.total, Cell::Is(total) if total >= bound);
        let kept: Vec<Row> = rows.iter().filter(is_kept).filter(|row| last(row.id) == Some(row)).cloned().collect();
        let touched: std::collections::BTreeSet<i64> = rows.iter().map(|row| row.id).collect();
        prop_assert_eq!(&netted.upserts, &data(&kept));
        prop_assert_eq!(netted.upsert_keys.len(), kept.len());
        prop_assert_eq!(netted.upsert_tail.operations.len(), kept.len());
        prop_assert_eq!(netted.deletes.num_rows(), touched.len() - kept.len());
        prop_assert_eq!(netted.delete_keys.len(), netted.deletes.num_rows());
        prop_assert!(netted.delete_versions.is_sorted());
    }
}
