//! What goes wrong, by chance or as told, and what becomes of it.

use super::{Happens, Lead, LeadInput, Links, OwnerInput, Process, TICK, Workshop, World};
use crate::owners::Fault;

impl World<'_> {
    pub(super) fn tick(&mut self) {
        self.workers_come();
        self.workers_dial();
        self.faults_by_chance();
        for p in 0..self.leads.len() {
            self.lead(p, LeadInput::Timeout);
        }
        if !self.begins && !self.leads.iter().any(Process::<Lead, LeadInput>::is_awake) {
            self.begins = true;
            let after = if self.story.seed.is_some() { self.random.range(1, 40) } else { 1 };
            self.at(self.now + after, Happens::Begins);
        }
        self.at(self.now + TICK, Happens::Tick);
    }

    fn workers_come(&mut self) {
        let there = self.workers.iter().filter(|w| w.is_awake()).count();
        let comes = self.story.seed.is_none() || self.random.chance(300);
        if there < self.story.limits.workers && comes {
            let number = self.workers.len() as u64 + 1;
            let workshop = Workshop::new(self.now, number, &self.story.tables, self.bug);
            self.workers.push(Process::new(workshop));
        }
    }

    fn workers_dial(&mut self) {
        for w in 0..self.workers.len() {
            let quick = self.story.seed.is_none() || self.random.chance(300);
            if !self.workers[w].is_awake() || self.links.present(w).is_some() || !quick {
                continue;
            }
            let leads: Vec<usize> =
                (0..self.leads.len()).filter(|p| self.leads[*p].alive && self.leads[*p].machine.router.is_some()).collect();
            let Some(newest) = leads.last().copied() else { continue };
            let old = self.chance(self.story.rates.dials_old);
            let lead = if old { *self.random.pick(&leads) } else { newest };
            self.dial(w, lead);
        }
    }

    fn dial(&mut self, w: usize, lead: usize) {
        let link = self.links.open(lead, w, self.now);
        if self.chance(self.story.rates.silent) {
            self.fault(Fault::LinkFallsSilent(w));
        }
        self.worker(w, OwnerInput::Connected { session: Links::session(link) }, vec![]);
    }

    /// Workers break, links break, foreign hands write. Leads end at what they hear and do (`perhaps_ends`).
    fn faults_by_chance(&mut self) {
        if self.story.seed.is_none() || self.healed {
            return;
        }
        let rates = self.story.rates.clone();
        let tables = self.story.tables.len() as u64;
        for w in 0..self.workers.len() {
            if !self.workers[w].is_awake() {
                continue;
            }
            if self.chance(rates.worker_dies) {
                self.fault(Fault::WorkerDies(w));
            } else if self.chance(rates.worker_stands) {
                let lasts = self.random.range(20, 300);
                if self.random.chance(700) {
                    let late = self.random.below(60);
                    self.fault(Fault::LinkBreaks(w, late));
                }
                self.fault(Fault::WorkerStandsStill(w, lasts));
            }
            if self.chance(rates.breaks) {
                let late = if self.random.chance(500) { self.random.below(60) } else { 0 };
                self.fault(Fault::LinkBreaks(w, late));
            }
            if self.chance(rates.silent) {
                self.fault(Fault::LinkFallsSilent(w));
            }
        }
        let table = self.random.below(tables) as usize;
        let slots = self.random.range(1, 4) as u32;
        let lasts = self.random.range(20, 250);
        let mut faults = vec![];
        faults.extend(self.chance(rates.compacts).then_some(Fault::Compacts(table)));
        faults.extend(self.chance(rates.divides).then_some(Fault::Divides(table, slots)));
        faults.extend(self.chance(rates.moves).then_some(Fault::Moves(table, slots - 1)));
        faults.extend(self.chance(rates.away).then_some(Fault::SinkIsAway(table, lasts)));
        faults.extend(self.chance(rates.gives_up).then_some(Fault::GivesUp(table)));
        faults.into_iter().for_each(|fault| self.fault(fault));
    }

    /// A lead ends, or stands still, where something just happened to it: at times chosen evenly the rare windows are missed.
    pub(super) fn perhaps_ends(&mut self, p: usize) {
        if !self.leads[p].is_awake() || Some(p) != self.newest() {
            return;
        }
        if self.chance(self.story.rates.lead_dies) {
            self.fault(Fault::LeadDies);
        } else if self.chance(self.story.rates.lead_stands) {
            let lasts = self.random.range(20, 400);
            self.fault(Fault::LeadStandsStill(lasts));
        }
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        let (newest, now) = (self.newest(), self.now);
        self.tell(|| format!("*** {fault:?}"));
        match fault {
            Fault::LeadDies => {
                if let Some(p) = newest {
                    self.end_lead(p);
                }
            }
            Fault::LeadStandsStill(lasts) => {
                let Some(p) = newest.filter(|p| self.leads[*p].still.is_none()) else { return };
                self.mark("lead-stood-still");
                self.leads[p].still = Some(vec![]);
                self.at(now + lasts, Happens::LeadWakes(p));
                for link in 0..self.links.0.len() {
                    let cut = self.links.0[link].lead == p && self.chance(600);
                    if cut {
                        let late = self.random.below(60);
                        self.break_link(link, late);
                    }
                }
            }
            Fault::WorkerDies(w) => self.end_worker(w),
            Fault::WorkerStandsStill(w, lasts) => {
                if self.workers.get(w).is_some_and(|w| w.is_awake()) {
                    self.mark("worker-stood-still");
                    self.workers[w].still = Some(vec![]);
                    self.at(now + lasts, Happens::WorkerWakes(w));
                }
            }
            Fault::LinkBreaks(w, late) => {
                if let Some(link) = self.links.present(w) {
                    self.break_link(link, late);
                }
            }
            Fault::LinkFallsSilent(w) => {
                if let Some(link) = self.links.present(w) {
                    self.mark("link-fell-silent");
                    self.links.falls_silent(link, now);
                }
            }
            Fault::Dials(w, lead) => {
                if let Some(link) = self.links.present(w) {
                    self.break_link(link, 0);
                }
                if self.workers.get(w).is_some_and(|w| w.is_awake()) && self.leads.get(lead).is_some_and(|l| l.alive) {
                    self.dial(w, lead);
                }
            }
            Fault::Compacts(table) => {
                if self.sinks[table].compact() {
                    self.mark("compacted");
                }
            }
            Fault::Divides(table, slots) => self.tell_leads(|| LeadInput::Divide(table, slots)),
            Fault::Moves(table, slot) => self.tell_leads(|| LeadInput::Move(table, slot)),
            Fault::SinkIsAway(table, lasts) => {
                self.away[table] = true;
                self.at(now + lasts, Happens::SinkIsBack(table));
            }
            Fault::NextCommit(table, fate) => drop(self.next_commit.insert(table, fate)),
            Fault::NextWrite(table, fate) => drop(self.next_write.insert(table, fate)),
            Fault::GivesUp(table) => {
                if let Some(p) = newest {
                    self.mark("gave-up");
                    self.lead(p, LeadInput::GiveUp(table));
                }
            }
        }
    }

    fn tell_leads(&mut self, input: impl Fn() -> LeadInput) {
        for p in 0..self.leads.len() {
            self.lead(p, input());
        }
    }

    pub(super) fn end_lead(&mut self, p: usize) {
        if !self.leads[p].alive {
            return;
        }
        self.tell(|| format!("*** lead {p} ends"));
        if self.leads[p].machine.router.as_ref().is_some_and(|r| r.is_between_owners()) {
            self.mark("ended-between-owners");
        }
        self.leads[p].alive = false;
        self.break_links(p);
    }

    pub(super) fn break_links(&mut self, p: usize) {
        for link in 0..self.links.0.len() {
            if self.links.0[link].lead == p {
                self.break_link(link, 0);
            }
        }
    }

    fn end_worker(&mut self, w: usize) {
        if !self.workers.get(w).is_some_and(|w| w.alive) {
            return;
        }
        self.mark("worker-died");
        self.workers[w].alive = false;
        if let Some(link) = self.links.present(w) {
            self.break_link(link, 0);
        }
    }

    /// Both sides hear of it, each some time.
    pub(super) fn break_link(&mut self, link: usize, late: u64) {
        if !self.links.breaks(link, self.now, self.now + late) {
            return;
        }
        let (lead, worker) = (self.links.0[link].lead, self.links.0[link].worker);
        self.tell(|| format!("*** the link of worker {worker} and lead {lead} breaks"));
        let session = Links::session(link);
        let mut after = || if self.story.seed.is_some() { self.random.range(1, 30) } else { 1 };
        let (lead_after, worker_after) = (self.now + after(), self.now + after());
        self.at(lead_after, Happens::Lead(lead, LeadInput::Lost(session)));
        self.at(worker_after, Happens::Worker(worker, OwnerInput::SessionLost { session }));
    }
}
