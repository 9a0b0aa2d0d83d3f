//! Plays a script's lines: processes with a coordinator each, over one sink on paper and one log.

use std::collections::BTreeMap;

use kernel::config::{Config, Join, TableConfig};
use kernel::coordinator::{Coordinator, HeldBatch, Input, Operator, Output, RowsAnswer, ToWorker, Visibility};
use kernel::id::{BatchId, CommitId, Identity, Incarnation, Session, StreamName, TableName, TransactionName};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::position::{LogIdentity, Position};
use kernel::time::{Duration, Time};

use crate::Player;
use crate::log;
use crate::paper::Paper;
use crate::words;

/// Everything that a script can touch.
pub(crate) struct Stage {
    now: Time,
    config: Config,
    paper: Paper,
    processes: BTreeMap<String, Process>,
    /// The one that lines are about.
    current: String,
    sessions: u64,
    /// The log that was opened last.
    identity: LogIdentity,
    batches: u64,
    /// Commits and records of whose fate nobody was told: each may land yet.
    late: Vec<Output>,
}

struct Process {
    coordinator: Coordinator,
    /// Commands that were given and not answered.
    pending: Vec<Output>,
}

impl Default for Stage {
    fn default() -> Self {
        let mut config = Config::new(BTreeMap::new());
        config.read_bytes_max = 1_000;
        config.budget_bytes_max = 100_000;
        Self {
            now: Time(0),
            config,
            paper: Paper::default(),
            processes: BTreeMap::new(),
            current: String::new(),
            sessions: 0,
            identity: LogIdentity::default(),
            batches: 0,
            late: vec![],
        }
    }
}

type Said = Result<Vec<String>, String>;

impl Player for Stage {
    fn play(&mut self, line: &str) -> Said {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["pipeline", tables @ ..] => self.pipeline(tables),
            ["set", setting, value] => self.set(setting, value),
            [process, "begins"] => self.begin(process),
            [process, "dies"] => self.processes.remove(*process).map(|_| vec![]).ok_or("it does not live".into()),
            ["as", process] => {
                self.current = (*process).into();
                Ok(vec![])
            }
            ["time", "passes", time] => {
                self.now = self.now + duration(time)?;
                self.give(Input::Timeout)
            }
            ["next", "deadline"] => self.next_deadline(),
            ["status"] => Ok(words::status(&self.process()?.coordinator.status())),
            ["operator", verb, rest @ ..] => self.operator(verb, rest),
            ["log", rest @ ..] => self.log(rest),
            ["record", rest @ ..] => self.record(rest),
            ["late", "commit", "lands"] => self.late_commit(),
            ["foreign", "hand", "commits", table] => {
                self.paper.sheet(&TableName::from(*table)).foreign_commit();
                Ok(vec![])
            }
            ["foreign", "hand", "sets", table, "back", "to", commit] => {
                let commit = if *commit == "nothing" { None } else { Some(commit_id(commit)?) };
                self.paper.sheet(&TableName::from(*table)).set_back(commit).map(|()| vec![])
            }
            [table, rest @ ..] => self.table(&TableName::from(*table), rest),
            [] => Err("an empty line".into()),
        }
    }
}

impl Stage {
    // ---- what is configured

    /// `orders`, or `orders:claims` for a sink without compare-and-set, `orders:now`, `orders:snapshot`, `orders:keyless`.
    fn pipeline(&mut self, tables: &[&str]) -> Said {
        self.config.tables.clear();
        for table in tables {
            let mut words = table.split(':');
            let name = TableName::from(words.next().unwrap_or_default());
            let mut config = TableConfig::new();
            for word in words {
                match word {
                    "claims" => config.state_with_data = false,
                    "now" => config.join = Join::Now,
                    "snapshot" => config.join = Join::Snapshot,
                    "keyless" => config.keyed = false,
                    _ => return Err(format!("a table is never '{word}'")),
                }
            }
            self.paper.sheet(&name).versioned = !config.state_with_data;
            self.config.tables.insert(name, config);
        }
        Ok(vec![])
    }

    fn set(&mut self, setting: &str, value: &str) -> Said {
        let config = &mut self.config;
        match setting {
            "age" => config.checkpoint.age = duration(value)?,
            "rows" => config.checkpoint.rows = log::number(value)?,
            "record-interval" => config.record_interval = duration(value)?,
            "validate-interval" => config.validate_interval = duration(value)?,
            "rewind-interval" => config.rewind_interval = duration(value)?,
            "hold" => config.hold = Some(duration(value)?),
            "retry" => config.retry.first = duration(value)?,
            "retry-most" => config.retry.most = duration(value)?,
            "give-up-after" => config.retry.give_up_after = Some(duration(value)?),
            "ages" => config.absent.ages = log::number(value)?,
            "attempts" => config.absent.attempts_max = u32::try_from(log::number(value)?).map_err(|e| e.to_string())?,
            "key-order" => config.source_keeps_key_order = value == "yes",
            "until-current" => config.until_current = value == "yes",
            _ => return Err("there is no such setting".into()),
        }
        Ok(vec![])
    }

    // ---- lives and time

    fn begin(&mut self, process: &str) -> Said {
        let coordinator = Coordinator::new(self.now, self.config.clone());
        self.current = process.into();
        self.processes.insert(process.into(), Process { coordinator, pending: vec![] });
        self.drain()
    }

    fn process(&mut self) -> Result<&mut Process, String> {
        self.processes.get_mut(&self.current).ok_or(format!("process {} does not live", self.current))
    }

    fn next_deadline(&mut self) -> Said {
        let deadline = self.process()?.coordinator.poll_timeout().ok_or("nothing is due")?;
        self.now = self.now.max(deadline.at);
        let mut said = vec![format!("{}: {}", words::time(deadline.at), deadline.why)];
        said.extend(self.give(Input::Timeout)?);
        Ok(said)
    }

    fn give(&mut self, input: Input) -> Said {
        let now = self.now;
        self.process()?.coordinator.handle_input(now, input);
        self.drain()
    }

    fn drain(&mut self) -> Said {
        let process = self.process()?;
        let mut said = vec![];
        while let Some(output) = process.coordinator.poll_output() {
            said.extend(words::output(&output));
            if is_answered(&output) {
                process.pending.push(output);
            }
        }
        match process.coordinator.check() {
            Ok(()) => Ok(said),
            Err(violation) => Err(format!("{violation}, after {said:#?}")),
        }
    }

    /// The oldest unanswered command of a kind.
    fn take(&mut self, what: &str, is: impl Fn(&Output) -> bool) -> Result<Output, String> {
        let pending = &mut self.process()?.pending;
        let at = pending.iter().position(is).ok_or(format!("no {what} is awaited, only {pending:?}"))?;
        Ok(pending.remove(at))
    }

    // ---- the record

    fn record(&mut self, words: &[&str]) -> Said {
        if let ["read"] = words {
            let Output::ReadPipelineState { id } = self.take("reading", |o| matches!(o, Output::ReadPipelineState { .. }))?
            else {
                return Err("it is another command".into());
            };
            let (state, token) = self.paper.record();
            return self.give(Input::PipelineStateRead { id, state: state.map(Box::new), token });
        }
        if let ["can't", "be", "read"] = words {
            let Output::ReadPipelineState { id } = self.take("reading", |o| matches!(o, Output::ReadPipelineState { .. }))?
            else {
                return Err("it is another command".into());
            };
            return self.give(Input::Failed { id, why: "the catalogue is away".into() });
        }
        let Output::StorePipelineState { id, expected, new } =
            self.take("storing", |o| matches!(o, Output::StorePipelineState { .. }))?
        else {
            return Err("it is another command".into());
        };
        let unknown = || StoreOutcome::Unknown { why: "no answer".into() };
        let outcome = match words {
            ["stored"] => self.paper.store_record(&expected, &new),
            ["stored,", "answer", "lost"] => {
                self.paper.store_record(&expected, &new);
                unknown()
            }
            ["lost"] => unknown(),
            _ => return Err("nothing like this becomes of a record".into()),
        };
        self.give(Input::PipelineStateStored { id, outcome })
    }

    // ---- tables

    fn table(&mut self, name: &TableName, words: &[&str]) -> Said {
        match words {
            ["recovered"] => {
                let Output::RecoverTable { id, table } =
                    self.take("recovery", |o| matches!(o, Output::RecoverTable { table, .. } if table == name))?
                else {
                    return Err("it is another command".into());
                };
                let sheet = self.paper.sheet(name);
                let (state, token) = (sheet.state().cloned().map(Box::new), sheet.token());
                self.give(Input::TableRecovered { id, table, state, token })
            }
            ["written", rest @ ..] => {
                let is_write = |o: &Output| matches!(o, Output::Send(ToWorker::Write { part, .. }) if part.table == *name);
                let Output::Send(ToWorker::Write { attempt, .. }) = self.take("write", is_write)? else {
                    return Err("it is another command".into());
                };
                let outcome = match rest {
                    [] => WriteOutcome::Written,
                    ["fails"] => WriteOutcome::Transient { why: "the disk is full".into() },
                    ["is", "refused"] => WriteOutcome::Rejected { why: "the sink refuses a value".into() },
                    _ => return Err("nothing like this becomes of rows".into()),
                };
                self.give(Input::Written { attempt, outcome })
            }
            ["rows", rest @ ..] => self.rows_read(name, rest),
            ["resolved"] => {
                let Output::Resolve { id, table, commit, incarnation } =
                    self.take("resolving", |o| matches!(o, Output::Resolve { table, .. } if table == name))?
                else {
                    return Err("it is another command".into());
                };
                let sheet = self.paper.sheet(name);
                let (found, token) = (sheet.has(commit, incarnation), sheet.token());
                self.give(Input::Resolved { id, table, found, token })
            }
            ["committed", ..] | ["commit", ..] => self.commit(name, words),
            _ => Err("nobody knows what this means".into()),
        }
    }

    fn commit(&mut self, name: &TableName, words: &[&str]) -> Said {
        let command = self.take("commit", |o| matches!(o, Output::Commit { table, .. } if table == name))?;
        let Output::Commit { id, token, state, .. } = &command else { return Err("it is another command".into()) };
        let unknown = || CommitOutcome::Unknown { why: "no answer".into() };
        let outcome = match words {
            ["committed"] => self.paper.sheet(name).commit(token, state),
            ["commit", "lands,", "answer", "lost"] => {
                self.paper.sheet(name).commit(token, state);
                unknown()
            }
            ["commit", "is", "lost"] => unknown(),
            ["commit", "is", "late"] => {
                self.late.push(command.clone());
                unknown()
            }
            ["commit", "fails"] => CommitOutcome::Transient { why: "the catalogue is away".into() },
            ["commit", "is", "refused"] => CommitOutcome::Rejected { why: "the sink refuses a value".into() },
            _ => return Err("nothing like this becomes of a commit".into()),
        };
        self.give(Input::Committed { id: *id, table: name.clone(), outcome })
    }

    /// `rows read: 01, no 02; up to [40]; sees x10`: rows of these keys, or none; where the log ended; what is proven.
    fn rows_read(&mut self, name: &TableName, words: &[&str]) -> Said {
        let command = self.take("reading of rows", |o| matches!(o, Output::ReadRows { table, .. } if table == name))?;
        let Output::ReadRows { id, .. } = command else { return Err("it is another command".into()) };
        let text = words.join(" ");
        let Some(said) = text.strip_prefix("read:") else {
            return self.give(Input::Failed { id, why: "the source is busy".into() });
        };
        let mut parts = said.split(';').map(str::trim);
        let keys: Vec<&str> = parts.next().unwrap_or_default().split(',').map(str::trim).filter(|k| !k.is_empty()).collect();
        let key = |text: &str| log::key(text);
        let gone = keys.iter().filter_map(|k| k.strip_prefix("no ")).map(key).collect::<Result<Vec<_>, _>>()?;
        let there = keys.iter().filter(|k| !k.starts_with("no ")).map(|k| key(k)).collect::<Result<Vec<_>, _>>()?;
        let (mut fence, mut visibility) = (Position::START, Visibility::default());
        for part in parts {
            if let Some(upto) = part.strip_prefix("up to ") {
                fence = log::position(upto)?;
            } else if let Some(seen) = part.strip_prefix("sees ") {
                visibility.proven.extend(seen.split(' ').map(TransactionName::from));
            }
        }
        self.batches += 1;
        let rows = u32::try_from(there.len()).map_err(|e| e.to_string())?;
        let held = HeldBatch { batch: BatchId(self.batches), rows, bytes: u64::from(rows) * 10 };
        let identity = self.identity.clone();
        let rows = (rows > 0).then_some(held);
        let answer = RowsAnswer { rows, keys: there, gone, visibility, fence, identity };
        self.give(Input::RowsRead { id, answer: Box::new(answer) })
    }

    fn late_commit(&mut self) -> Said {
        let Some(Output::Commit { table, token, state, .. }) = self.late.pop() else { return Err("none is late".into()) };
        Ok(match self.paper.sheet(&table).commit(&token, &state) {
            CommitOutcome::Durable { .. } => vec![format!("({table}: {:?} is visible)", state.commit)],
            _ => vec![format!("({table}: {:?} comes too late and changes nothing)", state.commit)],
        })
    }

    // ---- the log

    fn log(&mut self, words: &[&str]) -> Said {
        if let ["opened", rest @ ..] = words {
            return self.log_opened(rest);
        }
        if let ["can't", "be", "opened"] = words {
            let Output::OpenLog { id } = self.take("opening", |o| matches!(o, Output::OpenLog { .. }))? else {
                return Err("it is another command".into());
            };
            return self.give(Input::LogFailed { id, failure: LogFailure::SessionLost { why: "the source is away".into() } });
        }
        let Output::ReadLog { id, .. } = self.take("read", |o| matches!(o, Output::ReadLog { .. }))? else {
            return Err("it is another command".into());
        };
        let failure = match words {
            ["read:", said @ ..] => {
                let log::Read { batches, events, finished } = log::read(&said.join(" "), &mut self.batches)?;
                return self.give(Input::LogRead { id, batches, events, finished });
            }
            ["session", "lost"] => LogFailure::SessionLost { why: "the connection broke".into() },
            ["is", "gone"] => LogFailure::PositionLost { why: "the log does not reach back so far any more".into() },
            _ => return Err("a log does nothing like this".into()),
        };
        self.give(Input::LogFailed { id, failure })
    }

    /// `opened from [10] to [40] of log2 numbered by server2`; each part may be left out. `of lineage g1` is a log of sets.
    fn log_opened(&mut self, words: &[&str]) -> Said {
        let part = |name: &str| words.iter().position(|w| *w == name).and_then(|at| words.get(at + 1)).copied();
        let Output::OpenLog { id } = self.take("opening", |o| matches!(o, Output::OpenLog { .. }))? else {
            return Err("it is another command".into());
        };
        let (floor, end) = (log::position(part("from").unwrap_or(""))?, log::position(part("to").unwrap_or(""))?);
        let history = Identity::from(part("of").unwrap_or("log1"));
        let named: Vec<StreamName> = end.streams().map(|(stream, _)| stream.clone()).collect();
        let lineage = part("lineage").map(Identity::from);
        let streams = match (&lineage, named.is_empty()) {
            (Some(_), _) => vec![],
            (None, true) => vec![StreamName::from("")],
            (None, false) => named,
        };
        let identity = LogIdentity {
            streams: streams.into_iter().map(|stream| (stream, history.clone())).collect(),
            lineage,
            coordinates: part("by").map(Identity::from),
        };
        self.sessions += 1;
        self.identity = identity.clone();
        self.give(Input::LogOpened { id, session: Session(self.sessions), identity, floor, end })
    }

    // ---- people

    fn operator(&mut self, verb: &str, tables: &[&str]) -> Said {
        let operator = match (verb, tables) {
            ("drains", []) => Operator::Drain,
            ("pauses", [table]) => Operator::Pause(TableName::from(*table)),
            ("resumes", [table]) => Operator::Resume(TableName::from(*table)),
            ("skips", [table]) => Operator::Skip(TableName::from(*table)),
            ("releases", [table]) => Operator::Release(TableName::from(*table)),
            _ => return Err("a person can't ask this".into()),
        };
        self.give(Input::Operator(operator))
    }
}

fn is_answered(output: &Output) -> bool {
    match output {
        Output::ReadPipelineState { .. }
        | Output::StorePipelineState { .. }
        | Output::RecoverTable { .. }
        | Output::OpenLog { .. }
        | Output::ReadLog { .. }
        | Output::PlanRanges { .. }
        | Output::ReadChunk { .. }
        | Output::ReadVisibility { .. }
        | Output::ReadRows { .. }
        | Output::Commit { .. }
        | Output::Resolve { .. }
        | Output::Send(ToWorker::Write { .. }) => true,
        Output::Send(ToWorker::Abandon { .. })
        | Output::ReleaseBatch { .. }
        | Output::ReleaseStaged { .. }
        | Output::DiscardOlder { .. }
        | Output::Acknowledge { .. }
        | Output::Started { .. }
        | Output::HaltTable { .. }
        | Output::Declined { .. }
        | Output::Skipped { .. }
        | Output::Stop { .. } => false,
    }
}

/// `10s` or `200ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(milliseconds), _) => log::number(milliseconds).map(Duration::from_millis),
        (None, Some(seconds)) => log::number(seconds).map(Duration::from_secs),
        (None, None) => Err(format!("'{text}' is no duration")),
    }
}

/// `c1.2`.
fn commit_id(text: &str) -> Result<CommitId, String> {
    let (life, number) = text.strip_prefix('c').and_then(|t| t.split_once('.')).ok_or(format!("'{text}' is no commit"))?;
    let incarnation = life.parse().map(Incarnation).map_err(|_| format!("'{text}' is no commit"))?;
    Ok(CommitId { incarnation, number: log::number(number)? })
}
