//! The pipeline file's type names are those of the rows: `spec` checks them without knowing `rows`, so the two are compared here.

use std::str::FromStr;

use contract::rows::Type;
use spec::ColumnType;

/// Every canonical type, and texts that are none.
const TEXTS: &[&str] = &[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "decimal(12,2)",
    "decimal(38,0)",
    "decimal(39,0)",
    "decimal(0,0)",
    "decimal(5,6)",
    "decimal(5)",
    "string",
    "json",
    "binary",
    "binary(16)",
    "binary(0)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
    "enum",
    "list(int64)",
    "list(list(string))",
    "list()",
    "map(string,int64)",
    "map(string)",
    "map(list(int64),string)",
    "struct(a int64, b list(string))",
    "struct(a int64, a string)",
    "struct()",
    "integer",
    "text",
    "INT64",
    "",
    "int64 ",
    "list(int64",
];

#[test]
fn a_type_that_the_file_accepts_is_a_type_of_the_rows_and_the_other_way_round() {
    let mut accepted = 0;
    for text in TEXTS {
        let (in_file, in_rows) = (ColumnType::from_str(text), Type::from_str(text));
        assert_eq!(in_file.is_ok(), in_rows.is_ok(), "'{text}': the file says {in_file:?}, the rows say {in_rows:?}");
        if let (Ok(in_file), Ok(in_rows)) = (in_file, in_rows) {
            assert_eq!(in_file.as_str(), in_rows.to_string(), "'{text}' has one canonical form");
            accepted += 1;
        }
    }
    assert!(accepted >= 25 && accepted < TEXTS.len(), "both kinds were compared: {accepted} of {}", TEXTS.len());
}
