//! The table whose rows are read, as it is in the reading's snapshot: the columns that its publication sends, bound as the log's are, and
//! the way through it. And what is said of a reading that fails.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use contract::{Error, Kind};
use kernel::id::TableName;
use rows::TableSchema;
use rows::build::BatchBuilder;

use super::bound::Bound;
use crate::catalog::{self, CatalogTable, Published, Walk};
use crate::pgoutput::{Datum, Identity, RelationColumn, RelationMessage};
use crate::reader::{self, Read, Refusal, bind_numbered};
use crate::source::{Place, PostgresSource, prepare};
use crate::values::{AppendDatum, PgType, Reading, Types};
use crate::wire::{Connection, WireError, identifier};

/// The table as it is in the snapshot, and how its rows are read.
pub(super) struct Table {
    pub(super) found: CatalogTable,
    pub(super) published: Published,
    pub(super) bound: reader::Bound,
    /// The columns that are sent, in the order of the table.
    pub(super) columns: Vec<String>,
    pub(super) walk: Walk,
    /// The database's types.
    pub(super) types: Arc<Types>,
}

impl Table {
    /// The table as a FROM has it: a partitioned table's root, or a table alone. Never rows of tables that inherit from it, which the
    /// log tells under their own names.
    pub(super) fn from(&self) -> String {
        format!("{}{}", if self.found.kind == b'p' { "" } else { "ONLY " }, prepare::table(self.bound.schema.table.as_str()))
    }

    /// The columns as a SELECT has them, in the order of the table; `of` is what the table is called. What has no binary form is sent as
    /// its text, as in the log.
    pub(super) fn selected(&self, of: &str) -> impl Iterator<Item = String> {
        self.columns
            .iter()
            .zip(&self.bound.places)
            .map(move |(column, place)| format!("{of}.{}{}", identifier(column), as_sent(&place.kind)))
    }

    /// Appends a row's columns, whose values come in the order of the table.
    pub(super) fn append<'a>(
        &self,
        batch: &mut BatchBuilder,
        values: &mut impl Iterator<Item = Datum<'a>>,
        scratch: &mut String,
    ) -> Result<(), Refusal> {
        let bound = &self.bound;
        let reading = &mut Reading { types: &self.types, scratch };
        for (place, datum) in bound.places.iter().zip(values) {
            let column = &bound.schema.columns[place.column];
            if datum == Datum::Null && bound.schema.is_key(place.column) {
                return Err(Refusal::NullKey { column: column.name.clone() });
            }
            let appended = batch.column(place.column).append_datum(&place.kind, datum, reading);
            appended.map_err(|misfit| Refusal::Value { column: column.name.clone(), kind: column.kind.clone(), misfit })?;
        }
        Ok(())
    }
}

/// The cast behind a column without which the server could not send it in binary: the log has such values as text too.
pub(super) fn as_sent(kind: &PgType) -> &'static str {
    if *kind == PgType::TextOnly { "::pg_catalog.text" } else { "" }
}

/// Looks the table up whose rows were of this schema. `bounds` lie in the order in which it will be walked through.
pub(super) async fn look_up(
    source: &PostgresSource,
    connection: &mut Connection,
    schema: &Arc<TableSchema>,
    bounds: &[Bound],
    version: u32,
) -> Result<Table, Error> {
    let (place, name) = (&*source.place, &schema.table);
    let failed = |e| place.failed(&format!("table {name}: looking at it"), e);
    let found = catalog::tables(connection, &[name]).await.map_err(failed)?.remove(name);
    let found = found.ok_or_else(|| rejected("postgres-table", format!("table {name}: it is gone"), ""))?;
    let is_another = |id| id != found.id;
    if source.streamed(name).is_some_and(is_another) || bounds.iter().any(|bound| is_another(bound.relation)) {
        return Err(Refusal::Replaced.error(name));
    }
    let publication = catalog::publication(connection, &place.settings.publication, version).await.map_err(failed)?;
    let via_root = publication.as_ref().is_some_and(|publication| publication.via_root);
    let Some(published) = publication.and_then(|mut publication| publication.tables.remove(name)) else {
        let publication = &place.settings.publication;
        let what = format!("table {name}: it is not in the publication '{publication}'");
        return Err(Error::new(Kind::Config, "postgres-publication", what, prepare::add_statement(publication, name.as_str())));
    };
    if found.kind == b'p' && !via_root {
        let what = format!("table {name} is partitioned, and the publication publishes its partitions under their own names");
        let publication = identifier(&place.settings.publication);
        let remedy = format!("ALTER PUBLICATION {publication} SET (publish_via_partition_root = true);");
        return Err(Error::new(Kind::Config, "postgres-publication-root", what, remedy));
    }
    let relation = relation(name.as_str(), &found, &published, version);
    let types = types(source, connection, &relation).await.map_err(failed)?;
    let numbers: Vec<Option<u32>> = relation.columns.iter().map(|told| number(&found, told.name)).collect();
    // The log may not have told yet that a column came: whoever tells it first says what older rows have in it.
    let is_known = |(told, number): (&RelationColumn<'_>, &Option<u32>)| schema.find(told.name, *number).is_some();
    let now = match relation.columns.iter().zip(&numbers).all(is_known) {
        true => BTreeMap::new(),
        false => catalog::attributes(connection, found.id).await.map_err(failed)?,
    };
    let declared = source.declared(name);
    let binding = bind_numbered(&relation, &numbers, Read { schema, declared: &declared, types: &types, now: &now });
    let columns: Vec<String> = relation.columns.iter().map(|column| column.name.to_owned()).collect();
    let bound = binding.bound.map_err(|refusal| refused(&refusal, name))?;
    let key: Vec<&str> = bound.schema.key.iter().filter_map(|place| column_name(&bound, *place)).collect();
    let walks = catalog::walks(connection, found.id, &key).await.map_err(failed)?;
    let walk = chosen(walks, bounds, name.as_str(), &key)?;
    Ok(Table { found, published, bound, columns, walk, types })
}

fn number(of: &CatalogTable, column: &str) -> Option<u32> {
    of.columns.iter().find(|own| own.name == column).map(|own| own.number)
}

fn column_name(bound: &reader::Bound, place: usize) -> Option<&str> {
    bound.schema.columns.get(place).map(|column| column.name.as_str())
}

/// The walk in whose order the bounds lie; the best one if there are none.
fn chosen(walks: Vec<Walk>, bounds: &[Bound], table: &str, key: &[&str]) -> Result<Walk, Error> {
    let is_empty = walks.is_empty();
    let fits = |walk: &Walk| bounds.iter().all(|bound| bound.order == walk.order() && bound.key.len() == walk.columns.len());
    match walks.into_iter().find(fits) {
        Some(walk) => Ok(walk),
        None if is_empty => Err(Error::new(Kind::Config, "postgres-snapshot-key", unwalkable(table, key), walkable(table, key))),
        None => {
            let what = format!("table {table}: the columns, types or collations of its key changed while its snapshot was read");
            Err(rejected("postgres-order", what, "read its snapshot anew, or undo the change"))
        }
    }
}

/// What is wrong with a table through which there is no walk.
pub(crate) fn unwalkable(table: &str, key: &[&str]) -> String {
    match key {
        [] => format!("table {table} has no key, and its rows can't be read in chunks without one"),
        key => format!(
            "table {table}: no unique index says that its key ({}) is one, with columns that are NOT NULL and the usual order of their \
             types: its rows can't be read in chunks",
            key.join(", ")
        ),
    }
}

/// What makes a walk.
pub(crate) fn walkable(table: &str, key: &[&str]) -> String {
    let columns = match key {
        [] => "...".to_owned(),
        key => key.iter().map(|column| identifier(column)).collect::<Vec<_>>().join(", "),
    };
    format!("ALTER TABLE {} ADD PRIMARY KEY ({columns}); or `snapshot: {{ mode: never }}`", prepare::table(table))
}

/// What the log would say of the table before its first row.
fn relation<'a>(name: &'a str, found: &'a CatalogTable, published: &Published, version: u32) -> RelationMessage<'a> {
    let (namespace, name) = name.split_once('.').unwrap_or(("", name));
    let sent = found.columns.iter().filter(|column| catalog::sends(Some(published), column, version, false));
    let columns = sent.map(|column| RelationColumn {
        in_identity: true,
        name: &column.name,
        type_id: column.type_id,
        modifier: column.modifier,
    });
    RelationMessage { id: found.id, namespace, name, identity: Identity::Full, columns: columns.collect() }
}

/// The database's types; looked up again if the table has one that is not known.
async fn types(source: &PostgresSource, connection: &mut Connection, of: &RelationMessage<'_>) -> Result<Arc<Types>, WireError> {
    let known = source.types.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if of.columns.iter().all(|column| known.contains(column.type_id)) {
        return Ok(known);
    }
    let types = Arc::new(catalog::types(connection).await?);
    *source.types.lock().unwrap_or_else(PoisonError::into_inner) = types.clone();
    Ok(types)
}

/// What a COPY failed for. What the server says of a value may hold the value.
pub(super) fn copying(place: &Place, table: &TableName, error: WireError) -> Error {
    match error.sqlstate() {
        Some(code) if code.starts_with("22") || code.starts_with("23") => {
            let what =
                format!("table {table}: the server can't work out a chunk of its rows (SQLSTATE {code}; its log says more)");
            rejected("postgres-value", what, "mend the row, the publication's filter of rows, or the type of a key column")
        }
        _ => place.failed(&format!("table {table}: reading a chunk"), error),
    }
}

/// A row or column that is not taken. In a snapshot nothing can be passed over.
pub(super) fn refused(refusal: &Refusal, table: &TableName) -> Error {
    let error = refusal.error(table);
    match refusal {
        Refusal::Value { column, kind, misfit } => {
            let (mended, declared) = Refusal::mended(table, column, kind, *misfit);
            let remedy = [Some(mended), declared].into_iter().flatten().collect::<Vec<_>>().join(", or ");
            Error { what: format!("{}, in a row that its snapshot read", error.what), remedy, ..error }
        }
        Refusal::Unsent { .. }
        | Refusal::NullKey { .. }
        | Refusal::Identity
        | Refusal::Shape { .. }
        | Refusal::Schema { .. }
        | Refusal::Renamed { .. }
        | Refusal::Replaced => error,
    }
}

/// A row that is not taken. One with a part of a type that came after the types were looked up is read again: they are looked up then.
pub(super) fn untaken(source: &PostgresSource, refusal: &Refusal, table: &TableName) -> Error {
    if refusal.lacks_type().is_none() {
        return refused(refusal, table);
    }
    *source.types.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
    let what = format!("table {table}: a composite's attributes changed while its rows were read");
    Error::new(Kind::Transient, "postgres-type", what, "they are read again")
}

pub(super) fn rejected(code: &'static str, what: String, remedy: &str) -> Error {
    Error::new(Kind::Rejected, code, what, remedy)
}

#[cfg(test)]
mod tests {
    use rows::Type;
    use rows::value::Unholdable;

    use super::*;
    use crate::values::Misfit;

    #[test]
    fn of_a_row_that_a_snapshot_cannot_take_only_what_helps_is_said() {
        let table = TableName::from("shop.orders");
        let remedy = |kind, misfit| refused(&Refusal::Value { column: "n".into(), kind, misfit }, &table).remedy;
        assert_eq!(remedy(Type::String, Misfit::Malformed), "mend the row at the source");
        let other = remedy(Type::Int64, Misfit::Unholdable(Unholdable::Above));
        assert!(other.starts_with("mend the row at the source, or declare the column as `string`"), "{other}");
        assert!(remedy(Type::String, Misfit::HiddenDigits).contains(r#"SET "n" = "n"::text::numeric"#));
    }
}
