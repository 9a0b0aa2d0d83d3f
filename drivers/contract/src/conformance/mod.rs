//! The laws that every driver keeps, as functions over a live instance.
//!
//! A driver's tests implement one small trait, [`sink::SinkHarness`] or [`source::SourceHarness`], that makes an empty place,
//! opens drivers over it as a new process would, and looks at it from outside; then they run every law:
//!
//! ```no_run
//! # async fn example(harness: &(dyn contract::conformance::sink::SinkHarness + 'static)) {
//! use contract::conformance::sink;
//!
//! sink::check(harness).await.must_hold(&[("truncate-first", "the sink cannot remove all rows of a table in one commit")]);
//! # }
//! ```
//!
//! Laws that a driver has no way to break do not apply, and the test says which these are, word for word: nothing is passed
//! over in silence. `tests/` of this crate holds, for each law, a driver that breaks it and no other.
//!
//! What is not here: whatever needs a fault in the middle of a call (`e2e` kills real processes), values of every type
//! (a driver's own tests), snapshots.

pub mod sink;
pub mod source;
mod tables;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

pub use tables::{KEYED, KEYLESS, Word};

/// What a law answers: nothing, or how it was broken.
type Held = Result<(), String>;

type Running<'a> = Pin<Box<dyn Future<Output = Held> + Send + 'a>>;

/// A law over harnesses of one kind.
pub struct Law<H: ?Sized + 'static, A: 'static> {
    /// Its name; that of the invariant where `invariants` has one for it.
    pub name: &'static str,
    /// What it says, in a sentence.
    pub statement: &'static str,
    /// Why it does not apply to a driver of these abilities, if it doesn't.
    exempt: fn(&A) -> Option<&'static str>,
    run: for<'a> fn(&'a H) -> Running<'a>,
}

/// A law was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Which.
    pub law: &'static str,
    /// How: what was expected and found.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.what)
    }
}

impl std::error::Error for Broken {}

impl<H: ?Sized, A> Law<H, A> {
    /// Runs it.
    pub async fn check(&self, harness: &H) -> Result<(), Broken> {
        (self.run)(harness).await.map_err(|what| Broken { law: self.name, what })
    }
}

/// What became of all laws.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// These held.
    pub held: Vec<&'static str>,
    /// These do not apply, and why.
    pub exempt: Vec<(&'static str, &'static str)>,
    /// These were broken.
    pub broken: Vec<Broken>,
}

impl Report {
    /// Panics unless all laws held but exactly these, which do not apply: for tests.
    #[track_caller]
    pub fn must_hold(&self, exempt: &[(&str, &str)]) {
        let broken: Vec<String> = self.broken.iter().map(Broken::to_string).collect();
        assert!(broken.is_empty(), "broken laws:\n  {}", broken.join("\n  "));
        assert_eq!(self.exempt, exempt, "the laws that do not apply are others than the test says");
    }
}

async fn check_all<H: ?Sized, A>(laws: &[Law<H, A>], harness: &H, abilities: &A) -> Report {
    let mut report = Report::default();
    for law in laws {
        if let Some(why) = (law.exempt)(abilities) {
            report.exempt.push((law.name, why));
            continue;
        }
        match law.check(harness).await {
            Ok(()) => report.held.push(law.name),
            Err(broken) => report.broken.push(broken),
        }
    }
    report
}

/// An error of the driver, said as a broken law.
fn failed(doing: &str) -> impl Fn(crate::Error) -> String {
    move |error| format!("{doing} failed: {error}")
}

/// Holds if the two are equal.
fn equal<T: PartialEq + fmt::Debug>(what: &str, expected: &T, found: &T) -> Held {
    if expected == found { Ok(()) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

/// Holds if it is so.
fn ensure(so: bool, otherwise: impl FnOnce() -> String) -> Held {
    if so { Ok(()) } else { Err(otherwise()) }
}
