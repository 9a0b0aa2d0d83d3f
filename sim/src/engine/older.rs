//! Lives that a newer one has superseded: each must learn it in time.

use super::*;

impl Engine {
    /// How long the slowest command or answer took.
    fn slowest(&self) -> u64 {
        let takes = |step: &Step| if let Then::Takes(n) | Then::AnswerTakes(n) = step.then { n } else { 0 };
        self.fired.iter().map(takes).max().unwrap_or(0)
    }

    /// Once everything is well people end it, when it is awake. That an idle table was set back is noticed at the next start only.
    /// And a process of an older configuration that woke up as the newest life copies what its own says.
    pub(super) fn is_ended_by_people(&self, process: usize) -> bool {
        let set_back = self.has_happened(|then| matches!(then, Then::IsSetBack(..)));
        set_back || self.processes[process].tables != self.members
    }

    pub(super) fn is_superseded(&self, process: usize) -> bool {
        let ours = self.processes[process].coordinator.incarnation();
        self.world.record.as_ref().is_some_and(|r| Incarnation(0) < ours && ours < r.incarnation)
    }

    /// A life that a newer one has superseded stops in time. Judged when nothing goes wrong any more: then a question is answered.
    pub(super) fn judge_older_lives(&mut self) {
        let config = &self.plan.config;
        let bound = config.validate_interval.0 + config.retry.most.0 + 2 * self.slowest() + 20;
        for process in 0..self.processes.len() {
            if self.stage == Stage::Faults || !self.lives(process) || !self.is_superseded(process) {
                continue;
            }
            let since = self.processes[process].awake_since.max(self.world.memory.taken_at);
            let verdict = outcomes::superseded_is_learned_in_time(self.now, since, bound);
            self.world.judge("superseded-is-learned-in-time", verdict.map_err(|dump| format!("p{process}: {dump}")));
        }
    }
}
