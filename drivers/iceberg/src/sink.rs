//! The sink: a warehouse, opened for one pipeline.

use std::sync::Arc;

use arrow_array::RecordBatch;
use contract::registry::{Settings as Section, SinkFactory};
use contract::{
    Capabilities, Error, Finding, Kind, Measure, Peek, Recovered, Severity, Sink, SinkTable, StateWrite, TableSink, Take,
    Versioned, async_trait,
};
use iceberg::{NamespaceIdent, TableIdent};
use kernel::id::{Incarnation, Token};
use kernel::outcome::StoreOutcome;
use kernel::state::PipelineState;
use rows::TableSchema;

use crate::catalog::{Catalog, Embedded};
use crate::commit::Committer;
use crate::index::Memory;
use crate::open::{OpenTable, Shared};
use crate::settings::Settings;
use crate::state::{self, Record};
use crate::storage::{Local, Storage};
use crate::table;
use crate::write::PartWriter;

/// The token of a table that is not there.
const ABSENT: &str = "absent";

/// Opens sinks of kind `iceberg`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Factory;

#[async_trait]
impl SinkFactory for Factory {
    fn kind(&self) -> &'static str {
        "iceberg"
    }

    fn summary(&self) -> &'static str {
        "Apache Iceberg tables in a directory with a catalogue of its own; rows are replaced by deletion vectors (format 3)"
    }

    async fn open(&self, pipeline: &str, settings: &Section) -> Result<Arc<dyn Sink>, Error> {
        Ok(Arc::new(IcebergSink::open(pipeline, settings).await?))
    }
}

/// A warehouse, opened for one pipeline.
#[derive(Debug)]
pub struct IcebergSink {
    pub(crate) shared: Shared,
    namespace: NamespaceIdent,
    record: Record,
    file_bytes_target: Option<u64>,
}

impl IcebergSink {
    /// Opens the warehouse that the settings name. Nothing is made in it before the first table or record is stored.
    pub async fn open(pipeline: &str, settings: &Section) -> Result<Self, Error> {
        let settings = Settings::read(settings)?;
        let storage: Arc<dyn Storage> = Arc::new(Local);
        let catalog: Arc<dyn Catalog> = Arc::new(Embedded::new(&settings.root, Arc::clone(&storage))?);
        Ok(Self::over(catalog, storage, pipeline, settings))
    }

    /// A sink over any catalogue and storage.
    pub(crate) fn over(catalog: Arc<dyn Catalog>, storage: Arc<dyn Storage>, pipeline: &str, settings: Settings) -> Self {
        Self {
            record: Record::new(Arc::clone(&catalog), Arc::clone(&storage), pipeline, &settings.namespace),
            shared: Shared { catalog, storage, pipeline: pipeline.to_owned(), memory: Memory::new(settings.index_bytes_max) },
            namespace: settings.namespace,
            file_bytes_target: settings.file_bytes_target,
        }
    }

    pub(crate) fn ident(&self, table: &SinkTable) -> TableIdent {
        TableIdent::new(self.namespace.clone(), table.target.clone())
    }

    async fn examine(&self, table: &SinkTable) -> Result<Option<String>, Error> {
        match self.shared.catalog.load(&self.ident(table)).await? {
            Some(found) => {
                table::check(&found, table, &self.shared.pipeline)?;
                state::standing(&self.shared.storage, &found).await?;
                Ok(None)
            }
            None => {
                table::Layout::new_schema(table)?;
                Ok(Some(format!("table '{}' will be made", self.ident(table))))
            }
        }
    }
}

#[async_trait]
impl Sink for IcebergSink {
    fn capabilities(&self) -> Capabilities {
        // Rows are located when they are committed, so that they may be written before.
        Capabilities { state: StateWrite::WithData, writes_ahead: true, truncates: true, sweeps: true }
    }

    async fn preflight(&self, tables: &[SinkTable]) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Err(e) = self.record.read().await {
            findings.push(finding("the pipeline's record", e));
        }
        for table in tables {
            match self.examine(table).await {
                Ok(None) => {}
                Ok(Some(what)) => findings.push(Finding {
                    severity: Severity::Info,
                    code: "iceberg-table-new",
                    subject: table.target.clone(),
                    what,
                    remedy: String::new(),
                }),
                Err(e) => findings.push(finding(&table.target, e)),
            }
        }
        findings
    }

    async fn peek(&self, table: &SinkTable, which: &Peek) -> Result<Vec<RecordBatch>, Error> {
        self.read(table, which).await
    }

    async fn scan(&self, table: &SinkTable, take: Take<'_>) -> Result<(), Error> {
        self.read_all(table, take).await
    }

    async fn measure(&self, table: &SinkTable) -> Result<Measure, Error> {
        let Some(described) = self.describe(table).await? else { return Ok(Measure::default()) };
        Ok(Measure {
            rows: Some(described.rows),
            files: Some(described.data_files),
            bytes: Some(described.data_bytes),
            committed_at: described.committed_at_ms,
        })
    }

    async fn ensure_table(&self, table: &SinkTable) -> Result<(), Error> {
        table::ensure(self.shared.catalog.as_ref(), &self.ident(table), table, &self.shared.pipeline, self.file_bytes_target)
            .await
    }

    async fn pipeline_state(&self) -> Result<Versioned<Option<PipelineState>>, Error> {
        self.record.read().await
    }

    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        self.record.store(expected, new).await
    }

    async fn recover(&self, table: &SinkTable) -> Result<Recovered, Error> {
        match self.shared.catalog.load(&self.ident(table)).await? {
            None => Ok(Versioned { value: None, token: Token::from(ABSENT) }),
            Some(found) => {
                state::check_pipeline(&found, &self.shared.pipeline)?;
                Ok(Versioned { value: state::standing(&self.shared.storage, &found).await?.state, token: state::token(&found) })
            }
        }
    }

    fn follows(&self, table: &SinkTable, to: &TableSchema) -> Result<(), Error> {
        table::follows(table, to)
    }

    async fn open(&self, table: &SinkTable, incarnation: Incarnation) -> Result<TableSink, Error> {
        let found = table::existing(self.shared.catalog.as_ref(), &self.ident(table)).await?;
        let layout = table::check(&found, table, &self.shared.pipeline)?;
        let open = Arc::new(OpenTable::new(&self.shared, &found, table, layout, incarnation));
        let mut committer = Committer::new(Arc::clone(&open));
        if let Err(e) = committer.build_index().await {
            // The first commit meets it again and says it in its outcome.
            tracing::warn!(table = %open.ident, error = %e, "the key index cannot be built now");
        }
        Ok(TableSink { writer: Box::new(PartWriter::new(open)), committer: Box::new(committer) })
    }
}

fn finding(subject: &str, error: Error) -> Finding {
    let severity = if error.kind == Kind::Transient { Severity::Warning } else { Severity::Error };
    Finding { severity, code: error.code, subject: subject.to_owned(), what: error.what, remedy: error.remedy }
}
