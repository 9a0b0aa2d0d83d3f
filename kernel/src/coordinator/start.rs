//! How a life begins, and how it looks at the log anew after its session was lost (rules R1 to R4, P4).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Coordinator, Output, Stage, StopReason};
use crate::acknowledge::effective;
use crate::checkpoint::{Recent, Table};
use crate::config::Join;
use crate::flow::{Backoff, scattered_log};
use crate::id::{CommandId, Incarnation, Session, TableName, Token};
use crate::planted::planted;
use crate::position::{Cut, Difference, LogIdentity, Position};
use crate::state::{FORMAT, Phase, PipelineState, TableState};
use crate::time::Duration;

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
            // Once rows are on their way they are committed; the log is not needed for that.
            let reason = reason.clone();
            if !self.has_begun() {
                self.stop(reason);
            }
            return;
        }
        if self.stage == Stage::Recovering {
            return self.recover_again();
        }
        if self.starting.asked.is_some() || self.starting.retry.is_some_and(|r| self.now < r.at) {
            return;
        }
        if self.starting.retry.is_some_and(|r| r.is_hopeless(self.now, &self.config.retry)) {
            let why = self.starting.why.clone().unwrap_or_default();
            return self.end_with(StopReason::Unreachable { why });
        }
        if let Some(name) = self.is_told_in_no_order() {
            let why = format!(
                "the source may tell two changes of one row in another order at the next reading, and table {name} is kept by key: its \
                 copy could go back to an older row. Read from a server that keeps the order of commits, or append the table's changes"
            );
            return self.stop(StopReason::Config { why });
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

    /// A table that this source is refused for (rule P5).
    fn is_told_in_no_order(&self) -> Option<TableName> {
        if self.config.source_keeps_key_order || planted!(self.config, KeyOrderNotAsked) {
            return None;
        }
        self.config.tables.iter().find(|(_, table)| table.keyed).map(|(name, _)| name.clone())
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
        if self.timer_validated(id, state.as_ref()) {
            return;
        }
        if self.starting.asked != Some(id) {
            return self.validated(id, state);
        }
        self.starting.asked = None;
        if self.stage == Stage::Validating {
            let newest = state.map_or(Incarnation(0), |s| s.incarnation);
            if newest > self.incarnation {
                return self.supersede(newest);
            }
            self.is_proven_newest();
            return self.start_reached(Stage::Opening);
        }
        self.starting.record_was_missing = state.is_none();
        let known = state.unwrap_or_default();
        if known.format > FORMAT {
            let why =
                format!("the pipeline's record has format {}, this urutau knows {FORMAT}: run a newer urutau", known.format);
            return self.stop(StopReason::Config { why });
        }
        if let Some(what) = known.impossible() {
            return self.stop(StopReason::Config { why: forged_record(&what) });
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
        let Some(next) = known.incarnation.next() else {
            let why = format!(
                "this pipeline has begun {} times, and its rows' versions know no later life. Begin anew with another pipeline name \
                 and another target",
                known.incarnation
            );
            return self.stop(StopReason::Config { why });
        };
        self.incarnation = next;
        let new = PipelineState { format: FORMAT, incarnation: self.incarnation, ..known };
        self.stage = Stage::Taking;
        self.record.adopt_read(new.clone(), token);
        self.replace_record(new);
    }

    /// The take's answer. One whose fate is unknown is not taken: the record is read again, the next number is.
    pub(crate) fn incarnation_taken(&mut self, stored: bool, why: String) {
        if stored {
            self.is_proven_newest();
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
        let (found, format, impossible) = (stored.incarnation, stored.format, stored.impossible());
        if format > FORMAT {
            let why = format!("table {name}: its state has format {format}, this urutau knows {FORMAT}: run a newer urutau");
            return self.stop(StopReason::Config { why });
        }
        if let Some(what) = impossible {
            let why = format!("table {name}: {}", forged_state(&what));
            return self.stop(StopReason::Config { why });
        }
        // One of our own number is another life's, too: this one has written nothing yet.
        let shares = found == self.incarnation && !planted!(self.config, UnknownTakeTrusted);
        if (found > self.incarnation || shares) && !planted!(self.config, StatesBeforeIncarnation) {
            self.mark("superseded-at-recovery");
            return self.supersede(found);
        }
        if self.starting.record_was_missing {
            let why = format!(
                "table {name} has a state of life {found}, but the pipeline's record is missing: without it nobody can tell what \
                 the source may have forgotten. Restore the record, or drop the target tables to begin anew"
            );
            return self.stop(StopReason::Config { why });
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
        if self.rows_read_failed(id, &why) {
            return;
        }
        if !self.timer_validation_failed(id, &why) && !self.snapshot_read_failed(id, &why) {
            self.flight_failed(id, why);
        }
    }

    /// A command that only reads can never work.
    pub(super) fn refused(&mut self, id: CommandId, why: String) {
        if self.starting.asked == Some(id)
            || self.is_timer_validation(id)
            || self.tables.values().any(|t| t.recovering == Some(id))
        {
            return self.stop(StopReason::Config { why });
        }
        if self.snapshot_read_refused(id, &why) || self.rows_read_refused(id, &why) {
            return;
        }
        self.flight_refused(id, why);
    }

    // ---- the log

    pub(super) fn log_opened(&mut self, id: CommandId, session: Session, identity: LogIdentity, floor: Position, end: Position) {
        if self.starting.asked != Some(id) || self.stage != Stage::Opening {
            return self.stale_answer();
        }
        let first = self.log.first_end.is_none();
        if !first {
            self.void_chunks_of_session();
            self.void_rows_of_session();
        }
        if let Err(why) = self.same_log(&identity) {
            self.starting.asked = None;
            return self.end_with(StopReason::PositionLost { why });
        }
        let most = self.config.intervals_max;
        if let Some(stream) = end.scattered(most) {
            self.starting.asked = None;
            return self.end_with(scattered_log(stream, most));
        }
        self.start_reached(Stage::Running);
        self.log.session = session;
        let other_server = !first && self.log.identity.coordinates != identity.coordinates;
        if other_server {
            self.close_what_is_divided();
            self.log.server += 1;
        }
        self.log.identity = identity;
        self.log.floor = floor.clone();
        self.log.end = end.clone();
        self.log.known_end = end.clone();
        // What is said in a session counts from what can't be streamed any more anyway.
        self.log.said = floor.clone();
        self.log.acknowledged.join_with(&floor);
        self.forget_what_is_gone();
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
            if other_server {
                self.begin_divided_anew();
            }
            self.judge_again();
        }
        if let Err(why) = self.not_ahead() {
            if !planted!(self.config, AheadClamped) {
                let reason = StopReason::PositionLost { why };
                return if first { self.stop(reason) } else { self.drain.begin(reason) };
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
            if let Some(Difference { stream, was, is }) = known.differs_from(identity) {
                let named = stream.filter(|stream| !stream.as_str().is_empty());
                let stream = named.map_or(String::from("the log"), |stream| format!("stream '{stream}'"));
                return Err(format!(
                    "{stream} is another one than the copies were made from: it was recognised by '{was}' then and by '{is}' now. \
                     Put the old one back, or begin anew with another pipeline name and another target"
                ));
            }
        }
        Ok(())
    }

    /// Decides what a table does in this life, and where it stands.
    fn start_table(&mut self, name: &TableName) {
        let Some(table) = self.tables.get_mut(name) else { return };
        let trusted = planted!(self.config, ReaddedTableTrusted);
        let phase = match self.record.known.tables.get(name) {
            Some(e) if e.phase == Phase::NeedsSnapshot && e.generation > table.generation() && !trusted => Phase::NeedsSnapshot,
            Some(e) if matches!(e.phase, Phase::NeedsSnapshot | Phase::Pending | Phase::Snapshotting) => Phase::Streaming,
            Some(e) => e.phase,
            // A state that the record does not know is not ours to go on with.
            None if table.stored.is_some() => {
                table.why = Some("the pipeline's record does not know the copy that is there".into());
                Phase::NeedsSnapshot
            }
            None => Phase::Streaming,
        };
        self.stand_at_stored(name, phase);
    }

    /// A table stands where its stored state says, judged by what can be streamed: at the start, and when it is set back.
    pub(crate) fn stand_at_stored(&mut self, name: &TableName, mut phase: Phase) {
        let server = self.log.server;
        let Some(table) = self.tables.get_mut(name) else { return };
        // Whatever this life has taken since is given up.
        table.stored_by = server;
        let stored = table.stored.clone();
        let generation = table.generation();
        self.reset_snapshot(name, stored.as_ref());
        let recorded = self.record.known.tables.get(name).map(|e| e.phase);
        if phase == Phase::Snapshotting {
            // What is stored decides whether it is in the midst of one.
            phase = if self.wants_snapshot(name) { Phase::NeedsSnapshot } else { Phase::Streaming };
        }
        // The record has known a later generation: somebody has taken it away.
        let recorded_generation = self.record.known.tables.get(name).map_or(0, |e| e.generation);
        let fell = recorded_generation > generation && recorded != Some(Phase::NeedsSnapshot);
        let Some(table) = self.tables.get(name) else { return };
        let join = self.config.tables.get(name).map_or(Join::Beginning, |t| t.join);
        let mut cut = self.stored_stand(name);
        let blank = table.is_blank();
        let joins = blank && phase != Phase::NeedsSnapshot && joins(join, recorded);
        if joins || planted!(self.config, StartOptionSurvives) {
            self.starting.joined.insert(name.clone(), !blank);
            if join == Join::Now || planted!(self.config, StartOptionSurvives) {
                cut = Cut::at(self.log.end.clone());
            }
        }
        // What was acknowledged may be gone already, though the log was opened before.
        let floor = self.log.floor.join(&self.log.acknowledged);
        if joins && join == Join::Snapshot {
            // It needs nothing of what the log has lost: its base is still to be fixed.
            cut = cut.join(&Cut::at(floor.clone()));
        }
        // A table that the record names and that has no state is lost, not new (rule R1), unless it began where the log does.
        let vanished = (blank && !joins && join != Join::Beginning) || fell;
        let needs_already = phase == Phase::NeedsSnapshot;
        let lost = !needs_already && (vanished || self.lacks(&cut, &floor) || self.is_divided_elsewhere(name));
        // A snapshot that an older life finished late, below what can be streamed, counts as not done.
        let late = recorded == Some(Phase::NeedsSnapshot) && lost;
        if !needs_already && !late {
            self.say_started(name, stored.as_ref(), &floor, lost);
        }
        let snapshot = if joins && join == Join::Snapshot { Some(self.can_snapshot(name)) } else { None };
        if (lost && !planted!(self.config, LostTableInMeet)) || matches!(snapshot, Some(Err(_))) {
            phase = Phase::NeedsSnapshot;
        }
        let anew = phase == Phase::NeedsSnapshot && self.resnapshots_at_start(name);
        let waits = if join == Join::Now { Duration(0) } else { self.config.checkpoint.age };
        let (incarnation, base_due) = (self.incarnation, self.now + waits);
        let Some(table) = self.tables.get_mut(name) else { return };
        if phase != Phase::NeedsSnapshot && matches!(snapshot, Some(Ok(()))) {
            phase = Phase::Pending;
        } else if phase == Phase::Streaming && table.snapshot.is_some() {
            phase = Phase::Snapshotting;
        }
        table.wants_generation |= anew || phase == Phase::Pending;
        table.phase = phase;
        table.needed = if phase == Phase::NeedsSnapshot { recorded_generation.max(generation + 1) } else { 0 };
        if let Some(Err(why)) = snapshot {
            table.why = Some(format!("it is to begin with a snapshot, and {why}"));
        }
        table.taken = cut;
        table.blocked = None;
        table.base_due = base_due;
        table.recent.clear();
        if let Some(state) = &stored {
            if state.commit.incarnation == incarnation {
                table.commits = table.commits.max(state.commit.number);
                // An older life's rows are below this one's, whatever their numbers are.
                table.sequence = table.sequence.max(state.sequence);
            }
            table.recent.push_back(Recent { commit: state.commit, before: Position::START, logged: true });
        }
        if lost {
            table.why = Some(format!("the log can be read from {floor} on only, and its copy stands at {:?}", table.taken));
            self.mark("position-lost");
        }
        self.want(name, phase);
    }

    /// Where the stored state of a table says that it stands in this log. A row's coordinate holds only on the server whose log
    /// it is of; whole transactions stand (rule P2).
    pub(crate) fn stored_stand(&self, name: &TableName) -> Cut {
        let Some(table) = self.tables.get(name) else { return Cut::default() };
        let stands = effective(&self.config, &self.record.known, name, table.stored.as_ref());
        match &table.stored {
            Some(state) => self.valid_here(&stands, &state.identity, table.stored_by),
            None => stands,
        }
    }

    /// What holds here of a cut that was made under `identity`, by the `server`th server of this life. Nothing of a divided transaction
    /// does once another one was read, though the first may be read again: meanwhile the transaction was begun anew, and rows of its
    /// beginning may have been written behind those that the cut covers.
    pub(crate) fn valid_here(&self, cut: &Cut, identity: &LogIdentity, server: u64) -> Cut {
        let holds = identity.coordinates == self.log.identity.coordinates && server == self.log.server;
        if holds { cut.clone() } else { Cut::at(cut.upto().clone()) }
    }

    /// Is its stored cut inside a transaction that another server numbers otherwise, so that rows would come twice, and does its
    /// target not replace rows by key?
    pub(crate) fn is_divided_elsewhere(&self, name: &TableName) -> bool {
        let keyed = self.config.tables.get(name).is_none_or(|t| t.keyed);
        let stored = self.tables.get(name).and_then(|t| t.stored.as_ref());
        let elsewhere = |s: &TableState| !s.cut.is_whole() && s.identity.coordinates != self.log.identity.coordinates;
        !keyed && stored.is_some_and(elsewhere)
    }

    /// The log is another server's now. What a table has taken of a transaction that begins anew there is a checkpoint of its own, with
    /// the coordinates that it was read by: in one with the second reading, a row would take a value that it lacks from a later row of
    /// the first.
    fn close_what_is_divided(&mut self) {
        for name in self.names() {
            // One that is not kept by key needs a snapshot then.
            let keyed = self.config.tables.get(&name).is_none_or(|t| t.keyed);
            let is_divided = |t: &Table| t.is_member() && !t.taken.is_whole() && t.open.taken > 0;
            if keyed && self.tables.get(&name).is_some_and(is_divided) {
                self.close(&name);
            }
        }
    }

    /// The log is another server's now: a transaction that a table has taken in part begins anew, with that server's coordinates.
    fn begin_divided_anew(&mut self) {
        for name in self.names() {
            let keyed = self.config.tables.get(&name).is_none_or(|t| t.keyed);
            let Some(table) = self.tables.get_mut(&name).filter(|t| t.is_member() && !t.taken.is_whole()) else { continue };
            let taken = Cut::at(table.taken.upto().clone());
            if !keyed {
                let why =
                    format!("it was inside a transaction at {:?}, and another server numbers its rows otherwise", table.taken);
                self.needs_snapshot(&name, why);
            } else {
                table.taken = taken;
            }
            self.mark("coordinates-of-another-server");
        }
    }

    /// Lost is: the cut does not contain what can no longer be streamed. Not 'is less than': an incomparable cut is lost.
    fn lacks(&self, cut: &Cut, floor: &Position) -> bool {
        if planted!(self.config, LostOnlyIfBelow) {
            return floor.contains(cut.upto()) && cut.upto() != floor;
        }
        if planted!(self.config, LostByLastNumber) {
            let last = |position: &Position, stream| position.intervals_of(stream).last().map(|interval| interval.to);
            return floor.streams().any(|(stream, _)| last(cut.upto(), stream) < last(floor, stream));
        }
        !cut.upto().contains(floor)
    }

    /// 'Lost' is only said once the record that says so is stored: a life that slept since its take would judge by an old one.
    fn say_started(&mut self, name: &TableName, stored: Option<&TableState>, floor: &Position, lost: bool) {
        let started = Output::Started { table: name.clone(), state: Self::boxed_state(stored), floor: floor.clone(), lost };
        if lost { self.record.verdicts.push((name.clone(), started)) } else { self.push(started) }
    }

    /// The log was opened anew: what each table has taken is judged by what can be streamed now.
    fn judge_again(&mut self) {
        let floor = self.log.floor.clone();
        for name in self.names() {
            let Some(table) = self.tables.get_mut(&name) else { continue };
            if table.phase == Phase::Pending {
                // Its base is still to be fixed.
                table.taken.join_position(&floor);
            }
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

/// What is said of a record whose numbers no life has written.
pub(crate) fn forged_record(what: &str) -> String {
    format!("the pipeline's record is not what urutau wrote: {what}. Restore it")
}

/// The same of a table's state.
pub(crate) fn forged_state(what: &str) -> String {
    format!("its state in the sink is not what urutau wrote: {what}. Restore it, or drop the table and let it be copied anew")
}

/// Does the start option decide where a table begins that has no state? Only where nothing is stored of it.
fn joins(join: Join, recorded: Option<Phase>) -> bool {
    recorded.is_none() || (recorded == Some(Phase::Pending) && join != Join::Beginning)
}
