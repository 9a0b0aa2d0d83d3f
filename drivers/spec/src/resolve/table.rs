//! One table: its names, key and columns must fit each other, and the source and sink around it.

use super::{Resolver, Spot, listed};
use crate::field::Form;
use crate::filter::Filter;
use crate::model::{ColumnSpec, MetadataColumn, TableSpec};
use crate::problem::Code;
use crate::value::{Name, Section};
use crate::words::{BeforeImage, MetadataSource, OnDelete, OnError, OnValue, WriteMode};

impl Resolver<'_> {
    pub(super) fn table(&mut self, section: &Section, file: &Section) -> Option<TableSpec> {
        let sink = file.section("sink");
        let target = self.target(section, sink);
        if let (Some(target), Some(name)) = (&target, file.text("pipeline")) {
            self.not_reserved(section, target, name);
        }
        let in_general = sink.and_then(|sink| sink.section("defaults")).and_then(|defaults| defaults.word("writeMode"));
        let write_mode = match section.entry("writeMode") {
            Some(_) => section.word("writeMode"),
            None => in_general,
        };
        let write_mode = write_mode.and_then(WriteMode::from_word);
        let filter = self.filter(section);
        let columns = self.columns(section);
        let metadata = self.metadata(section, write_mode);
        self.key(section, file, write_mode);
        self.projection(section);
        if let Some(write_mode) = write_mode {
            self.mode(section, write_mode);
        }
        self.casts(section);
        let names = |field: &str| section.names(field).map(|names| names.iter().map(|name| name.text().to_owned()).collect());
        Some(TableSpec {
            source: section.text("source")?.to_owned(),
            target: target?,
            primary_key: names("primaryKey"),
            columns: columns?,
            column_filter: names("columnFilter"),
            casts: section
                .casts("cast")
                .unwrap_or_default()
                .iter()
                .map(|cast| (cast.column.text().to_owned(), cast.to.clone()))
                .collect(),
            filter,
            metadata: metadata?,
            write_mode: write_mode?,
            on_delete: OnDelete::from_word(section.word("onDelete")?)?,
            on_error: OnError::from_word(section.word("onError")?)?,
            on_value: OnValue::from_word(section.word("onValue")?)?,
            before_image: BeforeImage::from_word(section.word("beforeImage")?)?,
        })
    }

    /// The name at the target: what the file says, without the sink's namespace before it; else what stands behind the
    /// last dot of the name at the source.
    fn target(&mut self, section: &Section, sink: Option<&Section>) -> Option<String> {
        if section.entry("target").is_none() {
            let source = section.name("source")?;
            let last = source.text().rsplit('.').next().unwrap_or(source.text());
            if let Some(fault) = Form::Target.fault(last) {
                let found = format!("{}, whose part behind the last dot cannot name a target", source.shown());
                self.complain(Code::BadName, &source, &found, "a `target` beside it", fault);
                return None;
            }
            return Some(last.to_owned());
        }
        let target = section.name("target")?;
        let namespace = sink.and_then(|sink| sink.name("namespace"));
        let in_namespace =
            namespace.as_ref().and_then(|namespace| target.text().strip_prefix(namespace.text())?.strip_prefix('.'));
        let bare = in_namespace.unwrap_or(target.text());
        let has_scope = sink.and_then(|sink| sink.kind) == Some("couchbase");
        if bare.contains('.') && !has_scope {
            let here = namespace.map(|namespace| format!(", here {}", namespace.shown())).unwrap_or_default();
            let hint = format!("All tables of a pipeline stand in the sink's namespace{here}.");
            self.complain(Code::BadName, &target, &target.shown(), "a name without dots", &hint);
            return None;
        }
        Some(bare.to_owned())
    }

    fn not_reserved(&mut self, section: &Section, target: &str, pipeline: &str) {
        let Some(name) = section.name("target").or_else(|| section.name("source")) else { return };
        if target == format!("urutau_{pipeline}") {
            let found = format!("{}, the name of the pipeline's own record", name.shown());
            let hint = "Give the table another `target`, or the pipeline another name.";
            self.complain(Code::ReservedName, &name, &found, "a name that urutau does not need itself", hint);
        }
    }

    fn filter(&mut self, section: &Section) -> Option<Filter> {
        let condition = section.section("filter")?;
        let mut wrongs = Vec::new();
        let filter =
            Filter::build(condition, &mut |section, found, expected| wrongs.push((section.clone(), found, expected.to_owned())));
        for (place, found, expected) in wrongs {
            self.complain(Code::BadFilter, &place, &found, &expected, "");
        }
        filter
    }

    fn columns(&mut self, section: &Section) -> Option<Vec<ColumnSpec>> {
        if section.entry("columns").is_none() {
            return Some(Vec::new());
        }
        let sections = section.sections("columns")?;
        let names: Vec<Name> = sections.iter().filter_map(|column| column.name("name")).collect();
        self.no_name_twice(&names, "column");
        let mut columns = Vec::new();
        for column in sections {
            if column.entry("type").is_none() && column.entry("onValue").is_none() && column.text("name").is_some() {
                self.complain(
                    Code::MissingField,
                    column,
                    "a column with nothing but a name",
                    "its `type`, its `onValue`, or both",
                    "",
                );
            }
            let on_value = match column.entry("onValue") {
                Some(_) => Some(OnValue::from_word(column.word("onValue")?)?),
                None => None,
            };
            columns.push(ColumnSpec {
                name: column.text("name")?.to_owned(),
                column_type: column.column_type("type").cloned(),
                on_value,
            });
        }
        Some(columns)
    }

    fn metadata(&mut self, section: &Section, write_mode: Option<WriteMode>) -> Option<Vec<MetadataColumn>> {
        if section.entry("metadata").is_none() {
            return Some(Vec::new());
        }
        let sections = section.sections("metadata")?;
        let mut names: Vec<Name> = Vec::new();
        let mut columns = Vec::new();
        for column in sections {
            let from = MetadataSource::from_word(column.word("from")?)?;
            let name = match column.entry("as") {
                Some(_) => column.name("as")?,
                None => Name { value: from.as_str().into(), at: column.at, path: column.path.clone() },
            };
            if from == MetadataSource::Op && write_mode == Some(WriteMode::Upsert) {
                self.warn(column, "in a table that is written by key, `op` never says that a row was deleted: the row is gone");
            }
            columns.push(MetadataColumn { from, name: name.text().to_owned() });
            names.push(name);
        }
        self.no_name_twice(&names, "column");
        let declared = section.sections("columns").unwrap_or_default().iter().filter_map(|column| column.text("name"));
        let listed = ["primaryKey", "columnFilter"].into_iter().flat_map(|field| section.names(field).unwrap_or_default());
        let of_source: Vec<&str> = declared.chain(listed.map(Name::text)).collect();
        for name in names.iter().filter(|name| of_source.contains(&name.text())) {
            let found = format!("{}, which is a column of the source too", name.shown());
            self.complain(Code::DuplicateName, name, &found, "a name of its own", "Give it another name with `as`.");
        }
        Some(columns)
    }

    /// The key: no column twice, none that cannot be one, and there at all where neither the source nor its records tell it.
    fn key(&mut self, section: &Section, file: &Section, write_mode: Option<WriteMode>) {
        let Some(names) = section.names("primaryKey") else {
            let source = file.section("source");
            let plain_envelopes =
                source.is_some_and(|source| source.kind == Some("jsonl") && source.word("format") == Some("debezium"));
            if plain_envelopes && section.entry("primaryKey").is_none() && write_mode == Some(WriteMode::Upsert) {
                let path = format!("{}.primaryKey", section.path);
                let hint =
                    "A plain envelope does not tell the key. Name its columns, or use `writeMode: append`, which needs none.";
                self.complain(
                    Code::MissingField,
                    Spot { at: section.at, path: &path },
                    "nothing",
                    "the columns of the key",
                    hint,
                );
            }
            return;
        };
        self.no_name_twice(names, "column");
        let columns = section.sections("columns").unwrap_or_default();
        for name in names {
            let declared = columns
                .iter()
                .find(|column| column.text("name") == Some(name.text()))
                .and_then(|column| column.column_type("type"));
            if let Some(inexact) = declared.filter(|declared| !declared.can_be_key()) {
                let found = format!("{}, a column of type {}", name.shown(), inexact.name());
                let hint = "Values of that type cannot be compared exactly. Name other columns, or give it another type.";
                self.complain(Code::Conflict, name, &found, "a column that can be part of a key", hint);
            }
        }
    }

    /// The columns that are copied: the key must be among them, and what is said about others is said in vain.
    fn projection(&mut self, section: &Section) {
        let Some(kept) = section.names("columnFilter") else { return };
        self.no_name_twice(kept, "column");
        let is_kept = |name: &str| kept.iter().any(|other| other.text() == name);
        for name in section.names("primaryKey").unwrap_or_default().iter().filter(|name| !is_kept(name.text())) {
            let found = format!("{}, which `columnFilter` leaves out", name.shown());
            self.complain(
                Code::Conflict,
                name,
                &found,
                &listed(kept),
                "The key's columns are always copied; add it to `columnFilter`.",
            );
        }
        for cast in section.casts("cast").unwrap_or_default().iter().filter(|cast| !is_kept(cast.column.text())) {
            let found = format!("{}, which `columnFilter` leaves out", cast.column.shown());
            self.complain(Code::Conflict, &cast.column, &found, &listed(kept), "");
        }
    }

    /// What goes with one way of writing only.
    fn mode(&mut self, section: &Section, write_mode: WriteMode) {
        let appends = write_mode != WriteMode::Upsert;
        if let Some(entry) = section.given("onDelete").filter(|_| !appends) {
            let hint = "With `upsert` a delete removes the row.";
            self.complain(
                Code::Conflict,
                entry,
                "`onDelete` with `writeMode: upsert`",
                "it with `append` or `append-idempotent` only",
                hint,
            );
        }
        if let Some(entry) = section.entry("filter").filter(|_| appends && section.bool("filterImmutable") != Some(true)) {
            let path = format!("{}.filter", section.path);
            let hint = "An appended row is never taken back, so no change may move a row out of the filter. To say that none does \
                        (`filterImmutable`) is not built yet.";
            let found = format!("a `filter` with `writeMode: {write_mode}`");
            self.complain(Code::NotBuilt, Spot { at: entry.at, path: &path }, &found, "`writeMode: upsert`", hint);
        }
        if let Some(entry) = section.given("filterImmutable").filter(|_| section.entry("filter").is_none()) {
            self.complain(Code::Conflict, entry, "`filterImmutable` without `filter`", "both, or none", "");
        }
    }

    fn casts(&mut self, section: &Section) {
        let columns = section.sections("columns").unwrap_or_default();
        for cast in section.casts("cast").unwrap_or_default() {
            let declared = columns
                .iter()
                .find(|column| column.text("name") == Some(cast.column.text()))
                .and_then(|column| column.column_type("type"));
            if declared.is_some_and(|from| from.as_str() == "timestamptz") && cast.to.as_str() == "timestamp" {
                self.warn(&cast.column, "the cast drops the time zone: what is written is the time in UTC");
            }
        }
        self.value_policies(section);
    }

    /// What happens to values that do not fit is said where there is a cast that they may not fit.
    fn value_policies(&mut self, section: &Section) {
        let casts = section.casts("cast").unwrap_or_default();
        let says_something = |section: &Section| section.word("onValue") != Some(OnValue::Error.as_str());
        let hint = "Without a `cast` a column keeps its type, which holds every value of it.";
        if let Some(entry) = section.given("onValue").filter(|_| casts.is_empty() && says_something(section)) {
            self.complain(Code::Conflict, entry, "`onValue` without `cast`", "both, or none", hint);
        }
        for column in section.sections("columns").unwrap_or_default() {
            let has_cast = casts.iter().any(|cast| column.text("name") == Some(cast.column.text()));
            if let Some(entry) = column.given("onValue").filter(|_| !has_cast && says_something(column)) {
                self.complain(Code::Conflict, entry, "`onValue` of a column without a `cast`", "both, or none", hint);
            }
        }
    }

    fn no_name_twice(&mut self, names: &[Name], what: &str) {
        for (index, name) in names.iter().enumerate() {
            if let Some(first) = names[..index].iter().find(|other| other.text() == name.text()) {
                let found = format!("the {what} {} a second time", name.shown());
                let hint = format!("The first one is in line {}, column {}.", first.at.line, first.at.column);
                self.complain(Code::DuplicateName, name, &found, &format!("each {what} once"), &hint);
            }
        }
    }
}
