//! Where the things under test are: the binary, in two builds, and the Python of the independent readers.
//!
//! `make test` builds them once and names them by environment variables. A test started by hand builds what it needs. In
//! CI a missing one is a failure, never a reason to skip.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// A build of the product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    /// As it is released.
    Plain,
    /// With points where a test can park it (`--features failpoints`).
    Failpoints,
}

/// The top of the repository.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> =
        LazyLock::new(|| Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("e2e lies in the workspace").to_path_buf());
    &ROOT
}

impl Binary {
    /// Its file.
    pub fn path(self) -> &'static Path {
        static PLAIN: LazyLock<PathBuf> = LazyLock::new(|| find_or_build("URUTAU_BIN", "plain", &[]));
        static FAILPOINTS: LazyLock<PathBuf> =
            LazyLock::new(|| find_or_build("URUTAU_BIN_FAILPOINTS", "failpoints", &["--features", "failpoints"]));
        match self {
            Binary::Plain => &PLAIN,
            Binary::Failpoints => &FAILPOINTS,
        }
    }
}

/// The program that replays what a run wrote down.
pub fn simulator() -> &'static Path {
    static SIMULATOR: LazyLock<PathBuf> = LazyLock::new(|| named_by("URUTAU_SIM").unwrap_or_else(|| build("sim", &[])));
    &SIMULATOR
}

/// The Python that has the independent readers.
pub fn python() -> &'static Path {
    static PYTHON: LazyLock<PathBuf> = LazyLock::new(|| {
        named_by("URUTAU_PYTHON").unwrap_or_else(|| {
            let made = Command::new(root().join("scripts/venv")).status().expect("scripts/venv starts");
            assert!(made.success(), "scripts/venv could not install the independent readers");
            root().join(".cache/venv/bin/python")
        })
    });
    &PYTHON
}

/// What an environment variable names; it must be there then.
fn named_by(variable: &str) -> Option<PathBuf> {
    let Some(value) = std::env::var_os(variable) else {
        let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!in_ci, "{variable} is not set: in CI the end-to-end tests run by `make test`, which builds what they need");
        return None;
    };
    let path = PathBuf::from(value);
    assert!(path.is_file(), "{variable} names '{}', and there is no such file", path.display());
    Some(path)
}

fn find_or_build(variable: &str, name: &str, options: &[&str]) -> PathBuf {
    named_by(variable).unwrap_or_else(|| {
        // Into a file of its own, since both builds are called the same and tests run side by side.
        static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock();
        let made = build("urutau", options);
        let kept = made.with_file_name(format!("urutau-{name}-{}", std::process::id()));
        std::fs::copy(&made, &kept).expect("the binary can be copied");
        kept
    })
}

fn build(package: &str, options: &[&str]) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "-p", package, "--message-format", "json-render-diagnostics"])
        .args(options)
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("cargo starts");
    assert!(built.status.success(), "cargo build -p {package} {options:?} failed");
    executable(&built.stdout)
}

/// The executable that cargo says it made.
fn executable(messages: &[u8]) -> PathBuf {
    let messages = String::from_utf8_lossy(messages);
    let made = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let path = made.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    path.expect("cargo names the executable that it made")
}
