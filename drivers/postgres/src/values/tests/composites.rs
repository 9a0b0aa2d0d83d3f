//! Composites: values that name their parts' types, in a catalogue of a few.

use super::nested::sized;
use super::*;

const INT4: u32 = 23;
const BOOL: u32 = 16;
const TEXT: u32 = 25;
const PAIR: u32 = 100;
const PAIRS: u32 = 101;
const SPAN: u32 = 102;
const PERMISSION: u32 = 103;
const WEIRD: u32 = 104;

fn composite(id: u32, attributes: &[(&str, u32)]) -> TypeEntry {
    let attributes = attributes.iter().map(|(name, id)| Attribute { name: (*name).to_owned(), id: TypeId(*id) });
    TypeEntry { name: format!("public.c{id}"), attributes: attributes.collect(), ..entry(id, "", b'c', 0, 0, -1) }
}

fn catalogue() -> Vec<TypeEntry> {
    vec![
        entry(INT4, "int4", b'b', 0, 0, -1),
        entry(BOOL, "bool", b'b', 0, 0, -1),
        entry(TEXT, "text", b'b', 0, 0, -1),
        composite(PAIR, &[("n", INT4), ("t", TEXT)]),
        entry(PAIRS, "_c100", b'b', PAIR, 0, -1),
        entry(SPAN, "int4range", b'r', 0, INT4, -1),
        TypeEntry { has_binary: false, ..entry(PERMISSION, "aclitem", b'b', 0, 0, -1) },
        TypeEntry { known_as: String::new(), ..entry(WEIRD, "public.weird", b'b', 0, 0, -1) },
    ]
}

/// A composite by its attributes' types and values.
fn row(attributes: &[(u32, Option<&[u8]>)]) -> Vec<u8> {
    let mut bytes = i32::try_from(attributes.len()).unwrap().to_be_bytes().to_vec();
    for (of, value) in attributes {
        bytes.extend(of.to_be_bytes());
        bytes.extend(value.map_or((-1_i32).to_be_bytes().to_vec(), sized));
    }
    bytes
}

fn read(of: &PgType, bytes: &[u8]) -> Result<String, Misfit> {
    let (types, mut builder) = (Types::new(catalogue(), 2), ColumnBuilder::new(&Type::String, 0));
    builder.append_datum(of, Datum::Binary(bytes), &mut Reading { types: &types, scratch: &mut String::new() })?;
    Ok(builder.finish(&Type::String).unwrap().as_string::<i32>().value(0).to_owned())
}

#[test]
fn a_composite_is_written_with_its_nulls_and_quotes() {
    let one = 1_i32.to_be_bytes();
    let text = |t: &[u8]| read(&PgType::Composite, &row(&[(INT4, Some(&one)), (TEXT, Some(t))])).unwrap();
    assert_eq!(text(b"x"), "(1,x)");
    assert_eq!(text(b""), r#"(1,"")"#);
    assert_eq!(text(b"a b"), r#"(1,"a b")"#);
    assert_eq!(text(b"null"), "(1,null)");
    assert_eq!(text(br#"say "hi"\"#), r#"(1,"say ""hi""\\")"#);
    assert_eq!(text(b"(a,b)"), r#"(1,"(a,b)")"#);
    assert_eq!(text(b"{a}[b]"), "(1,{a}[b])");
    assert_eq!(read(&PgType::Composite, &row(&[(INT4, None), (TEXT, None)])).unwrap(), "(,)");
    assert_eq!(read(&PgType::Composite, &row(&[])).unwrap(), "()");
    assert_eq!(read(&PgType::Composite, &row(&[(BOOL, Some(&[1]))])).unwrap(), "(t)");
}

#[test]
fn parts_of_parts_are_quoted_again() {
    let one = 1_i32.to_be_bytes();
    let pair = row(&[(INT4, Some(&one)), (TEXT, Some(b"a \"b\""))]);
    assert_eq!(read(&PgType::Composite, &row(&[(PAIR, Some(&pair))])).unwrap(), r#"("(1,""a """"b"""""")")"#);
    let pairs = array(&[(2, 1)], &[Some(&pair), None]);
    assert_eq!(read(&PgType::Array(Box::new(PgType::Composite)), &pairs).unwrap(), r#"{"(1,\"a \"\"b\"\"\")",NULL}"#);
    assert_eq!(
        read(&PgType::Composite, &row(&[(PAIRS, Some(&pairs))])).unwrap(),
        r#"("{""(1,\\""a \\""\\""b\\""\\""\\"")"",NULL}")"#
    );
    let span = [&[0x02][..], &sized(&one), &sized(&one)].concat();
    assert_eq!(read(&PgType::Composite, &row(&[(SPAN, Some(&span)), (BOOL, None)])).unwrap(), r#"("[1,1)",)"#);
}

/// What is sent is what was there at the place in the log, whatever the type is now.
#[test]
fn a_composite_whose_type_was_changed_since_is_read_as_it_was() {
    let (one, two) = (1_i32.to_be_bytes(), 2_i32.to_be_bytes());
    assert_eq!(read(&PgType::Composite, &row(&[(INT4, Some(&one))])).unwrap(), "(1)");
    let more = row(&[(INT4, Some(&one)), (TEXT, Some(b"x")), (INT4, Some(&two))]);
    assert_eq!(read(&PgType::Composite, &more).unwrap(), "(1,x,2)");
}

#[test]
fn what_is_no_composite_is_refused() {
    let one = 1_i32.to_be_bytes();
    let whole = row(&[(INT4, Some(&one)), (TEXT, Some(b"x"))]);
    let counted = |count: i32| [&count.to_be_bytes()[..], &whole[4..]].concat();
    for cut in 0..whole.len() {
        assert_eq!(read(&PgType::Composite, &whole[..cut]), Err(Misfit::Malformed), "{cut}");
    }
    for bytes in [counted(1), counted(3), counted(i32::MAX), counted(-1), [&whole[..], &[0]].concat()] {
        assert_eq!(read(&PgType::Composite, &bytes), Err(Misfit::Malformed), "{bytes:?}");
    }
    let mut negative = whole.clone();
    negative[8..12].copy_from_slice(&(-2_i32).to_be_bytes());
    assert_eq!(read(&PgType::Composite, &negative), Err(Misfit::Malformed));
    assert_eq!(read(&PgType::Composite, &row(&[(777, Some(&one))])), Err(Misfit::UnknownType(TypeId(777))));
    assert_eq!(read(&PgType::Composite, &row(&[(WEIRD, Some(&one))])), Err(Misfit::Unreadable));
    // A null of any type is a null.
    assert_eq!(read(&PgType::Composite, &row(&[(777, None)])), Ok("()".into()));
}

/// No type is made of itself, but bytes may say so.
#[test]
fn composites_in_each_other_have_an_end() {
    let mut bytes = row(&[(INT4, None)]);
    for depth in 2..20 {
        bytes = row(&[(PAIR, Some(&bytes))]);
        let read = read(&PgType::Composite, &bytes);
        if depth <= 8 { assert!(read.is_ok(), "{depth}") } else { assert_eq!(read, Err(Misfit::Depth), "{depth}") }
    }
}

#[test]
fn a_composite_is_read_if_all_of_its_parts_are() {
    let resolve = |more: Vec<TypeEntry>, id: u32| Types::new([catalogue(), more].concat(), 2).resolve(TypeId(id), -1);
    assert_eq!(resolve(vec![], PAIR), PgType::Composite);
    assert_eq!(resolve(vec![], PAIRS), PgType::Array(Box::new(PgType::Composite)));
    assert_eq!(resolve(vec![entry(200, "", b'd', 0, PAIRS, -1), composite(201, &[("a", 200)])], 201), PgType::Composite);
    let because = |text: &str| text.to_owned();
    assert_eq!(
        resolve(vec![composite(201, &[("a", INT4), ("b", WEIRD)])], 201),
        PgType::Other(because("public.c201 (attribute 'b': public.weird)"))
    );
    let outer = vec![composite(201, &[("b", 202)]), entry(202, "", b'b', 203, 0, -1), composite(203, &[("acl", PERMISSION)])];
    assert_eq!(resolve(outer.clone(), 201), PgType::Unsendable(because("public.c201 (attribute 'acl' of public.c203: aclitem)")));
    assert_eq!(resolve(outer, 202), PgType::Unsendable(because("array of public.c203 (attribute 'acl': aclitem)")));
    assert_eq!(resolve(vec![], PERMISSION), PgType::TextOnly);
    assert_eq!(resolve(vec![entry(200, "", b'd', 0, PERMISSION, -1)], 200), PgType::TextOnly);
    assert_eq!(
        resolve(vec![entry(200, "_aclitem", b'b', PERMISSION, 0, -1)], 200),
        PgType::Unsendable(because("array of aclitem"))
    );
    let ranges = vec![entry(200, "r", b'r', 0, WEIRD, -1), entry(201, "m", b'm', 0, INT4, -1)];
    assert_eq!(natural(&resolve(ranges.clone(), 200)), Type::Unknown("range of public.weird".into()));
    assert_eq!(resolve(ranges, 201), PgType::MultiRange(Box::new(PgType::Int4)));
}

#[test]
fn what_is_not_read_goes_into_no_column_and_its_bytes_only_where_they_are_asked_for() {
    let (unread, unsendable) = (PgType::Other("weird".into()), PgType::Unsendable("weirder".into()));
    let list = |of| PgType::Array(Box::new(of));
    for kind in [Type::String, Type::Json, Type::Int64, natural(&unread)] {
        for of in [unread.clone(), unsendable.clone(), list(unread.clone()), PgType::Range(Box::new(unread.clone()))] {
            assert!(!holds(&of, &kind), "{of:?} in {kind}");
        }
    }
    let bytes = Type::List(Box::new(Type::Binary));
    assert!(holds(&unread, &Type::Binary) && holds(&list(unread.clone()), &bytes));
    assert!(!holds(&unsendable, &Type::Binary) && !holds(&list(unsendable), &bytes));
    assert!(!holds(&list(unread.clone()), &Type::Binary) && !holds(&PgType::MultiRange(Box::new(unread)), &Type::Binary));
    assert!(!holds(&PgType::Composite, &Type::Binary) && !holds(&PgType::TextOnly, &Type::Binary));
}

/// Each type is looked at once: of 40 composites, each made twice of the one before, the last one has a million million parts.
#[test]
fn composites_that_share_their_parts_are_resolved_at_once() {
    let shared = (0..40).map(|n| match n {
        0 => composite(1000, &[("n", INT4)]),
        n => composite(1000 + n, &[("a", 999 + n), ("b", 999 + n)]),
    });
    assert_eq!(Types::new(shared.chain(catalogue()), 2).resolve(TypeId(1039), -1), PgType::Composite);
}
