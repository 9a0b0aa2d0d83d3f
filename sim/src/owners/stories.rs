//! Directed stories: what chance meets rarely, told step by step. Nothing in them is left to chance; everything takes one tick.

use kernel::planted::PlantedBug;

use super::story::{Change, Fate, Fault, Key, Kind, Limits, Story, Tab, Value};

/// A story, and what it is for.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its name, in the table of planted bugs.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// What happens.
    pub story: Story,
    /// Wrong rules that it finds, each by the invariant that claims it.
    pub finds: Vec<PlantedBug>,
    /// Rare paths that it takes.
    pub reaches: Vec<&'static str>,
}

fn put(key: Key, value: Value) -> (Tab, Change) {
    (0, Change::Row { old: None, key, value: Some(value) })
}

fn moves(old: Key, key: Key, value: Value) -> (Tab, Change) {
    (0, Change::Row { old: Some(old), key, value: Some(value) })
}

/// Two rows close a checkpoint. Of two slots keys 2, 4, 5, 6 and 9 are in slot 0, the others in slot 1.
fn two() -> Limits {
    Limits { rows: 2, ..Limits::default() }
}

/// And a table that does not move keeps what waits: nothing else ends its wait.
fn patient() -> Limits {
    Limits { hold: 100_000, ..two() }
}

/// All of them.
pub fn stories() -> Vec<Told> {
    let updates = || -> Vec<(u64, Vec<(Tab, Change)>)> {
        vec![(20, vec![put(2, 1), put(0, 2)]), (60, vec![put(2, 3), put(0, 4)]), (100, vec![put(2, 5), put(0, 6)])]
    };
    let story = |kind: Kind, limits: Limits, log: Vec<(u64, Vec<(Tab, Change)>)>, happenings: &[(u64, Fault)]| {
        let log: Vec<(u64, &[(Tab, Change)])> = log.iter().map(|(at, changes)| (*at, changes.as_slice())).collect();
        Story::told(&[kind], limits, &log, happenings)
    };
    let large: Vec<(Tab, Change)> =
        (0..12).map(|n| put(n, u32::from(n) + 1)).chain([(0, Change::Truncated), put(2, 20)]).collect();
    vec![
        Told {
            name: "a-compaction-between-locating-and-commit",
            about: "H1 and H9, rules O6 and O7: the rows that were located have moved, so all parts are located again at the one new \
                    snapshot. Rows of both slots are in one file then, which has one deletion vector.",
            story: story(Kind::Located, two(), updates(), &[(50, Fault::NextCommit(0, Fate::BehindCompaction))]),
            finds: vec![PlantedBug::NotLocatedAgain, PlantedBug::OnePartLocatedAgain, PlantedBug::OneVectorPerOwner],
            reaches: vec!["compacted", "located-again", "asked-again", "index-at-another-base"],
        },
        Told {
            name: "a-commit-that-is-found-did-not-make-the-head",
            about: "H2, rule O8: the answer is lost, a compaction comes, the commit is found in the history. Which snapshot it made \
                    nobody can say, so the indexes are dropped.",
            story: story(Kind::Located, two(), updates(), &[(50, Fault::NextCommit(0, Fate::BeforeCompaction))]),
            finds: vec![PlantedBug::IndexBoundToHead],
            reaches: vec!["durable-in-history", "index-dropped"],
        },
        Told {
            name: "links-break-when-a-commit-was-sent",
            about: "H8, rules O5 and O10: what a sent commit names stays as it is and where it is, whoever is lost.",
            story: story(Kind::Located, two(), updates(), &[(50, Fault::NextCommit(0, Fate::LinksBreak))]),
            finds: vec![PlantedBug::SentPartAttemptedAgain, PlantedBug::WorkerCleansUp],
            reaches: vec!["routed-commit-unknown", "worker-session-lost"],
        },
        Told {
            name: "given-up-while-nobody-knows",
            about: "H12, rule O5: a checkpoint whose commit was sent is not given up before its outcome is known.",
            story: story(Kind::Versioned, two(), updates(), &[(50, Fault::NextCommit(0, Fate::GivenUp))]),
            finds: vec![PlantedBug::GivenUpWhileUnknown],
            reaches: vec!["sent-commit-spared"],
        },
        Told {
            name: "a-write-that-nobody-answers",
            about: "Rule O10: a part that takes too long is attempted at another worker.",
            story: story(Kind::Located, patient(), updates(), &[(50, Fault::NextWrite(0, Fate::Hangs))]),
            finds: vec![PlantedBug::PartNeverMoves],
            reaches: vec!["part-waited-too-long"],
        },
        Told {
            name: "a-write-that-the-only-worker-never-ends",
            about: "Rules O10 and R7: where there is no other worker the part is attempted anew at the same one.",
            story: story(
                Kind::Appended,
                Limits { workers: 1, ..patient() },
                updates(),
                &[(50, Fault::NextWrite(0, Fate::Hangs))],
            ),
            finds: vec![PlantedBug::PartNeverMoves],
            reaches: vec!["part-waited-too-long-alone"],
        },
        Told {
            name: "a-stale-lead-keeps-its-workers",
            about: "H5 and H6, rule O4: a life that slept wakes beside its successor. Its workers have sessions, and dial nobody else.",
            story: story(Kind::Located, two(), updates(), &[(30, Fault::LeadStandsStill(50))]),
            finds: vec![PlantedBug::NeitherHelloNorTimer],
            reaches: vec!["router-superseded", "adopted-by-a-newer-life"],
        },
        Told {
            name: "a-worker-tells-of-a-newer-life",
            about: "H6, rule O4: a worker that has served the successor comes to a life that is over. It is not admitted, and the life \
                    asks at once, long before its timer would.",
            story: story(
                Kind::Located,
                two(),
                updates(),
                &[(45, Fault::LeadStandsStill(20)), (54, Fault::LinkBreaks(0, 0)), (66, Fault::Dials(0, 0))],
            ),
            finds: vec![],
            reaches: vec!["told-of-a-newer-life", "router-superseded"],
        },
        Told {
            name: "a-truncate-of-rows-that-were-sent",
            about: "H7, rule O2: what begins again behind a TRUNCATE is another part, with attempts of its own.",
            story: story(Kind::Versioned, Limits { rows: 20, age: 40, read: 6, ..Limits::default() }, vec![(20, large)], &[]),
            finds: vec![PlantedBug::AttemptReusedAfterTruncate],
            reaches: vec!["truncate-of-sent-rows"],
        },
        Told {
            name: "keys-are-divided-otherwise-from-the-next-checkpoint-on",
            about: "Rule O1: an open checkpoint keeps its layout.",
            story: story(
                Kind::Located,
                Limits { slots: 4, rows: 10, age: 30, ..Limits::default() },
                vec![(20, vec![put(3, 1), put(2, 2)]), (40, vec![moves(3, 2, 3)])],
                &[(28, Fault::Divides(0, 1))],
            ),
            finds: vec![PlantedBug::LayoutFlipsInside],
            reaches: vec!["layout-changed"],
        },
        Told {
            name: "the-first-word-is-lost-in-a-silent-session",
            about: "Rules O3 and R7: a worker that hears nothing, not even a Welcome, ends the session itself. Nobody else would: its \
                    coordinator does not know that it is there.",
            story: story(
                Kind::Appended,
                Limits { workers: 1, ..two() },
                updates(),
                &[(8, Fault::LinkBreaks(0, 0)), (9, Fault::LinkFallsSilent(0))],
            ),
            finds: vec![PlantedBug::SilenceIgnored],
            reaches: vec!["coordinator-silent"],
        },
    ]
}
