//! The log reader: files, one after the other, into batches and events.
//!
//! [`Core`] does the work and never waits. [`Reader`] runs it on a thread for blocking work, because reading a file and decoding
//! a batch of it both take longer than a task may hold its executor, and because the rows that were read last are written
//! while the next ones are decoded. What is running when the future is dropped is picked up by the next call.

mod alone;
mod assemble;
mod batch;
mod breaks;
mod order;
mod report;
mod table;
#[cfg(test)]
mod tests;
mod transaction;

use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use contract::{Error, Kind, Limit, LogRead, LogReader};
use tokio::task::JoinHandle;

pub use alone::read_text;
pub(crate) use assemble::{Assembler, Place};
pub(crate) use batch::is_unavailable;
pub(crate) use breaks::Breaks;
pub(crate) use order::Files;
pub(crate) use report::{malformed, place, too_long};
pub(crate) use table::{Declared, announced_columns};

use crate::files::{LineNumbers, LinePlace, Lines, Next};
use crate::json::Cursor;
use crate::settings::OnDecodeError;
use order::Turn;

/// How reading behaves.
#[derive(Clone, Debug)]
pub(crate) struct Behaviour {
    /// Is the log still written?
    pub(crate) follow: bool,
    /// What happens at a line that cannot be read?
    pub(crate) on_decode_error: OnDecodeError,
    /// After how long without a line an open transaction counts as ended.
    pub(crate) idle: Duration,
}

/// Text that one read passes over at most when nothing of it is wanted: then the caller hears how far it got.
const SCANNED_BYTES_MAX: u64 = 64 << 20;

/// The most that one read holds, whatever the caller allows: offsets inside Arrow columns have 31 bits.
const READ_BYTES_MAX: u64 = 1 << 30;

/// Reads lines and assembles batches.
pub(crate) struct Core {
    behaviour: Behaviour,
    files: Files,
    lines: Option<(Lines, LineNumbers)>,
    assembler: Assembler,
    /// When a line came last.
    last_line: Instant,
    finished: bool,
}

/// What happened at the end of what is there.
enum AtEnd {
    /// There may be more at once.
    Again,
    /// There may be more later.
    Wait,
    /// There will never be more.
    Finished,
}

impl Core {
    pub(crate) fn new(behaviour: Behaviour, files: Files, assembler: Assembler, now: Instant) -> Self {
        Self { behaviour, files, lines: None, assembler, last_line: now, finished: false }
    }

    /// Reads on, without waiting for anything. What comes before an error is handed out first; the error comes again with the
    /// next call, and with every call after that, as long as it is one.
    pub(crate) fn read(&mut self, limit: Limit, now: Instant, ingest_time: i64) -> Result<LogRead, Error> {
        let ended = self.advance(limit, now);
        let mut read = self.assembler.take(ingest_time)?;
        match ended {
            Err(error) if read.events.is_empty() => Err(error),
            Err(_) => Ok(read),
            Ok(finished) => {
                read.finished = finished;
                Ok(read)
            }
        }
    }

    /// `true` at the end of a log that is not followed.
    fn advance(&mut self, limit: Limit, now: Instant) -> Result<bool, Error> {
        let bytes_max = limit.bytes.clamp(1, READ_BYTES_MAX);
        let mut scanned = 0;
        while !self.finished
            && self.assembler.rows() < limit.rows.max(1)
            && self.assembler.bytes() < bytes_max
            && scanned < SCANNED_BYTES_MAX
        {
            let next = match &mut self.lines {
                Some((lines, _)) => lines.next()?,
                None => Next::End,
            };
            match next {
                Next::Line(place) => {
                    self.line(&place)?;
                    self.last_line = now;
                    scanned += place.end - place.begin;
                }
                Next::TooLong { begin } => self.too_long(begin)?,
                Next::Partial(place) => match self.at_end(Some(place), now)? {
                    AtEnd::Again => {}
                    AtEnd::Wait => break,
                    AtEnd::Finished => self.finished = true,
                },
                Next::End => match self.at_end(None, now)? {
                    AtEnd::Again => {}
                    AtEnd::Wait => break,
                    AtEnd::Finished => self.finished = true,
                },
            }
        }
        Ok(self.finished)
    }

    fn line(&mut self, place: &LinePlace) -> Result<(), Error> {
        let Some((lines, numbers)) = &mut self.lines else { return Ok(()) };
        let mut number = || numbers.current();
        let at = Place { begin: place.begin, end: place.end, number: &mut number };
        if let Err(wrong) = self.assembler.line(at, lines.bytes(place)) {
            let error = malformed(&wrong, lines.path(), place.begin, numbers.current());
            match self.behaviour.on_decode_error {
                OnDecodeError::Fail => return Err(error),
                OnDecodeError::Skip => self.assembler.skip(place.end),
            }
            tracing::warn!(code = error.code, "passed over a line: {}", error.what);
        }
        lines.consume(place);
        numbers.advance();
        Ok(())
    }

    fn too_long(&mut self, begin: u64) -> Result<(), Error> {
        let Some((lines, numbers)) = &mut self.lines else { return Ok(()) };
        let error = too_long(lines.path(), begin, numbers.current());
        if self.behaviour.on_decode_error == OnDecodeError::Fail {
            return Err(error);
        }
        tracing::warn!(code = error.code, "passed over a line: {}", error.what);
        let end = lines.skip_too_long()?;
        self.assembler.skip(end);
        numbers.advance();
        Ok(())
    }

    /// Nothing (more than a part of a line) is there: waits, goes to the next file, or is done.
    fn at_end(&mut self, partial: Option<LinePlace>, now: Instant) -> Result<AtEnd, Error> {
        let Some((lines, _)) = &self.lines else {
            return Ok(match self.files.begin(now)? {
                Some((file, offset)) => {
                    let lines = Lines::open(&file.path, offset)?;
                    self.assembler.begin_file(&file.stream, &file.path, offset);
                    self.lines = Some((lines, LineNumbers::new(&file.path, offset)));
                    AtEnd::Again
                }
                None if self.behaviour.follow => AtEnd::Wait,
                None => AtEnd::Finished,
            });
        };
        let turn = self.files.turn(lines, now)?;
        match (turn, partial) {
            (Turn::Again, _) => return Ok(AtEnd::Again),
            (Turn::Wait, _) => {
                if self.assembler.in_transaction() && now.duration_since(self.last_line) >= self.behaviour.idle {
                    self.assembler.end_silently();
                }
                return Ok(AtEnd::Wait);
            }
            (Turn::Over | Turn::Next, Some(partial)) => {
                if self.partial(&partial, turn)? {
                    return Ok(AtEnd::Again);
                }
            }
            (Turn::Over | Turn::Next, None) => {}
        }
        let end = self.lines.as_ref().map_or(0, |(lines, _)| lines.offset());
        if turn == Turn::Over {
            self.assembler.end_silently();
            self.assembler.end_file(end);
            return Ok(AtEnd::Finished);
        }
        self.assembler.end_file(end);
        self.files.leave(end);
        self.lines = None;
        Ok(AtEnd::Again)
    }

    /// The last line of a file that will not be written any more has no line end. `true` if it was taken or passed over.
    fn partial(&mut self, partial: &LinePlace, turn: Turn) -> Result<bool, Error> {
        let Some((lines, numbers)) = &mut self.lines else { return Ok(false) };
        if is_whole(lines.bytes(partial)) {
            return self.line(partial).map(|()| true);
        }
        let error = report::unfinished(lines.path(), partial.begin, numbers.current());
        if self.behaviour.on_decode_error == OnDecodeError::Fail {
            return Err(error);
        }
        self.assembler.skip(lines.offset());
        tracing::warn!(code = error.code, "passed over a line: {}", error.what);
        // At the end of the log somebody may still finish it: the next run finds it where it begins.
        let passed = turn == Turn::Next;
        if passed {
            lines.consume(partial);
        }
        Ok(passed)
    }
}

/// Is a line without its end a whole JSON value, and nothing more?
pub(crate) fn is_whole(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|text| {
        let mut cursor = Cursor::new(text);
        cursor.value().and_then(|_| cursor.end()).is_ok()
    })
}

/// How long a read waits for something to come, and how often it looks.
const WAIT: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// [`Core`] as a log reader.
pub(crate) struct Reader {
    core: Option<Core>,
    running: Option<JoinHandle<(Core, Result<LogRead, Error>)>>,
}

impl Reader {
    pub(crate) fn new(core: Core) -> Self {
        Self { core: Some(core), running: None }
    }

    /// One read of the core's. Dropped while it runs, the next call gets its answer.
    async fn step(&mut self, limit: Limit) -> Result<LogRead, Error> {
        if let Some(mut core) = self.core.take() {
            self.running = Some(tokio::task::spawn_blocking(move || {
                let read = core.read(limit, Instant::now(), micros_since_1970());
                (core, read)
            }));
        }
        let broken = |why: String| Error::new(Kind::Fatal, "jsonl-reader", why, "this is a fault in urutau: please report it");
        let Some(running) = &mut self.running else { return Err(broken("the reader is gone after a fault".to_owned())) };
        let (core, read) = running.await.map_err(|e| broken(format!("reading was broken off: {e}")))?;
        self.running = None;
        self.core = Some(core);
        read
    }
}

#[async_trait]
impl LogReader for Reader {
    async fn next(&mut self, limit: Limit) -> Result<LogRead, Error> {
        let mut waited = Duration::ZERO;
        loop {
            let read = self.step(limit).await?;
            if read.finished || !read.events.is_empty() || waited >= WAIT {
                return Ok(read);
            }
            tokio::time::sleep(LOOK_EVERY).await;
            waited += LOOK_EVERY;
        }
    }
}

fn micros_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
