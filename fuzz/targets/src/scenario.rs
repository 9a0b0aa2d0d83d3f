//! The text of scenarios: what is read is written in one form, which is read back; what is wrong is told with its line.

use fault_scenarios::{Engine, Scenario};

use crate::Saw;

/// The bytes are the text.
pub fn scenario(bytes: &[u8]) -> Saw {
    let Ok(text) = std::str::from_utf8(bytes) else { return Saw::Refused };
    match text.parse::<Scenario>() {
        Ok(scenario) => {
            let written = scenario.to_string();
            let again = written.parse::<Scenario>();
            assert_eq!(again.as_ref(), Ok(&scenario), "it was written as\n{written}");
            assert_eq!(again.map(|again| again.to_string()).as_ref(), Ok(&written), "one scenario has one text");
            for engine in Engine::ALL {
                assert!(engine.lacks_for(&scenario).iter().all(|lack| !lack.is_empty()));
            }
            assert!(scenario.heals() >= scenario.last_time() || scenario.options.heals.is_some());
            Saw::Taken
        }
        Err(error) => {
            let lines = text.lines().count();
            assert!(error.line <= lines.max(1), "line {} of {lines}", error.line);
            assert!(!error.what.is_empty() && !error.remedy.is_empty(), "{error:?}");
            Saw::Refused
        }
    }
}
