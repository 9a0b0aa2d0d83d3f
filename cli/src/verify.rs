//! `urutau verify`: is each copy what its source is? Beside a run, or after one; it writes nothing.

use std::time::Duration;

use host::verify::{self, Verified};
use serde_json::{Value, json};

use crate::args::VerifyArgs;
use crate::drivers;
use crate::grid::count;
use crate::output::{Answer, Failure, exit};
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
        found.push(verify::table(&opened, plan, Duration::from_secs(args.wait)).await?);
    }
    Ok(answer(&found))
}

fn answer(found: &[Verified]) -> Answer {
    let text = found.iter().map(text).collect::<Vec<_>>().join("\n");
    let json = json!({ "tables": found.iter().map(table).collect::<Vec<_>>() });
    let code = if found.iter().any(|table| !table.differences.is_empty()) {
        exit::HALTED
    } else if found.iter().any(|table| table.unsettled > 0) {
        exit::UNREACHABLE
    } else {
        0
    };
    Answer { code, text, json }
}

fn text(found: &Verified) -> String {
    let Verified { table, rows, differences, more, unsettled, behind, columns_left_out } = found;
    let mut lines = vec![match (differences.len(), unsettled) {
        (0, 0) => format!("{table}: {} rows, and the copy has the same", count(*rows)),
        (0, _) => format!("{table}: {} rows, and no difference that is certain", count(*rows)),
        (1, _) => format!("{table}: {} rows at the source; one key differs", count(*rows)),
        (many, _) => format!("{table}: {} rows at the source; {} keys differ", count(*rows), count(many as u64)),
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

fn table(found: &Verified) -> Value {
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

    #[test]
    fn differences_are_told_by_key_and_decide_the_exit_code() {
        let answer_of = |differences, unsettled| answer(&[found(0, 0), found(differences, unsettled)]);
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
