//! Which file's turn it is: one after the other in the order of their names, none before the one before it is complete, and
//! no way back.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::time::{Duration, Instant};

use contract::{Error, Kind};
use kernel::id::StreamName;
use kernel::position::{Offset, Position};

use crate::files::{self, Lines, Location, LogFile};

/// How often a log that is followed is searched for new files.
const SEARCH_EVERY: Duration = Duration::from_millis(500);

/// The files of a log while it is read.
pub(crate) struct Files {
    location: Location,
    follow: bool,
    /// Read to their end, and how long they were.
    done: BTreeMap<StreamName, u64>,
    /// The one that is read.
    current: Option<LogFile>,
    /// Those whose turn has not come.
    later: Vec<LogFile>,
    from: Position,
    searched: Option<Instant>,
}

/// What is to be done at the end of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Read on: it may have grown.
    Again,
    /// Wait: it is the last one and may grow.
    Wait,
    /// It is complete and the next one's turn.
    Next,
    /// It is complete and the last one.
    Over,
}

impl Files {
    /// The files that are there, to be read from a position.
    pub(crate) fn open(location: &Location, follow: bool, from: &Position) -> Result<Self, Error> {
        let files = location.list()?;
        files::check_resumable(&files, from)?;
        let begun = from.streams().last().map(|(stream, _)| stream.clone());
        let is_done = |file: &LogFile| begun.as_ref().is_some_and(|begun| file.stream < *begun);
        let (done, later): (Vec<_>, Vec<_>) = files.into_iter().partition(is_done);
        for file in &later {
            files::line_begins_at(file, from.offset(&file.stream).0)?;
        }
        Ok(Self {
            location: location.clone(),
            follow,
            done: done.into_iter().map(|file| (file.stream, file.bytes)).collect(),
            current: None,
            later,
            from: from.clone(),
            searched: None,
        })
    }

    /// The next file and where to begin in it.
    pub(super) fn begin(&mut self, now: Instant) -> Result<Option<(LogFile, u64)>, Error> {
        if self.later.is_empty() && self.follow {
            self.search(now)?;
        }
        if self.later.is_empty() {
            return Ok(None);
        }
        let file = self.later.remove(0);
        let offset = self.from.offset(&file.stream).0;
        self.current = Some(file.clone());
        Ok(Some((file, offset)))
    }

    /// All of the current file that is there was read: what now?
    pub(super) fn turn(&mut self, lines: &Lines, now: Instant) -> Result<Turn, Error> {
        self.check_current(lines)?;
        if !self.later.is_empty() {
            return Ok(Turn::Next);
        }
        if !self.follow {
            self.check_done()?;
            return Ok(Turn::Over);
        }
        self.search(now)?;
        // What was written before a later file appeared is there now: it is read before the turn is over.
        Ok(if self.later.is_empty() { Turn::Wait } else { Turn::Again })
    }

    /// The current file was read to its end.
    pub(super) fn leave(&mut self, end: u64) {
        if let Some(file) = self.current.take() {
            self.done.insert(file.stream, end);
        }
    }

    /// Looks for new files and for old ones that grew, now and then.
    fn search(&mut self, now: Instant) -> Result<(), Error> {
        if self.searched.is_some_and(|searched| now.duration_since(searched) < SEARCH_EVERY) {
            return Ok(());
        }
        self.searched = Some(now);
        let files = self.location.list()?;
        self.check_against(&files)?;
        let newest = self.current.as_ref().map(|file| file.stream.clone()).or(self.done.keys().last().cloned());
        self.later = files.into_iter().filter(|file| newest.as_ref().is_none_or(|newest| file.stream > *newest)).collect();
        Ok(())
    }

    /// Did files that were left grow, or did files come that should have been read before?
    fn check_done(&self) -> Result<(), Error> {
        self.check_against(&self.location.list()?)
    }

    fn check_against(&self, files: &[LogFile]) -> Result<(), Error> {
        for file in files {
            match (self.done.get(&file.stream), &self.current) {
                (Some(bytes), _) if file.bytes > *bytes => return Err(files::grew(file, *bytes)),
                (Some(_), _) => {}
                (None, Some(current)) if file.stream < current.stream && file.bytes > 0 => {
                    return Err(files::came_too_late(file));
                }
                (None, Some(current)) if file.stream > current.stream && file.id.is_some() && file.id == current.id => {
                    return Err(renamed(current, file));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Is the file that is read still the one under its name, and no shorter?
    fn check_current(&self, lines: &Lines) -> Result<(), Error> {
        let Some(current) = &self.current else { return Ok(()) };
        let io = |e| files::unreadable(lines.path(), "look at", &e);
        let open: Metadata = lines.file().metadata().map_err(io)?;
        if open.len() < lines.offset() {
            let now = LogFile { bytes: open.len(), ..current.clone() };
            return Err(files::shrunk(&now, Offset(lines.offset())));
        }
        match std::fs::metadata(lines.path()) {
            Ok(named) if files::file_id(&named) != files::file_id(&open) => Err(Error::new(
                Kind::PositionLost,
                "jsonl-file-replaced",
                format!("another file took the place of {} while it was read", lines.path().display()),
                "rotate logs by beginning files with new names and read them by a glob; copy the tables anew into another target if events were lost",
            )),
            // It was moved away or removed; what comes in its place is judged then.
            _ => Ok(()),
        }
    }
}

fn renamed(current: &LogFile, file: &LogFile) -> Error {
    Error::new(
        Kind::Config,
        "jsonl-file-order",
        format!("{} was renamed to {} while it was read", current.path.display(), file.path.display()),
        "leave files under the names under which they were begun, and begin new ones with names that sort behind",
    )
}
