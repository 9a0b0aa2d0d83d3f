//! Data files: Parquet with zstd and statistics, rolled when they reach the table's target size.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use contract::{Error, Kind};
use iceberg::spec::{DataFile, PrimitiveType, Schema, Type};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, LogicalType, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, GroupTypeBuilder, SchemaDescriptor, Type as ParquetType};

use super::{dictionary, metrics};
use crate::storage::{Failure, Output, Storage};
use crate::table::Layout;

/// A row group is closed at this size, so that a writer holds no more than that.
const ROW_GROUP_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Fast, and near enough to what more effort would save.
const ZSTD_LEVEL: i32 = 1;

/// Writes one data file after another.
pub(super) struct FileWriter<'a> {
    storage: &'a dyn Storage,
    layout: &'a Layout,
    spec_id: i32,
    bytes_target: u64,
    names: Box<dyn FnMut() -> String + Send + 'a>,
    open: Option<OpenFile>,
    done: Vec<DataFile>,
}

impl<'a> FileWriter<'a> {
    /// A writer whose files are called what `names` says, each once.
    pub(super) fn new(
        storage: &'a dyn Storage,
        layout: &'a Layout,
        spec_id: i32,
        bytes_target: u64,
        names: impl FnMut() -> String + Send + 'a,
    ) -> Self {
        Self { storage, layout, spec_id, bytes_target, names: Box::new(names), open: None, done: Vec::new() }
    }

    /// Adds rows. All of a batch lie in one file, in order; so do files and batches.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let file = match &mut self.open {
            Some(file) => file,
            none => none.insert(OpenFile::create(self.storage, self.layout, (self.names)(), batch)?),
        };
        file.write(batch, &self.layout.schema)?;
        if file.bytes() >= self.bytes_target { self.end_file() } else { Ok(()) }
    }

    /// Ends the last file.
    pub(super) fn end_file(&mut self) -> Result<(), Error> {
        if let Some(file) = self.open.take() {
            self.done.push(file.close(&self.layout.schema, self.spec_id)?);
        }
        Ok(())
    }

    /// The files that have ended. They stay.
    pub(super) fn into_files(self) -> Vec<DataFile> {
        self.done
    }
}

struct OpenFile {
    location: String,
    writer: ArrowWriter<Shared>,
    /// The same output, to be finished when the writer is done with it, and what went wrong with it.
    output: Shared,
    nan_counts: HashMap<i32, u64>,
}

impl OpenFile {
    /// A file for rows like these, its first ones.
    fn create(storage: &dyn Storage, layout: &Layout, location: String, first: &RecordBatch) -> Result<Self, Error> {
        let output = Shared(Arc::new(Mutex::new(Some(storage.create(&location)?))));
        let options = ArrowWriterOptions::new()
            .with_properties(properties(first))
            // Readers go by the Parquet types and the field ids; a second schema would only make files larger.
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(parquet_schema(layout).map_err(|e| encoding(&location, &e))?);
        let writer = ArrowWriter::try_new_with_options(output.clone(), Arc::clone(&layout.arrow), options);
        Ok(Self { writer: writer.map_err(|e| encoding(&location, &e))?, location, output, nan_counts: HashMap::new() })
    }

    fn write(&mut self, batch: &RecordBatch, schema: &Schema) -> Result<(), Error> {
        count_nans(batch, schema, &mut self.nan_counts);
        self.writer.write(batch).map_err(|e| failed(&self.location, e))
    }

    fn bytes(&self) -> u64 {
        (self.writer.bytes_written() + self.writer.in_progress_size()) as u64
    }

    fn close(self, schema: &Schema, spec_id: i32) -> Result<DataFile, Error> {
        let parquet = self.writer.close().map_err(|e| failed(&self.location, e))?;
        let output = self.output.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let bytes = output.map(Output::finish).transpose()?.unwrap_or(0);
        metrics::data_file(&self.location, bytes, &parquet, schema, spec_id, self.nan_counts)
            .map_err(|e| encoding(&self.location, &ParquetError::General(e)))
    }
}

fn properties(first: &RecordBatch) -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default();
    let fields = first.schema_ref().fields();
    let without = dictionary::without(first).filter_map(|column| fields.get(column));
    without
        .fold(WriterProperties::builder(), |properties, field| {
            properties.set_column_dictionary_enabled(ColumnPath::new(vec![field.name().clone()]), false)
        })
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES_MAX))
        .set_created_by(concat!("urutau ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}

/// What the Arrow schema is in Parquet, but that a UUID is called one, as the Iceberg specification demands.
fn parquet_schema(layout: &Layout) -> Result<SchemaDescriptor, ParquetError> {
    let plain = ArrowSchemaConverter::new().convert(&layout.arrow)?;
    let root = name_uuids(plain.root_schema(), &layout.schema)?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

fn name_uuids(node: &ParquetType, schema: &Schema) -> Result<ParquetType, ParquetError> {
    let info = node.get_basic_info();
    let id = info.has_id().then(|| info.id());
    if node.is_primitive() {
        let field = id.and_then(|id| schema.field_by_id(id));
        if field.is_none_or(|field| *field.field_type != Type::Primitive(PrimitiveType::Uuid)) {
            return Ok(node.clone());
        }
        return ParquetType::primitive_type_builder(info.name(), node.get_physical_type())
            .with_repetition(info.repetition())
            .with_length(16)
            .with_logical_type(Some(LogicalType::Uuid))
            .with_id(id)
            .build();
    }
    let fields = node.get_fields().iter().map(|f| name_uuids(f, schema).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let mut group: GroupTypeBuilder<'_> = ParquetType::group_type_builder(info.name()).with_fields(fields).with_id(id);
    if info.has_repetition() {
        group = group.with_repetition(info.repetition());
    }
    group.with_converted_type(info.converted_type()).with_logical_type(info.logical_type_ref().cloned()).build()
}

fn count_nans(batch: &RecordBatch, schema: &Schema, counts: &mut HashMap<i32, u64>) {
    for (field, column) in schema.as_struct().fields().iter().zip(batch.columns()) {
        let nans = match column.data_type() {
            DataType::Float32 => column.as_primitive::<Float32Type>().iter().flatten().filter(|v| v.is_nan()).count(),
            DataType::Float64 => column.as_primitive::<Float64Type>().iter().flatten().filter(|v| v.is_nan()).count(),
            _ => continue,
        };
        *counts.entry(field.id).or_default() += nans as u64;
    }
}

/// What the Parquet writer reports; underneath there may be a full disk.
fn failed(location: &str, error: ParquetError) -> Error {
    if let ParquetError::External(source) = error {
        return match source.downcast::<io::Error>() {
            Ok(e) => Failure::new("write", location, *e).into(),
            Err(other) => encoding(location, &ParquetError::External(other)),
        };
    }
    encoding(location, &error)
}

fn encoding(location: &str, error: &ParquetError) -> Error {
    let what = format!("rows cannot be written as Parquet to {location}: {error}");
    Error::new(Kind::Rejected, "iceberg-parquet", what, "this is a fault in urutau: please report it")
}

/// An output that the Parquet writer and the file's owner share: the one writes, the other finishes.
#[derive(Clone)]
struct Shared(Arc<Mutex<Option<Box<dyn Output>>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(output) => output.write(bytes),
            None => Err(io::Error::other("the file is finished")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(output) => output.flush(),
            None => Ok(()),
        }
    }
}
