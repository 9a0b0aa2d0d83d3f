//! A folder with a small change file and a pipeline, and the binary run in it.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Where each test works.
pub struct Desk {
    folder: tempfile::TempDir,
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Orders and their lines in two transactions, and an update, a delete and a changed key in a third.
pub const CHANGES: &str = r#"{"before":null,"after":{"id":1,"customer":"Ada","total":"10.00"},"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"orders","txId":1,"ts_ms":1700000000000},"op":"c"}
{"before":null,"after":{"order_id":1,"line":1,"sku":"A-1"},"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"lines","txId":1,"ts_ms":1700000000000},"op":"c"}
{"before":null,"after":{"id":2,"customer":"Grace","total":"20.50"},"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"orders","txId":2,"ts_ms":1700000001000},"op":"c"}
{"before":null,"after":{"order_id":2,"line":1,"sku":"B-1"},"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"lines","txId":2,"ts_ms":1700000001000},"op":"c"}
{"before":{"id":1},"after":{"id":1,"customer":"Ada","total":"12.00"},"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"orders","txId":3,"ts_ms":1700000002000},"op":"u"}
{"before":{"order_id":2,"line":1},"after":null,"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"lines","txId":3,"ts_ms":1700000002000},"op":"d"}
{"before":{"id":2},"after":{"id":3,"customer":"Grace","total":"20.50"},"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"orders","txId":3,"ts_ms":1700000002000},"op":"u"}
"#;

/// An order whose key is null: the orders halt in front of it.
pub const NULL_KEY: &str = r#"{"before":null,"after":{"id":null,"customer":"Nobody","total":"1.00"},"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"orders","txId":4,"ts_ms":1700000003000},"op":"c"}
"#;

/// The pipeline, into a sink and with more settings of the source.
pub fn pipeline(source: &str, sink: &str) -> String {
    format!(
        "pipeline: desk
source: {{ kind: jsonl, path: changes.jsonl{source} }}
sink: {sink}
tables:
  - source: shop.orders
    primaryKey: [id]
    columns: [{{ name: total, type: \"decimal(12,2)\" }}]
  - {{ source: shop.lines, primaryKey: [order_id, line], target: order_lines }}
"
    )
}

pub const ICEBERG: &str = "{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: { interval: 100ms } }";
pub const JSONL: &str = "{ kind: jsonl, uri: ./out, checkpoint: { interval: 100ms } }";

impl Desk {
    pub fn new(source: &str, sink: &str) -> Desk {
        let desk = Desk { folder: tempfile::tempdir().expect("a folder") };
        desk.write("changes.jsonl", CHANGES);
        desk.write("pipeline.yaml", &pipeline(source, sink));
        desk
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a file can be written");
    }

    pub fn append(&self, name: &str, text: &str) {
        let there = std::fs::read_to_string(self.path().join(name)).expect("the file is there");
        self.write(name, &format!("{there}{text}"));
    }

    /// Names of everything in the folder, to see that nothing was changed.
    pub fn listing(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder can be read").flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
                let modified = entry.metadata().and_then(|metadata| metadata.modified()).expect("an entry has a time");
                found.push(format!("{} {modified:?}", entry.path().display()));
            }
        }
        found.sort();
        found
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_urutau"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        for variable in ["URUTAU_LOG", "URUTAU_SINK_URI", "RUST_BACKTRACE"] {
            command.env_remove(variable);
        }
        command
    }

    /// A command to its end.
    pub fn urutau(&self, arguments: &[&str]) -> Said {
        let output = self.command(arguments).output().expect("the binary starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("what it says is text");
        Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// A run to the end of the file.
    pub fn run(&self) -> Said {
        self.urutau(&["run", "--until-current", "--listen", "off"])
    }

    /// A run that goes on, at an address of its own.
    pub fn start(&self) -> Running {
        // Found free a moment ago: another process may be faster, then the run says so and the test fails, rarely.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        drop(listener);
        let log = std::fs::File::create(self.path().join("run.log")).expect("a file for the log");
        let out = std::fs::File::create(self.path().join("run.out")).expect("a file for the output");
        let child = self.command(&["run", "--listen", &address]).stderr(log).stdout(out).spawn().expect("the binary starts");
        Running { child, address }
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// The state of a table as `urutau tables` tells programs.
    pub fn table(&self, source: &str) -> Value {
        let said = self.urutau(&["tables", "--output", "json"]).expect(0);
        let tables = said.json()["tables"].as_array().expect("a list of tables").clone();
        tables.into_iter().find(|table| table["table"] == source).expect("the table is listed")
    }

    /// The rows of a table as `urutau peek` tells programs, in the order of their text.
    pub fn rows(&self, target: &str) -> Vec<Value> {
        let said = self.urutau(&["peek", target, "--output", "json", "--limit", "100"]).expect(0);
        let mut rows = said.json()["rows"].as_array().expect("a list of rows").clone();
        rows.sort_by_key(Value::to_string);
        rows
    }
}

/// A run that goes on. Ended when the test is.
pub struct Running {
    child: Child,
    pub address: String,
}

impl Running {
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().expect("kill starts");
        assert!(sent.success(), "the run is gone already");
    }

    pub fn wait(&mut self) -> Option<i32> {
        wait_until("the run's end", || self.child.try_wait().expect("a child can be asked")).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Said {
    #[track_caller]
    pub fn expect(self, code: i32) -> Said {
        assert_eq!(self.code, Some(code), "-- stdout\n{}\n-- stderr\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn has(self, words: &[&str]) -> Said {
        for word in words {
            assert!(self.stdout.contains(word) || self.stderr.contains(word), "nothing says '{word}': {self:#?}");
        }
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("one JSON value is expected, {error}: {self:#?}"))
    }
}

/// Waits for something that must come; long enough for a machine with much else to do.
#[track_caller]
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{what} did not come");
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}
