//! The files below `testdata`, each with what is expected of it beside it.
//!
//! `REWRITE_GOLDEN=1 cargo test -p spec` writes the expectations anew, to be reviewed like code.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Fixture, SECRET};
use crate::{Code, Pipeline, Problems, parse_as, parse_bytes};

/// The pipeline files of a folder, in order.
pub(super) fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

pub(super) fn read(path: &Path) -> Result<Pipeline, Problems> {
    parse_bytes(&fs::read(path).unwrap(), "pipeline.yaml", &Fixture)
}

/// Compares with what stands in a file, or writes it there.
pub(super) fn expect(file: &Path, found: &str) {
    assert!(!found.contains(SECRET), "{}: a secret is shown:\n{found}", file.display());
    if std::env::var_os("REWRITE_GOLDEN").is_some() {
        fs::write(file, found).unwrap();
        return;
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    assert_eq!(found, expected, "{} differs; REWRITE_GOLDEN=1 writes it anew", file.display());
}

#[test]
fn good_files_become_the_expected_model() {
    for path in files("good") {
        let pipeline = read(&path).unwrap_or_else(|problems| panic!("{}:\n{problems}", path.display()));
        expect(&path.with_extension("expected"), &format!("{pipeline:#?}\n"));
    }
}

#[test]
fn the_quickstart_is_a_pipeline() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quickstart/pipeline.yaml");
    let pipeline = read(&path).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(pipeline.name, "order-desk");
    assert_eq!(pipeline.tables.len(), 8);
}

#[test]
fn bad_files_have_exactly_the_expected_problems() {
    for path in files("bad") {
        let problems = read(&path).map(|_| ()).expect_err(&path.display().to_string());
        expect(&path.with_extension("expected"), &format!("{problems}\n"));
    }
}

#[test]
fn bad_files_of_tomorrow_have_exactly_the_expected_problems() {
    for path in files("later") {
        let text = fs::read_to_string(&path).unwrap();
        let problems = parse_as(&text, "pipeline.yaml", &Fixture, false).map(|_| ()).expect_err(&path.display().to_string());
        expect(&path.with_extension("expected"), &format!("{problems}\n"));
    }
}

#[test]
fn each_kind_of_problem_has_a_file_that_shows_it() {
    // A fault of our own has none, and a file that cannot be read is not one of these files.
    let elsewhere = [Code::Internal, Code::UnreadablePipeline];
    for code in Code::ALL.iter().filter(|code| !elsewhere.contains(code)) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/bad").join(format!("{code}.yaml"));
        let problems = read(&path).map(|_| ()).expect_err(code.as_str());
        assert!(problems.list().iter().any(|problem| problem.code == *code), "{code}.yaml does not show it");
    }
}

#[test]
fn files_of_the_go_system_hold_nothing_but_what_is_known() {
    for path in files("go") {
        let problems = read(&path).map(|_| ()).expect_err("such a pipeline is not built yet");
        let unexpected: Vec<_> = problems.list().iter().filter(|problem| problem.code != Code::NotBuilt).collect();
        assert!(unexpected.is_empty(), "{}: {unexpected:#?}", path.display());
        expect(&path.with_extension("expected"), &format!("{problems}\n"));
    }
}

#[test]
fn files_of_the_go_system_become_models_once_everything_is_built() {
    for path in files("go") {
        let text = fs::read_to_string(&path).unwrap();
        let pipeline = parse_as(&text, "pipeline.yaml", &Fixture, false)
            .unwrap_or_else(|problems| panic!("{}:\n{problems}", path.display()));
        expect(&path.with_extension("model"), &format!("{pipeline:#?}\n"));
    }
}
