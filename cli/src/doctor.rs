//! `urutau doctor`: everything around the pipeline that could go wrong, without changing anything.
//!
//! Source and sink are asked for their own findings. What already keeps them from being opened, or the tables from being
//! described, is a finding like any other, so that one call says as much as can be said.

use contract::{Error, Finding, Severity, SinkTable};
use host::{Drivers, survey};
use serde_json::{Value, json};

use crate::args::FileArgs;
use crate::drivers;
use crate::output::{Answer, Failure, exit};
use crate::pipeline::{self, Loaded};

/// Checks everything.
pub(crate) async fn doctor(args: &FileArgs) -> Result<Answer, Failure> {
    let pipeline = pipeline::load(&args.file)?;
    let mut findings = examine(&pipeline).await;
    // The worst first; of equals in the order in which they were found.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(answer(&pipeline.title(), &pipeline.spec.name, &findings))
}

async fn examine(pipeline: &Loaded) -> Vec<Finding> {
    let registry = drivers::registry();
    let source = host::open_source(&pipeline.spec, &registry).await;
    let sink = host::open_sink(&pipeline.spec, &registry).await;
    let mut findings = Vec::new();
    let requests: Vec<_> = pipeline.plans.values().map(|plan| plan.request.clone()).collect();
    match &source {
        Ok(source) => findings.extend(source.preflight(&requests).await),
        Err(error) => findings.push(finding("source", error)),
    }
    let mut tables: Vec<SinkTable> = pipeline.plans.values().map(|plan| plan.before_described()).collect();
    if let (Ok(source), Ok(sink)) = (&source, &sink) {
        match survey::tables(&pipeline.plans, &**source, &**sink).await {
            Ok(known) => tables = known.into_values().map(|known| known.table).collect(),
            Err(error) => findings.push(finding("tables", &error)),
        }
    }
    match &sink {
        Ok(sink) => findings.extend(sink.preflight(&tables).await),
        Err(error) => findings.push(finding("sink", error)),
    }
    if let (Ok(source), Ok(sink)) = (source, sink) {
        findings.extend(beginning(pipeline, Drivers { source, sink }).await);
    }
    let mut seen = Vec::new();
    findings.retain(|finding| {
        let new = !seen.contains(&(finding.code, finding.what.clone()));
        seen.push((finding.code, finding.what.clone()));
        new
    });
    findings
}

/// Would a run begin?
async fn beginning(pipeline: &Loaded, drivers: Drivers) -> Vec<Finding> {
    match survey::rehearse(&pipeline.spec, &drivers).await {
        Err(error) => vec![finding("start", &error)],
        Ok(rehearsal) => {
            let stops = rehearsal.stops.as_ref().and_then(host::reason_message);
            let stopped = stops.into_iter().map(|why| Finding {
                severity: Severity::Error,
                code: "would-not-start",
                subject: "start".into(),
                what: why,
                remedy: String::new(),
            });
            let standing = rehearsal.status.tables.iter().filter_map(|(name, table)| {
                let why = table.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                let (severity, remedy) = match table.phase {
                    kernel::state::Phase::Halted => {
                        (Severity::Warning, format!("mend the cause, then `urutau table resume {name}`"))
                    }
                    kernel::state::Phase::Paused => (Severity::Info, format!("`urutau table resume {name}`")),
                    kernel::state::Phase::NeedsSnapshot => {
                        (Severity::Error, "begin it anew: see 'needs-snapshot' in docs/troubleshooting.md".to_owned())
                    }
                    _ => return None,
                };
                let what = format!("the table is {}{why}", table.phase.as_str());
                Some(Finding { severity, code: "table-stands-still", subject: name.to_string(), what, remedy })
            });
            stopped.chain(standing).collect()
        }
    }
}

fn finding(subject: &str, error: &Error) -> Finding {
    Finding {
        severity: Severity::Error,
        code: error.code,
        subject: subject.to_owned(),
        what: error.what.clone(),
        remedy: error.remedy.clone(),
    }
}

fn answer(title: &str, pipeline: &str, findings: &[Finding]) -> Answer {
    let number = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
    let mut text = format!("{title}\n");
    for finding in findings {
        let Finding { subject, what, code, remedy, .. } = finding;
        // Most texts name what they are about.
        let subject = if what.contains(subject.as_str()) { String::new() } else { format!("{subject}: ") };
        text.push_str(&format!("{}: {subject}{what} [{code}]\n", word(finding.severity)));
        if !remedy.is_empty() {
            text.push_str(&format!("    {remedy}\n"));
        }
    }
    text.push_str(&match (errors, warnings) {
        (0, 0) => "nothing is wrong\n".to_owned(),
        _ => format!("{}, {}\n", counted(errors, "error"), counted(warnings, "warning")),
    });
    let json = json!({
        "pipeline": pipeline,
        "errors": errors,
        "warnings": warnings,
        "findings": findings.iter().map(json_of).collect::<Vec<_>>(),
    });
    Answer { code: if errors == 0 { exit::DONE } else { exit::CONFIG }, text, json }
}

fn json_of(finding: &Finding) -> Value {
    json!({
        "severity": word(finding.severity),
        "code": finding.code,
        "subject": finding.subject,
        "what": finding.what,
        "remedy": finding.remedy,
    })
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn counted(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(severity: Severity, code: &'static str, remedy: &str) -> Finding {
        Finding { severity, code, subject: "shop.orders".into(), what: "something".into(), remedy: remedy.into() }
    }

    #[test]
    fn an_error_is_exit_code_2_and_a_warning_is_not() {
        let warned = answer("title", "desk", &[found(Severity::Warning, "slow", "make it fast")]);
        assert_eq!(warned.code, 0);
        assert_eq!(warned.text, "title\nwarning: shop.orders: something [slow]\n    make it fast\n0 errors, 1 warning\n");
        let broken = answer("title", "desk", &[found(Severity::Error, "gone", "bring it back")]);
        assert_eq!(broken.code, 2);
        assert_eq!(broken.json["errors"], json!(1));
        assert_eq!(broken.json["findings"][0]["remedy"], json!("bring it back"));
    }

    #[test]
    fn a_text_that_names_what_it_is_about_is_not_told_it_twice() {
        let named = Finding { what: "table shop.orders has no key".into(), ..found(Severity::Info, "no-key", "") };
        assert_eq!(
            answer("title", "desk", &[named]).text,
            "title\ninfo: table shop.orders has no key [no-key]\nnothing is wrong\n"
        );
    }

    #[test]
    fn nothing_found_is_said_too() {
        assert_eq!(answer("title", "desk", &[]).text, "title\nnothing is wrong\n");
    }

    #[test]
    fn what_is_only_good_to_know_is_no_warning() {
        let known = answer("title", "desk", &[found(Severity::Info, "inferred", "")]);
        assert_eq!(known.text, "title\ninfo: shop.orders: something [inferred]\nnothing is wrong\n");
    }
}
