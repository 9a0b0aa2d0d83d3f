//! One run, pinned as its steps, with its whole log beside it: what the machines say, word for word. A change of the machines
//! shows here as a difference that is read like code. `SIM_GOLDEN=write cargo test -p sim --test golden` writes it anew.

use sim::engine;

const SCENARIO: &str = include_str!("golden/pinned.scenario");
const LOG: &str = include_str!("golden/pinned.log");

#[test]
fn a_pinned_run_says_what_it_said() {
    let scenario = SCENARIO.parse().expect("the pinned run is a scenario");
    let report = engine::tell(&scenario, None);
    assert_eq!(report.violation, None);
    let log = report.trace.join("\n") + "\n";
    if std::env::var("SIM_GOLDEN").is_ok_and(|how| how == "write") {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pinned.log");
        return std::fs::write(path, log).expect("the log can be written");
    }
    let differs = log.lines().zip(LOG.lines()).enumerate().find(|(_, (is, was))| is != was);
    if let Some((n, (is, was))) = differs {
        panic!("line {} was\n{was}\nand is\n{is}\nif that is right: SIM_GOLDEN=write cargo test -p sim --test golden", n + 1);
    }
    assert_eq!(log.lines().count(), LOG.lines().count(), "the log has another length");
}
