//! The recordings: how the connector was configured, and what a pipeline file would have to say for each.

use contract::TableRequest;
use rows::Type;
use serde_json::{Value as Json, json};

use crate::truth::{self, Event};

/// A recording, and what a pipeline would say about it.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) settings: Json,
    /// Column types of `shop.types_all`, where the recording has no schema parts.
    pub(crate) types: Vec<(&'static str, &'static str)>,
    /// Other columns that have to be declared.
    pub(crate) declared: Vec<(&'static str, &'static str, &'static str)>,
}

/// Types that are the same in every recording without schema parts.
const TYPES: &[(&str, &str)] = &[
    ("id", "int64"),
    ("b", "bool"),
    ("i2", "int16"),
    ("i4", "int32"),
    ("i8", "int64"),
    ("f4", "float32"),
    ("f8", "float64"),
    ("n_ps", "decimal(20,4)"),
    ("c", "string"),
    ("v", "string"),
    ("t", "string"),
    ("bin", "binary"),
    ("u", "uuid"),
    ("j", "json"),
    ("jb", "json"),
    ("x", "string"),
    ("d", "date"),
    ("tm", "time"),
    ("ttz", "string"),
    ("ts", "timestamp"),
    ("tstz", "timestamptz"),
    ("e", "enum"),
    ("em", "string"),
    ("ai", "list(int32)"),
    ("at", "list(string)"),
    ("inet", "string"),
    ("cidr", "string"),
    ("mac", "string"),
    ("bit1", "bool"),
    ("bit5", "binary"),
    ("vb", "binary"),
    ("pt", "struct(x float64, y float64, wkb binary, srid int32)"),
    ("r4", "string"),
    ("rts", "string"),
    ("o", "int64"),
];

pub(crate) fn variants() -> Vec<Variant> {
    let types = |more: &[(&'static str, &'static str)]| [TYPES, more].concat();
    let declared = |day, b| {
        vec![
            ("shop.parted", "day", day),
            ("shop.parted_2026a", "day", day),
            ("shop.parted_2026b", "day", day),
            ("shop.full_ident", "b", b),
            ("shop.toast_default", "bigb", "binary"),
            ("shop.toast_default", "bigarr", "list(string)"),
            ("shop.toast_default", "bigj", "json"),
        ]
    };
    let all_times = [("tm3", "time"), ("ts3", "timestamp"), ("ts0", "timestamp")];
    vec![
        Variant {
            name: "default",
            settings: json!({ "timeUnit": "us", "decimals": "base64" }),
            types: types(&[
                ("n_0", "decimal(38,0)"),
                ("n_free", "json"),
                ("m", "decimal(19,2)"),
                ("tm3", "int64"),
                ("ts3", "int64"),
                ("ts0", "int64"),
                ("iv", "int64"),
                ("h", "json"),
            ]),
            declared: declared("date", "decimal(10,2)"),
        },
        // Nothing needs to be declared where the events have their schema part.
        Variant { name: "schemas", settings: json!({}), types: vec![], declared: vec![] },
        Variant {
            name: "strings",
            settings: json!({ "decimals": "text" }),
            types: types(
                &[
                    &all_times[..],
                    &[
                        ("n_0", "decimal(38,0)"),
                        ("n_free", "string"),
                        ("m", "decimal(19,2)"),
                        ("iv", "string"),
                        ("h", "map(string,string)"),
                    ],
                ]
                .concat(),
            ),
            declared: declared("date", "decimal(10,2)"),
        },
        Variant {
            name: "connect",
            settings: json!({ "timeUnit": "ms", "binary": "hex", "unavailableValue": "__gone__" }),
            types: types(
                &[
                    &all_times[..],
                    &[
                        ("n_0", "float64"),
                        ("n_free", "float64"),
                        ("m", "decimal(19,2)"),
                        ("iv", "int64"),
                        ("h", "json"),
                        // Bits are base64 in this recording too: only bytea is hexadecimal.
                        ("bit5", "string"),
                        ("vb", "string"),
                        ("pt", "json"),
                    ],
                ]
                .concat(),
            ),
            declared: declared("date", "decimal(10,2)"),
        },
        Variant {
            name: "micros",
            settings: json!({ "timeUnit": "us", "decimals": "base64" }),
            types: types(
                &[
                    &all_times[..],
                    &[("n_0", "decimal(38,0)"), ("n_free", "json"), ("m", "decimal(19,3)"), ("iv", "int64"), ("h", "json")],
                ]
                .concat(),
            ),
            declared: declared("date", "decimal(10,2)"),
        },
    ]
}

/// The tables of a recording and what happened to them.
pub(crate) fn tables(variant: &str) -> Vec<(&'static str, Vec<Event>)> {
    let mut tables =
        vec![("shop.orders", truth::orders()), ("shop.evolve", truth::evolve()), ("shop.types_all", truth::types_all())];
    tables.push(("shop.toast_default", truth::toast_default()));
    if variant != "schemas" {
        tables.extend([("shop.toast_full", truth::toast_full()), ("shop.full_ident", truth::full_ident())]);
        match variant {
            "connect" => tables.push(("shop.parted", truth::parted_root())),
            _ => tables.extend([("shop.parted_2026a", truth::parted_first()), ("shop.parted_2026b", truth::parted_second())]),
        }
    }
    tables
}

pub(crate) fn requests(variant: &Variant, types: &[(&str, &str)]) -> Vec<TableRequest> {
    let request = |table: &str| {
        let declared = variant.declared.iter().filter(|(of, ..)| *of == table).map(|(_, column, kind)| (*column, *kind));
        let types = types.iter().copied().filter(|_| table == "shop.types_all");
        TableRequest {
            table: table.into(),
            // The records' keys name it; `full_ident` has none.
            primary_key: None,
            columns: declared.chain(types).map(|(column, kind)| (column.to_owned(), kind.parse::<Type>().unwrap())).collect(),
            before_is_full: matches!(table, "shop.full_ident" | "shop.toast_full"),
            keeps_every_row: false,
        }
    };
    tables(variant.name).iter().map(|(table, _)| request(table)).collect()
}
