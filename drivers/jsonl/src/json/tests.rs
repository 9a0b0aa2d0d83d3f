//! The scanner against serde_json, and the places where it must point.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

fn whole(text: &str) -> Result<Value<'_>, Syntax> {
    let mut cursor = Cursor::new(text);
    let value = cursor.value()?;
    cursor.end()?;
    Ok(value)
}

#[test]
fn every_kind_of_value_is_told_by_its_first_byte() {
    for (text, kind) in [
        ("null", Kind::Null),
        ("true", Kind::Bool),
        ("false", Kind::Bool),
        ("-0.5e+3", Kind::Number),
        ("\"a\"", Kind::String),
        ("[1, [], {}]", Kind::Array),
        ("{\"a\": {\"b\": [null]}}", Kind::Object),
    ] {
        assert_eq!(whole(text).map(|value| (value.kind, value.raw)), Ok((kind, text)));
    }
}

#[test]
fn a_malformed_text_is_refused_at_the_byte_where_it_goes_wrong() {
    for (text, at) in [
        ("", 0),
        ("nul", 0),
        ("01", 1),
        ("1.", 2),
        ("1e", 2),
        ("-", 1),
        (".5", 0),
        ("+1", 0),
        ("\"a", 2),
        ("\"\\x\"", 1),
        ("\"\\u12g4\"", 1),
        ("\"a\u{1}\"", 2),
        ("[1,]", 3),
        ("[1 2]", 3),
        ("{\"a\":1,}", 7),
        ("{\"a\" 1}", 5),
        ("{a:1}", 1),
        ("{\"a\":1]", 6),
        ("1 2", 2),
        ("{\"a\":tru}", 5),
    ] {
        assert_eq!(whole(text).map_err(|wrong| wrong.at), Err(at), "{text}");
    }
}

#[test]
fn nesting_ends_at_the_stated_depth() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(whole(&nested(128)).is_ok());
    assert_eq!(whole(&nested(129)).map_err(|wrong| wrong.at), Err(128));
}

#[test]
fn members_and_elements_are_walked_in_order() {
    let mut cursor = Cursor::new(r#" { "a" : 1 , "b\n" : [ true , "x" ] } "#);
    assert!(cursor.enter(b'{'));
    let mut first = true;
    assert_eq!(cursor.name(&mut first).unwrap().unwrap().raw, "\"a\"");
    assert_eq!(cursor.value().unwrap().raw, "1");
    assert_eq!(cursor.name(&mut first).unwrap().unwrap().text(), Ok(Cow::Borrowed("b\n")));
    assert!(cursor.enter(b'['));
    let mut inner = true;
    assert!(cursor.element(&mut inner).unwrap());
    assert_eq!(cursor.value().unwrap().raw, "true");
    assert!(cursor.element(&mut inner).unwrap());
    assert_eq!(cursor.value().unwrap().raw, "\"x\"");
    assert!(!cursor.element(&mut inner).unwrap());
    assert_eq!(cursor.name(&mut first).unwrap(), None);
    assert_eq!(cursor.end(), Ok(()));
}

#[test]
fn escapes_become_characters() {
    let value = whole(r#""\"\\\/\b\f\n\r\té😀\u0000""#).unwrap();
    assert_eq!(value.text().unwrap(), "\"\\/\u{8}\u{c}\n\r\té😀\0");
    assert!(value.is_text("\"\\/\u{8}\u{c}\n\r\té😀\0"));
}

#[test]
fn half_a_surrogate_pair_is_no_text() {
    for text in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dA""#, r#""\ud83d x""#] {
        assert_eq!(whole(text).unwrap().text(), Err(LoneSurrogate), "{text}");
    }
}

/// JSON with spaces, all escapes, deep and shallow, and then perhaps a byte broken.
fn json() -> impl Strategy<Value = String> {
    let string = proptest::collection::vec(
        prop_oneof![
            Just("a".to_owned()),
            Just("0123456789".to_owned()),
            Just("é😀".to_owned()),
            Just("\\n".to_owned()),
            Just("\\\"".to_owned()),
            Just("\\\\".to_owned()),
            Just("\\u00e9".to_owned()),
            Just("\\ud83d\\ude00".to_owned()),
            Just("\\/".to_owned()),
        ],
        0..5,
    )
    .prop_map(|pieces| format!("\"{}\"", pieces.concat()));
    let leaf = prop_oneof![
        string.clone(),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
        Just("1.50E+2".to_owned()),
        Just("-0".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|all| format!("[ {} ]", all.join(" ,\t"))),
            proptest::collection::vec((string.clone(), inner), 0..4).prop_map(|all| {
                let members: Vec<_> = all.into_iter().map(|(name, value)| format!("{name} :{value}")).collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}

fn broken(text: &str, at: usize, how: u8) -> String {
    let mut bytes = text.as_bytes().to_vec();
    if !bytes.is_empty() {
        let at = at % bytes.len();
        match how % 4 {
            0 => bytes[at] = b"{}[]\",:\\ 0e-.tx\n"[how as usize / 4 % 16],
            1 => {
                bytes.remove(at);
            }
            2 => bytes.truncate(at),
            _ => bytes.insert(at, b"{}[]\",:\\ 0e-.tx\n"[how as usize / 4 % 16]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_scanner_accepts_exactly_what_serde_json_accepts(text in json(), at in any::<usize>(), how in any::<u8>(), whole_one in any::<bool>()) {
        let text = if whole_one { text } else { broken(&text, at, how) };
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        let ours = whole(&text);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs.err());
        if let (Ok(ours), Ok(theirs)) = (ours, serde_json::from_str::<&serde_json::value::RawValue>(&text)) {
            prop_assert_eq!(ours.raw, theirs.get());
        }
    }

    #[test]
    fn a_string_has_the_content_that_serde_json_gives_it(text in json()) {
        if let Ok(theirs) = serde_json::from_str::<String>(&text) {
            let ours = whole(&text).unwrap();
            prop_assert_eq!(ours.text().unwrap(), theirs.as_str());
            prop_assert!(ours.is_text(&theirs));
        }
    }
}
