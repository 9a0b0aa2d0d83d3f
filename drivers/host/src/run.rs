//! One run of a pipeline in this process: opened, driven, drained, and what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contract::registry::Registry;
use contract::{Error, Kind, Sink, Source};
use futures::Stream;
use kernel::coordinator::{Operator, StopReason, TableStatus};
use kernel::id::TableName;
use kernel::state::Phase;
use spec::{Pipeline, SchemaEvolution};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::env::TokioEnv;
use crate::plan;
use crate::report::{Report, Reporter};
use crate::traced::{END_WAIT_MAX, LEAVE_WAIT_MAX, Trace, Written};

/// The drivers of a pipeline, open.
pub struct Drivers {
    /// Where changes come from.
    pub source: Arc<dyn Source>,
    /// Where rows go.
    pub sink: Arc<dyn Sink>,
}

/// Opens a pipeline's drivers.
pub async fn open(pipeline: &Pipeline, registry: &Registry) -> Result<Drivers, Error> {
    Ok(Drivers { source: open_source(pipeline, registry).await?, sink: open_sink(pipeline, registry).await? })
}

/// Opens a pipeline's source.
pub async fn open_source(pipeline: &Pipeline, registry: &Registry) -> Result<Arc<dyn Source>, Error> {
    let kind = pipeline.source.kind;
    let factory = registry.source(kind).ok_or_else(|| no_driver("source", kind))?;
    factory.open(&pipeline.name, &pipeline.source.settings.expose()).await
}

/// Opens a pipeline's sink.
pub async fn open_sink(pipeline: &Pipeline, registry: &Registry) -> Result<Arc<dyn Sink>, Error> {
    let kind = pipeline.sink.kind;
    let factory = registry.sink(kind).ok_or_else(|| no_driver("sink", kind))?;
    factory.open(&pipeline.name, &pipeline.sink.settings.expose()).await
}

fn no_driver(what: &str, kind: &str) -> Error {
    let text = format!("this urutau has no {what} driver '{kind}'");
    Error::new(Kind::Config, "no-driver", text, "`urutau drivers` lists those that it has")
}

/// A run that goes on in the background.
pub struct Run {
    operators: mpsc::Sender<Operator>,
    reporter: Arc<Reporter>,
    task: JoinHandle<StopReason>,
    watch: JoinHandle<()>,
    trace: Option<Written>,
    /// Why it ended, once it has: who waits may be called away before the trace is whole, and wait again.
    reason: Option<StopReason>,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// How often the source is asked what it keeps for this pipeline.
const RETENTION_ASKED_EVERY: Duration = Duration::from_secs(30);

/// Looks at what the source keeps, for people. Nothing that decides about rows depends on it.
async fn watch(source: Arc<dyn Source>, reporter: Arc<Reporter>) {
    loop {
        match source.retention().await {
            Ok(retention) => reporter.retained(retention),
            Err(error) => tracing::debug!(%error, "what the source keeps is not known"),
        }
        tokio::time::sleep(RETENTION_ASKED_EVERY).await;
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Why it stopped.
    pub reason: StopReason,
    /// Each table at the end.
    pub tables: BTreeMap<TableName, TableStatus>,
    /// The last report.
    pub report: Report,
}

/// Something that tells a run what a person wants.
#[derive(Clone)]
pub struct Control {
    operators: mpsc::Sender<Operator>,
    reporter: Arc<Reporter>,
}

impl Run {
    /// Begins.
    pub fn start(pipeline: &Pipeline, drivers: Drivers, until_current: bool) -> Result<Self, Error> {
        Self::start_traced(pipeline, drivers, until_current, None)
    }

    /// Begins, and writes down what its machines hear and say.
    pub fn start_traced(pipeline: &Pipeline, drivers: Drivers, until_current: bool, trace: Option<Trace>) -> Result<Self, Error> {
        let plans = plan::tables(pipeline)?;
        let config = plan::config(pipeline, drivers.sink.capabilities(), drivers.source.as_ref(), until_current)?;
        let reporter = Arc::new(Reporter::new(&pipeline.name));
        let follows_schemas = match pipeline.sink.schema_evolution {
            SchemaEvolution::Evolve => true,
            SchemaEvolution::Ignore | SchemaEvolution::Fail => false,
        };
        let rows_per_read = plan::rows_per_read(pipeline);
        let watch = tokio::spawn(watch(drivers.source.clone(), reporter.clone()));
        let env = TokioEnv::new(drivers.source, drivers.sink, plans, follows_schemas, rows_per_read, reporter.clone());
        let env = Arc::new(env);
        let (operators, asked) = mpsc::channel(64);
        let (witness, trace) = trace.map(Trace::begin).unzip();
        let task = tokio::spawn(pump::run(env, config, Asked(asked), witness));
        Ok(Self { operators, reporter, task, watch, trace, reason: None })
    }

    /// A handle for others.
    pub fn control(&self) -> Control {
        Control { operators: self.operators.clone(), reporter: self.reporter.clone() }
    }

    /// Waits for its end. Who is called away meanwhile may wait again.
    pub async fn ended(&mut self) -> Ended {
        let reason = match &self.reason {
            Some(reason) => reason.clone(),
            None => {
                let reason = match (&mut self.task).await {
                    Ok(reason) => reason,
                    Err(error) => StopReason::Violation { rule: "nothing-panics", dump: error.to_string() },
                };
                self.reason.insert(reason).clone()
            }
        };
        self.watch.abort();
        if let Some(trace) = &mut self.trace {
            trace.whole(END_WAIT_MAX).await;
        }
        self.trace = None;
        Ended { reason, tables: self.reporter.tables(), report: self.reporter.report() }
    }

    /// Ends it where it stands, as the end of the process would, but with what its trace has up to here.
    pub async fn leave(&mut self) {
        self.task.abort();
        if let Some(mut trace) = self.trace.take() {
            trace.whole(LEAVE_WAIT_MAX).await;
        }
    }
}

impl Control {
    /// Asks for something. `false` if the run is over.
    pub async fn ask(&self, operator: Operator) -> bool {
        self.operators.send(operator).await.is_ok()
    }

    /// The newest report.
    pub fn report(&self) -> Report {
        self.reporter.report()
    }
}

impl Ended {
    /// The process's exit code: 0 done, 1 a fault in urutau itself, 2 configuration, 3 a halted table or a poison event, 4 a
    /// position lost, 5 a system stayed unreachable.
    pub fn exit_code(&self) -> u8 {
        let any = |phase: Phase| self.tables.values().any(|t| t.phase == phase);
        match &self.reason {
            StopReason::Violation { .. } | StopReason::Superseded { .. } => 1,
            StopReason::Config { .. } => 2,
            StopReason::Poison { .. } | StopReason::TableHalted { .. } => 3,
            StopReason::PositionLost { .. } => 4,
            StopReason::Unreachable { .. } => 5,
            StopReason::Drained if any(Phase::NeedsSnapshot) => 4,
            StopReason::Drained if any(Phase::Halted) => 3,
            StopReason::Drained => 0,
        }
    }

    /// Why it stopped, for people; `None` if all is well.
    pub fn message(&self) -> Option<String> {
        reason_message(&self.reason)
    }
}

/// Why a run stopped, or would stop, for people; `None` if all is well.
pub fn reason_message(reason: &StopReason) -> Option<String> {
    match reason {
        StopReason::Drained => None,
        StopReason::Poison { why } | StopReason::PositionLost { why } | StopReason::Config { why } => Some(why.clone()),
        StopReason::Unreachable { why } => Some(format!("gave up after retry.giveUpAfter: {why}")),
        StopReason::TableHalted { table } => Some(format!("table {table} halted, and its onError is 'stop'")),
        StopReason::Superseded { by } => Some(format!(
            "superseded: life {by} of this pipeline has begun elsewhere and taken over; this process has stopped everything and \
             changed nothing since"
        )),
        StopReason::Violation { rule, dump } => {
            Some(format!("a rule of urutau itself is broken ({rule}): {dump}. Nothing was written since. Please report this"))
        }
    }
}

/// What people ask for, as a stream.
struct Asked(mpsc::Receiver<Operator>);

impl Stream for Asked {
    type Item = Operator;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Option<Operator>> {
        self.0.poll_recv(context)
    }
}
