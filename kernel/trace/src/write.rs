//! Writing: what a life hears and says, as it happens.

use kernel::config::Config;
use kernel::coordinator::{Input, Output};
use kernel::time::Time;
use kernel::worker::{WorkerInput, WorkerOutput};
use twox_hash::XxHash3_64;

use crate::said::{Said, say_worker_input};
use crate::text::{Parse, Say, Text, Words, Wrong};
use crate::veil::Veil;
use crate::{FIRST_WORDS, FORMAT};

/// Makes text of what machines hear and say. What it holds is bounded by who calls [`Writer::take`].
pub struct Writer {
    text: Text,
    said: Said,
    /// The first lines, until the hash of the first step has them.
    first: String,
    /// Finished steps that nobody has taken.
    steps: String,
    /// What belongs to the step that goes on, and is not hashed yet.
    open: String,
    chain: u64,
    last: Time,
}

/// Why nothing follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The life is over.
    Stopped,
    /// The file may not become larger; the life went on.
    Full,
}

impl Writer {
    /// A writer whose veil nobody else has, and the lines that stand in front of all that it gives. `by` is the version of the program.
    pub fn new(by: &str) -> (Self, String) {
        let veil = Veil::draw();
        let first = format!("{FIRST_WORDS}{FORMAT}\nby {by}\n");
        let (text, said) = (Text::new(veil.clone()), Said::new(veil));
        let writer =
            Self { text, said, first: first.clone(), steps: String::new(), open: String::new(), chain: 0, last: Time(0) };
        (writer, first)
    }

    /// A life begins. This comes first, and once.
    pub fn begins(&mut self, now: Time, config: &Config) {
        self.step(now, "begins", |text| config.say(text));
    }

    /// The coordinator is about to take a fact.
    pub fn hears(&mut self, now: Time, input: &Input) {
        self.step(now, "hears", |text| input.say(text));
    }

    /// The worker is about to take a fact.
    pub fn worker_hears(&mut self, now: Time, input: &WorkerInput) {
        self.step(now, "worker", |text| say_worker_input(input, text));
    }

    /// The coordinator gave a command.
    pub fn says(&mut self, output: &Output) {
        self.said.coordinator(output);
    }

    /// The worker gave a command.
    pub fn worker_says(&mut self, output: &WorkerOutput) {
        self.said.worker(output);
    }

    /// Nothing comes any more.
    pub fn ends(&mut self, why: End) {
        self.step(self.last, "ends", |text| why.say(text));
    }

    /// Ends the step that goes on, and gives all that was finished since the last call.
    pub fn take(&mut self) -> String {
        self.end_step();
        std::mem::take(&mut self.steps)
    }

    /// The same where nobody knows how the step that goes on would have ended: it has no hash, and is none.
    pub fn take_unfinished(&mut self) -> String {
        let mut text = std::mem::take(&mut self.steps);
        text.push_str(&std::mem::take(&mut self.open));
        text
    }

    /// Bytes that [`Writer::take`] would give, without those of the step that goes on.
    pub fn held(&self) -> usize {
        self.steps.len()
    }

    fn step(&mut self, now: Time, what: &str, say: impl FnOnce(&mut Text)) {
        self.end_step();
        self.last = now;
        self.open.push_str(head(&mut self.text, now, what, say));
    }

    fn end_step(&mut self) {
        self.open.push_str(&self.said.take());
        if self.open.is_empty() {
            return;
        }
        let first = std::mem::take(&mut self.first);
        self.open.insert_str(0, &first);
        self.chain = XxHash3_64::oneshot_with_seed(self.chain, self.open.as_bytes());
        self.open.drain(..first.len());
        self.steps.push_str(&self.open);
        self.steps.push_str(&format!("= {:016x}\n", self.chain));
        self.open.clear();
    }
}

/// The first lines of a step: what happened.
pub(crate) fn head<'a>(text: &'a mut Text, now: Time, what: &str, say: impl FnOnce(&mut Text)) -> &'a str {
    text.clear();
    text.number(now.0);
    text.word(what);
    say(text);
    text.finish()
}

impl Say for End {
    fn say(&self, text: &mut Text) {
        text.word(match self {
            End::Stopped => "stopped",
            End::Full => "full",
        });
    }
}

impl Parse for End {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.read("end of a trace", |word| match word {
            "stopped" => Some(End::Stopped),
            "full" => Some(End::Full),
            _ => None,
        })
    }
}
