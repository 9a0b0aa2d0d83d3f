//! A connection: made, proven, and messages going both ways.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::authenticate::authenticate;
use super::backend::{self, Message};
use super::error::WireError;
use super::tls::{self, Tls};

/// A server, and who we are there.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) tls: Option<Tls>,
    /// What the server's administrator sees.
    pub(crate) application: String,
    /// Settings of the session.
    pub(crate) options: Vec<(String, String)>,
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Statements.
    Sql,
    /// Replication, and statements.
    Replication,
}

/// A connection.
pub(crate) struct Connection {
    stream: Stream,
    buffer: BytesMut,
    end_point: Option<Vec<u8>>,
    /// By which a statement of this session is cancelled.
    cancel: Option<CancelKey>,
}

/// What the server calls a session, and what only we know of it.
#[derive(Clone, Copy)]
struct CancelKey {
    process: i32,
    secret: i32,
}

enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

/// How long making a connection may take, all steps together.
const CONNECT: Duration = Duration::from_secs(20);
/// Bytes that one read may bring.
const READ_BYTES: usize = 64 << 10;

impl Endpoint {
    /// The server, for people.
    pub(crate) fn shown(&self) -> String {
        format!("{}:{}/{}", self.host, self.port, self.database)
    }

    /// Connects and proves who we are.
    pub(crate) async fn connect(&self, purpose: Purpose) -> Result<Connection, WireError> {
        match tokio::time::timeout(CONNECT, self.connect_now(purpose)).await {
            Ok(connected) => connected,
            Err(_) => Err(WireError::Io { doing: "connecting", error: io::ErrorKind::TimedOut.into() }),
        }
    }

    /// A connection on which nothing was said yet.
    async fn reach(&self) -> Result<Connection, WireError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(WireError::io("connecting"))?;
        stream.set_nodelay(true).map_err(WireError::io("connecting"))?;
        match &self.tls {
            None => Ok(Connection { stream: Stream::Plain(stream), buffer: BytesMut::new(), end_point: None, cancel: None }),
            Some(tls) => encrypted(stream, &self.host, tls).await,
        }
    }

    /// Asks the server to cancel what runs in a session. It does not say whether it did.
    pub(super) async fn cancel(&self, session: &Connection) -> Result<(), WireError> {
        let Some(CancelKey { process, secret }) = session.cancel else {
            return Err(WireError::Protocol("the server did not say how its statements are cancelled".into()));
        };
        let mut request = BytesMut::new();
        frontend::cancel_request(process, secret, &mut request);
        let cancelled = async {
            let mut connection = self.reach().await?;
            connection.send(&request).await?;
            // The server closes the connection once it has passed the wish on.
            match connection.receive().await {
                Ok(_) | Err(WireError::Io { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        match tokio::time::timeout(CONNECT, cancelled).await {
            Ok(cancelled) => cancelled,
            Err(_) => Err(WireError::Io { doing: "cancelling", error: io::ErrorKind::TimedOut.into() }),
        }
    }

    async fn connect_now(&self, purpose: Purpose) -> Result<Connection, WireError> {
        let mut connection = self.reach().await?;
        let mut parameters = vec![
            ("user", self.user.as_str()),
            ("database", self.database.as_str()),
            ("application_name", self.application.as_str()),
            ("client_encoding", "UTF8"),
        ];
        parameters.extend(self.options.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        if purpose == Purpose::Replication {
            parameters.push(("replication", "database"));
        }
        let mut startup = BytesMut::new();
        frontend::startup_message(parameters, &mut startup).map_err(|e| WireError::Protocol(e.to_string()))?;
        connection.send(&startup).await?;
        authenticate(&mut connection, &self.user, self.password.as_deref()).await?;
        loop {
            let message = connection.receive().await?;
            match message.kind {
                b'Z' => return Ok(connection),
                b'K' => connection.cancel = cancel_key(&message.body),
                // Settings of the session, notices: nothing that we need.
                b'S' | b'N' => {}
                other => return Err(WireError::Protocol(format!("'{}' came while the session began", char::from(other)))),
            }
        }
    }
}

fn cancel_key(body: &[u8]) -> Option<CancelKey> {
    let (process, secret) = body.split_first_chunk::<4>()?;
    Some(CancelKey { process: i32::from_be_bytes(*process), secret: i32::from_be_bytes(secret.try_into().ok()?) })
}

/// Asks for encryption. Exactly one byte is read in clear text, so that nobody can slip something in front of the rest.
async fn encrypted(mut stream: TcpStream, host: &str, tls: &Tls) -> Result<Connection, WireError> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request).await.map_err(WireError::io("asking for TLS"))?;
    match stream.read_u8().await.map_err(WireError::io("asking for TLS"))? {
        b'S' => {}
        b'N' => {
            return Err(WireError::Refused {
                code: "postgres-tls",
                what: "the server does not encrypt, and 'source.postgres.ssl.mode' says that it must".into(),
                remedy: "turn `ssl` on at the server",
            });
        }
        other => return Err(WireError::Protocol(format!("byte {other} in answer to asking for TLS"))),
    }
    let stream = tls.connect(host, stream).await?;
    let end_point = tls::end_point(&stream);
    Ok(Connection { stream: Stream::Encrypted(Box::new(stream)), buffer: BytesMut::new(), end_point, cancel: None })
}

impl Connection {
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.stream, Stream::Encrypted(_))
    }

    /// What a password can be bound to.
    pub(super) fn end_point(&self) -> Option<Vec<u8>> {
        self.end_point.clone()
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let sent = match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes).await,
            Stream::Encrypted(stream) => match stream.write_all(bytes).await {
                Ok(()) => stream.flush().await,
                Err(error) => Err(error),
            },
        };
        sent.map_err(WireError::io("sending"))
    }

    /// The next message; an error that the server reports is one. Cancel-safe.
    pub(super) async fn receive(&mut self) -> Result<Message, WireError> {
        loop {
            if let Some(message) = backend::take(&mut self.buffer)? {
                if message.kind == b'E' {
                    return Err(WireError::Server(backend::report(&message.body)));
                }
                return Ok(message);
            }
            self.buffer.reserve(READ_BYTES);
            let read = match &mut self.stream {
                Stream::Plain(stream) => stream.read_buf(&mut self.buffer).await,
                Stream::Encrypted(stream) => stream.read_buf(&mut self.buffer).await,
            };
            match read {
                Ok(0) => return Err(WireError::Io { doing: "receiving", error: io::ErrorKind::UnexpectedEof.into() }),
                Ok(_) => {}
                Err(error) => return Err(WireError::Io { doing: "receiving", error }),
            }
        }
    }

    /// Says good-bye, so that the server does not have to find out.
    pub(crate) async fn close(mut self) {
        let mut bytes = BytesMut::new();
        frontend::terminate(&mut bytes);
        // Whoever is gone already does not hear it, and that is as well.
        let _ = self.send(&bytes).await;
        let _ = match &mut self.stream {
            Stream::Plain(stream) => stream.shutdown().await,
            Stream::Encrypted(stream) => stream.shutdown().await,
        };
    }
}
