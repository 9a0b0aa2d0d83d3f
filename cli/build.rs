//! Tells the binary which commit it was built from, for `urutau version`. Outside of a checkout, or without git, it knows none.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=URUTAU_COMMIT");
    let commit = std::env::var("URUTAU_COMMIT").ok().or_else(commit_of_the_checkout);
    println!("cargo::rustc-env=URUTAU_COMMIT={}", commit.unwrap_or_default());
}

fn commit_of_the_checkout() -> Option<String> {
    let folder = git(&["rev-parse", "--absolute-git-dir"])?;
    // HEAD changes with the branch, its log with each commit.
    for file in ["HEAD", "logs/HEAD"] {
        let file = Path::new(&folder).join(file);
        if file.exists() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}
