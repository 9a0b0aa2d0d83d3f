//! The text of scenarios: what is written is read back, in one form only, and what is wrong is told with its line.

use fault_scenarios::{
    Change, Command, Dice, EmptyTransactions, Finds, Join, Kind, Options, Request, Scenario, Sink, Step, Stream, Table, Then,
    Transaction, Truncate, What, When, Workload, generate,
};
use proptest::prelude::*;

const TABLES: usize = 3;

fn command() -> impl Strategy<Value = Command> {
    (0..5usize, 0..What::ALL.len(), 0..TABLES, 1..40u32).prop_map(|(process, what, table, nth)| {
        let what = What::ALL[what];
        Command { process, what, table: what.is_of_a_table().then_some(table), nth }
    })
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        (0..1_000u64).prop_map(When::At),
        (0..5usize).prop_map(When::Begins),
        command().prop_map(When::Sends),
        command().prop_map(When::Lands),
        command().prop_map(When::Hears),
    ]
}

fn then() -> impl Strategy<Value = Then> {
    let (p, t, n) = (|| 0..5usize, || 0..TABLES, || 1..300u64);
    let request = prop_oneof![
        t().prop_map(Request::Pause),
        t().prop_map(Request::Resume),
        t().prop_map(Request::Skip),
        t().prop_map(Request::Release),
        t().prop_map(Request::Resnapshot),
        Just(Request::Drain),
    ];
    let of_commands = prop_oneof![
        n().prop_map(Then::Takes),
        n().prop_map(Then::LandsAt),
        Just(Then::IsLost),
        Just(Then::AnswerIsLost),
        n().prop_map(Then::LandsLate),
        Just(Then::SenderDies),
        Just(Then::Fails),
        Just(Then::IsCalledAConflict),
        Just(Then::Lies),
        Just(Then::LosesTheSession),
        n().prop_map(Then::AnswerTakes),
    ];
    let of_processes = prop_oneof![
        (p(), any::<bool>()).prop_map(|(process, with_its_mail)| Then::Dies { process, with_its_mail }),
        (p(), n()).prop_map(|(p, n)| Then::StandsStill(p, n)),
        (p(), command()).prop_map(|(p, c)| Then::HearsACopy(p, c)),
        n().prop_map(Then::After),
        Just(Then::UntilCurrent),
        t().prop_map(Then::With),
        t().prop_map(Then::Without),
        (p(), request).prop_map(|(p, r)| Then::Asked(p, r)),
    ];
    let of_the_world = prop_oneof![
        (t(), n()).prop_map(|(t, n)| Then::IsSetBack(t, n)),
        t().prop_map(Then::ForeignCommit),
        (t(), n()).prop_map(|(t, n)| Then::SinkIsAway(t, n)),
        n().prop_map(Then::SourceIsAway),
        n().prop_map(Then::Unreadable),
        n().prop_map(Then::AnotherLog),
        (n(), n()).prop_map(|(by, lasts)| Then::CutShort { by, lasts }),
        Just(Then::AnotherServer),
        (0..2usize, n(), n()).prop_map(|(stream, last, lasts)| Then::Lacks { stream, last, lasts }),
        (0..2usize, n()).prop_map(|(s, n)| Then::Forgets(s, n)),
    ];
    prop_oneof![of_commands, of_processes, of_the_world]
}

fn notes() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[A-Za-z0-9,.:#' ]{0,30}[a-z.]|", 0..3)
}

fn kind() -> impl Strategy<Value = Kind> {
    let k = || 0..4u8;
    prop_oneof![
        6 => k().prop_map(|key| Kind::Set(key, 0)),
        1 => k().prop_map(Kind::Gone),
        1 => (k(), k()).prop_map(|(from, to)| Kind::Moved(from, to, 0)),
        1 => Just(Kind::Truncated),
        1 => Just(Kind::Schema),
        1 => Just(Kind::Refused),
    ]
}

fn workload() -> impl Strategy<Value = Workload> {
    let table = (any::<[bool; 3]>(), 0..3usize, 0..3usize).prop_map(|([staging, keyed, anew], join, truncate)| Table {
        sink: if staging { Sink::Staging } else { Sink::Versioned },
        keyed,
        join: [Join::Beginning, Join::Now, Join::Snapshot][join],
        truncate: [Truncate::Propagates, Truncate::Ignored, Truncate::Fails][truncate],
        anew,
    });
    let change = (0..TABLES, kind(), 1..3u32);
    let transaction = (notes(), 0..2usize, 0..9u64, any::<[u8; 5]>(), proptest::collection::vec(change, 0..12));
    let tables = proptest::collection::vec(table, TABLES);
    let refused = proptest::collection::vec(0..500u32, 0..3);
    (any::<bool>(), tables, proptest::collection::vec(transaction, 0..12), refused).prop_map(
        |(vector, tables, drafts, refused)| {
            let streams = if vector { vec![("a", 0), ("b", 30)] } else { vec![] };
            let streams: Vec<Stream> = streams.into_iter().map(|(name, appears)| Stream { name: name.into(), appears }).collect();
            let (mut time, mut value) = (0, 100);
            let mut transactions = vec![];
            for (note, stream, later, delays, changes) in drafts {
                time += later;
                let mut fresh = |(table, kind, step): (usize, Kind, u32)| {
                    value += step;
                    let kind = match kind {
                        Kind::Set(key, _) => Kind::Set(key, value),
                        Kind::Moved(from, to, _) => Kind::Moved(from, to, value),
                        kind => kind,
                    };
                    // A value that is divisible may be left out, in part or whole.
                    let carries = matches!(kind, Kind::Set(..) | Kind::Moved(..));
                    let without = [carries && value % 3 == 0, carries && value % 5 == 0];
                    Change { table, kind, without }
                };
                let changes = changes.into_iter().map(&mut fresh).collect();
                let stream = if vector { stream } else { 0 };
                let [gap, early, hidden, unlisted, late] = delays.map(|n| u64::from(n / 64));
                transactions.push(Transaction { note, stream, time, gap, early, hidden, unlisted, late, changes });
            }
            Workload { streams, tables, transactions, refused }
        },
    )
}

fn options() -> impl Strategy<Value = Options> {
    (any::<[u16; 4]>(), any::<[bool; 4]>(), 0..3usize).prop_map(
        |([age, hold, budget, heals], [held, exclusive, discards, heal], empty)| Options {
            age: u64::from(age),
            hold: held.then_some(u64::from(hold)),
            budget: u64::from(budget),
            exclusive,
            discards,
            heals: heal.then_some(u64::from(heals)),
            stopped: exclusive.then_some(1),
            empty: [EmptyTransactions::End, EmptyTransactions::Keepalive, EmptyTransactions::Silent][empty],
            ..Options::default()
        },
    )
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let step = (notes(), when(), then()).prop_map(|(note, when, then)| Step { note, when, then });
    let steps = proptest::collection::vec(step, 0..40);
    let dice = proptest::collection::vec(any::<u8>(), 0..100).prop_map(Dice);
    (notes(), any::<bool>(), options(), workload(), steps, dice).prop_map(|(about, finds, options, mut workload, steps, dice)| {
        let finds = finds.then(|| Finds { bug: "StateBeforeData".into(), invariant: "position-covers-only-durable".into() });
        let mut steps: Vec<Step> = steps.into_iter().filter(|s| s.fits().is_ok()).collect();
        if workload.streams.is_empty() {
            steps.retain(|s| !matches!(s.then, Then::Forgets(1, _) | Then::Lacks { stream: 1, .. }));
        }
        workload.refused.sort_unstable();
        let reaches = if finds.is_some() { vec!["set-back-by-rollback".to_string()] } else { vec![] };
        Scenario { about, finds: finds.into_iter().collect(), reaches, options, workload, steps, dice }
    })
}

proptest! {
    #[test]
    fn a_scenario_is_read_back_as_it_was_written(scenario in scenario()) {
        let text = scenario.to_string();
        let read: Scenario = text.parse().map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&read, &scenario, "{}", text);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn no_text_is_too_strange_to_be_answered(text in "[a-z0-9 .:=>\\-#\n]{0,200}") {
        let _ = text.parse::<Scenario>();
    }

    #[test]
    fn what_a_seed_makes_is_read_back(seed in any::<u64>()) {
        let (scenario, _) = generate(seed);
        let text = scenario.to_string();
        prop_assert_eq!(text.parse::<Scenario>().map_err(|e| TestCaseError::fail(e.to_string()))?, scenario);
    }
}

#[test]
fn a_scenario_that_comes_to_the_end_of_time_heals_there() {
    let text = format!("table t0 staging\n\ntx {0}\n  t0 1 = 100\n\nat {0}: p0 stands still for 30\n", u64::MAX);
    let scenario: Scenario = text.parse().expect("it is a scenario");
    assert_eq!((scenario.last_time(), scenario.heals()), (u64::MAX, u64::MAX));
}

/// Each line of a file that is wrong, with what is said of it.
#[test]
fn what_is_wrong_is_told_with_its_line_and_a_remedy() {
    let base = "table t0 staging\n\ntx 5\n  t0 1 = 100\n";
    for (line, what, remedy) in [
        ("tx 4", "time goes from 5 back to 4", "in the order of their times"),
        ("  t0 1 = 100", "100 was written in line 4, too", "a value of its own"),
        ("  t1 1 = 101", "there is no table t1", "'table t1 staging'"),
        ("  t0 1..3 = 101..102", "3 keys and 2 values", "each key one value"),
        ("  t0 9..3 = 101..102", "'9..3' is empty", "the smaller number first"),
        ("  t0 1 = 0..4294967295", "'0..4294967295' are too many changes", "100000 at most"),
        ("  t0 256 = 101", "'256' is no number, or too large a one", "digits alone"),
        ("  t0 vanishes", "'vanishes' is no change", "'1 gone'"),
        ("p0 sends commit 1: is lost", "which one is not clear", "commit t0 1"),
        ("p0 sends commit t0 0: is lost", "there is no command number 0", "counted from 1"),
        ("p0 sends open 1: is lost", "'is lost' can't happen when 'p0 sends open 1'", "an opened log may lie"),
        ("at 5: is lost", "'is lost' can't happen when 'at 5'", "at a time a process may die"),
        ("at 5: p0 explodes", "'p0 explodes' is nothing that can happen", "lists what can"),
        ("on monday: p0 dies", "'on monday' is no occasion", "'at 100'"),
        ("at 9: p0 is asked to sing t0", "nobody asks to 'sing t0'", "pause, resume"),
        ("at 9: the source forgets 2 of stream 1", "there is no stream 1", "from 0"),
        ("table t2 staging", "t2 is not the next table", "call it t1"),
        ("table t1 printed", "there is no sink 'printed'", "staging or versioned"),
        ("exclusive perhaps", "exclusive can't be 'perhaps'", "yes or no"),
        ("colour red", "'colour' begins no line", "keepalives"),
        ("dice 0x", "dice are pairs", "leave it out"),
        ("finds Something", "a wrong rule and its invariant are named", "by position-covers"),
    ] {
        let error = format!("{base}{line}\n").parse::<Scenario>().expect_err(line);
        assert_eq!(error.line, 5, "{line}: {error}");
        assert!(error.what.starts_with(what), "{line}: {error}");
        assert!(error.remedy.contains(remedy), "{line}: {error}");
    }
    let error = "tx 1\n".parse::<Scenario>().expect_err("no table");
    assert_eq!(error.what, "there is no table");
    let error = "table t0 staging\n# about nothing\n\ntx 1\n".parse::<Scenario>().expect_err("a comment");
    assert_eq!((error.line, error.what.as_str()), (3, "the comment above this line belongs to nothing"));
}

#[test]
fn a_small_file_means_what_it_says() {
    let text = "\
# A row, then many.

age 7

table t0 versioned keyless

tx 1
  t0 1 = 100
# A hot key, and neighbours.
tx 3 gap 2
  t0 1 = 101..103
  t0 2..4 = 104..106

at 4: p0 dies
";
    let set = |key, value| Change { table: 0, kind: Kind::Set(key, value), without: [false; 2] };
    let keyless = Table { keyed: false, ..Table::of(Sink::Versioned) };
    let first = Transaction { time: 1, changes: vec![set(1, 100)], ..Transaction::default() };
    let second = Transaction {
        note: vec!["A hot key, and neighbours.".into()],
        time: 3,
        gap: 2,
        changes: vec![set(1, 101), set(1, 102), set(1, 103), set(2, 104), set(3, 105), set(4, 106)],
        ..Transaction::default()
    };
    let expected = Scenario {
        about: vec!["A row, then many.".into()],
        options: Options { age: 7, ..Options::default() },
        workload: Workload { tables: vec![keyless], transactions: vec![first, second], ..Workload::default() },
        steps: vec![Step::new(When::At(4), Then::Dies { process: 0, with_its_mail: false })],
        ..Scenario::default()
    };
    assert_eq!(text.parse::<Scenario>(), Ok(expected.clone()));
    assert_eq!(expected.to_string(), text);
}
