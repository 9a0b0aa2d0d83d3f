//! A check that cannot fire is a defect: for each function of the oracle a moment built by hand that breaks exactly its rule.
//!
//! [`Moment`] is everything that the oracle is ever shown of one moment, and by default all of it is right. A case changes one
//! thing; then *all* functions are asked, and the broken ones are told by name. What the functions are is read from their source,
//! so that a new one without a case fails here.

use std::collections::{BTreeMap, BTreeSet};

use kernel::config::{Join, OnTruncate, Resnapshot};
use kernel::coordinator::{Output, StopReason};
use kernel::id::{AttemptId, BatchId, CommandId, CommitId, Identity, Incarnation, StreamName, TableName, Version};
use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, Phase, PipelineState, Skipped, TableRecord, TableState};
use sim::history::{Change, Contents, History, Key, Kind, Place, Row, RowImage, Tx};
use sim::oracle::absent::{self, Reading};
use sim::oracle::durability::{self, Smeared};
use sim::oracle::{Verdict, View, outcomes, resources, starting};
use sim::plan::TablePlan;
use sim::sinks::{Deleted, Filled, Landed};

/// Everything that the oracle is shown.
struct Moment {
    history: History,
    plan: TablePlan,
    base: Position,
    smeared: Smeared,
    // A commit lands.
    before: TableState,
    after: TableState,
    rows: Vec<RowImage>,
    images: Vec<(Key, Option<Row>)>,
    fills: Vec<Filled>,
    readings: Vec<Reading>,
    emptied: bool,
    visible: Contents,
    running: usize,
    log: LogIdentity,
    log_end: Position,
    ends_told: Vec<Position>,
    released_at_start: bool,
    landed: Landed,
    dropped_was_visible: bool,
    // The record is stored.
    record_before: PipelineState,
    record: PipelineState,
    stood_before: Position,
    told: Position,
    told_inside: Vec<Position>,
    // Something is acknowledged.
    said_before: Position,
    acknowledged: Position,
    record_then: PipelineState,
    state_then: TableState,
    received: Position,
    floor: Position,
    // A life begins.
    found: TableState,
    begins_at: Position,
    lost: bool,
    excused: bool,
    process: usize,
    committed: BTreeSet<Incarnation>,
    at_rest: (Option<TableState>, Contents),
    at_rest_again: (Option<TableState>, Contents),
    // A life goes on, or ends.
    said_after_newer: Output,
    passed_over: Skipped,
    superseded_since: u64,
    held: u64,
    counted: u64,
    known: BTreeSet<BatchId>,
    timer_came_of: bool,
    told_of_key: Place,
    log_rows: Vec<RowImage>,
    others: Vec<(String, Option<String>)>,
    missing: Option<&'static str>,
    waiting: Vec<String>,
    owed: u64,
    behind: Option<&'static str>,
}

fn at(offset: u64) -> Position {
    Position::scalar(offset)
}

fn commit(number: u64) -> CommitId {
    CommitId { incarnation: Incarnation(1), number }
}

fn attempt() -> AttemptId {
    AttemptId { incarnation: Incarnation(1), number: 1 }
}

fn this_log() -> LogIdentity {
    LogIdentity { streams: [(StreamName::from(""), Identity::from("this"))].into(), ..LogIdentity::default() }
}

fn state(number: u64, upto: u64) -> TableState {
    TableState {
        format: FORMAT,
        cut: kernel::position::Cut::at(at(upto)),
        identity: this_log(),
        incarnation: Incarnation(1),
        commit: commit(number),
        ancestors: Ancestors::default(),
        sequence: 0,
        generation: 0,
        base: Position::START,
        begun: Version(0),
        tiling: vec![],
        in_doubt: vec![],
        ahead: Position::START,
        schema: None,
    }
}

fn passed_over(life: u32) -> Skipped {
    let coordinate = Coordinate { major: 12, minor: 0 };
    Skipped { incarnation: Incarnation(life), stream: StreamName::from(""), at: Offset(10), coordinate }
}

fn record(quiet: u64, named: u64) -> PipelineState {
    let entry = TableRecord {
        phase: Phase::Streaming,
        generation: 0,
        named: Some(commit(named)),
        skipped: vec![passed_over(1)],
        why: None,
    };
    PipelineState {
        format: FORMAT,
        incarnation: Incarnation(1),
        identity: this_log(),
        quiet: at(quiet),
        tables: [(TableName::from("t0"), entry)].into(),
    }
}

/// Three transactions of one table: `1 = 100, 2 = 101`, then `1 = 102, 3 = 103`, then `2` is gone.
fn history() -> History {
    let mut history = History::empty(&[""], &["t0"]);
    let row = |key, value| Change::of(0, Kind::Row(key, value));
    let transactions =
        [vec![row(1, Some(100)), row(2, Some(101))], vec![row(1, Some(102)), row(3, Some(103))], vec![row(2, None)]];
    for (n, changes) in transactions.into_iter().enumerate() {
        let at = 10 * n as u64;
        history.push(Tx { stream: 0, at, end: at + 10, time: at, changes });
    }
    history
}

fn rows_of(history: &History, tx: usize) -> Vec<RowImage> {
    let places = history.of_table[0].iter().filter(|place| place.tx == tx);
    places.flat_map(|place| history.change(*place).rows(*place)).collect()
}

fn contents(rows: &[(Key, u32)]) -> Contents {
    Contents { rows: rows.iter().map(|(k, v)| (*k, Row::from(*v))).collect(), kept: BTreeMap::new() }
}

/// The commit c1.2 lands upon c1.1; the record follows, and says [20]; that is acknowledged.
fn right() -> Moment {
    let history = history();
    let rows = rows_of(&history, 1);
    Moment {
        plan: TablePlan {
            staging: true,
            keyed: true,
            join: Join::Beginning,
            on_truncate: OnTruncate::Propagate,
            resnapshot: Resnapshot::WhenAsked,
        },
        base: Position::START,
        smeared: Smeared::new(),
        before: state(1, 10),
        after: state(2, 20),
        images: rows.iter().map(|row| (row.key, row.value.map(Row::from))).collect(),
        fills: vec![],
        readings: vec![Reading { at: 15, fence: at(20) }],
        emptied: false,
        log_rows: rows.clone(),
        rows,
        visible: contents(&[(1, 102), (2, 101), (3, 103)]),
        running: 1,
        log: this_log(),
        log_end: at(30),
        ends_told: vec![at(30)],
        released_at_start: false,
        landed: Landed::Shown,
        dropped_was_visible: false,
        record_before: record(10, 1),
        record: record(20, 2),
        stood_before: at(10),
        told: at(20),
        told_inside: vec![],
        said_before: at(10),
        acknowledged: at(20),
        record_then: record(20, 2),
        state_then: state(2, 20),
        received: at(30),
        floor: at(10),
        found: state(1, 10),
        begins_at: at(10),
        lost: false,
        excused: false,
        process: 0,
        committed: [Incarnation(1)].into(),
        at_rest: (Some(state(2, 20)), contents(&[(1, 102)])),
        at_rest_again: (Some(state(2, 20)), contents(&[(1, 102)])),
        said_after_newer: Output::Stop { reason: StopReason::Superseded { by: Incarnation(2) } },
        passed_over: passed_over(1),
        superseded_since: 60,
        held: 50,
        counted: 50,
        known: [BatchId(1)].into(),
        timer_came_of: true,
        told_of_key: Place { tx: 0, change: 0 },
        others: vec![("t1".into(), None)],
        missing: None,
        waiting: vec![],
        owed: 0,
        behind: None,
        history,
    }
}

impl Moment {
    /// Every function of the oracle is asked. Those that find something, by name.
    fn broken(&self) -> Vec<&'static str> {
        let view = View { history: &self.history, table: 0, plan: &self.plan, base: Some(&self.base), whole: false };
        let (before, after, smeared) = (&self.before, &self.after, &self.smeared);
        let name = TableName::from("t0");
        let entry = &self.record.tables[&name];
        let entry_then = &self.record_then.tables[&name];
        let stands = durability::effective(Some(&self.record), Some(entry), after);
        let states = [before, after];
        let (acknowledged, then) = (&self.acknowledged, Some(&self.state_then));
        let held: BTreeSet<BatchId> = [BatchId(1)].into();
        let deadline = Some((90, "a timer"));
        let (rested, again) = (&self.at_rest, &self.at_rest_again);
        let mut told_of_keys = BTreeMap::from([((0, 1), self.told_of_key)]);
        let lost_is_true = || starting::lost_is_true(&view, Some(&self.found), &self.begins_at, self.excused);
        let verdicts: Vec<(&'static str, Verdict)> = vec![
            ("position_covers_only_durable", durability::position_covers_only_durable(&view, after, &self.visible, smeared)),
            ("state_and_data_move_together", durability::state_and_data_move_together(&view, after, &self.visible, smeared)),
            ("acknowledged_is_durable", durability::acknowledged_is_durable(&view, then, acknowledged)),
            ("position_never_regresses", durability::position_never_regresses(&view, before, after)),
            ("acknowledgement_never_regresses", durability::acknowledgement_never_regresses(&self.said_before, acknowledged)),
            ("record_never_regresses", durability::record_never_regresses(&self.record_before, &self.record)),
            ("commit_in_order_per_table", durability::commit_in_order_per_table(self.running, Some(before), after)),
            ("one_image_per_key_per_commit", durability::one_image_per_key_per_commit(&self.images)),
            ("absent_value_never_stored", absent::absent_value_never_stored(&self.images)),
            ("hole_filled_by_proof", absent::hole_filled_by_proof(&view, after, &self.fills, &self.readings)),
            (
                "ahead_within_its_fence",
                absent::ahead_within_its_fence(Some(before), after, self.emptied, &self.fills, &self.readings),
            ),
            ("record_claims_truth", durability::record_claims_truth(&view, &self.record, entry, &states)),
            ("record_names_the_oldest", durability::record_names_the_oldest(&view, &self.record, entry, &states)),
            ("effective_cut_never_falls", durability::effective_cut_never_falls(&self.stood_before, &stands)),
            (
                "empty_transactions_do_not_confirm",
                durability::empty_transactions_do_not_confirm(&self.record.quiet, &self.told, &self.told_inside),
            ),
            ("acknowledged_within_received", durability::acknowledged_within_received(acknowledged, &self.received)),
            (
                "quiet_before_acknowledged",
                durability::quiet_before_acknowledged(acknowledged, Some(&self.record_then), &self.floor),
            ),
            ("release_before_pass", durability::release_before_pass(&view, entry_then, then, acknowledged)),
            (
                "position_names_finished_transactions",
                durability::position_names_finished_transactions(&self.history, &self.record.quiet),
            ),
            (
                "position_names_ended_transactions",
                durability::position_names_ended_transactions(&self.history, &self.record.quiet, &[&self.told]),
            ),
            ("staged_published_at_most_once", outcomes::staged_published_at_most_once(&self.landed)),
            ("staged_kept_while_unknown", outcomes::staged_kept_while_unknown(&self.landed)),
            ("dropped_was_never_visible", outcomes::dropped_was_never_visible(attempt(), self.dropped_was_visible)),
            ("discarded_was_not_needed", outcomes::discarded_was_not_needed(&self.landed)),
            (
                "skip_recorded_before_passed",
                outcomes::skip_recorded_before_passed(Some(&self.record), &TableName::from("t0"), &self.passed_over),
            ),
            ("superseded_means_stopped", outcomes::superseded_means_stopped(&self.said_after_newer)),
            ("superseded_is_learned_in_time", outcomes::superseded_is_learned_in_time(90, self.superseded_since, 30)),
            ("budget_conserved", resources::budget_conserved(self.held, self.counted, 100, 30)),
            ("rows_held_equal_rows_known", resources::rows_held_equal_rows_known(&held, &self.known)),
            ("every_wait_has_an_exit", resources::every_wait_has_an_exit(90, deadline, self.timer_came_of)),
            ("one_table_does_not_stop_others", resources::one_table_does_not_stop_others("t0", &self.others)),
            ("converges_after_healing", resources::converges_after_healing(self.missing, &self.waiting)),
            ("drained_means_durable", resources::drained_means_durable(self.owed, self.behind)),
            ("start_within_streamable", starting::start_within_streamable(&view, Some(&self.found), &self.begins_at, self.lost)),
            ("lost_is_true", if self.lost { lost_is_true() } else { Ok(()) }),
            ("same_log_identity", starting::same_log_identity(&after.identity, &self.log)),
            ("never_ahead_of_source", starting::never_ahead_of_source(after.cut.upto(), &self.log_end)),
            ("no_part_is_ahead", starting::no_part_is_ahead("t0", &self.found.cut, &self.log_end)),
            ("key_order_is_one", starting::key_order_is_one(&mut told_of_keys, 0, &self.log_rows)),
            ("covered_row_has_no_effect", starting::covered_row_has_no_effect(&view, Some(before), &self.rows, smeared)),
            ("no_row_is_skipped", starting::no_row_is_skipped(&view, Some(before), after, &self.rows, smeared)),
            ("stale_incarnation_has_no_effect", starting::stale_incarnation_has_no_effect(before.incarnation, after.incarnation)),
            ("one_process_per_incarnation", starting::one_process_per_incarnation(Incarnation(1), self.process, 0)),
            ("only_current_incarnation_deletes", starting::only_current_incarnation_deletes(Incarnation(1), &self.committed)),
            ("join_has_a_base", starting::join_has_a_base(&view, after, &self.ends_told)),
            ("goes_on_from_its_own_state", starting::goes_on_from_its_own_state(self.released_at_start, Some(before), after)),
            ("recovery_is_a_projection", starting::recovery_is_a_projection("t0", (&rested.0, &rested.1), (&again.0, &again.1))),
            ("schema_before_its_rows", starting::schema_before_its_rows(&view, after, &self.rows, smeared)),
        ];
        verdicts.into_iter().filter_map(|(name, verdict)| verdict.is_err().then_some(name)).collect()
    }
}

/// Key 1 takes something of a row that was read at 15, when the log ended at [20].
fn fill(moment: &mut Moment) {
    let row = Some(RowImage { reading: Some(0), ..moment.rows[0] });
    moment.fills = vec![Filled { key: 1, row, whole: false }];
}

type Case = (&'static [&'static str], &'static str, fn(&mut Moment));

/// What is broken, in words, and by which one change.
const CASES: &[Case] = &[
    (&["position_covers_only_durable"], "the state covers a row that is not there", |m| {
        m.visible.rows.remove(&3);
    }),
    (&["position_covers_only_durable"], "a key shows a value that it had before", |m| {
        m.visible.rows.insert(1, Row::from(100));
    }),
    (&["state_and_data_move_together"], "a delete is visible that the state does not cover", |m| {
        m.visible.rows.remove(&2);
    }),
    (&["acknowledged_is_durable"], "the source forgets [20], the table has been at [10] all the time", |m| {
        m.state_then = state(1, 10);
    }),
    (&["position_never_regresses"], "a commit goes from [20] back to [10]", |m| {
        (m.before, m.after) = (state(1, 20), state(2, 10));
        (m.rows, m.images) = (vec![], vec![]);
        m.visible = contents(&[(1, 100), (2, 101)]);
        m.record = record(20, 1);
        m.stood_before = at(10);
    }),
    (&["acknowledgement_never_regresses"], "[20] was said in this session, and now [10]", |m| {
        (m.said_before, m.acknowledged) = (at(20), at(10));
    }),
    (&["record_never_regresses"], "quiet goes from [30] back to [20]", |m| m.record_before.quiet = at(30)),
    (&["record_never_regresses"], "the record of life 1 comes over the record of life 2", |m| {
        m.record_before.incarnation = Incarnation(2);
    }),
    (&["commit_in_order_per_table"], "two commits run at once", |m| m.running = 2),
    (&["commit_in_order_per_table"], "a commit follows itself", |m| m.after.commit = m.before.commit),
    (&["one_image_per_key_per_commit"], "a commit holds two images of key 3", |m| m.images.push((3, Some(Row::from(103))))),
    (&["absent_value_never_stored"], "a value that was not sent is stored as nothing", |m| {
        m.images.push((9, Some(Row { value: 105, large: [105, 0] })));
    }),
    (&["hole_filled_by_proof"], "the read did not see what changed the row last", |m| {
        fill(m);
        m.readings[0].at = 9;
    }),
    (&["hole_filled_by_proof"], "the log has not been read as far as it was then", |m| {
        fill(m);
        m.readings[0].fence = at(21);
    }),
    (&["hole_filled_by_proof"], "the row was not read for it", |m| {
        fill(m);
        m.fills[0].row = Some(m.rows[0]);
    }),
    (&["hole_filled_by_proof"], "there is no such row, and something is taken of it", |m| {
        fill(m);
        m.fills[0].row = None;
    }),
    (&["ahead_within_its_fence"], "a key is taken as it was read at [30], and nothing is said", |m| {
        fill(m);
        m.fills[0].whole = true;
        m.readings[0].fence = at(30);
    }),
    (&["ahead_within_its_fence"], "keys were ahead up to [30], and at [20] nothing is said any more", |m| {
        m.before.ahead = at(30);
    }),
    (&["position_covers_only_durable"], "a key that may be ahead shows what it was before", |m| {
        m.after.ahead = at(30);
        m.visible.rows.insert(1, Row::from(100));
    }),
    (&["record_claims_truth"], "quiet [30] names c1.2, which is at [20] and lacks a delete", |m| {
        m.record.quiet = at(30);
        m.told = at(30);
    }),
    (&["record_names_the_oldest"], "quiet [10] names c1.2, though c1.1 lacks nothing either", |m| {
        m.record = record(10, 2);
    }),
    (&["effective_cut_never_falls"], "it was proven to stand at [30], and stands at [20]", |m| m.stood_before = at(30)),
    (&["empty_transactions_do_not_confirm"], "quiet is [20], which only a keepalive inside a transaction ever named", |m| {
        (m.told, m.told_inside) = (at(10), vec![at(20)]);
    }),
    (&["acknowledged_within_received"], "[20] is acknowledged, the log ends at [10]", |m| m.received = at(10)),
    (&["acknowledged_within_received"], "[20] is acknowledged, and what was received has a hole", |m| {
        m.received = "15+16..30".parse().expect("a set");
    }),
    (&["quiet_before_acknowledged"], "[20] is acknowledged, and the stored record has a hole", |m| {
        m.record_then.quiet = "12+13..30".parse().expect("a set");
    }),
    (&["record_never_regresses"], "quiet loses something in its midst", |m| {
        m.record_before.quiet = "10+25..26".parse().expect("a set")
    }),
    (&["never_ahead_of_source"], "a state is at [20], and the log lacks something of it", |m| {
        m.log_end = "12+15..30".parse().expect("a set");
    }),
    (&["quiet_before_acknowledged"], "[20] is acknowledged, the stored record says [10]", |m| m.record_then = record(10, 1)),
    (
        // That a table is passed which is not released is told beside the row that it lacks.
        &["acknowledged_is_durable", "release_before_pass"],
        "a halted table is passed",
        |m| {
            m.state_then = state(1, 10);
            for entry in m.record_then.tables.values_mut() {
                entry.phase = Phase::Halted;
            }
        },
    ),
    (&["position_names_finished_transactions"], "quiet stands at [15], inside a transaction", |m| m.record.quiet = at(15)),
    (&["position_names_ended_transactions"], "quiet has a transaction of an origin, and nobody was told that it ended", |m| {
        m.history.sets = true;
        m.told = at(10);
    }),
    (&["staged_published_at_most_once"], "a commit shows what is visible already", |m| m.landed = Landed::Twice(attempt())),
    (&["staged_kept_while_unknown"], "a commit shows what its life had dropped", |m| {
        m.landed = Landed::Gone(attempt(), Deleted::Dropped);
    }),
    (&["dropped_was_never_visible"], "what was visible is deleted", |m| m.dropped_was_visible = true),
    (&["discarded_was_not_needed"], "a commit shows what a newer life had discarded", |m| {
        m.landed = Landed::Gone(attempt(), Deleted::Discarded);
    }),
    (&["superseded_means_stopped"], "a life that was told of a newer one asks for the record", |m| {
        m.said_after_newer = Output::ReadPipelineState { id: CommandId { incarnation: Incarnation(1), number: 9 } };
    }),
    (&["skip_recorded_before_passed"], "an event is passed over that another life was told to pass", |m| {
        m.passed_over = passed_over(2);
    }),
    (&["superseded_is_learned_in_time"], "a life that is superseded for longer than its interval lives still", |m| {
        m.superseded_since = 59;
    }),
    (&["budget_conserved"], "the store holds more than the machine counts", |m| m.counted = 40),
    (&["budget_conserved"], "more is held than the bound and one read", |m| (m.held, m.counted) = (130, 130)),
    (&["rows_held_equal_rows_known"], "a batch is held that nobody knows", |m| m.known.clear()),
    (&["rows_held_equal_rows_known"], "a batch is known that nobody holds", |m| {
        m.known.insert(BatchId(2));
    }),
    (&["every_wait_has_an_exit"], "a deadline comes, and nothing comes of it", |m| m.timer_came_of = false),
    (&["one_table_does_not_stop_others"], "another table stands still, too", |m| m.others[0].1 = Some("a row".into())),
    (&["converges_after_healing"], "a row is missing at the end", |m| m.missing = Some("a row")),
    (&["converges_after_healing"], "all is there, and still something is waited for", |m| m.waiting.push("a commit".into())),
    (&["drained_means_durable"], "a life ends as drained and owes a row", |m| m.owed = 1),
    (&["drained_means_durable"], "a life ends as current and is behind", |m| m.behind = Some("t0 lacks a row")),
    (&["start_within_streamable"], "a table at [10] is not called lost, the log begins at [20]", |m| m.begins_at = at(20)),
    (&["lost_is_true"], "a table is called lost that lacks nothing", |m| m.lost = true),
    (&["same_log_identity"], "the state is of another log", |m| {
        m.log.streams.insert(StreamName::from(""), Identity::from("another"));
    }),
    (&["never_ahead_of_source"], "a state is at [20], the log ends at [10]", |m| m.log_end = at(10)),
    (&["no_part_is_ahead"], "a table has a row of a transaction that begins at 30, the log ends at [30]", |m| {
        let part = Transaction { stream: StreamName::from(""), at: Offset(30) };
        m.found.cut.take(&part, Coordinate::default(), Digest { count: 1, hash: 1 });
    }),
    (&["key_order_is_one"], "the log tells what the third transaction does to a key, and then what the second does", |m| {
        m.told_of_key = Place { tx: 2, change: 0 };
    }),
    (&["covered_row_has_no_effect"], "a row is written again that the state before covers", |m| {
        m.rows.extend(rows_of(&m.history, 0));
    }),
    (&["covered_row_has_no_effect"], "a row is in one commit twice", |m| m.rows.extend(rows_of(&m.history, 1))),
    (&["no_row_is_skipped"], "the commit covers a row that it did not bring", |m| {
        m.rows.pop();
    }),
    (&["stale_incarnation_has_no_effect"], "life 1 writes over life 2", |m| m.before.incarnation = Incarnation(2)),
    (&["one_process_per_incarnation"], "two processes live the same life", |m| m.process = 1),
    (&["only_current_incarnation_deletes"], "a life deletes that has committed nothing", |m| m.committed.clear()),
    (&["join_has_a_base"], "a table that begins now begins where no log ended", |m| {
        m.plan.join = Join::Now;
        m.ends_told = vec![at(10)];
    }),
    (&["join_has_a_base"], "a table that needs a snapshot begins without one", |m| m.plan.join = Join::Snapshot),
    (&["join_has_a_base"], "a table that begins at the beginning passes over a row", |m| m.after.base = at(10)),
    (&["goes_on_from_its_own_state"], "a table that needs a snapshot gets a commit", |m| m.released_at_start = true),
    (&["recovery_is_a_projection"], "a new life changes a table that was at rest", |m| m.at_rest_again.1 = contents(&[])),
    (&["recovery_is_a_projection"], "a new life commits to a table that was at rest", |m| {
        m.at_rest_again.0 = Some(state(3, 20));
    }),
    (&["schema_before_its_rows"], "a row of the next schema is in the commit before it", |m| m.rows[0].schema = 1),
];

#[test]
fn a_right_moment_breaks_nothing() {
    assert_eq!(right().broken(), Vec::<&str>::new());
}

#[test]
fn a_value_that_was_read_with_proof_breaks_nothing() {
    let mut moment = right();
    fill(&mut moment);
    assert_eq!(moment.broken(), Vec::<&str>::new());
    moment.fills[0].whole = true;
    assert_eq!(moment.broken(), Vec::<&str>::new(), "its fence is in the cut");
}

#[test]
fn each_rule_is_broken_by_the_one_thing_that_breaks_it() {
    for (rules, what, change) in CASES {
        let mut moment = right();
        change(&mut moment);
        assert_eq!(moment.broken(), *rules, "{what}");
    }
}

/// Up to where a state says so a key may show what the source makes of it later.
#[test]
fn a_key_that_is_ahead_may_show_a_later_state() {
    let mut moment = right();
    moment.visible.rows.remove(&2);
    moment.after.ahead = at(29);
    assert_eq!(moment.broken(), Vec::<&str>::new());
    moment.after.ahead = at(20);
    assert_eq!(moment.broken(), ["state_and_data_move_together"]);
    let mut emptied = right();
    emptied.before.ahead = at(30);
    emptied.emptied = true;
    assert_eq!(emptied.broken(), Vec::<&str>::new(), "the rows that were ahead are gone");
}

#[test]
fn every_function_of_the_oracle_has_a_case() {
    let sources = [
        include_str!("../src/oracle/absent.rs"),
        include_str!("../src/oracle/durability.rs"),
        include_str!("../src/oracle/outcomes.rs"),
        include_str!("../src/oracle/resources.rs"),
        include_str!("../src/oracle/starting.rs"),
    ];
    let functions = sources.iter().flat_map(|source| source.split("\npub fn ").skip(1));
    let judges = functions.filter(|function| function.split('{').next().is_some_and(|head| head.contains("-> Verdict")));
    let judges: BTreeSet<&str> = judges.filter_map(|function| function.split('(').next()).collect();
    let cases: BTreeSet<&str> = CASES.iter().flat_map(|(rules, ..)| rules.iter().copied()).collect();
    assert_eq!(judges, cases);
    assert!(judges.len() >= 40, "{judges:?}");
}

/// Keyless targets count rows; what the rules say of them is told apart.
#[test]
fn a_keyless_row_that_is_missing_or_comes_twice_is_found() {
    let keyless = |counts: &[u32]| {
        let mut moment = right();
        moment.plan.keyed = false;
        let rows = [rows_of(&moment.history, 0), rows_of(&moment.history, 1)].concat();
        let kept = rows.iter().zip(counts).filter(|(_, count)| **count > 0).map(|(row, count)| (*row, *count)).collect();
        moment.visible = Contents { rows: BTreeMap::new(), kept };
        moment.broken()
    };
    assert_eq!(keyless(&[1, 1, 1, 1]), Vec::<&str>::new());
    assert_eq!(keyless(&[1, 1, 0, 1]), ["position_covers_only_durable"], "a row is missing");
    assert_eq!(keyless(&[1, 1, 2, 1]), ["position_covers_only_durable"], "a row came twice");
}

/// What the record claims is judged of every state that can be a table's again, and of no other.
#[test]
fn only_an_older_lifes_state_that_began_elsewhere_and_never_counts_again_is_let_be() {
    let of_life = |life: u32, base: u64| TableState { incarnation: Incarnation(life), base: at(base), ..state(1, 10) };
    let now = of_life(2, 5);
    assert!(!durability::may_be_found_again(&of_life(1, 2), &now, false), "a claim is above it for ever, and it began elsewhere");
    assert!(durability::may_be_found_again(&of_life(1, 2), &now, true), "somebody may restore it");
    assert!(durability::may_be_found_again(&of_life(1, 5), &now, false), "it began where the present one did");
    assert!(durability::may_be_found_again(&of_life(2, 2), &now, false), "its own life may still write above it");
}
