//! Waiting for something to become true, with an end.

use std::time::{Duration, Instant};

use crate::is_long;

/// How long anything may take before a test gives it up, ten times that in the long form. Generous: it is there to end a test that hangs,
/// not to judge speed.
pub const DEADLINE: Duration = Duration::from_secs(180);

/// Looks again and again until there is something. Panics with `what` when it takes longer than the deadline.
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    // In the long form one process may work on one thing for long.
    let deadline = if is_long() { 10 * DEADLINE } else { DEADLINE };
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < deadline, "{what}: not within {deadline:?}");
        pause(Duration::from_millis(2));
    }
}

/// Lets other processes do something.
#[expect(clippy::disallowed_methods, reason = "a test's own thread, waiting for another process")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
