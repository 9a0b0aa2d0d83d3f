//! A look at the beginning of the log: which tables it holds and what their events say about columns and keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::Error;

use super::JsonlSource;
use crate::envelope::{Change, Decoder, Line, Operation, RowSchema};
use crate::files::{LineNumbers, Lines, LogFile, Next};
use crate::reader::{is_unavailable, is_whole, malformed, place as words_of, too_long};
use crate::settings::OnDecodeError;
use crate::values::infer::Inference;
use crate::values::{BinaryText, Reading};

/// Of a table without schema parts so many events decide about its types.
pub(super) const INFER_EVENTS_MAX: u64 = 1_000;

/// How many events are searched for tables that could be asked for.
pub(super) const DISCOVER_EVENTS_MAX: u64 = 1_000_000;

/// What was seen.
#[derive(Default)]
pub(super) struct Survey {
    tables: BTreeMap<String, Seen>,
    pub(super) events: u64,
    /// The line that ended the look, as it would end a run.
    pub(super) unreadable: Option<Error>,
    /// How many lines a run would pass over.
    pub(super) skipped: u64,
}

/// What was seen of a table.
#[derive(Default)]
pub(super) struct Seen {
    /// Events with a row.
    pub(super) events: u64,
    pub(super) schema: Option<Arc<RowSchema>>,
    pub(super) inference: Inference,
    /// The names of the columns in the records' keys.
    pub(super) key: Option<Vec<String>>,
}

impl Survey {
    /// Looks until all of these tables are known well enough, or to the end.
    pub(super) fn of(source: &JsonlSource, tables: &[&str], events_max: u64) -> Result<Self, Error> {
        let mut survey = Self::default();
        let mut missing = tables.len();
        survey.look(source, |survey, name| {
            if tables.contains(&name) && survey.tables.get(name).is_some_and(Seen::just_known) {
                missing = missing.saturating_sub(1);
            }
            missing > 0 && survey.events < events_max
        })?;
        Ok(survey)
    }

    /// Looks at so many events.
    pub(super) fn of_everything(source: &JsonlSource, events_max: u64) -> Result<Self, Error> {
        let mut survey = Self::default();
        survey.look(source, |survey, _| survey.events < events_max)?;
        Ok(survey)
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &String> {
        self.tables.keys()
    }

    pub(super) fn table(&self, name: &str) -> Option<&Seen> {
        self.tables.get(name)
    }

    /// Reads events as long as `more` wants them after each.
    fn look(&mut self, source: &JsonlSource, mut more: impl FnMut(&Self, &str) -> bool) -> Result<(), Error> {
        let mut decoder = Decoder::new(source.settings.format);
        let mut name = String::new();
        for file in source.files()? {
            if !self.look_at(source, &file, &mut decoder, &mut name, &mut more)? {
                break;
            }
        }
        Ok(())
    }

    /// `false` if no more is wanted.
    fn look_at(
        &mut self,
        source: &JsonlSource,
        file: &LogFile,
        decoder: &mut Decoder,
        name: &mut String,
        more: &mut impl FnMut(&Self, &str) -> bool,
    ) -> Result<bool, Error> {
        let mut lines = Lines::open(&file.path, 0)?;
        let mut numbers = LineNumbers::new(&file.path, 0);
        loop {
            let place = match lines.next()? {
                Next::Line(place) => place,
                Next::Partial(place) if !source.settings.behaviour.follow && is_whole(lines.bytes(&place)) => place,
                Next::Partial(_) | Next::End => return Ok(true),
                Next::TooLong { begin } => {
                    if !self.unread(source, too_long(&file.path, begin, numbers.current())) {
                        return Ok(false);
                    }
                    lines.skip_too_long()?;
                    numbers.advance();
                    continue;
                }
            };
            match decoder.decode(lines.bytes(&place)) {
                Ok(Line::Change(change)) => {
                    self.events += 1;
                    self.add(source, &change, name, &mut || words_of(&file.path, place.begin, numbers.current()));
                    if !more(self, name) {
                        return Ok(false);
                    }
                }
                Ok(_) => {}
                Err(wrong) => {
                    if !self.unread(source, malformed(&wrong, &file.path, place.begin, numbers.current())) {
                        return Ok(false);
                    }
                }
            }
            lines.consume(&place);
            numbers.advance();
        }
    }

    /// A run would stop at this line, or pass over it (`true`).
    fn unread(&mut self, source: &JsonlSource, error: Error) -> bool {
        self.unreadable.get_or_insert(error);
        self.skipped += 1;
        source.settings.behaviour.on_decode_error == OnDecodeError::Skip
    }

    fn add(&mut self, source: &JsonlSource, change: &Change<'_>, name: &mut String, place: &mut impl FnMut() -> String) {
        name.clear();
        if let Some(qualifier) = &change.qualifier {
            name.push_str(qualifier);
            name.push('.');
        }
        name.push_str(&change.table);
        if !self.tables.contains_key(name.as_str()) {
            self.tables.insert(name.clone(), Seen::default());
        }
        if let Some(seen) = self.tables.get_mut(name.as_str()) {
            seen.add(source, change, place);
        }
    }
}

impl Seen {
    fn add(&mut self, source: &JsonlSource, change: &Change<'_>, place: &mut impl FnMut() -> String) {
        if self.schema.is_none() {
            self.schema = change.schema.cloned();
        }
        if let (None, Some(key)) = (&self.key, change.key) {
            self.key = Some(key.members().filter_map(|(name, _)| name.text().ok().map(|name| name.into_owned())).collect());
        }
        if change.operation == Operation::Truncate {
            return;
        }
        self.events += 1;
        if self.schema.is_none() && self.events <= INFER_EVENTS_MAX {
            // In base64 too: nothing is known yet about where bytes are.
            let bytes = Reading::Bytes(BinaryText::Base64);
            let options = &source.settings.options;
            for image in [change.before, change.after].into_iter().flatten() {
                self.inference.add(image, |value| is_unavailable(value, &bytes, options), place);
            }
        }
    }

    /// Has this event told what there was still to know?
    fn just_known(&self) -> bool {
        if self.schema.is_some() { self.events == 1 } else { self.events == INFER_EVENTS_MAX }
    }
}
