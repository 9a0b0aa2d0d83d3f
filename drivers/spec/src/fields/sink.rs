//! The section `sink`.

use crate::field::{Field, Form, Shape, Word, Zero, address, field, name, secret, text, word};
use crate::words::{SchemaEvolution, WriteMode};

/// The kinds of sink.
static KINDS: &[Word] = &[
    word("iceberg", "Apache Iceberg tables."),
    word("jsonl", "Files of rows in JSON, one a table."),
    word("null", "Counts rows and forgets them: for trying a pipeline and for measuring."),
    word("iceberg+rest", "Apache Iceberg with a REST catalog.").not_yet(),
    word("clickhouse", "ClickHouse.").not_yet(),
    word("couchbase", "Couchbase.").not_yet(),
];

/// Both words for Iceberg.
const ICEBERG: &[&str] = &["iceberg", "iceberg+rest"];
const EMBEDDED: &[&str] = &["iceberg"];
const REST: &[&str] = &["iceberg+rest"];
const SERVERS: &[&str] = &["iceberg+rest", "clickhouse", "couchbase"];
const WITH_CLIENT: &[&str] = &["iceberg+rest", "couchbase"];
const COUCHBASE: &[&str] = &["couchbase"];

/// Where rows go.
pub(crate) static SINK: &[Field] = &[
    field("kind", Shape::Word(KINDS), "The kind of sink.").or("type").default("iceberg"),
    field(
        "uri",
        text("a directory"),
        "The directory of the warehouse: its catalog `catalog.db` and the tables' files. Relative paths begin \
            at the directory that urutau is started in.",
    )
    .of(EMBEDDED)
    .variable("URUTAU_SINK_URI")
    .required(),
    field("uri", text("a directory"), "The directory of the files.").of(&["jsonl"]).variable("URUTAU_SINK_URI").required(),
    field("uri", text("a directory"), "A directory for the positions.").of(&["null"]).without("the positions are forgotten too"),
    field("uri", address("the server's address"), "The server's address.").of(SERVERS).variable("URUTAU_SINK_URI").required(),
    field(
        "namespace",
        name("a namespace", Form::Namespace),
        "Where the tables stand: Iceberg's namespace, ClickHouse's database, Couchbase's bucket.",
    )
    .default("default"),
    field("schemaEvolution", Shape::Word(SchemaEvolution::WORDS), "What a schema change at the source does to the target.")
        .default("evolve")
        .go_default("fail"),
    field(
        "evolveSchema",
        Shape::Bool,
        "The Go system's word: `true` is `schemaEvolution: evolve`, `false` is `schemaEvolution: fail`.",
    )
    .of(ICEBERG)
    .without("`schemaEvolution` holds"),
    field("checkpoint", Shape::Section(CHECKPOINT), "When rows are committed: at the first of the three."),
    field("defaults", Shape::Section(DEFAULTS), "What holds for each table that does not say it."),
    field("deleteMode", Shape::Word(DELETE_MODES), "How a row that is gone or replaced is marked.")
        .of(ICEBERG)
        .default("vectors")
        .go_default("equality"),
    field("keyIndex", Shape::Section(KEY_INDEX), "Finds the row of a key.").of(ICEBERG),
    field("catalog", Shape::Word(CATALOGS), "What knows the tables.")
        .of(EMBEDDED)
        .without("by `uri`: a directory has its own SQLite catalog"),
    field("catalog", Shape::Word(REST_CATALOG), "What knows the tables.").of(REST).default("rest"),
    field("warehouse", text("a warehouse"), "The catalog's name for the warehouse.").of(EMBEDDED).not_yet(),
    field("warehouse", text("a warehouse"), "The catalog's name for the warehouse.").of(REST),
    field("clientId", text("a client"), "Who we are at the catalog.").of(EMBEDDED).not_yet(),
    field("clientId", text("a client"), "Who we are at the catalog; Couchbase: the user.")
        .of(WITH_CLIENT)
        .variable("URUTAU_SINK_CLIENT_ID"),
    field("clientSecret", secret("a secret"), "The proof of it.").of(EMBEDDED).not_yet(),
    field("clientSecret", secret("a secret"), "The proof of it; Couchbase: the password.")
        .of(WITH_CLIENT)
        .variable("URUTAU_SINK_CLIENT_SECRET"),
    field("scope", text("a scope"), "The rights that are asked for.").of(EMBEDDED).not_yet(),
    field("scope", text("a scope"), "The rights that are asked for.")
        .of(REST)
        .variable("URUTAU_SINK_SCOPE")
        .without("all rights"),
    field("s3", Shape::Section(S3), "The object store.").of(ICEBERG).without("from the catalog").not_yet(),
    field(
        "maintenance",
        Shape::Section(MAINTENANCE),
        "Jobs that rewrite and remove old files. (Old snapshots and metadata files are removed with each \
            commit anyway.)",
    )
    .of(ICEBERG),
    field("commitMode", Shape::Word(COMMIT_MODES), "How rows and their position get to the server.")
        .of(COUCHBASE)
        .default("fast"),
];

static CHECKPOINT: &[Field] = &[
    field("interval", Shape::Duration(Zero::Refused), "So long after the first row.").default_by_kind(&[(ICEBERG, "10s")], "1s"),
    field("maxRows", Shape::Number { least: 1, most: 1_000_000_000 }, "So many rows.")
        .default_by_kind(&[(ICEBERG, "1000000")], "100000"),
    field("maxBytes", Shape::Size, "So many bytes of rows.").default_by_kind(&[(ICEBERG, "256Mi")], "64Mi"),
];

static DEFAULTS: &[Field] = &[
    field("writeMode", Shape::Word(WriteMode::WORDS), "How rows are applied.").default("upsert"),
    field("targetFileSize", Shape::Size, "The size at which a data file is closed and the next one begun.")
        .of(ICEBERG)
        .default("512Mi"),
];

static DELETE_MODES: &[Word] = &[
    word("vectors", "A deletion vector for each data file (format version 3).").or("positional"),
    word("positions", "Position deletes (format version 2), for readers that do not know vectors.").not_yet(),
    word("equality", "Equality deletes, which most readers are slow on or refuse.").not_yet(),
];

static CATALOGS: &[Word] = &[
    word("sql", "A SQLite file in the warehouse's directory."),
    word("rest", "A REST catalog.").not_yet(),
    word("glue", "AWS Glue.").not_yet(),
];

static REST_CATALOG: &[Word] = &[word("rest", "A REST catalog.")];

static COMMIT_MODES: &[Word] = &[word("fast", "Rows first, then the position."), word("atomic", "Both in one transaction.")];

static KEY_INDEX: &[Field] = &[
    field("memory", Shape::Size, "So much memory, all tables together. A table that needs more halts before it commits.")
        .default("256Mi"),
    field("path", text("a directory"), "A place on disk for what does not fit in memory.")
        .without("below the cache folder")
        .not_yet(),
];

static S3: &[Field] = &[
    field("endpoint", address("an address"), "The server, if it is not AWS.").without("from the catalog"),
    field("region", text("a region"), "The region.").without("from the catalog"),
    field("accessKeyId", secret("a key"), "Who we are.").without("from the catalog"),
    field("secretAccessKey", secret("a secret"), "The proof of it.").without("from the catalog"),
    field("sessionToken", secret("a token"), "The proof of a session.").without("from the catalog"),
    field("pathStyle", Shape::Bool, "The bucket stands in the path, not in the host's name.").without("from the catalog"),
];

static MAINTENANCE: &[Field] = &[
    field("enabled", Shape::Bool, "Runs the jobs.").default("false").only("false"),
    field("compaction", Shape::Section(COMPACTION), "Small files become large ones.").without("off").not_yet(),
    field("snapshotExpiry", Shape::Section(SNAPSHOT_EXPIRY), "Old snapshots are forgotten.").without("off").not_yet(),
    field("orphanCleanup", Shape::Section(ORPHAN_CLEANUP), "Files that no snapshot names are removed.").without("off").not_yet(),
];

static COMPACTION: &[Field] = &[
    field("interval", Shape::Duration(Zero::Refused), "The time between two runs.").default("5m"),
    field("targetFileSize", Shape::Size, "How large the files become.").default("512Mi"),
    field("minInputFiles", Shape::Number { least: 1, most: 1_000_000 }, "With fewer files nothing is done.").default("5"),
];

static SNAPSHOT_EXPIRY: &[Field] = &[
    field("interval", Shape::Duration(Zero::Refused), "The time between two runs.").default("10m"),
    field("retainLast", Shape::Number { least: 1, most: 1_000_000 }, "So many are always kept.").default("1"),
    field("maxAge", Shape::Duration(Zero::Refused), "Younger ones are kept: the longest time that urutau may stand still.")
        .default("168h"),
];

static ORPHAN_CLEANUP: &[Field] = &[
    field("interval", Shape::Duration(Zero::Refused), "The time between two runs.").default("1h"),
    field("olderThan", Shape::Duration(Zero::Refused), "Younger files are left alone; at least `1h`.").default("72h"),
];
