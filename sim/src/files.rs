//! The scenario files of the house: the written ones, and the regressions.

use std::path::{Path, PathBuf};

use fault_scenarios::Scenario;

/// A folder of scenarios: `scenarios` or `regressions`.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fault-scenarios").join(name)
}

/// A file's text and what it means, or why it means nothing.
pub fn read(path: &Path) -> Result<(String, Scenario), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let scenario = text.parse().map_err(|e| format!("{}, {e}", path.display()))?;
    Ok((text, scenario))
}

/// The files of a folder, in the order of their names.
pub fn paths(folder_name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(folder_name)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "scenario")).collect();
    paths.sort();
    paths
}

/// What a file is called in messages.
pub fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}
