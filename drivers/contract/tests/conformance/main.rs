//! The laws themselves: the drivers in memory keep all of them, and for each law there is a driver that breaks it and no
//! other.

mod broken_sinks;
mod broken_sources;
mod sinks;
mod sources;

use contract::conformance::{Report, sink, source};
use contract::kernel::state::TableState;
use contract::{Mode, StateWrite};

use broken_sinks::{BrokenSinks, SINK_FAULTS};
use broken_sources::{BrokenSources, SOURCE_FAULTS};

/// The names of the laws that a report calls broken.
fn broken(report: &Report) -> Vec<&'static str> {
    report.broken.iter().map(|broken| broken.law).collect()
}

#[tokio::test]
async fn the_sink_in_memory_that_stages_keeps_all_laws() {
    sink::check(&sinks::MemorySinks(StateWrite::WithData)).await.must_hold(&[
        ("the-highest-state-counts", "the sink's state write is compare-and-set"),
        ("the-highest-version-wins", "the sink's state write is compare-and-set"),
    ]);
}

#[tokio::test]
async fn the_sink_in_memory_that_claims_keeps_all_laws() {
    sink::check(&sinks::MemorySinks(StateWrite::AfterData)).await.must_hold(&[
        ("a-torn-commit-is-whole-or-absent", "the sink's state write is not compare-and-set"),
        ("covered-rows-are-refused", "the sink has no tables of that mode"),
        ("a-stale-token-conflicts", "the sink's state write is not compare-and-set"),
        ("tokens-never-repeat", "the sink's state write is not compare-and-set"),
        ("a-superseded-life-cannot-commit", "the sink's state write is not compare-and-set"),
        ("staged-is-invisible", "the sink's state write is not compare-and-set"),
    ]);
}

#[tokio::test]
async fn the_source_in_memory_keeps_all_laws() {
    source::check(&sources::MemorySources).await.must_hold(&[]);
}

#[tokio::test]
async fn each_broken_sink_breaks_exactly_its_law() {
    let mut wrong = Vec::new();
    for (fault, law, kind) in SINK_FAULTS {
        let report = sink::check(&BrokenSinks { fault: *fault, kind: *kind }).await;
        if broken(&report) != [*law] {
            wrong.push((fault, kind, law, report.broken));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn each_broken_source_breaks_exactly_its_law() {
    let mut wrong = Vec::new();
    for (fault, law) in SOURCE_FAULTS {
        let report = source::check(&BrokenSources(*fault)).await;
        if broken(&report) != [*law] {
            wrong.push((fault, law, report.broken));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_law_has_a_broken_driver() {
    let of_sinks = sink::LAWS.iter().map(|law| law.name).filter(|name| !SINK_FAULTS.iter().any(|(_, law, _)| law == name));
    let of_sources = source::LAWS.iter().map(|law| law.name).filter(|name| !SOURCE_FAULTS.iter().any(|(_, law)| law == name));
    assert_eq!(of_sinks.chain(of_sources).collect::<Vec<_>>(), Vec::<&str>::new(), "laws that no driver breaks");
}

#[test]
fn every_law_says_in_a_sentence_what_it_is_and_has_a_name_of_its_own() {
    let mut laws: Vec<(&str, &str)> = sink::LAWS.iter().map(|law| (law.name, law.statement)).collect();
    laws.extend(source::LAWS.iter().map(|law| (law.name, law.statement)));
    let mut names: Vec<&str> = laws.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), laws.len());
    for (name, statement) in laws {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
        assert!(statement.len() > 40 && !statement.ends_with('.'), "{name}: {statement}");
    }
}

#[test]
fn a_report_with_an_exemption_that_the_test_did_not_name_fails() {
    let report = Report { exempt: vec![("some-law", "some reason")], ..Report::default() };
    let silent = std::panic::catch_unwind(|| report.must_hold(&[]));
    assert!(silent.is_err());
    report.must_hold(&[("some-law", "some reason")]);
}

/// The modes that a sink of a kind can keep the laws in: where rows are visible before the state, covered ones cannot be
/// told from new ones.
fn modes(kind: StateWrite) -> Vec<Mode> {
    match kind {
        StateWrite::WithData => vec![Mode::Upsert, Mode::Append, Mode::AppendIdempotent],
        StateWrite::AfterData => vec![Mode::Upsert, Mode::Append],
    }
}

/// A state with a field of the stored form lost.
fn forgetful(state: TableState) -> TableState {
    TableState { in_doubt: Vec::new(), ..state }
}
