//! A run is its steps.

use fault_scenarios::Scenario;
use sim::engine;

#[test]
fn a_run_is_repeated_by_its_steps_and_so_by_its_text() {
    for seed in 0..100 {
        let run = engine::run(seed, None, false);
        let story = engine::story_of(seed, &run);
        let text = story.to_string();
        let again = engine::play(&text.parse::<Scenario>().expect("a scenario reads its own text"), None, false);
        assert_eq!((again.hash, again.inputs, &again.steps), (run.hash, run.inputs, &run.steps), "seed {seed}:\n{text}");
    }
}
