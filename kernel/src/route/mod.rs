//! Several owners of one table: which keys are whose, and how their parts of a checkpoint become one commit (rules O).
//!
//! # Contract
//!
//! A [`Layout`] maps encoded keys to *slots*; it changes only between two checkpoints of a table. A slot has one worker at a time,
//! which may change at any moment. Neither is stored: a life divides anew.
//!
//! A *part* is one slot of one checkpoint. [`Router`], beside the coordinator, keeps a part's rows until it is written, and has it
//! tried by numbered *attempts*: {incarnation, number}, a number never used twice in a life. A new worker, a new session, a failed
//! write make a new attempt, which gets all rows from the first; what a TRUNCATE begins again is another part. Every message, staged
//! file and answer about a part names the attempt, and only the present one counts, once. So no message needs an order but that
//! within a session, and nothing of a session is ever resumed.
//!
//! [`Owner`], in the worker's process, holds no rows and decides nothing about them. It has a part written when it has all of its
//! rows and was told so, and has the rows that it replaces located in a *key index* at exactly the snapshot that it was told.
//!
//! What the coordinator's checkpoints say to the router, of each table: rows were taken, the open checkpoint was closed; when its
//! turn has come (all before it are durable, and the token is known) the router has the parts located there, and says `Gathered`. From
//! `CommitSent` to the answer nothing about the parts changes, whatever happens to their workers (rule O5). A foreign commit has all of
//! them located again; where a worker is gone by then, the table is set back (rule O6).
//!
//! What to send is a function of the state: 'not sent in this session, so send it'. A new session needs no code of its own.
//!
//! # What is deliberately absent
//!
//! Rows, keys and index contents: the pump keeps them under attempts and index names. Reading the log, closing, committing: that is
//! [`crate::coordinator`]'s, which has one owner a table as yet and does without this. Resuming a part in a later session: four more
//! mechanisms, a leak, and as many rows sent again.

mod attempts;
mod check;
mod checkpoints;
mod deletions;
mod heard;
mod index;
mod layout;
mod message;
mod owner;
mod router;
mod share;
mod wire;

pub use deletions::Deletions;
pub use index::{Binding, Indexes};
pub use layout::{Layout, LayoutError};
pub use message::*;
pub use owner::{Owner, OwnerConfig};
pub use router::{Router, RouterConfig, RouterWaiting};
pub use wire::*;
