//! The kept inputs as ordinary tests, on the stable toolchain: seeds, regressions, and small changes of both by a fixed generator.
//! `FUZZ_CHANGES=100000 cargo test -p fuzz-targets` makes more of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fuzz_targets::mutate::{Random, mutate};
use fuzz_targets::{Saw, TARGETS, Target};

fn folder(kind: &str, target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder above").join(kind).join(target)
}

/// The inputs of a folder by name; none where there is no folder.
fn inputs(kind: &str, target: &str) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder(kind, target)) else { return BTreeMap::new() };
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry can be read").path();
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        (format!("{kind}/{target}/{name}"), std::fs::read(path).expect("an input can be read"))
    };
    entries.map(read).collect()
}

/// Runs a target and says which input it was, if it panics.
fn run(target: &Target, name: &str, input: &[u8]) -> Saw {
    struct Named<'a>(&'a str, &'a [u8]);
    impl Drop for Named<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let hex: String = self.1.iter().map(|byte| format!("{byte:02x}")).collect();
                eprintln!("the input was {}, in hexadecimal: {hex}", self.0);
            }
        }
    }
    let _named = Named(name, input);
    (target.run)(input)
}

fn replay(target: &Target) {
    let (seeds, regressions) = (inputs("seeds", target.name), inputs("regressions", target.name));
    let (mut taken, mut refused) = (0, 0);
    for (name, input) in seeds.iter().chain(&regressions) {
        match run(target, name, input) {
            Saw::Taken => taken += 1,
            Saw::Refused => refused += 1,
        }
    }
    assert!(taken > 0 && refused > 0, "{}: {taken} inputs are taken, {refused} are refused; some must be each", target.name);

    let changes = std::env::var("FUZZ_CHANGES").map_or(CHANGES, |text| text.parse().expect("FUZZ_CHANGES is a number"));
    let all: Vec<&Vec<u8>> = seeds.values().chain(regressions.values()).collect();
    let mut random = Random::new(0xF0CC_AC1A);
    for n in 0..changes {
        let (input, other) = (all[random.below(all.len())], all[random.below(all.len())]);
        let changed = mutate(&mut random, input, other);
        run(target, &format!("change {n} of a kept input"), &changed);
    }
}

/// Changed inputs of each target.
const CHANGES: usize = 1_000;

macro_rules! replayed {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                let target = TARGETS.iter().find(|target| target.name == stringify!($target));
                replay(target.expect("a target of this name"));
            }
        )*

        /// A target without a test here would be fed by nobody but a fuzzer.
        #[test]
        fn every_target_is_replayed_and_has_a_program_of_its_name() {
            let replayed = [$(stringify!($target)),*];
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), replayed);
            let programs = folder("fuzz_targets", "");
            let mut found: Vec<String> = std::fs::read_dir(programs)
                .expect("the programs' folder")
                .map(|entry| entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned())
                .collect();
            found.sort();
            let mut names: Vec<&str> = replayed.to_vec();
            names.sort();
            assert_eq!(found, names);
        }
    };
}

replayed! { position state key machine lines pipeline frames copied values scenario }

/// A folder of inputs that belongs to no target is read by nobody.
#[test]
fn every_kept_input_belongs_to_a_target() {
    for kind in ["seeds", "regressions"] {
        for entry in std::fs::read_dir(folder(kind, "")).expect("a folder of inputs") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let known = TARGETS.iter().any(|target| target.name == name);
            assert!(known || path.is_file(), "fuzz/{kind}/{name} is no target's");
        }
    }
}
