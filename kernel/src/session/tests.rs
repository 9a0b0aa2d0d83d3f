//! Who is admitted, who is served, and what is over.

use std::vec;
use std::vec::Vec;

use super::{Admission, Serving, Sessions, Welcomed};
use crate::id::{Incarnation, WorkerId, WorkerSession};
use crate::time::{Duration, Time};

const OURS: Incarnation = Incarnation(3);
const ANNA: WorkerId = WorkerId(1);
const BERT: WorkerId = WorkerId(2);

fn admitted(replaces: Option<u64>) -> Admission {
    Admission::Admitted { replaces: replaces.map(WorkerSession) }
}

#[test]
fn a_worker_is_there_only_after_its_hello_was_admitted() {
    let mut sessions = Sessions::new(OURS);
    assert_eq!(sessions.heard(Time(1), WorkerSession(1)), None);
    assert_eq!(sessions.hello(Time(1), WorkerSession(1), ANNA, Incarnation(2)), admitted(None));
    assert_eq!(sessions.heard(Time(2), WorkerSession(1)), Some(ANNA));
    assert_eq!(sessions.hello(Time(2), WorkerSession(1), ANNA, Incarnation(2)), Admission::SaidTwice);
}

#[test]
fn who_hears_of_a_newer_life_admits_nobody_before_the_record_was_asked() {
    let mut sessions = Sessions::new(OURS);
    assert_eq!(sessions.hello(Time(1), WorkerSession(1), ANNA, Incarnation(4)), Admission::ServedNewer);
    assert_eq!(sessions.hello(Time(2), WorkerSession(2), BERT, Incarnation(0)), Admission::Doubted);
    assert_eq!(sessions.workers().collect::<Vec<_>>(), vec![]);
    sessions.proven_newest();
    assert_eq!(sessions.hello(Time(3), WorkerSession(3), BERT, Incarnation(3)), admitted(None));
    // Whoever has served a newer one is believed again.
    assert_eq!(sessions.hello(Time(4), WorkerSession(4), ANNA, Incarnation(4)), Admission::ServedNewer);
    assert_eq!(sessions.workers().collect::<Vec<_>>(), vec![BERT]);
}

#[test]
fn a_worker_that_comes_again_is_in_its_new_session_only() {
    let mut sessions = Sessions::new(OURS);
    sessions.hello(Time(1), WorkerSession(1), ANNA, Incarnation(0));
    assert_eq!(sessions.hello(Time(2), WorkerSession(2), ANNA, Incarnation(3)), admitted(Some(1)));
    assert_eq!(sessions.heard(Time(3), WorkerSession(1)), None);
    // Its first word in the first one comes late, and takes it out of nothing.
    assert_eq!(sessions.hello(Time(3), WorkerSession(1), ANNA, Incarnation(0)), Admission::Late);
    assert_eq!(sessions.lost(WorkerSession(1)), None);
    assert_eq!(sessions.session_of(ANNA), Some(WorkerSession(2)));
    assert_eq!(sessions.lost(WorkerSession(2)), Some(ANNA));
    assert_eq!(sessions.session_of(ANNA), None);
}

#[test]
fn a_session_in_which_nothing_is_heard_is_over() {
    let mut sessions = Sessions::new(OURS);
    let silence = Duration(10);
    sessions.hello(Time(1), WorkerSession(1), ANNA, Incarnation(0));
    sessions.hello(Time(5), WorkerSession(2), BERT, Incarnation(0));
    assert_eq!(sessions.next_silent(silence), Some(Time(11)));
    sessions.heard(Time(7), WorkerSession(1));
    assert_eq!(sessions.silent(Time(15), silence), vec![WorkerSession(2)]);
}

#[test]
fn a_worker_serves_the_highest_life_that_it_has_seen_and_no_lower_one() {
    let mut serving = Serving::default();
    assert_eq!(serving.connected(WorkerSession(1)), None);
    assert!(!serving.serves(WorkerSession(1)));
    assert_eq!(serving.welcome(WorkerSession(1), Incarnation(2)), Welcomed::Serves { another: false });
    assert!(serving.serves(WorkerSession(1)));
    assert_eq!(serving.connected(WorkerSession(2)), Some(WorkerSession(1)));
    assert!(!serving.serves(WorkerSession(1)));
    assert_eq!(serving.welcome(WorkerSession(1), Incarnation(3)), Welcomed::Stale);
    assert_eq!(serving.welcome(WorkerSession(2), Incarnation(3)), Welcomed::Serves { another: true });
    serving.connected(WorkerSession(3));
    assert_eq!(serving.welcome(WorkerSession(3), Incarnation(2)), Welcomed::Refused);
    assert_eq!(serving.session(), None);
    assert_eq!(serving.highest(), Incarnation(3));
    assert!(!serving.lost(WorkerSession(2)));
}
