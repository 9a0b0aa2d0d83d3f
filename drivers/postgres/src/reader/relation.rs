//! A relation of the log, bound to a table of the pipeline: which value goes into which column, and what an old row tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::{Column, TableSchema, Type};

use super::numbers::{Numbers, Told, numbers};
use super::refusal::Refusal;
use crate::catalog::Attribute;
use crate::pgoutput::{Identity, RelationColumn, RelationMessage};
use crate::values::{PgType, Types, holds, natural};

/// A relation whose rows are read.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// The schema of its rows.
    pub(crate) schema: Arc<TableSchema>,
    /// Where each of its values goes, in the order of the relation.
    pub(crate) places: Vec<Place>,
    /// Does an old row have the whole key?
    pub(crate) tells_key: bool,
}

/// Where a value goes.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The column of the schema.
    pub(crate) column: usize,
    /// What the server calls its type.
    pub(crate) kind: PgType,
    /// Does an old row have it?
    pub(crate) in_identity: bool,
}

/// What became of a relation.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) bound: Result<Bound, Refusal>,
    /// Are its columns others than the schema said?
    pub(crate) changed: bool,
    /// A column that was made again, though nothing shows in front of which row.
    pub(crate) remade: Option<String>,
}

/// How a table's rows are read.
#[derive(Clone, Copy)]
pub(crate) struct Read<'a> {
    /// What its rows looked like.
    pub(crate) schema: &'a Arc<TableSchema>,
    /// The types that the pipeline file names, which are kept for what they hold of the relation's values.
    pub(crate) declared: &'a BTreeMap<String, Type>,
    /// The database's types.
    pub(crate) types: &'a Types,
    /// The table's columns by their numbers, as the catalogue has them now.
    pub(crate) now: &'a BTreeMap<u32, Attribute>,
}

/// Binds a relation of the log to its table.
pub(crate) fn bind(relation: &RelationMessage<'_>, read: Read<'_>) -> Binding {
    let may_be_old = |column: &RelationColumn<'_>| {
        let of = read.types.resolve(column.type_id, column.modifier);
        read.schema.index_of(column.name).is_some_and(|at| keeps(&of, &read.schema.columns[at].kind))
    };
    let told: Vec<Told<'_>> =
        relation.columns.iter().map(|column| Told { name: column.name, may_be_old: may_be_old(column) }).collect();
    let Numbers { of, remade } = numbers(&told, read.schema, read.now);
    Binding { remade, ..bind_numbered(relation, &of, read) }
}

/// Binds a relation whose columns have these numbers. Columns keep their type wherever it holds the relation's values, all of them;
/// whatever else differs makes a new schema.
pub(crate) fn bind_numbered(relation: &RelationMessage<'_>, numbers: &[Option<u32>], read: Read<'_>) -> Binding {
    let Read { schema, declared, types, now } = read;
    let resolved: Vec<PgType> = relation.columns.iter().map(|column| types.resolve(column.type_id, column.modifier)).collect();
    let columns: Vec<Column> = relation
        .columns
        .iter()
        .zip(numbers)
        .zip(&resolved)
        .map(|((column, number), of)| {
            let before = schema.find(column.name, *number).map(|at| &schema.columns[at]);
            let stays = before.map(|known| &known.kind).filter(|kind| keeps(of, kind));
            let asked = declared.get(column.name).filter(|kind| holds(of, kind));
            let kind = stays.or(asked).cloned().unwrap_or_else(|| natural(of));
            let (name, nullable) = (column.name.to_owned(), before.is_none_or(|known| known.nullable));
            let initial = before.and_then(|known| known.initial.clone());
            let told = Column { name, kind, nullable, initial, identity: number.or(before.and_then(|known| known.identity)) };
            let came_with = number.and_then(|number| now.get(&number)).and_then(|column| column.initial.as_deref());
            match came_with.filter(|_| before.is_none()) {
                Some(initial) => began_with(told, initial),
                None => told,
            }
        })
        .collect();
    let same = columns.len() == schema.columns.len() && columns.iter().all(|column| schema.columns.contains(column));
    let schema = match same {
        true => Ok(schema.clone()),
        false => changed(schema, columns),
    };
    let bound = schema.map(|schema| {
        let place = |(column, kind): (&RelationColumn<'_>, PgType)| {
            Some(Place { column: schema.index_of(column.name)?, kind, in_identity: column.in_identity })
        };
        let places: Vec<Place> = relation.columns.iter().zip(resolved).filter_map(place).collect();
        let is_full = relation.identity == Identity::Full;
        let has = |key: &usize| places.iter().any(|place| place.column == *key && place.in_identity);
        let tells_key = is_full || (relation.identity != Identity::Nothing && schema.key.iter().all(has));
        Bound { tells_key, places, schema }
    });
    Binding { bound, changed: !same, remade: None }
}

/// Does a column of this type keep it where the server calls its values so?
fn keeps(of: &PgType, kind: &Type) -> bool {
    holds(of, kind) && has_room(of, kind)
}

/// A column that came, with what the server says that older rows have in it. It keeps the value in an array, where a boolean is a letter.
fn began_with(column: Column, text: &str) -> Column {
    let text = match (&column.kind, text) {
        (Type::Bool, "t") => "true",
        (Type::Bool, "f") => "false",
        (Type::Binary | Type::FixedBinary(_), bytes) => bytes.strip_prefix("\\x").unwrap_or(bytes),
        (_, text) => text,
    };
    column.began_with(text)
}

/// A decimal may be declared with fewer digits than the server's type has; one that only was read so before must have room for all of them.
fn has_room(of: &PgType, kind: &Type) -> bool {
    match (natural(of), kind) {
        (Type::Decimal { precision, scale }, Type::Decimal { precision: here, scale: behind }) => {
            scale <= *behind && i16::from(precision) - i16::from(scale) <= i16::from(*here) - i16::from(*behind)
        }
        _ => true,
    }
}

/// The table with other columns, and the key that it had.
fn changed(before: &TableSchema, columns: Vec<Column>) -> Result<Arc<TableSchema>, Refusal> {
    let key: Result<Vec<usize>, Refusal> = before
        .key
        .iter()
        .map(|index| {
            let is_it = |column: &Column| before.find(&column.name, column.identity) == Some(*index);
            let name = before.columns.get(*index).map(|column| column.name.as_str()).unwrap_or_default();
            let found = columns.iter().position(is_it);
            found.ok_or_else(|| Refusal::Schema { why: format!("the key column '{name}' is gone") })
        })
        .collect();
    let schema = TableSchema::new(before.table.clone(), columns, key?);
    schema.map(Arc::new).map_err(|error| Refusal::Schema { why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgoutput::{RelationId, TypeId};
    use crate::reader::tests::entry;

    const NUMERIC: TypeId = TypeId(1700);

    fn decimal(precision: u8, scale: i8) -> Type {
        Type::Decimal { precision, scale }
    }

    /// What becomes of a column of this type where the relation says `numeric(precision,scale)`.
    fn bound_to(before: &Type, (precision, scale): (i32, i32), declared: Option<Type>) -> (Type, bool) {
        let column = RelationColumn { in_identity: true, name: "n", type_id: NUMERIC, modifier: ((precision << 16) | scale) + 4 };
        let relation = RelationMessage {
            id: RelationId(1),
            namespace: "shop",
            name: "orders",
            identity: Identity::Default,
            columns: vec![column],
        };
        let columns = vec![Column::new("n", before.clone(), true)];
        let schema = Arc::new(TableSchema::new("shop.orders".into(), columns, Vec::new()).unwrap());
        let declared = declared.map(|kind| ("n".to_owned(), kind)).into_iter().collect();
        let types = Types::new([entry(NUMERIC.0, "numeric")], 2);
        let read = Read { schema: &schema, declared: &declared, types: &types, now: &BTreeMap::new() };
        let Binding { bound, changed, .. } = bind(&relation, read);
        (bound.unwrap().schema.columns[0].kind.clone(), changed)
    }

    #[test]
    fn a_numeric_that_gets_more_digits_than_its_column_has_is_another_type() {
        assert_eq!(bound_to(&decimal(10, 2), (10, 2), None), (decimal(10, 2), false));
        assert_eq!(bound_to(&decimal(10, 2), (14, 2), None), (decimal(14, 2), true));
        assert_eq!(bound_to(&decimal(10, 2), (10, 4), None), (decimal(10, 4), true));
        assert_eq!(bound_to(&decimal(10, 2), (11, 3), None), (decimal(11, 3), true));
    }

    #[test]
    fn a_numeric_whose_values_the_column_has_room_for_stays_as_it_is() {
        for fewer in [(8, 2), (9, 1), (10, 2)] {
            assert_eq!(bound_to(&decimal(10, 2), fewer, None), (decimal(10, 2), false), "{fewer:?}");
        }
        assert_eq!(bound_to(&Type::String, (14, 2), None), (Type::String, false));
    }

    #[test]
    fn a_declared_decimal_stays_whatever_the_table_says() {
        assert_eq!(bound_to(&decimal(10, 2), (14, 2), Some(decimal(10, 2))), (decimal(10, 2), false));
        assert_eq!(bound_to(&decimal(38, 9), (14, 2), Some(decimal(38, 9))), (decimal(38, 9), false));
    }
}
