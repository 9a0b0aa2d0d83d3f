//! A source: a log of changes, and what can be asked of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::id::{TableName, TransactionName};
use kernel::position::{Coordinate, LogIdentity, Position, Transaction};
use rows::{ChangeBatch, TableSchema, Type};

use crate::{Chunks, Error, Finding, RowsByKey};

/// A table that the pipeline names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableRequest {
    /// Its name at the source.
    pub table: TableName,
    /// The key columns that the pipeline file names; `None` where the source's catalogue or records say it.
    pub primary_key: Option<Vec<String>>,
    /// Column types that the pipeline file names.
    pub columns: BTreeMap<String, Type>,
    /// Does `before` hold the whole old row? Else only its key columns are trusted.
    pub before_is_full: bool,
    /// Is every row kept, and none netted? Then values that a row does not carry can't be found later, and such a row comes as a
    /// refused change.
    pub keeps_every_row: bool,
}

/// A table as the source describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceTable {
    /// What its change batches look like.
    pub schema: Arc<TableSchema>,
    /// Was a type guessed from values? Then `plan` and the log say so.
    pub inferred: bool,
}

/// A table that no pipeline describes yet: what a new pipeline file begins with.
#[derive(Debug)]
pub struct Sketch {
    /// Its name at the source.
    pub table: TableName,
    /// What is known of it, or why it can't be copied as it is. A type that nothing tells is unknown here, and no error.
    pub found: Result<SourceTable, Error>,
    /// How large it is, if the source knows without counting.
    pub size: Option<TableSize>,
}

impl From<SourceTable> for Sketch {
    /// Nothing is wrong with it, and nobody knows how large it is.
    fn from(found: SourceTable) -> Self {
        Self { table: found.schema.table.clone(), found: Ok(found), size: None }
    }
}

/// About how large a table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableSize {
    /// Rows, if they were ever estimated.
    pub rows: Option<u64>,
    /// Bytes at the source, indexes included.
    pub bytes: u64,
}

/// Log that a source keeps for this pipeline and would discard without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// So many bytes.
    pub kept_bytes: u64,
    /// After so many bytes more it discards what the pipeline needs; `None` without such a bound.
    pub left_bytes: Option<u64>,
}

/// Where a reading of the log begins, and where it must divide.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Start {
    /// Everything in here was read before.
    pub from: Position,
    /// Where the tables stand, one further on than the other. Each of these stood between two transactions of an earlier
    /// reading; it must stand between two of this one, too, or a table skips rows that it does not have. A log that marks the
    /// end of every transaction does so by itself; a source that took a silence for an end needs to be told.
    pub stands: Vec<Position>,
}

impl From<Position> for Start {
    /// A reading for tables that all stand where it begins.
    fn from(from: Position) -> Self {
        Self { from, stands: Vec::new() }
    }
}

/// What opening the log found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedLog {
    /// Which history it is.
    pub identity: LogIdentity,
    /// All that can no longer be streamed. A table must have covered it already (rule P4).
    pub floor: Position,
    /// Where the log ends now.
    pub end: Position,
}

/// How much one read may bring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Rows, all tables together. A reader may go over it by one transaction's piece that it cannot divide.
    pub rows: usize,
    /// Bytes of memory, near enough.
    pub bytes: u64,
}

/// What one read brought.
#[derive(Clone, Debug, Default)]
pub struct LogRead {
    /// The rows, one batch or more a table.
    pub batches: Vec<Arc<ChangeBatch>>,
    /// What happened, in log order, with references into `batches`.
    pub events: Vec<LogEvent>,
    /// How visibility calls the transactions of these events. Only a source whose tables can be read in chunks, or whose rows by their
    /// keys, knows, and it names every one.
    pub names: BTreeMap<Transaction, TransactionName>,
    /// The log has an end and this was it (a file that is not followed): nothing will ever come after these events.
    pub finished: bool,
}

/// One thing that the log says.
#[derive(Clone, PartialEq, Debug)]
pub enum LogEvent {
    /// Neighbouring rows of one table and one transaction. The rows of one change (a changed key's two) are never divided.
    Rows {
        /// Which of the read's batches.
        batch: usize,
        /// Which of its rows.
        rows: Range<usize>,
        /// Their transaction.
        transaction: Transaction,
    },
    /// The table was emptied.
    Truncated {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
    },
    /// From here on the table's rows have another schema. Comes before the first such row; a reading that begins with this
    /// schema need not tell it again.
    Schema {
        /// In which transaction.
        transaction: Transaction,
        /// Where in it: below the first such row, and no row's own place, or that row would count as taken with it.
        coordinate: Coordinate,
        /// What its change batches look like from here on.
        schema: Arc<TableSchema>,
    },
    /// A change of one table that cannot be taken: its value does not fit, its key is null. Repeats on every reading.
    Refused {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
        /// What is wrong and what to do.
        error: Error,
    },
    /// A transaction ended.
    Ended {
        /// The transaction.
        transaction: Transaction,
        /// A position that contains it and everything before it in its stream, nothing after it.
        upto: Position,
        /// When the source committed it, microseconds since 1970, if it says so.
        commit_time: Option<i64>,
    },
    /// Nothing for us up to here.
    Keepalive {
        /// Up to where.
        upto: Position,
    },
}

/// Reads a log in order. Dropped to end the session.
#[async_trait]
pub trait LogReader: Send {
    /// What comes next. Waits a short while for something to come; then an empty answer is right. Cancel-safe.
    ///
    /// Everything before an error was delivered by earlier calls, finished transactions with their ends.
    async fn next(&mut self, limit: Limit) -> Result<LogRead, Error>;
}

/// A source.
#[async_trait]
pub trait Source: Send + Sync {
    /// Checks everything that could go wrong, without changing anything.
    async fn preflight(&self, tables: &[TableRequest]) -> Vec<Finding>;

    /// Makes at the source what its settings allow to be made and reading these tables needs: a slot, a publication. Only a run
    /// calls it, before it describes them; nothing else here changes anything at the source but `acknowledge`.
    async fn prepare(&self, tables: &[TableRequest]) -> Result<(), Error> {
        let _ = tables;
        Ok(())
    }

    /// Describes the tables asked for, all of them or one error that names every problem. `stored` holds the schema under
    /// which a table's copy was made, where there is one: what was inferred then stays as it is.
    async fn describe(
        &self,
        tables: &[TableRequest],
        stored: &BTreeMap<TableName, Arc<TableSchema>>,
    ) -> Result<Vec<SourceTable>, Error>;

    /// Tables that no pipeline describes yet, as far as anything tells them. A source that refuses to describe a column whose type
    /// nothing tells, so that no run begins with it, says here that it is unknown.
    async fn sketch(&self, tables: &[TableRequest]) -> Result<Vec<Sketch>, Error> {
        let described = self.describe(tables, &BTreeMap::new()).await?;
        Ok(described.into_iter().map(Sketch::from).collect())
    }

    /// The tables that could be asked for.
    async fn discover(&self) -> Result<Vec<TableName>, Error>;

    /// Which log this is, what can still be read of it, where it ends.
    async fn open(&self) -> Result<OpenedLog, Error>;

    /// Reads the log of `tables` from a position, from the beginning of every transaction that it does not contain.
    async fn stream(&self, start: &Start, tables: &[Arc<TableSchema>]) -> Result<Box<dyn LogReader>, Error>;

    /// Does its log tell every row from the first one on, so that a table may begin with it? Not if rows were there before the
    /// log: a database's must be read first, or the table begins where the log ends now.
    fn begins_with_log(&self) -> bool {
        true
    }

    /// The tables themselves, if they can be read beside the log.
    fn chunks(&self) -> Option<&dyn Chunks> {
        None
    }

    /// Its rows again, for values that its log leaves out of updates, if they can be read. Else a value that a row does not carry must
    /// be in an earlier row of the same commit, or the table halts.
    fn rows_by_key(&self) -> Option<&dyn RowsByKey> {
        None
    }

    /// Does it keep everything, whatever is acknowledged? Then nothing is, and what somebody rolled back at the sink can be
    /// read again.
    fn keeps_all(&self) -> bool {
        false
    }

    /// How much log the source keeps because of this pipeline; `None` if it does not, or nobody knows.
    async fn retention(&self) -> Result<Option<Retention>, Error> {
        Ok(None)
    }

    /// Do any two changes of one row come in the same order in every reading of the log, from whichever server (rule P5)? A source
    /// that cannot promise it is refused for targets that are kept by key.
    fn keeps_key_order(&self) -> bool {
        true
    }

    /// Lets the source forget everything in `upto`. Nothing else ever does.
    async fn acknowledge(&self, upto: &Position) -> Result<(), Error>;

    /// Turns a position into words that people who run this source know.
    fn describe_position(&self, position: &Position) -> String {
        position.to_string()
    }
}
