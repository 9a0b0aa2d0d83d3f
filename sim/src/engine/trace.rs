//! A run as text and as one number: over time, process, and everything that goes in and comes out, with its payload.

use std::hash::{Hash, Hasher};

use fault_scenarios::mix;
use kernel::coordinator::Output;

use crate::process::Command;

/// What is told of a run.
pub(super) enum Trace {
    /// Nothing.
    None,
    /// Everything, as it is.
    Everything(Vec<String>),
    /// What a person wants to read.
    Story(Vec<String>),
}

impl Trace {
    pub(super) fn of(everything: bool) -> Self {
        if everything { Trace::Everything(vec![]) } else { Trace::None }
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Trace::None)
    }

    pub(super) fn everything(&mut self, now: u64, line: impl FnOnce() -> String) {
        if let Trace::Everything(lines) = self {
            lines.push(format!("{now:>6} {}", line()));
        }
    }

    pub(super) fn story(&mut self, now: u64, line: impl FnOnce() -> Option<String>) {
        if let Trace::Story(lines) = self {
            lines.extend(line().map(|line| format!("{now:>6} {line}")));
        }
    }

    pub(super) fn both(&mut self, now: Option<u64>, line: impl FnOnce() -> String) {
        if let Trace::Everything(lines) | Trace::Story(lines) = self {
            let line = line();
            lines.push(now.map_or(line.clone(), |now| format!("{now:>6} {line}")));
        }
    }

    pub(super) fn lines(self) -> Vec<String> {
        match self {
            Trace::None => vec![],
            Trace::Everything(lines) | Trace::Story(lines) => lines,
        }
    }
}

pub(super) fn brief(command: &Command) -> String {
    match command {
        Command::Write { attempt, table, .. } => format!("write {attempt:?} t{table}"),
        Command::Coordinator(Output::Commit { table, state, .. }) => format!("commit {table} {:?}", state.commit),
        Command::Coordinator(Output::StorePipelineState { new, .. }) => format!("record quiet {}", new.quiet),
        Command::Coordinator(output) => {
            let text = format!("{output:?}");
            text.split_once(' ').map_or(text.clone(), |(name, _)| name.to_string())
        }
    }
}

/// A hash that is the same on every machine.
pub(crate) struct TraceHash(pub(crate) u64);

impl Default for TraceHash {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl TraceHash {
    pub(crate) fn note(&mut self, now: u64, process: usize, what: &impl Hash) {
        self.write_u64(now);
        self.write_u64(process as u64);
        what.hash(self);
        self.0 = mix(self.0);
    }
}

impl Hasher for TraceHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
