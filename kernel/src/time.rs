//! Time as the machines know it: a number handed in with every input. Nothing here reads a clock.

use core::fmt;
use core::ops::Add;

/// A moment, in microseconds since an origin that the caller chooses and keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Duration(pub u64);

impl Duration {
    /// `milliseconds` as a duration.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000))
    }

    /// `seconds` as a duration.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// This duration `times` over.
    pub const fn times(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, length: Duration) -> Time {
        Time(self.0.saturating_add(length.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

/// When a machine wants to be called again though nothing has happened, and why.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deadline {
    /// The latest moment at which `Input::Timeout` should be given.
    pub at: Time,
    /// What the machine will do then, in words for a trace.
    pub why: &'static str,
}
