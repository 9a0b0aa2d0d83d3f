//! Apache Iceberg as a sink: row deltas with deletion vectors, found by a key index.
//!
//! A warehouse is a directory with `catalog.db` and one directory a table. Rows are staged as Parquet files (`write`). A
//! commit looks up where the keys that it replaces or removes are (`index`), writes a deletion vector for each data file
//! that loses rows (`vector`), makes one snapshot of all of it (`delta`) that carries the table's state (`state`), and
//! swaps it in by the catalogue's compare-and-set (`catalog`). `commit` is where this comes together: begin there.
//!
//! ```text
//! sink ── open ──┬── write    rows -> data files            ── table    columns, types, layout
//!                └── commit ──┬── index    key -> file, row   ── read     data files and vectors back
//!                             ├── vector   dead rows <-> bytes
//!                             ├── delta    manifests, summary, expiry
//!                             ├── state    which state is true
//!                             └── catalog  load, create, compare-and-set
//! storage   files, durable once answered                       blocking, failpoint, settings
//! ```
//!
//! What comes next has its place: a REST catalogue implements `catalog::Catalog`, object stores `storage::Storage`, an
//! index on disk replaces `index::map`, partitions and format 2 are cases in `delta` and `write`.
#![deny(missing_docs)]

mod blocking;
mod catalog;
mod commit;
mod delta;
mod failpoint;
mod index;
mod open;
mod read;
mod settings;
mod sink;
mod state;
mod storage;
mod table;
#[cfg(test)]
mod tests;
mod vector;
mod write;

pub use read::Description;
pub use sink::{Factory, IcebergSink};
