//! What a run would find and do, without doing it: the tables as source and sink know them, and a rehearsal of the kernel's
//! own beginning. Nothing here writes anything, at the source or at the sink.
//!
//! The rehearsal decides nothing itself: it gives the real coordinator what is stored, answers 'stored' to the one record
//! that it wants to write, and looks at where it would begin. So what `plan` says and what a run does cannot differ.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use contract::{Error, OpenedLog, Recovered, Sink, SinkTable, Source, Versioned};
use kernel::coordinator::{Coordinator, Input, Output, Status, StopReason};
use kernel::id::{Session, TableName, Token};
use kernel::outcome::StoreOutcome;
use kernel::state::{PipelineState, TableState};
use kernel::time::Time;
use rows::shape::Missing;
use spec::Pipeline;

use crate::Drivers;
use crate::plan::{self, TablePlan};
use crate::schemas::Agreed;
use crate::stored::Stored;

/// A table as source and sink know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The table at the target, with the schema that its rows have.
    pub table: SinkTable,
    /// Was a type guessed from values?
    pub inferred: bool,
    /// Its state, with the token that the next commit must show.
    pub state: Recovered,
}

/// What is stored for a table, found by its name alone.
pub async fn recover(plan: &TablePlan, sink: &dyn Sink) -> Result<Recovered, Error> {
    sink.recover(&plan.before_described()).await
}

/// The table at the target as its copy was made, if its state says it.
pub fn copy(plan: &TablePlan, state: &TableState) -> Result<Option<SinkTable>, Error> {
    let Some(text) = &state.schema else { return Ok(None) };
    let stored = Stored::read(&plan.request.table, text)?;
    let as_made = TablePlan { wanted: stored.wanted, ..plan.clone() };
    Agreed::new(&as_made, Arc::new(stored.schema), Missing::Gone).map(|agreed| Some(agreed.at_target()))
}

/// Each table as source and sink know it. What was inferred when a copy was made stays as it is.
pub async fn tables(
    plans: &BTreeMap<TableName, TablePlan>,
    source: &dyn Source,
    sink: &dyn Sink,
) -> Result<BTreeMap<TableName, Known>, Error> {
    let (mut states, mut schemas) = (BTreeMap::new(), BTreeMap::new());
    for (name, plan) in plans {
        let state = recover(plan, sink).await?;
        if let Some(text) = state.value.as_ref().and_then(|state| state.schema.as_ref()) {
            let stored = Stored::read(name, text)?;
            stored.check(&plan.wanted)?;
            schemas.insert(name.clone(), Arc::new(stored.schema));
        }
        states.insert(name.clone(), state);
    }
    let requests: Vec<_> = plans.values().map(|plan| plan.request.clone()).collect();
    let described = source.describe(&requests, &schemas).await?;
    let mut known = BTreeMap::new();
    for table in described {
        let name = table.schema.table.clone();
        let (Some(state), Some(plan)) = (states.remove(&name), plans.get(&name)) else { continue };
        let missing = if schemas.contains_key(&name) { Missing::Gone } else { Missing::Refused };
        let inferred = table.inferred && missing == Missing::Refused;
        let table = Agreed::new(plan, table.schema, missing)?.at_target();
        known.insert(name, Known { table, inferred, state });
    }
    Ok(known)
}

/// How a run would begin.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The machine as it would stand before it reads the first change.
    pub status: Status,
    /// Why it would end at once, if it would.
    pub stops: Option<StopReason>,
    /// Tables whose copy the log can no longer continue.
    pub lost: Vec<TableName>,
    /// Where the log begins and ends, if it got so far as to open it.
    pub log: OpenedLog,
}

/// Rehearses the beginning of a run.
pub async fn rehearse(pipeline: &Pipeline, drivers: &Drivers) -> Result<Rehearsal, Error> {
    let plans = plan::tables(pipeline)?;
    let record = drivers.sink.pipeline_state().await?;
    let mut states = BTreeMap::new();
    for (name, plan) in &plans {
        states.insert(name.clone(), recover(plan, &*drivers.sink).await?);
    }
    let log = drivers.source.open().await?;
    let config = plan::config(pipeline, drivers.sink.capabilities(), drivers.source.as_ref(), false)?;
    Ok(Stage { record, states, log }.play(Coordinator::new(Time(0), config)))
}

/// What a coordinator is shown.
struct Stage {
    record: Versioned<Option<PipelineState>>,
    states: BTreeMap<TableName, Recovered>,
    log: OpenedLog,
}

impl Stage {
    fn play(self, mut coordinator: Coordinator) -> Rehearsal {
        let (mut stops, mut lost) = (None, Vec::new());
        let mut asked = VecDeque::new();
        // One answer a table, and a few more; the bound only keeps a fault of the machine from turning for ever.
        for _ in 0..self.states.len() * 4 + 64 {
            asked.extend(std::iter::from_fn(|| coordinator.poll_output()));
            let Some(output) = asked.pop_front() else { break };
            match output {
                Output::Stop { reason } => stops = Some(reason),
                Output::Started { table, lost: true, .. } => lost.push(table),
                output => {
                    if let Some(answer) = self.answer(output) {
                        coordinator.handle_input(Time(0), answer);
                    }
                }
            }
        }
        Rehearsal { status: coordinator.status(), stops, lost, log: self.log }
    }

    /// What the world would say. Commands of a run that has begun are not answered: that is where the rehearsal ends.
    fn answer(&self, output: Output) -> Option<Input> {
        match output {
            Output::ReadPipelineState { id } => {
                let state = self.record.value.clone().map(Box::new);
                Some(Input::PipelineStateRead { id, state, token: self.record.token.clone() })
            }
            Output::StorePipelineState { id, .. } => {
                Some(Input::PipelineStateStored { id, outcome: StoreOutcome::Stored { token: Token::from("rehearsed") } })
            }
            Output::RecoverTable { id, table } => {
                let found = self.states.get(&table)?;
                let state = found.value.clone().map(Box::new);
                Some(Input::TableRecovered { id, table, state, token: found.token.clone() })
            }
            Output::OpenLog { id } => {
                let OpenedLog { identity, floor, end } = self.log.clone();
                Some(Input::LogOpened { id, session: Session(1), identity, floor, end })
            }
            _ => None,
        }
    }
}
