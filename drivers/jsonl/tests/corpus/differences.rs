//! Where what the connector carries is not what the database had, each with its reason; and which rows are refused. An entry
//! that no event needs fails the test.

/// A value that lands otherwise than the database had it.
pub(crate) struct Difference {
    /// In which recordings.
    pub(crate) variants: &'static [&'static str],
    pub(crate) table: &'static str,
    /// Which of the table's events, from 0.
    pub(crate) events: &'static [usize],
    pub(crate) column: &'static str,
    /// What lands: exactly what the event carries.
    pub(crate) lands: &'static str,
    pub(crate) why: &'static str,
}

/// A row that cannot land.
pub(crate) struct Refused {
    pub(crate) variants: &'static [&'static str],
    pub(crate) table: &'static str,
    pub(crate) event: usize,
    /// What the message ends with.
    pub(crate) says: &'static str,
    pub(crate) why: &'static str,
}

const PRECISE: &[&str] = &["default", "micros"];
const ALL: &[&str] = &["default", "schemas", "strings", "connect", "micros"];
const TYPES: &str = "shop.types_all";

const fn types(
    variants: &'static [&'static str],
    events: &'static [usize],
    column: &'static str,
    lands: &'static str,
    why: &'static str,
) -> Difference {
    Difference { variants, table: TYPES, events, column, lands, why }
}

const DEFAULT_FOR_NULL: &str =
    "JsonConverter puts a column's DEFAULT in the place of NULL (replace.null.with.default, on by default)";
const VARIABLE_SCALE: &str =
    "without a schema part a numeric without bounds is an object of scale and base64; declared as json it lands as such";
const INTERVAL: &str = "interval.handling.mode=numeric: microseconds, months of 30.4375 days";
const DOUBLE: &str = "decimal.handling.mode=double: a double holds 15 to 17 digits";
const DATE_INFINITY: &str = "the connector turns an infinite date into days and overflows";
const TIMESTAMP_INFINITY: &str = "the connector turns an infinite timestamp into its largest number";
const ZONED_TIME: &str = "the connector shifts times with a zone to UTC and drops the offset";
const NO_UNIT: &str = "time.precision.mode=adaptive: milliseconds here, microseconds elsewhere, and no schema part that says which; declared as int64";
const NAN_IS_NULL: &str = "decimal.handling.mode=precise: NaN becomes null";
const BITS: &str = "binary.handling.mode=hex concerns bytea only: bits stay base64; declared as string";
const MILLIS: &str = "time.precision.mode=connect: milliseconds, the rest is dropped";

pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        variants: &["default", "schemas", "connect", "micros"],
        table: "shop.orders",
        events: &[7, 14],
        column: "qty",
        lands: "1",
        why: DEFAULT_FOR_NULL,
    },
    Difference {
        variants: &["strings"],
        table: "shop.toast_default",
        events: &[1],
        column: "bigb",
        lands: "null",
        why: "binary.handling.mode=base64: a large bytea that an update did not touch arrives as null (connector 3.6.1)",
    },
    types(PRECISE, &[1, 5], "n_free", "{\"scale\":35,\"value\":\"PIE/ZjbZhPJZW2o3KlPQ\"}", VARIABLE_SCALE),
    types(PRECISE, &[3], "n_free", "{\"scale\":20,\"value\":\"AQ==\"}", VARIABLE_SCALE),
    types(PRECISE, &[4], "n_free", "{\"scale\":1,\"value\":\"D5Uan6OihslPDnZsOQ==\"}", VARIABLE_SCALE),
    types(&["default", "schemas", "micros"], &[2], "n_free", "null", NAN_IS_NULL),
    types(&["strings"], &[2], "n_free", "NAN", "decimal.handling.mode=string spells it so"),
    types(&["connect"], &[1, 5], "n_free", "3.141592653589793", DOUBLE),
    types(&["connect"], &[3], "n_free", "1e-20", DOUBLE),
    types(&["connect"], &[1, 5], "n_0", "1e38", DOUBLE),
    types(&["micros"], &[1, 5], "m", "12.340", "money.fraction.digits=3"),
    types(ALL, &[1, 5], "ttz", "08:00:00Z", ZONED_TIME),
    types(&["default", "schemas", "connect", "micros"], &[1, 5], "iv", "37091106789000", INTERVAL),
    types(&["default"], &[1, 5], "tm3", "3723456", NO_UNIT),
    types(&["default"], &[1, 5], "ts3", "1772282096123", NO_UNIT),
    types(&["default"], &[1, 5], "ts0", "1772282096000", NO_UNIT),
    types(&["connect"], &[1, 5], "tm", "23:59:59.123", MILLIS),
    types(&["connect"], &[1, 5], "ts", "2026-02-28T12:34:56.123", MILLIS),
    types(&["strings"], &[1, 5], "h", "{k: v, n: null}", "hstore.handling.mode=map; declared as a map"),
    types(ALL, &[3], "d", "day -2147472692", DATE_INFINITY),
    types(ALL, &[3], "ts", "microsecond 9223372036825200000", TIMESTAMP_INFINITY),
    types(&["connect"], &[1, 5], "bit5", "FQ==", BITS),
    types(&["connect"], &[1, 5], "vb", "BQ==", BITS),
    types(
        &["connect"],
        &[1, 5],
        "pt",
        "{\"x\":1.5,\"y\":2.5,\"wkb\":\"AQEAAAAAAAAAAAD4PwAAAAAAAARA\",\"srid\":null}",
        "as bits: declared as json",
    ),
];

pub(crate) const REFUSED: &[Refused] = &[
    Refused {
        variants: ALL,
        table: TYPES,
        event: 3,
        says: "shop.types_all.tstz: expected timestamptz, found an infinite date or time",
        why: "no timestamp type holds infinity; declared as string it lands as it is",
    },
    Refused {
        variants: &["connect"],
        table: TYPES,
        event: 4,
        says: "shop.types_all.n_ps: expected decimal(20,4), found a number with too many digits before the point",
        why: "decimal.handling.mode=double: 9999999999999999.9999 arrives as 1.0E16, which has 17 digits before the point",
    },
];
