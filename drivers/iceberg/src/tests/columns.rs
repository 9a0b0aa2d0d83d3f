//! Columns that change between two checkpoints: in the commit that needs them, once or not at all, whatever else happens.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use contract::{CommitRequest, Kind, Mode, Peek, Sink, SinkTable, Staged};
use iceberg::TableUpdate;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type as IcebergType};
use kernel::outcome::CommitOutcome;
use rows::{Column, TableSchema, Type};

use super::world::{Fault, Life, World, netted, words};

/// [`words`] as it looks after a change: with a note.
fn noted(table: &SinkTable) -> SinkTable {
    let mut columns = table.schema.columns.clone();
    columns.push(Column::new("note", Type::String, true));
    let schema = TableSchema { columns, ..table.schema.as_ref().clone() };
    SinkTable { schema: Arc::new(schema), ..table.clone() }
}

fn batch(table: &SinkTable, rows: &[(i64, &str, &str)]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.2))),
    ];
    RecordBatch::try_new(Arc::new(table.schema.arrow()), columns).unwrap()
}

/// Stages rows with a note.
async fn write_noted(life: &mut Life, upserts: &[(i64, &str, &str)]) -> Arc<Staged> {
    let table = noted(&life.table);
    life.write_netted(netted(&table, 0, batch(&table, upserts), batch(&table, &[]))).await.unwrap()
}

/// A commit of rows with a note.
fn noted_request(life: &Life, staged: Arc<Staged>) -> CommitRequest {
    CommitRequest { schema: Some(noted(&life.table).schema), ..life.request(vec![staged]) }
}

async fn told(life: &Life) -> Vec<String> {
    let batches = life.sink.peek(&life.table, &Peek { limit: 100, key: None }).await.unwrap();
    let mut told = Vec::new();
    for batch in &batches {
        let text = |column: usize, row: usize| {
            let values = batch.columns().get(column)?.as_any().downcast_ref::<StringArray>()?;
            values.is_valid(row).then(|| values.value(row).to_owned())
        };
        let ids = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        told.extend((0..batch.num_rows()).map(|row| format!("{} {:?} {:?}", ids.value(row), text(1, row), text(2, row))));
    }
    told.sort();
    told
}

async fn columns(world: &World) -> Vec<String> {
    let loaded = world.load("words").await;
    loaded
        .metadata
        .current_schema()
        .as_struct()
        .fields()
        .iter()
        .map(|f| format!("{} {} {}", f.id, f.name, f.field_type))
        .collect()
}

#[tokio::test]
async fn a_column_comes_with_the_commit_of_the_first_rows_that_have_it() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    let staged = write_noted(&mut life, &[(2, "zwei", "changed"), (3, "drei", "new")]).await;
    assert_eq!(columns(&world).await, ["1 id long", "2 word string"], "what is staged changes nothing");
    let request = noted_request(&life, staged);
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(columns(&world).await, ["1 id long", "2 word string", "3 note string"]);
    let rows = [r#"1 Some("one") None"#, r#"2 Some("zwei") Some("changed")"#, r#"3 Some("drei") Some("new")"#];
    assert_eq!(told(&life).await, rows);
    let metadata = world.load("words").await.metadata;
    let of_snapshots: Vec<_> = metadata.snapshots().map(|s| s.schema_id()).collect();
    assert!(of_snapshots.contains(&Some(0)) && metadata.current_snapshot().unwrap().schema_id() == Some(1), "{of_snapshots:?}");
    // The same commit asked for again is the one that is there, and the next one changes no column.
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    let staged = write_noted(&mut life, &[(1, "eins", "late")]).await;
    let request = noted_request(&life, staged);
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(world.load("words").await.metadata.schemas_iter().count(), 2);
    // Another life begins with the columns that were stored.
    let mut next = Life::begin(&world, &noted(&words(Mode::Upsert)), 2).await;
    let again = netted(&next.table, 9, batch(&next.table, &[(3, "three", "x")]), batch(&next.table, &[]));
    let staged = next.write_netted(again).await.unwrap();
    let request = next.request(vec![staged]);
    assert!(matches!(next.commit(&request).await, CommitOutcome::Durable { .. }));
    let rows = [r#"1 Some("eins") Some("late")"#, r#"2 Some("zwei") Some("changed")"#, r#"3 Some("three") Some("x")"#];
    assert_eq!(told(&next).await, rows);
}

#[tokio::test]
async fn a_sweep_may_bring_columns_and_takes_the_rows_of_before_the_generation() {
    for fault in [None, Some(Fault::RequestLost), Some(Fault::AnswerLost)] {
        let world = World::new();
        let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
        life.say(&[(1, "old"), (2, "old")], &[]).await;
        life.begin_generation(1).await;
        life.say(&[(2, "new")], &[]).await;
        let staged = write_noted(&mut life, &[(3, "new", "with a note")]).await;
        let request = CommitRequest { sweep: true, ..noted_request(&life, staged) };
        if let Some(fault) = fault {
            world.catalog.fail_next(fault);
            assert!(matches!(life.commit(&request).await, CommitOutcome::Unknown { .. }));
        }
        assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
        assert_eq!(columns(&world).await, ["1 id long", "2 word string", "3 note string"]);
        assert_eq!(told(&life).await, [r#"2 Some("new") None"#, r#"3 Some("new") Some("with a note")"#]);
        // A generation that begins with the change of columns itself.
        let schema = Some(noted(&life.table).schema);
        let request = CommitRequest { schema: schema.clone(), ..life.beginning(2) };
        assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
        let staged = write_noted(&mut life, &[(3, "newer", "another")]).await;
        let request = CommitRequest { sweep: true, ..noted_request(&life, staged) };
        assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
        assert_eq!(told(&life).await, [r#"3 Some("newer") Some("another")"#]);
    }
}

/// [`words`] with a column that its source gave to older rows, too, as a number of this type.
fn counted(table: &SinkTable, kind: Type) -> SinkTable {
    let mut columns = table.schema.columns.clone();
    let count = Column::new("count", kind, true);
    columns.push(count.began_with("7"));
    SinkTable { schema: Arc::new(TableSchema { columns, ..table.schema.as_ref().clone() }), ..table.clone() }
}

async fn count_row(life: &mut Life, table: &SinkTable, id: i64, count: ArrayRef) {
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![id])), Arc::new(StringArray::from(vec!["new"])), count];
    let rows = RecordBatch::try_new(Arc::new(table.schema.arrow()), columns).unwrap();
    let staged = life.write_netted(netted(table, 0, rows.clone(), rows.slice(0, 0))).await.unwrap();
    let request = CommitRequest { schema: Some(Arc::clone(&table.schema)), ..life.request(vec![staged]) };
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
}

async fn counts(life: &Life) -> Vec<(i64, Option<String>)> {
    let batches = life.sink.peek(&life.table, &Peek { limit: 100, key: None }).await.unwrap();
    let mut told = Vec::new();
    for batch in &batches {
        let ids = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        let counts = arrow_cast::cast(batch.column(2), &arrow_schema::DataType::Utf8).unwrap();
        let counts = counts.as_any().downcast_ref::<StringArray>().unwrap();
        told.extend(
            (0..batch.num_rows()).map(|row| (ids.value(row), counts.is_valid(row).then(|| counts.value(row).to_owned()))),
        );
    }
    told.sort();
    told
}

#[tokio::test]
async fn older_rows_have_what_their_source_gave_them_and_keep_it_when_the_column_is_widened() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two"), (3, "three")], &[]).await;
    let small = counted(&life.table, Type::Int32);
    life.sink.follows(&life.table, &small.schema).unwrap();
    count_row(&mut life, &small, 2, Arc::new(Int32Array::from(vec![None::<i32>]))).await;
    let seven = || Some("7".to_owned());
    assert_eq!(counts(&life).await, [(1, seven()), (2, None), (3, seven())]);
    // Rows of before the change that come late, and rows that are read by key.
    life.say(&[(4, "four")], &[]).await;
    let one = life.sink.peek(&life.table, &Peek { limit: 1, key: Some(vec!["4".into()]) }).await.unwrap();
    assert_eq!(one[0].column(2).as_any().downcast_ref::<Int32Array>().map(|counts| counts.value(0)), Some(7));
    let large = counted(&life.table, Type::Int64);
    life.sink.follows(&small, &large.schema).unwrap();
    count_row(&mut life, &large, 5, Arc::new(Int64Array::from(vec![1i64 << 40]))).await;
    let expected = [(1, seven()), (2, None), (3, seven()), (4, seven()), (5, Some((1i64 << 40).to_string()))];
    assert_eq!(counts(&life).await, expected);
    // The next life finds it in the metadata.
    let next = Life::begin(&world, &large, 2).await;
    assert_eq!(counts(&next).await, expected);
}

#[tokio::test]
async fn a_value_of_older_rows_that_metadata_cannot_say_is_not_followed() {
    let world = World::new();
    let life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let mut columns = life.table.schema.columns.clone();
    let mut tags = Column::new("tags", Type::List(Box::new(Type::Int32)), true);
    columns.push(tags.clone());
    let without = TableSchema { columns: columns.clone(), ..life.table.schema.as_ref().clone() };
    life.sink.follows(&life.table, &without).unwrap();
    tags = tags.began_with("[1]");
    let with = TableSchema { columns: columns.into_iter().take(2).chain([tags]).collect(), ..without };
    let refused = life.sink.follows(&life.table, &with).unwrap_err();
    assert!(refused.what.ends_with("'tags' list(int32) is new, with a value in older rows"), "{refused}");
}

#[tokio::test]
async fn a_commit_that_brings_no_rows_brings_the_columns_too() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let request = CommitRequest { schema: Some(noted(&life.table).schema), ..life.request(Vec::new()) };
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(columns(&world).await, ["1 id long", "2 word string", "3 note string"]);
    Life::begin(&world, &noted(&words(Mode::Upsert)), 2).await;
}

#[tokio::test]
async fn rows_of_other_columns_than_the_commit_names_are_not_committed() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let staged = write_noted(&mut life, &[(2, "two", "new")]).await;
    let request = life.request(vec![staged]);
    let CommitOutcome::Rejected { why } = life.commit(&request).await else { panic!("the note would be lost") };
    assert!(why.contains("rows of other columns than its state names"), "{why}");
    assert_eq!(told(&life).await, [r#"1 Some("one") None"#]);
}

#[tokio::test]
async fn a_lost_answer_changes_the_columns_once() {
    for fault in [Fault::RequestLost, Fault::AnswerLost] {
        let world = World::new();
        let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
        life.say(&[(1, "one")], &[]).await;
        let staged = write_noted(&mut life, &[(2, "two", "new")]).await;
        let request = noted_request(&life, staged);
        world.catalog.fail_next(fault);
        assert!(matches!(life.commit(&request).await, CommitOutcome::Unknown { .. }));
        assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
        assert_eq!(columns(&world).await, ["1 id long", "2 word string", "3 note string"]);
        assert_eq!(told(&life).await, [r#"1 Some("one") None"#, r#"2 Some("two") Some("new")"#]);
    }
}

#[tokio::test]
async fn a_table_that_was_rolled_back_takes_rows_of_before_and_of_after_the_change() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let before = (life.state.clone(), world.load("words").await.metadata.current_snapshot_id().unwrap());
    let staged = write_noted(&mut life, &[(2, "two", "new")]).await;
    let request = noted_request(&life, staged);
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    world.roll_back("words", before.1).await;
    assert_eq!(life.recovered().await, before.0);
    // A life that begins there is told the columns of before, and the table has those of after.
    let mut next = Life::begin(&world, &words(Mode::Upsert), 2).await;
    next.say(&[(3, "three")], &[]).await;
    let staged = write_noted(&mut next, &[(2, "two", "again")]).await;
    let request = noted_request(&next, staged);
    assert!(matches!(next.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(told(&next).await, [r#"1 Some("one") None"#, r#"2 Some("two") Some("again")"#, r#"3 Some("three") None"#]);
    assert_eq!(columns(&world).await, ["1 id long", "2 word string", "3 note string"]);
}

/// [`words`] with these names for its two columns, which say which they are.
fn called(names: [&str; 2]) -> SinkTable {
    let mut table = words(Mode::Upsert);
    for ((column, name), identity) in Arc::make_mut(&mut table.schema).columns.iter_mut().zip(names).zip(1..) {
        (column.name, column.identity) = (name.to_owned(), Some(identity));
    }
    table
}

#[tokio::test]
async fn a_column_of_another_name_is_so_in_every_row_and_a_rollback_across_that_is_refused() {
    let world = World::new();
    let (before, behind) = (called(["id", "word"]), called(["key", "id"]));
    let mut life = Life::begin(&world, &before, 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    let old = world.load("words").await.metadata.current_snapshot_id().unwrap();
    let rows = netted(&behind, 0, super::world::batch(&behind, &[(2, "zwei")]), super::world::batch(&behind, &[]));
    let staged = life.write_netted(rows).await.unwrap();
    let request = CommitRequest { schema: Some(Arc::clone(&behind.schema)), ..life.request(vec![staged]) };
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(columns(&world).await, ["1 key long", "2 id string"]);
    let next = Life::begin(&world, &behind, 2).await;
    assert_eq!(told(&next).await, [r#"1 Some("one") None"#, r#"2 Some("zwei") None"#]);
    // Rows and state of before, under names that mean other columns by now.
    world.roll_back("words", old).await;
    let error = world.sink().ensure_table(&before).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "iceberg-names-differ"));
    assert!(error.what.contains("calls a column 'key' that its newest snapshot calls 'id'"), "{error}");
}

#[tokio::test]
async fn a_column_of_somebody_else_in_the_way_is_said_and_nothing_is_mixed_up() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let theirs = NestedField::optional(3, "theirs", IcebergType::Primitive(PrimitiveType::Date));
    let now = world.load("words").await.metadata;
    let fields = now.current_schema().as_struct().fields().iter().cloned().chain([theirs.into()]);
    let schema = Schema::builder().with_fields(fields).with_identifier_field_ids([1]).build().unwrap();
    world.change("words", vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }]).await;
    let staged = write_noted(&mut life, &[(2, "two", "new")]).await;
    let CommitOutcome::Conflict { token, .. } = life.commit(&noted_request(&life, Arc::clone(&staged))).await else {
        panic!("the table is another one")
    };
    let request = CommitRequest { token, ..noted_request(&life, staged) };
    let CommitOutcome::Rejected { why } = life.commit(&request).await else { panic!("two columns would have one id") };
    assert!(why.contains("changed by others while it was open"), "{why}");
    // A life that begins now finds their column and adds its own behind.
    let mut next = Life::begin(&world, &words(Mode::Upsert), 2).await;
    let staged = write_noted(&mut next, &[(2, "two", "new")]).await;
    let request = noted_request(&next, staged);
    assert!(matches!(next.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(columns(&world).await, ["1 id long", "2 word string", "3 theirs date", "4 note string"]);
    assert_eq!(
        Kind::Rejected,
        next.sink.follows(&next.table, &TableSchema { key: vec![1], ..(*next.table.schema).clone() }).unwrap_err().kind
    );
}
