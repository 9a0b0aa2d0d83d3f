//! May reading go on at a stored position? Files that shrank, vanished, grew behind our back or came too early say no.

use std::io::{Read, Seek, SeekFrom};

use contract::{Error, Kind};
use kernel::position::{Offset, Position};

use super::{LogFile, open, unreadable};

/// Compares the files that are there with a position that was read from.
pub(crate) fn check_resumable(files: &[LogFile], from: &Position) -> Result<(), Error> {
    let begun = from.streams().last().map(|(stream, _)| stream);
    for (stream, offset) in from.streams() {
        match files.iter().find(|file| file.stream == *stream) {
            Some(file) if file.bytes < offset.0 => return Err(shrunk(file, offset)),
            Some(_) => {}
            // With a later file begun, this one was read to its end: it may go.
            None if begun != Some(stream) => {}
            None => {
                return Err(Error::new(
                    Kind::PositionLost,
                    "jsonl-file-gone",
                    format!(
                        "the file '{stream}' is gone; the copy holds its first {} bytes and it is not known whether there were more",
                        offset.0
                    ),
                    "put the file back; or copy the tables anew into another target",
                ));
            }
        }
    }
    for file in files.iter().take_while(|file| begun.is_some_and(|begun| file.stream < *begun)) {
        let offset = from.offset(&file.stream);
        if offset.0 < file.bytes {
            return Err(if offset == Offset(0) { came_too_late(file) } else { grew(file, offset.0) });
        }
    }
    Ok(())
}

/// A position must be where a line begins. (A last line without an end that was complete may have got its end since.)
pub(crate) fn line_begins_at(file: &LogFile, offset: u64) -> Result<(), Error> {
    if offset == 0 || offset > file.bytes {
        return Ok(());
    }
    let mut around = Vec::new();
    let read = |around: &mut Vec<u8>| {
        let mut handle = open(&file.path)?;
        let io = |e| unreadable(&file.path, "read", &e);
        handle.seek(SeekFrom::Start(offset - 1)).map_err(io)?;
        handle.take(2).read_to_end(around).map_err(io)
    };
    read(&mut around)?;
    match around[..] {
        [b'\n', ..] | [_] | [_, b'\n' | b'\r'] => Ok(()),
        _ => Err(Error::new(
            Kind::PositionLost,
            "jsonl-not-a-line",
            format!("{}: no line begins at byte {offset}, where the copy stands", file.path.display()),
            "the file was rewritten: put the old one back; or copy the tables anew into another target",
        )),
    }
}

pub(crate) fn shrunk(file: &LogFile, offset: Offset) -> Error {
    Error::new(
        Kind::PositionLost,
        "jsonl-file-shorter",
        format!(
            "{} holds {} bytes and the copy stands at byte {}: it was cut or replaced",
            file.path.display(),
            file.bytes,
            offset.0
        ),
        "put the old file back; or copy the tables anew into another target",
    )
}

/// An earlier file has more than was read of it before a later one was begun.
pub(crate) fn grew(file: &LogFile, read: u64) -> Error {
    Error::new(
        Kind::Config,
        "jsonl-file-order",
        format!(
            "{} grew from {read} to {} bytes after a later file was begun: its new events would come out of order",
            file.path.display(),
            file.bytes
        ),
        "write to the last file only, in the order of the names; move the new lines to the end of the last file",
    )
}

/// A file sorts before one that was begun, and nothing of it was read.
pub(crate) fn came_too_late(file: &LogFile) -> Error {
    Error::new(
        Kind::Config,
        "jsonl-file-order",
        format!("{} is new and its name sorts before a file that was already begun", file.path.display()),
        "give new files names that sort behind all others; rename this one",
    )
}
