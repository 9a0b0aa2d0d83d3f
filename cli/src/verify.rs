//! `urutau verify`: is each copy what its source is? Beside a run, or after one; it writes nothing.

use std::time::Duration;

use contract::Error;
use host::verify::{self, Verified};
use kernel::id::TableName;
use serde_json::{Value, json};

use crate::args::VerifyArgs;
use crate::drivers;
use crate::grid::count;
use crate::output::{Answer, Failure, code_of, exit};
use crate::pipeline;

/// Keys of a table that a person is shown; `--output json` has all that were found.
const KEYS_SHOWN: usize = 20;

/// Compares the tables.
pub(crate) async fn verify(args: &VerifyArgs) -> Result<Answer, Failure> {
    let pipeline = pipeline::load(&args.file.file)?;
    let plans = match args.tables.as_slice() {
        [] => pipeline.plans.iter().collect(),
        named => named.iter().map(|name| pipeline.table(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let opened = host::open(&pipeline.spec, &drivers::registry()).await?;
    let mut found = Vec::new();
    for (_, plan) in plans {
        found.push((plan.request.table.clone(), verify::table(&opened, plan, Duration::from_secs(args.wait)).await));
    }
    answer(&found)
}

/// What came of each table: one that can't be compared takes nothing from what was found in the others.
fn answer(found: &[(TableName, Result<Verified, Error>)]) -> Result<Answer, Failure> {
    if let [(_, Err(error))] = found {
        return Err(error.clone().into());
    }
    let differs = found.iter().any(|(_, result)| result.as_ref().is_ok_and(|table| !table.differences.is_empty()));
    let failed = found.iter().find_map(|(_, result)| result.as_ref().err());
    let code = match failed {
        _ if differs => exit::HALTED,
        Some(error) => code_of(error.kind),
        None if found.iter().any(|(_, result)| result.as_ref().is_ok_and(|table| !is_judged(table))) => exit::UNREACHABLE,
        None => exit::DONE,
    };
    let line = |(name, result): &(_, Result<_, _>)| match result {
        Ok(table) => text(table),
        Err(error) => format!("{name}: not compared: {error}"),
    };
    let text = found.iter().map(line).collect::<Vec<_>>().join("\n");
    let json = json!({ "tables": found.iter().map(|(name, result)| table(name, result)).collect::<Vec<_>>() });
    Ok(Answer { code, text, json })
}

/// Is it known of each row whether the copy has it as the source does?
fn is_judged(found: &Verified) -> bool {
    found.unsettled == 0 && !found.more
}

fn text(found: &Verified) -> String {
    let Verified { table, rows, differences, more, unsettled, behind, columns_left_out } = found;
    let mut lines = vec![match differences.len() {
        0 if is_judged(found) => format!("{table}: {} rows, and the copy has the same", count(*rows)),
        0 => format!("{table}: {} rows, and no difference that is certain", count(*rows)),
        1 => format!("{table}: {} rows at the source; one key differs", count(*rows)),
        many => format!("{table}: {} rows at the source; {} keys differ", count(*rows), count(many as u64)),
    }];
    lines.extend(differences.iter().take(KEYS_SHOWN).map(|one| format!("  {}: {}", one.key.join(", "), one.how.as_str())));
    if differences.len() > KEYS_SHOWN {
        lines.push(format!("  and {} more; --output json names them", count((differences.len() - KEYS_SHOWN) as u64)));
    }
    if *more {
        lines.push("  so many rows differ that not all were looked at".to_owned());
    }
    match (unsettled, behind) {
        (0, _) => {}
        (rows, true) => lines.push(format!(
            "  {} rows can't be judged: the copy did not come as far as the source was. Is the pipeline running? (--wait)",
            count(*rows)
        )),
        (rows, false) => lines.push(format!("  {} rows can't be judged: they change all the time", count(*rows))),
    }
    if !columns_left_out.is_empty() {
        lines.push(format!("  not compared, for their types: {}", columns_left_out.join(", ")));
    }
    lines.join("\n")
}

fn table(name: &TableName, found: &Result<Verified, Error>) -> Value {
    let found = match found {
        Ok(found) => found,
        Err(Error { code, what, remedy, .. }) => {
            return json!({ "table": name, "error": { "code": code, "what": what, "remedy": remedy } });
        }
    };
    let differences = found.differences.iter().map(|one| json!({ "key": one.key, "how": one.how.as_str() }));
    json!({
        "table": found.table,
        "rows": found.rows,
        "differences": differences.collect::<Vec<_>>(),
        "more": found.more,
        "unsettled": found.unsettled,
        "behind": found.behind,
        "columns_left_out": found.columns_left_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Kind;
    use host::verify::{Difference, How};

    fn found(differences: usize, unsettled: u64) -> Verified {
        let difference = |at: usize| Difference { key: vec![at.to_string(), "a".into()], how: How::Missing };
        Verified {
            table: "shop.orders".into(),
            rows: 1_234,
            differences: (0..differences).map(difference).collect(),
            more: false,
            unsettled,
            behind: true,
            columns_left_out: Vec::new(),
        }
    }

    fn answer_of<const N: usize>(results: [Result<Verified, Error>; N]) -> Answer {
        answer(&results.map(|result| ("shop.orders".into(), result))).expect("an answer")
    }

    #[test]
    fn where_not_every_row_was_looked_at_nothing_is_called_the_same() {
        let answer = answer_of([Ok(Verified { more: true, ..found(0, 0) })]);
        assert_eq!(answer.code, exit::UNREACHABLE);
        assert!(!answer.text.contains("the same") && answer.text.contains("not all were looked at"), "{}", answer.text);
    }

    #[test]
    fn a_table_that_cannot_be_compared_hides_no_other() {
        let error = || Error::new(Kind::Config, "verify-unsupported", "table shop.log has no key", "compare it otherwise");
        let beside = answer_of([Err(error()), Ok(found(2, 0))]);
        assert_eq!((beside.code, &beside.json["tables"][0]["error"]["code"]), (exit::HALTED, &json!("verify-unsupported")));
        for words in ["shop.orders: not compared: ", "table shop.log has no key", "2 keys differ"] {
            assert!(beside.text.contains(words), "no '{words}' in\n{}", beside.text);
        }
        assert_eq!(answer_of([Ok(found(0, 0)), Err(error())]).code, exit::CONFIG);
        let none = answer_of([Err(error()), Err(Error::new(Kind::Transient, "unreachable", "nobody answers", "wait"))]);
        assert_eq!(none.code, exit::CONFIG);
        assert!(none.text.contains("has no key") && none.text.contains("nobody answers"), "{}", none.text);
        let alone = answer(&[("shop.log".into(), Err(error()))]);
        assert!(matches!(alone, Err(Failure::Error(error)) if error.code == "verify-unsupported"));
    }

    #[test]
    fn differences_are_told_by_key_and_decide_the_exit_code() {
        let answer_of = |differences, unsettled| answer_of([Ok(found(0, 0)), Ok(found(differences, unsettled))]);
        assert_eq!(answer_of(0, 0).code, 0);
        assert!(answer_of(0, 0).text.ends_with("shop.orders: 1,234 rows, and the copy has the same"));
        assert_eq!(answer_of(0, 3).code, exit::UNREACHABLE);
        assert!(answer_of(0, 3).text.contains("3 rows can't be judged: the copy did not come as far"));
        let many = answer_of(22, 1);
        assert_eq!(many.code, exit::HALTED);
        for words in ["22 keys differ", "  0, a: missing", "and 2 more"] {
            assert!(many.text.contains(words), "no '{words}' in\n{}", many.text);
        }
        assert_eq!(many.json["tables"][1]["differences"].as_array().map(Vec::len), Some(22));
    }
}
