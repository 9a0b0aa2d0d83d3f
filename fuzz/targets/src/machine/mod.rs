//! The coordinator over an arbitrary world: bytes choose what happens next, and the machine's own checks run after each input.
//!
//! The world is a valid one, mostly in a good mood: a log of one or two streams that snapshots see late, sinks that compare and sinks
//! that do not. Answers are true ones, but some are lost, late or given twice, lives die, foreign hands commit and roll back, the source
//! forgets. Whatever it does, no check may fail, no life may fall over, and once all is answered in time each life must come to its end.
//!
//! In a *hostile* run answers are also broken on their way: what only a fault of ours could bring about. Such a run may end with a
//! broken rule, said by its name; it must not panic.
//!
//! What is *right* to do is judged by the simulator (`sim`), over the same machine, with an oracle that knows the truth. Here the
//! inputs are wilder, and found by coverage.

mod answers;
mod durable;
mod log;
mod spoil;

use std::collections::BTreeSet;

use kernel::config::{
    AbsentLimits, CheckpointLimits, Config, Join, OnError, OnTruncate, Resnapshot, Retry, SnapshotLimits, TableConfig,
};
use kernel::coordinator::{Coordinator, Input, Operator, Output, StopReason, ToWorker};
use kernel::id::{BatchId, Session, TableName};
use kernel::outcome::{LogFailure, WriteOutcome};
use kernel::position::Position;
use kernel::time::{Duration, Time};

use crate::Saw;
use crate::bytes::Bytes;
use answers::{brings_rows, fails, lane, refused, rows_of, unknown};
use durable::Durable;
use log::{Log, TABLES};

/// Things that happen in one run.
const STEPS_MAX: usize = 600;
/// Answers and wake-ups in which a life that is asked to end, and that nothing hinders, has ended.
const ENDS_WITHIN: usize = 1_500;

/// The first bytes are the configuration and the world; each next one is something that happens.
pub fn machine(bytes: &[u8]) -> Saw {
    let mut from = Bytes::new(bytes);
    let mut world = World::new(&mut from);
    let mut steps = 0;
    while !from.is_empty() && steps < STEPS_MAX && !world.broken {
        world.happen(&mut from);
        steps += 1;
    }
    if !world.hostile {
        world.end();
    }
    Saw::taken_if(world.durable.has_rows())
}

struct World {
    config: Config,
    hostile: bool,
    now: u64,
    log: Log,
    durable: Durable,
    coordinator: Coordinator,
    /// Commands without an answer, in the order in which they were given.
    pending: Vec<Output>,
    /// Answers on their way.
    mail: Vec<Input>,
    /// Answers that were given, which may come again.
    given: Vec<Input>,
    /// Commands of a life that died, and such that everybody took for lost.
    late: Vec<Output>,
    held: BTreeSet<BatchId>,
    sessions: u64,
    /// The log's session is over, though nobody has said so.
    session_over: bool,
    /// A hostile run came to a broken rule.
    broken: bool,
}

fn config(from: &mut Bytes<'_>) -> Config {
    let tables = TABLES.iter().map(|name| {
        let table = TableConfig {
            join: [Join::Beginning, Join::Now, Join::Snapshot][from.below(3)],
            keyed: !from.chance(40),
            state_with_data: !from.chance(90),
            on_truncate: [OnTruncate::Propagate, OnTruncate::Ignore, OnTruncate::Fail][from.below(3)],
            on_error: if from.chance(20) { OnError::Stop } else { OnError::Halt },
            resnapshot: if from.chance(60) { Resnapshot::AtStart } else { Resnapshot::WhenAsked },
        };
        (TableName::from(*name), table)
    });
    let tables = tables.collect();
    let chunks_max = 1 + from.below(3) as u32;
    Config {
        checkpoint: CheckpointLimits { age: Duration(10), rows: 1 + from.below(6) as u64, bytes: 200 },
        record_interval: Duration(10),
        poll_interval: Duration(5),
        budget_bytes_max: 40 + 10 * from.below(40) as u64,
        read_bytes_max: 60,
        retry: Retry { first: Duration(2), most: Duration(20), give_up_after: from.chance(40).then_some(Duration(100)) },
        source_keeps_all: from.chance(60),
        hold: from.chance(60).then_some(Duration(80)),
        validate_interval: Duration(60),
        rewind_interval: Duration(10),
        ancestor_runs_max: 1 + from.below(3),
        recent_commits_max: 1 + from.below(4),
        until_current: from.chance(40),
        source_reads_chunks: !from.chance(60),
        snapshot: SnapshotLimits {
            chunks_max,
            chunk_rows_max: 3,
            chunk_bytes_max: 40,
            held_bytes_max: 80,
            touched_keys_max: 2 + from.below(6),
            visibility_interval: Duration(7),
        },
        absent: AbsentLimits {
            keys_max: 1 + from.below(8),
            holes_max: 1 + from.below(4),
            read_bytes_max: 50,
            ages: 1 + from.below(4) as u64,
            attempts_max: 1 + from.below(4) as u32,
        },
        ..Config::new(tables)
    }
}

impl World {
    fn new(from: &mut Bytes<'_>) -> Self {
        let hostile = from.chance(64);
        let streams = 1 + from.below(2);
        let config = config(from);
        let of = |what: fn(&TableConfig) -> bool| TABLES.map(|name| config.tables.get(&TableName::from(name)).is_some_and(what));
        let (keyed, compares) = (of(|t| t.keyed), of(|t| t.state_with_data));
        let mut world = Self {
            coordinator: Coordinator::new(Time(0), config.clone()),
            config,
            hostile,
            now: 0,
            log: Log::new(streams, keyed),
            durable: Durable::new(compares),
            pending: Vec::new(),
            mail: Vec::new(),
            given: Vec::new(),
            late: Vec::new(),
            held: BTreeSet::new(),
            sessions: 0,
            session_over: false,
            broken: false,
        };
        world.drain();
        world
    }

    fn happen(&mut self, from: &mut Bytes<'_>) {
        self.now += 1;
        if self.coordinator.is_stopped() {
            return self.begin_anew();
        }
        match from.u8() {
            // The oldest command lands and is answered: most of what happens.
            0..=119 => self.land(0, from),
            120..=159 => {
                let nth = from.u8().into();
                self.land(nth, from);
            }
            160..=179 => self.pass_time(),
            180..=199 => self.log.grow(from),
            200..=211 => self.log.show(1 + from.below(3)),
            212..=219 => self.deliver(from.u8().into()),
            220..=225 => self.operate(from),
            226..=229 => self.late_lands(from.u8().into()),
            230..=233 => self.given_again(from.u8().into()),
            234..=237 => self.begin_anew(),
            238..=241 => {
                let table = from.below(TABLES.len());
                self.durable.foreign(table, from.chance(96));
            }
            242..=245 => {
                let end = self.log.end();
                let upto: Position = end.streams().map(|(s, o)| (s.clone(), kernel::position::Offset(o.0 / 2))).collect();
                self.log.forget(&upto);
            }
            246..=249 => self.session_over = true,
            250..=252 => {
                self.log.move_to_another(false);
                self.session_over = true;
            }
            253 => {
                self.log.move_to_another(true);
                self.session_over = true;
            }
            254 => self.now += 1_000,
            255 => self.give(Input::Timeout),
        }
    }

    /// The life dies. What it asked for may land late; another one begins.
    fn begin_anew(&mut self) {
        self.late.append(&mut self.pending);
        self.late.drain(..self.late.len().saturating_sub(16));
        self.mail.clear();
        self.held.clear();
        self.session_over = false;
        self.coordinator = Coordinator::new(Time(self.now), self.config.clone());
        self.drain();
    }

    fn pass_time(&mut self) {
        if let Some(deadline) = self.coordinator.poll_timeout() {
            self.now = self.now.max(deadline.at.0);
            self.give(Input::Timeout);
        }
    }

    fn deliver(&mut self, nth: usize) {
        if !self.mail.is_empty() {
            let input = self.mail.remove(nth % self.mail.len());
            self.give(input);
        }
    }

    fn given_again(&mut self, nth: usize) {
        if !self.given.is_empty() {
            let input = self.given[nth % self.given.len()].clone();
            self.give(input);
        }
    }

    fn late_lands(&mut self, nth: usize) {
        if !self.late.is_empty() {
            let command = self.late.remove(nth % self.late.len());
            let _ = self.durable.land(&command);
        }
    }

    fn operate(&mut self, from: &mut Bytes<'_>) {
        let table = TableName::from(TABLES[from.below(TABLES.len())]);
        let operator = match from.below(11) {
            0 | 1 => Operator::Pause(table),
            2..5 => Operator::Resume(table),
            5 | 6 => Operator::Skip(table),
            7 => Operator::Release(table),
            8 | 9 => Operator::Resnapshot(table),
            _ => Operator::Drain,
        };
        self.give(Input::Operator(operator));
    }

    // ---- commands

    /// The `nth` command lands, or the first of its lane; it is answered, or not.
    fn land(&mut self, nth: usize, from: &mut Bytes<'_>) {
        if self.pending.is_empty() {
            return if self.mail.is_empty() { self.pass_time() } else { self.deliver(0) };
        }
        let nth = self.first_of_lane(nth % self.pending.len());
        let command = self.pending.remove(nth);
        let fate = from.u8();
        // It never happens, or later; nobody says so. Or it happens, and nobody says so.
        let answer = match fate {
            0..=219 => self.carry_out(&command, from),
            220..=229 => {
                self.late.push(command.clone());
                unknown(&command)
            }
            230..=239 => {
                let _ = self.durable.land(&command);
                unknown(&command)
            }
            240..=247 => fails(&command),
            248..=255 => refused(&command, fate),
        };
        let Some(mut answer) = answer else { return };
        if self.hostile && from.chance(40) {
            spoil::spoil(&mut answer, from);
        }
        if from.chance(24) && !brings_rows(&answer) {
            self.mail.push(answer);
        } else {
            self.give(answer);
        }
    }

    fn first_of_lane(&self, nth: usize) -> usize {
        let wanted = lane(&self.pending[nth]);
        self.pending.iter().position(|command| wanted.is_some() && lane(command) == wanted).unwrap_or(nth)
    }

    /// The world does what was asked, and this is what it says.
    fn carry_out(&mut self, command: &Output, from: &mut Bytes<'_>) -> Option<Input> {
        if let Some(input) = self.durable.land(command) {
            return Some(input);
        }
        Some(match command {
            Output::OpenLog { id } => {
                self.sessions += 1;
                self.session_over = false;
                let (session, identity) = (Session(self.sessions), self.log.identity());
                Input::LogOpened { id: *id, session, identity, floor: self.log.floor.clone(), end: self.log.end() }
            }
            Output::ReadLog { id, .. } if self.session_over => {
                let failure = LogFailure::SessionLost { why: "the connection broke".into() };
                Input::LogFailed { id: *id, failure }
            }
            Output::ReadLog { id, restart, keys_of, .. } => {
                let (first, most) = (from.below(2), 1 + from.below(7));
                let (batches, events) = self.log.read(restart.as_ref(), keys_of, first, most);
                Input::LogRead { id: *id, batches, events, finished: false }
            }
            Output::PlanRanges { id, table, wanted } => {
                Input::RangesPlanned { id: *id, bounds: self.log.ranges(table, *wanted as usize) }
            }
            Output::ReadVisibility { id, about, unfinished, .. } => {
                Input::VisibilityRead { id: *id, visibility: self.log.visibility(about, *unfinished) }
            }
            Output::ReadChunk { id, .. } => {
                let chunk = self.log.chunk(command, 1 + from.below(4))?;
                Input::ChunkRead { id: *id, chunk: Box::new(chunk) }
            }
            Output::ReadRows { id, .. } => {
                let answer = self.log.rows(command, 1 + from.below(4))?;
                Input::RowsRead { id: *id, answer: Box::new(answer) }
            }
            Output::Send(ToWorker::Write { attempt, .. }) => Input::Written { attempt: *attempt, outcome: WriteOutcome::Written },
            Output::Acknowledge { upto, .. } => {
                assert!(self.hostile || self.log.end().contains(upto), "{upto} of {}", self.log.end());
                if from.chance(128) {
                    self.log.forget(upto);
                }
                return None;
            }
            _ => return None,
        })
    }

    fn give(&mut self, input: Input) {
        for batch in rows_of(&input) {
            self.held.insert(batch.batch);
        }
        if !brings_rows(&input) {
            self.given.push(input.clone());
            self.given.drain(..self.given.len().saturating_sub(8));
        }
        self.coordinator.handle_input(Time(self.now), input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.coordinator.poll_output() {
            match output {
                Output::ReleaseBatch { batch } => {
                    assert!(self.held.remove(&batch) || self.hostile, "{batch:?} is not held");
                }
                Output::Stop { reason } => self.stopped(&reason),
                Output::Started { .. } | Output::HaltTable { .. } | Output::Declined { .. } | Output::Skipped { .. } => {}
                command => self.pending.push(command),
            }
        }
        if let Err(violation) = self.coordinator.check() {
            assert!(self.hostile, "{violation}");
            self.broken = true;
        }
        if !self.hostile && !self.coordinator.is_stopped() {
            let known: BTreeSet<BatchId> = self.coordinator.batches().into_iter().collect();
            assert_eq!(known, self.held, "rows-held-equal-rows-known");
        }
    }

    fn stopped(&mut self, reason: &StopReason) {
        if let StopReason::Violation { rule, dump } = reason {
            assert!(self.hostile, "{rule}: {dump}");
            self.broken = true;
        }
        self.late.append(&mut self.pending);
    }

    /// Nothing goes wrong any more, and the life is asked to end: it does.
    fn end(&mut self) {
        let quiet = &mut Bytes::new(&[]);
        for turn in 0..ENDS_WITHIN {
            self.now += 1;
            if self.coordinator.is_stopped() {
                return;
            }
            if turn == 20 {
                self.give(Input::Operator(Operator::Drain));
            }
            self.log.show(1);
            while !self.mail.is_empty() && !self.coordinator.is_stopped() {
                self.deliver(0);
            }
            if !self.coordinator.is_stopped() {
                self.land(0, quiet);
            }
        }
        panic!("it was asked to end, and waits: {:?}", self.coordinator.waiting());
    }
}
