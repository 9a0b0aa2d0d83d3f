//! Tables: what they hold, how one is made, whether an existing one will do.

pub(crate) mod columns;
mod evolve;
pub(crate) mod initial;
mod layout;
mod tail;

use std::collections::HashMap;

use contract::{Error, Kind, SinkTable};
use iceberg::TableIdent;
use iceberg::spec::FormatVersion;

pub(crate) use evolve::{Layouts, Step, follows, schema_id};
pub(crate) use layout::{KeyColumn, Layout, Values};

use crate::catalog::{Catalog, Loaded, NewTable};
use crate::state::{self, PIPELINE};

/// Every table forgets, and its commits delete, all but the last 20 metadata files.
pub(crate) const BOUNDED_METADATA: [(&str, &str); 2] =
    [("write.metadata.delete-after-commit.enabled", "true"), ("write.metadata.previous-versions-max", "20")];

/// The property that says at which size a data file is ended.
pub(crate) const TARGET_FILE_SIZE: &str = "write.target-file-size-bytes";
/// What it is if nobody says.
pub(crate) const TARGET_FILE_BYTES: u64 = 128 * 1024 * 1024;

/// The properties that a new table gets. All of them are the specification's own and are read again at each commit, so
/// that people may change them.
const NEW_TABLE: [(&str, &str); 6] = [
    // How long readers of an old snapshot may take, and how far a table can be rolled back (`delta/expire.rs`).
    ("history.expire.max-snapshot-age-ms", "1800000"),
    ("history.expire.min-snapshots-to-keep", "20"),
    ("write.parquet.compression-codec", "zstd"),
    // Engines that change the table write deletion vectors too, instead of rewriting files.
    ("write.delete.mode", "merge-on-read"),
    ("write.update.mode", "merge-on-read"),
    ("write.merge.mode", "merge-on-read"),
];

/// Makes the table if it is not there, and checks that it can hold what the source sends if it is.
pub(crate) async fn ensure(
    catalog: &dyn Catalog,
    ident: &TableIdent,
    table: &SinkTable,
    pipeline: &str,
    file_bytes_target: Option<u64>,
) -> Result<(), Error> {
    if let Some(found) = catalog.load(ident).await? {
        return check(&found, table, pipeline).map(drop);
    }
    let constant = BOUNDED_METADATA.iter().chain(&NEW_TABLE).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let target = file_bytes_target.unwrap_or(TARGET_FILE_BYTES).to_string();
    let ours = [(PIPELINE.to_owned(), pipeline.to_owned()), (TARGET_FILE_SIZE.to_owned(), target)];
    let properties = constant.chain(ours).collect();
    let new = NewTable { schema: Layout::new_schema(table)?, properties };
    match catalog.create(ident, new).await? {
        Some(made) => Layout::of(table, made.metadata.current_schema()).map(drop),
        // Somebody made it at the same moment.
        None => check(&existing(catalog, ident).await?, table, pipeline).map(drop),
    }
}

/// Checks a table and answers what its data files hold.
pub(crate) fn check(found: &Loaded, table: &SinkTable, pipeline: &str) -> Result<Layout, Error> {
    state::check_pipeline(found, pipeline)?;
    let metadata = &found.metadata;
    if metadata.format_version() != FormatVersion::V3 {
        let what = format!(
            "table '{}' is of format version {}, and deletion vectors need 3",
            found.ident,
            metadata.format_version() as u8
        );
        let remedy =
            "upgrade it (format-version = 3) after its delete files were compacted away; writing format 2 is not built yet";
        return Err(Error::new(Kind::Config, "iceberg-format-version", what, remedy));
    }
    if !metadata.default_partition_spec().is_unpartitioned() {
        let what = format!("table '{}' is partitioned", found.ident);
        return Err(Error::new(
            Kind::Config,
            "iceberg-partitioned",
            what,
            "writing partitioned tables is not built yet: use one without partitions",
        ));
    }
    check_names(found)?;
    Layout::of(table, metadata.current_schema())
}

/// Refuses a table whose rows and state are of before a column was renamed: a rollback takes those back and no names, so that the state's
/// names would mean other columns.
fn check_names(found: &Loaded) -> Result<(), Error> {
    let metadata = &found.metadata;
    let of_rows = metadata.current_snapshot().and_then(|snapshot| metadata.schema_by_id(snapshot.schema_id()?));
    let now = metadata.current_schema();
    let renamed = of_rows.and_then(|then| {
        then.as_struct().fields().iter().find_map(|field| {
            let name = now.name_by_field_id(field.id).filter(|name| *name != field.name)?;
            Some((field.name.clone(), name.to_owned()))
        })
    });
    let Some((then, now)) = renamed else { return Ok(()) };
    let what = format!("table '{}' calls a column '{now}' that its newest snapshot calls '{then}'", found.ident);
    let remedy = "it was rolled back across a renaming, or renamed by others: give the column its old name back, or let the table be made anew";
    Err(Error::new(Kind::Config, "iceberg-names-differ", what, remedy))
}

/// The table, which must be there.
pub(crate) async fn existing(catalog: &dyn Catalog, ident: &TableIdent) -> Result<Loaded, Error> {
    catalog.load(ident).await?.ok_or_else(|| {
        let what = format!("table '{ident}' is gone from the catalogue");
        Error::new(Kind::Rejected, "iceberg-table-gone", what, "bring it back, or start anew: it is then made and copied again")
    })
}

/// A property that is a number; `otherwise` if it is not there or none.
pub(crate) fn number(properties: &HashMap<String, String>, name: &str, otherwise: u64) -> u64 {
    properties.get(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
