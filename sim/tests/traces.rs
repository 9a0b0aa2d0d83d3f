//! Traces of runs in production, some of each release: the machines do the same again. A change of the kernel that makes one of them
//! another run is seen here; if it is right, the commit says so, and the trace is made anew (`docs/simulation.md`).

use std::path::{Path, PathBuf};

use kernel::planted::PlantedBug;
use sim::production::{Stopped, is_trace, replay};
use trace::{End, ReplayError, TraceError};

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let entries = std::fs::read_dir(folder).expect("a folder of traces").flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "trace")).collect();
    found.sort();
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One of a change file.
fn quickstart() -> String {
    let of_quickstart = |path: &&PathBuf| path.to_string_lossy().ends_with("-quickstart.trace");
    text(traces().iter().rfind(of_quickstart).expect("a trace of the quickstart"))
}

#[test]
fn what_ran_in_production_runs_the_same_here() {
    let traces = traces();
    assert!(!traces.is_empty(), "there is no trace");
    let mut told: Vec<String> = vec![];
    for path in traces {
        let text = text(&path);
        assert!(is_trace(text.as_bytes()), "{}", path.display());
        let mut story = vec![];
        let replayed = replay(text.as_bytes(), None, false, |line| story.push(line));
        match &replayed.end {
            Ok(end) => assert_eq!(*end, End::Stopped),
            Err(stopped) => {
                panic!("{}: {stopped}\nafter\n{}", path.display(), story[story.len().saturating_sub(10)..].join("\n"))
            }
        }
        assert_eq!(replayed.exit_code(), 0);
        assert!(text.contains(&format!("\nby {}\n", replayed.by)));
        assert_eq!(replayed.steps, text.lines().filter(|line| line.starts_with("= ")).count() as u64);
        for said in ["a life begins", "hears that the log is open", "commits ", "is durable", "ends: everything is committed"] {
            assert!(story.iter().any(|line| line.contains(said)), "{}: nobody says '{said}'", path.display());
        }
        assert!(replayed.waiting.is_empty(), "{:?}", replayed.waiting);
        told.extend(story);
    }
    for said in ["hears a chunk of", " rows again, ", "hears that the commit to shop.orders is durable"] {
        assert!(told.iter().any(|line| line.contains(said)), "no trace says '{said}'");
    }
}

#[test]
fn a_trace_that_is_cut_is_told_up_to_there_with_what_was_waited_for() {
    let text = quickstart();
    let commit = text.find("\n- commit ").expect("something is committed");
    let step = commit + text[commit..].find("\n= ").expect("its step has an end") + "\n= 0123456789abcdef\n".len();
    let mut story = vec![];
    let replayed = replay(&text.as_bytes()[..step + 5], None, false, |line| story.push(line));
    let line = text[..step].lines().count() as u64 + 1;
    assert!(matches!(replayed.end, Err(Stopped::Trace(TraceError::Cut { line: cut })) if cut == line), "{replayed:?}");
    assert_eq!(replayed.exit_code(), 3);
    assert!(story.last().is_some_and(|last| last.contains("commits ")), "{:?}", story.last());
    assert!(replayed.waiting.iter().any(|waiting| waiting.starts_with("shop.")), "{:?}", replayed.waiting);
}

#[test]
fn a_wrong_rule_is_found_in_a_run_that_went_well() {
    let text = quickstart();
    let end = |bug| {
        let replayed = replay(text.as_bytes(), Some(bug), false, |_| {});
        assert_eq!(replayed.exit_code(), 1, "{bug:?}");
        replayed.end
    };
    for bug in [PlantedBug::BatchNotReleased, PlantedBug::BudgetReleasedTwice] {
        match end(bug) {
            Err(Stopped::Replay(ReplayError::Broken { line, rule, .. })) => {
                assert_eq!((rule, line > 2), ("budget-conserved", true), "{bug:?}");
            }
            other => panic!("{bug:?}: {other:?}"),
        }
    }
    // The first row that is passed over breaks no rule that a machine can see by itself; what it has written differs.
    match end(PlantedBug::UptoAtFirstEvent) {
        Err(Stopped::Replay(ReplayError::Differs { line, traced, now })) => {
            let at = usize::try_from(line).expect("a line") - 1;
            assert_eq!(text.lines().nth(at), Some(format!("- {traced}").as_str()));
            assert!(traced.starts_with("have-written ") && now.starts_with("have-written ") && traced != now, "{traced}\n{now}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_wrong_has_an_exit_code_of_its_own() {
    let text = quickstart();
    let code = |text: &str| replay(text.as_bytes(), None, true, |_| {}).exit_code();
    assert_eq!(code(&text), 0);
    assert_eq!(code(&text.replacen("urutau trace 1\n", "urutau trace 2\n", 1)), 2);
    assert_eq!(code("table t0 staging\n"), 2);
    assert_eq!(code(&text.replacen("- open-log ", "- shut-log ", 1)), 1);
    assert!(!is_trace(b"table t0 staging\n"));
    let differs = Stopped::Replay(ReplayError::Differs { line: 7, traced: "a".into(), now: "b".into() });
    assert_eq!(
        differs.to_string(),
        "line 7: the machine does another thing than the one that was traced\n  traced: a\n  now:    b"
    );
}
