//! What the repository promises about its own shape: who may depend on whom, what may be depended on, what a file looks
//! like. Nothing here builds or runs the product.

mod licences;
mod tree;
mod walls;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The top of the checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("e2e lies in the workspace").to_path_buf()
}

/// What `cargo metadata` says of the workspace and everything below it.
fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn text<'a>(value: &'a serde_json::Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("cargo metadata: '{field}' is no text"))
}

fn list<'a>(value: &'a serde_json::Value, field: &str) -> &'a Vec<serde_json::Value> {
    value[field].as_array().unwrap_or_else(|| panic!("cargo metadata: '{field}' is no list"))
}
