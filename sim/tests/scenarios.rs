//! The rare ones, directed: each is clean by the rules, and the wrong rule that it is about is found in it.

use kernel::coordinator::Operator;
use kernel::planted::PlantedBug;
use sim::engine::{self, Report};
use sim::scenario::{Scenario, TableRow, Then, When, sends, table};

#[track_caller]
fn clean(scenario: &Scenario) -> Report {
    let report = engine::play(scenario, None, true);
    assert_eq!(report.violation, None, "by the rules nothing may break:\n{}", report.trace.join("\n"));
    report
}

#[track_caller]
fn finds(scenario: &Scenario, bug: PlantedBug, rule: &str) {
    let report = engine::play(scenario, Some(bug), true);
    let violation = report.violation.unwrap_or_else(|| panic!("the wrong rule must be found in\n{}", report.trace.join("\n")));
    assert_eq!(violation.rule, rule, "{violation}");
}

/// Life 1 wrote data of two transactions and died while its state was under way. Life 2 begins below them and has written the
/// first one anew. Now the old state lands: it says that the delete in the second is covered, and what is visible is older.
#[test]
fn three_lives_and_a_state_that_comes_late() {
    let log: &[(u64, &[TableRow])] = &[(1, &[(1, Some(100))]), (2, &[(9, Some(101))]), (3, &[(9, None)])];
    let story = Scenario::of_one_table(false, log)
        // The claim and the first commit, which is answered so late that the next checkpoint takes both transactions.
        .when(sends(0, "commit", 2), Then::LandsAt(60))
        .when(sends(0, "commit", 3), Then::LandsAt(200))
        .when(When::At(100), Then::Dies(0))
        .when(sends(1, "commit", 2), Then::LandsAt(300))
        .when(When::At(250), Then::Dies(1));
    clean(&story);
    let mut unclaimed = story.clone();
    // Without claims the commits come one earlier.
    unclaimed.script[0].0 = sends(0, "commit", 1);
    unclaimed.script[1].0 = sends(0, "commit", 2);
    unclaimed.script[3].0 = sends(1, "commit", 1);
    finds(&unclaimed, PlantedBug::NoClaim, "position-covers-only-durable");
}

/// The data of a checkpoint is visible, its state is not: the process dies between the two.
#[test]
fn killed_between_data_and_state() {
    let log: &[(u64, &[TableRow])] = &[(1, &[(1, Some(100))]), (2, &[(1, Some(101)), (2, Some(102))]), (3, &[(2, None)])];
    let story = Scenario::of_one_table(false, log).when(sends(0, "commit", 2), Then::SenderDies);
    let report = clean(&story);
    assert_eq!(report.marks.get("claim"), Some(&3), "three lives claim the table: {:?}", report.marks);
    let turned_round = Scenario::of_one_table(false, log).when(sends(0, "write", 1), Then::SenderDies);
    clean(&turned_round);
    finds(&turned_round, PlantedBug::StateBeforeData, "position-covers-only-durable");
}

/// A foreign hand sets the table back to before the new life's first commit, so that a stale process meets the very state that
/// it expects. What it has staged is deleted already.
#[test]
fn a_rollback_and_a_stale_process() {
    let log: &[(u64, &[TableRow])] = &[(1, &[(1, Some(100))]), (20, &[(2, Some(101))]), (150, &[(3, Some(102))])];
    let story = Scenario::of_one_table(true, log)
        .when(sends(0, "commit", 2), Then::LandsAt(130))
        .when(When::At(60), Then::StandsStill(0, 135))
        .when(When::At(125), Then::IsSetBack(0, 1));
    clean(&story);
    finds(&story, PlantedBug::RetryWithoutValidation, "only-current-incarnation-deletes");
}

/// The record names a commit that a foreign hand took away. The next life commits upon an older one, with a higher number.
#[test]
fn a_higher_number_is_not_a_later_commit() {
    let log: &[(u64, &[TableRow])] = &[
        (1, &[(1, Some(100))]),
        (30, &[(2, Some(101))]),
        (60, &[(3, Some(102))]),
        (61, &[(4, Some(103))]),
        (90, &[(5, Some(104))]),
    ];
    let said = |nth| (sends(0, "acknowledge", nth), Then::IsLost);
    let mut story = Scenario::of_one_table(true, log)
        .when(When::At(120), Then::Dies(0))
        .when(When::At(121), Then::IsSetBack(0, 2))
        // Before the record can say that the named commit is gone, the second life dies.
        .when(sends(1, "record", 2), Then::LandsAt(400))
        .when(sends(1, "commit", 2), Then::SenderDies);
    story.script.extend((1..=6).map(said));
    clean(&story);
    finds(&story, PlantedBug::LineageByNumber, "record-claims-truth");
}

/// A table was released while its rows were being written. That the sink refuses them comes afterwards, and undoes nothing.
#[test]
fn a_refusal_that_comes_late_undoes_no_release() {
    // The sink refuses values that leave 7 when they are divided by 61.
    let log: &[(u64, &[TableRow])] = &[(1, &[(1, Some(100))]), (20, &[(2, Some(61 + 7))])];
    let mut story = Scenario::of_one_table(true, log)
        .when(sends(0, "write", 2), Then::LandsAt(100))
        .when(When::At(60), Then::Asked(0, Operator::Pause(table(0))))
        .when(When::At(61), Then::Asked(0, Operator::Release(table(0))));
    story.plan.faults.rejects = true;
    clean(&story);
    finds(&story, PlantedBug::HaltUndoesRelease, "release-before-pass");
}

/// The record that both lives have read names no commit of the idle table. The older one stores where that table stands, and
/// must not let the source forget by it: the newer one has looked at the table before.
#[test]
fn an_acknowledgement_relies_on_what_the_record_names_only() {
    let log = vec![(1, vec![(0, 1, Some(100))]), (40, vec![(0, 2, Some(101))])];
    let mut story = Scenario::of_tables(true, 2, log)
        .when(sends(0, "record", 3), Then::AnswerIsLost)
        .when(When::At(30), Then::StandsStill(0, 70))
        .when(When::Sends { process: 0, what: "commit", table: Some(1), nth: 1 }, Then::LandsAt(85))
        .when(When::At(78), Then::StandsStill(1, 90));
    story.plan.config.checkpoint.age = kernel::time::Duration(60);
    clean(&story);
    finds(&story, PlantedBug::AcknowledgesByOwnCuts, "start-within-streamable");
}

/// A stale process wakes up on a quiet day: nothing is to be written, so no compare-and-set tells it that it is superseded. Its
/// session is lost; if it opened the log again without asking, two lives would take it from each other for ever.
#[test]
fn a_stale_process_wakes_up_on_a_quiet_day() {
    let log: &[(u64, &[TableRow])] = &[(1, &[(1, Some(100))]), (2, &[(2, Some(101))])];
    let mut story = Scenario::of_one_table(true, log).when(When::At(60), Then::StandsStill(0, 150));
    story.plan.source.exclusive = true;
    // Else it would learn it on the timer, too.
    story.plan.config.validate_interval = kernel::time::Duration(100_000);
    clean(&story);
    finds(&story, PlantedBug::ReconnectWithoutValidation, "converges-after-healing");
}

/// The same, and its session stays: no write and no lost session tells it that it is superseded. The timer does.
#[test]
fn a_stale_process_with_nothing_to_write_learns_it_on_the_timer() {
    let log: &[(u64, &[TableRow])] = &[(1, &[(1, Some(100))]), (2, &[(2, Some(101))])];
    let mut story = Scenario::of_one_table(true, log).when(When::At(60), Then::StandsStill(0, 150));
    story.plan.config.validate_interval = kernel::time::Duration(200);
    let report = clean(&story);
    assert_eq!(report.marks.get("superseded-on-a-timer"), Some(&1), "{:?}", report.marks);
    finds(&story, PlantedBug::NeverValidates, "superseded-is-learned-in-time");
}

/// The record was made while an idle table was proven complete, and lands right after that table was set back to the commit that the
/// record names: it proves more of what was found than the table has taken since. Whenever it lands nothing breaks; where it lands
/// between the setting back and the next read, the table learns from it.
#[test]
fn a_record_that_lands_behind_a_setting_back_is_learned_from() {
    let log = vec![
        (1, vec![(0, 1, Some(100)), (1, 1, Some(101))]),
        (20, vec![(1, 2, Some(102))]),
        (50, vec![(0, 2, Some(103))]),
        (70, vec![(0, 3, Some(104))]),
    ];
    let lands_at = |at| {
        Scenario::of_tables(true, 2, log.clone())
            .when(sends(0, "record", 5), Then::LandsAt(at))
            .when(When::At(65), Then::IsSetBack(0, 1))
    };
    let (mut learned, mut found) = (vec![], vec![]);
    for at in 75..100 {
        let story = lands_at(at);
        if clean(&story).marks.contains_key("learned-from-record") {
            learned.push(at);
            let report = engine::play(&story, Some(PlantedBug::LearnsNothingFromRecord), false);
            found.extend(report.violation.map(|violation| violation.rule));
        }
    }
    assert!(!learned.is_empty(), "the record never lands between the setting back and the next read");
    assert_eq!(found, vec!["position-covers-only-durable"; learned.len()], "learned at {learned:?}");
}

/// The same, and the first question on the timer gets no answer: it is asked again.
#[test]
fn a_question_without_an_answer_is_asked_again() {
    let log: &[(u64, &[TableRow])] = &[(1, &[(1, Some(100))]), (2, &[(2, Some(101))])];
    let mut story = Scenario::of_one_table(true, log)
        .when(When::At(60), Then::StandsStill(0, 150))
        // The first one was at its beginning.
        .when(sends(0, "ask", 2), Then::IsLost);
    story.plan.config.validate_interval = kernel::time::Duration(200);
    let report = clean(&story);
    let marks = ["validation-retried", "superseded-on-a-timer"].map(|mark| report.marks.get(mark).copied());
    assert_eq!(marks, [Some(1), Some(1)], "{:?}", report.marks);
}

/// A take that landed and whose answer was lost is not taken: the process that slept meanwhile must not believe that the number
/// in the record is its own.
#[test]
fn a_take_whose_answer_is_lost_is_not_taken() {
    let log: &[(u64, &[TableRow])] = &[(1, &[(1, Some(100))])];
    let story = Scenario::of_one_table(true, log).when(sends(0, "record", 1), Then::AnswerIsLost);
    let report = clean(&story);
    assert_eq!(report.marks.get("take-again"), Some(&1), "{:?}", report.marks);
}
