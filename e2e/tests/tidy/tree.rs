//! What every file of the repository keeps to. The names that must not appear are put together here from halves, so
//! that this file keeps to it too.

use std::path::{Path, PathBuf};

use crate::{list, metadata, root, text};

/// Folders that hold what was made, not what was written.
const MADE: &[&str] = &[".git", ".cache", "target", "warehouse"];

/// A file of code that is longer is two files. (450 is where one begins to look for the seam.)
const CODE_LINES_MAX: usize = 600;

/// Anything larger is made by a program instead of kept.
const BYTES_MAX: u64 = 8 << 20;

/// Every file below the top, without what was made.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder can be read").map(|entry| entry.expect("an entry can be read")) {
            let made = MADE.iter().any(|name| entry.file_name() == *name) && (folder == root() || entry.file_name() == "target");
            let kind = entry.file_type().expect("an entry has a type");
            if kind.is_dir() && !made && entry.file_name() != "__pycache__" {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn code() -> Vec<(String, String)> {
    let rust = files().into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    rust.map(|path| (shown(&path), std::fs::read_to_string(&path).expect("code is text"))).collect()
}

/// Names of machines and folders that only one workplace knows, as halves.
const PRIVATE: &[(&str, &str)] = &[
    ("crates", ".io"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("registry.npmjs", ".org"),
    ("proxy.golang", ".org"),
    ("repo1.maven", ".org"),
    ("deb.debian", ".org"),
    ("/work", "/"),
    ("/root", "/"),
    ("/home", "/"),
    ("..", "/shared"),
];

/// The lines that name something private.
fn private_names(file: &str, content: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let names = PRIVATE.iter().map(|(a, b)| format!("{a}{b}")).filter(|name| names_it(line, name));
        found.extend(names.map(|name| format!("{file}:{}: '{name}'", number + 1)));
    }
    found
}

/// Is `name` in the line, and not as a part of a longer path such as `some/work/`?
fn names_it(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !(name.starts_with('/') && before.is_some_and(|c| c.is_alphanumeric() || "._-}~)".contains(c)))
    })
}

#[test]
fn no_file_names_a_registrys_host_or_a_path_of_one_machine() {
    let kept = ["Cargo.lock", "fuzz/Cargo.lock"]; // Cargo writes the registry's name into them.
    let mut found = Vec::new();
    for path in files().iter().filter(|path| !kept.contains(&shown(path).as_str())) {
        if let Ok(content) = std::fs::read_to_string(path) {
            found.extend(private_names(&shown(path), &content));
        }
    }
    assert!(found.is_empty(), "names that only one machine or workplace knows:\n  {}", found.join("\n  "));
}

#[test]
fn a_planted_path_of_one_machine_is_reported() {
    let folder = ["/work", "/"].concat();
    let planted = format!("first\nsee {folder}main\nhttps://example.net/some{folder}x");
    assert_eq!(private_names("a.md", &planted), [format!("a.md:2: '{folder}'")]);
}

#[test]
fn no_file_of_code_is_too_long() {
    let long: Vec<String> = code()
        .iter()
        .filter(|(_, content)| content.lines().count() > CODE_LINES_MAX)
        .map(|(file, content)| format!("{file}: {} lines", content.lines().count()))
        .collect();
    assert!(long.is_empty(), "more than {CODE_LINES_MAX} lines; these are two files each:\n  {}", long.join("\n  "));
}

#[test]
fn no_file_is_too_large_to_be_kept() {
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |m| m.len());
    let large: Vec<String> = files().iter().filter(|path| size(path) > BYTES_MAX).map(|path| shown(path)).collect();
    assert!(large.is_empty(), "more than {BYTES_MAX} bytes: {large:?}");
}

#[test]
fn every_file_of_code_begins_by_saying_what_it_is_for() {
    let silent: Vec<String> =
        code().into_iter().filter(|(_, content)| !content.starts_with("//! ")).map(|(file, _)| file).collect();
    assert!(silent.is_empty(), "no '//!' on the first line:\n  {}", silent.join("\n  "));
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let metadata = metadata();
    let members = list(&metadata, "workspace_members");
    for package in list(&metadata, "packages").iter().filter(|p| members.contains(&p["id"])) {
        let manifest = std::fs::read_to_string(text(package, "manifest_path")).expect("a manifest can be read");
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}: no '[lints] workspace = true'", text(package, "name"));
        assert!(package["description"].is_string(), "{}: no description", text(package, "name"));
        assert_eq!(package["publish"], serde_json::json!([]), "{}: could be published by accident", text(package, "name"));
    }
}

#[test]
fn every_library_that_others_read_documents_its_public_items() {
    for library in ["kernel/src/lib.rs", "kernel/rows/src/lib.rs", "drivers/contract/src/lib.rs"] {
        let content = std::fs::read_to_string(root().join(library)).expect("a library can be read");
        assert!(content.contains("\n#![deny(missing_docs)]"), "{library}: no '#![deny(missing_docs)]'");
    }
}

#[test]
fn the_kernel_has_no_standard_library_and_does_not_panic() {
    let content = std::fs::read_to_string(root().join("kernel/src/lib.rs")).expect("the kernel can be read");
    assert!(content.contains("no_std"), "kernel/src/lib.rs: no 'no_std'");
    for lint in ["clippy::panic", "clippy::unwrap_used"] {
        assert!(content.contains(lint), "kernel/src/lib.rs: '{lint}' is not denied");
    }
}
