//! Golden scripts: the stories in `kernel/testdata/`, played against the real machines and compared line by line.
//!
//! A script is a text: what happens, a line `----`, and exactly what the machine says to it. The words are told in
//! `kernel/testdata/README.md`. What a script expects is rewritten by
//! `GOLDEN_REWRITE=1 cargo test -p kernel --test golden`, and the difference is reviewed like code.

mod log;
mod paper;
mod route;
mod script;
mod stage;
mod words;
mod worker;

use std::path::PathBuf;

use script::Script;

/// What plays the lines of a script.
trait Player {
    /// What comes of one line; an error if the line says nothing that can happen here.
    fn play(&mut self, line: &str) -> Result<Vec<String>, String>;
}

fn scripts() -> Vec<(String, PathBuf)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let files = std::fs::read_dir(&folder).expect("the folder of scripts").map(|entry| entry.unwrap().path());
    let mut scripts: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    scripts.sort();
    scripts
}

#[test]
fn every_script_goes_as_it_is_written() {
    let rewrite = std::env::var_os("GOLDEN_REWRITE").is_some();
    let mut wrong = vec![];
    for (name, path) in scripts() {
        let text = std::fs::read_to_string(&path).unwrap();
        let script = Script::parse(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        let mut player: Box<dyn Player> = match () {
            () if name.contains("worker") => Box::new(worker::Workshop::default()),
            () if name.contains("router") => Box::new(route::Routing::default()),
            () if name.contains("owner") => Box::new(route::Owning::default()),
            () => Box::new(stage::Stage::default()),
        };
        let played = match script.play(player.as_mut()) {
            Ok(played) => played,
            Err(why) => {
                wrong.push(format!("{name}: {why}"));
                continue;
            }
        };
        let written = played.text();
        if written == text {
            continue;
        }
        if rewrite {
            std::fs::write(&path, written).unwrap();
        } else {
            wrong.push(format!("{name}:\n{}", script::difference(&text, &written)));
        }
    }
    assert!(wrong.is_empty(), "{}\nrewrite with GOLDEN_REWRITE=1, and review the difference", wrong.join("\n"));
}

#[test]
fn the_scripts_are_a_book_that_can_be_read_in_order() {
    let scripts = scripts();
    assert!(scripts.len() >= 14, "{} scripts", scripts.len());
    let contents = include_str!("../../testdata/README.md");
    for (number, (name, path)) in scripts.iter().enumerate() {
        assert!(name.starts_with(&format!("{:02}-", number + 1)), "{name} is not number {}", number + 1);
        assert!(contents.contains(&format!("({name})")), "{name} is not in the table of contents");
        let text = std::fs::read_to_string(path).unwrap();
        let taught = text.lines().take_while(|line| line.starts_with('#')).count();
        assert!(taught >= 3, "{name} does not begin by telling its rule");
    }
}

#[test]
fn a_script_that_expects_something_else_does_not_pass() {
    let text = "# A table begins.\n\npipeline orders\nA begins\n----\nread the record #9.9\n";
    let played = Script::parse(text).unwrap().play(&mut stage::Stage::default()).unwrap().text();
    assert_eq!(script::difference(text, &played), "line 6:\n  - read the record #9.9\n  + read the record #0.1");
    let unknown = Script::parse("orders explodes\n----\n(nothing)\n").unwrap().play(&mut stage::Stage::default());
    assert!(unknown.is_err_and(|why| why.contains("orders explodes")));
}
