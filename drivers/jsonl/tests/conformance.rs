//! Change files keep the laws of sources: a log that has an end, one that is followed and marks its transactions' ends, and one
//! of several files.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use contract::conformance::source::{self, SourceAbilities, SourceHarness, SourcePlace, Step, TABLES, What};
use contract::{Error, Source, async_trait};
use jsonl::JsonlSource;
use serde_json::{Value, json};

/// How the log is written and read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One file, read to its end.
    File,
    /// One file that is followed; END markers tell where transactions end.
    Followed,
    /// A file for every second transaction, read to the end of the last.
    Files,
}

struct Logs(Form);

struct Log {
    form: Form,
    folder: tempfile::TempDir,
    /// Transactions so far.
    written: AtomicU64,
}

impl Log {
    fn append(&self, lines: &str) {
        let number = match self.form {
            Form::File | Form::Followed => 0,
            Form::Files => self.written.load(Ordering::Relaxed) / 2,
        };
        let path: PathBuf = self.folder.path().join(format!("changes-{number:03}.jsonl"));
        OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(lines.as_bytes()).unwrap();
    }

    /// One transaction of these lines.
    fn transaction(&self, lines: impl Fn(u64) -> String) {
        let id = self.written.load(Ordering::Relaxed) + 100;
        let end = format!("{}\n", json!({ "status": "END", "id": format!("{id}:{id}"), "event_count": 1, "ts_ms": id }));
        self.append(&format!("{}{}", lines(id), if self.form == Form::Followed { end.as_str() } else { "" }));
        self.written.fetch_add(1, Ordering::Relaxed);
    }
}

fn event(table: &str, transaction: u64, op: &str, before: &Value, after: &Value) -> String {
    let (schema, table) = table.split_once('.').unwrap();
    let source =
        json!({ "connector": "postgresql", "schema": schema, "table": table, "txId": transaction, "ts_ms": transaction });
    format!("{}\n", json!({ "before": before, "after": after, "source": source, "op": op }))
}

fn change(step: &Step, transaction: u64) -> String {
    let row = |id: &i64, word: &str| json!({ "id": id, "word": word });
    let key = |id: &i64| json!({ "id": id });
    let (op, before, after) = match &step.what {
        What::Insert(id, word) => ("c", Value::Null, row(id, word)),
        What::Update(id, word) => ("u", Value::Null, row(id, word)),
        What::Rekey(old, new, word) => ("u", key(old), row(new, word)),
        What::Delete(id) => ("d", key(id), Value::Null),
    };
    event(step.table, transaction, op, &before, &after)
}

#[async_trait]
impl SourceHarness for Logs {
    fn abilities(&self) -> SourceAbilities {
        SourceAbilities { refuses: true, poisons: true, discards: false, reads_rows: false }
    }

    async fn fresh(&self) -> Result<Box<dyn SourcePlace>, Error> {
        let log = Log { form: self.0, folder: tempfile::tempdir().unwrap(), written: AtomicU64::new(0) };
        // A file has the identity of its first line, and there is no log before there is one.
        log.append(&event("kit.others", 1, "c", &Value::Null, &json!({ "id": 1 })));
        Ok(Box::new(log))
    }
}

#[async_trait]
impl SourcePlace for Log {
    async fn open(&self) -> Result<Arc<dyn Source>, Error> {
        let mut settings = json!({
            "path": self.folder.path().join("changes-*.jsonl").to_str(),
            "follow": self.form == Form::Followed,
        });
        let settings = std::mem::take(settings.as_object_mut().unwrap());
        Ok(Arc::new(JsonlSource::new(&settings)?))
    }

    async fn write(&self, transactions: &[Vec<Step>]) -> Result<(), Error> {
        for steps in transactions {
            self.transaction(|id| steps.iter().map(|step| change(step, id)).collect());
        }
        Ok(())
    }

    async fn write_refused(&self) -> Result<(), Error> {
        self.transaction(|id| event(TABLES[0], id, "c", &Value::Null, &json!({ "id": null, "word": "no key" })));
        Ok(())
    }

    async fn write_poison(&self) -> Result<(), Error> {
        // The line after a transaction that nothing marks may be one more of it, unless it says that it is not.
        self.transaction(|id| format!("{}{{ this is no JSON\n", event("kit.others", id, "c", &Value::Null, &json!({ "id": 1 }))));
        Ok(())
    }
}

async fn keeps_all_laws(form: Form) {
    source::check(&Logs(form)).await.must_hold(&[
        ("start-within-streamable", "nothing makes this source forget"),
        ("rows-are-read-again-by-key", "this source's rows can't be read again"),
    ]);
}

#[tokio::test]
async fn a_file_keeps_all_laws_of_sources() {
    keeps_all_laws(Form::File).await;
}

#[tokio::test]
async fn a_followed_file_keeps_all_laws_of_sources() {
    keeps_all_laws(Form::Followed).await;
}

#[tokio::test]
async fn several_files_keep_all_laws_of_sources() {
    keeps_all_laws(Form::Files).await;
}
