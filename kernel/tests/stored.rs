//! The stored forms, byte for byte: what is written today must be read for ever.

use kernel::id::{CommitId, Identity, Incarnation, StreamName, TableName, Version};
use kernel::position::{Coordinate, Cut, Digest, LogIdentity, Offset, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, Phase, PipelineState, TableRecord, TableState};

fn identity() -> LogIdentity {
    LogIdentity { streams: [(StreamName::from("a.jsonl"), Identity::from("5f1c"))].into(), ..LogIdentity::default() }
}

fn commit(incarnation: u32, number: u64) -> CommitId {
    CommitId { incarnation: Incarnation(incarnation), number }
}

#[test]
fn a_table_state_has_this_form() {
    let mut cut = Cut::at("a.jsonl:70".parse().unwrap());
    let divided = Transaction { stream: StreamName::from("a.jsonl"), at: Offset(70) };
    cut.take(&divided, Coordinate { major: 90, minor: 1 }, Digest { count: 3, hash: 17 });
    let mut ancestors = Ancestors::default();
    for id in [commit(1, 1), commit(1, 2), commit(2, 1)] {
        ancestors.push(id);
    }
    let state = TableState {
        format: FORMAT,
        cut,
        identity: identity(),
        incarnation: Incarnation(2),
        commit: commit(2, 2),
        ancestors,
        sequence: 9,
        generation: 0,
        base: Position::START,
        begun: Version(0),
        tiling: Vec::new(),
        in_doubt: Vec::new(),
        ahead: Position::START,
        schema: Some("{}".into()),
    };
    let text = concat!(
        r#"{"format":1,"cut":{"upto":"a.jsonl:70","within":[{"stream":"a.jsonl","at":70,"last":{"major":90,"minor":1},"#,
        r#""digest":{"count":3,"hash":17}}]},"identity":{"streams":{"a.jsonl":"5f1c"},"coordinates":null},"incarnation":2,"#,
        r#""commit":{"incarnation":2,"number":2},"ancestors":[{"incarnation":1,"first":1,"last":2},"#,
        r#"{"incarnation":2,"first":1,"last":1}],"sequence":9,"generation":0,"base":"","begun":0,"schema":"{}"}"#
    );
    assert_eq!(serde_json::to_string(&state).unwrap(), text);
    assert_eq!(serde_json::from_str::<TableState>(text).unwrap(), state);
}

#[test]
fn a_pipeline_record_has_this_form() {
    let record = TableRecord { phase: Phase::NeedsSnapshot, generation: 2, named: None, skipped: Vec::new(), why: None };
    let streaming =
        TableRecord { phase: Phase::Streaming, generation: 0, named: Some(commit(3, 4)), skipped: Vec::new(), why: None };
    let state = PipelineState {
        format: FORMAT,
        incarnation: Incarnation(3),
        identity: identity(),
        quiet: "a.jsonl:70".parse().unwrap(),
        tables: [(TableName::from("shop.lines"), record), (TableName::from("shop.orders"), streaming)].into(),
    };
    let text = concat!(
        r#"{"format":1,"incarnation":3,"identity":{"streams":{"a.jsonl":"5f1c"},"coordinates":null},"quiet":"a.jsonl:70","#,
        r#""tables":{"shop.lines":{"phase":"needs-snapshot","generation":2,"named":null},"#,
        r#""shop.orders":{"phase":"streaming","generation":0,"named":{"incarnation":3,"number":4}}}}"#
    );
    assert_eq!(serde_json::to_string(&state).unwrap(), text);
    assert_eq!(serde_json::from_str::<PipelineState>(text).unwrap(), state);
}

#[test]
fn a_reason_stands_in_the_record_where_there_is_one() {
    let why = Some("line 7: the key is \"null\" …".to_owned());
    let halted = TableRecord { phase: Phase::Halted, generation: 0, named: Some(commit(3, 4)), skipped: Vec::new(), why };
    let text = r#"{"phase":"halted","generation":0,"named":{"incarnation":3,"number":4},"why":"line 7: the key is \"null\" …"}"#;
    assert_eq!(serde_json::to_string(&halted).unwrap(), text);
    assert_eq!(serde_json::from_str::<TableRecord>(text).unwrap(), halted);
    // As a release reads it that knows no such field, and as it reads what that one stored.
    let without = r#"{"phase":"halted","generation":0,"named":{"incarnation":3,"number":4}}"#;
    assert_eq!(serde_json::from_str::<TableRecord>(without).unwrap(), TableRecord { why: None, ..halted.clone() });
    let with_more = text.replace(r#""why""#, r#""of_a_later_release""#);
    assert_eq!(serde_json::from_str::<TableRecord>(&with_more).unwrap(), TableRecord { why: None, ..halted });
}

#[test]
fn a_log_of_sets_has_its_lineage_beside_and_a_set_is_text() {
    let lineage =
        LogIdentity { lineage: Some(Identity::from("g1")), coordinates: Some(Identity::from("3e11")), ..LogIdentity::default() };
    let text = r#"{"streams":{},"lineage":"g1","coordinates":"3e11"}"#;
    assert_eq!(serde_json::to_string(&lineage).unwrap(), text);
    assert_eq!(serde_json::from_str::<LogIdentity>(text).unwrap(), lineage);
    let mut cut = Cut::at("3e11:5+7..9,3e11%3Atag:1".parse().unwrap());
    let divided = Transaction { stream: StreamName::from("3e11"), at: Offset(6) };
    cut.take(&divided, Coordinate { major: 2, minor: 0 }, Digest { count: 3, hash: 17 });
    let text = concat!(
        r#"{"upto":"3e11:5+7..9,3e11%3Atag:1","within":[{"stream":"3e11","at":6,"last":{"major":2,"minor":0},"#,
        r#""digest":{"count":3,"hash":17}}]}"#
    );
    assert_eq!(serde_json::to_string(&cut).unwrap(), text);
    assert_eq!(serde_json::from_str::<Cut>(text).unwrap(), cut);
}

#[test]
fn the_ancestors_are_bounded_by_runs_and_never_compared_by_number() {
    let mut ancestors = Ancestors::default();
    for id in [commit(1, 6), commit(2, 8), commit(2, 9), commit(3, 1)] {
        ancestors.push(id);
    }
    assert_eq!(ancestors.runs(), 3);
    assert!(ancestors.contains(commit(2, 9)) && !ancestors.contains(commit(2, 7)) && !ancestors.contains(commit(1, 5)));
    let bounded = ancestors.bounded(2);
    assert!(!bounded.contains(commit(1, 6)) && bounded.contains(commit(2, 8)) && bounded.contains(commit(3, 1)));
}
