//! Links between leads and workers. What is sent in one arrives in order, or not at all; what was sent before it broke may arrive long
//! after, even when the next one is open.

use kernel::id::WorkerSession;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToLead,
    ToWorker,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) lead: usize,
    pub(super) worker: usize,
    /// When it broke.
    pub(super) broke: Option<u64>,
    /// Nothing passes it any more, and nobody is told.
    silent: Option<u64>,
    /// Until when something still arrives, each way.
    until: u64,
    /// When the last thing arrives, each way.
    last: [u64; 2],
}

/// All that ever were.
#[derive(Clone, Debug, Default)]
pub(super) struct Links(pub(super) Vec<Link>);

impl Links {
    pub(super) fn open(&mut self, lead: usize, worker: usize, now: u64) -> usize {
        self.0.push(Link { lead, worker, broke: None, silent: None, until: 0, last: [now; 2] });
        self.0.len() - 1
    }

    /// The session of a link, as both sides number it.
    pub(super) fn session(link: usize) -> WorkerSession {
        WorkerSession(link as u64 + 1)
    }

    pub(super) fn of(session: WorkerSession) -> usize {
        session.0 as usize - 1
    }

    /// The link that a worker has now.
    pub(super) fn present(&self, worker: usize) -> Option<usize> {
        self.0.iter().rposition(|l| l.worker == worker).filter(|l| self.0[*l].broke.is_none())
    }

    /// When something that is sent now and takes so long arrives: behind all that was sent before it.
    pub(super) fn arrives(&mut self, link: usize, way: Way, now: u64, takes: u64) -> u64 {
        let last = &mut self.0[link].last[way as usize];
        *last = (now + takes).max(*last + 1);
        *last
    }

    pub(super) fn falls_silent(&mut self, link: usize, now: u64) {
        self.0[link].silent.get_or_insert(now);
    }

    /// It breaks. What is on its way may still arrive until then.
    pub(super) fn breaks(&mut self, link: usize, now: u64, until: u64) -> bool {
        let link = &mut self.0[link];
        if link.broke.is_some() {
            return false;
        }
        (link.broke, link.until) = (Some(now), until);
        true
    }

    /// Does what was sent then arrive now?
    pub(super) fn passes(&self, link: usize, sent: u64, now: u64) -> bool {
        let link = &self.0[link];
        if link.silent.is_some_and(|silent| now >= silent) {
            return false;
        }
        link.broke.is_none_or(|broke| sent <= broke && now <= link.until)
    }
}
