//! What the source may forget, and the pipeline record that proves it (rules A).
//!
//! An idle table stands where its last row put it, perhaps far behind. That nothing of it lies between there and here is
//! proven by the record's *quiet* position: at or below it no member has a row that is not durable. The record names, for
//! each table, the commit of which this is true; it is stored before the acknowledgement that relies on it. The record is a
//! function of memory, stored whenever it differs, never because something happened.

mod hold;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::checkpoint::Table;
use crate::config::Config;
use crate::coordinator::{Coordinator, Output, Stage, StopReason, forged_record};
use crate::flow::Backoff;
use crate::id::{CommandId, CommitId, Incarnation, StreamName, TableName, Token};
use crate::outcome::StoreOutcome;
use crate::planted::planted;
use crate::position::{Cut, LogIdentity, Position};
use crate::state::{FORMAT, Phase, PipelineState, TableRecord, TableState};
use crate::time::Time;

/// The pipeline record as it is known to be stored, and how it is being replaced.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Record {
    pub(crate) known: PipelineState,
    token: Token,
    flight: Option<(CommandId, PipelineState)>,
    retry: Option<Backoff>,
    /// Not before this only because the quiet position rose.
    next: Time,
    /// What each table's phase should be in the record.
    wanted: BTreeMap<TableName, Wanted>,
    /// A table has halted, perhaps for another reason than before, and no record was made since. The reasons themselves are not compared:
    /// they are for people.
    reason_given: bool,
    /// What is said to people once the record that says so is stored.
    pub(crate) verdicts: Vec<(TableName, Output)>,
    /// What failed last, for people.
    why: String,
}

/// What the record should say of a table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Wanted {
    phase: Phase,
    /// As it is stored.
    why: Option<String>,
}

/// How the stored record differs from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Difference {
    /// Not at all.
    None,
    /// In what can wait for its interval.
    Some,
    /// In a phase, a table, or a name that something waits for.
    Urgent,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            known: PipelineState::default(),
            token: Token::from(""),
            flight: None,
            retry: None,
            next: Time(0),
            wanted: BTreeMap::new(),
            reason_given: false,
            verdicts: Vec::new(),
            why: String::new(),
        }
    }
}

impl Record {
    pub(crate) fn adopt_read(&mut self, known: PipelineState, token: Token) {
        self.known = known;
        self.token = token;
    }

    /// Is a replacement under way?
    pub(crate) fn is_being_stored(&self) -> bool {
        self.flight.is_some()
    }

    /// Is no replacement under way, and nothing to be said once one is stored?
    pub(crate) fn is_settled(&self) -> bool {
        self.flight.is_none() && self.verdicts.is_empty()
    }
}

/// Where a table's copy really stands (rule A2). By list, never by number.
pub(crate) fn effective(config: &Config, known: &PipelineState, name: &TableName, stored: Option<&TableState>) -> Cut {
    let Some(state) = stored else { return Cut::default() };
    if planted!(config, IgnoresQuietAtStart) {
        return state.cut.clone();
    }
    let named = known.tables.get(name).and_then(|e| e.named);
    if planted!(config, LineageByNumber) && is_named(config, named, state) {
        let mut cut = state.cut.clone();
        cut.join_position(&known.quiet);
        return cut;
    }
    known.effective_cut(name, state)
}

/// Does the record speak of this state?
fn is_named(config: &Config, named: Option<CommitId>, state: &TableState) -> bool {
    let built_upon = |commit: CommitId| {
        if planted!(config, LineageByNumber) { state.commit > commit } else { state.ancestors.contains(commit) }
    };
    named.is_some_and(|commit| commit == state.commit || built_upon(commit))
}

impl Coordinator {
    // ---- quiet

    /// The meet of what every member has complete, never beyond what was received.
    pub(crate) fn low_water(&self) -> Position {
        if planted!(self.config, AcknowledgesReceived) || planted!(self.config, RecordListsIdleOnly) {
            return self.log.received.clone();
        }
        let members = self.tables.values().filter(|t| t.is_member() && !self.is_left_out(t));
        let mut completes =
            members.map(|t| if planted!(self.config, QuietByArrival) { self.complete_by_arrival(t) } else { t.complete() });
        let low = if planted!(self.config, HighestInsteadOfMeet) {
            completes.max_by_key(|p| p.beyond(&Position::START)).cloned()
        } else if planted!(self.config, MinimumInsteadOfMeet) {
            completes.min_by_key(|p| p.beyond(&Position::START)).cloned()
        } else {
            completes.next().map(|first| completes.fold(first.clone(), |low, complete| low.meet(complete)))
        };
        match low {
            Some(low) => low.meet(&self.log.received.join(&self.record.known.quiet)),
            None => self.log.received.clone(),
        }
    }

    /// Planted bugs that leave tables out of the meet.
    fn is_left_out(&self, table: &Table) -> bool {
        let idle = table.stored.as_ref().is_some_and(|s| table.is_settled() && !s.cut.upto().contains(table.taken.upto()));
        (planted!(self.config, HaltedIgnoredInMeet) && matches!(table.phase, Phase::Halted | Phase::Paused))
            || (planted!(self.config, IdleIgnoredInMeet) && (idle || table.blocked.is_some()))
    }

    /// A planted bug: what the reader had received counts, not what the table had taken.
    fn complete_by_arrival<'a>(&'a self, table: &'a Table) -> &'a Position {
        if table.is_settled() { &self.log.received } else { table.complete() }
    }

    /// What the record's quiet position would be now, if that is more than what is stored: it never decreases. While a table
    /// is unclaimed nothing may rely on what this life saw of it.
    fn risen_quiet(&self) -> Option<Position> {
        let stored = &self.record.known.quiet;
        if self.tables.keys().any(|name| self.is_unclaimed(name)) {
            return None;
        }
        let low = self.low_water();
        (!stored.contains(&low)).then(|| stored.join(&low))
    }

    // ---- the record

    fn record_now(&self) -> PipelineState {
        let quiet = self.risen_quiet().unwrap_or_else(|| self.record.known.quiet.clone());
        let mut tables = self.record.known.tables.clone();
        for (name, entry) in &mut tables {
            // A table that was removed from the pipeline is released like any other: before the acknowledgement passes it.
            if !self.tables.contains_key(name) && entry.phase != Phase::NeedsSnapshot {
                entry.phase = Phase::NeedsSnapshot;
                entry.generation = entry.generation.saturating_add(1);
                entry.named = None;
                entry.why = Some("the pipeline had no such table any more".into());
            }
        }
        for (name, table) in &self.tables {
            let (phase, generation, named) = self.entry_now(name, table, &quiet);
            let skipped = tables.remove(name).map(|entry| entry.skipped).unwrap_or_default();
            let why = self.wanted_reason(name, phase).cloned();
            let mut entry = TableRecord { phase, generation, named, skipped, why };
            if let Some(skipped) = self.skipped(table) {
                entry.skip(skipped);
            }
            tables.insert(name.clone(), entry);
        }
        let identity = self.identity_of(&quiet);
        PipelineState { format: FORMAT, incarnation: self.incarnation, identity, quiet, tables }
    }

    /// The record names the log of its quiet position, no more: before there is one, nothing binds it to a log.
    fn identity_of(&self, quiet: &Position) -> LogIdentity {
        let known = &self.record.known.identity;
        let of = |stream: &StreamName| self.log.identity.streams.get(stream).or_else(|| known.streams.get(stream)).cloned();
        let streams = quiet.streams().filter_map(|(stream, _)| Some((stream.clone(), of(stream)?))).collect();
        let lineage = self.log.identity.lineage.clone().filter(|_| *quiet != Position::START);
        LogIdentity { streams, lineage, coordinates: self.log.identity.coordinates.clone() }
    }

    /// Is the log that the record names still the one?
    fn names_its_log(&self) -> bool {
        let known = &self.record.known.identity;
        let named = |(stream, identity)| known.streams.get(stream).is_none_or(|k| k == identity);
        let whole = known.lineage == self.log.identity.lineage || self.record.known.quiet == Position::START;
        known.coordinates == self.log.identity.coordinates && whole && self.log.identity.streams.iter().all(named)
    }

    /// What the record would say of a table now, but for what it was told to skip: phase, generation, the commit that it names.
    fn entry_now(&self, name: &TableName, table: &Table, quiet: &Position) -> (Phase, u64, Option<CommitId>) {
        match self.wanted_phase(name, table) {
            Phase::NeedsSnapshot => (Phase::NeedsSnapshot, self.needed(name, table), None),
            phase => (phase, table.generation(), self.named(table, quiet)),
        }
    }

    fn wanted_phase(&self, name: &TableName, table: &Table) -> Phase {
        match self.record.wanted.get(name).map_or(table.phase, |wanted| wanted.phase) {
            // Until its base is stored the next life would begin somewhere else.
            Phase::Streaming | Phase::Snapshotting | Phase::Paused | Phase::Halted
                if table.is_blank() && (self.begins_now(name) || self.begins_with_snapshot(name)) =>
            {
                Phase::Pending
            }
            phase => phase,
        }
    }

    /// Why the record would call a table halted, or in need of a snapshot.
    fn wanted_reason(&self, name: &TableName, phase: Phase) -> Option<&String> {
        self.record.wanted.get(name).filter(|wanted| wanted.phase == phase)?.why.as_ref()
    }

    /// The generation that ends a table's need of a snapshot: the one that the record wants, or one above any that it knows.
    pub(crate) fn needed(&self, name: &TableName, table: &Table) -> u64 {
        let wanted = |e: &TableRecord| if e.phase == Phase::NeedsSnapshot { e.generation } else { e.generation + 1 };
        let recorded = self.record.known.tables.get(name).map_or(0, wanted);
        recorded.max(table.needed).max(table.generation() + 1)
    }

    /// The oldest commit that, as the table's state, would lack nothing up to `quiet` (rule A2). None for a table that was set
    /// back below it, until it has passed it.
    fn named(&self, table: &Table, quiet: &Position) -> Option<CommitId> {
        let idle_only = planted!(self.config, RecordListsIdleOnly);
        if (!table.complete().contains(quiet) && !idle_only) || !table.is_member() || (idle_only && !table.is_settled()) {
            return None;
        }
        let mut oldest = table.recent.len().checked_sub(1)?;
        while oldest > 0
            && table.recent.get(oldest).is_some_and(|r| !r.logged || r.before.contains(quiet))
            && table.recent.get(oldest - 1).is_some_and(|r| self.is_built_upon(table, r.commit))
            && !planted!(self.config, RecordNamesNewest)
        {
            oldest -= 1;
        }
        // A commit that waits must not push the named one out of the list of ancestors: then a later one is named.
        let waits = table.flight.is_none() && !table.closed.is_empty();
        while oldest + 1 < table.recent.len()
            && waits
            && table.recent.get(oldest).is_some_and(|r| self.crowds_out(table, r.commit))
        {
            oldest += 1;
        }
        table.recent.get(oldest).map(|r| r.commit)
    }

    /// Is the table's state this commit, or does it list it? One that was pushed out of the list must not be named again: nothing
    /// would ever be acknowledged by it.
    fn is_built_upon(&self, table: &Table, commit: CommitId) -> bool {
        table.stored.as_ref().is_some_and(|state| is_named(&self.config, Some(commit), state))
    }

    /// Would one more commit push this one out of the table's list of ancestors?
    fn crowds_out(&self, table: &Table, commit: CommitId) -> bool {
        let Some(state) = &table.stored else { return false };
        state.commit != commit && state.ancestors.crowds_out(commit, state.commit, self.config.ancestor_runs_max)
    }

    /// Would one more commit push the one that the record names out of the table's list of ancestors?
    pub(crate) fn is_crowded(&self, name: &TableName) -> bool {
        let Some(named) = self.record.known.tables.get(name).and_then(|e| e.named) else { return false };
        self.tables.get(name).is_some_and(|table| self.crowds_out(table, named))
    }

    /// How the record differs from memory. Asked after every input: nothing is built for it.
    pub(crate) fn record_difference(&self) -> Difference {
        let known = &self.record.known;
        let risen = self.risen_quiet();
        let quiet = risen.as_ref().unwrap_or(&known.quiet);
        let mut most = Difference::None;
        for (name, table) in &self.tables {
            let Some(entry) = known.tables.get(name) else { return Difference::Urgent };
            let (phase, generation, named) = self.entry_now(name, table, quiet);
            let awaited = named != entry.named && self.is_crowded(name);
            let skips = self.skipped(table).is_some_and(|skipped| !entry.skipped.contains(&skipped));
            let needs = phase == Phase::NeedsSnapshot && generation != entry.generation;
            if skips || phase != entry.phase || needs || awaited {
                return Difference::Urgent;
            }
            // That there is a reason, not which one: a machine that knows reasons by their hashes does the same.
            let explains = self.wanted_reason(name, phase).is_some() != entry.why.is_some();
            if (generation, named) != (entry.generation, entry.named) || explains {
                most = Difference::Some;
            }
        }
        let removed =
            |(name, entry): (&TableName, &TableRecord)| !self.tables.contains_key(name) && entry.phase != Phase::NeedsSnapshot;
        if known.tables.len() > self.tables.len() && known.tables.iter().any(removed) {
            return Difference::Urgent;
        }
        if risen.is_some() || !self.names_its_log() || self.record.reason_given { Difference::Some } else { most }
    }

    pub(crate) fn record_due_at(&self) -> Option<Time> {
        if self.record.flight.is_some() {
            return None;
        }
        if let Some(retry) = self.record.retry {
            return Some(retry.at);
        }
        match self.record_difference() {
            Difference::None => None,
            Difference::Some if !self.drain.is_closing() => Some(self.record.next),
            Difference::Some | Difference::Urgent => Some(self.now),
        }
    }

    pub(crate) fn store_what_differs(&mut self) {
        if let Some(retry) = self.record.retry
            && retry.is_hopeless(self.now, &self.config.retry)
        {
            let why = format!("the pipeline's record could not be stored: {}", self.record.why);
            return self.stop(StopReason::Unreachable { why });
        }
        if self.record_due_at().is_some_and(|at| at <= self.now) {
            let new = self.record_now();
            self.record.next = self.now + self.config.record_interval;
            if planted!(self.config, AcknowledgesBeforeRecord) {
                self.acknowledge(&new.quiet.clone());
            }
            self.replace_record(new);
        }
    }

    pub(crate) fn replace_record(&mut self, new: PipelineState) {
        let id = self.next_id();
        self.record.flight = Some((id, new.clone()));
        self.record.reason_given = false;
        let expected = self.record.token.clone();
        self.push(Output::StorePipelineState { id, expected, new: Box::new(new) });
    }

    pub(crate) fn record_stored(&mut self, id: CommandId, outcome: StoreOutcome) {
        if self.record.flight.as_ref().map(|f| f.0) != Some(id) {
            return self.stale_answer();
        }
        let Some((_, new)) = self.record.flight.take() else { return };
        if self.stage == Stage::Taking {
            let why = match &outcome {
                StoreOutcome::Stored { .. } => String::new(),
                StoreOutcome::Conflict { .. } => String::from("another life took the incarnation first"),
                StoreOutcome::Unknown { why } => why.clone(),
            };
            let stored = matches!(outcome, StoreOutcome::Stored { .. });
            if let StoreOutcome::Stored { token } = outcome {
                self.record.adopt_read(new, token);
            }
            return self.incarnation_taken(stored, why);
        }
        match outcome {
            StoreOutcome::Stored { token } => {
                self.is_proven_newest();
                self.record.token = token;
                self.adopt(new);
            }
            StoreOutcome::Conflict { found, token } => {
                let newest = found.as_ref().map_or(Incarnation(0), |f| f.incarnation);
                match found {
                    // A write of ours whose answer was lost has landed.
                    Some(found) if newest == self.incarnation => {
                        if let Some(what) = found.impossible() {
                            return self.stop(StopReason::Config { why: forged_record(&what) });
                        }
                        self.mark("record-landed-late");
                        self.is_proven_newest();
                        self.record.token = token;
                        self.adopt(*found);
                    }
                    _ => self.supersede(newest.max(self.incarnation.next().unwrap_or(self.incarnation))),
                }
            }
            StoreOutcome::Unknown { why } => {
                self.mark("record-unknown");
                self.record.why = why;
                self.record.retry = Some(Backoff::after(self.record.retry, self.now, &self.config.retry));
            }
        }
    }

    /// A record is known to be stored: what waited for it goes on.
    fn adopt(&mut self, new: PipelineState) {
        self.record.retry = None;
        self.record.known = new;
        for name in self.names() {
            self.learn_from_record(&name);
        }
        self.judge_record();
    }

    /// The record was made before a table was set back, perhaps, and may prove more of the state that was found than the table
    /// has taken since. Nothing of the table lies there; without this the next record would have to take the proof back.
    fn learn_from_record(&mut self, name: &TableName) {
        let Some(table) = self.tables.get(name).filter(|t| t.is_member()) else { return };
        let stands = effective(&self.config, &self.record.known, name, table.stored.as_ref());
        if table.taken.upto().contains(stands.upto()) && table.complete().contains(stands.upto()) {
            return;
        }
        if planted!(self.config, LearnsNothingFromRecord) {
            return;
        }
        self.mark("learned-from-record");
        let Some(table) = self.tables.get_mut(name) else { return };
        table.taken.join_position(stands.upto());
        let flying = table.flight.iter_mut().map(|f| &mut f.point);
        for point in flying.chain(&mut table.closed).chain([&mut table.open]) {
            point.before.join_with(stands.upto());
        }
    }

    /// What waits for a stored record is said once the record says so, too. One that was under way when the verdict was reached
    /// does not.
    pub(crate) fn say_verdicts(&mut self) {
        if self.record.verdicts.is_empty() {
            return;
        }
        for (name, verdict) in core::mem::take(&mut self.record.verdicts) {
            let says_so = self.record.known.tables.get(&name).is_some_and(|e| e.phase == Phase::NeedsSnapshot);
            if says_so { self.push(verdict) } else { self.record.verdicts.push((name, verdict)) }
        }
    }

    // ---- acknowledging

    /// What may be acknowledged: the quiet position of the *stored* record, where it names every member by a commit that the
    /// member's state is, or is built upon. Nothing counts that only this life knows: a table's own cut may have passed the
    /// quiet position by a commit that a newer life, which has read the table before, did not see.
    fn acknowledgeable(&self) -> Position {
        if planted!(self.config, AcknowledgesTooMuch) {
            return self.record.known.quiet.streams().map(|(s, _)| (s.clone(), crate::position::Offset(1 << 60))).collect();
        }
        let quiet = &self.record.known.quiet;
        // Not beyond where the reader is: after it went back it still reads what nobody may need any more.
        let mut upto = quiet.meet(&self.low_water()).meet(&self.log.read);
        let lenient = planted!(self.config, RecordListsIdleOnly) || planted!(self.config, AcknowledgesReceived);
        for (name, entry) in &self.record.known.tables {
            let table = self.tables.get(name);
            let generation = table.map_or(0, Table::generation);
            let released = entry.phase == Phase::NeedsSnapshot && (table.is_none() || entry.generation > generation);
            if released || lenient || table.is_some_and(|t| self.is_left_out(t)) {
                continue;
            }
            // A table that the record still holds and this pipeline does not name: nothing is known of its state.
            let Some(table) = table else { return Position::START };
            if planted!(self.config, AcknowledgesByOwnCuts) {
                upto = upto.meet(effective(&self.config, &self.record.known, name, table.stored.as_ref()).upto());
            } else if !table.stored.as_ref().is_some_and(|state| is_named(&self.config, entry.named, state)) {
                return Position::START;
            }
        }
        let all_recorded = self.tables.keys().all(|name| self.record.known.tables.contains_key(name));
        if all_recorded { upto } else { Position::START }
    }

    /// Level, not edge: what may be acknowledged can rise without a new record, and is said again in each session.
    pub(crate) fn acknowledge_what_is_stored(&mut self) {
        if self.config.source_keeps_all {
            return;
        }
        if planted!(self.config, AcknowledgedOnlyOnce) && self.log.acknowledged.contains(&self.acknowledgeable()) {
            return;
        }
        let upto = self.acknowledgeable();
        self.acknowledge(&upto);
    }

    fn acknowledge(&mut self, upto: &Position) {
        if self.log.said.contains(upto) {
            return;
        }
        let upto = self.log.said.join(upto);
        self.log.said = upto.clone();
        self.log.acknowledged.join_with(&upto);
        let session = self.log.session;
        self.push(Output::Acknowledge { session, upto });
    }
}
