//! A running pipeline asked over its HTTP endpoint, and watched until it has done what was asked.

use std::net::SocketAddr;
use std::time::Duration;

use contract::{Error, Kind};
use kernel::id::TableName;
use kernel::state::Phase;
use reqwest::Url;
use serde_json::{Value, json};

use super::{Action, nothing_to_do};
use crate::output::{Answer, Failure, exit};

/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(3);
/// How long the run may take to do it: a commit that is under way ends first.
const DONE_MAX: Duration = Duration::from_secs(10);
/// How often it is looked at meanwhile.
const LOOKED_EVERY: Duration = Duration::from_millis(100);

/// A run of the pipeline.
pub(super) struct Running {
    client: reqwest::Client,
    address: SocketAddr,
    base: Url,
}

/// A table as the run reports it.
struct Seen {
    phase: Phase,
    why: Option<String>,
    /// Of which snapshot its copy is.
    generation: u64,
}

/// The run of this pipeline that listens there, if one does.
pub(super) async fn find(address: SocketAddr, pipeline: &str) -> Result<Option<Running>, Failure> {
    let client = reqwest::Client::builder().timeout(REQUEST_MAX).no_proxy().build().map_err(|error| {
        Error::new(Kind::Fatal, "http-client", format!("no HTTP client can be made: {error}"), "this is a fault in urutau itself")
    })?;
    let base = Url::parse(&format!("http://{address}/")).map_err(|error| {
        Error::new(Kind::Config, "run-address", format!("{address} makes no address: {error}"), "give one such as 127.0.0.1:9464")
    })?;
    let run = Running { client, address, base };
    match run.report().await {
        Ok(report) if report["pipeline"].as_str() == Some(pipeline) => Ok(Some(run)),
        // Something else listens there, or another pipeline: this one may run with another --listen, or not at all.
        Ok(_) => Ok(None),
        Err(error) if error.is_timeout() => {
            let what = format!("what listens at {address} does not answer within {} s", REQUEST_MAX.as_secs());
            Err(Error::new(Kind::Transient, "run-no-answer", what, "ask again, or look at that process").into())
        }
        Err(_) => Ok(None),
    }
}

impl Running {
    /// Asks, and waits until it is done.
    pub(super) async fn act(&self, action: Action, name: &TableName) -> Result<Answer, Failure> {
        let before = self.table(name).await?;
        if !action.applies_to(name.as_str(), before.phase)? {
            return Ok(nothing_to_do(name.as_str(), before.phase));
        }
        match action {
            Action::Pause => self.ask(name, "pause").await?,
            Action::Resume => self.ask(name, "resume").await?,
            Action::Skip => self.ask(name, "skip").await?,
            Action::Resnapshot => self.ask(name, "resnapshot").await?,
            // Released is what stands still; a table that streams is stopped first. They are carried out in this order.
            Action::Drop => {
                self.ask(name, "pause").await?;
                self.ask(name, "release").await?;
            }
        }
        let generation = before.generation;
        let mut seen = before;
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < DONE_MAX {
            tokio::time::sleep(LOOKED_EVERY).await;
            seen = self.table(name).await?;
            // A small table is read before anybody looks, and a snapshot that is being read may be begun anew.
            let is_read_anew = action == Action::Resnapshot && seen.generation > generation;
            if is_read_anew {
                return Ok(read_anew(name, &seen));
            }
            if seen.phase == action.goal() && action != Action::Resnapshot {
                break;
            }
        }
        answer(action, name, &seen)
    }

    async fn ask(&self, name: &TableName, word: &str) -> Result<(), Failure> {
        let mut url = self.base.clone();
        // The name may hold anything: as segments of a path it is escaped.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(["tables", name.as_str(), word]);
        }
        let response = self.client.post(url).send().await.map_err(|error| self.lost(&error))?;
        if response.status().is_success() {
            return Ok(());
        }
        let (status, said) = (response.status(), response.text().await.unwrap_or_default());
        let what = format!("the run at {} answered {status} to '{word} {name}': {}", self.address, said.trim());
        Err(Error::new(Kind::Transient, "run-refused", what, "look at the run's log").into())
    }

    async fn table(&self, name: &TableName) -> Result<Seen, Failure> {
        let report = self.report().await.map_err(|error| self.lost(&error))?;
        let table = &report["tables"][name.as_str()];
        match serde_json::from_value(table["phase"].clone()) {
            Ok(phase) => Ok(Seen {
                phase,
                why: table["why"].as_str().map(str::to_owned),
                generation: table["generation"].as_u64().unwrap_or_default(),
            }),
            Err(_) => {
                let what = format!("the run at {} does not report table {name}", self.address);
                let remedy = "it is still starting, or was started with another pipeline file";
                Err(Error::new(Kind::Transient, "run-without-table", what, remedy).into())
            }
        }
    }

    async fn report(&self) -> Result<Value, reqwest::Error> {
        let mut url = self.base.clone();
        url.set_path("statusz");
        self.client.get(url).send().await?.error_for_status()?.json().await
    }

    fn lost(&self, error: &reqwest::Error) -> Failure {
        let what = format!("the run at {} stopped answering: {}", self.address, root_of(error));
        Error::new(Kind::Transient, "run-no-answer", what, "look whether it still runs, then ask again").into()
    }
}

fn read_anew(name: &TableName, seen: &Seen) -> Answer {
    let text = format!("table {name} is read anew (snapshot {}), and is {} now", seen.generation, seen.phase.as_str());
    let (phase, generation) = (seen.phase, seen.generation);
    Answer::done(text, json!({ "table": name, "phase": phase, "generation": generation, "changed": true, "by": "run" }))
}

fn answer(action: Action, name: &TableName, seen: &Seen) -> Result<Answer, Failure> {
    let why = seen.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let json = json!({ "table": name, "phase": seen.phase, "why": seen.why, "changed": true, "by": "run" });
    if seen.phase == action.goal() {
        return Ok(Answer::done(format!("table {name} is {} now", seen.phase.as_str()), json));
    }
    if seen.phase == Phase::Halted {
        let text = format!("table {name} is halted{why}");
        return Ok(Answer { code: exit::HALTED, text, json });
    }
    let what = format!("table {name} was asked to {}, and is {} still{why}", action.word(), seen.phase.as_str());
    Err(Error::new(Kind::Transient, "run-not-yet", what, "look with `urutau tables`, or at /statusz").into())
}

/// What went wrong at the bottom: the layers above only say that a request failed.
fn root_of(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(phase: Phase, why: Option<&str>) -> Seen {
        Seen { phase, why: why.map(str::to_owned), generation: 0 }
    }

    #[test]
    fn a_table_that_halts_again_is_exit_code_3_with_its_reason() {
        let answer = answer(Action::Skip, &"shop.items".into(), &seen(Phase::Halted, Some("line 9: the key is null"))).unwrap();
        assert_eq!(answer.code, 3);
        assert_eq!(answer.text, "table shop.items is halted: line 9: the key is null");
    }

    #[test]
    fn a_table_that_does_not_get_there_is_said_to_be_where_it_is() {
        let Err(Failure::Error(error)) = answer(Action::Pause, &"shop.items".into(), &seen(Phase::Streaming, None)) else {
            panic!("that is not done")
        };
        assert_eq!(error.code, "run-not-yet");
        assert_eq!(error.what, "table shop.items was asked to pause, and is streaming still");
    }

    #[test]
    fn a_table_that_is_there_is_done() {
        let answer = answer(Action::Drop, &"shop.items".into(), &seen(Phase::NeedsSnapshot, None)).unwrap();
        assert_eq!((answer.code, answer.text.as_str()), (0, "table shop.items is needs-snapshot now"));
    }
}
