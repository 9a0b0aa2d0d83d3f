//! Which engines can play a scenario, and why not the others.

use crate::scenario::Scenario;
use crate::step::{Then, When};
use crate::workload::Join;

/// Something that plays scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// The machines in one loop: any order of answers, to the tick.
    Pure,
    /// The pump in a simulated network and runtime: real tasks, simulated time.
    Tasks,
    /// Real processes and real servers: kills at named places, no order of answers.
    Processes,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 3] = [Engine::Pure, Engine::Tasks, Engine::Processes];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Pure => "pure",
            Engine::Tasks => "tasks",
            Engine::Processes => "processes",
        }
    }

    /// Why it can't play a scenario; empty if it can.
    pub fn lacks_for(self, scenario: &Scenario) -> Vec<&'static str> {
        let mut lacks = match self {
            Engine::Pure => return vec![],
            Engine::Tasks => scenario.steps.iter().filter_map(|s| lacks_tasks(&s.then)).collect::<Vec<_>>(),
            Engine::Processes => {
                let mut lacks: Vec<_> = scenario.steps.iter().filter_map(|s| lacks_processes(&s.when, &s.then)).collect();
                let snapshots = scenario.workload.tables.iter().any(|t| t.join == Join::Snapshot);
                lacks.extend(snapshots.then_some("no driver reads snapshots yet"));
                lacks.extend((scenario.workload.streams.len() > 1).then_some("one log of several streams needs several files"));
                lacks
            }
        };
        let sets = self != Engine::Pure && scenario.options.sets;
        lacks.extend(sets.then_some("no driver reads a log of sets yet"));
        let chunks = self != Engine::Pure && scenario.options.chunks;
        lacks.extend(chunks.then_some("no driver reads chunks yet"));
        lacks.extend((!scenario.dice.0.is_empty()).then_some("small choices are its own, not the scenario's"));
        lacks.sort_unstable();
        lacks.dedup();
        lacks
    }
}

fn lacks_tasks(then: &Then) -> Option<&'static str> {
    matches!(then, Then::HearsACopy(..)).then_some("an answer can't be delivered to another process")
}

fn lacks_processes(when: &When, then: &Then) -> Option<&'static str> {
    if let When::Begins(_) = when {
        return None;
    }
    match then {
        Then::Takes(_) | Then::LandsAt(_) | Then::LandsLate(_) | Then::AnswerTakes(_) => {
            Some("when a command lands can't be chosen to the tick")
        }
        Then::IsLost | Then::AnswerIsLost | Then::IsCalledAConflict => Some("the drivers have no place where an answer is lost"),
        Then::Fails | Then::Lies | Then::LosesTheSession => Some("the source of files has no session to lose and tells no lies"),
        Then::HearsACopy(..) => Some("an answer can't be delivered to another process"),
        Then::CutShort { .. } | Then::AnotherServer | Then::Lacks { .. } | Then::Forgets(..) => {
            Some("the source of files is read from its beginning")
        }
        Then::ForeignCommit(_) | Then::IsSetBack(..) => Some("a foreign hand on the catalogue is not scripted there yet"),
        Then::SinkIsAway(..) | Then::SourceIsAway(_) | Then::Unreadable(_) | Then::AnotherLog(_) => None,
        Then::SenderDies | Then::Dies { .. } | Then::StandsStill(..) | Then::Asked(..) => None,
        Then::After(_) | Then::UntilCurrent | Then::With(_) | Then::Without(_) => None,
    }
}
