//! `urutau plan`: what a run would do, without doing it. Where each table would go on is not computed here: the kernel's own
//! beginning is rehearsed (`host::survey`), and this shows where it would stand.

use contract::Mode;
use host::survey::{self, Known, Rehearsal};
use kernel::id::TableName;
use kernel::state::Phase;
use serde_json::{Value, json};
use spec::OtherInGo;

use crate::args::FileArgs;
use crate::drivers;
use crate::grid::Grid;
use crate::output::{Answer, Failure};
use crate::pipeline;

/// Plans a run.
pub(crate) async fn plan(args: &FileArgs) -> Result<Answer, Failure> {
    let pipeline = pipeline::load(&args.file)?;
    let drivers = host::open(&pipeline.spec, &drivers::registry()).await?;
    let known = survey::tables(&pipeline.plans, &*drivers.source, &*drivers.sink).await?;
    let rehearsal = survey::rehearse(&pipeline.spec, &drivers).await?;
    let words = |position: &kernel::position::Position| drivers.source.describe_position(position);
    let tables: Vec<TablePlan> = known.iter().map(|(name, known)| TablePlan::new(name, known, &rehearsal, &words)).collect();
    let stops = rehearsal.stops.as_ref().and_then(host::reason_message);
    let view = View {
        title: pipeline.title(),
        life: rehearsal.status.incarnation.0,
        log_end: words(&rehearsal.log.end),
        stops,
        tables,
        other_in_go: &pipeline.spec.other_in_go,
    };
    Ok(Answer::done(view.text(), view.json(&pipeline.spec.name)))
}

/// Everything that is shown.
struct View<'a> {
    title: String,
    life: u32,
    log_end: String,
    stops: Option<String>,
    tables: Vec<TablePlan>,
    other_in_go: &'a [OtherInGo],
}

/// What a run would do with one table.
struct TablePlan {
    table: String,
    target: String,
    mode: Mode,
    key: Vec<String>,
    inferred: bool,
    columns: Vec<ColumnPlan>,
    phase: Phase,
    /// `None`: it would begin.
    from: Option<String>,
    why: Option<String>,
}

struct ColumnPlan {
    name: String,
    kind: String,
    key: bool,
    nullable: bool,
    /// Filled by the log, not by the row.
    by_log: bool,
}

impl TablePlan {
    fn new(
        name: &TableName,
        known: &Known,
        rehearsal: &Rehearsal,
        words: &dyn Fn(&kernel::position::Position) -> String,
    ) -> Self {
        let schema = &known.table.schema;
        let of_row = schema.columns.iter().enumerate().map(|(at, column)| ColumnPlan {
            name: column.name.clone(),
            kind: column.kind.to_string(),
            key: schema.is_key(at),
            nullable: column.nullable,
            by_log: false,
        });
        let of_log = known.table.metadata.iter().map(|(what, name)| ColumnPlan {
            name: name.clone(),
            kind: what.trim_start_matches('_').to_owned(),
            key: false,
            nullable: true,
            by_log: true,
        });
        let status = rehearsal.status.tables.get(name);
        Self {
            table: name.to_string(),
            target: known.table.target.clone(),
            mode: known.table.mode,
            key: schema.key.iter().filter_map(|at| schema.columns.get(*at)).map(|column| column.name.clone()).collect(),
            inferred: known.inferred,
            columns: of_row.chain(of_log).collect(),
            phase: status.map_or(Phase::Pending, |status| status.phase),
            from: known.state.value.as_ref().and(status).map(|status| words(&status.taken)),
            why: status.and_then(|status| status.why.clone()),
        }
    }

    /// Where it would begin or go on, or why it would do neither.
    fn course(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        match (self.phase, &self.from) {
            (Phase::Paused | Phase::Halted | Phase::NeedsSnapshot, _) => format!("stays {}{why}", self.phase.as_str()),
            (Phase::Pending, _) => "begins with a snapshot".to_owned(),
            (Phase::Snapshotting | Phase::Streaming, None) => "begins at the beginning of the log".to_owned(),
            (Phase::Snapshotting, Some(from)) => format!("goes on with its snapshot, and behind {from} in the log"),
            (Phase::Streaming, Some(from)) => format!("goes on behind {from}"),
        }
    }

    fn text(&self) -> String {
        let key = if self.key.is_empty() { "no key".to_owned() } else { format!("key {}", self.key.join(", ")) };
        let inferred = if self.inferred { "; types inferred from the first events" } else { "" };
        let (table, target, mode) = (&self.table, &self.target, mode(self.mode));
        let mut text = format!("\n{table} -> {target}: {mode}, {key}{inferred}\n  {}\n", self.course());
        let mut grid = Grid::new(&["", "", ""]).indented();
        for column in &self.columns {
            grid.row([column.name.clone(), column.kind.clone(), column.remark().to_owned()]);
        }
        text.push_str(&grid.text());
        text
    }

    fn json(&self) -> Value {
        let columns = self.columns.iter().map(|column| {
            json!({ "name": column.name, "type": column.kind, "key": column.key, "nullable": column.nullable, "from_the_log": column.by_log })
        });
        json!({
            "table": self.table,
            "target": self.target,
            "mode": mode(self.mode),
            "key": self.key,
            "inferred": self.inferred,
            "columns": columns.collect::<Vec<_>>(),
            "phase": self.phase,
            "resumes_at": self.from,
            "why": self.why,
        })
    }
}

impl ColumnPlan {
    fn remark(&self) -> &'static str {
        match (self.by_log, self.key, self.nullable) {
            (true, _, _) => "filled by the log",
            (_, true, _) => "key",
            (_, _, true) => "",
            (_, _, false) => "not null",
        }
    }
}

impl View<'_> {
    fn text(&self) -> String {
        let mut text = format!("{}\nthe next run would be life {}; the log ends at {}\n", self.title, self.life, self.log_end);
        if let Some(why) = &self.stops {
            text.push_str(&format!("it would end at once: {why}\n"));
        }
        for table in &self.tables {
            text.push_str(&table.text());
        }
        if !self.other_in_go.is_empty() {
            text.push_str("\nDefaults that differ from the Go urutau's (`compat: go` restores those):\n");
            for difference in self.other_in_go {
                text.push_str(&format!("  {difference}\n"));
            }
        }
        text
    }

    fn json(&self, pipeline: &str) -> Value {
        json!({
            "pipeline": pipeline,
            "incarnation": self.life,
            "log_end": self.log_end,
            "would_stop": self.stops,
            "tables": self.tables.iter().map(TablePlan::json).collect::<Vec<_>>(),
            "other_in_go": self.other_in_go,
        })
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Upsert => "upsert",
        Mode::Append => "append",
        Mode::AppendIdempotent => "append-idempotent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> TablePlan {
        let column = |name: &str, kind: &str, key: bool, nullable: bool, by_log: bool| ColumnPlan {
            name: name.into(),
            kind: kind.into(),
            key,
            nullable,
            by_log,
        };
        TablePlan {
            table: "shop.orders".into(),
            target: "orders".into(),
            mode: Mode::Upsert,
            key: vec!["id".into()],
            inferred: true,
            columns: vec![
                column("id", "int64", true, false, false),
                column("total", "decimal(12,2)", false, true, false),
                column("changed_at", "commit_ts", false, true, true),
            ],
            phase: Phase::Streaming,
            from: None,
            why: None,
        }
    }

    #[test]
    fn a_table_is_told_with_its_key_its_types_and_where_it_begins() {
        let expected = "
shop.orders -> orders: upsert, key id; types inferred from the first events
  begins at the beginning of the log
  id          int64          key
  total       decimal(12,2)
  changed_at  commit_ts      filled by the log
";
        assert_eq!(orders().text(), expected);
    }

    #[test]
    fn a_table_with_a_copy_goes_on_and_one_that_stands_still_says_why() {
        let goes_on = TablePlan { from: Some("changes.jsonl:512".into()), ..orders() };
        assert_eq!(goes_on.course(), "goes on behind changes.jsonl:512");
        let why = Some("the key is null".to_owned());
        let halted = TablePlan { phase: Phase::Halted, from: Some("7".into()), why, ..orders() };
        assert_eq!(halted.course(), "stays halted (the key is null)");
    }

    #[test]
    fn a_run_that_would_end_at_once_says_so_before_the_tables() {
        let view = View {
            title: "pipeline desk".into(),
            life: 3,
            log_end: "12".into(),
            stops: Some("the log is another one".into()),
            tables: Vec::new(),
            other_in_go: &[],
        };
        let expected =
            "pipeline desk\nthe next run would be life 3; the log ends at 12\nit would end at once: the log is another one\n";
        assert_eq!(view.text(), expected);
    }
}
