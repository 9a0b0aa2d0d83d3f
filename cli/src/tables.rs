//! `urutau tables`: the state of each table as the sink holds it. It asks no running process and no source, so it works while
//! a run is on, after one, and on a copy of the warehouse.

use chrono::{DateTime, SecondsFormat, Utc};
use contract::Measure;
use host::survey;
use kernel::id::TableName;
use kernel::position::Position;
use kernel::state::{Phase, PipelineState, Skipped, TableRecord, TableState};
use serde_json::{Value, json};

use crate::args::FileArgs;
use crate::drivers;
use crate::grid::{Grid, bytes, count};
use crate::output::{Answer, Failure};
use crate::pipeline;

/// A log of many files has long positions; `--output json` has all of them.
const POSITION_WIDTH_MAX: usize = 60;

/// A table as the sink holds it.
struct Row {
    table: TableName,
    target: String,
    phase: Phase,
    state: Option<TableState>,
    measure: Measure,
    /// The events that somebody had it pass over.
    skipped: Vec<Skipped>,
    /// Why it is halted or needs a snapshot.
    why: Option<String>,
}

/// Looks at every table.
pub(crate) async fn tables(args: &FileArgs) -> Result<Answer, Failure> {
    let pipeline = pipeline::load(&args.file)?;
    let sink = host::open_sink(&pipeline.spec, &drivers::registry()).await?;
    let record = sink.pipeline_state().await?.value;
    let mut rows = Vec::new();
    for (name, plan) in &pipeline.plans {
        let state = survey::recover(plan, &*sink).await?.value;
        let measure = match state {
            Some(_) => sink.measure(&plan.before_described()).await?,
            None => Measure::default(),
        };
        let entry = record.as_ref().and_then(|record| record.tables.get(name));
        let phase = phase_of(entry);
        let skipped = entry.map(|entry| entry.skipped.clone()).unwrap_or_default();
        let why = entry.and_then(|entry| entry.why.clone());
        rows.push(Row { table: name.clone(), target: plan.target.clone(), phase, state, measure, skipped, why });
    }
    let left: Vec<(&TableName, &TableRecord)> =
        record.iter().flat_map(|record| &record.tables).filter(|(name, _)| !pipeline.plans.contains_key(*name)).collect();
    let json = json!({
        "pipeline": pipeline.spec.name,
        "incarnation": record.as_ref().map(|record| record.incarnation),
        "quiet": record.as_ref().map(|record| record.quiet.to_string()),
        "tables": rows.iter().map(Row::json).collect::<Vec<_>>(),
        "not_in_the_file": left.iter().map(|(name, entry)| json!({ "table": name, "phase": entry.phase, "why": entry.why })).collect::<Vec<_>>(),
    });
    Ok(Answer::done(text(&pipeline.title(), record.as_ref(), &rows, &left), json))
}

/// A table that the record does not know has not begun.
fn phase_of(entry: Option<&TableRecord>) -> Phase {
    entry.map_or(Phase::Pending, |entry| entry.phase)
}

fn text(title: &str, record: Option<&PipelineState>, rows: &[Row], left: &[(&TableName, &TableRecord)]) -> String {
    let mut text = format!("{title}\n");
    match record {
        Some(record) => {
            text.push_str(&format!("life {}, quiet up to {}\n", record.incarnation, shown(&record.quiet.to_string())))
        }
        None => text.push_str("it has not run yet\n"),
    }
    let mut grid = Grid::new(&["table", "target", "phase", ">rows", ">files", ">size", "committed at", "position"])
        .cut_at(POSITION_WIDTH_MAX);
    for row in rows {
        grid.row(row.cells());
    }
    text.push_str(&grid.text());
    for row in rows {
        if let Some(why) = &row.why {
            text.push_str(&format!("{} is {}: {why}\n", row.table, row.phase.as_str()));
        }
        if let Some(last) = row.skipped.last() {
            let events = match row.skipped.len() {
                1 => "one event".to_owned(),
                more => format!("{more} events, the last"),
            };
            text.push_str(&format!("{} passed over {events} at {}, since somebody said skip\n", row.table, place(last)));
        }
    }
    for (name, entry) in left {
        text.push_str(&format!("{name} is not in the pipeline file any more; the record says {}\n", entry.phase.as_str()));
    }
    text
}

impl Row {
    fn cells(&self) -> [String; 8] {
        let number = |number: Option<u64>, show: fn(u64) -> String| number.map_or("-".to_owned(), show);
        let position = self.state.as_ref().map_or("-".to_owned(), |state| {
            let inside = if state.cut.is_whole() { "" } else { " and a part" };
            format!("{}{inside}", shown(&state.cut.upto().to_string()))
        });
        [
            self.table.to_string(),
            self.target.clone(),
            self.phase.as_str().to_owned(),
            number(self.measure.rows, count),
            number(self.measure.files, count),
            number(self.measure.bytes, bytes),
            self.committed_at().unwrap_or("-".to_owned()),
            position,
        ]
    }

    fn json(&self) -> Value {
        json!({
            "table": self.table,
            "target": self.target,
            "phase": self.phase,
            "why": self.why,
            "rows": self.measure.rows,
            "files": self.measure.files,
            "bytes": self.measure.bytes,
            "committed_at": self.committed_at(),
            "position": self.state.as_ref().map(|state| state.cut.upto().to_string()),
            "inside_a_transaction": self.state.as_ref().map(|state| !state.cut.is_whole()),
            "generation": self.state.as_ref().map(|state| state.generation),
            "ranges": self.state.as_ref().map(|state| state.tiling.len()),
            "ranges_missing": self.state.as_ref().map(|state| state.tiling.iter().filter(|range| !range.durable).count()),
            "incarnation": self.state.as_ref().map(|state| state.incarnation),
            "commit": self.state.as_ref().map(|state| state.commit.to_string()),
            "skipped": self.skipped.iter().map(|s| json!({ "incarnation": s.incarnation, "place": place(s) })).collect::<Vec<_>>(),
        })
    }

    fn committed_at(&self) -> Option<String> {
        let at = DateTime::<Utc>::from_timestamp_millis(self.measure.committed_at?)?;
        Some(at.to_rfc3339_opts(SecondsFormat::Secs, true))
    }
}

/// Where an event is: its transaction, as positions are written, and its place in it.
fn place(skipped: &Skipped) -> String {
    let Skipped { stream, at, coordinate, .. } = skipped;
    let transaction: Position = [(stream.clone(), *at)].into_iter().collect();
    format!("{transaction} ({}.{})", coordinate.major, coordinate.minor)
}

/// The beginning of a log has no text.
fn shown(position: &str) -> &str {
    if position.is_empty() { "the beginning" } else { position }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::{CommitId, Incarnation, Version};
    use kernel::position::{Coordinate, Cut, LogIdentity, Offset};
    use kernel::state::{Ancestors, FORMAT};

    fn row(phase: Phase, state: Option<TableState>, measure: Measure) -> Row {
        Row { table: "shop.orders".into(), target: "orders".to_owned(), phase, state, measure, skipped: Vec::new(), why: None }
    }

    fn state() -> TableState {
        TableState {
            format: FORMAT,
            cut: Cut::at(Position::scalar(4_711)),
            identity: LogIdentity::default(),
            incarnation: Incarnation(2),
            commit: CommitId { incarnation: Incarnation(2), number: 9 },
            ancestors: Ancestors::default(),
            sequence: 12,
            generation: 0,
            base: Position::START,
            begun: Version(0),
            tiling: Vec::new(),
            in_doubt: Vec::new(),
            ahead: Position::START,
            schema: None,
        }
    }

    #[test]
    fn a_table_that_holds_rows_says_how_many_and_since_when() {
        let measure = Measure { rows: Some(1_234), files: Some(2), bytes: Some(4096), committed_at: Some(1_700_000_000_000) };
        let cells = row(Phase::Streaming, Some(state()), measure).cells();
        let expected = ["shop.orders", "orders", "streaming", "1,234", "2", "4.00 KiB", "2023-11-14T22:13:20Z", "4711"];
        assert_eq!(cells, expected);
    }

    #[test]
    fn what_a_sink_cannot_say_is_left_open() {
        let cells = row(Phase::Pending, None, Measure::default()).cells();
        assert_eq!(cells, ["shop.orders", "orders", "pending", "-", "-", "-", "-", "-"]);
        let json = row(Phase::Pending, None, Measure::default()).json();
        assert_eq!(json["rows"], Value::Null);
        assert_eq!(json["phase"], json!("pending"));
    }

    #[test]
    fn programs_get_the_commit_and_the_life_that_made_it() {
        let json = row(Phase::Paused, Some(state()), Measure::default()).json();
        assert_eq!(json["commit"], json!("2.9"));
        assert_eq!(json["incarnation"], json!(2));
        assert_eq!(json["position"], json!("4711"));
        assert_eq!(json["inside_a_transaction"], json!(false));
    }

    #[test]
    fn a_table_that_the_record_does_not_know_has_not_begun() {
        let entry = TableRecord { phase: Phase::Halted, generation: 0, named: None, skipped: Vec::new(), why: None };
        assert_eq!(phase_of(Some(&entry)), Phase::Halted);
        assert_eq!(phase_of(None), Phase::Pending);
    }

    #[test]
    fn a_table_that_stands_still_says_why() {
        let mut row = row(Phase::Halted, Some(state()), Measure::default());
        let text = |row: &Row| text("p", None, std::slice::from_ref(row), &[]);
        assert!(text(&row).ends_with("4711\n"), "a record of an older urutau has no reason: {}", text(&row));
        assert_eq!(row.json()["why"], Value::Null);
        row.why = Some("line 7: the key is null".to_owned());
        assert!(text(&row).ends_with("4711\nshop.orders is halted: line 7: the key is null\n"), "{}", text(&row));
        assert_eq!(row.json()["why"], json!("line 7: the key is null"));
    }

    #[test]
    fn what_a_table_was_told_to_pass_over_is_shown() {
        let skipped = |major| Skipped {
            incarnation: Incarnation(3),
            stream: "orders.jsonl".into(),
            at: Offset(120),
            coordinate: Coordinate { major, minor: 0 },
        };
        let mut row = row(Phase::Streaming, Some(state()), Measure::default());
        row.skipped = vec![skipped(7)];
        let text = |row: &Row| text("p", None, std::slice::from_ref(row), &[]);
        assert!(text(&row).ends_with("shop.orders passed over one event at orders.jsonl:120 (7.0), since somebody said skip\n"));
        row.skipped.push(skipped(9));
        let text = text(&row);
        assert!(text.ends_with("passed over 2 events, the last at orders.jsonl:120 (9.0), since somebody said skip\n"), "{text}");
        assert_eq!(row.json()["skipped"][1], json!({ "incarnation": 3, "place": "orders.jsonl:120 (9.0)" }));
    }
}
