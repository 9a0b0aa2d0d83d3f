//! Laws of the router over arbitrary orders of whatever may happen to it: rows, closings, turns, commits, workers that come and go,
//! answers of attempts present and past.
//!
//! At most one artefact of a part counts; a commit is whole; an attempt number is used once; rows are kept until they are written or
//! given up.

use std::collections::{BTreeMap, BTreeSet};

use kernel::config::Retry;
use kernel::coordinator::RowRange;
use kernel::id::{
    AttemptId, BatchId, CheckpointNumber, Identity, Incarnation, Part, Slot, TableName, Token, Version, WorkerId, WorkerSession,
};
use kernel::route::{
    CommitAnswer, Deletions, FromOwner, Layout, NotWritten, Router, RouterConfig, RouterInput, RouterOutput, Run, ToOwner,
};
use kernel::time::{Duration, Time};
use proptest::prelude::*;

const LIFE: Incarnation = Incarnation(3);

/// One thing that happens; what it is about is chosen of what is there.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Take(u8),
    Truncate,
    Close,
    Turn,
    Commit,
    Answer(u8),
    GiveUp,
    Divide(u32),
    Move(u32),
    Comes(u64),
    Goes(u8),
    Writes(u8),
    Fails(u8),
    Time(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (1..16_u8).prop_map(Happens::Take),
        1 => Just(Happens::Truncate),
        3 => Just(Happens::Close),
        3 => Just(Happens::Turn),
        4 => Just(Happens::Commit),
        4 => (0..6_u8).prop_map(Happens::Answer),
        1 => Just(Happens::GiveUp),
        1 => (1..5_u32).prop_map(Happens::Divide),
        1 => (0..4_u32).prop_map(Happens::Move),
        2 => (1..4_u64).prop_map(Happens::Comes),
        2 => any::<u8>().prop_map(Happens::Goes),
        12 => any::<u8>().prop_map(Happens::Writes),
        1 => any::<u8>().prop_map(Happens::Fails),
        2 => (1..60_u64).prop_map(Happens::Time),
    ]
}

/// An attempt, as the workers see it.
struct Tried {
    part: Part,
    session: WorkerSession,
    batches: Vec<BatchId>,
    asked: Option<Option<Token>>,
    wrote: bool,
}

struct Play {
    router: Router,
    table: TableName,
    locates: bool,
    now: u64,
    /// What the row store holds.
    held: BTreeSet<BatchId>,
    batches: u64,
    tokens: u64,
    checkpoints: u64,
    /// The rows of the open checkpoint, and of each closed one.
    open: BTreeSet<BatchId>,
    closed: BTreeMap<u64, BTreeSet<BatchId>>,
    turned: Option<u64>,
    gathered: bool,
    sent: bool,
    sessions: u64,
    present: Vec<WorkerSession>,
    tried: BTreeMap<AttemptId, Tried>,
    counted: BTreeSet<AttemptId>,
    set_back: bool,
}

impl Play {
    fn new(locates: bool) -> Self {
        let retry = Retry { first: Duration(5), most: Duration(20), give_up_after: None };
        let config = RouterConfig {
            part_wait: Duration(50),
            silence: Duration(1_000_000),
            alive_interval: Duration(1_000_000),
            worker_wait: Duration(100),
            retry,
            ..RouterConfig::default()
        };
        let table = TableName::from("orders");
        let mut play = Self {
            router: Router::new(Time(0), LIFE, config),
            table: table.clone(),
            locates,
            now: 0,
            held: BTreeSet::new(),
            batches: 0,
            tokens: 1,
            checkpoints: 0,
            open: BTreeSet::new(),
            closed: BTreeMap::new(),
            turned: None,
            gathered: false,
            sent: false,
            sessions: 0,
            present: vec![],
            tried: BTreeMap::new(),
            counted: BTreeSet::new(),
            set_back: false,
        };
        let layout = Layout::new(3).unwrap();
        play.says(RouterInput::TableOpened { table, identity: Identity::from("u1"), layout, locates });
        play
    }

    fn token(&self) -> Token {
        Token::from(format!("s{}", self.tokens))
    }

    fn says(&mut self, input: RouterInput) {
        let told = format!("{input:?}");
        self.router.handle_input(Time(self.now), input);
        while let Some(output) = self.router.poll_output() {
            self.hears(output);
        }
        assert_eq!(self.router.check(), Ok(()), "after {told}");
        let known: BTreeSet<BatchId> = self.router.rows_held().map(|r| r.batch).collect();
        assert_eq!(known, self.held, "rows are kept until they are written or given up; after {told}");
    }

    fn hears(&mut self, output: RouterOutput) {
        match output {
            RouterOutput::Send { session, message: ToOwner::Rows { attempt, part, index, run } } => {
                assert!(self.present.contains(&session), "rows are sent to who is there");
                assert!(self.held.contains(&run.rows.batch), "rows that are sent are held");
                let new = Tried { part: part.clone(), session, batches: vec![], asked: None, wrote: false };
                let tried = self.tried.entry(attempt).or_insert(new);
                assert_eq!((&tried.part.slot, tried.session), (&part.slot, session), "{attempt} is used once");
                assert_eq!(tried.batches.len() as u32, index, "{attempt} gets its rows in order, each once");
                assert_eq!(tried.asked, None, "{attempt} was whole");
                tried.batches.push(run.rows.batch);
            }
            RouterOutput::Send { message: ToOwner::Write { attempt, batches, at, .. }, .. } => {
                let tried = self.tried.get_mut(&attempt).expect("rows came before");
                assert_eq!(tried.batches.len() as u32, batches, "{attempt} is whole");
                assert_eq!(at.is_some(), self.locates);
                tried.asked = Some(at.map(|at| at.base));
            }
            RouterOutput::ReleaseRows { rows } => rows.iter().for_each(|r| {
                assert!(self.held.remove(&r.batch), "{r:?} was released twice");
            }),
            RouterOutput::Gathered { checkpoint, base, staged, deletions, .. } => {
                assert_eq!(Some(checkpoint.0), self.turned, "in order, one at a time");
                assert_eq!(base, self.token());
                self.gathered = true;
                let written: BTreeSet<BatchId> = staged.iter().flat_map(|a| self.tried[a].batches.clone()).collect();
                assert_eq!(written, self.closed[&checkpoint.0], "a commit is whole, and holds nothing else");
                let slots: BTreeSet<Slot> = staged.iter().map(|a| self.tried[a].part.slot).collect();
                assert_eq!(slots.len(), staged.len(), "one artefact of a part counts");
                assert!(staged.iter().all(|a| self.tried[a].wrote), "each was written");
                // Each owner of the play deletes one row of one file.
                assert_eq!(deletions.count(), if self.locates { staged.len() as u64 } else { 0 });
            }
            RouterOutput::SetBack { .. } => {
                // It is for the caller to give up, in its next input.
                (self.gathered, self.set_back) = (false, true);
            }
            RouterOutput::DeleteStaged { attempts, .. } => {
                assert!(attempts.iter().all(|a| !self.counted.contains(a)), "what was committed is not deleted");
            }
            RouterOutput::Send { .. } | RouterOutput::HangUp { .. } | RouterOutput::NoWorker { .. } => {}
            RouterOutput::Rejected { .. } | RouterOutput::Unreachable { .. } | RouterOutput::Validate => {}
            RouterOutput::Superseded { .. } => {}
        }
    }

    fn attempt(&self, which: u8) -> Option<AttemptId> {
        let asked: Vec<AttemptId> = self.tried.iter().filter(|(_, t)| t.asked.is_some()).map(|(a, _)| *a).collect();
        // The newest ones more often: of the old ones there are ever more.
        let back = usize::from(which) % asked.len().clamp(1, 8);
        asked.iter().rev().nth(back).copied()
    }

    fn happens(&mut self, happens: Happens) {
        let table = self.table.clone();
        match happens {
            Happens::Take(slots) => {
                let layout = self.router.layout_of(&table).unwrap();
                let mut rows = vec![];
                for slot in layout.all().filter(|slot| slots & (1 << slot.0) != 0) {
                    self.batches += 1;
                    let batch = BatchId(self.batches);
                    self.held.insert(batch);
                    self.open.insert(batch);
                    let first = Version::new(LIFE, self.batches * 10);
                    rows.push((slot, Run { rows: RowRange { batch, rows: 0..u32::from(slots) }, first }));
                }
                self.says(RouterInput::Taken { table, rows });
            }
            Happens::Truncate => {
                self.open.clear();
                self.says(RouterInput::Truncated { table });
            }
            Happens::Close if self.closed.len() < 3 => {
                self.checkpoints += 1;
                self.closed.insert(self.checkpoints, std::mem::take(&mut self.open));
                self.says(RouterInput::Closed { table, checkpoint: CheckpointNumber(self.checkpoints) });
            }
            Happens::Turn if self.turned.is_none() => {
                let Some(number) = self.closed.keys().next().copied() else { return };
                self.turned = Some(number);
                let base = self.token();
                self.says(RouterInput::TurnCame { table, checkpoint: CheckpointNumber(number), base });
            }
            Happens::Commit if self.gathered && !self.sent => {
                self.sent = true;
                self.says(RouterInput::CommitSent { table });
            }
            Happens::Answer(answer) if self.sent => self.answered(answer),
            Happens::GiveUp => self.give_up(),
            Happens::Divide(slots) => {
                self.says(RouterInput::LayoutWanted { table, layout: Layout::new(slots).unwrap() });
            }
            Happens::Move(slot) => self.says(RouterInput::MoveWanted { table, slot: Slot(slot) }),
            Happens::Comes(worker) => {
                self.sessions += 1;
                let session = WorkerSession(self.sessions);
                self.present.push(session);
                let message = FromOwner::Hello { worker: WorkerId(worker), served: LIFE };
                self.says(RouterInput::Heard { session, message });
            }
            Happens::Goes(which) if !self.present.is_empty() => {
                let session = self.present.remove(usize::from(which) % self.present.len());
                self.says(RouterInput::SessionLost { session });
            }
            Happens::Writes(which) => {
                let Some(attempt) = self.attempt(which) else { return };
                let tried = self.tried.get_mut(&attempt).unwrap();
                tried.wrote = true;
                let (part, session) = (tried.part.clone(), tried.session);
                let base = tried.asked.clone().flatten();
                let file = kernel::id::FileName::from(format!("f{}", part.slot.0));
                let deletions: Deletions = base.iter().map(|_| (file.clone(), 1)).collect();
                self.says(RouterInput::Heard { session, message: FromOwner::Written { attempt, part, base, deletions } });
            }
            Happens::Fails(which) => {
                let Some(attempt) = self.attempt(which) else { return };
                let session = self.tried[&attempt].session;
                let why = NotWritten::Transient { why: "the disk is full".into() };
                self.says(RouterInput::Heard { session, message: FromOwner::NotWritten { attempt, why } });
            }
            Happens::Time(passes) => {
                self.now += passes;
                self.says(RouterInput::Timeout);
            }
            Happens::Close | Happens::Turn | Happens::Commit | Happens::Answer(_) | Happens::Goes(_) => {}
        }
    }

    fn answered(&mut self, answer: u8) {
        let table = self.table.clone();
        let answer = match answer {
            0..=2 => {
                let number = self.turned.take().unwrap();
                let batches = self.closed.remove(&number).unwrap();
                let of = |tried: &Tried| tried.batches.iter().any(|batch| batches.contains(batch));
                self.counted.extend(self.tried.iter().filter(|(_, tried)| of(tried) && tried.wrote).map(|(attempt, _)| *attempt));
                (self.gathered, self.sent) = (false, false);
                self.tokens += 1;
                CommitAnswer::Durable { token: self.token(), made_by_it: answer < 2 }
            }
            3 => {
                (self.gathered, self.sent) = (false, false);
                self.tokens += 1;
                CommitAnswer::Foreign { base: self.token() }
            }
            4 => CommitAnswer::Unknown,
            _ => {
                self.closed.clear();
                self.open.clear();
                (self.gathered, self.sent, self.turned) = (false, false, None);
                CommitAnswer::SetBack
            }
        };
        self.says(RouterInput::CommitAnswered { table, answer });
    }

    fn give_up(&mut self) {
        let sent = self.turned.filter(|_| self.sent);
        self.closed.retain(|number, _| Some(*number) == sent);
        self.open.clear();
        if sent.is_none() {
            (self.turned, self.gathered) = (None, false);
        }
        let table = self.table.clone();
        self.says(RouterInput::GivenUp { table });
        assert_eq!(self.router.is_sent(&self.table), sent.is_some(), "what was sent is spared, and nothing else");
    }
}

proptest! {
    #[test]
    fn whatever_happens_one_attempt_counts_and_a_commit_is_whole(
        locates in any::<bool>(),
        story in prop::collection::vec(happens(), 1..120),
    ) {
        let mut play = Play::new(locates);
        for happens in story {
            play.happens(happens);
        }
    }

    /// With everybody there and nothing going wrong any more, whatever is closed becomes a commit.
    #[test]
    fn after_whatever_happened_the_oldest_checkpoint_is_gathered(
        locates in any::<bool>(),
        story in prop::collection::vec(happens(), 1..80),
    ) {
        let mut play = Play::new(locates);
        for happens in story {
            play.happens(happens);
        }
        if play.sent {
            play.answered(0);
        }
        play.give_up();
        for happens in [Happens::Comes(1), Happens::Comes(2), Happens::Take(7), Happens::Close, Happens::Turn] {
            play.happens(happens);
        }
        for _ in 0..20 {
            (0..=u8::MAX).step_by(1).take(8).for_each(|which| play.happens(Happens::Writes(which)));
            play.happens(Happens::Time(60));
        }
        prop_assert!(play.gathered, "{:?}", play.router.waiting());
    }
}

#[test]
fn a_written_that_comes_twice_counts_once() {
    let mut play = Play::new(false);
    for happens in [Happens::Comes(1), Happens::Take(1), Happens::Close, Happens::Writes(0), Happens::Writes(0), Happens::Turn] {
        play.happens(happens);
    }
    assert!(play.gathered);
    assert_eq!(play.router.marks().get("written-again"), Some(&1));
}

#[test]
fn what_was_located_where_the_table_is_no_more_does_not_count() {
    let mut play = Play::new(true);
    for happens in [Happens::Comes(1), Happens::Take(1), Happens::Close, Happens::Turn, Happens::Writes(0), Happens::Commit] {
        play.happens(happens);
    }
    let (attempt, tried) = play.tried.iter().next().unwrap();
    let (attempt, part, session, before) = (*attempt, tried.part.clone(), tried.session, tried.asked.clone().flatten());
    play.happens(Happens::Answer(3));
    let message = FromOwner::Written { attempt, part, base: before, deletions: Deletions::default() };
    play.says(RouterInput::Heard { session, message });
    assert!(!play.gathered, "it is to be located at the new token");
    assert_eq!(play.router.marks().get("written-at-an-older-base"), Some(&1));
    play.happens(Happens::Writes(0));
    assert!(play.gathered);
}

#[test]
fn a_part_that_nobody_locates_again_in_time_sets_the_table_back() {
    let mut play = Play::new(true);
    for happens in [Happens::Comes(1), Happens::Take(1), Happens::Close, Happens::Turn, Happens::Writes(0), Happens::Commit] {
        play.happens(happens);
    }
    play.happens(Happens::Answer(3));
    play.happens(Happens::Time(49));
    assert!(!play.set_back, "it is waited for");
    play.happens(Happens::Time(1));
    assert!(play.set_back, "its rows are gone, so nobody else can locate it");
}

/// However long ago it was asked for at another base.
#[test]
fn a_part_that_is_located_again_in_time_is_committed() {
    let mut play = Play::new(true);
    for happens in [Happens::Comes(1), Happens::Take(1), Happens::Close, Happens::Turn, Happens::Writes(0), Happens::Commit] {
        play.happens(happens);
    }
    play.happens(Happens::Time(50));
    play.happens(Happens::Answer(3));
    play.happens(Happens::Time(49));
    assert!(!play.set_back && !play.gathered, "it is asked for anew, and waited for from then on");
    play.happens(Happens::Writes(0));
    assert!(play.gathered);
}

#[test]
fn the_only_worker_gets_a_part_anew_that_takes_too_long() {
    let mut play = Play::new(false);
    for happens in [Happens::Comes(1), Happens::Take(1), Happens::Close, Happens::Time(49)] {
        play.happens(happens);
    }
    assert_eq!(play.tried.len(), 1);
    play.happens(Happens::Time(1));
    assert_eq!(play.tried.len(), 2, "another attempt, in the same session");
}
