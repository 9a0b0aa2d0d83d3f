//! What runs at once and what waits for its turn.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::channel::oneshot;
use kernel::id::TableName;

use crate::lanes::{Lane, Lanes};

/// Commands that end when the test says so, and which of them have begun.
#[derive(Default)]
struct Bench {
    begun: Arc<Mutex<Vec<&'static str>>>,
}

impl Bench {
    /// A command that answers with its name, and what ends it.
    fn command(&self, name: &'static str) -> (futures::future::BoxFuture<'static, &'static str>, oneshot::Sender<()>) {
        let (end, ended) = oneshot::channel();
        let begun = self.begun.clone();
        let command = async move {
            begun.lock().unwrap().push(name);
            ended.await.unwrap();
            name
        };
        (command.boxed(), end)
    }

    fn begun(&self) -> Vec<&'static str> {
        self.begun.lock().unwrap().clone()
    }
}

fn commits(table: &str) -> Lane {
    Lane::Commits(TableName::from(table))
}

/// The answers that are there now.
fn ready(lanes: &mut Lanes<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| lanes.next().now_or_never()).collect()
}

#[test]
fn commands_of_one_lane_run_one_after_the_other_in_the_order_in_which_they_came() {
    let (bench, mut lanes) = (Bench::default(), Lanes::new());
    let ((first, end_first), (second, end_second), (third, end_third)) =
        (bench.command("first"), bench.command("second"), bench.command("third"));
    lanes.run_in(commits("a"), first);
    lanes.run_in(commits("a"), second);
    lanes.run_in(commits("a"), third);
    assert_eq!((ready(&mut lanes), bench.begun()), (vec![], vec!["first"]));
    // What waits may be ready to end at once: it still waits.
    end_third.send(()).unwrap();
    end_first.send(()).unwrap();
    assert_eq!((ready(&mut lanes), bench.begun()), (vec!["first"], vec!["first", "second"]));
    end_second.send(()).unwrap();
    assert_eq!((ready(&mut lanes), bench.begun()), (vec!["second", "third"], vec!["first", "second", "third"]));
}

#[test]
fn a_lane_that_ran_empty_takes_commands_again() {
    let (bench, mut lanes) = (Bench::default(), Lanes::new());
    for name in ["first", "second"] {
        let (command, end) = bench.command(name);
        lanes.run_in(Lane::Reads, command);
        end.send(()).unwrap();
        assert_eq!(ready(&mut lanes), [name]);
    }
    let (third, _end) = bench.command("third");
    lanes.run_in(Lane::Reads, third);
    assert_eq!((ready(&mut lanes), bench.begun()), (vec![], vec!["first", "second", "third"]));
}

#[test]
fn different_lanes_and_commands_without_one_wait_for_nobody() {
    let (bench, mut lanes) = (Bench::default(), Lanes::new());
    let mut ends = Vec::new();
    let others = [commits("b"), Lane::Writes("a".into()), Lane::Writes("b".into()), Lane::Reads, Lane::Acknowledgements];
    let names = ["commits of b", "writes of a", "writes of b", "reads", "acknowledgements"];
    let (slow, _never) = bench.command("commits of a");
    lanes.run_in(commits("a"), slow);
    for (lane, name) in others.into_iter().zip(names) {
        let (command, end) = bench.command(name);
        lanes.run_in(lane, command);
        ends.push(end);
    }
    for name in ["free", "free too"] {
        let (command, end) = bench.command(name);
        lanes.run(command);
        ends.push(end);
    }
    assert_eq!(ready(&mut lanes), [""; 0]);
    assert_eq!(bench.begun().len(), 8);
    ends.into_iter().for_each(|end| end.send(()).unwrap());
    let mut answers = ready(&mut lanes);
    answers.sort_unstable();
    assert_eq!(answers, ["acknowledgements", "commits of b", "free", "free too", "reads", "writes of a", "writes of b"]);
}

#[test]
fn running_out_a_lane_waits_for_all_of_it_and_for_nothing_else() {
    let (bench, mut lanes) = (Bench::default(), Lanes::new());
    let (never, _end) = bench.command("never");
    lanes.run_in(commits("a"), never);
    let ((first, end_first), (second, end_second)) = (bench.command("first"), bench.command("second"));
    lanes.run_in(Lane::Acknowledgements, first);
    lanes.run_in(Lane::Acknowledgements, second);
    end_first.send(()).unwrap();
    assert_eq!(lanes.run_out(&Lane::Acknowledgements).now_or_never(), None, "the second one has not run");
    assert_eq!(bench.begun(), ["never", "first", "second"]);
    end_second.send(()).unwrap();
    assert_eq!(lanes.run_out(&Lane::Acknowledgements).now_or_never(), Some(()));
    // Of a lane without commands nothing is waited for.
    assert_eq!(lanes.run_out(&Lane::Reads).now_or_never(), Some(()));
}
