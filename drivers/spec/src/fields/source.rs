//! The section `source`.

use crate::field::{Field, Form, Shape, Word, Zero, address, field, name, secret, text, word};
use crate::words::{OnDecodeError, OnTruncate};

/// The kinds of source.
static KINDS: &[Word] = &[
    word("jsonl", "Files of change events in JSON, one a line."),
    word("postgres", "PostgreSQL, by logical replication."),
    word("mysql", "MySQL, by its binary log.").not_yet(),
    word("mariadb", "MariaDB, by its binary log.").not_yet(),
    word("kafka", "Kafka topics with change events.").not_yet(),
    word("sqlserver", "SQL Server, by its change tables.").not_yet(),
];

const JSONL: &[&str] = &["jsonl"];
const KAFKA: &[&str] = &["kafka"];
const EVENTS: &[&str] = &["jsonl", "kafka"];
const POSTGRES: &[&str] = &["postgres"];
const MYSQL: &[&str] = &["mysql", "mariadb"];
const DATABASES: &[&str] = &["postgres", "mysql", "mariadb", "sqlserver"];
const SERVERS: &[&str] = &["postgres", "mysql", "mariadb", "sqlserver", "kafka"];

/// Where changes come from.
pub(crate) static SOURCE: &[Field] = &[
    field("kind", Shape::Word(KINDS), "The kind of source.").or("type").required(),
    field(
        "path",
        text("a file, or a pattern such as `changes/*.jsonl`"),
        "The file or files of change events. Relative paths begin at the directory that urutau is started in.",
    )
    .of(JSONL)
    .required(),
    field("follow", Shape::Bool, "Keeps reading as the files grow; else the run ends at their end.").of(JSONL).default("false"),
    field("format", Shape::Word(JSONL_FORMATS), "What a line holds.").of(JSONL).default("debezium"),
    field("format", Shape::Word(KAFKA_FORMATS), "What a message holds.").of(KAFKA).default("debezium"),
    field(
        "onDecodeError",
        Shape::Word(OnDecodeError::WORDS),
        "What a line or message that cannot be read does; it belongs to no table.",
    )
    .of(EVENTS)
    .default("fail"),
    field(
        "transactionIdle",
        Shape::Duration(Zero::Refused),
        "When an open transaction counts as ended, with `follow` and for Kafka.",
    )
    .of(EVENTS)
    .default("5s"),
    field(
        "unavailableValue",
        text("the connector's placeholder"),
        "What the connector writes in place of a large value that did not change; such a value counts as not \
            sent.",
    )
    .of(EVENTS)
    .default("__debezium_unavailable_value"),
    field("decimals", Shape::Word(DECIMALS), "How decimals are written in texts, where no schema part says it.")
        .of(JSONL)
        .default("auto"),
    field("binary", Shape::Word(BINARY), "How bytes are written in texts.").of(JSONL).default("base64"),
    field("timeUnit", Shape::Word(TIME_UNITS), "What numbers in columns of times count, where no schema part says it.")
        .of(JSONL)
        .default("none"),
    field("onTruncate", Shape::Word(OnTruncate::WORDS), "What a TRUNCATE at the source does.")
        .default("propagate")
        .go_default("ignore"),
    field("uri", address("the server's address"), "The server's address (Kafka: the brokers).")
        .of(SERVERS)
        .variable("URUTAU_SOURCE_URI")
        .without("required, unless `postgres` says it field by field"),
    field("snapshotUri", address("the server's address"), "Another address for reading tables, with read-only rights.")
        .of(DATABASES)
        .without("`uri`")
        .not_yet(),
    field(
        "hold",
        Shape::Section(HOLD),
        "How much log a halted or paused table may keep the source from discarding before it is released; it \
            needs a new snapshot then.",
    )
    .of(DATABASES),
    field(
        "serverId",
        Shape::Number { least: 1, most: u32::MAX as u64 },
        "The replica's number; each reader of one server has its own.",
    )
    .of(MYSQL)
    .default("1101"),
    field(
        "maxReconnectAttempts",
        Shape::Number { least: 0, most: u32::MAX as u64 },
        "How often a lost connection to the log is made again at once.",
    )
    .of(MYSQL)
    .default("3"),
    field("slotName", name("a replication slot", Form::SlotName), "The replication slot.").of(POSTGRES).required(),
    field("publication", name("a publication", Form::SlotName), "The publication.")
        .of(POSTGRES)
        .without("the slot's name and `_pub`"),
    field(
        "create",
        Shape::Bool,
        "Makes slot and publication, and adds the pipeline's tables to it; else what is missing is reported with \
            the SQL that makes it.",
    )
    .of(POSTGRES)
    .default("false"),
    field("postgres", Shape::Section(POSTGRES_FIELDS), "The connection field by field, and what only PostgreSQL has.")
        .of(POSTGRES)
        .without("`uri`"),
    field("snapshotMode", Shape::Word(NO_SNAPSHOT), "Kafka has no snapshots; this says so.").of(KAFKA).default("none"),
    field("groupId", text("a consumer group"), "The name under which brokers list the reader. Offsets live in the sink.")
        .of(KAFKA),
    field(
        "partitionedByPrimaryKey",
        Shape::Bool,
        "Asserts that all messages of one key are in one partition; required to write by key.",
    )
    .of(KAFKA)
    .default("false"),
    field("schemaRegistry", address("an address"), "The schema registry, for `format: avro`.").of(KAFKA),
    field("schemaRegistryAuth", Shape::Texts { secret: true }, "What the schema registry wants to know.").of(KAFKA),
    field("kafka", Shape::Section(KAFKA_FIELDS), "Security of the connection.").of(KAFKA).without("off"),
];

static JSONL_FORMATS: &[Word] = &[
    word("debezium", "One Debezium envelope a line, with or without its schema."),
    word("record", "One Kafka record a line: key and value as text, and headers."),
];

static DECIMALS: &[Word] = &[
    word("auto", "As they look; what looks like digits and like base64 is refused."),
    word("text", "As digits."),
    word("base64", "As base64 of the unscaled value."),
];

static BINARY: &[Word] =
    &[word("base64", "As base64."), word("base64url", "As base64 with `-` and `_`."), word("hex", "As hexadecimal digits.")];

static TIME_UNITS: &[Word] = &[
    word("none", "Nothing: they are refused."),
    word("ms", "Milliseconds."),
    word("us", "Microseconds."),
    word("ns", "Nanoseconds."),
];

static KAFKA_FORMATS: &[Word] = &[
    word("debezium", "Debezium envelopes in JSON."),
    word("raw", "The payload as it is; append only."),
    word("avro", "Avro, with a schema registry."),
];

static NO_SNAPSHOT: &[Word] = &[word("none", "No snapshot.")];

static HOLD: &[Field] = &[
    field("bytes", Shape::Size, "So much log.").default("10Gi"),
    field("time", Shape::Duration(Zero::Refused), "So long.").default("24h"),
];

static POSTGRES_FIELDS: &[Field] = &[
    field("host", text("a host name"), "The server."),
    field("port", PORT, "Its port.").default("5432"),
    field("database", text("a database"), "The database."),
    field("username", text("a user"), "The user."),
    field("password", secret("a password"), "The user's password."),
    field("params", Shape::Texts { secret: true }, "Further connection parameters."),
    field("ssl", Shape::Section(SSL), "Encryption."),
    field("ssh", Shape::Section(SSH), "A bastion to connect through.").without("a direct connection").not_yet(),
    field("maxThreads", Shape::Number { least: 1, most: 32 }, "Connections that read tables at the same time.")
        .without("the number of cores")
        .not_yet(),
    field("retryCount", Shape::Number { least: 0, most: 1000 }, "How often a failed statement is tried again at once.")
        .default("3")
        .not_yet(),
    field("cdc", Shape::Section(POSTGRES_CDC), "Logical decoding."),
    field("schemas", Shape::Names, "Only tables of these schemas are discovered.").without("all schemas"),
    field("discover", Shape::Bool, "Copies all tables that the user may read, instead of `tables`.")
        .default("false")
        .only("false"),
    field("replicaIdentity", Shape::Word(REPLICA_IDENTITIES), "What is done about the tables' replica identity.").default("keep"),
];

const PORT: Shape = Shape::Number { least: 1, most: 65535 };

static SSL: &[Field] = &[
    field("mode", Shape::Word(SSL_MODES), "How much of it.").default("disable"),
    field("ca", text("a file"), "The certificate authority, a PEM file."),
    field("cert", text("a file"), "The client's certificate, a PEM file."),
    field("key", text("a file"), "The client's key, a PEM file."),
];

static SSL_MODES: &[Word] = &[
    word("disable", "None."),
    word("require", "Encrypted, whoever answers."),
    word("verify-ca", "The server's certificate is checked."),
    word("verify-full", "The server's certificate and name are checked."),
];

static SSH: &[Field] = &[
    field("host", text("a host name"), "The bastion.").required(),
    field("port", PORT, "Its port.").default("22"),
    field("username", text("a user"), "The user there."),
    field("password", secret("a password"), "The user's password there."),
    field("privateKey", secret("a private key"), "The user's private key there, in PEM."),
    field("passphrase", secret("a passphrase"), "The private key's passphrase."),
    field("knownHosts", text("a file"), "The known hosts; an unknown bastion is refused.").without("the user's own"),
];

static POSTGRES_CDC: &[Field] = &[
    field("plugin", Shape::Word(PLUGINS), "The output plugin.").default("pgoutput"),
    field("initialWaitTime", Shape::Number { least: 30, most: 86_400 }, "Seconds to wait for the first answer of the slot.")
        .default("300")
        .not_yet(),
];

static PLUGINS: &[Word] = &[word("pgoutput", "PostgreSQL's own."), word("wal2json", "The extension of this name.").not_yet()];

static REPLICA_IDENTITIES: &[Word] =
    &[word("full", "It is set to FULL where it is not.").not_yet(), word("keep", "It is left alone.")];

static KAFKA_FIELDS: &[Field] = &[
    field("tls", Shape::Section(TLS), "Encryption.").without("off"),
    field("sasl", Shape::Section(SASL), "Who we are.").without("off"),
];

static TLS: &[Field] = &[
    field("ca", text("a file"), "The certificate authority, a PEM file."),
    field("cert", text("a file"), "The client's certificate, a PEM file."),
    field("key", text("a file"), "The client's key, a PEM file."),
    field("insecureSkipVerify", Shape::Bool, "Takes any broker for the right one.").default("false"),
];

static SASL: &[Field] = &[
    field("mechanism", Shape::Word(MECHANISMS), "How it is proven.").required(),
    field("username", text("a user"), "The user.").required(),
    field("password", secret("a password"), "The user's password.").required(),
];

static MECHANISMS: &[Word] = &[
    word("plain", "The password itself."),
    word("scram-sha-256", "SCRAM with SHA-256."),
    word("scram-sha-512", "SCRAM with SHA-512."),
];
