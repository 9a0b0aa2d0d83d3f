//! The environment on tokio: opens drivers, runs a pipeline's machines in this process, serves the endpoints.
//!
//! There is one orchestration. A single process runs the same coordinator and worker as a cluster does, over a link in memory;
//! nothing here decides about rows. `plan` turns a pipeline file into what the kernel and the drivers are told, `run` drives it,
//! `report` is what people see, `endpoints` is what programs see, `traced` what machines see; `survey` looks at what a run would do,
//! without doing it, and `verify` compares what a run did with the source.

mod again;
mod chunks;
mod convert;
mod endpoints;
mod env;
pub mod plan;
mod report;
mod run;
mod schemas;
mod stored;
pub mod survey;
mod traced;
pub mod verify;

pub use endpoints::Endpoints;
pub use report::{Report, SnapshotReport, TableReport};
pub use run::{Control, Drivers, Ended, Run, open, open_sink, open_source, reason_message};
pub use traced::Trace;
