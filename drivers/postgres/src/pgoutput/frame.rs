//! What stands around the plugin's messages in the replication stream: their place in the log, the server's signs of life, and
//! our answers ("Streaming Replication Protocol", chapter 55.4 of the manual of 15).

use super::cursor::Cursor;
use super::{Lsn, Malformed};

/// One thing that the server sends while it streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// A message of the plugin.
    Data {
        /// Where the change that it tells of stands in the log. Of what is not a change: anything.
        at: Lsn,
        /// The message.
        message: &'a [u8],
    },
    /// Nothing but a sign of life.
    Keepalive {
        /// How far the log has been decoded. Outside a transaction: all commits below it were delivered.
        end: Lsn,
        /// Does the server want an answer at once?
        reply: bool,
    },
}

/// Reads what stands in one CopyData.
pub fn decode(bytes: &[u8]) -> Result<Frame<'_>, Malformed> {
    let mut from = Cursor::new(bytes);
    match from.u8("the kind of a frame")? {
        b'w' => {
            let at = Lsn(from.u64("the LSN of a frame")?);
            from.u64("the end of the log in a frame")?;
            from.i64("the time of a frame")?;
            Ok(Frame::Data { at, message: from.rest() })
        }
        b'k' => {
            let end = Lsn(from.u64("the LSN of a keepalive")?);
            from.i64("the time of a keepalive")?;
            let reply = from.u8("the wish of a keepalive")? != 0;
            from.end()?;
            Ok(Frame::Keepalive { end, reply })
        }
        found => Err(Malformed::Unknown { what: "the kind of a frame", found }),
    }
}

/// How far we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Received and decoded.
    pub received: Lsn,
    /// Durable: the server may forget everything before it. Zero says nothing.
    pub durable: Lsn,
    /// When it is said, microseconds since 2000.
    pub time: i64,
    /// Shall the server answer at once?
    pub reply: bool,
}

/// Bytes of a [`Standing`].
pub const STANDING_BYTES: usize = 34;

/// Writes how far we are, as it stands in one CopyData.
pub fn encode(standing: Standing) -> [u8; STANDING_BYTES] {
    let mut bytes = [0; STANDING_BYTES];
    bytes[0] = b'r';
    bytes[1..9].copy_from_slice(&standing.received.0.to_be_bytes());
    bytes[9..17].copy_from_slice(&standing.durable.0.to_be_bytes());
    bytes[17..25].copy_from_slice(&standing.durable.0.to_be_bytes());
    bytes[25..33].copy_from_slice(&standing.time.to_be_bytes());
    bytes[33] = u8::from(standing.reply);
    bytes
}
