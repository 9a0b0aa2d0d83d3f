//! Work that blocks or computes for long, off the threads that answer everybody else.

use std::sync::Arc;

use contract::{Error, Kind};

use crate::storage::Storage;

/// Runs it on a thread for blocking work. A panic there is an error here: one table's fault stays its own.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(e) => {
            let what = format!("work on an Iceberg table ended before its time: {e}");
            Err(Error::new(Kind::Fatal, "iceberg-fault", what, "this is a fault in urutau: please report it"))
        }
    }
}

/// Deletes files that nothing names any more. What cannot be deleted stays and costs room, no more.
pub(crate) async fn delete_quietly(storage: Arc<dyn Storage>, files: Vec<String>) {
    if files.is_empty() {
        return;
    }
    let deleted = run(move || {
        for file in files {
            if let Err(e) = storage.delete(&file) {
                tracing::debug!(file, error = %e, "an old file could not be deleted");
            }
        }
        Ok(())
    });
    let _ = deleted.await;
}
