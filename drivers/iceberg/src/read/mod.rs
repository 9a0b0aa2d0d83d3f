//! Reading tables back, for people: some rows, one row by its key, and how large a table is.

mod file;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, RecordBatch, StringArray};
use arrow_schema::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use arrow_select::filter::filter_record_batch;
use contract::{Error, Kind, Peek, SinkTable, Take};
use iceberg::spec::{Literal, PrimitiveType, Schema, SchemaRef};
use kernel::state::TableState;
use roaring::RoaringBitmap;
use rows::{EncodedKeys, Type};
use tokio::sync::mpsc;

pub(crate) use file::{columns_of, unreadable};

use crate::blocking;
use crate::catalog::Loaded;
use crate::delta::{Live, LiveFile, LiveVector};
use crate::index::{Fingerprints, KeyReader};
use crate::sink::IcebergSink;
use crate::state::standing;
use crate::storage::Storage;
use crate::table::KeyColumn;
use crate::table::columns::{arrow_field, cast};
use crate::table::initial::filled;

/// Batches that wait to be taken.
const READ_AHEAD: usize = 2;

/// How large a table is and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// Live rows: those of its data files less those that deletion vectors name.
    pub rows: u64,
    /// Data files.
    pub data_files: u64,
    /// Bytes of the data files.
    pub data_bytes: u64,
    /// Rows in data files that are dead.
    pub dead_rows: u64,
    /// Snapshots that are kept.
    pub snapshots: usize,
    /// When the newest state became visible, milliseconds since 1970.
    pub committed_at_ms: Option<i64>,
    /// The table's state.
    pub state: Option<TableState>,
    /// The metadata file, which readers open.
    pub metadata: String,
}

impl IcebergSink {
    /// Reads rows of a table as they are now, in the table's own columns and types; what the source's are does not matter.
    /// Empty if there is no table. Binary key values are given in hexadecimal.
    pub(crate) async fn read(&self, table: &SinkTable, ask: &Peek) -> Result<Vec<RecordBatch>, Error> {
        let Some(found) = self.shared.catalog.load(&self.ident(table)).await? else { return Ok(Vec::new()) };
        let schema = Arc::clone(found.metadata.current_schema());
        let key = key_of(&schema, table);
        let wanted = ask.key.as_ref().map(|texts| encoded_key(&key, texts)).transpose()?;
        let (storage, limit) = (Arc::clone(&self.shared.storage), ask.limit);
        blocking::run(move || {
            let reader = TableReader::new(storage.as_ref(), &found, schema)?;
            match wanted {
                Some(wanted) => Ok(reader.row(&key, &wanted)?.into_iter().collect()),
                None => reader.rows(limit),
            }
        })
        .await
    }

    /// Gives all rows of a table as they are now, in the table's own columns and types.
    pub(crate) async fn read_all(&self, table: &SinkTable, take: Take<'_>) -> Result<(), Error> {
        let Some(found) = self.shared.catalog.load(&self.ident(table)).await? else { return Ok(()) };
        let (schema, storage) = (Arc::clone(found.metadata.current_schema()), Arc::clone(&self.shared.storage));
        let (batches, mut read) = mpsc::channel(READ_AHEAD);
        let reading = blocking::run(move || {
            TableReader::new(storage.as_ref(), &found, schema)?.each(|batch| batches.blocking_send(batch).is_ok())
        });
        // When one batch is not taken the channel goes with this, and reading ends.
        let taking = async move {
            while let Some(batch) = read.recv().await {
                take(batch)?;
            }
            Ok(())
        };
        let (read, taken) = futures::join!(reading, taking);
        taken.and(read)
    }

    /// Describes a table; `None` if there is none.
    pub async fn describe(&self, table: &SinkTable) -> Result<Option<Description>, Error> {
        let Some(found) = self.shared.catalog.load(&self.ident(table)).await? else { return Ok(None) };
        let storage = Arc::clone(&self.shared.storage);
        let state = standing(&storage, &found).await?.state;
        blocking::run(move || {
            let metadata = &found.metadata;
            let live = Live::of(storage.as_ref(), metadata, metadata.current_snapshot().map(AsRef::as_ref))?;
            let rows: u64 = live.data.iter().map(|file| file.rows).sum();
            let dead_rows: u64 = live.vectors.iter().map(|vector| vector.cardinality).sum();
            Ok(Some(Description {
                rows: rows.saturating_sub(dead_rows),
                data_files: live.data.len() as u64,
                data_bytes: live.data.iter().map(|file| file.bytes).sum(),
                dead_rows,
                snapshots: metadata.snapshots().len(),
                committed_at_ms: state.is_some().then(|| metadata.last_updated_ms()),
                state,
                metadata: found.location.clone(),
            }))
        })
        .await
    }
}

/// Reads one snapshot of a table.
struct TableReader<'a> {
    storage: &'a dyn Storage,
    live: Live,
    fields: SchemaRef,
    schema: ArrowSchemaRef,
}

impl<'a> TableReader<'a> {
    fn new(storage: &'a dyn Storage, found: &Loaded, fields: SchemaRef) -> Result<Self, Error> {
        let metadata = &found.metadata;
        let live = Live::of(storage, metadata, metadata.current_snapshot().map(AsRef::as_ref))?;
        live.check(found.ident.name())?;
        // Readers want columns and types; ids would only be in their way.
        let plain = |field| Arc::unwrap_or_clone(arrow_field(field)).with_metadata(Default::default());
        let columns: Vec<_> = fields.as_struct().fields().iter().map(|field| plain(field)).collect();
        Ok(Self { storage, live, fields, schema: Arc::new(ArrowSchema::new(columns)) })
    }

    /// The first live rows, in the order in which they were written.
    fn rows(self, limit: usize) -> Result<Vec<RecordBatch>, Error> {
        let (mut read, mut left) = (Vec::new(), limit);
        self.each(|batch| {
            let batch = batch.slice(0, batch.num_rows().min(left));
            left -= batch.num_rows();
            read.push(batch);
            left > 0
        })?;
        Ok(read)
    }

    /// All live rows, in the order in which they were written, as long as `take` wants more.
    fn each(mut self, mut take: impl FnMut(RecordBatch) -> bool) -> Result<(), Error> {
        self.live.data.sort_by(|a, b| (a.sequence, &a.path).cmp(&(b.sequence, &b.path)));
        for file in &self.live.data {
            let dead = self.dead(file)?;
            let mut row = 0;
            for batch in self.batches(file, None)? {
                let batch = batch?;
                let keep: BooleanArray = (row..row + batch.num_rows() as u32).map(|row| Some(!dead.contains(row))).collect();
                row += batch.num_rows() as u32;
                let kept = filter_record_batch(&batch, &keep).map_err(|e| unreadable(file, &e.to_string()))?;
                if kept.num_rows() > 0 && !take(kept) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The live row with this encoded key. The newest data files are looked at first.
    fn row(mut self, key: &[KeyColumn], wanted: &[u8]) -> Result<Option<RecordBatch>, Error> {
        self.live.data.sort_by_key(|file| std::cmp::Reverse(file.sequence));
        let fingerprints = Fingerprints::random();
        let keys = KeyReader { storage: self.storage, key, fingerprints: &fingerprints, table: "" };
        for file in &self.live.data {
            let (dead, mut found) = (self.dead(file)?, None);
            keys.each_key(file, |row, candidate| {
                if candidate == wanted && !dead.contains(row) {
                    found = Some(row);
                }
            })?;
            if let Some(row) = found {
                return self.batches(file, Some(row))?.next().transpose();
            }
        }
        Ok(None)
    }

    fn dead(&self, file: &LiveFile) -> Result<RoaringBitmap, Error> {
        let vector: Option<&LiveVector> = self.live.vectors.iter().find(|vector| vector.data_file == file.path);
        vector.map_or_else(|| Ok(RoaringBitmap::new()), |vector| vector.read(self.storage, file.rows))
    }

    /// All columns of a data file, or of one of its rows. A column that it lacks was added later: it has its initial value.
    fn batches(&self, file: &LiveFile, only: Option<u32>) -> Result<impl Iterator<Item = Result<RecordBatch, Error>>, Error> {
        let opened = file::open(self.storage, file)?;
        let fields = self.fields.as_struct().fields();
        let found: Vec<Option<usize>> = fields.iter().map(|field| opened.index_of(field.id, &field.name)).collect();
        let present: Vec<usize> = found.iter().copied().flatten().collect();
        let initial: Vec<Option<Literal>> = fields.iter().map(|field| field.initial_default.clone()).collect();
        let (schema, of) = (Arc::clone(&self.schema), file.clone());
        Ok(opened.read(&present, file, only)?.map(move |columns| {
            let columns = columns?;
            let rows = columns.first().map_or(0, |column| column.len());
            let mut present = columns.iter();
            let typed = found.iter().zip(schema.fields()).zip(&initial).map(|((found, field), initial)| {
                let unread = || unreadable(&of, &format!("it lacks column '{}', whose initial value is not read", field.name()));
                match found.and_then(|_| present.next()) {
                    Some(column) => cast(column, field.data_type()).map_err(|e| unreadable(&of, &e.to_string())),
                    None => filled(initial.as_ref(), field.data_type(), rows).ok_or_else(unread),
                }
            });
            let typed = typed.collect::<Result<Vec<_>, _>>()?;
            RecordBatch::try_new(Arc::clone(&schema), typed).map_err(|e| unreadable(&of, &e.to_string()))
        }))
    }
}

/// The key as the table tells it, in the order of the source's key if that is known.
fn key_of(schema: &Schema, table: &SinkTable) -> Vec<KeyColumn> {
    let order = |name: &str| table.schema.key.iter().position(|&k| table.schema.columns.get(k).is_some_and(|c| c.name == name));
    let mut key: Vec<KeyColumn> = (0..)
        .zip(schema.as_struct().fields())
        .filter(|(_, field)| schema.identifier_field_ids().any(|id| id == field.id))
        .filter_map(|(source, field)| {
            let kind = canonical(field.field_type.as_primitive_type()?)?;
            Some(KeyColumn { source, name: field.name.clone(), kind, field: field.id })
        })
        .collect();
    key.sort_by_key(|column| order(&column.name));
    key
}

/// The canonical type that a type of Iceberg is read as; none for those that urutau does not write.
fn canonical(kind: &PrimitiveType) -> Option<Type> {
    Some(match kind {
        PrimitiveType::Boolean => Type::Bool,
        PrimitiveType::Int => Type::Int32,
        PrimitiveType::Long => Type::Int64,
        PrimitiveType::Float => Type::Float32,
        PrimitiveType::Double => Type::Float64,
        PrimitiveType::Decimal { precision, scale } => {
            Type::Decimal { precision: u8::try_from(*precision).ok()?, scale: i8::try_from(*scale).ok()? }
        }
        PrimitiveType::Date => Type::Date,
        PrimitiveType::Time => Type::Time,
        PrimitiveType::Timestamp => Type::Timestamp,
        PrimitiveType::Timestamptz => Type::TimestampTz,
        PrimitiveType::String => Type::String,
        PrimitiveType::Uuid => Type::Uuid,
        PrimitiveType::Fixed(bytes) => Type::FixedBinary(u32::try_from(*bytes).ok()?),
        PrimitiveType::Binary => Type::Binary,
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => return None,
    })
}

/// A key given as text, encoded.
fn encoded_key(key: &[KeyColumn], texts: &[String]) -> Result<Vec<u8>, Error> {
    if key.is_empty() {
        return Err(wrong_key("the table has no key"));
    }
    if texts.len() != key.len() {
        let names: Vec<&str> = key.iter().map(|column| column.name.as_str()).collect();
        return Err(wrong_key(&format!("{} values were given, and the key is ({})", texts.len(), names.join(", "))));
    }
    let columns = key.iter().zip(texts).map(|(column, text)| {
        value(column, text).ok_or_else(|| wrong_key(&format!("what was given for '{}' is no {}", column.name, column.kind)))
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let types: Vec<Type> = key.iter().map(|column| column.kind.clone()).collect();
    let keys = EncodedKeys::encode_columns(&columns, &types).map_err(|e| wrong_key(&e.to_string()))?;
    Ok(keys.key(0).to_vec())
}

fn value(column: &KeyColumn, text: &str) -> Option<ArrayRef> {
    Some(match &column.kind {
        Type::Uuid => {
            let id = uuid::Uuid::try_parse(text).ok()?;
            Arc::new(FixedSizeBinaryArray::try_from_iter([id.as_bytes()].into_iter()).ok()?)
        }
        Type::Binary | Type::FixedBinary(0) => Arc::new(BinaryArray::from_vec(vec![&hex(text)?])),
        Type::FixedBinary(length) => {
            let bytes = hex(text).filter(|bytes| bytes.len() == *length as usize)?;
            Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).ok()?)
        }
        kind => {
            let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
            cast(&text, &kind.arrow()).ok()?
        }
    })
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| Some(c.to_digit(16)? as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn wrong_key(why: &str) -> Error {
    Error::new(
        Kind::Config,
        "iceberg-peek-key",
        format!("no row can have that key: {why}"),
        "give the value of each key column, in key order",
    )
}
