//! Steps: what happens, and on which occasion.

use serde::{Deserialize, Serialize};

/// A table by its number.
pub type Tab = usize;

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What a reader should know of it.
    pub note: Vec<String>,
    /// The occasion.
    pub when: When,
    /// What happens then.
    pub then: Then,
}

/// An occasion. Processes are numbered as they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum When {
    /// This time.
    At(u64),
    /// A process is about to begin.
    Begins(usize),
    /// A process sends a command.
    Sends(Command),
    /// Its command has landed.
    Lands(Command),
    /// The answer to its command arrives.
    Hears(Command),
}

/// A command of a process, by its place among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Command {
    /// Whose.
    pub process: usize,
    /// What it does.
    pub what: What,
    /// The table that it is about, if it is about one.
    pub table: Option<Tab>,
    /// The how-manieth of these, from 1.
    pub nth: u32,
}

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum What {
    /// Read the pipeline record.
    ReadRecord,
    /// Take the next incarnation.
    Take,
    /// Store the pipeline record.
    Record,
    /// Read a table's state.
    Recover,
    /// Open the log.
    Open,
    /// Read the log.
    Read,
    /// Write what was netted.
    Write,
    /// Tell the coordinator what became of that.
    Written,
    /// Commit to a table.
    Commit,
    /// Claim a table for this life, which changes no data.
    Claim,
    /// Look for a commit.
    Resolve,
    /// Forget what was staged.
    Release,
    /// Delete what older lives staged.
    Discard,
    /// Let the source forget.
    Acknowledge,
    /// Plan a table's ranges.
    Ranges,
    /// Read a chunk of a table.
    Chunk,
    /// Ask what a new snapshot sees.
    Visibility,
    /// Read rows again.
    Rows,
}

impl What {
    /// All of them.
    pub const ALL: [What; 18] = [
        What::ReadRecord,
        What::Take,
        What::Record,
        What::Recover,
        What::Open,
        What::Read,
        What::Write,
        What::Written,
        What::Commit,
        What::Claim,
        What::Resolve,
        What::Release,
        What::Discard,
        What::Acknowledge,
        What::Ranges,
        What::Chunk,
        What::Visibility,
        What::Rows,
    ];

    /// Its word in a file.
    pub fn word(self) -> &'static str {
        match self {
            What::ReadRecord => "read-record",
            What::Take => "take",
            What::Record => "record",
            What::Recover => "recover",
            What::Open => "open",
            What::Read => "read",
            What::Write => "write",
            What::Written => "written",
            What::Commit => "commit",
            What::Claim => "claim",
            What::Resolve => "resolve",
            What::Release => "release",
            What::Discard => "discard",
            What::Acknowledge => "acknowledge",
            What::Ranges => "ranges",
            What::Chunk => "chunk",
            What::Visibility => "visibility",
            What::Rows => "rows",
        }
    }

    /// Is it about one table?
    pub fn is_of_a_table(self) -> bool {
        match self {
            What::Recover | What::Write | What::Written | What::Commit | What::Claim => true,
            What::Resolve | What::Release | What::Discard => true,
            What::Ranges | What::Chunk | What::Visibility | What::Rows => true,
            What::ReadRecord | What::Take | What::Record | What::Open | What::Read | What::Acknowledge => false,
        }
    }

    /// Can it be answered so that nobody knows what became of it?
    pub fn can_be_unknown(self) -> bool {
        match self {
            What::Take | What::Record | What::Write | What::Commit | What::Claim | What::Resolve => true,
            What::ReadRecord | What::Recover | What::Open | What::Read | What::Written => false,
            What::Release | What::Discard | What::Acknowledge => false,
            What::Ranges | What::Chunk | What::Visibility | What::Rows => false,
        }
    }
}

/// What happens. Times are in ticks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// It lands after so long.
    Takes(u64),
    /// It lands at this time.
    LandsAt(u64),
    /// It never lands; where there is an answer, it is 'unknown'. An acknowledgement is lost with its session.
    IsLost,
    /// It lands, and is answered as unknown.
    AnswerIsLost,
    /// It is answered as unknown, and lands so long after that.
    LandsLate(u64),
    /// It never leaves: the sender dies first.
    SenderDies,
    /// It only reads, and fails.
    Fails,
    /// The sink tries again by itself, finds the commit there and calls it a conflict.
    IsCalledAConflict,
    /// The session that is opened tells divided transactions otherwise than they were.
    Lies,
    /// The session that is read from is lost.
    LosesTheSession,
    /// The answer takes so long.
    AnswerTakes(u64),

    /// A process dies; perhaps what it has sent and is on its way is lost.
    Dies {
        /// The process.
        process: usize,
        /// Is it?
        with_its_mail: bool,
    },
    /// A process stands still so long.
    StandsStill(usize, u64),
    /// A process hears the answer to another one's command.
    HearsACopy(usize, Command),

    /// A process begins so long after it was needed.
    After(u64),
    /// It ends when it is current.
    UntilCurrent,
    /// From this process on the table is a member.
    With(Tab),
    /// From this process on it is none.
    Without(Tab),

    /// A person asks something of a process.
    Asked(usize, Request),
    /// A foreign hand sets a table back by so many commits.
    IsSetBack(Tab, u64),
    /// A foreign hand commits to a table and changes nothing.
    ForeignCommit(Tab),
    /// A table's sink can't be reached so long.
    SinkIsAway(Tab, u64),
    /// The source can't be reached so long.
    SourceIsAway(u64),
    /// Behind what can be read lies something that can't, so long.
    Unreadable(u64),
    /// Another log stands in this one's place, so long.
    AnotherLog(u64),
    /// The log lacks what came in the last `by` ticks, so long.
    CutShort {
        /// Of how much.
        by: u64,
        /// How long.
        lasts: u64,
    },
    /// The log is read from another server from now on, which numbers rows otherwise.
    AnotherServer,
    /// The log is read from another server, and that one lacks the last transactions of a stream, with all that had to come after them,
    /// so long.
    Lacks {
        /// Of which stream.
        stream: usize,
        /// How many.
        last: u64,
        /// How long.
        lasts: u64,
    },
    /// The source forgets so many transactions more of a stream, whatever was acknowledged.
    Forgets(usize, u64),
}

/// What a person asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Take no more rows of a table.
    Pause(Tab),
    /// Go on with it.
    Resume(Tab),
    /// Pass what halted it, and go on.
    Skip(Tab),
    /// Hold nothing for it any more.
    Release(Tab),
    /// Copy it anew, with a snapshot.
    Resnapshot(Tab),
    /// Commit what was taken, then end.
    Drain,
}

impl Step {
    /// A step without a note.
    pub fn new(when: When, then: Then) -> Self {
        Self { note: vec![], when, then }
    }

    /// Can this happen on this occasion? If not, what can.
    pub fn fits(&self) -> Result<(), &'static str> {
        let of_a_process = matches!(self.then, Then::Dies { .. } | Then::StandsStill(..));
        match (&self.when, &self.then) {
            (When::Lands(_) | When::Hears(_) | When::At(_), _) if of_a_process => Ok(()),
            (When::Lands(_), Then::AnswerTakes(_)) | (When::Hears(_), Then::HearsACopy(..)) => Ok(()),
            (When::Lands(_), _) => Err("when a command lands its answer may take long, or a process die or stand still"),
            (When::Hears(_), _) => Err("when an answer arrives a process may die, stand still, or hear a copy of another answer"),
            (When::Begins(_), Then::After(_) | Then::UntilCurrent | Then::With(_) | Then::Without(_)) => Ok(()),
            (When::Begins(_), _) => Err("a process begins 'after N', 'until current', 'with t0' or 'without t0'"),
            (When::Sends(c), then) => fits_sent(c.what, then),
            (When::At(_), then) => match then {
                Then::Asked(..) | Then::IsSetBack(..) | Then::ForeignCommit(_) | Then::SinkIsAway(..) => Ok(()),
                Then::SourceIsAway(_) | Then::Unreadable(_) | Then::AnotherLog(_) | Then::CutShort { .. } => Ok(()),
                Then::AnotherServer | Then::Lacks { .. } | Then::Forgets(..) => Ok(()),
                _ => {
                    Err("at a time a process may die, stand still or be asked, and something may happen to the source or a sink")
                }
            },
        }
    }

    /// When it is over, if that is known.
    pub fn ends(&self) -> u64 {
        let at = if let When::At(at) = self.when { at } else { 0 };
        match self.then {
            Then::LandsAt(at) => at,
            Then::StandsStill(_, lasts) | Then::SinkIsAway(_, lasts) | Then::SourceIsAway(lasts) => at.saturating_add(lasts),
            Then::Unreadable(lasts) | Then::AnotherLog(lasts) | Then::CutShort { lasts, .. } => at.saturating_add(lasts),
            Then::Lacks { lasts, .. } => at.saturating_add(lasts),
            _ => at,
        }
    }
}

fn fits_sent(what: What, then: &Then) -> Result<(), &'static str> {
    let ok = match then {
        Then::Takes(_) | Then::LandsAt(_) | Then::SenderDies => what != What::Written,
        Then::IsLost => what.can_be_unknown() || what == What::Acknowledge,
        Then::AnswerIsLost | Then::LandsLate(_) => what.can_be_unknown(),
        Then::Fails => match what {
            What::ReadRecord | What::Recover | What::Resolve | What::Ranges | What::Chunk | What::Visibility | What::Rows => true,
            What::Take | What::Record | What::Open | What::Read | What::Write | What::Written => false,
            What::Commit | What::Claim | What::Release | What::Discard | What::Acknowledge => false,
        },
        Then::IsCalledAConflict => matches!(what, What::Commit),
        Then::Lies => what == What::Open,
        Then::LosesTheSession => what == What::Read,
        _ => false,
    };
    if ok {
        return Ok(());
    }
    Err("a command that is sent may take long, land at a time, be lost, lose its answer, land late, or its sender dies; \
         reads may fail, a commit may be called a conflict, an opened log may lie, a read may lose the session")
}
