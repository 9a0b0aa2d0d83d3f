//! `urutau table ...`: one table paused, resumed, skipped forward, read anew or dropped.
//!
//! A running pipeline is asked (`running`), since only it knows what it is doing. If none answers, the stored record is
//! changed (`record`), as the next life of the pipeline; the run that comes then finds it.

mod record;
mod running;

use kernel::id::TableName;
use kernel::state::Phase;
use serde_json::json;

use crate::args::{LISTEN, Listen, TableAction, TableArgs};
use crate::drivers;
use crate::output::{Answer, Failure};
use crate::pipeline::{self, Loaded};

/// What is asked of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Pause,
    Resume,
    Skip,
    Resnapshot,
    Drop,
}

/// Acts on a table.
pub(crate) async fn act(action: &TableAction) -> Result<Answer, Failure> {
    match action {
        TableAction::Pause(table) => carry_out(Action::Pause, table).await,
        TableAction::Resume(table) => carry_out(Action::Resume, table).await,
        TableAction::Skip(table) => carry_out(Action::Skip, table).await,
        TableAction::Resnapshot(table) => carry_out(Action::Resnapshot, table).await,
        TableAction::Drop { table, yes } => {
            if !yes {
                return Err(unconfirmed(table));
            }
            carry_out(Action::Drop, table).await
        }
    }
}

async fn carry_out(action: Action, args: &TableArgs) -> Result<Answer, Failure> {
    let pipeline = pipeline::load(&args.file.file)?;
    let (name, _) = pipeline.table(&args.table)?;
    if action == Action::Resnapshot {
        can_be_read_anew(&pipeline, name).await?;
    }
    let address = match args.listen {
        Some(Listen::Off) => None,
        Some(Listen::At(address)) => Some(address),
        None => Some(LISTEN),
    };
    if let Some(address) = address
        && let Some(run) = running::find(address, &pipeline.spec.name).await?
    {
        return run.act(action, name).await;
    }
    if let Some(Listen::At(address)) = args.listen {
        let what = format!("no run of pipeline {} answers at {address}", pipeline.spec.name);
        return Err(Failure::usage(
            "table-no-run",
            what,
            "give the run's own --listen address, or '--listen off' if it does not run",
        ));
    }
    record::act(&pipeline, action, name).await
}

/// The rules of a run, asked before it is.
async fn can_be_read_anew(pipeline: &Loaded, name: &TableName) -> Result<(), Failure> {
    let source = host::open_source(&pipeline.spec, &drivers::registry()).await?;
    if source.chunks().is_some() {
        return Ok(());
    }
    let what = format!(
        "table {name}: a {} source holds changes, not tables that could be read beside its log",
        pipeline.spec.source.kind
    );
    Err(Failure::usage("no-snapshot", what, "to begin anew, run the pipeline under another name into another target"))
}

/// Of a table that holds rows nothing can be taken back, so it is asked twice.
fn unconfirmed(args: &TableArgs) -> Failure {
    let what = format!(
        "'table drop' gives up the copy's place in the log of table {}: its rows at the target stay, but from then on only a new snapshot \
         could bring it up to date",
        args.table
    );
    Failure::usage("table-drop-unconfirmed", what, "say --yes if that is meant; 'table pause' can be undone")
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Action::Pause => "pause",
            Action::Resume => "resume",
            Action::Skip => "skip",
            Action::Resnapshot => "resnapshot",
            Action::Drop => "drop",
        }
    }

    /// The phase that a table is in when it is done.
    fn goal(self) -> Phase {
        match self {
            Action::Pause => Phase::Paused,
            Action::Resume | Action::Skip => Phase::Streaming,
            Action::Resnapshot => Phase::Snapshotting,
            Action::Drop => Phase::NeedsSnapshot,
        }
    }

    /// `Ok(false)`: there is nothing to do.
    fn applies_to(self, table: &str, phase: Phase) -> Result<bool, Failure> {
        match (self, phase) {
            (Action::Pause, Phase::Paused)
            | (Action::Resume, Phase::Streaming | Phase::Pending)
            | (Action::Drop, Phase::NeedsSnapshot) => Ok(false),
            (Action::Pause, Phase::Streaming | Phase::Pending | Phase::Snapshotting)
            | (Action::Resume, Phase::Paused | Phase::Halted)
            | (Action::Skip, Phase::Halted)
            | (Action::Resnapshot, _)
            | (Action::Drop, Phase::Streaming | Phase::Pending | Phase::Snapshotting | Phase::Paused | Phase::Halted) => Ok(true),
            (Action::Pause, Phase::Halted) => {
                Err(refuse(self, table, phase, "it takes no rows as it is; 'table resume' makes it go on"))
            }
            (Action::Skip, _) => Err(refuse(self, table, phase, "only a halted table has an event to pass over")),
            (Action::Pause | Action::Resume, Phase::NeedsSnapshot) | (Action::Resume, Phase::Snapshotting) => {
                Err(refuse(self, table, phase, "it goes on from a new snapshot only ('table resnapshot')"))
            }
        }
    }
}

fn refuse(action: Action, table: &str, phase: Phase, remedy: &str) -> Failure {
    let what = format!("table {table} is {}, so it can't be asked to {}", phase.as_str(), action.word());
    Failure::usage("table-other-phase", what, remedy)
}

fn nothing_to_do(table: &str, phase: Phase) -> Answer {
    let text = format!("table {table} is {} already", phase.as_str());
    Answer::done(text, json!({ "table": table, "phase": phase, "changed": false }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: [Phase; 6] =
        [Phase::Pending, Phase::Snapshotting, Phase::Streaming, Phase::Paused, Phase::Halted, Phase::NeedsSnapshot];

    fn applies(action: Action) -> Vec<&'static str> {
        PHASES.into_iter().filter(|phase| matches!(action.applies_to("t", *phase), Ok(true))).map(Phase::as_str).collect()
    }

    #[test]
    fn each_action_applies_to_the_phases_that_it_can_end() {
        assert_eq!(applies(Action::Pause), ["pending", "snapshotting", "streaming"]);
        assert_eq!(applies(Action::Resume), ["paused", "halted"]);
        assert_eq!(applies(Action::Skip), ["halted"]);
        assert_eq!(applies(Action::Resnapshot), PHASES.map(Phase::as_str));
        assert_eq!(applies(Action::Drop), ["pending", "snapshotting", "streaming", "paused", "halted"]);
    }

    #[test]
    fn what_is_so_already_is_no_fault() {
        assert!(matches!(Action::Pause.applies_to("t", Phase::Paused), Ok(false)));
        assert!(matches!(Action::Resume.applies_to("t", Phase::Streaming), Ok(false)));
        assert!(matches!(Action::Drop.applies_to("t", Phase::NeedsSnapshot), Ok(false)));
    }

    #[test]
    fn a_table_that_needs_a_snapshot_is_resumed_by_nothing_else() {
        let Err(Failure::Error(error)) = Action::Resume.applies_to("shop.orders", Phase::NeedsSnapshot) else {
            panic!("it was not refused")
        };
        assert_eq!(
            error.to_string(),
            "table shop.orders is needs-snapshot, so it can't be asked to resume — it goes on from a new snapshot only \
             ('table resnapshot') [table-other-phase]"
        );
    }
}
