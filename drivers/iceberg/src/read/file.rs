//! Reading data files and deletion vectors, whoever wrote them.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use contract::{Error, Kind};
use iceberg::spec::DataFileFormat;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::schema::types::{BasicTypeInfo, TypePtr};
use roaring::RoaringBitmap;

use crate::delta::{LiveFile, LiveVector};
use crate::storage::{Chunks, Failure, Storage};
use crate::vector;

/// Rows that are read at once.
const ROWS_AT_ONCE: usize = 16 * 1024;

/// Batches of some columns of a data file, in the order asked for.
pub(crate) type Columns = Box<dyn Iterator<Item = Result<Vec<ArrayRef>, Error>>>;

/// Reads columns, each asked for by its field id and its name. A file without any ids was written by others: there names
/// count. A column that the file does not have is an error.
pub(crate) fn columns_of(storage: &dyn Storage, file: &LiveFile, wanted: &[(i32, &str)]) -> Result<Columns, Error> {
    let found = open(storage, file)?;
    let indices = wanted.iter().map(|(field, name)| {
        let missing = || unreadable(file, &format!("it has no column '{name}' (field {field})"));
        found.index_of(*field, name).ok_or_else(missing)
    });
    let indices = indices.collect::<Result<Vec<_>, _>>()?;
    found.read(&indices, file, None)
}

/// A data file whose columns are known.
pub(crate) struct OpenedFile {
    builder: ParquetRecordBatchReaderBuilder<Chunks>,
}

/// Opens a data file.
pub(crate) fn open(storage: &dyn Storage, file: &LiveFile) -> Result<OpenedFile, Error> {
    if file.format != DataFileFormat::Parquet {
        return Err(unreadable(file, &format!("it is {}, and only Parquet is read", file.format)));
    }
    let input = Chunks(storage.open(&file.path)?);
    let builder = ParquetRecordBatchReaderBuilder::try_new(input).map_err(|e| unreadable(file, &e.to_string()))?;
    Ok(OpenedFile { builder })
}

impl OpenedFile {
    /// Which of its columns a field of the table is.
    pub(crate) fn index_of(&self, field: i32, name: &str) -> Option<usize> {
        let roots: &[TypePtr] = self.builder.parquet_schema().root_schema().get_fields();
        let has_ids = roots.iter().any(|root| root.get_basic_info().has_id());
        let is_it = |info: &BasicTypeInfo| if has_ids { info.has_id() && info.id() == field } else { info.name() == name };
        roots.iter().position(|root| is_it(root.get_basic_info()))
    }

    /// Reads columns by index, in this order: of all rows, or of one.
    pub(crate) fn read(self, indices: &[usize], file: &LiveFile, only: Option<u32>) -> Result<Columns, Error> {
        let mut read = indices.to_vec();
        read.sort_unstable();
        let order: Vec<usize> = indices.iter().filter_map(|index| read.iter().position(|r| r == index)).collect();
        let mask = ProjectionMask::roots(self.builder.parquet_schema(), read);
        let mut builder = self.builder.with_projection(mask).with_batch_size(ROWS_AT_ONCE);
        if let Some(row) = only {
            builder = builder.with_offset(row as usize).with_limit(1);
        }
        let reader = builder.build().map_err(|e| unreadable(file, &e.to_string()))?;
        let file = file.clone();
        Ok(Box::new(reader.map(move |batch| {
            let batch: RecordBatch = batch.map_err(|e| unreadable(&file, &e.to_string()))?;
            Ok(order.iter().map(|&i| Arc::clone(batch.column(i))).collect())
        })))
    }
}

impl LiveVector {
    /// Reads it. It belongs to a data file of `rows` rows.
    pub(crate) fn read(&self, storage: &dyn Storage, rows: u64) -> Result<RoaringBitmap, Error> {
        let input = storage.open(&self.path)?;
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        let blob = input.read_at(u64::try_from(self.offset).unwrap_or(u64::MAX), length);
        let blob = blob.map_err(|e| Failure::new("read", &self.path, e))?;
        vector::decode(&blob, rows).map_err(|e| {
            let what = format!("the deletion vector of {} in {} cannot be read: {e}", self.data_file, self.path);
            Error::new(Kind::Rejected, "iceberg-vector-damaged", what, RESTORE)
        })
    }
}

/// An error about a data file.
pub(crate) fn unreadable(file: &LiveFile, why: &str) -> Error {
    let what = format!("the data file {} cannot be read: {why}", file.path);
    Error::new(Kind::Rejected, "iceberg-data-file", what, RESTORE)
}

const RESTORE: &str = "restore that file, or drop the table and let it be copied anew";
