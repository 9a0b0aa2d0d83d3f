//! Types, their text, and the schema that is stored with a table's state.

use proptest::prelude::*;
use rows::schema::{SchemaProblem, TableSchema};
use rows::{Column, Type};

fn column(name: &str, kind: Type) -> Column {
    Column::new(name, kind, true)
}

#[test]
fn every_type_has_the_text_that_pipeline_files_use() {
    let texts = [
        ("bool", Type::Bool),
        ("int8", Type::Int8),
        ("int16", Type::Int16),
        ("int32", Type::Int32),
        ("int64", Type::Int64),
        ("uint8", Type::UInt8),
        ("uint16", Type::UInt16),
        ("uint32", Type::UInt32),
        ("uint64", Type::UInt64),
        ("float32", Type::Float32),
        ("float64", Type::Float64),
        ("decimal(12,2)", Type::Decimal { precision: 12, scale: 2 }),
        ("string", Type::String),
        ("json", Type::Json),
        ("binary", Type::Binary),
        ("binary(16)", Type::FixedBinary(16)),
        ("date", Type::Date),
        ("time", Type::Time),
        ("timestamp", Type::Timestamp),
        ("timestamptz", Type::TimestampTz),
        ("uuid", Type::Uuid),
        ("enum", Type::Enum),
        ("list(int64)", Type::List(Box::new(Type::Int64))),
        ("map(string,int64)", Type::Map(Box::new(Type::String), Box::new(Type::Int64))),
        ("struct(a int64, b string)", Type::Struct(vec![column("a", Type::Int64), column("b", Type::String)])),
        (
            "struct(a int64 not null, \"odd \"\"name\" list(date))",
            Type::Struct(vec![
                Column { nullable: false, ..column("a", Type::Int64) },
                column("odd \"name", Type::List(Box::new(Type::Date))),
            ]),
        ),
        ("unknown(money)", Type::Unknown("money".into())),
        ("unknown(time with time zone)", Type::Unknown("time with time zone".into())),
        ("unknown(\"numeric(5,2)\")", Type::Unknown("numeric(5,2)".into())),
    ];
    for (text, kind) in texts {
        assert_eq!(kind.to_string(), text);
        assert_eq!(text.parse(), Ok(kind));
    }
}

#[test]
fn spaces_do_not_matter_when_a_type_is_read() {
    assert_eq!("  decimal ( 12 , 2 ) ".parse(), Ok(Type::Decimal { precision: 12, scale: 2 }));
    assert_eq!("struct( a  int64  not  null )".parse::<Type>().unwrap().to_string(), "struct(a int64 not null)");
}

#[test]
fn a_type_that_is_not_one_is_refused_with_what_would_be_right() {
    let all = "The types are bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, string, json, binary, \
               date, time, timestamp, timestamptz, uuid, enum, decimal, list, map, struct, unknown";
    let refused = [
        ("integer", format!("there is no 'integer'; did you mean int32? {all}")),
        ("bigint", format!("there is no 'bigint'; did you mean int64? {all}")),
        ("text", format!("there is no 'text'; did you mean string? {all}")),
        ("double", format!("there is no 'double'; did you mean float64? {all}")),
        ("numeric(5,2)", format!("there is no 'numeric'; did you mean decimal(precision,scale)? {all}")),
        ("Int64", format!("there is no 'Int64'; did you mean int64? {all}")),
        ("timestmp", format!("there is no 'timestmp'; did you mean timestamp? {all}")),
        ("list(strng)", format!("there is no 'strng'; did you mean string? {all}")),
        ("", "a name is expected at the end".into()),
        ("decimal", "it is written decimal(precision,scale)".into()),
        ("decimal(12)", "it is written decimal(precision,scale)".into()),
        ("decimal(39,0)", "a decimal has 1 to 38 digits, not 39".into()),
        ("decimal(0,0)", "a decimal has 1 to 38 digits, not 0".into()),
        ("decimal(5,6)", "of 5 digits, 0 to 5 can stand after the point, not 6".into()),
        ("decimal(5,-1)", "of 5 digits, 0 to 5 can stand after the point, not -1".into()),
        ("decimal(05,1)", "'05' is not a number that can stand here".into()),
        ("decimal(500,1)", "'500' is not a number that can stand here".into()),
        ("decimal(x,1)", "a number is expected before 'x,1)'".into()),
        ("binary(0)", "a fixed binary has 1 to 2147483647 bytes, not 0".into()),
        ("binary(16", "')' is expected at the end".into()),
        ("list()", "a name is expected before ')'".into()),
        ("map(string)", "it is written map(key,value)".into()),
        ("struct(a int64, a string)", "two fields of a struct are called 'a'".into()),
        ("struct(a int64 not nil)", "after the type of the field 'a' only 'not null' may follow".into()),
        ("struct(\"a int64)", "a double quote is not closed".into()),
        ("int64 not null", "the type is complete before 'not null'".into()),
        (
            "unknown(numeric(5,2))",
            "the name of an unknown type that is not plain words stands in double quotes: unknown(\"numeric(5,2)\")".into(),
        ),
        ("unknown(\"\")", "an unknown type needs the name that the source has for it".into()),
    ];
    for (text, why) in refused {
        let error = text.parse::<Type>().expect_err(text);
        assert_eq!(error.why, why, "for '{text}'");
        assert_eq!(error.to_string(), format!("'{text}' is not a type: {why}"));
    }
}

#[test]
fn nesting_has_a_bound() {
    let nested = |depth: usize| format!("{}int64{}", "list(".repeat(depth), ")".repeat(depth));
    assert!(nested(32).parse::<Type>().is_ok());
    assert_eq!(nested(33).parse::<Type>().expect_err("33 deep").why, "types may be nested at most 32 deep");
    // Far deeper text is refused as well, not by running out of stack.
    assert!(nested(1_000_000).parse::<Type>().is_err());
}

const STORED: &str = r#"{
  "table": "shop.orders",
  "columns": [
    {
      "name": "id",
      "type": "int64",
      "nullable": false
    },
    {
      "name": "price",
      "type": "decimal(12,2)",
      "nullable": true
    },
    {
      "name": "tags",
      "type": "list(string)",
      "nullable": true
    }
  ],
  "key": [
    0
  ]
}"#;

fn orders() -> TableSchema {
    let columns = vec![
        Column { nullable: false, ..column("id", Type::Int64) },
        column("price", Type::Decimal { precision: 12, scale: 2 }),
        column("tags", Type::List(Box::new(Type::String))),
    ];
    TableSchema::new("shop.orders".into(), columns, vec![0]).expect("valid")
}

/// Stored with every table: a change of this text breaks existing copies.
#[test]
fn the_stored_form_of_a_schema_stays_as_it_is() {
    assert_eq!(serde_json::to_string_pretty(&orders()).unwrap(), STORED);
    assert_eq!(serde_json::from_str::<TableSchema>(STORED).unwrap(), orders());
}

#[test]
fn a_stored_schema_that_is_damaged_is_refused_by_name() {
    let damaged = STORED.replace("decimal(12,2)", "decimal(12)");
    let error = serde_json::from_str::<TableSchema>(&damaged).expect_err("no type").to_string();
    assert!(error.starts_with("'decimal(12)' is not a type: it is written decimal(precision,scale)"), "{error}");

    let damaged = STORED.replace("\"key\": [\n    0", "\"key\": [\n    3");
    let error = serde_json::from_str::<TableSchema>(&damaged).expect_err("no such column").to_string();
    assert!(error.starts_with("table shop.orders: the key names column index 3, but there are 3 columns"), "{error}");
}

#[test]
fn a_schema_that_cannot_be_is_refused() {
    let refused =
        |columns: Vec<Column>, key: Vec<usize>| TableSchema::new("t".into(), columns, key).expect_err("refused").problem;
    let int = |name| column(name, Type::Int64);

    assert_eq!(refused(vec![int("a"), int("")], vec![]), SchemaProblem::NamelessColumn { number: 2 });
    assert_eq!(refused(vec![int("a"), int("b"), int("a")], vec![]), SchemaProblem::DuplicateColumn { column: "a".into() });
    assert_eq!(refused(vec![int("a")], vec![1]), SchemaProblem::NoSuchKeyColumn { index: 1, columns: 1 });
    assert_eq!(refused(vec![int("a"), int("b")], vec![1, 0, 1]), SchemaProblem::KeyColumnTwice { column: "b".into() });
    let kind = Type::Decimal { precision: 40, scale: 2 };
    let why = "a decimal has 1 to 38 digits, not 40".to_owned();
    assert_eq!(refused(vec![column("a", kind.clone())], vec![]), SchemaProblem::InvalidType { column: "a".into(), kind, why });
}

#[test]
fn only_types_with_exact_equality_can_be_keys() {
    let can = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 decimal(12,2) string binary binary(16) date time timestamp \
               timestamptz uuid enum";
    for text in can.split_whitespace() {
        let columns = vec![column("k", text.parse().unwrap())];
        assert!(TableSchema::new("t".into(), columns, vec![0]).is_ok(), "{text}");
    }
    for text in ["float32", "float64", "json", "list(int64)", "map(string,int64)", "struct(a int64)", "unknown(money)"] {
        let kind: Type = text.parse().unwrap();
        let error = TableSchema::new("t".into(), vec![column("k", kind.clone())], vec![0]).expect_err(text);
        assert_eq!(error.problem, SchemaProblem::NoKeyType { column: "k".into(), kind });
        let told = format!(
            "table t: column 'k' cannot be part of the key, because values of type {text} cannot be compared exactly; \
             name other key columns or give it another type"
        );
        assert_eq!(error.to_string(), told);
    }
}

fn any_type() -> impl Strategy<Value = Type> {
    let simple =
        prop::sample::select(vec!["bool", "int8", "uint64", "float32", "string", "json", "binary", "date", "timestamptz"])
            .prop_map(|text| text.parse().unwrap());
    let leaf = prop_oneof![
        simple,
        (1u8..=38)
            .prop_flat_map(|p| (Just(p), 0..=i8::try_from(p).unwrap()))
            .prop_map(|(precision, scale)| Type::Decimal { precision, scale }),
        (1u32..=70_000).prop_map(Type::FixedBinary),
        "[ -~é]{1,12}".prop_map(Type::Unknown),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let field =
            ("[ -~ü]{1,8}", inner.clone(), any::<bool>()).prop_map(|(name, kind, nullable)| Column::new(name, kind, nullable));
        prop_oneof![
            inner.clone().prop_map(|element| Type::List(Box::new(element))),
            (inner.clone(), inner).prop_map(|(key, value)| Type::Map(Box::new(key), Box::new(value))),
            prop::collection::vec(field, 1..4)
                .prop_filter("names are unique", |fields| {
                    let names: std::collections::BTreeSet<_> = fields.iter().map(|f| &f.name).collect();
                    names.len() == fields.len()
                })
                .prop_map(Type::Struct),
        ]
    })
}

proptest! {
    #[test]
    fn a_types_text_reads_back_as_the_same_type(kind in any_type()) {
        let text = kind.to_string();
        prop_assert_eq!(text.parse::<Type>(), Ok(kind), "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z(),\" 0-9é-]{0,40}") {
        if let Ok(kind) = text.parse::<Type>() {
            prop_assert_eq!(kind.to_string().parse::<Type>(), Ok(kind));
        }
    }
}
