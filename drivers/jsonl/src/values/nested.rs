//! Values with values inside: lists, maps, structs.

use std::collections::HashSet;

use rows::Column;
use rows::build::ColumnBuilder;

use super::reading::Reading;
use super::{Misfit, PushJson};
use crate::json::{Cursor, Kind, Syntax, Value};

/// The line was checked before, so its pieces follow the grammar.
fn checked<T>(read: Result<T, Syntax>) -> Result<T, Misfit> {
    read.map_err(|wrong| Misfit::new(wrong.what))
}

fn end(entries: usize) -> Result<i32, Misfit> {
    i32::try_from(entries).map_err(|_| Misfit::new("more than 2^31 elements in one batch"))
}

pub(super) fn push_list(
    ends: &mut Vec<i32>,
    element: &mut ColumnBuilder,
    reading: &Reading,
    value: Value<'_>,
) -> Result<(), Misfit> {
    let (Reading::List(inner), Kind::Array) = (reading, value.kind) else { return Err(Misfit::kind(value.kind)) };
    let mut cursor = Cursor::new(value.raw);
    let (mut first, mut place) = (true, 0_usize);
    cursor.enter(b'[');
    while checked(cursor.element(&mut first))? {
        let item = checked(cursor.value())?;
        element.push(inner, item, true).map_err(|misfit| misfit.inside(&format!("[{place}]")))?;
        place += 1;
    }
    ends.push(end(element.len())?);
    Ok(())
}

/// An object whose names are the keys, or pairs where keys are no strings.
pub(super) fn push_map(
    ends: &mut Vec<i32>,
    keys: &mut ColumnBuilder,
    values: &mut ColumnBuilder,
    reading: &Reading,
    value: Value<'_>,
) -> Result<(), Misfit> {
    let Reading::Map(key, inner) = reading else { return Err(Misfit::kind(value.kind)) };
    let mut cursor = Cursor::new(value.raw);
    let mut first = true;
    let mut seen = HashSet::new();
    let mut entry = |name: Value<'_>, item: Value<'_>| {
        keys.push(key, name, false).map_err(|misfit| misfit.inside("{key}"))?;
        values.push(inner, item, true).map_err(|misfit| misfit.inside("{value}"))
    };
    match value.kind {
        Kind::Object => {
            cursor.enter(b'{');
            while let Some(name) = checked(cursor.name(&mut first))? {
                unseen(&mut seen, name)?;
                entry(name_as_key(key, name), checked(cursor.value())?)?;
            }
        }
        Kind::Array => {
            cursor.enter(b'[');
            while checked(cursor.element(&mut first))? {
                let (name, item) = pair(&mut cursor)?;
                unseen(&mut seen, name)?;
                entry(name, item)?;
            }
        }
        other => return Err(Misfit::kind(other)),
    }
    ends.push(end(keys.len())?);
    Ok(())
}

fn unseen<'a>(seen: &mut HashSet<&'a str>, name: Value<'a>) -> Result<(), Misfit> {
    if seen.insert(name.raw) { Ok(()) } else { Err(Misfit::new("an object that names a key twice")) }
}

fn pair<'a>(cursor: &mut Cursor<'a>) -> Result<(Value<'a>, Value<'a>), Misfit> {
    let wrong = || Misfit::new("an array that is no list of pairs");
    if !cursor.enter(b'[') {
        return Err(wrong());
    }
    let mut first = true;
    let mut next = || match checked(cursor.element(&mut first))? {
        true => checked(cursor.value()).map(Some),
        false => Ok(None),
    };
    match (next()?, next()?, next()?) {
        (Some(name), Some(item), None) => Ok((name, item)),
        _ => Err(wrong()),
    }
}

/// A member's name as the key it stands for: text where keys are text, else the number in the quotes.
fn name_as_key<'a>(reading: &Reading, name: Value<'a>) -> Value<'a> {
    let mut inside = Cursor::new(name.inside());
    match (reading, inside.value()) {
        (Reading::Integer | Reading::Float, Ok(number)) if inside.end().is_ok() => number,
        _ => name,
    }
}

pub(super) fn push_struct(
    columns: &[Column],
    fields: &mut [ColumnBuilder],
    reading: &Reading,
    value: Value<'_>,
) -> Result<(), Misfit> {
    let (Reading::Struct(readings), Kind::Object) = (reading, value.kind) else { return Err(Misfit::kind(value.kind)) };
    // All fields of a struct have the same length; the one that has another is in this value already.
    let before = fields.iter().map(ColumnBuilder::len).min().unwrap_or_default();
    let mut cursor = Cursor::new(value.raw);
    let (mut first, mut place) = (true, 0_usize);
    cursor.enter(b'{');
    while let Some(name) = checked(cursor.name(&mut first))? {
        let item = checked(cursor.value())?;
        let is_there = |at: &usize| columns.get(*at).is_some_and(|column| name.is_text(&column.name));
        let at = Some(place).filter(is_there).or_else(|| (0..columns.len()).find(is_there));
        let Some(at) = at else { return Err(Misfit::new("an object with an unknown member")) };
        if fields[at].len() > before {
            return Err(Misfit::new("an object that names a member twice"));
        }
        let step = |misfit: Misfit| misfit.inside(&format!(".{}", columns[at].name));
        fields[at].push(&readings[at], item, columns[at].nullable).map_err(step)?;
        place = at + 1;
    }
    for (column, field) in columns.iter().zip(fields.iter_mut()) {
        if field.len() == before {
            if !column.nullable {
                return Err(Misfit::new("nothing").inside(&format!(".{}", column.name)));
            }
            field.append_null();
        }
    }
    Ok(())
}
