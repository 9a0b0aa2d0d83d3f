//! `urutau validate`: the pipeline file alone.

use serde_json::json;

use crate::args::FileArgs;
use crate::output::{Answer, Failure};
use crate::pipeline;

/// Checks the file and says everything that is wrong with it at once.
pub(crate) fn validate(args: &FileArgs) -> Result<Answer, Failure> {
    let pipeline = pipeline::load(&args.file)?.spec;
    let (file, tables) = (args.file.display(), pipeline.tables.len());
    let mut text = format!("{file}: good; pipeline {}, {tables} table{}\n", pipeline.name, if tables == 1 { "" } else { "s" });
    for warning in &pipeline.warnings {
        text.push_str(&format!("{file}:{warning}\n"));
    }
    let json = json!({ "valid": true, "pipeline": pipeline.name, "tables": tables, "warnings": pipeline.warnings });
    Ok(Answer::done(text, json))
}
