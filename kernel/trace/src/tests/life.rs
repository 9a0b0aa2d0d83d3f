//! A life that was written down, given to other machines: as it was, altered in every line, cut at every byte.

use kernel::config::{Config, TableConfig};
use kernel::coordinator::{
    Coordinator, HeldBatch, Input, LogEvent, Operator, Output, RowRange, RowsAnswer, ToWorker, Told, Touched, Visibility,
};
use kernel::id::{BatchId, EncodedKey, Identity, Session, StreamName, TableName, Token};
use kernel::outcome::{CommitOutcome, StoreOutcome, WriteOutcome};
use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Position, Transaction};
use kernel::time::{Duration, Time};
use kernel::worker::{NetOutcome, Worker, WorkerInput, WorkerOutput};

use crate::{End, Reader, Replay, ReplayError, Seen, TraceError, Writer};

/// Machines whose commands are all answered at once, and what is written of them.
struct Traced {
    coordinator: Coordinator,
    worker: Worker,
    writer: Writer,
    first: String,
    now: u64,
    facts: std::collections::VecDeque<Result<Input, WorkerInput>>,
    reads: Vec<Output>,
    /// A record is stored, and the machine learns it by finding it there.
    finds_records: bool,
}

fn identity() -> LogIdentity {
    LogIdentity { streams: [(StreamName::from(""), Identity::from("this log"))].into(), coordinates: None, lineage: None }
}

impl Traced {
    fn begin(config: Config) -> Self {
        let (mut writer, first) = Writer::new("0.1.0");
        writer.begins(Time(0), &config);
        let coordinator = Coordinator::new(Time(0), config);
        let (worker, facts, reads) = (Worker::new(), Default::default(), Vec::new());
        let mut traced = Self { coordinator, worker, writer, first, now: 0, facts, reads, finds_records: false };
        traced.drain();
        traced.go_on();
        traced
    }

    fn tell(&mut self, input: Input) {
        self.facts.push_back(Ok(input));
        self.go_on();
    }

    fn go_on(&mut self) {
        while let Some(fact) = self.facts.pop_front() {
            self.now += 10;
            match fact {
                Ok(input) => {
                    self.writer.hears(Time(self.now), &input);
                    self.coordinator.handle_input(Time(self.now), input);
                }
                Err(input) => {
                    self.writer.worker_hears(Time(self.now), &input);
                    self.worker.handle_input(input);
                }
            }
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.coordinator.poll_output() {
            self.writer.says(&output);
            self.answer(output);
        }
        while let Some(output) = self.worker.poll_output() {
            self.writer.worker_says(&output);
            let fact = match output {
                WorkerOutput::Net { attempt, rows, .. } => {
                    let rows = rows.iter().map(|rows| u64::from(rows.count())).sum();
                    Err(WorkerInput::Netted { attempt, outcome: NetOutcome::Netted { rows, images: rows, keys: None } })
                }
                WorkerOutput::Write { attempt, .. } => Err(WorkerInput::Wrote { attempt, outcome: WriteOutcome::Written }),
                WorkerOutput::Written { attempt, outcome } => Ok(Input::Written { attempt, outcome }),
                WorkerOutput::Forget { .. } => continue,
            };
            self.facts.push_back(fact);
        }
    }

    fn answer(&mut self, output: Output) {
        let token = Token::from(format!("t{}", self.now));
        let fact = match output {
            Output::ReadPipelineState { id } => Input::PipelineStateRead { id, state: None, token },
            Output::StorePipelineState { id, new, .. } if self.finds_records => {
                Input::PipelineStateStored { id, outcome: StoreOutcome::Conflict { found: Some(new), token } }
            }
            Output::StorePipelineState { id, .. } => Input::PipelineStateStored { id, outcome: StoreOutcome::Stored { token } },
            Output::RecoverTable { id, table } => Input::TableRecovered { id, table, state: None, token },
            Output::OpenLog { id } => {
                let end = Position::scalar(1_000);
                Input::LogOpened { id, session: Session(1), identity: identity(), floor: Position::START, end }
            }
            Output::Send(told) => return self.facts.push_back(Err(WorkerInput::Told(told))),
            Output::Commit { id, table, .. } => Input::Committed { id, table, outcome: CommitOutcome::Durable { token } },
            read @ (Output::ReadLog { .. } | Output::ReadRows { .. }) => return self.reads.push(read),
            _ => return,
        };
        self.facts.push_back(Ok(fact));
    }

    fn end(mut self) -> String {
        self.writer.ends(End::Stopped);
        self.first + &self.writer.take()
    }
}

/// Twelve rows of one table, each in a batch and a transaction of its own; each lacks a value, which is read again for it. The keys'
/// order is that of their letters, and another one for whoever knows only what stands for them.
fn life() -> String {
    let orders = TableName::from("shop.orders");
    let mut config = Config::new([(orders.clone(), TableConfig::new())].into());
    config.checkpoint.rows = 12;
    config.checkpoint.age = Duration::from_secs(1);
    let mut traced = Traced::begin(config);
    let keys: Vec<EncodedKey> = (b'a'..b'a' + 12).map(|letter| EncodedKey::from([letter; 5].as_slice())).collect();
    let (mut batches, mut events) = (vec![], vec![]);
    for (at, key) in (0..).zip(&keys) {
        let transaction = Transaction { stream: StreamName::from(""), at: Offset(at * 10) };
        let (batch, place) = (BatchId(at + 1), Coordinate { major: at * 10, minor: 0 });
        batches.push(HeldBatch { batch, rows: 1, bytes: 50 });
        events.push(LogEvent::Rows {
            table: orders.clone(),
            transaction: transaction.clone(),
            rows: RowRange { batch, rows: 0..1 },
            bytes: 50,
            first: place,
            last: place,
            digest: Digest { count: 1, hash: at },
            touched: Some(Box::new(Touched {
                by: format!("x{at}").as_str().into(),
                keys: vec![key.clone()],
                told: vec![Told::Part],
            })),
        });
        events.push(LogEvent::Ended { transaction, upto: Position::scalar(at * 10 + 10) });
    }
    let Some(Output::ReadLog { id, .. }) = traced.reads.pop() else { panic!("the log is not read") };
    traced.tell(Input::LogRead { id, batches, events, finished: false });
    let rows = traced.reads.iter().position(|read| matches!(read, Output::ReadRows { .. })).expect("values are read again");
    let Output::ReadRows { id, keys, about, .. } = traced.reads.remove(rows) else { panic!("another command") };
    assert_eq!(keys.len(), 12, "every value is missing");
    assert!(keys.is_sorted(), "the machine asks in the order of the keys");
    let rows = HeldBatch { batch: BatchId(100), rows: 12, bytes: 600 };
    let visibility = Visibility { proven: about.into_iter().collect(), unfinished: None };
    let answer =
        RowsAnswer { rows: Some(rows), keys, gone: vec![], visibility, fence: Position::scalar(30), identity: identity() };
    traced.tell(Input::RowsRead { id, answer: Box::new(answer) });
    assert!(traced.coordinator.check().is_ok());
    let durable = traced.coordinator.status().tables[&orders].rows_durable;
    assert_eq!(durable, 12, "the story comes to its end");
    traced.end()
}

#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error("{0}")]
    Trace(#[from] TraceError),
    #[error("{0}")]
    Replay(#[from] ReplayError),
}

fn replay(text: &str) -> Result<u64, Stopped> {
    let (mut reader, mut replay, mut steps) = (Reader::new(text.as_bytes())?, Replay::new(), 0);
    while let Some(step) = reader.next_step()? {
        replay.take(&step, |_, _| {})?;
        steps += 1;
    }
    Ok(steps)
}

#[test]
fn other_machines_do_the_same_though_they_know_no_key() {
    let text = life();
    let steps = replay(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(steps, text.lines().filter(|line| line.starts_with("= ")).count() as u64);
    for letter in b'a'..b'a' + 12 {
        assert!(!text.contains(&String::from_utf8(vec![letter; 5]).unwrap()), "a key stands in\n{text}");
    }
}

/// What is stored of a reason is made of texts that a replay does not know: it stores another one, and does the same.
#[test]
fn a_stored_reason_does_not_pass_the_veil_and_other_machines_do_not_miss_it() {
    let orders = TableName::from("shop.orders");
    let mut traced = Traced::begin(Config::new([(orders.clone(), TableConfig::new())].into()));
    traced.finds_records = true;
    let Some(Output::ReadLog { id, .. }) = traced.reads.pop() else { panic!("the log is not read") };
    let (transaction, coordinate) =
        (Transaction { stream: StreamName::from(""), at: Offset(0) }, Coordinate { major: 0, minor: 0 });
    let why = "'alice' is no number".to_owned();
    let refused = LogEvent::Refused { table: orders.clone(), transaction, coordinate, why };
    traced.tell(Input::LogRead { id, batches: vec![], events: vec![refused], finished: false });
    traced.tell(Input::Operator(Operator::Release(orders.clone())));
    // Nothing differs from what is stored: also a machine that knows another reason than the one that it finds does not store its own.
    traced.now += Duration::from_secs(20).0;
    traced.tell(Input::Timeout);
    let status = traced.coordinator.status();
    let why = status.tables[&orders].why.as_deref();
    assert_eq!(why, Some("somebody released it (first: 'alice' is no number)"), "the story comes to its end");
    let text = traced.end();
    assert!(text.contains(r#""phase":"needs-snapshot","generation":1,"named":null,"why":"~"#), "{text}");
    assert!(!text.contains("alice") && !text.contains("released it"), "{text}");
    replay(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

#[test]
fn a_replay_shows_what_was_heard_and_said() {
    let text = life();
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    assert_eq!(reader.by(), "0.1.0");
    let (mut replay, mut commits, mut written) = (Replay::new(), 0, 0);
    while let Some(step) = reader.next_step().unwrap() {
        let see = |_, seen: Seen<'_>| match seen {
            Seen::Says(Output::Commit { .. }) => commits += 1,
            Seen::Says(Output::Send(ToWorker::Write { fills, .. })) => written += fills.len(),
            _ => {}
        };
        replay.take(&step, see).unwrap();
    }
    assert_eq!((commits, written), (1, 12));
}

#[test]
fn a_line_that_was_altered_taken_out_or_doubled_is_found() {
    let text = life();
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    for (at, line) in lines.iter().enumerate() {
        let altered = match line.rfind(|c: char| c.is_ascii_digit()) {
            Some(digit) => {
                let other = if line[digit..].starts_with('1') { "2" } else { "1" };
                format!("{}{other}{}", &line[..digit], &line[digit + 1..])
            }
            None => format!("{line}x"),
        };
        let mut other = lines.clone();
        other[at] = &altered;
        assert!(replay(&joined(&other)).is_err(), "line {} as '{altered}' is not found", at + 1);
        let mut fewer = lines.clone();
        fewer.remove(at);
        assert!(replay(&joined(&fewer)).is_err(), "line {} is not missed", at + 1);
        let mut more = lines.clone();
        more.insert(at, line);
        assert!(replay(&joined(&more)).is_err(), "line {} is there twice, and nobody sees it", at + 1);
    }
}

#[test]
fn a_trace_that_is_cut_says_so_with_the_line_and_is_played_up_to_there() {
    let text = life();
    for end in (text.find(" begins").expect("it begins")..text.len() - 1).step_by(7) {
        // Whole are the steps whose hash is.
        let whole =
            text[..end].split_inclusive('\n').enumerate().filter(|(_, line)| line.starts_with("= ") && line.ends_with('\n'));
        let expected = whole.last().map_or(3, |(at, _)| at as u64 + 2);
        match replay(&text[..end]).expect_err("the end is missing") {
            Stopped::Trace(TraceError::Cut { line }) => assert_eq!(line, expected, "cut at byte {end}"),
            other => panic!("cut at byte {end}: {other}"),
        }
    }
}

/// The text with its hashes as a forger would set them.
fn forged(text: &str, forge: impl Fn(&str) -> String) -> String {
    let (mut out, mut chain, mut open) = (String::new(), 0, String::new());
    for line in text.lines() {
        if line.starts_with("= ") {
            chain = twox_hash::XxHash3_64::oneshot_with_seed(chain, open.as_bytes());
            out.push_str(&format!("{open}= {chain:016x}\n"));
            open.clear();
        } else {
            open.push_str(&format!("{}\n", forge(line)));
        }
    }
    out
}

fn error_of(text: &str) -> String {
    replay(text).expect_err("it is wrong").to_string()
}

fn line_of(text: &str, word: &str) -> usize {
    text.lines().position(|line| line.contains(word)).expect("the story has such a line") + 1
}

#[test]
fn a_machine_that_says_another_thing_is_told_with_the_line_and_with_both() {
    let text = life();
    let other = forged(&text, |line| line.replace("- open-log #1.", "- open-log #9."));
    let (line, error) = (line_of(&text, "- open-log"), error_of(&other));
    let expected = format!(
        "line {line}: the machine does another thing than the one that was traced\n  traced: open-log #9.4\n  now:    open-log #1.4"
    );
    assert_eq!(error, expected);
}

#[test]
fn a_command_that_was_not_traced_is_told() {
    let text = life();
    let other = forged(&text, |line| if line.starts_with("- started") { "- started".into() } else { line.into() });
    assert!(error_of(&other).starts_with(&format!("line {}: ", line_of(&text, "- started"))), "{}", error_of(&other));
}

#[test]
fn a_rule_that_a_forged_fact_breaks_is_told_with_the_line() {
    let text = life();
    // The transaction ended where it did not begin yet.
    let other = forged(&text, |line| if line.starts_with("  ended @50 60") { "  ended @50 40".into() } else { line.into() });
    let line = line_of(&text, " hears log-read");
    let expected = format!("line {line}: position-names-finished-transactions is broken: @50 ended at 40");
    assert_eq!(error_of(&other), expected);
}

#[test]
fn a_line_that_means_nothing_is_told() {
    let text = life();
    let other = forged(&text, |line| line.replace(" hears log-opened", " hears log-closed"));
    let error = error_of(&other);
    let line = line_of(&text, " hears log-opened");
    assert!(error.starts_with(&format!("line {line}: 'log-closed' is none of record-read, ")), "{error}");
    let other = forged(&text, |line| line.replace("  ended @0 10", "  ended @0 010"));
    let line = line_of(&text, "  ended @0 10");
    assert_eq!(error_of(&other), format!("line {line}: '010' is no position"));
    let other = forged(&text, |line| line.replace("  rows shop.orders @0 ", "  rows shop.orders  @0 "));
    let line = line_of(&text, "  rows shop.orders @0 ");
    assert!(error_of(&other).starts_with(&format!("line {line}: this is not in its one form, which is '  rows shop.orders @0 ")));
}

#[test]
fn what_nobody_said_to_a_worker_or_of_one_is_told() {
    let text = life();
    let other = forged(&text, |line| line.replace("worker told-to-write a1.1", "worker told-to-write a1.7"));
    let line = line_of(&text, "worker told-to-write");
    assert!(
        error_of(&other).starts_with(&format!("line {line}: the coordinator has said another thing first")),
        "{}",
        error_of(&other)
    );
    let other = forged(&text, |line| line.replace("hears written a1.1", "hears written a1.7"));
    let line = line_of(&text, "hears written");
    assert_eq!(error_of(&other), format!("line {line}: the worker has not said this of a1.7"));
}

#[test]
fn a_text_of_another_kind_or_format_is_refused_by_name() {
    for other in ["", "table t0 staging\n", "urutau", "\u{0}\u{1}\n"] {
        assert_eq!(error_of(other), "line 1: this is no trace: it does not begin with 'urutau trace 1'");
    }
    let error = error_of("urutau trace 2\nby 0.9.1\nwhat nobody knows yet\n");
    assert_eq!(
        error,
        "line 1: this is a trace of format 2, and only format 1 can be read here: replay it with the version that wrote it (0.9.1)"
    );
    let mut behind = life();
    behind.push_str("more\n");
    assert!(error_of(&behind).ends_with("something stands behind the end"));
}
