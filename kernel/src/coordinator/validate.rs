//! Is this life still the newest? Asked on a timer, for a life that has nothing to write (rule O4).
//!
//! A life learns that it is superseded where it writes: a commit or the record finds a higher incarnation. On a quiet day it
//! writes nothing; it would keep its session of the source, and tell people that it runs, for ever. So it reads the record when it has
//! had no proof for `validate_interval`. Whatever else proves it counts: a record that was stored, or read for another reason.

use alloc::format;
use alloc::string::String;

use super::{Coordinator, Output, Stage, StopReason};
use crate::flow::Backoff;
use crate::id::{CommandId, Incarnation};
use crate::planted::planted;
use crate::state::PipelineState;
use crate::time::Time;

/// What is known of this life's being the newest.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Validation {
    /// The reading whose answer is awaited.
    asked: Option<CommandId>,
    /// When this life was last known to be the newest.
    proven: Time,
    /// Readings that failed in a row.
    pub(crate) retry: Option<Backoff>,
    /// What failed last, for people.
    pub(crate) why: Option<String>,
}

/// Why the machine wants to be called.
pub(crate) const VALIDATE: &str = "ask whether a newer life has begun";

impl Coordinator {
    /// The record has just been seen under this life's number.
    pub(crate) fn is_proven_newest(&mut self) {
        self.validation.proven = self.now;
        self.validation.retry = None;
        self.validation.why = None;
    }

    /// Reads the record if it is time.
    pub(super) fn validate_when_due(&mut self) {
        if self.validation_due_at().is_none_or(|at| self.now < at) {
            return;
        }
        if self.validation.retry.is_some_and(|r| r.is_hopeless(self.now, &self.config.retry)) {
            let why = self.validation.why.clone().unwrap_or_default();
            return self.stop(StopReason::Unreachable { why: format!("the pipeline's record could not be read: {why}") });
        }
        let id = self.next_id();
        self.validation.asked = Some(id);
        self.push(Output::ReadPipelineState { id });
    }

    /// When the record is to be read; `None` while it is being read, and in stages that read or replace it themselves.
    pub(super) fn validation_due_at(&self) -> Option<Time> {
        if !self.validates() || self.validation.asked.is_some() || planted!(self.config, NeverValidates) {
            return None;
        }
        Some(self.validation.retry.map_or(self.validation.proven + self.config.validate_interval, |retry| retry.at))
    }

    fn validates(&self) -> bool {
        match self.stage {
            Stage::Recovering | Stage::Opening | Stage::Running => true,
            Stage::Reading | Stage::Taking | Stage::Validating | Stage::Stopped => false,
        }
    }

    /// Is there neither a proof within the interval nor a question on its way? For the invariant.
    pub(crate) fn neglects_validation(&self) -> bool {
        let asks = self.validation.asked.is_some() || self.validation.retry.is_some();
        self.validates() && !asks && self.validation.proven + self.config.validate_interval <= self.now
    }

    /// An answer to the timer's question; false if it answers another one.
    pub(super) fn timer_validated(&mut self, id: CommandId, state: Option<&PipelineState>) -> bool {
        if self.validation.asked != Some(id) {
            return false;
        }
        self.validation.asked = None;
        let newest = state.map_or(Incarnation(0), |s| s.incarnation);
        if newest > self.incarnation {
            self.mark("superseded-on-a-timer");
            self.supersede(newest);
        } else {
            self.mark("validated-on-a-timer");
            self.is_proven_newest();
        }
        true
    }

    /// The timer's question could not be asked; false if it was another one.
    pub(super) fn timer_validation_failed(&mut self, id: CommandId, why: &str) -> bool {
        if self.validation.asked != Some(id) {
            return false;
        }
        self.validation.asked = None;
        self.validation.retry = Some(Backoff::after(self.validation.retry, self.now, &self.config.retry));
        self.validation.why = Some(why.into());
        self.mark("validation-retried");
        true
    }

    /// Is this the timer's question?
    pub(super) fn is_timer_validation(&self, id: CommandId) -> bool {
        self.validation.asked == Some(id)
    }
}
