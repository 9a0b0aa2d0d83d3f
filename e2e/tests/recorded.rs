//! Events of a real connector, recorded from a real broker, through the whole chain: Kafka records in files, an Iceberg warehouse,
//! DuckDB and PyIceberg. Every value that an event carries lands with its type; the judge reads the recording itself.
//!
//! `drivers/jsonl/testdata/debezium` says how the recordings came about. Here are the two that differ most for a reader: without
//! schema parts, where the pipeline file declares the types, and with them, where nothing is declared.

use std::path::Path;

use e2e::readers::reader;
use e2e::{Desk, Ended, Process, root};
use serde_json::Value;

/// A recording, as a pipeline reads it.
struct Recording {
    name: &'static str,
    /// Settings of the source besides its path.
    settings: &'static str,
    /// Tables and what the pipeline file says of each besides its name.
    tables: &'static [(&'static str, &'static str)],
}

/// Types that nothing but the pipeline file tells, as `recorded-default.json` expects them.
const WITHOUT_SCHEMAS: Recording = Recording {
    name: "default",
    settings: "timeUnit: us, decimals: base64",
    tables: &[
        ("orders", ""),
        ("evolve", ""),
        ("full_ident", "writeMode: append, beforeImage: full, columns: [{ name: b, type: \"decimal(10,2)\" }]"),
        (
            "toast_default",
            "columns: [{ name: bigb, type: binary }, { name: bigarr, type: list(string) }, { name: bigj, type: json }]",
        ),
        ("toast_full", "beforeImage: full"),
        ("parted_2026a", "writeMode: append, columns: [{ name: day, type: date }]"),
        ("parted_2026b", "columns: [{ name: day, type: date }]"),
        ("types_all", "writeMode: append, columns: [TYPES]"),
    ],
};

/// With schema parts, only what the connector itself cannot hold is declared: an infinite time is no timestamp.
const WITH_SCHEMAS: Recording = Recording {
    name: "schemas",
    settings: "",
    tables: &[
        ("orders", ""),
        ("evolve", ""),
        ("toast_default", ""),
        ("types_all", "writeMode: append, columns: [{ name: tstz, type: string }]"),
    ],
};

impl Recording {
    fn folder(&self) -> std::path::PathBuf {
        root().join("drivers/jsonl/testdata/debezium").join(self.name)
    }

    fn expected(&self) -> std::path::PathBuf {
        root().join(format!("e2e/expected/recorded-{}.json", self.name))
    }

    /// A pipeline that copies the recording at this place.
    fn pipeline(&self, at: &Path) -> String {
        let comma = if self.settings.is_empty() { "" } else { ", " };
        let mut text = format!(
            "pipeline: recorded
source: {{ kind: jsonl, path: \"{}/*.jsonl\", format: record, onTruncate: ignore{comma}{} }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop }}
tables:
",
            at.display(),
            self.settings
        );
        for (table, more) in self.tables {
            let comma = if more.is_empty() { "" } else { ", " };
            text += &format!("  - {{ source: shop.{table}{comma}{} }}\n", more.replace("TYPES", &self.types()));
        }
        text
    }

    /// The columns of `types_all`, with the types that are expected.
    fn types(&self) -> String {
        let text = std::fs::read_to_string(self.expected()).expect("the expectation can be read");
        let expected: Value = serde_json::from_str(&text).expect("the expectation is JSON");
        let columns = expected["types_all"]["columns"].as_object().expect("columns").iter();
        let column = |(name, kind): (&String, &Value)| {
            let kind = kind.as_str().expect("a type").split(" from ").next().unwrap_or_default();
            format!("{{ name: {name}, type: \"{kind}\" }}")
        };
        columns.map(column).collect::<Vec<_>>().join(", ")
    }

    fn judge(&self, desk: &Desk, recording: &Path, options: &[&str]) -> Ended {
        let mut command = reader("recorded.py");
        command.arg("--warehouse").arg(desk.warehouse()).args(["--namespace", "shop"]);
        command.arg("--recording").arg(recording).arg("--tables").arg(self.expected()).args(options);
        Process::start(command).wait()
    }
}

/// What both readers must say of each table, so that no table is compared empty.
fn counts(tables: &[(&str, usize)]) -> Vec<String> {
    let say = |reader: &str, (table, rows): &(&str, usize)| {
        format!("{reader}: {table}: {rows} rows read, {rows} expected, 0 differences")
    };
    ["duckdb", "pyiceberg"].iter().flat_map(|reader| tables.iter().map(|table| say(reader, table))).collect()
}

#[track_caller]
fn expect_counts(ended: Ended, tables: &[(&str, usize)]) {
    let counts = counts(tables);
    ended.expect_code(0).expect_words(&counts.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn every_value_of_events_without_schema_parts_lands_with_the_declared_type() {
    let recording = WITHOUT_SCHEMAS;
    let desk = Desk::new().with_pipeline(&recording.pipeline(&recording.folder()));
    desk.run().expect_code(0).expect_no_words(&["halted"]);
    let tables = [
        ("orders", 6),
        ("evolve", 6),
        ("full_ident", 3),
        ("toast_default", 1),
        ("toast_full", 1),
        ("parted_2026a", 2),
        ("parted_2026b", 1),
        ("types_all", 7),
    ];
    expect_counts(recording.judge(&desk, &recording.folder(), &["--selftest"]), &tables);
}

#[test]
fn every_value_of_events_with_schema_parts_lands_with_the_announced_type() {
    let recording = WITH_SCHEMAS;
    let desk = Desk::new().with_pipeline(&recording.pipeline(&recording.folder()));
    desk.run().expect_code(0).expect_no_words(&["halted", "inferred"]);
    let tables = [("orders", 6), ("evolve", 6), ("toast_default", 1), ("types_all", 7)];
    expect_counts(recording.judge(&desk, &recording.folder(), &["--selftest"]), &tables);
}

#[test]
fn times_with_a_zone_land_as_such_and_an_infinite_one_halts_its_table_in_front_of_it() {
    for recording in [WITHOUT_SCHEMAS, WITH_SCHEMAS] {
        let text = recording.pipeline(&recording.folder());
        let zoned = |text: &str| {
            text.replace("name: tstz, type: \"string\"", "name: tstz, type: timestamptz")
                .replace(", columns: [{ name: tstz, type: string }]", "")
        };
        let desk = Desk::new().with_pipeline(&zoned(&text));
        let infinite =
            ["shop.types_all.tstz: expected timestamptz, found an infinite date or time", "shop.types_all.jsonl, line 4"];
        desk.run().expect_code(3).expect_words(&infinite).expect_words(&["[jsonl-value]"]);

        // The same without that event.
        let copy = desk.path().join("recording");
        std::fs::create_dir(&copy).expect("a folder");
        for entry in std::fs::read_dir(recording.folder()).expect("the recording") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a file of the recording");
            let dropped: usize = usize::from(name == "shop.types_all.jsonl");
            let kept: Vec<&str> = text.lines().filter(|line| !line.contains(r#"\"tstz\":\"-infinity\""#)).collect();
            assert_eq!(kept.len(), text.lines().count() - dropped, "{name}");
            desk.write(&format!("recording/{name}"), &(kept.join("\n") + "\n"));
        }
        let desk = Desk::new().with_pipeline(&zoned(&recording.pipeline(&copy)));
        desk.run().expect_code(0).expect_no_words(&["halted"]);
        let judged = recording.judge(&desk, &copy, &["--column", "types_all.tstz=timestamptz"]);
        expect_counts(judged, &[("types_all", 6)]);
    }
}
