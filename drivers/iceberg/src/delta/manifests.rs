//! Manifests and their lists: which files a snapshot is made of. Read with everything that entries inherit, written whole.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use contract::{Error, Kind};
use futures::executor::block_on;
use iceberg::io::{FileIO, FileWrite};
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, Manifest, ManifestContentType, ManifestFile,
    ManifestList, ManifestListWriter, ManifestStatus, ManifestWriterBuilder, PartitionSpecRef, SchemaRef, Snapshot,
    TableMetadata,
};

use crate::storage::Storage;

/// A file that a manifest names.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Added by this manifest's snapshot, carried over, or removed by it.
    pub(crate) status: ManifestStatus,
    /// The snapshot that added the file (of a removed one: that removed it).
    pub(crate) snapshot_id: i64,
    /// Its data sequence number.
    pub(crate) sequence: i64,
    /// The sequence number of the snapshot that added the file.
    pub(crate) file_sequence: i64,
    /// The file.
    pub(crate) file: DataFile,
}

impl Entry {
    pub(crate) fn is_alive(&self) -> bool {
        self.status != ManifestStatus::Deleted
    }
}

/// The files of a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// Its data files.
    pub(crate) data: Vec<LiveFile>,
    /// The deletion vectors of some of them.
    pub(crate) vectors: Vec<LiveVector>,
    /// Equality deletes and position-delete files, which are not ours.
    foreign_deletes: usize,
}

/// A data file of a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct LiveFile {
    pub(crate) path: Arc<str>,
    pub(crate) format: DataFileFormat,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Its data sequence number. A rewrite by others may keep that of the rows.
    pub(crate) sequence: i64,
    /// The sequence number of the snapshot that added it.
    pub(crate) file_sequence: i64,
    /// That snapshot, which may be expired.
    pub(crate) added_by: i64,
}

/// A deletion vector of a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct LiveVector {
    /// Whose rows it names.
    pub(crate) data_file: Arc<str>,
    /// The Puffin file that holds it.
    pub(crate) path: Arc<str>,
    pub(crate) offset: i64,
    pub(crate) length: i64,
    /// How many rows it names.
    pub(crate) cardinality: u64,
}

impl Live {
    /// The files of a snapshot; of none, none.
    pub(crate) fn of(storage: &dyn Storage, metadata: &TableMetadata, snapshot: Option<&Snapshot>) -> Result<Self, Error> {
        let mut live = Self::default();
        let Some(snapshot) = snapshot else { return Ok(live) };
        for manifest in list(storage, metadata, snapshot)? {
            entries(storage, &manifest)?.iter().filter(|entry| entry.is_alive()).for_each(|entry| live.add(entry));
        }
        Ok(live)
    }

    fn add(&mut self, entry: &Entry) {
        let file = &entry.file;
        match (file.content_type(), file.file_format(), file.referenced_data_file()) {
            (DataContentType::Data, format, _) => self.data.push(LiveFile {
                path: file.file_path().into(),
                format,
                rows: file.record_count(),
                bytes: file.file_size_in_bytes(),
                sequence: entry.sequence,
                file_sequence: entry.file_sequence,
                added_by: entry.snapshot_id,
            }),
            (DataContentType::PositionDeletes, DataFileFormat::Puffin, Some(data_file)) => self.vectors.push(LiveVector {
                data_file: data_file.into(),
                path: file.file_path().into(),
                offset: file.content_offset().unwrap_or(-1),
                length: file.content_size_in_bytes().unwrap_or(-1),
                cardinality: file.record_count(),
            }),
            _ => self.foreign_deletes += 1,
        }
    }

    /// Fails if some rows are deleted in a way that is not understood here.
    pub(crate) fn check(&self, table: &str) -> Result<(), Error> {
        if self.foreign_deletes == 0 {
            return Ok(());
        }
        let what = format!(
            "table '{table}' has {} delete files that others wrote and that are no deletion vectors (equality or position deletes)",
            self.foreign_deletes
        );
        Err(Error::new(
            Kind::Rejected,
            "iceberg-foreign-deletes",
            what,
            "compact the table with the engine that wrote them, then resume it",
        ))
    }
}

/// The manifests of a snapshot.
pub(crate) fn list(storage: &dyn Storage, metadata: &TableMetadata, snapshot: &Snapshot) -> Result<Vec<ManifestFile>, Error> {
    let bytes = storage.read(snapshot.manifest_list())?;
    let parsed = ManifestList::parse_with_version(&bytes, metadata.format_version());
    Ok(parsed.map_err(|e| damaged(snapshot.manifest_list(), &e))?.entries().to_vec())
}

/// The entries of a manifest, with what they inherit from its place in the list.
pub(crate) fn entries(storage: &dyn Storage, manifest: &ManifestFile) -> Result<Vec<Entry>, Error> {
    let bytes = storage.read(&manifest.manifest_path)?;
    let parsed = Manifest::parse_avro(&bytes).map_err(|e| damaged(&manifest.manifest_path, &e))?;
    let (found, metadata) = parsed.into_parts();
    let mut first_row_id = manifest.first_row_id;
    let mut inherited = Vec::with_capacity(found.len());
    for entry in found {
        let file = with_row_id(entry.data_file(), metadata.partition_spec.spec_id(), entry.status(), &mut first_row_id)
            .map_err(|e| damaged(&manifest.manifest_path, &e))?;
        // Only entries that their own snapshot added may leave these out.
        inherited.push(Entry {
            status: entry.status(),
            snapshot_id: entry.snapshot_id().unwrap_or(manifest.added_snapshot_id),
            sequence: entry.sequence_number().unwrap_or(manifest.sequence_number),
            file_sequence: entry.file_sequence_number.unwrap_or(manifest.sequence_number),
            file,
        });
    }
    Ok(inherited)
}

/// Row ids: a data file without a first one takes the next of its manifest (format 3, 'First Row ID Inheritance').
/// Carried into another manifest it must keep the one that it has.
fn with_row_id(
    file: &DataFile,
    spec_id: i32,
    status: ManifestStatus,
    next: &mut Option<u64>,
) -> Result<DataFile, iceberg::Error> {
    let Some(first) = *next else { return Ok(file.clone()) };
    let inherits =
        file.content_type() == DataContentType::Data && status != ManifestStatus::Deleted && file.first_row_id().is_none();
    if !inherits {
        return Ok(file.clone());
    }
    *next = Some(first + file.record_count());
    let mut copy = DataFileBuilder::default();
    copy.content(file.content_type())
        .file_path(file.file_path().to_owned())
        .file_format(file.file_format())
        .partition(file.partition().clone())
        .partition_spec_id(spec_id)
        .record_count(file.record_count())
        .file_size_in_bytes(file.file_size_in_bytes())
        .column_sizes(file.column_sizes().clone())
        .value_counts(file.value_counts().clone())
        .null_value_counts(file.null_value_counts().clone())
        .nan_value_counts(file.nan_value_counts().clone())
        .lower_bounds(file.lower_bounds().clone())
        .upper_bounds(file.upper_bounds().clone())
        .key_metadata(file.key_metadata().map(<[u8]>::to_vec))
        .split_offsets(file.split_offsets().map(<[i64]>::to_vec))
        .equality_ids(file.equality_ids())
        .first_row_id(Some(i64::try_from(first).unwrap_or(i64::MAX)));
    if let Some(order) = file.sort_order_id() {
        copy.sort_order_id(order);
    }
    copy.build().map_err(|e| iceberg::Error::new(iceberg::ErrorKind::DataInvalid, e.to_string()))
}

/// What all manifests of a commit have in common.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    /// The snapshot that they are of.
    pub(crate) snapshot_id: i64,
    /// The columns that the table has then.
    pub(crate) schema: SchemaRef,
    pub(crate) specs: HashMap<i32, PartitionSpecRef>,
    pub(crate) format: FormatVersion,
}

impl Writing {
    pub(crate) fn new(metadata: &TableMetadata, snapshot_id: i64, schema: Option<&SchemaRef>) -> Self {
        Self {
            snapshot_id,
            schema: Arc::clone(schema.unwrap_or_else(|| metadata.current_schema())),
            specs: metadata.partition_specs_iter().map(|spec| (spec.spec_id(), Arc::clone(spec))).collect(),
            format: metadata.format_version(),
        }
    }

    /// A manifest as bytes, and its place in a list. Added entries inherit their sequence number.
    pub(crate) fn manifest(
        &self,
        location: &str,
        content: ManifestContentType,
        spec_id: i32,
        entries: &[Entry],
    ) -> Result<(ManifestFile, Bytes), Error> {
        let failed = |e: iceberg::Error| encoding(location, &e);
        let spec = self.specs.get(&spec_id).ok_or_else(|| {
            let e = iceberg::Error::new(iceberg::ErrorKind::DataInvalid, format!("the table has no partition spec {spec_id}"));
            failed(e)
        })?;
        // The crate writes manifests to files only; this one is taken back at once.
        let memory = FileIO::new_with_memory();
        let output = memory.new_output(location).map_err(failed)?;
        let builder = ManifestWriterBuilder::new(output, Some(self.snapshot_id), Arc::clone(&self.schema), spec.as_ref().clone());
        let mut writer = match (self.format, content) {
            (FormatVersion::V3, ManifestContentType::Data) => builder.build_v3_data(),
            (FormatVersion::V3, ManifestContentType::Deletes) => builder.build_v3_deletes(),
            (_, ManifestContentType::Data) => builder.build_v2_data(),
            (_, ManifestContentType::Deletes) => builder.build_v2_deletes(),
        };
        for entry in entries {
            let (file, file_sequence) = (entry.file.clone(), Some(entry.file_sequence));
            match entry.status {
                ManifestStatus::Added => writer.add_file(file, -1),
                ManifestStatus::Existing => writer.add_existing_file(file, entry.snapshot_id, entry.sequence, file_sequence),
                ManifestStatus::Deleted => writer.add_delete_file(file, entry.sequence, file_sequence),
            }
            .map_err(failed)?;
        }
        let placed = block_on(writer.write_manifest_file()).map_err(failed)?;
        let bytes = block_on(async { memory.new_input(location)?.read().await }).map_err(failed)?;
        Ok((placed, bytes))
    }
}

/// A list of manifests as bytes, and how many row ids it gave out.
pub(crate) fn list_bytes(
    location: &str,
    metadata: &TableMetadata,
    snapshot_id: i64,
    manifests: Vec<ManifestFile>,
) -> Result<(Bytes, u64), Error> {
    let failed = |e: iceberg::Error| encoding(location, &e);
    let memory = FileIO::new_with_memory();
    let output: Box<dyn FileWrite> = block_on(async { memory.new_output(location)?.writer().await }).map_err(failed)?;
    let (parent, sequence) = (metadata.current_snapshot_id(), metadata.next_sequence_number());
    let mut writer = match metadata.format_version() {
        FormatVersion::V3 => ManifestListWriter::v3(output, snapshot_id, parent, sequence, Some(metadata.next_row_id())),
        _ => ManifestListWriter::v2(output, snapshot_id, parent, sequence),
    };
    writer.add_manifests(manifests.into_iter()).map_err(failed)?;
    let row_ids = writer.next_row_id().map_or(0, |next| next.saturating_sub(metadata.next_row_id()));
    block_on(writer.close()).map_err(failed)?;
    let bytes = block_on(async { memory.new_input(location)?.read().await }).map_err(failed)?;
    Ok((bytes, row_ids))
}

fn damaged(location: &str, error: &iceberg::Error) -> Error {
    let what = format!("{location} cannot be read: {error}");
    Error::new(Kind::Rejected, "iceberg-manifest-damaged", what, "restore that file, or drop the table and let it be copied anew")
}

fn encoding(location: &str, error: &iceberg::Error) -> Error {
    let what = format!("{location} cannot be written: {error}");
    Error::new(Kind::Fatal, "iceberg-fault", what, "this is a fault in urutau: please report it")
}
