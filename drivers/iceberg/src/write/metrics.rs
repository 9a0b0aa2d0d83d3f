//! What a manifest says about a data file: sizes, counts and bounds of each column, from the statistics that Parquet
//! keeps. Readers skip files by them, so a bound may be wider than the values, never narrower.

use std::collections::{HashMap, HashSet};

use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, PrimitiveType, Schema, Struct};
use parquet::basic::Type as Physical;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

/// A finished data file, as its manifest will describe it.
pub(super) fn data_file(
    location: &str,
    bytes: u64,
    parquet: &ParquetMetaData,
    schema: &Schema,
    spec_id: i32,
    nan_counts: HashMap<i32, u64>,
) -> Result<DataFile, String> {
    let mut columns = Columns::default();
    for chunk in parquet.row_groups().iter().flat_map(|group| group.columns()) {
        columns.add(chunk, schema)?;
    }
    columns.lower.retain(|id, _| !columns.unbounded.contains(id));
    columns.upper.retain(|id, _| !columns.unbounded.contains(id));
    let rows = u64::try_from(parquet.file_metadata().num_rows()).unwrap_or(0);
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(location.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .partition_spec_id(spec_id)
        .record_count(rows)
        .file_size_in_bytes(bytes)
        .column_sizes(columns.sizes)
        .value_counts(columns.values)
        .null_value_counts(columns.nulls)
        .nan_value_counts(nan_counts)
        .lower_bounds(columns.lower)
        .upper_bounds(columns.upper)
        .split_offsets(Some(parquet.row_groups().iter().filter_map(|group| group.file_offset()).collect()))
        .build()
        .map_err(|e| e.to_string())
}

#[derive(Default)]
struct Columns {
    sizes: HashMap<i32, u64>,
    values: HashMap<i32, u64>,
    nulls: HashMap<i32, u64>,
    lower: HashMap<i32, Datum>,
    upper: HashMap<i32, Datum>,
    /// Columns of which a row group has values without bounds.
    unbounded: HashSet<i32>,
}

impl Columns {
    fn add(&mut self, chunk: &ColumnChunkMetaData, schema: &Schema) -> Result<(), String> {
        let leaf = chunk.column_descr().self_type();
        let info = leaf.get_basic_info();
        let field = info.has_id().then(|| schema.field_by_id(info.id())).flatten();
        let Some((field, kind)) = field.and_then(|field| Some((field, field.field_type.as_primitive_type()?))) else {
            return Ok(());
        };
        *self.sizes.entry(field.id).or_default() += u64::try_from(chunk.compressed_size()).unwrap_or(0);
        *self.values.entry(field.id).or_default() += u64::try_from(chunk.num_values()).unwrap_or(0);
        let Some(statistics) = chunk.statistics() else { return Ok(()) };
        if let Some(nulls) = statistics.null_count_opt() {
            *self.nulls.entry(field.id).or_default() += nulls;
        }
        // Repeated values have no bounds that a reader could use.
        if chunk.column_descr().max_rep_level() > 0 {
            return Ok(());
        }
        let (Some(lower), Some(upper)) = (statistics.min_bytes_opt(), statistics.max_bytes_opt()) else {
            let holds_values = statistics.null_count_opt().is_none_or(|nulls| i64::try_from(nulls) != Ok(chunk.num_values()));
            // Bounds do not speak of NaN, so a float column of nothing else has none; any other column then has none at all.
            if holds_values && !matches!(kind, PrimitiveType::Float | PrimitiveType::Double) {
                self.unbounded.insert(field.id);
            }
            return Ok(());
        };
        widen(&mut self.lower, field.id, bound(lower, leaf.get_physical_type(), kind)?, |new, old| new < old);
        widen(&mut self.upper, field.id, bound(upper, leaf.get_physical_type(), kind)?, |new, old| new > old);
        Ok(())
    }
}

/// Keeps the wider of two row groups' bounds.
fn widen(bounds: &mut HashMap<i32, Datum>, id: i32, new: Datum, wider: impl Fn(&Datum, &Datum) -> bool) {
    match bounds.get(&id) {
        Some(old) if !wider(&new, old) => {}
        _ => drop(bounds.insert(id, new)),
    }
}

/// A Parquet statistic as an Iceberg value. The bytes are the same but for decimals, which Iceberg has big-endian always.
fn bound(bytes: &[u8], physical: Physical, kind: &PrimitiveType) -> Result<Datum, String> {
    let wrong = |e: iceberg::Error| e.to_string();
    if !matches!(kind, PrimitiveType::Decimal { .. }) {
        return Datum::try_from_bytes(bytes, kind.clone()).map_err(wrong);
    }
    let big_endian: Vec<u8> = match physical {
        Physical::INT32 | Physical::INT64 => bytes.iter().rev().copied().collect(),
        _ => bytes.to_vec(),
    };
    Datum::try_from_bytes(&big_endian, kind.clone()).map_err(wrong)
}
