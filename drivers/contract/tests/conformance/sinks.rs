//! How the kit is let at the sink in memory.

use std::sync::Arc;

use contract::conformance::Word;
use contract::conformance::sink::{SinkAbilities, SinkHarness, SinkPlace};
use contract::kernel::id::Incarnation;
use contract::memory::{MemoryRow, MemorySink};
use contract::{Capabilities, CommitRequest, Error, Sink, SinkTable, StateWrite, async_trait};

use crate::modes;

pub(crate) struct MemorySinks(pub(crate) StateWrite);

pub(crate) struct MemoryPlace(pub(crate) MemorySink);

pub(crate) fn abilities(kind: StateWrite) -> SinkAbilities {
    SinkAbilities {
        capabilities: Capabilities { state: kind, writes_ahead: true, truncates: true, sweeps: true },
        modes: modes(kind),
        reads_back: true,
        foreign_commit: true,
        roll_back: kind == StateWrite::WithData,
        tear: kind == StateWrite::WithData,
    }
}

pub(crate) fn words(rows: &[MemoryRow]) -> Vec<Word> {
    rows.iter().flat_map(|row| Word::all_of(&row.data).expect("the kit's rows have its columns")).collect()
}

#[async_trait]
impl SinkHarness for MemorySinks {
    fn abilities(&self) -> SinkAbilities {
        abilities(self.0)
    }

    async fn fresh(&self) -> Result<Box<dyn SinkPlace>, Error> {
        Ok(Box::new(MemoryPlace(MemorySink::new(self.0))))
    }
}

#[async_trait]
impl SinkPlace for MemoryPlace {
    async fn open(&self) -> Result<Arc<dyn Sink>, Error> {
        Ok(Arc::new(self.0.clone()))
    }

    async fn visible_rows(&self, table: &SinkTable) -> Result<Vec<Word>, Error> {
        Ok(words(&self.0.rows(&table.target)))
    }

    async fn foreign_commit(&self, table: &SinkTable) -> Result<(), Error> {
        self.0.touch(&table.target);
        Ok(())
    }

    async fn roll_back(&self, table: &SinkTable) -> Result<(), Error> {
        self.0.roll_back(&table.target);
        Ok(())
    }

    /// A commit is one step: not there, there.
    async fn tear(&self, table: &SinkTable, step: u32) -> Result<bool, Error> {
        match step {
            0 => self.0.roll_back(&table.target),
            1 => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Leaves a table as a commit that writes its state first leaves it half way.
pub(crate) async fn state_without_data(sink: &MemorySink, table: &SinkTable) -> Result<(), Error> {
    let state = sink.recover(table).await?.value.expect("there was a commit");
    sink.roll_back(&table.target);
    let token = sink.recover(table).await?.token;
    let mut open = sink.open(table, Incarnation(1)).await?;
    open.committer
        .commit(&CommitRequest { token, state, staged: Vec::new(), schema: None, truncate_first: false, sweep: false })
        .await;
    Ok(())
}
