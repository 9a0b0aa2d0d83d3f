//! What a table's data files hold, column by column, and where each value comes from.
//!
//! Made from the table as it is, whoever made it: field ids are the table's. Making a layout is the check that the table
//! can hold what the source sends; it names every problem at once.

use std::sync::Arc;

use arrow_schema::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use contract::{Error, Kind, Mode, SinkTable};
use iceberg::spec::{NestedField, PrimitiveType, Schema, SchemaRef, Type as IcebergType};
use rows::Type;

use super::columns::{FieldIds, arrow_field, iceberg_type, promotes, same_type};
use super::tail::TailColumn;

/// What a table's data files hold.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The table's schema.
    pub(crate) schema: SchemaRef,
    /// The same as Arrow, with field ids: what a batch of a data file looks like.
    pub(crate) arrow: ArrowSchemaRef,
    /// Where each column's values come from.
    pub(crate) values: Vec<Values>,
    /// The key, in key order; empty where rows are appended.
    pub(crate) key: Vec<KeyColumn>,
}

/// Where a column's values come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Values {
    /// From a column of the source, by index.
    Source(usize),
    /// From what the log says about a row.
    Tail(TailColumn),
    /// From nowhere: a column that others added.
    Null,
}

/// One column of the key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyColumn {
    /// Its index at the source.
    pub(crate) source: usize,
    /// Its name at the source.
    pub(crate) name: String,
    /// Its canonical type, in which keys are encoded.
    pub(crate) kind: Type,
    /// Its field in the table.
    pub(crate) field: i32,
}

impl Layout {
    /// The layout of an existing table; an error that names everything about the table that does not fit.
    pub(crate) fn of(table: &SinkTable, schema: &SchemaRef) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let wanted = wanted_fields(table)?;
        let mut values = vec![Values::Null; schema.as_struct().fields().len()];
        for want in &wanted {
            match schema.as_struct().fields().iter().position(|field| field.name == want.field.name) {
                Some(at) => {
                    problems.extend(differs(want, &schema.as_struct().fields()[at]));
                    values[at] = want.values;
                }
                None => problems.push(format!("column '{}' ({}) is missing", want.field.name, want.field.field_type)),
            }
        }
        for (field, values) in schema.as_struct().fields().iter().zip(&values) {
            if field.required && *values == Values::Null {
                problems.push(format!("column '{}' is required, but the source has no such column", field.name));
            }
        }
        problems.extend(identifier_differs(table, schema));
        if !problems.is_empty() {
            let what = format!("table '{}' cannot hold the rows of '{}': {}", table.target, table.table, problems.join("; "));
            return Err(Error::new(Kind::Config, "iceberg-table-differs", what, REMEDY));
        }
        let arrow = ArrowSchema::new(schema.as_struct().fields().iter().map(|f| arrow_field(f)).collect::<Vec<_>>());
        let key = if keyed(table) { key_columns(table, schema) } else { Vec::new() };
        Ok(Self { schema: Arc::clone(schema), arrow: Arc::new(arrow), values, key })
    }

    /// Can a table with this schema, maybe of a later change, take data files of this layout?
    pub(crate) fn fits(&self, schema: &Schema) -> bool {
        let ours = self.schema.as_struct().fields();
        let is_there =
            |field: &NestedField| schema.field_by_id(field.id).is_some_and(|now| holds(&now.field_type, &field.field_type));
        let is_ours = |field: &NestedField| ours.iter().any(|our| our.id == field.id);
        ours.iter().all(|field| is_there(field))
            && schema.as_struct().fields().iter().all(|field| !field.required || is_ours(field))
    }

    /// Does a table with this schema call everything as this layout does, that comes from somewhere?
    pub(crate) fn is_called_alike(&self, schema: &Schema) -> bool {
        let fields = self.schema.as_struct().fields().iter().zip(&self.values);
        let mut filled = fields.filter(|(_, values)| **values != Values::Null);
        filled.all(|(field, _)| schema.name_by_field_id(field.id) == Some(&field.name))
    }

    /// The schema of a table that is yet to be made.
    pub(crate) fn new_schema(table: &SinkTable) -> Result<Schema, Error> {
        let fields = wanted_fields(table)?;
        let identifier: Vec<i32> = fields.iter().filter(|want| want.is_key).map(|want| want.field.id).collect();
        let built = Schema::builder()
            .with_fields(fields.into_iter().map(|want| want.field.into()))
            .with_identifier_field_ids(identifier)
            .build();
        built.map_err(|e| refused(table, &format!("Iceberg refuses its schema: {}", e.message())))
    }

    /// The field ids of the key's columns.
    pub(crate) fn key_fields(&self) -> Vec<i32> {
        self.key.iter().map(|column| column.field).collect()
    }
}

const REMEDY: &str = "change the table or the pipeline file so that they agree, or drop the table and let it be made anew";

/// Do a table's values of type `now` take all of type `then`?
fn holds(now: &IcebergType, then: &IcebergType) -> bool {
    same_type(now, then) || promotes(then, now)
}

/// Are rows applied by key?
fn keyed(table: &SinkTable) -> bool {
    table.mode == Mode::Upsert
}

fn refused(table: &SinkTable, why: &str) -> Error {
    let what = format!("table '{}' (target '{}') cannot be an Iceberg table: {why}", table.table, table.target);
    Error::new(Kind::Config, "iceberg-table-refused", what, "name another type, key or mode for it in the pipeline file")
}

/// A column that the table must have.
pub(super) struct Wanted {
    pub(super) field: NestedField,
    pub(super) values: Values,
    is_key: bool,
}

/// All columns that the table must have. Only the key's are required: others may be absent from a delete's image, and a
/// source may lift its own NOT NULL at any time.
pub(super) fn wanted_fields(table: &SinkTable) -> Result<Vec<Wanted>, Error> {
    let mut ids = FieldIds::default();
    let mut wanted = Vec::new();
    if keyed(table) && table.schema.key.is_empty() {
        return Err(refused(table, "rows are applied by key, but it has none"));
    }
    for (index, column) in table.schema.columns.iter().enumerate() {
        let id = ids.next();
        let kind = iceberg_type(&column.kind, &mut ids)
            .map_err(|called| refused(table, &format!("nothing holds column '{}' of type {called}", column.name)))?;
        let is_key = keyed(table) && table.schema.is_key(index);
        if is_key && !may_be_key(&kind) {
            return Err(refused(table, &format!("column '{}' of type {kind} cannot be in a key", column.name)));
        }
        wanted.push(Wanted { field: NestedField::new(id, &column.name, kind, is_key), values: Values::Source(index), is_key });
    }
    for (tail, name) in &table.metadata {
        let column = TailColumn::parse(tail).ok_or_else(|| {
            refused(table, &format!("there is no metadata '{tail}'; there are {}", TailColumn::NAMES.join(", ")))
        })?;
        let field = NestedField::new(ids.next(), name, IcebergType::Primitive(column.iceberg_type()), false);
        wanted.push(Wanted { field, values: Values::Tail(column), is_key: false });
    }
    Ok(wanted)
}

/// Iceberg has no identifier of floating point, and none inside lists and maps.
fn may_be_key(kind: &IcebergType) -> bool {
    !matches!(kind.as_primitive_type(), None | Some(PrimitiveType::Float | PrimitiveType::Double))
}

fn differs(want: &Wanted, found: &NestedField) -> Option<String> {
    let name = &want.field.name;
    if !holds(&found.field_type, &want.field.field_type) {
        return Some(format!("column '{name}' is {}, but {} is needed", found.field_type, want.field.field_type));
    }
    (want.is_key && !found.required).then(|| format!("column '{name}' is in the key but not required"))
}

fn identifier_differs(table: &SinkTable, schema: &Schema) -> Option<String> {
    if !keyed(table) {
        return None;
    }
    let mut found: Vec<&str> = schema.identifier_field_ids().filter_map(|id| schema.name_by_field_id(id)).collect();
    let mut wanted: Vec<&str> = table.schema.key.iter().map(|&k| table.schema.columns[k].name.as_str()).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    (found != wanted).then(|| format!("its identifier fields are ({}), but the key is ({})", found.join(", "), wanted.join(", ")))
}

fn key_columns(table: &SinkTable, schema: &Schema) -> Vec<KeyColumn> {
    let columns = table.schema.key.iter().map(|&source| (source, &table.schema.columns[source]));
    columns
        .filter_map(|(source, column)| {
            let field = schema.field_id_by_name(&column.name)?;
            Some(KeyColumn { source, name: column.name.clone(), kind: column.kind.clone(), field })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rows::{Column, TableSchema};

    use super::*;

    fn table(columns: &[(&str, Type)], key: &[usize], mode: Mode, metadata: &[(&str, &str)]) -> SinkTable {
        let columns = columns.iter().map(|(name, kind)| Column::new(*name, kind.clone(), true));
        SinkTable {
            table: "shop.orders".into(),
            target: "orders".into(),
            schema: Arc::new(TableSchema { table: "shop.orders".into(), columns: columns.collect(), key: key.to_vec() }),
            mode,
            metadata: metadata.iter().map(|(tail, name)| ((*tail).into(), (*name).into())).collect(),
        }
    }

    fn orders(mode: Mode) -> SinkTable {
        table(&[("note", Type::Json), ("id", Type::UInt64)], &[1], mode, &[])
    }

    fn made(table: &SinkTable) -> SchemaRef {
        Arc::new(Layout::new_schema(table).unwrap())
    }

    #[test]
    fn only_the_key_is_required_and_identifies() {
        let schema = made(&orders(Mode::Upsert));
        let fields: Vec<_> = schema.as_struct().fields().iter().map(|f| (f.name.as_str(), f.required)).collect();
        assert_eq!(fields, [("note", false), ("id", true)]);
        assert_eq!(schema.identifier_field_ids().collect::<Vec<_>>(), [2]);
        let layout = Layout::of(&orders(Mode::Upsert), &schema).unwrap();
        assert_eq!(layout.values, [Values::Source(0), Values::Source(1)]);
        assert_eq!(layout.key, [KeyColumn { source: 1, name: "id".into(), kind: Type::UInt64, field: 2 }]);
    }

    #[test]
    fn appended_rows_have_no_key_and_may_have_metadata() {
        let append = table(&[("id", Type::Int64)], &[0], Mode::Append, &[("__op", "op"), ("commit_ts", "committed")]);
        let schema = made(&append);
        assert_eq!(schema.identifier_field_ids().count(), 0);
        let layout = Layout::of(&append, &schema).unwrap();
        assert_eq!(layout.values, [Values::Source(0), Values::Tail(TailColumn::Op), Values::Tail(TailColumn::CommitTs)]);
        assert!(layout.key.is_empty());
    }

    #[test]
    fn every_difference_is_named_at_once() {
        let schema = made(&table(&[("id", Type::Int64), ("total", Type::Int32)], &[0], Mode::Append, &[]));
        let wanted = table(&[("id", Type::Int64), ("total", Type::String), ("at", Type::Date)], &[0], Mode::Upsert, &[]);
        let error = Layout::of(&wanted, &schema).unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Config, "iceberg-table-differs"));
        assert_eq!(
            error.what,
            "table 'orders' cannot hold the rows of 'shop.orders': column 'id' is in the key but not required; \
             column 'total' is int, but string is needed; column 'at' (date) is missing; \
             its identifier fields are (), but the key is (id)"
        );
    }

    #[test]
    fn a_column_that_others_added_is_null() {
        let schema = made(&table(&[("id", Type::Int64), ("theirs", Type::Date)], &[0], Mode::Upsert, &[]));
        let layout = Layout::of(&table(&[("id", Type::Int64)], &[0], Mode::Upsert, &[]), &schema).unwrap();
        assert_eq!(layout.values, [Values::Source(0), Values::Null]);
    }

    #[test]
    fn what_no_key_can_be_is_refused() {
        let float = Layout::new_schema(&table(&[("x", Type::Float64)], &[0], Mode::Upsert, &[])).unwrap_err();
        assert!(float.what.ends_with("column 'x' of type double cannot be in a key"), "{}", float.what);
        let none = Layout::new_schema(&table(&[("x", Type::Int8)], &[], Mode::Upsert, &[])).unwrap_err();
        assert!(none.what.ends_with("rows are applied by key, but it has none"), "{}", none.what);
    }

    #[test]
    fn unknown_types_and_metadata_are_refused_by_name() {
        let shape = Layout::new_schema(&table(&[("g", Type::Unknown("point".into()))], &[], Mode::Append, &[])).unwrap_err();
        assert!(shape.what.ends_with("nothing holds column 'g' of type point"), "{}", shape.what);
        let tail = Layout::new_schema(&table(&[("id", Type::Int8)], &[], Mode::Append, &[("__nope", "n")])).unwrap_err();
        assert!(tail.what.contains("there is no metadata '__nope'; there are op, pos,"), "{}", tail.what);
    }
}
