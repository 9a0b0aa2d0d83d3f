//! What the pipeline wants of a table: bound to its columns, narrowed where rows come in, given its form after netting.

mod shop;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types;
use proptest::prelude::*;
use rows::Operation::{Delete, Insert, Update};
use rows::net::{append, net_filled};
use rows::shape::{Missing, Shape, Wanted, WantedCast};
use rows::{ChangeBatch, EncodedKeys, NetOutcome, Netted, Numbering, Operation, Slice, TableSchema, Type, ValuePolicy};
use shop::{Row, batch, delete, row, schema};

fn wanted(columns: &[&str], casts: &[(&str, &str, ValuePolicy)], filter: Option<&str>) -> Wanted {
    let cast = |(name, kind, on_value): &(&str, &str, ValuePolicy)| {
        ((*name).to_owned(), WantedCast { kind: kind.parse().unwrap(), on_value: *on_value })
    };
    Wanted {
        columns: (!columns.is_empty()).then(|| columns.iter().map(|name| (*name).to_owned()).collect()),
        casts: casts.iter().map(cast).collect(),
        filter: filter.map(str::to_owned),
    }
}

fn shape(wanted: &Wanted) -> Shape {
    Shape::new(&schema(), wanted, Missing::Refused).unwrap()
}

const NUMBERING: Numbering = Numbering { incarnation: kernel::id::Incarnation(1), first: 0 };

/// The way of rows from the source to the sink.
fn through(shape: &Shape, batch: ChangeBatch) -> Netted {
    let batch = shape.narrow(Arc::new(batch)).unwrap();
    assert_eq!(batch.check(), Ok(()));
    let keys = Arc::new(EncodedKeys::encode(&batch.schema, &batch.data).unwrap());
    let slice = Slice { rows: 0..batch.rows(), batch, keys };
    match net_filled(&[slice], NUMBERING, shape.filter().map(AsRef::as_ref), &[]).unwrap() {
        NetOutcome::Netted(netted) => shape.apply(*netted).unwrap(),
        NetOutcome::Holes(holes) => panic!("{holes:?}"),
    }
}

fn names(schema: &TableSchema) -> Vec<&str> {
    schema.columns.iter().map(|column| column.name.as_str()).collect()
}

#[test]
fn a_column_that_only_the_filter_needs_does_not_reach_the_target() {
    let shape = shape(&wanted(&["id"], &[], Some("total >= 1.00")));
    assert_eq!((names(shape.narrow_schema()), names(shape.schema())), (vec!["id", "total"], vec!["id"]));
    // What nobody needs may be missing: a value that was not sent halts nothing.
    let rows = [row(Insert, (1, 0), 1, "", 150).without_status(), row(Insert, (2, 0), 2, "", 50).without_status()];
    let netted = through(&shape, batch(&rows));
    assert_eq!(netted.schema, *shape.schema());
    assert_eq!(netted.upserts.num_columns(), 1);
    assert_eq!(netted.upserts.column(0).as_primitive::<types::Int64Type>().values(), &[1]);
    assert_eq!(netted.deletes.column(0).as_primitive::<types::Int64Type>().values(), &[2]);
}

#[test]
fn everything_goes_through_as_it_is() {
    let shape = shape(&Wanted::default());
    assert!(Wanted::default().is_everything() && Arc::ptr_eq(shape.narrow_schema(), &schema_of(&shape)));
    let whole = Arc::new(batch(&[row(Insert, (1, 0), 1, "new", 150)]));
    assert!(Arc::ptr_eq(&shape.narrow(Arc::clone(&whole)).unwrap(), &whole));
}

fn schema_of(shape: &Shape) -> Arc<TableSchema> {
    Arc::clone(shape.narrow_schema())
}

#[test]
fn a_key_of_another_type_is_encoded_as_that_type() {
    let shape = shape(&wanted(&[], &[("id", "string", ValuePolicy::Error)], None));
    let netted = through(&shape, batch(&[row(Insert, (1, 0), 7, "new", 150), delete((2, 0), 8)]));
    let of = |rows| EncodedKeys::encode(shape.schema(), rows).unwrap();
    let bytes = |keys: &EncodedKeys| keys.iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!(shape.schema().columns[0].kind, Type::String);
    assert_eq!(bytes(&netted.upsert_keys), bytes(&of(&netted.upserts)));
    assert_eq!(bytes(&netted.delete_keys), bytes(&of(&netted.deletes)));
    assert_eq!(netted.deletes.column(0).as_string::<i32>().value(0), "8");
}

#[test]
fn rows_that_are_all_kept_have_no_keys_before_and_after() {
    let shape = shape(&wanted(&[], &[("id", "string", ValuePolicy::Error)], None));
    let batch = Arc::new(batch(&[row(Insert, (1, 0), 7, "new", 150), delete((2, 0), 8)]));
    let keys = Arc::new(EncodedKeys::encode(&batch.schema, &batch.data).unwrap());
    let NetOutcome::Netted(netted) = append(&[Slice { rows: 0..2, batch, keys }], NUMBERING).unwrap() else { panic!("no holes") };
    let netted = shape.apply(*netted).unwrap();
    assert!(netted.upsert_keys.is_empty() && netted.delete_keys.is_empty());
    assert_eq!(netted.upserts.column(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("7"), Some("8")]);
}

#[test]
fn a_value_that_cannot_be_held_is_told_with_its_place_in_the_log_and_not_with_its_text() {
    let rows = [row(Insert, (1, 0), 1, "new", 150), row(Insert, (2, 5), 2, "new", 99_999)];
    let shape = shape(&wanted(&[], &[("total", "decimal(4,2)", ValuePolicy::Error)], None));
    let batch = Arc::new(batch(&rows));
    let keys = Arc::new(EncodedKeys::encode(&batch.schema, &batch.data).unwrap());
    let place = (batch.tail.transactions.last().unwrap().transaction.clone(), batch.tail.coordinates[1]);
    let NetOutcome::Netted(netted) = net_filled(&[Slice { rows: 0..2, batch, keys }], NUMBERING, None, &[]).unwrap() else {
        panic!("no holes")
    };
    let error = shape.apply(*netted).unwrap_err().to_string();
    let expected = format!(
        "table shop.orders: the value of column 'total' in the row that was changed in transaction {:?} at {:?} cannot be held as \
         decimal(4,2): it is above the highest such value. Give the column another `onValue` (`null` or `clamp`) and resume the table",
        place.0, place.1
    );
    assert_eq!(error, expected);
}

#[test]
fn a_wish_that_does_not_fit_is_refused() {
    let refused = |wanted: &Wanted| Shape::new(&schema(), wanted, Missing::Refused).expect_err("refused").to_string();
    assert_eq!(
        refused(&wanted(&["id", "statsu"], &[], None)),
        "table shop.orders: there is no column 'statsu'; did you mean 'status'?"
    );
    assert_eq!(
        refused(&wanted(&["status"], &[], None)),
        "table shop.orders: the key column 'id' is left out, but without it rows cannot be told apart"
    );
    assert_eq!(
        refused(&wanted(&[], &[("note", "string", ValuePolicy::Error)], None)),
        "table shop.orders: there is no column 'note'; did you mean 'total'?"
    );
    assert!(refused(&wanted(&[], &[], Some("note = 'a'"))).starts_with("the filter of table shop.orders names column 'note'"));
    // A copy that was made when the column was there goes on without it; but no row can be judged without the filter's columns.
    let gone = |wanted: &Wanted| Shape::new(&schema(), wanted, Missing::Gone);
    let shape = gone(&wanted(&["id", "note"], &[("other", "string", ValuePolicy::Error)], None)).unwrap();
    assert_eq!(names(shape.schema()), ["id"]);
    assert!(gone(&wanted(&[], &[], Some("note = 'a'"))).is_err());
}

#[test]
fn what_is_wanted_is_stored_in_words_that_stay() {
    let all = |on_value| wanted(&["id", "total"], &[("total", "decimal(4,2)", on_value)], Some("id > 5"));
    let text = r#"{"columns":["id","total"],"casts":{"total":{"type":"decimal(4,2)"}},"filter":"id > 5"}"#;
    for on_value in [ValuePolicy::Error, ValuePolicy::Null, ValuePolicy::Clamp] {
        assert_eq!(serde_json::to_string(&all(on_value).of_copy()).unwrap(), text);
    }
    assert_eq!(serde_json::from_str::<Wanted>(text).unwrap(), all(ValuePolicy::Error));
    let as_text = text.replace("\"decimal(4,2)\"", "\"decimal(4,2)\",\"onValue\":\"string\"");
    assert_eq!(serde_json::to_string(&all(ValuePolicy::String).of_copy()).unwrap(), as_text);
    assert_eq!(serde_json::from_str::<Wanted>(&as_text).unwrap(), all(ValuePolicy::String));
    assert_eq!(serde_json::to_string(&Wanted::default()).unwrap(), "{}");
}

proptest! {
    /// Giving each checkpoint its shape, and giving the whole table its shape at the end, leave the same target.
    #[test]
    fn shaping_checkpoints_is_shaping_the_table(
        changes in prop::collection::vec((prop::sample::select(vec![Insert, Update, Delete]), 0i64..5, 0i128..400, any::<bool>()), 1..30),
    ) {
        let shape = shape(&wanted(&["id", "total"], &[("total", "string", ValuePolicy::Error)], Some("status = 'open'")));
        let status = |is_open: bool| if is_open { "open" } else { "closed" };
        let make = |(n, (operation, id, total, is_open)): (usize, &(Operation, i64, i128, bool))| match operation {
            Delete => delete((n as u64, 0), *id),
            operation => row(*operation, (n as u64, 0), *id, status(*is_open), *total),
        };
        let rows: Vec<Row> = changes.iter().enumerate().map(make).collect();

        let mut table: BTreeMap<i64, (i128, bool)> = BTreeMap::new();
        let mut target: BTreeMap<i64, String> = BTreeMap::new();
        for checkpoint in rows.chunks(4) {
            let netted = through(&shape, batch(checkpoint));
            for id in netted.deletes.column(0).as_primitive::<types::Int64Type>().values() {
                target.remove(id);
            }
            let totals = netted.upserts.column(1).as_string::<i32>();
            for (at, id) in netted.upserts.column(0).as_primitive::<types::Int64Type>().values().iter().enumerate() {
                target.insert(*id, totals.value(at).to_owned());
            }
        }
        for (operation, id, total, is_open) in &changes {
            match operation {
                Delete => table.remove(id),
                _ => table.insert(*id, (*total, *is_open)),
            };
        }
        let expected: BTreeMap<i64, String> = table
            .into_iter()
            .filter(|(_, (_, is_open))| *is_open)
            .map(|(id, (total, _))| (id, format!("{}.{:02}", total / 100, total % 100)))
            .collect();
        prop_assert_eq!(target, expected);
    }
}
