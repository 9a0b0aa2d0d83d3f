//! What a worker does with a part: takes its rows, has them written once they are whole, and has what they replace located.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Owner;
use crate::id::{AttemptId, Part, Token};
use crate::outcome::WriteOutcome;
use crate::planted::planted;
use crate::route::{Deletions, FromOwner, IndexAt, IndexName, NotWritten, OwnerOutput, Run};

/// An attempt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Doing {
    part: Part,
    runs: Vec<Run>,
    /// Once it was asked to be written.
    asked: Option<Asked>,
    located: Option<Located>,
    /// A look-up runs, in this.
    locating: Option<IndexAt>,
    written: Writing,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Asked {
    at: Option<IndexAt>,
    /// It was answered.
    told: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Located {
    base: Token,
    deletions: Deletions,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Writing {
    No,
    Runs,
    Done,
}

impl Doing {
    /// Nothing looks before it was asked to.
    pub(super) fn is_located_unasked(&self) -> bool {
        self.located.is_some() && self.asked.is_none()
    }
}

impl Owner {
    pub(super) fn forget_parts(&mut self) {
        if planted!(self.config, PartsOutliveSessions) {
            return;
        }
        for attempt in self.parts.keys().copied().collect::<Vec<_>>() {
            self.forget(attempt);
        }
    }

    pub(super) fn forget(&mut self, attempt: AttemptId) {
        #[cfg(feature = "planted-bugs")]
        if planted!(self.config, WorkerCleansUp)
            && let Some(doing) = self.parts.get(&attempt).filter(|d| d.written == Writing::Done)
        {
            self.outbox.push_back(OwnerOutput::DeleteStaged { attempt, table: doing.part.table.clone() });
        }
        if self.parts.remove(&attempt).is_some() {
            self.indexes.forget(attempt);
            self.outbox.push_back(OwnerOutput::Forget { attempt });
        }
    }

    pub(super) fn rows(&mut self, attempt: AttemptId, part: Part, index: u32, run: Run) {
        let attempt = self.known_as(attempt, &part);
        let new = || Doing { part, runs: Vec::new(), asked: None, located: None, locating: None, written: Writing::No };
        let doing = self.parts.entry(attempt).or_insert_with(new);
        if doing.runs.len() as u64 != u64::from(index) || doing.asked.is_some() {
            let dump = format!("{attempt}: rows {index} came behind {}", doing.runs.len());
            return self.violate("one-attempt-counts", dump);
        }
        doing.runs.push(run);
    }

    /// An attempt is what it is; the wrong rule goes by the part's name, and finds what was kept.
    fn known_as(&mut self, attempt: AttemptId, part: &Part) -> AttemptId {
        if !planted!(self.config, PartsOutliveSessions) {
            return attempt;
        }
        self.parts.iter().find(|(_, d)| d.part == *part).map_or(attempt, |(known, _)| *known)
    }

    pub(super) fn write_asked(&mut self, attempt: AttemptId, part: Part, whole: (u32, u64), at: Option<IndexAt>) {
        let attempt = self.known_as(attempt, &part);
        let Some(doing) = self.parts.get_mut(&attempt) else {
            return self.violate("one-attempt-counts", format!("{attempt} is to be written, and none of its rows came"));
        };
        let rows: u64 = doing.runs.iter().map(|run| u64::from(run.rows.count())).sum();
        if (doing.runs.len() as u64, rows) != (u64::from(whole.0), whole.1) {
            let dump =
                format!("{attempt}: {} batches with {rows} rows came, {} with {} were sent", doing.runs.len(), whole.0, whole.1);
            return self.violate("one-attempt-counts", dump);
        }
        let again = doing.asked.replace(Asked { at, told: false }).is_some();
        if again {
            self.mark("asked-again");
        }
        self.go_on(attempt);
    }

    /// Locates, then writes, then tells; each once for what is asked now.
    fn go_on(&mut self, attempt: AttemptId) {
        let Some(doing) = self.parts.get_mut(&attempt) else { return };
        let Some(asked) = &doing.asked else { return };
        if asked.told || doing.locating.is_some() {
            return;
        }
        if let Some(at) = asked.at.clone().filter(|at| doing.located.as_ref().is_none_or(|l| l.base != at.base)) {
            return self.locate(attempt, at);
        }
        match doing.written {
            Writing::Runs => {}
            Writing::No => {
                doing.written = Writing::Runs;
                let (part, runs) = (doing.part.clone(), doing.runs.clone());
                let runs = self.numbered(runs);
                self.outbox.push_back(OwnerOutput::Write { attempt, part, runs });
            }
            Writing::Done => {
                let (part, located) = (doing.part.clone(), doing.located.clone());
                if let Some(asked) = &mut doing.asked {
                    asked.told = true;
                }
                let (base, deletions) = located.map_or_else(Default::default, |l| (Some(l.base), l.deletions));
                self.say(FromOwner::Written { attempt, part, base, deletions });
            }
        }
    }

    /// Looks the keys up, in an index that is exactly where the commit will be.
    fn locate(&mut self, attempt: AttemptId, mut at: IndexAt) {
        if planted!(self.config, IndexIgnoresLayout) {
            let alike = |name: &&IndexName| name.table == at.index.table && name.slot == at.index.slot;
            let known = self.indexes.iter().map(|(name, _)| name).find(alike).map(|name| name.layout.clone());
            at.index.layout = known.unwrap_or(at.index.layout);
        }
        match self.indexes.bound(&at.index) {
            Some(bound) if *bound == at.base => {
                self.mark("index-at-its-base");
                if let Some(doing) = self.parts.get_mut(&attempt) {
                    doing.locating = Some(at.clone());
                }
                self.outbox.push_back(OwnerOutput::Locate { attempt, at });
            }
            _ if self.loading.get(&at.index) == Some(&at.base) => {}
            bound => {
                let mark = if bound.is_some() { "index-at-another-base" } else { "index-not-there" };
                self.mark(mark);
                let from = self.indexes.unbind(&at.index);
                self.loading.insert(at.index.clone(), at.base.clone());
                self.outbox.push_back(OwnerOutput::LoadIndex { at, from });
            }
        }
    }

    pub(super) fn index_loaded(&mut self, at: IndexAt, outcome: Result<(), String>) {
        if self.loading.get(&at.index) != Some(&at.base) {
            return self.mark("index-loaded-in-vain");
        }
        self.loading.remove(&at.index);
        let loose = planted!(self.config, IndexIgnoresLayout);
        let alike =
            |other: &IndexAt| (&other.index.table, other.index.slot, &other.base) == (&at.index.table, at.index.slot, &at.base);
        let same = |other: &IndexAt| *other == at || (loose && alike(other));
        let waits = |d: &Doing| d.asked.as_ref().is_some_and(|asked| !asked.told && asked.at.as_ref().is_some_and(same));
        let waiting: Vec<AttemptId> = self.parts.iter().filter(|(_, d)| waits(d)).map(|(attempt, _)| *attempt).collect();
        match outcome {
            Ok(()) => {
                self.indexes.loaded(at.index, at.base);
                waiting.into_iter().for_each(|attempt| self.go_on(attempt));
            }
            Err(why) => {
                waiting.into_iter().for_each(|attempt| self.not_written(attempt, NotWritten::Transient { why: why.clone() }));
            }
        }
    }

    pub(super) fn located(&mut self, attempt: AttemptId, at: &IndexAt, deletions: Deletions) {
        let early = planted!(self.config, IndexBeforeDurable);
        let Some(doing) = self.parts.get_mut(&attempt).filter(|d| d.locating.as_ref() == Some(at)) else {
            // What it would do to the index must not stay.
            self.outbox.push_back(OwnerOutput::Forget { attempt });
            return self.mark("located-in-vain");
        };
        doing.locating = None;
        // The index may have moved on meanwhile: then what was found is of no snapshot that can be named.
        if self.indexes.bound(&at.index) == Some(&at.base) {
            doing.located = Some(Located { base: at.base.clone(), deletions });
            self.indexes.located(&at.index, attempt);
            if early {
                self.outbox.push_back(OwnerOutput::Apply { attempt, index: at.index.clone() });
            }
        }
        self.go_on(attempt);
    }

    pub(super) fn wrote(&mut self, attempt: AttemptId, outcome: WriteOutcome) {
        let Some(doing) = self.parts.get_mut(&attempt).filter(|d| d.written == Writing::Runs) else {
            return self.mark("wrote-in-vain");
        };
        match outcome {
            WriteOutcome::Written => {
                doing.written = Writing::Done;
                self.go_on(attempt);
            }
            WriteOutcome::Rejected { why } => self.not_written(attempt, NotWritten::Rejected { why }),
            WriteOutcome::Transient { why } => self.not_written(attempt, NotWritten::Transient { why }),
        }
    }

    fn not_written(&mut self, attempt: AttemptId, why: NotWritten) {
        if let Some(doing) = self.parts.get_mut(&attempt) {
            if let Some(asked) = &mut doing.asked {
                asked.told = true;
            }
            self.say(FromOwner::NotWritten { attempt, why });
        }
    }

    #[cfg(not(feature = "planted-bugs"))]
    fn numbered(&mut self, runs: Vec<Run>) -> Vec<Run> {
        runs
    }

    /// Rows bear the versions that the coordinator gave; the wrong rule gives others.
    #[cfg(feature = "planted-bugs")]
    fn numbered(&mut self, mut runs: Vec<Run>) -> Vec<Run> {
        if planted!(self.config, VersionByWorker) {
            for run in &mut runs {
                run.first = crate::id::Version::new(run.first.incarnation(), self.own_versions);
                self.own_versions += u64::from(run.rows.count());
            }
        }
        runs
    }
}
