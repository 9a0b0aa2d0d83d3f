//! The replication stream: a task of its own owns the connection, so that the server hears from us while nobody reads.
//!
//! What comes is queued up to a number of bytes; at that bound the task stops reading the socket, which is back-pressure for the
//! server, and goes on saying how far we are. Nothing but [`StreamOptions::durable`] moves what the server may forget, and never
//! beyond what came in this session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use postgres_protocol::message::frontend;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::backend;
use super::connection::Connection;
use super::error::WireError;
use super::query::{identifier, literal};
use crate::pgoutput::Lsn;
use crate::pgoutput::frame::{self, Frame, Standing};

/// What is streamed.
pub(crate) struct StreamOptions {
    pub(crate) slot: String,
    pub(crate) publication: String,
    /// Transactions that end at or before it are not sent.
    pub(crate) from: Lsn,
    /// What is durable, as it grows.
    pub(crate) durable: watch::Receiver<Lsn>,
}

/// A frame, which takes room in the queue until it is dropped.
pub(crate) struct Received {
    pub(crate) frame: Bytes,
    _room: OwnedSemaphorePermit,
}

/// A stream that goes on in the background until it is dropped.
pub(crate) struct Session {
    frames: mpsc::Receiver<Result<Received, WireError>>,
    ended: Ended,
}

/// Waits for the end of a session.
pub(crate) struct Ended(Option<JoinHandle<()>>);

/// Bytes of frames that wait to be read.
const QUEUE_BYTES: usize = 16 << 20;
/// What a frame counts beside its own bytes.
const FRAME_BYTES: usize = 64;
/// How often the server hears from us at least, and how often it is asked for a sign of life.
const STANDING_INTERVAL: Duration = Duration::from_secs(10);
/// Silence after which the server is gone. Generous: a server that decodes a huge transaction says nothing meanwhile.
const SILENCE: Duration = Duration::from_secs(300);
/// How long a session's farewell may take.
const FAREWELL: Duration = Duration::from_secs(2);

impl Session {
    /// Begins to stream over a connection for replication.
    pub(crate) async fn start(mut connection: Connection, options: StreamOptions) -> Result<Self, WireError> {
        let interval = standing_interval(&mut connection).await?;
        let publications = literal(&identifier(&options.publication));
        let statement = format!(
            "START_REPLICATION SLOT {} LOGICAL {} (proto_version '1', publication_names {publications}, binary 'true')",
            identifier(&options.slot),
            options.from
        );
        let mut bytes = BytesMut::new();
        frontend::query(&statement, &mut bytes).map_err(|e| WireError::Protocol(e.to_string()))?;
        connection.send(&bytes).await?;
        loop {
            let message = connection.receive().await?;
            match message.kind {
                b'W' => break,
                b'N' => noticed(&message.body)?,
                b'S' => {}
                other => return Err(WireError::Protocol(format!("'{}' came in place of the stream", char::from(other)))),
            }
        }
        let (sender, frames) = mpsc::channel(QUEUE_BYTES / FRAME_BYTES + 1);
        let stream = Stream {
            connection,
            seen: options.from,
            durable: options.durable,
            heard: Instant::now(),
            room: Arc::new(Semaphore::new(QUEUE_BYTES)),
            interval,
        };
        let task = tokio::spawn(stream.run(sender));
        Ok(Self { frames, ended: Ended(Some(task)) })
    }

    /// The next frame; after an error nothing comes any more. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Received, WireError> {
        match self.frames.recv().await {
            Some(received) => received,
            None => Err(WireError::Io { doing: "streaming", error: io::ErrorKind::UnexpectedEof.into() }),
        }
    }

    /// The next frame if one is there.
    pub(crate) fn try_next(&mut self) -> Option<Result<Received, WireError>> {
        self.frames.try_recv().ok()
    }

    /// What waits for the session's end; whoever holds it does not keep the session alive.
    pub(crate) fn ended(&mut self) -> Ended {
        Ended(self.ended.0.take())
    }
}

impl Ended {
    /// Waits, not for ever.
    pub(crate) async fn wait(self) {
        if let Some(task) = self.0 {
            // A panic of the task ended the session too.
            let _ = tokio::time::timeout(FAREWELL * 2, task).await;
        }
    }
}

/// Below what the server waits before it gives us up.
async fn standing_interval(connection: &mut Connection) -> Result<Duration, WireError> {
    let rows = connection.query("SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'").await?;
    let millis = rows.first().and_then(|row| row.first()?.as_ref()?.parse::<u64>().ok()).filter(|millis| *millis > 0);
    Ok(millis.map_or(STANDING_INTERVAL, |millis| Duration::from_millis((millis / 3).max(1))).min(STANDING_INTERVAL))
}

/// Since 18 a publication that is missing where the log is read is only a warning, behind which nothing comes: not for us.
fn noticed(body: &[u8]) -> Result<(), WireError> {
    let notice = backend::report(body);
    if notice.code == "55000" {
        return Err(WireError::Refused {
            code: "postgres-publication",
            what: format!("the server warns: {notice}"),
            remedy: "a publication must be older than the log that is read by it: make it, then make the slot anew and read the tables anew: `urutau table resnapshot`",
        });
    }
    tracing::debug!(%notice, "the server notes");
    Ok(())
}

struct Stream {
    connection: Connection,
    /// The furthest place in the log that was spoken of.
    seen: Lsn,
    durable: watch::Receiver<Lsn>,
    heard: Instant,
    room: Arc<Semaphore>,
    interval: Duration,
}

/// What woke the task.
enum Woken {
    NobodyReads,
    MoreIsDurable,
    Time,
    Room(OwnedSemaphorePermit),
    Came(Result<backend::Message, WireError>),
}

impl Stream {
    async fn run(mut self, to: mpsc::Sender<Result<Received, WireError>>) {
        match self.pass_on(&to).await {
            Ok(()) => {
                let _ = tokio::time::timeout(FAREWELL, self.farewell()).await;
            }
            Err(error) => {
                // There is a place in the queue for it: frames fill it by bytes, not by number.
                let _ = to.try_send(Err(error));
            }
        }
    }

    /// Until nobody reads any more.
    async fn pass_on(&mut self, to: &mpsc::Sender<Result<Received, WireError>>) -> Result<(), WireError> {
        let mut due = Instant::now();
        let mut waiting: Option<Bytes> = None;
        loop {
            let size =
                waiting.as_ref().map(|frame| u32::try_from((frame.len() + FRAME_BYTES).min(QUEUE_BYTES)).unwrap_or(u32::MAX));
            let room = self.room.clone();
            let woken = tokio::select! {
                biased;
                () = to.closed() => Woken::NobodyReads,
                Ok(()) = self.durable.changed() => Woken::MoreIsDurable,
                () = tokio::time::sleep_until(due) => Woken::Time,
                Ok(permit) = room.acquire_many_owned(size.unwrap_or(0)), if size.is_some() => Woken::Room(permit),
                came = self.connection.receive(), if size.is_none() => Woken::Came(came),
            };
            match woken {
                Woken::NobodyReads => return Ok(()),
                Woken::MoreIsDurable => self.say(false).await?,
                Woken::Time => {
                    due = Instant::now() + self.interval;
                    if size.is_none() && self.heard.elapsed() > SILENCE {
                        return Err(WireError::Io { doing: "streaming", error: io::ErrorKind::TimedOut.into() });
                    }
                    self.say(true).await?;
                }
                Woken::Room(room) => {
                    // While nothing could be taken nothing was listened to: the server's silence begins here.
                    self.heard = Instant::now();
                    if let Some(frame) = waiting.take() {
                        let _ = to.try_send(Ok(Received { frame, _room: room }));
                    }
                }
                Woken::Came(message) => waiting = self.came(message?).await?,
            }
        }
    }

    async fn came(&mut self, message: backend::Message) -> Result<Option<Bytes>, WireError> {
        self.heard = Instant::now();
        match message.kind {
            b'd' => {
                match frame::decode(&message.body).map_err(|e| WireError::Protocol(e.to_string()))? {
                    Frame::Data { at, .. } => self.seen = self.seen.max(at),
                    Frame::Keepalive { end, reply } => {
                        self.seen = self.seen.max(end);
                        if reply {
                            self.say(false).await?;
                        }
                    }
                }
                Ok(Some(message.body))
            }
            b'N' => noticed(&message.body).map(|()| None),
            b'S' => Ok(None),
            // The server shuts down.
            b'c' | b'C' | b'Z' => Err(WireError::Io { doing: "streaming", error: io::ErrorKind::UnexpectedEof.into() }),
            other => Err(WireError::Protocol(format!("'{}' came inside the stream", char::from(other)))),
        }
    }

    async fn say(&mut self, reply: bool) -> Result<(), WireError> {
        // The server takes any number, and silently leaves out what lies below it: never more than it sent itself.
        let durable = (*self.durable.borrow_and_update()).min(self.seen);
        let standing = frame::encode(Standing { received: self.seen, durable, time: now(), reply });
        let mut bytes = BytesMut::new();
        let data = frontend::CopyData::new(&standing[..]).map_err(|e| WireError::Protocol(e.to_string()))?;
        data.write(&mut bytes);
        self.connection.send(&bytes).await
    }

    async fn farewell(mut self) {
        let mut bytes = BytesMut::new();
        frontend::copy_done(&mut bytes);
        // Whoever is gone already does not hear it.
        let _ = self.say(false).await;
        let _ = self.connection.send(&bytes).await;
        self.connection.close().await;
    }
}

/// Microseconds since 2000.
fn now() -> i64 {
    const UNIX_TO_2000: u64 = 946_684_800;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.checked_sub(Duration::from_secs(UNIX_TO_2000)).and_then(|since| i64::try_from(since.as_micros()).ok()).unwrap_or(0)
}
