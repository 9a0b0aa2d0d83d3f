//! A condition as one text.

use super::Fixture;
use crate::parse_bytes;

fn text(filter: &str) -> String {
    let file = format!(
        "pipeline: p\nsource: {{ kind: jsonl, path: a }}\nsink: {{ kind: \"null\" }}\ntables: [{{ source: a, primaryKey: [id], filter: {filter} }}]\n"
    );
    let pipeline = parse_bytes(file.as_bytes(), "pipeline.yaml", &Fixture).unwrap_or_else(|problems| panic!("{problems}"));
    pipeline.tables[0].filter.as_ref().expect("a filter").to_string()
}

#[test]
fn it_means_the_same_as_the_sections() {
    let cases = [
        ("{ where: { col: a, op: eq, value: 1.50 } }", r#""a" = 1.50"#),
        ("{ where: { col: 'a \"b\"', op: neq, value: \"it's\" } }", r#""a ""b""" != 'it''s'"#),
        ("{ where: { col: a, op: lte, value: true } }", r#""a" <= true"#),
        ("{ where: { col: a, op: in, value: [1, x] } }", r#"("a" = 1 or "a" = 'x')"#),
        ("{ where: { col: a, op: not_in, value: ['1', 2] } }", r#"("a" != '1' and "a" != 2)"#),
        ("{ where: { col: a, op: is_not_null } }", r#""a" is not null"#),
        (
            "{ not: { any: [{ where: { col: a, op: gt, value: 1 } }, { all: [{ where: { col: b, op: is_null } }, { where: { col: c, op: lt, value: 2 } }] }] } }",
            r#"not ("a" > 1 or ("b" is null and "c" < 2))"#,
        ),
        ("{ all: [{ any: [{ where: { col: a, op: gte, value: 1 } }] }] }", r#"("a" >= 1)"#),
    ];
    for (filter, expected) in cases {
        assert_eq!(text(filter), expected, "{filter}");
    }
}
