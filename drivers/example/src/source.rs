//! A source: a text file of changes.
//!
//! ```text
//! # notebook of the ferry office          the first line says which notebook it is
//! office.boats + 1 Alma                   table, what happens, the key, a word
//! office.boats + 2 Berta
//! --                                      the transaction is over
//! office.boats ~ 1 Alma II                changed
//! office.boats > 2 20 Berta               got another key
//! office.boats - 1                        gone
//! --
//! ```
//!
//! Every table has the columns `id int64`, which is its key, and `word string`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use contract::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use contract::kernel::id::{Identity, StreamName, TableName};
use contract::kernel::position::{Coordinate, LogIdentity, Offset, Position, Transaction};
use contract::rows::{ChangeBatch, Column, Operation, RowPhase, TableSchema, Tail, TransactionRun, Type};
use contract::{
    Error, Finding, Kind, Limit, LogEvent, LogRead, LogReader, OpenedLog, Severity, Source, SourceTable, Start, TableRequest,
    async_trait,
};

/// A notebook.
pub struct Notebook {
    path: PathBuf,
}

impl Notebook {
    /// The notebook in a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The first line and the number of bytes up to the end of the last finished transaction.
    ///
    /// What stands behind it is still being written. Nobody has committed it, so for us it is not there.
    fn extent(&self) -> Result<(String, u64), Error> {
        let content = fs::read(&self.path).map_err(|error| self.cannot_read(&error))?;
        let mut lines = content.split_inclusive(|byte| *byte == b'\n');
        let title = lines.next().filter(|line| line.starts_with(b"# ") && line.ends_with(b"\n")).ok_or_else(|| {
            let what = format!("{}: the first line should be '# ' and the notebook's name", self.path.display());
            Error::new(Kind::Config, "example-title", what, "give the notebook a name that no other has")
        })?;
        let (mut at, mut end) = (title.len(), title.len());
        for line in lines {
            at += line.len();
            if line == b"--\n" {
                end = at;
            }
        }
        Ok((String::from_utf8_lossy(title).trim().to_owned(), end as u64))
    }

    fn cannot_read(&self, error: &std::io::Error) -> Error {
        // Will it work later? A file that is not there will not come by waiting; a disk that fails may be mended.
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => Kind::Config,
            _ => Kind::Transient,
        };
        let what = format!("{} cannot be read: {error}", self.path.display());
        Error::new(kind, "example-notebook", what, "name a notebook that can be read")
    }
}

#[async_trait]
impl Source for Notebook {
    /// `urutau doctor` shows what comes from here. It must find what would make a run fail, and change nothing.
    async fn preflight(&self, _tables: &[TableRequest]) -> Vec<Finding> {
        match self.extent() {
            Ok(_) => Vec::new(),
            Err(error) => vec![Finding {
                severity: Severity::Error,
                code: error.code,
                subject: "source.path".into(),
                what: error.what,
                remedy: error.remedy,
            }],
        }
    }

    /// Here the answer needs no look into the file. A source that guesses types would look at `stored` first: what a copy
    /// was begun with stays as it is.
    async fn describe(
        &self,
        tables: &[TableRequest],
        _stored: &BTreeMap<TableName, Arc<TableSchema>>,
    ) -> Result<Vec<SourceTable>, Error> {
        let wrong: Vec<&str> = tables
            .iter()
            .filter(|t| t.primary_key.as_ref().is_some_and(|key| *key != ["id"]))
            .map(|t| t.table.as_str())
            .collect();
        if !wrong.is_empty() {
            // All problems in one message: nobody likes to mend a file seven times.
            let what = format!("the key of a notebook's table is `id`; another one is named for {}", wrong.join(", "));
            return Err(Error::new(Kind::Config, "example-key", what, "leave `primaryKey` out, or name [id]"));
        }
        Ok(tables.iter().map(|t| SourceTable { schema: Arc::new(schema(&t.table)), inferred: false }).collect())
    }

    async fn discover(&self) -> Result<Vec<TableName>, Error> {
        let content = fs::read_to_string(&self.path).map_err(|error| self.cannot_read(&error))?;
        let tables: BTreeSet<&str> = content.lines().skip(1).filter_map(|line| Some(line.split_once(' ')?.0)).collect();
        Ok(tables.into_iter().map(TableName::from).collect())
    }

    /// Which history this is, what of it can still be read, and where it ends. The kernel compares all three with what it has
    /// stored: a position of another notebook, or beyond this one's end, is refused before a line is read.
    async fn open(&self) -> Result<OpenedLog, Error> {
        let (title, end) = self.extent()?;
        let identity = Identity::from(title);
        Ok(OpenedLog {
            // One stream, which has no name. Coordinates are bytes of the file, so they are valid as long as it is this one.
            identity: LogIdentity {
                streams: [(StreamName::from(""), identity.clone())].into(),
                coordinates: Some(identity),
                ..LogIdentity::default()
            },
            // Nothing is ever torn out of a notebook.
            floor: Position::START,
            end: Position::scalar(end),
        })
    }

    async fn stream(&self, start: &Start, tables: &[Arc<TableSchema>]) -> Result<Box<dyn LogReader>, Error> {
        let (title, end) = self.extent()?;
        let Offset(from) = start.from.offset(&StreamName::from(""));
        if from > end {
            let what = format!("{} ends at byte {end}, reading was to go on at {from}", self.path.display());
            return Err(Error::new(
                Kind::PositionLost,
                "example-shorter",
                what,
                "put the notebook back, or copy it anew into another target",
            ));
        }
        // Positions are the ends of transactions, so this is where one begins. The beginning of all is behind the title.
        let at = from.max(title.len() as u64 + 1);
        let mut file = File::open(&self.path).map_err(|error| self.cannot_read(&error))?;
        file.seek(SeekFrom::Start(at)).map_err(|error| self.cannot_read(&error))?;
        let schemas = tables.iter().map(|schema| (schema.table.as_str().to_owned(), Arc::clone(schema))).collect();
        let lines = BufReader::new(file.take(end - at));
        Ok(Box::new(Reader { path: self.path.clone(), lines, at, begun: None, poison: None, schemas }))
    }

    /// Nothing is ever dropped, so nothing needs to be acknowledged either.
    fn keeps_all(&self) -> bool {
        true
    }

    /// A database would drop log here. Nothing else may ever have that effect: not reading, not closing a connection.
    async fn acknowledge(&self, _upto: &Position) -> Result<(), Error> {
        Ok(())
    }
}

fn schema(table: &TableName) -> TableSchema {
    TableSchema {
        table: table.clone(),
        columns: vec![Column::new("id", Type::Int64, false), Column::new("word", Type::String, true)],
        key: vec![0],
    }
}

/// A session: it knows how far it has read. Everything else is in the file.
struct Reader {
    path: PathBuf,
    lines: BufReader<std::io::Take<File>>,
    at: u64,
    /// Where the open transaction begins.
    begun: Option<u64>,
    /// What the next read says, because this one had something else to say first.
    poison: Option<Error>,
    schemas: BTreeMap<String, Arc<TableSchema>>,
}

#[async_trait]
impl LogReader for Reader {
    /// Rows go into one batch a table, events say in which order they happened. There is no `await` in here, so giving the
    /// call up loses nothing; where there is one, nothing may have been taken from the wire before it that is not kept in `self`.
    async fn next(&mut self, limit: Limit) -> Result<LogRead, Error> {
        if let Some(error) = &self.poison {
            return Err(error.clone());
        }
        let mut read = Building::default();
        // A limit is looked at between changes: the two rows of a changed key are never divided.
        while read.rows < limit.rows && read.bytes < limit.bytes {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).map_err(|error| self.broken(&error.to_string()))?;
            if length == 0 {
                return read.finish(true);
            }
            let at = self.at;
            self.at += length as u64;
            if let Err(error) = self.take(line.trim_end(), at, &mut read) {
                // Everything before an error is delivered first.
                self.poison = Some(error);
                break;
            }
        }
        if let (Some(error), true) = (&self.poison, read.events.is_empty()) {
            return Err(error.clone());
        }
        read.finish(false)
    }
}

impl Reader {
    fn take(&mut self, line: &str, at: u64, read: &mut Building) -> Result<(), Error> {
        // A transaction is named by its first byte, and is in every position beyond that.
        let transaction = Transaction { stream: StreamName::from(""), at: Offset(*self.begun.get_or_insert(at)) };
        if line == "--" {
            self.begun = None;
            // Everything up to here, this transaction with it, and nothing that comes later.
            let upto = Position::scalar(self.at);
            read.events.push(LogEvent::Ended { transaction, upto, commit_time: None });
            return Ok(());
        }
        // A line that belongs to no table stops the source: nobody can say whose row would be missing.
        let Some((table, change)) = line.split_once(' ') else {
            return Err(self.broken(&format!("the line at byte {at} does not begin with a table")));
        };
        // Tables that were not asked for are passed over. They do not change what the others' coordinates are.
        let Some(schema) = self.schemas.get(table) else { return Ok(()) };
        match parse(change) {
            Some(rows) => read.push(schema, &transaction, at, rows),
            // A bad change of a known table is refused, at the same place on every reading: this table halts, the others go on.
            None => {
                let what = format!("{}, table {table}: the change at byte {at} is none", self.path.display());
                let error = Error::new(Kind::Rejected, "example-change", what, "mend the line, or skip it");
                let coordinate = Coordinate { major: at, minor: 0 };
                read.events.push(LogEvent::Refused { table: TableName::from(table), transaction, coordinate, error });
            }
        }
        Ok(())
    }

    fn broken(&self, what: &str) -> Error {
        let what = format!("{}: {what}", self.path.display());
        Error::new(Kind::Poison, "example-line", what, "mend the line")
    }
}

/// A row of a change: what happened, the key, and the word if it is known.
type Row = (Operation, i64, Option<String>);

/// A changed key is a delete of the old one and an insert of the new one.
fn parse(change: &str) -> Option<Vec<Row>> {
    let mut parts = change.splitn(3, ' ');
    let (what, id) = (parts.next()?, parts.next()?.parse().ok()?);
    let word = parts.next().map(str::to_owned);
    Some(match (what, word) {
        ("+", Some(word)) => vec![(Operation::Insert, id, Some(word))],
        ("~", Some(word)) => vec![(Operation::Update, id, Some(word))],
        (">", Some(rest)) => {
            let (new, word) = rest.split_once(' ')?;
            vec![(Operation::Delete, id, None), (Operation::Insert, new.parse().ok()?, Some(word.to_owned()))]
        }
        ("-", None) => vec![(Operation::Delete, id, None)],
        _ => return None,
    })
}

/// A read that is being put together.
#[derive(Default)]
struct Building {
    batches: Vec<Columns>,
    events: Vec<LogEvent>,
    rows: usize,
    bytes: u64,
}

struct Columns {
    schema: Arc<TableSchema>,
    ids: Vec<i64>,
    words: Vec<Option<String>>,
    operations: Vec<Operation>,
    coordinates: Vec<Coordinate>,
    transactions: Vec<TransactionRun>,
}

impl Building {
    fn push(&mut self, schema: &Arc<TableSchema>, transaction: &Transaction, at: u64, rows: Vec<Row>) {
        let batch = self.batches.iter().position(|batch| batch.schema == *schema).unwrap_or_else(|| {
            self.batches.push(Columns::new(schema));
            self.batches.len() - 1
        });
        let columns = &mut self.batches[batch];
        let first = columns.ids.len();
        self.rows += rows.len();
        match columns.transactions.last_mut() {
            Some(run) if run.transaction == *transaction => run.rows += rows.len(),
            _ => columns.transactions.push(TransactionRun {
                transaction: transaction.clone(),
                rows: rows.len(),
                commit_time: None,
            }),
        }
        for (minor, (operation, id, word)) in (0..).zip(rows) {
            self.bytes += 24 + word.as_ref().map_or(0, String::len) as u64;
            columns.ids.push(id);
            columns.words.push(word);
            columns.operations.push(operation);
            // Where the line stands in the file, and which of its rows it is: a function of the log alone.
            columns.coordinates.push(Coordinate { major: at, minor });
        }
        let rows = first..columns.ids.len();
        self.events.push(LogEvent::Rows { batch, rows, transaction: transaction.clone() });
    }

    fn finish(self, finished: bool) -> Result<LogRead, Error> {
        let batches = self.batches.into_iter().map(Columns::finish).collect::<Result<_, _>>()?;
        Ok(LogRead { batches, events: self.events, finished, ..LogRead::default() })
    }
}

impl Columns {
    fn new(schema: &Arc<TableSchema>) -> Self {
        let schema = Arc::clone(schema);
        let (ids, words, operations) = (Vec::new(), Vec::new(), Vec::new());
        Self { schema, ids, words, operations, coordinates: Vec::new(), transactions: Vec::new() }
    }

    fn finish(self) -> Result<Arc<ChangeBatch>, Error> {
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(self.ids)), Arc::new(StringArray::from(self.words))];
        let data = RecordBatch::try_new(Arc::new(self.schema.arrow()), columns).map_err(|error| {
            let what = format!("rows of {} could not be put together: {error}", self.schema.table);
            Error::new(Kind::Fatal, "example-batch", what, "report this as a bug")
        })?;
        Ok(Arc::new(ChangeBatch {
            // The word of a deleted row is not known. That is not the same as null: it is absent. Here every row whose word is
            // missing is a deleted one, and of those only the key counts, so nothing has to be marked.
            absent: vec![None; self.schema.columns.len()],
            schema: self.schema,
            data,
            tail: Tail {
                operations: self.operations,
                coordinates: self.coordinates,
                transactions: self.transactions,
                // The time of reading; a notebook does not keep it.
                ingest_time: 0,
                phase: RowPhase::Stream,
            },
        }))
    }
}
