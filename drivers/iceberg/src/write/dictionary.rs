//! Which columns of a data file are worth a dictionary.
//!
//! One pays where values repeat. Where nearly each is another one (keys, amounts, instants), it holds all of them once more,
//! and looking every value up costs more than everything else that is done to a row. Judged by the first rows of a file: a
//! wrong guess makes a file a little larger, never wrong, and a column that has outgrown its dictionary leaves it anyway.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use rows::key::hash;

/// Of so many values that are there ...
const OF: usize = 100;
/// ... this many are different: no dictionary from here on. The file would be smaller with it by less than a tenth.
const DIFFERENT: usize = 95;

/// The columns that do without one. A nested column always has one.
pub(super) fn without(first: &RecordBatch) -> impl Iterator<Item = usize> {
    first.columns().iter().enumerate().filter(|(_, column)| nearly_all_differ(column.as_ref())).map(|(index, _)| index)
}

fn nearly_all_differ(column: &dyn Array) -> bool {
    let there = column.len() - column.null_count();
    let Some(different) = count_different(column, there) else { return false };
    there > 0 && different * OF >= there * DIFFERENT
}

/// How many different values there are (of equal hashes one); `None` for a type of which that is not asked.
fn count_different(column: &dyn Array, there: usize) -> Option<usize> {
    let mut seen = HashSet::with_capacity(there);
    let mut see = |value: &[u8]| {
        seen.insert(hash(value));
    };
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().flatten().for_each(|value| see(value.as_bytes())),
        DataType::LargeBinary => column.as_binary::<i64>().iter().flatten().for_each(&mut see),
        DataType::Binary => column.as_binary::<i32>().iter().flatten().for_each(&mut see),
        DataType::FixedSizeBinary(_) => column.as_fixed_size_binary().iter().flatten().for_each(&mut see),
        kind => {
            let width = kind.primitive_width()?;
            let data = column.to_data();
            let values = data.buffers().first()?.as_slice().chunks_exact(width).skip(data.offset());
            values.take(column.len()).enumerate().filter(|(row, _)| column.is_valid(*row)).for_each(|(_, value)| see(value));
        }
    }
    Some(seen.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Int64Array, LargeBinaryArray, StringArray, new_null_array};

    use super::*;

    fn without_of(columns: Vec<ArrayRef>) -> Vec<usize> {
        let named = columns.into_iter().enumerate().map(|(index, column)| (format!("c{index}"), column));
        without(&RecordBatch::try_from_iter_with_nullable(named.map(|(name, column)| (name, column, true))).unwrap()).collect()
    }

    fn fixed(values: impl Iterator<Item = u16>) -> ArrayRef {
        let mut builder = FixedSizeBinaryBuilder::new(2);
        values.for_each(|value| builder.append_value(value.to_le_bytes()).unwrap());
        Arc::new(builder.finish())
    }

    #[test]
    fn a_column_of_different_values_has_no_dictionary_and_one_of_repeated_values_has() {
        let text = |n: i64| format!("t{n}");
        let differ: Vec<ArrayRef> = vec![
            Arc::new((0..1_000).map(Some).collect::<Int64Array>()),
            Arc::new((0..1_000).map(|n| Some(text(n))).collect::<StringArray>()),
            Arc::new((0..1_000).map(|n| Some(i128::from(n) << 70)).collect::<Decimal128Array>()),
            Arc::new(LargeBinaryArray::from_iter_values((0..1_000i32).map(i32::to_le_bytes))),
            fixed(0..1_000),
        ];
        assert_eq!(without_of(differ), [0, 1, 2, 3, 4]);
        let repeat: Vec<ArrayRef> = vec![
            Arc::new((0..1_000).map(|n| Some(n % 500)).collect::<Int64Array>()),
            Arc::new((0..1_000).map(|n| Some(text(n % 500))).collect::<StringArray>()),
            Arc::new((0..1_000).map(|n| Some(i128::from(n % 500) << 70)).collect::<Decimal128Array>()),
            Arc::new(LargeBinaryArray::from_iter_values((0..1_000i32).map(|n| (n % 500).to_le_bytes()))),
            fixed((0..1_000).map(|n| n % 500)),
        ];
        assert_eq!(without_of(repeat), [0usize; 0]);
    }

    #[test]
    fn nulls_count_for_nothing_and_a_slice_only_for_its_own_rows() {
        let sparse = (0..1_000).map(|n| (n % 10 == 0).then_some(n)).collect::<Int64Array>();
        let ends_alike = (0..1_000).map(|n| Some(if n < 500 { n } else { 7 })).collect::<Int64Array>();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(sparse.slice(0, 500)),
            Arc::new(ends_alike.slice(0, 500)),
            Arc::new(ends_alike.slice(500, 500)),
            new_null_array(&DataType::Int64, 500),
        ];
        assert_eq!(without_of(columns), [0, 1]);
    }

    #[test]
    fn of_booleans_and_nested_columns_it_is_not_asked() {
        let mut lists = ListBuilder::new(StringBuilder::new());
        (0..2).for_each(|n| lists.append_value([Some(format!("{n}"))]));
        assert_eq!(without_of(vec![Arc::new(BooleanArray::from(vec![true, false])), Arc::new(lists.finish())]), [0usize; 0]);
    }
}
