//! What outlives a life: the pipeline's record and the tables at their sinks.

use kernel::coordinator::{Input, Output};
use kernel::id::{CommitId, Incarnation, Token};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::state::{PipelineState, TableState};

use super::log::{TABLES, table};

#[derive(Debug)]
pub(super) struct Durable {
    record: Option<PipelineState>,
    record_writes: u64,
    targets: [Target; TABLES.len()],
    has_rows: bool,
}

#[derive(Debug, Default)]
struct Target {
    /// Does it compare a token? Else the highest state counts.
    compares: bool,
    /// The present state last.
    states: Vec<TableState>,
    writes: u64,
}

impl Durable {
    pub(super) fn new(compares: [bool; TABLES.len()]) -> Self {
        let targets = compares.map(|compares| Target { compares, ..Target::default() });
        Self { record: None, record_writes: 0, targets, has_rows: false }
    }

    /// Did any row ever become durable?
    pub(super) fn has_rows(&self) -> bool {
        self.has_rows
    }

    fn record_token(&self) -> Token {
        Token::from(format!("r{}", self.record_writes))
    }

    /// A command lands, and this is its answer; `None` if it is none of ours.
    pub(super) fn land(&mut self, command: &Output) -> Option<Input> {
        Some(match command {
            Output::ReadPipelineState { id } => {
                let state = self.record.clone().map(Box::new);
                Input::PipelineStateRead { id: *id, state, token: self.record_token() }
            }
            Output::StorePipelineState { id, expected, new } => {
                Input::PipelineStateStored { id: *id, outcome: self.store(expected, new) }
            }
            Output::RecoverTable { id, table: name } => {
                let target = &self.targets[table(name)];
                let state = target.states.last().cloned().map(Box::new);
                Input::TableRecovered { id: *id, table: name.clone(), state, token: target.token() }
            }
            Output::Commit { id, table: name, token, state, staged, .. } => {
                let outcome = self.targets[table(name)].commit(token, state);
                self.has_rows |= !staged.is_empty() && matches!(outcome, CommitOutcome::Durable { .. });
                Input::Committed { id: *id, table: name.clone(), outcome }
            }
            Output::Resolve { id, table: name, commit, incarnation } => {
                let target = &self.targets[table(name)];
                let found = target.has(*commit, *incarnation);
                Input::Resolved { id: *id, table: name.clone(), found, token: target.token() }
            }
            _ => return None,
        })
    }

    fn store(&mut self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        let token = self.record_token();
        if *expected != token {
            return StoreOutcome::Conflict { found: self.record.clone().map(Box::new), token };
        }
        if let Some(before) = &self.record {
            assert!(new.quiet.contains(&before.quiet), "the quiet position falls from {} to {}", before.quiet, new.quiet);
            assert!(new.incarnation >= before.incarnation, "a life of {} follows {}", new.incarnation, before.incarnation);
        }
        assert_eq!(new.impossible(), None);
        self.record = Some(new.clone());
        self.record_writes += 1;
        StoreOutcome::Stored { token: self.record_token() }
    }

    /// A foreign hand commits to a table, or restores its state before the last one.
    pub(super) fn foreign(&mut self, of: usize, restores: bool) {
        let target = &mut self.targets[of];
        if target.compares {
            target.writes += 1;
            if restores {
                target.states.pop();
            }
        }
    }
}

impl Target {
    fn token(&self) -> Token {
        if self.compares { Token::from(format!("t{}", self.writes)) } else { Token::from("") }
    }

    fn commit(&mut self, token: &Token, new: &TableState) -> CommitOutcome {
        assert_eq!(new.impossible(), None);
        if !self.compares {
            let order = |s: &TableState| (s.incarnation, s.commit);
            if self.states.last().is_none_or(|s| order(s) < order(new)) {
                self.states.push(new.clone());
            }
            return CommitOutcome::Durable { token: self.token() };
        }
        if *token != self.token() {
            return CommitOutcome::Conflict { found: self.states.last().cloned().map(Box::new), token: self.token() };
        }
        if let Some(before) = self.states.last().filter(|before| before.generation == new.generation) {
            assert!(new.cut.upto().contains(before.cut.upto()), "the cut falls from {:?} to {:?}", before.cut, new.cut);
        }
        self.states.push(new.clone());
        self.writes += 1;
        CommitOutcome::Durable { token: self.token() }
    }

    fn has(&self, commit: CommitId, incarnation: Incarnation) -> bool {
        self.states.iter().any(|s| s.commit == commit && s.incarnation == incarnation)
    }
}
