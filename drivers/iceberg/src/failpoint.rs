//! Places where a test may stop this process for good, to kill it there.
//!
//! Compiled in only with the feature `failpoints`; without it neither the code nor the names are in the binary, and a
//! test says so. With it, each point is one of the crate `fail` (variable `FAILPOINTS`), and besides:
//!
//! | variable | meaning |
//! |---|---|
//! | `URUTAU_PARK_AT=name[:n]` | the thread that comes to the point `name` for the `n`-th time (1 if not given) parks for ever |
//! | `URUTAU_PARK_FILE=path` | before it parks it writes the line `parked name` to that file; to standard error in any case |
//! | `URUTAU_FAULT=state-first` | the fault that crash tests must notice: a commit makes its state visible before its data |
//!
//! The points: data files written, vectors written, metadata written and not swapped in, swapped in and not reported,
//! pipeline record stored and not reported.

/// Passes a point by its name.
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::failpoint::pass($name);
    };
}

pub(crate) use failpoint;

#[cfg(feature = "failpoints")]
pub(crate) use compiled_in::{pass, state_first};

#[cfg(feature = "failpoints")]
mod compiled_in {
    use std::collections::HashMap;
    use std::fs;
    use std::sync::{LazyLock, Mutex, PoisonError};

    /// How often each point was passed.
    static PASSED: LazyLock<Mutex<HashMap<&'static str, u64>>> = LazyLock::new(Mutex::default);

    pub(crate) fn pass(name: &'static str) {
        fail::fail_point!(name);
        let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
        let count = passed.entry(name).or_default();
        *count += 1;
        let parks = std::env::var("URUTAU_PARK_AT").is_ok_and(|wanted| is_named(&wanted, name, *count));
        drop(passed);
        if parks {
            park(name);
        }
    }

    fn is_named(wanted: &str, name: &str, count: u64) -> bool {
        match wanted.split_once(':') {
            Some((wanted, nth)) => wanted == name && nth.parse() == Ok(count),
            None => wanted == name && count == 1,
        }
    }

    fn park(name: &str) -> ! {
        let line = format!("parked {name}\n");
        if let Ok(path) = std::env::var("URUTAU_PARK_FILE") {
            // Without the file the harness never learns of it and says so by its own deadline.
            let _ = fs::write(path, &line);
        }
        eprint!("{line}");
        loop {
            std::thread::park();
        }
    }

    /// Is the fault asked for?
    pub(crate) fn state_first() -> bool {
        std::env::var("URUTAU_FAULT").is_ok_and(|fault| fault == "state-first")
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_point_is_named_with_or_without_its_turn() {
            assert!(is_named("swapped", "swapped", 1));
            assert!(!is_named("swapped", "swapped", 2));
            assert!(is_named("swapped:3", "swapped", 3));
            assert!(!is_named("swapped:3", "swapped", 2));
            assert!(!is_named("swapped:x", "swapped", 1));
            assert!(!is_named("written", "swapped", 1));
        }
    }
}

#[cfg(test)]
mod tests {
    /// The names with another sign between their words, so that this test is not what it finds.
    const NAMES: [(&str, &str); 7] = [
        ("iceberg data written", "-"),
        ("iceberg vectors written", "-"),
        ("iceberg metadata written", "-"),
        ("iceberg swapped", "-"),
        ("iceberg record stored", "-"),
        ("URUTAU PARK AT", "_"),
        ("URUTAU FAULT", "_"),
    ];

    #[test]
    fn a_build_without_the_feature_does_not_hold_the_names() {
        let binary = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let names = NAMES.map(|(words, sign)| words.replace(' ', sign));
        let mut found = [false; NAMES.len()];
        // One pass: the binary is large, and this is not optimised.
        let begins = binary.iter().enumerate().filter(|(_, byte)| matches!(byte, b'i' | b'U'));
        for (at, _) in begins {
            for (name, found) in names.iter().zip(&mut found) {
                *found |= binary[at..].starts_with(name.as_bytes());
            }
        }
        for (name, found) in names.iter().zip(found) {
            assert_eq!(found, cfg!(feature = "failpoints"), "{name}");
        }
    }
}
