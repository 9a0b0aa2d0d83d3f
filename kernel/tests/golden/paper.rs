//! A sink on paper: what a script's commands have made durable. It compares tokens and decides nothing, so that an outcome in
//! a script is what a real sink would answer.

use std::collections::BTreeMap;

use kernel::id::{CommitId, Incarnation, TableName, Token};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::state::{PipelineState, TableState};

/// The record, and the tables' states.
#[derive(Default)]
pub(crate) struct Paper {
    record: Option<PipelineState>,
    record_writes: u32,
    tables: BTreeMap<TableName, Sheet>,
}

/// One table.
#[derive(Default)]
pub(crate) struct Sheet {
    /// Every state that was ever written, the present one last.
    states: Vec<TableState>,
    writes: u32,
    /// Does nothing compare? Then the state that counts is the highest, whatever was written last.
    pub(crate) versioned: bool,
}

impl Paper {
    pub(crate) fn record(&self) -> (Option<PipelineState>, Token) {
        (self.record.clone(), Token::from(format!("r{}", self.record_writes)))
    }

    pub(crate) fn store_record(&mut self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        let (found, token) = self.record();
        if *expected != token {
            return StoreOutcome::Conflict { found: found.map(Box::new), token };
        }
        self.record = Some(new.clone());
        self.record_writes += 1;
        StoreOutcome::Stored { token: self.record().1 }
    }

    pub(crate) fn sheet(&mut self, table: &TableName) -> &mut Sheet {
        self.tables.entry(table.clone()).or_default()
    }
}

impl Sheet {
    pub(crate) fn state(&self) -> Option<&TableState> {
        if self.versioned { self.states.iter().max_by_key(|s| (s.incarnation, s.commit)) } else { self.states.last() }
    }

    pub(crate) fn token(&self) -> Token {
        if self.versioned { Token::from("-") } else { Token::from(format!("t{}", self.writes)) }
    }

    pub(crate) fn commit(&mut self, token: &Token, new: &TableState) -> CommitOutcome {
        if *token != self.token() && !self.versioned {
            return CommitOutcome::Conflict { found: self.state().cloned().map(Box::new), token: self.token() };
        }
        self.states.push(new.clone());
        self.writes += 1;
        CommitOutcome::Durable { token: self.token() }
    }

    pub(crate) fn has(&self, commit: CommitId, incarnation: Incarnation) -> bool {
        self.states.iter().any(|s| s.commit == commit && s.incarnation == incarnation)
    }

    /// A foreign hand commits: nothing of ours changes but the token.
    pub(crate) fn foreign_commit(&mut self) {
        self.writes += 1;
    }

    /// A foreign hand restores an older state.
    pub(crate) fn set_back(&mut self, to: Option<CommitId>) -> Result<(), String> {
        let keep = match to {
            Some(commit) => self.states.iter().position(|s| s.commit == commit).ok_or("there is no such commit")? + 1,
            None => 0,
        };
        self.states.truncate(keep);
        self.writes += 1;
        Ok(())
    }
}
