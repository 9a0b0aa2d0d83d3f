//! `run --trace` and `sim replay`: what a process wrote down while it ran is done again by another program, also if it was killed; and
//! a trace that can't be written harms nobody.

use std::path::Path;
use std::process::Command;

use e2e::http::{free_port, get};
use e2e::{Binary, Changes, Desk, Ended, Process, simulator, wait_until};
use serde_json::json;

/// What stands in every key, and in every other value.
const KEY: &str = "KEYMARK";
const VALUE: &str = "VALUEMARK";

fn pipeline(sink: &str) -> String {
    format!(
        "pipeline: traced
source: {{ kind: jsonl, path: changes.jsonl, follow: true, transactionIdle: 100ms }}
sink: {sink}
tables:
  - {{ source: shop.items, primaryKey: [id] }}
"
    )
}

const ICEBERG: &str = "{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: { maxRows: 40, interval: 200ms } }";

fn items(changes: Changes, from: u64) -> Changes {
    (from..from + 200).fold(changes, |changes, n| {
        let row = |name: u64| json!({"id": format!("{KEY}{}", n % 50), "name": format!("{VALUE}{name}")});
        changes.begin().insert("items", row(n)).update("items", row(n), row(n + 1))
    })
}

fn replay(trace: &Path) -> Ended {
    let mut command = Command::new(simulator());
    command.arg("replay").arg(trace);
    Process::start(command).wait()
}

fn holds_no_row(trace: &Path) {
    let text = std::fs::read_to_string(trace).expect("a trace is text").to_lowercase();
    for mark in [KEY, VALUE] {
        let hex: String = mark.bytes().map(|byte| format!("{byte:02x}")).collect();
        for mark in [mark.to_lowercase(), hex] {
            assert!(!text.contains(&mark), "'{mark}' stands in the trace");
        }
    }
}

/// Rows that the run's status calls committed.
fn committed(process: &mut Process, port: u16) -> Option<u64> {
    assert!(process.runs(), "the run has ended: {}", process.stderr());
    let status: serde_json::Value = serde_json::from_str(&get(port, "/statusz")?.body).ok()?;
    status["tables"]["shop.items"]["rows_committed"].as_u64()
}

#[test]
fn the_quickstart_is_done_again_by_the_simulator() {
    let desk = Desk::quickstart(300);
    desk.urutau(&[Desk::RUN, &["--trace", "run.trace"]].concat()).expect_code(0);
    let trace = desk.path().join("run.trace");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&trace).expect("the trace").permissions());
    assert_eq!(mode & 0o777, 0o600);
    replay(&trace)
        .expect_code(0)
        .expect_line(&["hears that the log is open as session 1"])
        .expect_line(&["commits 1.", "to shop.orders"])
        .expect_line(&["the trace ends with the life"])
        .expect_line(&["the machines did the same, and every rule was kept"]);

    // Another line than the one that was written is found, whatever it says.
    let text = std::fs::read_to_string(&trace).expect("a trace is text");
    let rows = text.lines().position(|line| line.starts_with("  rows shop.")).expect("rows were read");
    let line = text.lines().nth(rows).expect("it is there");
    let altered = desk.write("altered.trace", &text.replacen(line, &line.replacen("  rows shop.", "  rows desk.", 1), 1));
    let begun =
        text.lines().take(rows).collect::<Vec<_>>().iter().rposition(|line| line.contains(" hears ")).expect("a step") + 1;
    replay(&altered).expect_code(1).expect_line(&[&format!("lines {begun} to "), "a line was altered"]);
    let other = desk.write("other.trace", &text.replacen("urutau trace 1\n", "urutau trace 7\n", 1));
    replay(&other).expect_code(2).expect_line(&["line 1: this is a trace of format 7"]);
}

#[test]
fn a_process_that_is_killed_leaves_a_trace_up_to_its_last_moments() {
    let (desk, port) = (Desk::new().with_pipeline(&pipeline(ICEBERG)), free_port());
    let changes = items(Changes::new(), 0);
    desk.write("changes.jsonl", changes.text());
    let listen = format!("127.0.0.1:{port}");
    let run = |trace: &str| Process::start(desk.command(Binary::Plain, &["run", "--listen", &listen, "--trace", trace]));

    let mut process = run("first.trace");
    wait_until("two commits", || committed(&mut process, port).filter(|rows| *rows >= 80));
    desk.append("changes.jsonl", items(Changes::new(), 1_000).text());
    assert_eq!(process.kill().signal, Some(9));
    let first = desk.path().join("first.trace");
    let lines = std::fs::read_to_string(&first).expect("a trace is text").lines().count();
    assert!(lines > 20, "only {lines} lines");
    replay(&first)
        .expect_code(3)
        .expect_line(&["the machines did the same, and every rule was kept, up to here"])
        .expect_line(&["line ", "the trace is cut here"]);
    holds_no_row(&first);

    // What it left is gone on with by the next one, and traced as well.
    let mut process = run("second.trace");
    wait_until("the rest", || {
        let waits = get(port, "/statusz").is_some_and(|status| status.body.contains("\"rows_read\":"));
        committed(&mut process, port).filter(|rows| waits && *rows > 0)
    });
    process.send(e2e::Signal::Terminate);
    process.wait().expect_code(0);
    let second = desk.path().join("second.trace");
    replay(&second).expect_code(0).expect_line(&["hears the record: life 1"]);
    holds_no_row(&second);
}

#[test]
fn a_file_that_is_there_or_can_not_be_made_is_refused_before_the_run() {
    let desk = Desk::new().with_pipeline(&pipeline(ICEBERG));
    desk.write("changes.jsonl", items(Changes::new(), 0).text());
    desk.write("old.trace", "somebody's");
    let run = |trace: &str| desk.urutau(&[Desk::RUN, &["--trace", trace]].concat());
    run("old.trace").expect_code(2).expect_line(&["'old.trace' is there already", "name another file", "[trace-exists]"]);
    run("nowhere/new.trace").expect_code(2).expect_line(&["'nowhere/new.trace' can't be written", "[trace-not-writable]"]);
    assert_eq!(std::fs::read_to_string(desk.path().join("old.trace")).expect("it is there"), "somebody's");
    assert!(!desk.warehouse().exists(), "the run began all the same");
    // A run that does not begin leaves no trace in the way of the next one.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = taken.local_addr().expect("it has one").to_string();
    desk.urutau(&["run", "--until-current", "--listen", &address, "--trace", "new.trace"])
        .expect_code(2)
        .expect_words(&[&address]);
    assert!(!desk.path().join("new.trace").exists());
}

/// The run may make no file larger than so many KiB: what a full disk is to whoever writes.
fn run_bounded(desk: &Desk, kibibytes: u64) -> Ended {
    let plain = desk.command(Binary::Plain, &[Desk::RUN, &["--trace", "run.trace"]].concat());
    let mut bounded = Command::new("bash");
    bounded.args(["-c", &format!("trap '' XFSZ; ulimit -f {kibibytes}; exec \"$0\" \"$@\"")]);
    bounded.arg(plain.get_program()).args(plain.get_args()).current_dir(desk.path());
    Process::start(bounded).wait()
}

#[test]
fn a_trace_without_room_is_refused_and_one_that_runs_out_of_it_ends_alone() {
    let desk = Desk::new()
        .with_pipeline(&pipeline("{ kind: 'null', checkpoint: { maxRows: 40 } }").replace("follow: true", "follow: false"));
    desk.write("changes.jsonl", items(Changes::new(), 0).text());
    let trace = desk.path().join("run.trace");

    run_bounded(&desk, 1).expect_code(2).expect_line(&["'run.trace' can't be written", "with room", "[trace-not-writable]"]);
    assert!(!trace.exists(), "nothing of it is left");

    run_bounded(&desk, 16)
        .expect_code(0)
        .expect_line(&["the trace 'run.trace' can't be written on and ends here", "The run goes on", "[trace-ended]"])
        .expect_line(&["shop.items", "400"]);
    replay(&trace).expect_code(3).expect_line(&["the trace is cut here"]);
}
