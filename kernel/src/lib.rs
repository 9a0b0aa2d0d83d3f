//! The machines of urutau: what may happen, in which order, what is durable.
//!
//! Everything that can lose a row, or write one twice, is decided here. The crate has no I/O, no clock, no thread, no randomness and
//! no row: it holds names, positions, counts and ids. The same machines run in production (`pump` feeds them), in the simulator
//! (`sim`), in the golden scripts (`kernel/testdata/`) and in tests that hand them one fact at a time.
//!
//! # The contract of a machine
//!
//! ```text
//! new(now, config)                 handle_input(now, fact)        poll_output() -> Option<command>
//! poll_timeout() -> Option<why>    check() -> Result<(), Violation>     status() -> what people see
//! ```
//!
//! 1. **Inputs are facts in the past tense** ([`Input`]: `LogRead`, `Written`, `Committed`), **outputs are commands** ([`Output`]:
//!    `ReadLog`, `Send`, `Commit`). A command that wants an answer carries an id, and every id carries the *incarnation*, the number
//!    of the life that gave it: an answer to an older life is told from our own, and dropped.
//! 2. **One fact, then drain.** After [`Coordinator::handle_input`] call [`Coordinator::poll_output`] until it says `None`, then sleep
//!    until the next fact or until [`Coordinator::poll_timeout`], and give [`Input::Timeout`] then. It says why it wants that.
//! 3. **Outputs that are drained together may run at once and finish in any order**, each at most once. The exceptions are *lanes*:
//!    the commits of one table, the reads of the log, the acknowledgements of the source run first in, first out. Any other order is
//!    made by waiting for an answer.
//! 4. **Nobody retries but the machine.** What failed is a fact; trying again, and when, is a decision. A write without an answer is
//!    *unknown*, not absent.
//! 5. **`handle_input` is total.** Whatever the world may do is an input and is handled; it never panics. What only our own fault
//!    could cause is a [`Violation`](invariant::Violation): the life ends, and nothing that was prepared goes out. The rules are
//!    checked after every input in tests and simulators, and always in front of a commit and an acknowledgement ([`invariant`]).
//! 6. **A life begins with its configuration alone** and reads what is stored by its own commands. So recovery is no special case:
//!    it is how every life begins, and it is simulated like everything else.
//!
//! # A whole tiny life, by hand
//!
//! ```
//! use kernel::config::{Config, TableConfig};
//! use kernel::coordinator::{Coordinator, HeldBatch, Input, LogEvent, Output, RowRange, ToWorker};
//! use kernel::id::{BatchId, Identity, Session, StreamName, TableName, Token};
//! use kernel::outcome::{CommitOutcome, StoreOutcome, WriteOutcome};
//! use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Position, Transaction};
//! use kernel::time::Time;
//!
//! let orders = TableName::from("orders");
//! let mut config = Config::new([(orders.clone(), TableConfig::new())].into());
//! config.checkpoint.rows = 1;
//! let mut life = Coordinator::new(Time(0), config);
//!
//! // It reads the record. There is none, so it takes the first incarnation, by compare-and-set.
//! let Some(Output::ReadPipelineState { id }) = life.poll_output() else { panic!() };
//! life.handle_input(Time(1), Input::PipelineStateRead { id, state: None, token: Token::from("r0") });
//! let Some(Output::StorePipelineState { id, expected, .. }) = life.poll_output() else { panic!() };
//! assert_eq!(expected, Token::from("r0"));
//! life.handle_input(Time(2), Input::PipelineStateStored { id, outcome: StoreOutcome::Stored { token: Token::from("r1") } });
//!
//! // Only then it reads the tables' states, and opens the log.
//! let Some(Output::RecoverTable { id, table }) = life.poll_output() else { panic!() };
//! life.handle_input(Time(3), Input::TableRecovered { id, table, state: None, token: Token::from("t0") });
//! let Some(Output::OpenLog { id }) = life.poll_output() else { panic!() };
//! let identity = LogIdentity { streams: [(StreamName::from(""), Identity::from("this log"))].into(), ..LogIdentity::default() };
//! let (floor, end) = (Position::START, Position::scalar(40));
//! life.handle_input(Time(4), Input::LogOpened { id, session: Session(1), identity, floor, end });
//!
//! // It says where the table starts, stores that the table exists, and begins to read.
//! let Some(Output::Started { lost: false, .. }) = life.poll_output() else { panic!() };
//! let Some(Output::StorePipelineState { id: storing, .. }) = life.poll_output() else { panic!() };
//! let Some(Output::ReadLog { id, .. }) = life.poll_output() else { panic!() };
//! let outcome = StoreOutcome::Stored { token: Token::from("r2") };
//! life.handle_input(Time(5), Input::PipelineStateStored { id: storing, outcome });
//! assert_eq!(life.poll_output(), None);
//!
//! // One row in one transaction. The row itself is in the row store; the machine gets its place.
//! let transaction = Transaction { stream: StreamName::from(""), at: Offset(0) };
//! let (batch, at) = (BatchId(1), Coordinate { major: 1, minor: 0 });
//! let row = LogEvent::Rows {
//!     table: orders.clone(),
//!     transaction: transaction.clone(),
//!     rows: RowRange { batch, rows: 0..1 },
//!     bytes: 100,
//!     first: at,
//!     last: at,
//!     digest: Digest { count: 1, hash: 4711 },
//!     touched: None,
//! };
//! let ended = LogEvent::Ended { transaction, upto: Position::scalar(2) };
//! let batches = vec![HeldBatch { batch, rows: 1, bytes: 100 }];
//! life.handle_input(Time(6), Input::LogRead { id, batches, events: vec![row, ended], finished: false });
//!
//! // The checkpoint is full and closes at the transaction's end: a worker nets and writes it, then it is committed.
//! let Some(Output::Send(ToWorker::Write { attempt, .. })) = life.poll_output() else { panic!() };
//! let Some(Output::ReadLog { .. }) = life.poll_output() else { panic!() };
//! life.handle_input(Time(7), Input::Written { attempt, outcome: WriteOutcome::Written });
//! let Some(Output::Commit { id, table, token, state, staged, .. }) = life.poll_output() else { panic!() };
//! assert_eq!((token, staged), (Token::from("t0"), vec![attempt]));
//! assert_eq!(state.cut.upto(), &Position::scalar(2)); // the rows, and how far they go, in one act
//! let Some(Output::ReleaseBatch { batch: BatchId(1) }) = life.poll_output() else { panic!() };
//! life.handle_input(Time(8), Input::Committed { id, table, outcome: CommitOutcome::Durable { token: Token::from("t1") } });
//! let Some(Output::ReleaseStaged { delete: false, .. }) = life.poll_output() else { panic!() };
//! let Some(Output::DiscardOlder { .. }) = life.poll_output() else { panic!() };
//! assert_eq!(life.poll_output(), None);
//!
//! // Nothing is acknowledged before a stored record proves it. The machine says when it will store one.
//! let deadline = life.poll_timeout().unwrap();
//! assert_eq!(deadline.why, "store the record");
//! life.handle_input(deadline.at, Input::Timeout);
//! let Some(Output::StorePipelineState { id, new, .. }) = life.poll_output() else { panic!() };
//! assert_eq!(new.quiet, Position::scalar(2));
//! let outcome = StoreOutcome::Stored { token: Token::from("r3") };
//! life.handle_input(deadline.at, Input::PipelineStateStored { id, outcome });
//! let Some(Output::Acknowledge { upto, .. }) = life.poll_output() else { panic!() };
//! assert_eq!(upto, Position::scalar(2));
//! assert_eq!(life.check(), Ok(()));
//! ```
//!
//! # The map
//!
//! | module | what it is | what is deliberately not there |
//! |---|---|---|
//! | [`coordinator`] | one life of a pipeline: its inputs and outputs, how it begins, what people see of it | rows, workers' indexes |
//! | [`worker`] | nets the parts of checkpoints and has them written | retries, decisions about rows |
//! | `checkpoint` | rows from the log until they are durable: open, closed, in flight, committed ([`docs::checkpoints`]) | |
//! | `absent` | values that updates left out: which rows lack some, and reading those again | the values |
//! | `acknowledge` | the pipeline record, the quiet position, what the source may forget ([`docs::acknowledging`]) | a table's own commits |
//! | `flow` | the one reader, the byte budget, retries, the end of a run | how bytes are read |
//! | [`route`] | several owners of one table: slots, parts, attempts, key indexes; the router and the owner, each a machine of its own | rows, keys, index contents; the coordinator does not use it yet |
//! | [`session`] | coordinator and workers: who is admitted, who is served, what ends with a session | sockets |
//! | [`position`] | positions, cuts, digests, and their text | a total order: there is none |
//! | [`state`] | what is stored, word for word | how a sink stores it |
//! | [`outcome`] | what became of a command | |
//! | [`invariant`] | what must never happen, one function a rule | what spans several lives: that is the simulator's oracle |
//! | [`planted`] | wrong rules, to prove that the checks find them; empty in a release | |
//! | [`config`], [`id`], [`time`] | bounds by name; names and numbers; time as a number that is handed in | |
//! | [`docs`] | the longer explanations, and decisions with their dates | |
//!
//! Concerns are folders with a plain state struct (`Table`, `Record`, `Log`); their handlers are methods of [`Coordinator`] in files of
//! their own, so that there is one outbox and nobody passes events between halves of a machine. Sinks that keep
//! columns and the bounded machine are not there yet; what they store has its fields in [`state`] already. Several owners of a table have
//! their machines ([`route`]), which the coordinator does not use yet.
//!
//! # Where to read on
//!
//! The stories in `kernel/testdata/` first, in order; then [`docs`]; then `invariant.rs`. The rules are cited by short names (`C5`, `A2`)
//! that code, scripts and simulator share.
//!
//! [`Coordinator`]: coordinator::Coordinator
//! [`Coordinator::handle_input`]: coordinator::Coordinator::handle_input
//! [`Coordinator::poll_output`]: coordinator::Coordinator::poll_output
//! [`Coordinator::poll_timeout`]: coordinator::Coordinator::poll_timeout
//! [`Input`]: coordinator::Input
//! [`Input::Timeout`]: coordinator::Input::Timeout
//! [`Output`]: coordinator::Output
#![no_std]
#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod absent;
mod acknowledge;
mod checkpoint;
pub mod config;
pub mod coordinator;
pub mod docs;
mod flow;
pub mod id;
pub mod invariant;
pub mod outcome;
#[cfg_attr(not(feature = "planted-bugs"), allow(missing_docs))]
pub mod planted;
pub mod position;
pub mod route;
pub mod session;
mod snapshot;
pub mod state;
pub mod time;
pub mod worker;
