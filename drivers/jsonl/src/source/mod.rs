//! The source: what the contract asks of a log, answered by files.

mod describe;
mod preflight;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use contract::registry::Settings;
use contract::{Error, Finding, Kind, LogReader, OpenedLog, Sketch, Source, SourceTable, Start, TableRequest};
use kernel::id::TableName;
use kernel::position::{LogIdentity, Offset, Position};
use rows::TableSchema;

use crate::counts::Counts;
use crate::files::{self, LogFile};
use crate::reader::{Assembler, Breaks, Core, Declared, Files, Reader, is_whole};
use crate::settings::SourceSettings;

/// Opens `jsonl` sources.
#[derive(Clone, Copy, Default, Debug)]
pub struct SourceFactory;

#[async_trait]
impl contract::registry::SourceFactory for SourceFactory {
    fn kind(&self) -> &'static str {
        "jsonl"
    }

    fn summary(&self) -> &'static str {
        "JSON change files: Debezium events, one a line"
    }

    async fn open(&self, _pipeline: &str, settings: &Settings) -> Result<Arc<dyn Source>, Error> {
        Ok(Arc::new(JsonlSource::new(settings)?))
    }
}

/// Files of change events.
#[derive(Debug)]
pub struct JsonlSource {
    settings: SourceSettings,
    /// What was asked for at the last `describe`: a schema does not tell how far `before` is to be trusted.
    declared: Mutex<BTreeMap<TableName, Declared>>,
    breaks: Breaks,
    counts: Arc<Counts>,
}

impl JsonlSource {
    /// The source that a pipeline file's section describes. Touches no file.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            settings: SourceSettings::read(settings)?,
            declared: Mutex::default(),
            breaks: Breaks::default(),
            counts: Arc::default(),
        })
    }

    /// What was read and passed over.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// A reader that the caller drives, from a position.
    #[cfg(test)]
    pub(crate) fn reader(&self, start: &Start, tables: &[Arc<TableSchema>]) -> Result<Core, Error> {
        self.core(start, tables, self.breaks.clone(), self.counts.clone())
    }

    fn core(&self, start: &Start, tables: &[Arc<TableSchema>], breaks: Breaks, counts: Arc<Counts>) -> Result<Core, Error> {
        let settings = &self.settings;
        let follow = settings.behaviour.follow;
        let files = Files::open(&settings.location, follow, &start.from)?;
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let tables: Vec<_> =
            tables.iter().map(|schema| (schema.clone(), declared.get(&schema.table).cloned().unwrap_or_default())).collect();
        let assembler =
            Assembler::new(settings.format, tables, settings.options.clone(), breaks.with_stands(&start.stands), counts);
        Ok(Core::new(settings.behaviour.clone(), files, assembler, Instant::now()))
    }

    /// The files, of which there must be one unless they are waited for.
    fn files(&self) -> Result<Vec<LogFile>, Error> {
        let location = &self.settings.location;
        let found = location.list()?;
        if found.is_empty() && !self.settings.behaviour.follow {
            return Err(no_files(location.text(), location.is_glob()));
        }
        Ok(found)
    }

    fn remember(&self, tables: &[TableRequest]) {
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        for request in tables {
            let of = Declared { columns: request.columns.clone(), before_is_full: request.before_is_full };
            declared.insert(request.table.clone(), of);
        }
    }

    /// Where a file ends for this reading: after its last complete line, or after a last line that is complete without an end.
    fn end_of(&self, file: &LogFile) -> Result<u64, Error> {
        let end = files::complete_end(file)?;
        if self.settings.behaviour.follow || end == file.bytes {
            return Ok(end);
        }
        let mut rest = Vec::new();
        let mut handle = files::open(&file.path)?;
        let io = |e| files::unreadable(&file.path, "read", &e);
        handle.seek(SeekFrom::Start(end)).map_err(io)?;
        handle.take(file.bytes - end).read_to_end(&mut rest).map_err(io)?;
        Ok(if is_whole(&rest) { file.bytes } else { end })
    }
}

fn no_files(path: &str, is_glob: bool) -> Error {
    let what = if is_glob {
        format!("source.path: no file matches '{path}'")
    } else {
        format!("source.path: there is no file '{path}'")
    };
    Error::new(
        Kind::Config,
        "jsonl-no-file",
        what,
        "check 'source.path' (a relative one is relative to the working directory); 'source.follow: true' waits for files to come",
    )
}

#[async_trait]
impl Source for JsonlSource {
    async fn preflight(&self, tables: &[TableRequest]) -> Vec<Finding> {
        self.remember(tables);
        preflight::findings(self, tables)
    }

    async fn describe(
        &self,
        tables: &[TableRequest],
        stored: &BTreeMap<TableName, Arc<TableSchema>>,
    ) -> Result<Vec<SourceTable>, Error> {
        self.remember(tables);
        describe::describe(self, tables, stored)
    }

    async fn sketch(&self, tables: &[TableRequest]) -> Result<Vec<Sketch>, Error> {
        describe::sketch(self, tables)
    }

    async fn discover(&self) -> Result<Vec<TableName>, Error> {
        let survey = survey::Survey::of_everything(self, survey::DISCOVER_EVENTS_MAX)?;
        Ok(survey.tables().map(|name| TableName::from(name.as_str())).collect())
    }

    async fn open(&self) -> Result<OpenedLog, Error> {
        let mut opened = OpenedLog { identity: LogIdentity::default(), floor: Position::START, end: Position::START };
        for file in self.files()? {
            if let Some(identity) = files::identity(&file)? {
                opened.identity.streams.insert(file.stream.clone(), identity);
            }
            let end = Offset(self.end_of(&file)?);
            opened.end.join_with(&Position::of(file.stream, end));
        }
        Ok(opened)
    }

    async fn stream(&self, start: &Start, tables: &[Arc<TableSchema>]) -> Result<Box<dyn LogReader>, Error> {
        self.files()?;
        let core = self.core(start, tables, self.breaks.clone(), self.counts.clone())?;
        Ok(Box::new(Reader::new(core)))
    }

    fn keeps_all(&self) -> bool {
        true
    }

    async fn acknowledge(&self, upto: &Position) -> Result<(), Error> {
        // Files are deleted by whoever made them; of ours there is only what a reading from further back would need.
        self.breaks.forget(upto);
        Ok(())
    }

    fn describe_position(&self, position: &Position) -> String {
        let words: Vec<_> = position.streams().map(|(stream, offset)| format!("{stream} up to byte {}", offset.0)).collect();
        if words.is_empty() { "the beginning".to_owned() } else { words.join(", ") }
    }
}
