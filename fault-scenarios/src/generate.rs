//! What a seed makes: a workload, options, dice, and faults by chance.

use crate::absent;
use crate::dice::Dice;
use crate::options::{EmptyTransactions, Options};
use crate::random::{Random, mix};
use crate::scenario::Scenario;
use crate::sets;
use crate::snapshots;
use crate::step::Tab;
use crate::swarm::{Rates, Swarm};
use crate::workload::{Change, GROUPS, Join, Kind, Sink, Stream, Table, Transaction, Truncate, Workload};

/// How many small choices differ.
const DICE: usize = 128;

/// What `seed` makes. The scenario has no steps: which of them happen is found by asking the swarm.
pub fn generate(seed: u64) -> (Scenario, Swarm) {
    let random = &mut Random::new(seed);
    let tables = random.range(2, 4) as usize;
    let vector = random.chance(550);
    let streams = if vector { random.range(2, 3) as usize } else { 1 };
    let stopped = random.chance(40).then(|| random.below(tables as u64) as Tab);
    let rates = rates(random, stopped.is_some());
    let refuses = stopped.is_none() && random.chance(250);
    let rejects = stopped.is_none() && random.chance(300);
    let mut workload = workload(random, tables, streams, refuses);
    if rejects {
        let values = workload.transactions.iter().flat_map(|t| &t.changes).filter_map(|c| c.kind.value());
        workload.refused = values.filter(|v| v % 61 == 7).collect();
    }
    workload.tables = (0..tables).map(|_| table(random, stopped.is_some())).collect();
    let options = options(random, stopped);
    let dice = Dice((0..DICE).map(|_| random.below(256) as u8).collect());
    let mut swarm = Swarm { rates, seed: random.draw(), streams, tables };
    let mut scenario = Scenario { options, workload, dice, ..Scenario::default() };
    // A sequence of its own, so that what was decided before stays as it is.
    snapshots::decide(&mut scenario, &mut swarm.rates, &mut Random::new(mix(swarm.seed)));
    absent::decide(&mut scenario, &mut Random::new(mix(mix(swarm.seed))));
    sets::decide(&mut scenario, &mut swarm.rates, &mut Random::new(mix(mix(mix(swarm.seed)))));
    (scenario, swarm)
}

fn table(random: &mut Random, calm: bool) -> Table {
    Table {
        sink: if random.chance(600) { Sink::Staging } else { Sink::Versioned },
        keyed: !random.chance(200),
        join: match random.below(100) {
            0..8 if !calm => Join::Now,
            8..10 if !calm => Join::Snapshot,
            _ => Join::Beginning,
        },
        truncate: match random.below(10) {
            0 => Truncate::Ignored,
            1 if !calm => Truncate::Fails,
            _ => Truncate::Propagates,
        },
        anew: false,
    }
}

fn options(random: &mut Random, stopped: Option<Tab>) -> Options {
    let rows = random.range(2, 8);
    // A row has 10 bytes, more or less.
    let budget = if random.chance(300) { random.range(60, 300) } else { 100_000 };
    let mut options = Options {
        age: random.range(5, 40),
        rows,
        bytes: if random.chance(300) { random.range(20, 80) } else { 10_000 },
        record_interval: random.range(5, 40),
        poll_interval: 5,
        budget,
        read_bytes: random.range(30, 200),
        retry_first: random.range(2, 6),
        retry_most: random.range(8, 60),
        give_up_after: random.chance(150).then_some(200),
        hold: random.chance(400).then(|| random.range(80, 400)),
        validate_interval: 20 + 15 * rows,
        rewind_interval: random.range(1, 60),
        ancestors: *random.pick(&[1, 2, 4, 16]),
        recent: *random.pick(&[2, 4, 64, 64]),
        keeps_all: false,
        discards: random.chance(800),
        exclusive: random.chance(600),
        interleaves: random.chance(500),
        empty: *random.pick(&[EmptyTransactions::End, EmptyTransactions::Keepalive, EmptyTransactions::Silent]),
        keepalives: random.sometimes(700, 150),
        rows_tell_schemas: random.chance(400),
        finishes: random.chance(150),
        stopped,
        heals: None,
        ..Options::default()
    };
    // Without a throw of its own: the runs of all seeds stay what they were.
    options.hold_distance = options.hold.filter(|hold| hold % 4 == 0);
    if !options.discards && random.chance(500) {
        options.hold = None;
        options.hold_distance = None;
        options.keeps_all = true;
    }
    if stopped.is_some() {
        options.hold = None;
        options.hold_distance = None;
        options.give_up_after = None;
        options.rewind_interval = 20;
        // The others are fast enough by themselves.
        options.rows = 50;
        options.read_bytes = 1_000;
        options.budget = random.range(800, 2_000);
        options.bytes = 10_000;
    }
    options
}

fn rates(random: &mut Random, calm: bool) -> Rates {
    if calm {
        return Rates::default();
    }
    Rates {
        kill: random.sometimes(600, 4),
        kill_in_recovery: *random.pick(&[1, 1, 8, 20]),
        pause: random.sometimes(500, 4),
        unknown: random.sometimes(600, 150),
        slow: random.sometimes(500, 62),
        away: random.sometimes(300, 60),
        rollback: random.sometimes(250, 60),
        foreign: random.sometimes(300, 150),
        hands: random.sometimes(500, 300),
        purge: random.sometimes(80, 20),
        session: random.sometimes(300, 10),
        lost_acknowledgement: random.sometimes(200, 300),
        replaced: random.sometimes(80, 25),
        cut_short: random.sometimes(80, 25),
        other_server: random.sometimes(150, 30),
        lacks: 0,
        source_away: random.sometimes(200, 30),
        poison: random.sometimes(80, 15),
        lies: random.sometimes(100, 200),
        read_fails: random.sometimes(300, 30),
        drains: random.sometimes(250, 20),
        reconfigures: random.sometimes(200, 250),
        stale_answers: random.sometimes(400, 150),
        resnapshots: 0,
    }
}

/// A log: a key of a table lies in one stream only (rule P5), and what touches all keys at once only where the whole table
/// does. Some have transactions many times the limits, some a table that is nearly idle, some a stream that comes late, some
/// hours in which nothing happens.
fn workload(random: &mut Random, tables: usize, streams: usize, refuses: bool) -> Workload {
    let transactions = random.range(60, 160);
    // Of some tables all rows lie in one stream.
    let home: Vec<Option<usize>> =
        (0..tables).map(|_| (streams == 1 || random.chance(400)).then(|| random.below(streams as u64) as usize)).collect();
    let idle = random.below(tables as u64 + 1) as Tab;
    let late = (streams > 1 && random.chance(400)).then_some(streams - 1);
    let events = random.chance(600);
    let huge = random.chance(600);
    let mut appears = vec![None; streams];
    let (mut time, mut value) = (0, 0);
    let mut made = vec![];
    for n in 0..transactions {
        time += random.range(1, 8);
        let mut stream = random.below(streams as u64) as usize;
        if Some(stream) == late && n < transactions / 2 {
            stream = 0;
        }
        if Some(stream) == late {
            appears[stream].get_or_insert(time);
        }
        let here: Vec<Tab> = (0..tables).filter(|t| home[*t].is_none_or(|h| h == stream)).collect();
        let size = match random.below(100) {
            0..6 if huge => random.range(15, 45),
            6..14 => 0,
            _ => random.range(1, 4),
        };
        let only = random.chance(400).then(|| random.below(here.len() as u64));
        let mut changes = vec![];
        for _ in 0..if here.is_empty() { 0 } else { size } {
            let mut table = here[only.unwrap_or_else(|| random.below(here.len() as u64)) as usize];
            if table == idle && !random.chance(40) {
                table = here[random.below(here.len() as u64) as usize];
            }
            value += 1;
            // A key's remainder is its stream.
            let mut key = || (random.below(4) as usize * streams + stream) as u8;
            let (from, to) = (key(), key());
            let kind = kind(random, from, to, value, events && home[table].is_some(), refuses);
            changes.push(Change { table, kind, without: [false; GROUPS] });
        }
        made.push(Transaction { stream, time, gap: random.below(3), changes, ..Transaction::default() });
    }
    let stream = |n: usize| Stream { name: ["a", "b", "c"][n].into(), appears: appears[n].unwrap_or(0) };
    let streams = if streams == 1 { vec![] } else { (0..streams).map(stream).collect() };
    Workload { streams, tables: vec![], transactions: made, refused: vec![] }
}

fn kind(random: &mut Random, from: u8, to: u8, value: u32, events: bool, refuses: bool) -> Kind {
    match random.below(1000) {
        0..15 if events => Kind::Truncated,
        15..35 if events => Kind::Schema,
        35..45 if refuses => Kind::Refused,
        45..120 if from != to => Kind::Moved(from, to, value),
        120..400 => Kind::Gone(from),
        _ => Kind::Set(from, value),
    }
}
