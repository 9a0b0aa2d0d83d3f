//! From values to the model: what a field alone cannot say, because it takes two to be wrong.

mod table;

use std::collections::BTreeMap;

use crate::model::{Checkpoint, GiveUp, Hold, OtherInGo, Pipeline, SinkSpec, SnapshotSpec, SourceSpec, TableSpec, Warning};
use crate::problem::{Code, Place, Problem};
use crate::read::Reading;
use crate::settings::Settings;
use crate::value::{Entry, Name, Origin, Section, Value};
use crate::words::{OnTruncate, SchemaEvolution, SnapshotMode};

/// The pipeline, and what is to be said against it. `None` only if something is.
pub(crate) fn resolve(file: &Section, reading: Reading<'_>, problems: &mut Vec<Problem>) -> Option<Pipeline> {
    let mut resolver = Resolver { problems, warnings: Vec::new(), refuse_not_built: reading.refuse_not_built };
    let source_section = file.section("source");
    let sink_section = file.section("sink");
    let source = source_section.and_then(|section| resolver.source(section));
    let sink = sink_section.and_then(|section| resolver.sink(section));
    let tables = resolver.tables(file);
    let other_in_go = match reading.compat_go {
        true => Vec::new(),
        false => [source_section, sink_section].into_iter().flatten().flat_map(other_in_go).collect(),
    };
    let give_up_after =
        file.section("retry").and_then(|retry| retry.duration("giveUpAfter")).map(|duration| match duration.is_zero() {
            true => GiveUp::Never,
            false => GiveUp::After(duration),
        });
    let snapshot = snapshot(file);
    let warnings = resolver.warnings;
    Some(Pipeline {
        name: file.text("pipeline")?.to_owned(),
        source: source?,
        sink: sink?,
        tables: tables?,
        snapshot,
        give_up_after,
        other_in_go,
        warnings,
    })
}

/// Whether a source needs one is its own matter: the log of files tells every row.
fn snapshot(file: &Section) -> SnapshotSpec {
    let section = file.section("snapshot");
    let number = |name| section.and_then(|snapshot| snapshot.number(name)).and_then(|number| u32::try_from(number).ok());
    let mode = section.and_then(|snapshot| snapshot.word("mode")).and_then(SnapshotMode::from_word);
    SnapshotSpec {
        mode: mode.unwrap_or(SnapshotMode::Initial),
        chunk_rows: number("chunkRows").unwrap_or(CHUNK_ROWS),
        parallelism: number("parallelism").unwrap_or(PARALLELISM),
    }
}

/// Where there is no `snapshot` section; its fields have the same defaults.
const CHUNK_ROWS: u32 = 20_000;
const PARALLELISM: u32 = 2;

struct Resolver<'a> {
    problems: &'a mut Vec<Problem>,
    warnings: Vec<Warning>,
    refuse_not_built: bool,
}

/// Something in the file that can be complained about.
struct Spot<'a> {
    at: Place,
    path: &'a str,
}

impl<'a> From<&'a Entry> for Spot<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self { at: entry.at, path: &entry.path }
    }
}

impl<'a> From<&'a Section> for Spot<'a> {
    fn from(section: &'a Section) -> Self {
        Self { at: section.at, path: &section.path }
    }
}

impl<'a> From<&'a Name> for Spot<'a> {
    fn from(name: &'a Name) -> Self {
        Self { at: name.at, path: &name.path }
    }
}

impl Resolver<'_> {
    fn source(&mut self, section: &Section) -> Option<SourceSpec> {
        if section.kind.is_some_and(|kind| kind != "jsonl") {
            self.one_address(section);
        }
        let hold =
            section.section("hold").and_then(|hold| Some(Hold { bytes: hold.size("bytes")?, time: hold.duration("time")? }));
        let mut settings = Settings::from(section);
        settings.remove("kind");
        Some(SourceSpec {
            kind: section.word("kind")?,
            on_truncate: OnTruncate::from_word(section.word("onTruncate")?)?,
            hold,
            settings,
        })
    }

    /// A server's address stands in `uri` or, for PostgreSQL, field by field.
    fn one_address(&mut self, section: &Section) {
        match (section.given("uri"), section.given("postgres")) {
            (Some(uri), Some(_))
                if uri.origin == Origin::File
                    && section.section("postgres").is_some_and(|postgres| postgres.given("host").is_some()) =>
            {
                self.complain(Code::Conflict, uri, "`uri` beside `postgres.host`", "one of them", "");
            }
            (None, None) => {
                let hint = "The variable URUTAU_SOURCE_URI is used where the file has none.";
                let path = format!("{}.uri", section.path);
                self.complain(Code::MissingField, Spot { at: section.at, path: &path }, "nothing", "the server's address", hint);
            }
            _ => {}
        }
    }

    fn sink(&mut self, section: &Section) -> Option<SinkSpec> {
        let mut settings = Settings::from(section);
        settings.remove("kind");
        settings.remove("evolveSchema");
        let evolution = self.schema_evolution(section);
        if let Some(evolution) = evolution {
            settings.set("schemaEvolution", evolution.as_str());
        }
        if section.kind == Some("iceberg") {
            settings.set("catalog", section.word("catalog").unwrap_or_else(|| self.catalog_by_address(section)));
        }
        let checkpoint = section.section("checkpoint")?;
        let kind = match section.word("kind")? {
            "iceberg+rest" => "iceberg",
            kind => kind,
        };
        Some(SinkSpec {
            kind,
            namespace: section.text("namespace")?.to_owned(),
            checkpoint: Checkpoint {
                interval: checkpoint.duration("interval")?,
                max_rows: checkpoint.number("maxRows")?,
                max_bytes: checkpoint.size("maxBytes")?,
            },
            schema_evolution: evolution?,
            settings,
        })
    }

    /// The Go system's switch and ours say the same thing in two words.
    fn schema_evolution(&mut self, section: &Section) -> Option<SchemaEvolution> {
        let ours = SchemaEvolution::from_word(section.word("schemaEvolution")?)?;
        let Some(switch) = section.given("evolveSchema") else { return Some(ours) };
        let theirs = match section.bool("evolveSchema")? {
            true => SchemaEvolution::Evolve,
            false => SchemaEvolution::Fail,
        };
        if section.given("schemaEvolution").is_some() && ours != theirs {
            let found = format!("`evolveSchema`, which means `{theirs}`, beside `schemaEvolution: {ours}`");
            self.complain(Code::Conflict, switch, &found, "one of them", "Remove `evolveSchema`.");
        }
        Some(theirs)
    }

    /// A directory has its own catalog; another address means something that is not built yet.
    fn catalog_by_address(&mut self, section: &Section) -> &'static str {
        let scheme = section.text("uri").and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
        let (Some(uri), Some(scheme)) = (section.entry("uri"), scheme) else { return "sql" };
        let (found, catalog) = match scheme {
            "file" => return "sql",
            "http" | "https" => ("the address of a REST catalog, which is not built yet", "rest"),
            _ => ("the address of an object store or a server, which is not built yet", "sql"),
        };
        if self.refuse_not_built {
            self.complain(Code::NotBuilt, uri, found, "a directory", "Write its path, for example `./warehouse`.");
        }
        catalog
    }

    fn tables(&mut self, file: &Section) -> Option<Vec<TableSpec>> {
        let postgres = file.section("source").and_then(|source| source.section("postgres"));
        let discovers = postgres.and_then(|postgres| postgres.bool("discover"));
        // Whoever says something that was refused need not hear that tables are missing, too.
        let was_refused =
            postgres.and_then(|postgres| postgres.given("discover")).is_some_and(|entry| matches!(entry.value, Value::Broken));
        let hint = "Each entry has a `source`: the table's name there.";
        let Some(entry) = file.entry("tables") else {
            if discovers != Some(true) && !was_refused {
                self.complain(
                    Code::MissingField,
                    Spot { at: file.at, path: "tables" },
                    "nothing",
                    "a list of tables, at least one",
                    hint,
                );
            }
            return Some(Vec::new());
        };
        let Value::Sections(sections) = &entry.value else { return None };
        if sections.is_empty() {
            self.complain(Code::EmptyValue, entry, "an empty list", "a list of tables, at least one", hint);
        }
        if discovers == Some(true) {
            self.complain(Code::Conflict, entry, "`tables` beside `source.postgres.discover: true`", "one of them", "");
        }
        let tables: Vec<Option<TableSpec>> = sections.iter().map(|section| self.table(section, file)).collect();
        let sources: Vec<Option<&str>> = tables.iter().map(|table| Some(table.as_ref()?.source.as_str())).collect();
        let targets: Vec<Option<&str>> = tables.iter().map(|table| Some(table.as_ref()?.target.as_str())).collect();
        self.different(sections, &sources, "source", "put all that belongs to the table there");
        self.different(sections, &targets, "target", "give one of them another `target`");
        tables.into_iter().collect()
    }

    /// No two tables may have the same name on one side.
    fn different(&mut self, sections: &[Section], names: &[Option<&str>], side: &str, remedy: &str) {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for (section, name) in sections.iter().zip(names) {
            // A target that the file does not say is made of the source's name.
            let (Some(name), Some(said)) = (name, section.name(side).or_else(|| section.name("source"))) else { continue };
            let Some(first) = seen.get(name) else {
                seen.insert(name, said.at.line);
                continue;
            };
            let path = format!("{}.{side}", section.path);
            let found = format!("the {side} of {} a second time", said.shown());
            let hint = format!("The first one is in line {first}; {remedy}.");
            self.complain(Code::DuplicateTable, Spot { at: said.at, path: &path }, &found, &format!("each {side} once"), &hint);
        }
    }

    fn complain<'s>(&mut self, code: Code, spot: impl Into<Spot<'s>>, found: &str, expected: &str, hint: &str) {
        let spot = spot.into();
        self.problems.push(Problem {
            path: spot.path.to_owned(),
            line: spot.at.line,
            column: spot.at.column,
            found: found.to_owned(),
            expected: expected.to_owned(),
            hint: hint.to_owned(),
            code,
        });
    }

    fn warn<'s>(&mut self, spot: impl Into<Spot<'s>>, text: &str) {
        let spot = spot.into();
        self.warnings.push(Warning {
            path: spot.path.to_owned(),
            line: spot.at.line,
            column: spot.at.column,
            text: text.to_owned(),
        });
    }
}

/// The fields of a section that are left out and have another default in the Go system.
fn other_in_go(section: &Section) -> Vec<OtherInGo> {
    let other = |entry: &Entry| {
        let go = entry.field.go_default?;
        let here = section.word(entry.field.name)?;
        let said =
            entry.origin != Origin::Default || (entry.field.name == "schemaEvolution" && section.given("evolveSchema").is_some());
        (!said).then(|| OtherInGo { path: entry.path.clone(), here, go })
    };
    section.entries.iter().filter_map(other).collect()
}

/// Names in a row, for a problem's text.
fn listed(names: &[Name]) -> String {
    names.iter().map(Name::shown).collect::<Vec<_>>().join(", ")
}
