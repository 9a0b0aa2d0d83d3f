//! Sessions between a coordinator and its workers: who may speak, whom to believe, what ends with one (rules O3, O4).
//!
//! # Contract
//!
//! A session is ordered and is the life of everything that was sent in it: at its end, or when nothing is heard in it for too
//! long (each side says that it is there, and each ends what is silent), the worker forgets its parts and the coordinator begins
//! them again. Nothing is resumed across sessions. Each side numbers its sessions by itself, always higher, so that what comes late
//! from an earlier one is told from the present one. That goes for a Hello, too.
//!
//! A worker's first word is its *Hello*, with the highest incarnation that it has ever served. A coordinator that hears of a higher
//! one than its own admits nobody until it has asked the record whether it is still the newest: without that, workers that have
//! served its successor would come and hang up for ever, and each coming would move slots. A worker that is welcomed by a lower
//! incarnation than it has served hangs up; by a higher or equal one it forgets every part, and keeps its key indexes, which carry
//! their own binding.
//!
//! Both halves are plain state: [`Sessions`] is a part of [`crate::route::Router`], [`Serving`] of [`crate::route::Owner`].
//!
//! What is deliberately absent: sockets, reconnecting with back-off, and who the worker is. Those are the pump's.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::{Incarnation, WorkerId, WorkerSession};
use crate::time::{Duration, Time};

/// The coordinator's half: the workers that were admitted, each in one session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sessions {
    incarnation: Incarnation,
    admitted: BTreeMap<WorkerId, Admitted>,
    /// A worker told of a life above ours, and the record was not asked since.
    doubted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Admitted {
    session: WorkerSession,
    heard: Time,
}

/// What a coordinator makes of a Hello.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Admission {
    /// Welcome it. An earlier session of the same worker, whose end nobody has noticed yet, is over.
    Admitted {
        /// That session.
        replaces: Option<WorkerSession>,
    },
    /// Hang up. It has served a newer life, so the record must say whether this one is over.
    ServedNewer,
    /// Hang up. Nobody is admitted before the record was asked.
    Doubted,
    /// It was admitted in this session already: nothing changes.
    SaidTwice,
    /// It comes late, from a session before the one that the worker is in: nothing changes.
    Late,
}

impl Sessions {
    /// Nobody is there yet.
    pub fn new(incarnation: Incarnation) -> Self {
        Self { incarnation, admitted: BTreeMap::new(), doubted: false }
    }

    /// A worker said its first word.
    pub fn hello(&mut self, now: Time, session: WorkerSession, worker: WorkerId, served: Incarnation) -> Admission {
        if served > self.incarnation {
            self.doubted = true;
            return Admission::ServedNewer;
        }
        if self.doubted {
            return Admission::Doubted;
        }
        let replaces = self.session_of(worker);
        match replaces {
            Some(present) if present == session => return Admission::SaidTwice,
            // Believed, it would take the worker out of the session that it is in, and nobody would ever tell it.
            Some(present) if present > session => return Admission::Late,
            Some(_) | None => {}
        }
        self.admitted.insert(worker, Admitted { session, heard: now });
        Admission::Admitted { replaces }
    }

    /// Something came in this session: whose is it? Nobody's, if it is over or its Hello was not admitted.
    pub fn heard(&mut self, now: Time, session: WorkerSession) -> Option<WorkerId> {
        let (worker, admitted) = self.admitted.iter_mut().find(|(_, a)| a.session == session)?;
        admitted.heard = now;
        Some(*worker)
    }

    /// It is over.
    pub fn lost(&mut self, session: WorkerSession) -> Option<WorkerId> {
        let worker = self.admitted.iter().find(|(_, a)| a.session == session).map(|(w, _)| *w)?;
        self.admitted.remove(&worker);
        Some(worker)
    }

    /// The record was asked, and names no newer life.
    pub fn proven_newest(&mut self) {
        self.doubted = false;
    }

    /// May nobody be admitted?
    pub fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// A worker's present session.
    pub fn session_of(&self, worker: WorkerId) -> Option<WorkerSession> {
        self.admitted.get(&worker).map(|a| a.session)
    }

    /// The workers that may own slots.
    pub fn workers(&self) -> impl Iterator<Item = WorkerId> + '_ {
        self.admitted.keys().copied()
    }

    /// All present sessions.
    pub fn sessions(&self) -> impl Iterator<Item = WorkerSession> + '_ {
        self.admitted.values().map(|a| a.session)
    }

    /// Those in which nothing was heard for so long that they count as over.
    pub fn silent(&self, now: Time, silence: Duration) -> Vec<WorkerSession> {
        self.admitted.values().filter(|a| a.heard + silence <= now).map(|a| a.session).collect()
    }

    /// When the first of them will count as over.
    pub fn next_silent(&self, silence: Duration) -> Option<Time> {
        self.admitted.values().map(|a| a.heard + silence).min()
    }
}

/// The worker's half: whom it serves.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Serving {
    /// The highest incarnation that it has ever served.
    highest: Incarnation,
    /// The session that it is in, once a coordinator was reached.
    session: Option<WorkerSession>,
    welcomed: bool,
}

/// What a worker makes of a Welcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Welcomed {
    /// A life that is over speaks: hang up.
    Refused,
    /// Forget every part, keep the indexes, and serve it. Was another life served before?
    Serves {
        /// It was.
        another: bool,
    },
    /// It comes from a session that is over.
    Stale,
}

impl Serving {
    /// A coordinator was reached. What was sent in the session before it is over.
    pub fn connected(&mut self, session: WorkerSession) -> Option<WorkerSession> {
        self.welcomed = false;
        self.session.replace(session)
    }

    /// A coordinator has admitted this worker.
    pub fn welcome(&mut self, session: WorkerSession, incarnation: Incarnation) -> Welcomed {
        if self.session != Some(session) {
            return Welcomed::Stale;
        }
        if incarnation < self.highest {
            self.session = None;
            return Welcomed::Refused;
        }
        let another = self.highest != Incarnation::default() && self.highest != incarnation;
        self.highest = incarnation;
        self.welcomed = true;
        Welcomed::Serves { another }
    }

    /// The session is over. Was it the present one?
    pub fn lost(&mut self, session: WorkerSession) -> bool {
        let present = self.session == Some(session);
        if present {
            self.session = None;
            self.welcomed = false;
        }
        present
    }

    /// The session that it is in, welcomed or not.
    pub fn present(&self) -> Option<WorkerSession> {
        self.session
    }

    /// Does this session count, and was this worker welcomed in it?
    pub fn serves(&self, session: WorkerSession) -> bool {
        self.welcomed && self.session == Some(session)
    }

    /// The session in which it was welcomed.
    pub fn session(&self) -> Option<WorkerSession> {
        self.session.filter(|_| self.welcomed)
    }

    /// The highest incarnation that it has ever served.
    pub fn highest(&self) -> Incarnation {
        self.highest
    }
}

#[cfg(test)]
mod tests;
