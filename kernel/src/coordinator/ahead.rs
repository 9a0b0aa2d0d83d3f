//! A log that ends before what is known of it: it was cut short, or the source was set back (rule P4).
//!
//! What is stored beyond its end is a typed stop, and what was only read is forgotten: else the place of the reader, the base of a
//! snapshot or an acknowledgement would speak of transactions that the log does not have, and of what comes in their place.

use alloc::format;
use alloc::string::String;

use super::{Coordinator, StopReason};
use crate::checkpoint::Table;
use crate::flow::Log;
use crate::planted::planted;
use crate::position::{Position, Transaction};
use crate::state::Phase;

impl Coordinator {
    /// A stored position beyond the source's end is a typed stop (rule P4): a table's, or the record's, by which alone the source
    /// would be allowed to forget what nobody has seen.
    pub(super) fn not_ahead(&self) -> Result<(), String> {
        let tables = self.tables.iter().filter(|(_, t)| t.phase != Phase::NeedsSnapshot);
        for (name, table) in tables {
            if let Some(place) = self.ahead(table.taken.upto(), &self.log.end) {
                return Err(format!("table {name} stands at {place}"));
            }
            if let Some(part) = self.part_of_what_is_gone(table) {
                return Err(format!(
                    "table {name} has rows of transaction {part:?}, and the log does not have it now: it was cut short or set back, or \
                     another server has died with it. Put the log back, or begin anew with another pipeline name and another target"
                ));
            }
        }
        self.quiet_is_not_ahead()
    }

    /// A transaction of which a table has a part, stored or on its way, and that the log does not have. Whatever server the coordinates of
    /// that part are of: nothing would ever take its rows back.
    fn part_of_what_is_gone<'a>(&self, table: &'a Table) -> Option<&'a Transaction> {
        let points = table.flight.iter().map(|f| &f.point).chain(&table.closed).map(|point| &point.cut);
        let cuts = table.stored.iter().map(|state| &state.cut).chain(points).chain([&table.taken]);
        let is_gone = |part: &&Transaction| {
            let log = &self.log;
            let gone = log.identity.knows(&part.stream) && !log.end.contains_transaction(part);
            gone && !table.taken.upto().contains_transaction(part) && !planted!(self.config, PartOfLostUnnoticed)
        };
        cuts.flat_map(|cut| cut.within().keys()).find(is_gone)
    }

    /// Of the record, which may have been under way while the log was opened and found shorter than before.
    fn quiet_is_not_ahead(&self) -> Result<(), String> {
        match self.ahead(&self.record.known.quiet, &self.log.known_end) {
            Some(place) if !planted!(self.config, ShorterLogUnnoticed) => Err(format!("the pipeline's record stands at {place}")),
            Some(_) | None => Ok(()),
        }
    }

    /// Where a position is beyond the log's end, for people.
    fn ahead(&self, position: &Position, end: &Position) -> Option<String> {
        let beyond = self.log.beyond(position, end);
        let (stream, _) = beyond.intervals().next()?;
        if self.log.identity.lineage.is_some() {
            return Some(format!(
                "{position}, and the server that is read does not have {beyond} of it: it was set back, or another server has died \
                 with it. Read a server that has it, or begin anew with another pipeline name and another target"
            ));
        }
        let of = if stream.as_str().is_empty() { String::new() } else { format!(" of stream '{stream}'") };
        Some(format!(
            "{}{of}, but the log ends at {} now: it was cut short or set back. Put the log back, or begin anew with another pipeline \
             name and another target",
            position.offset(stream).0,
            end.offset(stream).0
        ))
    }

    /// A record is known to be stored that was made before the log was found shorter, perhaps, whether its session still lives or not.
    pub(crate) fn judge_record(&mut self) {
        if self.has_begun()
            && !planted!(self.config, AheadClamped)
            && let Err(why) = self.quiet_is_not_ahead()
        {
            self.mark("record-ahead");
            self.drain.begin(StopReason::PositionLost { why });
        }
    }

    /// What was read of a longer log says nothing of this one. If a table stands there, or the record, this life ends; but until
    /// then, too, nothing is acknowledged that the log does not have, no base is fixed there, and the reader passes over nothing
    /// that comes instead.
    pub(super) fn forget_what_is_gone(&mut self) {
        let Log { read, received, known_end, .. } = &self.log;
        if self.log.is_ahead(&read.join(received), known_end) && !planted!(self.config, ShorterLogUnnoticed) {
            (self.log.read, self.log.received) = (self.of_this_log(read), self.of_this_log(received));
            self.mark("read-of-a-longer-log");
        }
    }

    /// As much of a position as is in the log: its end counts, as far as it is known.
    pub(crate) fn of_this_log(&self, position: &Position) -> Position {
        if planted!(self.config, ShorterLogUnnoticed) {
            return position.clone();
        }
        position.without(&self.log.beyond(position, &self.log.known_end))
    }
}
