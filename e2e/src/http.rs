//! The few bytes of HTTP that asking an endpoint needs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// An answer of an endpoint.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status: 200 and so on.
    pub status: u16,
    /// What it says.
    pub body: String,
}

/// A port of the loopback interface that nobody listens at.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a port has a number").port()
}

/// Asks an endpoint; `None` if nobody answers.
pub fn get(port: u16, path: &str) -> Option<Answer> {
    ask(port, "GET", path)
}

/// Asks an endpoint to do something; `None` if nobody answers.
pub fn post(port: u16, path: &str) -> Option<Answer> {
    ask(port, "POST", path)
}

/// What the run that listens there says of one of its tables.
pub fn table(port: u16, name: &str) -> Option<serde_json::Value> {
    let status: serde_json::Value = serde_json::from_str(&get(port, "/statusz")?.body).ok()?;
    status["tables"].get(name).cloned()
}

fn ask(port: u16, method: &str, path: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some(Answer { status: head.split(' ').nth(1)?.parse().ok()?, body: body.to_string() })
}
