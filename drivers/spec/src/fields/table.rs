//! An entry of `tables`.

use crate::field::{Field, Form, Shape, Word, Zero, address, field, name, text, word};
use crate::words::{BeforeImage, FilterOp, MetadataSource, OnDelete, OnError, OnValue, TableMode, WriteMode};

/// One table.
pub(crate) static TABLE: &[Field] = &[
    field("source", text("the table's name at the source"), "The table's name at the source, for example `shop.orders`.")
        .required(),
    field("target", name("the table's name at the target", Form::Target), "The table's name at the target.")
        .without("the source's name behind its last dot"),
    field(
        "primaryKey",
        Shape::Names,
        "The columns of the key, in order. Events in plain envelopes do not tell it, so it is required for them.",
    )
    .without("what the source says"),
    field("columns", Shape::Sections(COLUMN), "Column types where the source has none, and what holds for one column only.")
        .without("what the source says"),
    field("columnFilter", Shape::Names, "Only these columns are copied; the key's columns must be among them.")
        .without("all columns"),
    field("filter", Shape::Filter, "Only rows that satisfy the condition are copied. A row that no longer does is deleted.")
        .without("all rows"),
    field(
        "filterImmutable",
        Shape::Bool,
        "Asserts that no change ever moves a row into the filter or out of it; required to append filtered rows.",
    )
    .default("false")
    .not_yet(),
    field("cast", Shape::Casts, "Columns that get another type at the target.").without("each column keeps its type"),
    field("metadata", Shape::Sections(METADATA), "Columns of the target that the log fills.").without("none"),
    field("writeMode", Shape::Word(WriteMode::WORDS), "How rows are applied.").without("`sink.defaults.writeMode`"),
    field("onDelete", Shape::Word(OnDelete::WORDS), "What a delete does in a table that is appended to.").default("record"),
    field("onError", Shape::Word(OnError::WORDS), "What a fault of this table does to the run.").default("halt"),
    field("onValue", Shape::Word(OnValue::WORDS), "What happens to a value that the type of its `cast` cannot hold.")
        .default("error"),
    field("beforeImage", Shape::Word(BeforeImage::WORDS), "What the image of a row before its change holds.").default("key"),
    field("mode", Shape::Word(TableMode::WORDS), "How changes are found.").default("cdc"),
    field("cursor", text("a column"), "The column by which `mode: incremental` reads on.").not_yet(),
    field("createIfNotExists", Shape::Bool, "Makes the table at the target if it is not there.").default("true").only("true"),
    field("partitionBy", Shape::Names, "How the target is partitioned.").not_yet(),
    field("workers", Shape::Section(WORKERS), "How many workers share the table."),
    field("identity", Shape::Names, "The metadata columns that tell one appended row from another.").not_yet(),
    field("chunkColumn", text("a column of the key"), "The column by which the snapshot is divided.").not_yet(),
    field("bootstrap", Shape::Section(BOOTSTRAP), "How the table begins.")
        .without("a snapshot, or the beginning of the log where there is none")
        .not_yet(),
    field("enrich", Shape::Sections(ENRICH), "Columns that a small other table adds.").not_yet(),
];

static COLUMN: &[Field] = &[
    field("name", text("a column"), "The column's name at the source.").required(),
    field("type", Shape::ColumnType, "Its type.").without("what the source says"),
    field("onValue", Shape::Word(OnValue::WORDS), "What happens to a value of it that the type of its `cast` cannot hold.")
        .without("the table's `onValue`"),
    field("from", text("a path in the payload"), "Where in the payload the value stands, for Kafka's raw and avro formats.")
        .not_yet(),
    field("required", Shape::Bool, "Refuses a payload without it.").default("false").only("false"),
];

static METADATA: &[Field] = &[
    field("from", Shape::Word(MetadataSource::WORDS), "What the column is filled with.").required(),
    field("as", text("a column"), "Its name at the target.").without("the word of `from`"),
];

static WORKERS: &[Field] = &[
    field("number", Shape::Number { least: 1, most: 1024 }, "So many.").default("1").only("1"),
    field("max", Shape::Number { least: 1, most: 1024 }, "At most so many, when more are needed.").default("32").not_yet(),
    field("cpu", text("a Kubernetes quantity"), "Cores of each.").not_yet(),
    field("memory", text("a Kubernetes quantity"), "Memory of each.").not_yet(),
];

static BOOTSTRAP: &[Field] = &[
    field("mode", Shape::Word(BOOTSTRAP_MODES), "Where the first rows come from.").default("snapshot"),
    field("startAt", Shape::Word(START_AT), "Where in the log the table begins.").default("current"),
    field("position", text("a position"), "The position, for `startAt: explicit`."),
];

static BOOTSTRAP_MODES: &[Word] = &[
    word("snapshot", "The table is read."),
    word("adopt", "The target is taken as it is."),
    word("adopt-verify", "The target is compared, and what differs is read again."),
];

static START_AT: &[Word] = &[word("current", "Where the log ends."), word("explicit", "At `position`.")];

static ENRICH: &[Field] = &[
    field("table", text("a name"), "The other table's name here.").required(),
    field("source", Shape::Section(ENRICH_SOURCE), "Where it is read.").required(),
    field("on", Shape::Texts { secret: false }, "The column of ours and the column of it that must be equal.").required(),
    field("select", Shape::Names, "Its columns that are added."),
    field("as", Shape::Texts { secret: false }, "Other names for them."),
    field("joinType", Shape::Word(JOIN_TYPES), "What happens to a row without a partner.").required(),
    field("refresh", Shape::Duration(Zero::Refused), "How often it is read again.").default("5m"),
    field("onColdStart", Shape::Word(COLD_START), "What happens to rows before it was read.").default("buffer"),
    field("bufferLimits", Shape::Section(BUFFER_LIMITS), "How many rows wait for it."),
    field("maxRows", Shape::Number { least: 1, most: i32::MAX as u64 }, "It may not have more rows."),
];

static ENRICH_SOURCE: &[Field] = &[
    field("uri", address("a server's address"), "The server.").required(),
    field("query", text("a query"), "What is read.").required(),
];

static JOIN_TYPES: &[Word] = &[
    word("left", "It is kept, the columns are null.").or("left outer"),
    word("inner", "It is dropped."),
    word("left semi", "It is dropped, and nothing is added to the others."),
    word("left anti", "Only such rows are kept."),
];

static COLD_START: &[Word] =
    &[word("buffer", "They wait."), word("pass", "They go on without the columns."), word("drop", "They are dropped.")];

static BUFFER_LIMITS: &[Field] = &[
    field("maxEvents", Shape::Number { least: 1, most: 1_000_000_000 }, "So many rows."),
    field("maxWait", Shape::Duration(Zero::Refused), "So long."),
];

/// A condition: exactly one of these.
pub(crate) static FILTER: &[Field] = &[
    field("all", Shape::Filters, "All of these hold."),
    field("any", Shape::Filters, "One of these holds."),
    field("not", Shape::Filter, "This does not hold. (Of a comparison with null neither it nor its opposite holds.)"),
    field("where", Shape::Section(WHERE), "This comparison holds.").without("no comparison"),
];

static WHERE: &[Field] = &[
    field("col", text("a column"), "The column that is compared.").required(),
    field("op", Shape::Word(FilterOp::WORDS), "How it is compared.").required(),
    field(
        "value",
        Shape::Literal,
        "What it is compared with: a list for `in` and `not_in`, nothing for `is_null` and `is_not_null`.",
    ),
];
