//! How a life begins, and how it looks at the log anew after its session was lost (rules R1 to R4, P4).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Coordinator, Output, Stage, StopReason};
use crate::acknowledge::effective;
use crate::checkpoint::Table;
use crate::config::Join;
use crate::flow::Backoff;
use crate::id::{CommandId, Incarnation, Session, TableName, Token};
use crate::planted::planted;
use crate::position::{Cut, LogIdentity, Position};
use crate::state::{FORMAT, Phase, PipelineState, TableState};

/// What only the beginning needs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Starting {
    /// The one command whose answer the stage waits for.
    pub(crate) asked: Option<CommandId>,
    pub(crate) retry: Option<Backoff>,
    /// What failed last, for people.
    pub(crate) why: Option<String>,
    /// There was no record: then no table may have a state.
    record_was_missing: bool,
    pub(crate) superseded_by: Incarnation,
    /// Where the start option, not a stored cut, decided; and whether there was a stored cut.
    pub(crate) joined: BTreeMap<TableName, bool>,
}

impl Coordinator {
    /// Asks for what the stage needs next.
    pub(super) fn start_on(&mut self) {
        if let (Some(reason), false) = (self.drain.reason(), self.stage == Stage::Running) {
            let reason = reason.clone();
            return self.stop(reason);
        }
        if self.stage == Stage::Recovering {
            return self.recover_again();
        }
        if self.starting.asked.is_some() || self.starting.retry.is_some_and(|r| self.now < r.at) {
            return;
        }
        if self.starting.retry.is_some_and(|r| r.is_hopeless(self.now, &self.config.retry)) {
            let why = self.starting.why.clone().unwrap_or_default();
            return self.stop(StopReason::Unreachable { why });
        }
        match self.stage {
            Stage::Reading | Stage::Validating => {
                let id = self.next_id();
                self.starting.asked = Some(id);
                self.push(Output::ReadPipelineState { id });
            }
            Stage::Opening => {
                let id = self.next_id();
                self.starting.asked = Some(id);
                self.push(Output::OpenLog { id });
            }
            Stage::Taking | Stage::Recovering | Stage::Running | Stage::Stopped => {}
        }
    }

    /// The step failed transiently: again, later.
    pub(crate) fn start_failed(&mut self, why: String) {
        self.starting.asked = None;
        self.starting.retry = Some(Backoff::after(self.starting.retry, self.now, &self.config.retry));
        self.starting.why = Some(why);
        self.mark("start-retried");
    }

    fn start_reached(&mut self, stage: Stage) {
        self.stage = stage;
        self.starting.asked = None;
        self.starting.retry = None;
        self.starting.why = None;
    }

    // ---- the record and the incarnation

    pub(super) fn pipeline_state_read(&mut self, id: CommandId, state: Option<PipelineState>, token: Token) {
        if self.starting.asked != Some(id) {
            return self.validated(id, state);
        }
        self.starting.asked = None;
        if self.stage == Stage::Validating {
            let newest = state.map_or(Incarnation(0), |s| s.incarnation);
            if newest > self.incarnation {
                return self.supersede(newest);
            }
            return self.start_reached(Stage::Opening);
        }
        self.starting.record_was_missing = state.is_none();
        let known = state.unwrap_or_default();
        if known.format > FORMAT {
            let why =
                format!("the pipeline's record has format {}, this urutau knows {FORMAT}: run a newer urutau", known.format);
            return self.stop(StopReason::Config { why });
        }
        if planted!(self.config, UnknownTakeTrusted) && self.incarnation > Incarnation(0) && known.incarnation == self.incarnation
        {
            self.record.adopt_read(known, token);
            self.start_reached(Stage::Recovering);
            return self.recover_tables();
        }
        self.take_incarnation(known, token);
    }

    fn take_incarnation(&mut self, known: PipelineState, token: Token) {
        self.incarnation = known.incarnation.next();
        let new = PipelineState { format: FORMAT, incarnation: self.incarnation, ..known };
        self.stage = Stage::Taking;
        self.record.adopt_read(new.clone(), token);
        self.replace_record(new);
    }

    /// The take's answer. One whose fate is unknown is not taken: the record is read again, the next number is.
    pub(crate) fn incarnation_taken(&mut self, stored: bool, why: String) {
        if stored {
            self.start_reached(Stage::Recovering);
            if !planted!(self.config, StatesBeforeIncarnation) {
                self.recover_tables();
            }
            return self.open_when_recovered();
        }
        self.mark("take-again");
        self.stage = Stage::Reading;
        self.start_failed(why);
    }

    // ---- the tables' states

    pub(super) fn recover_tables(&mut self) {
        for name in self.config.tables.keys().cloned().collect::<Vec<_>>() {
            let id = self.next_id();
            let mut table = Table::new(Phase::Pending);
            table.recovering = Some(id);
            self.tables.insert(name.clone(), table);
            self.push(Output::RecoverTable { id, table: name });
        }
        if self.tables.is_empty() {
            let why = String::from("the pipeline has no tables");
            self.stop(StopReason::Config { why });
        }
    }

    fn recover_again(&mut self) {
        for name in self.names() {
            let Some(table) = self.tables.get_mut(&name) else { continue };
            let Some(retry) = table.recovery_retry.filter(|r| r.at <= self.now && table.recovering.is_none()) else { continue };
            if retry.is_hopeless(self.now, &self.config.retry) {
                let why = table.why.clone().unwrap_or_default();
                return self.stop(StopReason::Unreachable { why });
            }
            let id = self.next_id();
            if let Some(table) = self.tables.get_mut(&name) {
                table.recovering = Some(id);
            }
            self.push(Output::RecoverTable { id, table: name });
        }
    }

    pub(super) fn table_recovered(&mut self, id: CommandId, name: &TableName, state: Option<TableState>, token: Token) {
        let Some(table) = self.tables.get_mut(name).filter(|t| t.recovering == Some(id)) else { return self.stale_answer() };
        table.recovering = None;
        table.recovery_retry = None;
        table.why = None;
        table.token = token;
        table.schema = state.as_ref().and_then(|s| s.schema.clone());
        table.stored = state;
        let Some(stored) = &table.stored else { return self.open_when_recovered() };
        let (found, format) = (stored.incarnation, stored.format);
        if format > FORMAT {
            let why = format!("table {name}: its state has format {format}, this urutau knows {FORMAT}: run a newer urutau");
            return self.stop(StopReason::Config { why });
        }
        if self.starting.record_was_missing {
            let why = format!(
                "table {name} has a state of life {found}, but the pipeline's record is missing: without it nobody can tell what \
                 the source may have forgotten. Restore the record, or drop the target tables to begin anew"
            );
            return self.stop(StopReason::Config { why });
        }
        if found > self.incarnation && !planted!(self.config, StatesBeforeIncarnation) {
            self.mark("superseded-at-recovery");
            return self.supersede(found);
        }
        self.open_when_recovered();
    }

    fn open_when_recovered(&mut self) {
        let recovered = self.tables.values().all(|t| t.recovering.is_none() && t.recovery_retry.is_none());
        if self.stage == Stage::Recovering && !self.tables.is_empty() && recovered {
            self.start_reached(Stage::Opening);
        }
    }

    /// A command that only reads did not happen.
    pub(super) fn failed(&mut self, id: CommandId, why: String) {
        if self.starting.asked == Some(id) {
            return self.start_failed(why);
        }
        let (now, retry) = (self.now, self.config.retry);
        if let Some(table) = self.tables.values_mut().find(|t| t.recovering == Some(id)) {
            table.recovering = None;
            table.recovery_retry = Some(Backoff::after(table.recovery_retry, now, &retry));
            table.why = Some(why);
            return self.mark("start-retried");
        }
        self.flight_failed(id, why);
    }

    /// A command that only reads can never work.
    pub(super) fn refused(&mut self, id: CommandId, why: String) {
        if self.starting.asked == Some(id) || self.tables.values().any(|t| t.recovering == Some(id)) {
            return self.stop(StopReason::Config { why });
        }
        self.flight_refused(id, why);
    }

    // ---- the log

    pub(super) fn log_opened(&mut self, id: CommandId, session: Session, identity: LogIdentity, floor: Position, end: Position) {
        if self.starting.asked != Some(id) || self.stage != Stage::Opening {
            return self.stale_answer();
        }
        let first = self.log.first_end.is_none();
        if let Err(why) = self.same_log(&identity) {
            return self.stop(StopReason::PositionLost { why });
        }
        self.start_reached(Stage::Running);
        self.log.session = session;
        self.log.identity = identity;
        self.log.floor = floor.clone();
        self.log.end = end.clone();
        // What is said in a session counts from what can't be streamed any more anyway.
        self.log.said = floor.clone();
        self.log.acknowledged.join_with(&floor);
        if first {
            self.log.first_end = Some(end);
            for name in self.names() {
                self.start_table(&name);
            }
            if planted!(self.config, DiscardsAtStart) {
                for table in self.names() {
                    let incarnation = self.incarnation;
                    self.push(Output::DiscardOlder { table, incarnation });
                }
            }
        } else {
            self.judge_again();
        }
        if let Err(why) = self.not_ahead() {
            if !planted!(self.config, AheadClamped) {
                return self.stop(StopReason::PositionLost { why });
            }
            for table in self.tables.values_mut() {
                table.taken = Cut::at(table.taken.upto().meet(&self.log.end));
            }
        }
        self.go_back();
    }

    /// A position of another history is refused (rule P4).
    fn same_log(&self, identity: &LogIdentity) -> Result<(), String> {
        if planted!(self.config, IdentityIgnored) {
            return Ok(());
        }
        let stored = self.tables.values().filter_map(|t| t.stored.as_ref()).map(|s| &s.identity);
        for known in stored.chain([&self.record.known.identity, &self.log.identity]) {
            if let Some((stream, was, is)) = known.differs_from(identity) {
                let stream = if stream.as_str().is_empty() { String::from("the log") } else { format!("stream '{stream}'") };
                return Err(format!(
                    "{stream} is another one than the copies were made from: it was recognised by '{was}' then and by '{is}' now. \
                     Put the old one back, or begin anew with another pipeline name and another target"
                ));
            }
        }
        Ok(())
    }

    /// A stored position beyond the source's end is a typed stop (rule P4).
    fn not_ahead(&self) -> Result<(), String> {
        for (name, table) in self.tables.iter().filter(|(_, t)| t.phase != Phase::NeedsSnapshot) {
            for (stream, offset) in table.taken.upto().streams() {
                let end = self.log.end.offset(stream);
                if self.log.identity.streams.contains_key(stream) && offset > end && offset > self.log.received.offset(stream) {
                    let stream = if stream.as_str().is_empty() { String::new() } else { format!(" of stream '{stream}'") };
                    return Err(format!(
                        "table {name} was committed up to {}{stream}, but the log ends at {} now: it was cut short or set back. \
                         Put the log back, or begin anew with another pipeline name and another target",
                        offset.0, end.0
                    ));
                }
            }
        }
        Ok(())
    }

    /// Decides where a table stands when its stored state has become known: at the start, and after a conflict.
    pub(crate) fn start_table(&mut self, name: &TableName) {
        let Some(table) = self.tables.get(name) else { return };
        let stored = table.stored.clone();
        let entry = self.record.known.tables.get(name).cloned();
        let mut cut = effective(&self.config, &self.record.known, name, stored.as_ref());
        let generation = table.generation();
        let (mut phase, mut needed) = match &entry {
            Some(e)
                if e.phase == Phase::NeedsSnapshot
                    && e.generation > generation
                    && !planted!(self.config, ReaddedTableTrusted) =>
            {
                (Phase::NeedsSnapshot, e.generation)
            }
            Some(e) if matches!(e.phase, Phase::NeedsSnapshot | Phase::Pending | Phase::Snapshotting) => (Phase::Streaming, 0),
            Some(e) => (e.phase, 0),
            // A state that the record does not know is not ours to go on with.
            None if stored.is_some() => (Phase::NeedsSnapshot, generation + 1),
            None => (Phase::Streaming, 0),
        };
        let joins = stored.is_none() && phase == Phase::Streaming && self.joins(name, entry.as_ref().map(|e| e.phase));
        if joins || planted!(self.config, StartOptionSurvives) {
            self.starting.joined.insert(name.clone(), stored.is_some());
            if self.config.tables.get(name).is_some_and(|t| t.join == Join::Now) || planted!(self.config, StartOptionSurvives) {
                cut = Cut::at(self.log.end.clone());
            }
        }
        // A row's coordinate holds only on the server whose log it is of; whole transactions stand (rule P2).
        if stored.as_ref().is_some_and(|s| s.identity.coordinates != self.log.identity.coordinates) && !cut.is_whole() {
            self.mark("coordinates-of-another-server");
            cut = Cut::at(cut.upto().clone());
            if self.config.tables.get(name).is_some_and(|t| !t.keyed) {
                phase = Phase::NeedsSnapshot;
                needed = generation + 1;
            }
        }
        let floor = self.log.floor.join(&self.log.acknowledged);
        let late = phase == Phase::Streaming && entry.as_ref().is_some_and(|e| e.phase == Phase::NeedsSnapshot);
        let lost = phase != Phase::NeedsSnapshot && self.lacks(&cut, &floor);
        let new_with_snapshot = joins && self.config.tables.get(name).is_some_and(|t| t.join == Join::Snapshot);
        if phase != Phase::NeedsSnapshot && !late {
            self.say_started(name, stored.as_ref(), &floor, lost);
        }
        if lost || new_with_snapshot {
            phase = Phase::NeedsSnapshot;
            needed = generation + 1;
        }
        let Some(table) = self.tables.get_mut(name) else { return };
        table.phase = phase;
        table.needed = needed;
        table.taken = cut;
        table.blocked = None;
        table.sequence = table.sequence.max(stored.as_ref().map_or(0, |s| s.sequence));
        table.recent.clear();
        if let Some(state) = &stored {
            if state.commit.incarnation == self.incarnation {
                table.commits = table.commits.max(state.commit.number);
            }
            table.recent.push_back(crate::checkpoint::Recent { commit: state.commit, before: Position::START });
        }
        if lost {
            table.why = Some(format!("the log can be read from {floor} on only, and its copy stands at {:?}", table.taken));
            self.mark("position-lost");
        }
        if !(lost && planted!(self.config, LostTableInMeet)) {
            self.want(name, phase);
        }
        let must_store_base =
            joins && phase == Phase::Streaming && self.config.tables.get(name).is_some_and(|t| t.join == Join::Now);
        if must_store_base {
            self.store_base(name);
        }
    }

    /// Does the start option decide where this table begins? Only where nothing is stored of it.
    fn joins(&self, name: &TableName, recorded: Option<Phase>) -> bool {
        let wants_base = self.config.tables.get(name).is_some_and(|t| t.join != Join::Beginning);
        recorded.is_none() || (recorded == Some(Phase::Pending) && wants_base)
    }

    /// Lost is: the cut does not contain what can no longer be streamed. Not 'is less than': an incomparable cut is lost.
    fn lacks(&self, cut: &Cut, floor: &Position) -> bool {
        if planted!(self.config, LostOnlyIfBelow) {
            return floor.contains(cut.upto()) && cut.upto() != floor;
        }
        !cut.upto().contains(floor)
    }

    /// 'Lost' is only said once the record that says so is stored: a life that slept since its take would judge by an old one.
    fn say_started(&mut self, name: &TableName, stored: Option<&TableState>, floor: &Position, lost: bool) {
        let started = Output::Started { table: name.clone(), state: Self::boxed_state(stored), floor: floor.clone(), lost };
        if lost { self.record.verdicts.push(started) } else { self.push(started) }
    }

    /// The log was opened anew: what each table has taken is judged by what can be streamed now.
    fn judge_again(&mut self) {
        let floor = self.log.floor.clone();
        for name in self.names() {
            let Some(table) = self.tables.get(&name) else { continue };
            if table.phase != Phase::NeedsSnapshot && !table.taken.upto().contains(&floor) {
                let why = format!("the log can be read from {floor} on only, and this table had got to {:?}", table.taken);
                self.mark("position-lost-on-reopen");
                self.needs_snapshot(&name, why);
                if let Some(table) = self.tables.get_mut(&name) {
                    table.taken = Cut::at(floor.clone());
                }
            }
        }
    }
}
