//! A table's phase changed in the stored record, while no run answers.
//!
//! The change is made as a life of its own: it takes the next incarnation by the same compare-and-set. A run that is on after
//! all, somewhere that nobody named, learns at its next write that it is superseded and stops; without that it would store its
//! own idea of the phase over ours, and nobody would know. Positions and commits stay as they are, so nothing is lost or
//! copied twice.

use contract::{Error, Kind, Sink, Versioned};
use host::survey;
use kernel::id::TableName;
use kernel::outcome::StoreOutcome;
use kernel::state::{FORMAT, Phase, PipelineState, TableRecord, TableState};
use serde_json::json;

use super::{Action, nothing_to_do};
use crate::drivers;
use crate::output::{Answer, Failure};
use crate::pipeline::Loaded;

/// How often the record is read anew because somebody else had replaced it.
const TRIES_MAX: usize = 5;

pub(super) async fn act(pipeline: &Loaded, action: Action, name: &TableName) -> Result<Answer, Failure> {
    if action == Action::Skip {
        let what = format!("table {name}: only a run knows the event that the table halted at, and none answers");
        return Err(Failure::usage(
            "table-skip-needs-run",
            what,
            "start the run (with `follow: true`, so that it stays), then skip",
        ));
    }
    if action == Action::Resnapshot {
        let what = format!("table {name}: a snapshot is read by a run, and none answers");
        let remedy =
            "start the run, then ask; or say `snapshot: { mode: when-needed }`, drop the table's place and start the run";
        return Err(Failure::usage("table-resnapshot-needs-run", what, remedy));
    }
    let sink = host::open_sink(&pipeline.spec, &drivers::registry()).await?;
    let generation = match pipeline.plans.get(name) {
        Some(plan) => match survey::recover(plan, &*sink).await?.value {
            Some(state) => generation(name, &state)?,
            None => 0,
        },
        None => 0,
    };
    for _ in 0..TRIES_MAX {
        let Versioned { value, token } = sink.pipeline_state().await?;
        let record = value.ok_or_else(|| never_run(pipeline, action))?;
        let Some(new) = changed(&record, action, name, generation)? else {
            let phase = record.tables.get(name).map_or(Phase::Pending, |entry| entry.phase);
            return Ok(nothing_to_do(name.as_str(), phase));
        };
        match sink.store_pipeline_state(&token, &new).await {
            StoreOutcome::Stored { .. } => return Ok(done(action, name, &new)),
            StoreOutcome::Conflict { .. } => {}
            StoreOutcome::Unknown { why } => return unknown(&*sink, action, name, &new, &why).await,
        }
    }
    let what = format!("the record of pipeline {} was replaced by others each time it was looked at", pipeline.spec.name);
    Err(Error::new(Kind::Transient, "table-record-busy", what, "a run is on: give its --listen address").into())
}

/// The number of the copy that is there.
fn generation(name: &TableName, state: &TableState) -> Result<u64, Failure> {
    match state.impossible() {
        Some(what) => Err(forged(format!("table {name}: its state in the sink is not what urutau wrote: {what}"))),
        None => Ok(state.generation),
    }
}

fn forged(what: String) -> Failure {
    Failure::usage(
        "record-forged",
        what,
        "restore it; or drop the tables at the target, and begin anew with another pipeline name",
    )
}

/// The record with the table in its new phase; `None` if it is in it.
fn changed(record: &PipelineState, action: Action, name: &TableName, generation: u64) -> Result<Option<PipelineState>, Failure> {
    if record.format > FORMAT {
        let what = format!("the pipeline's record has format {}, this urutau knows {FORMAT}", record.format);
        return Err(Failure::usage("record-format", what, "run a newer urutau"));
    }
    if let Some(what) = record.impossible() {
        return Err(forged(format!("the pipeline's record is not what urutau wrote: {what}")));
    }
    let Some(entry) = record.tables.get(name) else {
        let what = format!("table {name} has not begun: the pipeline's record does not know it");
        return Err(Failure::usage("table-not-begun", what, "run the pipeline first, or take the table out of the file"));
    };
    if !action.applies_to(name.as_str(), entry.phase)? {
        return Ok(None);
    }
    let entry = match action {
        // What needs a snapshot is named with no commit, and waits for a generation that there is not yet (rule A5).
        Action::Drop => {
            let generation = entry.generation.max(generation) + 1;
            let why = Some("somebody dropped it".to_owned());
            TableRecord { phase: Phase::NeedsSnapshot, generation, named: None, why, ..entry.clone() }
        }
        Action::Pause | Action::Resume | Action::Skip | Action::Resnapshot => {
            TableRecord { phase: action.goal(), why: None, ..entry.clone() }
        }
    };
    let mut new = record.clone();
    new.format = FORMAT;
    new.incarnation = record.incarnation.next().ok_or_else(|| {
        let what = format!("the pipeline has begun {} times, and there is no later life", record.incarnation);
        Failure::usage("record-used-up", what, "begin anew with another pipeline name and another target")
    })?;
    new.tables.insert(name.clone(), entry);
    Ok(Some(new))
}

/// The answer was lost: what is there tells.
async fn unknown(sink: &dyn Sink, action: Action, name: &TableName, new: &PipelineState, why: &str) -> Result<Answer, Failure> {
    match sink.pipeline_state().await {
        Ok(found) if found.value.as_ref() == Some(new) => Ok(done(action, name, new)),
        _ => {
            let what = format!("table {name}: whether the record was stored is not known: {why}");
            Err(Error::new(Kind::Transient, "table-record-unknown", what, "look with `urutau tables`, then ask again").into())
        }
    }
}

fn never_run(pipeline: &Loaded, action: Action) -> Failure {
    let what = format!("pipeline {} has not run yet, so there is nothing to {}", pipeline.spec.name, action.word());
    Failure::usage("table-not-begun", what, "run the pipeline first")
}

fn done(action: Action, name: &TableName, new: &PipelineState) -> Answer {
    let phase = action.goal();
    let text = format!(
        "table {name} is {} from the next run on. No run answered, so the stored record was changed, as life {}; a run elsewhere, if \
         there is one, stops at its next write",
        phase.as_str(),
        new.incarnation
    );
    Answer::done(text, json!({ "table": name, "phase": phase, "changed": true, "by": "record", "incarnation": new.incarnation }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::{CommitId, Incarnation};
    use kernel::position::{LogIdentity, Position};

    fn record(phase: Phase) -> PipelineState {
        let commit = CommitId { incarnation: Incarnation(3), number: 8 };
        let why = (phase == Phase::Halted).then(|| "line 7: the key is null".to_owned());
        let orders = TableRecord { phase, generation: 2, named: Some(commit), skipped: Vec::new(), why };
        let items = TableRecord { phase: Phase::Streaming, generation: 0, named: None, skipped: Vec::new(), why: None };
        PipelineState {
            format: FORMAT,
            incarnation: Incarnation(3),
            identity: LogIdentity::default(),
            quiet: Position::scalar(100),
            tables: [("shop.items".into(), items), ("shop.orders".into(), orders)].into(),
        }
    }

    fn change(phase: Phase, action: Action) -> Option<PipelineState> {
        changed(&record(phase), action, &"shop.orders".into(), 5).unwrap()
    }

    #[test]
    fn a_pause_changes_the_phase_and_the_life_and_nothing_else() {
        let mut expected = record(Phase::Paused);
        expected.incarnation = Incarnation(4);
        assert_eq!(change(Phase::Streaming, Action::Pause), Some(expected));
    }

    #[test]
    fn a_halted_table_that_is_resumed_keeps_the_commit_that_is_named_and_not_why_it_halted() {
        let mut expected = record(Phase::Streaming);
        expected.incarnation = Incarnation(4);
        assert_eq!(change(Phase::Halted, Action::Resume), Some(expected));
    }

    #[test]
    fn a_dropped_table_is_named_with_no_commit_and_waits_for_a_generation_to_come() {
        let mut expected = record(Phase::Streaming);
        expected.incarnation = Incarnation(4);
        let why = Some("somebody dropped it".to_owned());
        expected.tables.insert(
            "shop.orders".into(),
            TableRecord { phase: Phase::NeedsSnapshot, generation: 6, named: None, skipped: Vec::new(), why },
        );
        assert_eq!(change(Phase::Streaming, Action::Drop).as_ref(), Some(&expected));
        assert_eq!(change(Phase::Halted, Action::Drop), Some(expected));
    }

    #[test]
    fn what_is_so_already_takes_no_life() {
        assert_eq!(change(Phase::Paused, Action::Pause), None);
    }

    #[test]
    fn a_table_that_has_not_begun_cannot_be_paused() {
        let Err(Failure::Error(error)) = changed(&record(Phase::Streaming), Action::Pause, &"shop.other".into(), 0) else {
            panic!("it was not refused")
        };
        assert_eq!(error.code, "table-not-begun");
    }

    #[test]
    fn a_record_of_a_newer_urutau_is_left_alone() {
        let mut newer = record(Phase::Streaming);
        newer.format = FORMAT + 1;
        let Err(Failure::Error(error)) = changed(&newer, Action::Pause, &"shop.orders".into(), 0) else {
            panic!("it was not refused")
        };
        assert_eq!(error.code, "record-format");
    }

    fn refusal(record: &PipelineState) -> String {
        match changed(record, Action::Drop, &"shop.orders".into(), 0) {
            Err(Failure::Error(error)) => format!("{}: {}", error.code, error.what),
            _ => panic!("it was not refused"),
        }
    }

    #[test]
    fn nothing_is_counted_on_from_a_number_that_no_run_has_written() {
        let mut forged = record(Phase::Streaming);
        forged.tables.insert(
            "shop.orders".into(),
            TableRecord { phase: Phase::Halted, generation: u64::MAX, named: None, skipped: Vec::new(), why: None },
        );
        let said = "record-forged: the pipeline's record is not what urutau wrote: the generation of table shop.orders is \
                    18446744073709551615";
        assert_eq!(refusal(&forged), said);
    }

    #[test]
    fn behind_the_last_life_no_record_is_stored() {
        let last = PipelineState { incarnation: Incarnation::MAX, ..record(Phase::Streaming) };
        assert_eq!(refusal(&last), "record-used-up: the pipeline has begun 1048575 times, and there is no later life");
    }
}
