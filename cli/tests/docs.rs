//! What the pages say is held against what is there: links, quoted code, metrics, commands.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the cli lies in the workspace")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(PathBuf::from).to_vec();
    for folder in ["docs", "docs/sources", "docs/sinks"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("a folder of pages");
        let pages = entries.flatten().map(|entry| Path::new(folder).join(entry.file_name()));
        found.extend(pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    found.sort();
    found
}

/// The targets of a page's links, without those to elsewhere.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).collect()
}

/// The anchors that a page's headings make.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let letter = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    headings.map(|heading| heading.chars().filter_map(letter).collect()).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = read(&page);
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().expect("a page has a folder").join(path) };
            let there = root().join(&target).exists();
            if !there || !anchor.is_empty() && !anchors(&read(&target)).contains(anchor) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links to nowhere:\n  {}", broken.join("\n  "));
}

#[test]
fn every_page_is_linked_from_the_readme_or_a_page_that_is() {
    let mut reached: BTreeSet<PathBuf> = [PathBuf::from("README.md")].into();
    let mut open = vec![PathBuf::from("README.md")];
    while let Some(page) = open.pop() {
        let text = read(&page);
        for link in links(&text) {
            let path = link.split('#').next().unwrap_or_default();
            let target = plain(&page.parent().expect("a page has a folder").join(path));
            if path.ends_with(".md") && reached.insert(target.clone()) {
                open.push(target);
            }
        }
    }
    let lost: Vec<_> = pages().into_iter().filter(|page| !reached.contains(page)).collect();
    assert!(lost.is_empty(), "nobody finds {lost:?}");
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            std::path::Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
        plain
    })
}

#[test]
fn the_code_that_is_quoted_is_the_examples() {
    let page = read("docs/adding-a-driver.md");
    let code = ["src/lib.rs", "src/source.rs", "src/sink.rs", "tests/conformance.rs"]
        .map(|file| read(Path::new("drivers/example").join(file)));
    let quotes: Vec<&str> = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(quotes.len() > 5, "the page quotes nothing any more");
    for quote in quotes {
        assert!(code.iter().any(|code| code.contains(quote)), "the example has no such lines any more:\n{quote}");
    }
}

#[test]
fn every_metric_is_documented_and_no_other() {
    let code = read("drivers/host/src/report.rs");
    let page = read("docs/operations.md");
    let names = |text: &str, before: &str| -> BTreeSet<String> {
        let found = text.split(before).skip(1).filter_map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next());
        found.filter(|name| name.starts_with("urutau_")).map(str::to_owned).collect()
    };
    assert_eq!(names(&page, "\n| `"), names(&code, "!(\""));
}

#[test]
fn every_command_has_a_word_in_the_pages() {
    let help = Command::new(env!("CARGO_BIN_EXE_urutau")).arg("--help").output().expect("the binary starts");
    let help = String::from_utf8(help.stdout).expect("help is text");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.contains(&"run") && commands.len() >= 12, "the commands are not found in the help: {commands:?}");
    let text: String = pages().iter().map(read).collect();
    let missing: Vec<_> = commands.iter().filter(|command| !text.contains(&format!("urutau {command}"))).collect();
    assert!(missing.is_empty(), "no page says a word about {missing:?}");
}
