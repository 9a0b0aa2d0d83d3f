//! Text search by its bytes: what the server sent of each, and how it wrote it.

use super::*;

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn documents_tell_lexemes_places_and_weights() {
    let bytes = unhex("0000000361000002c001000262000000630000018005");
    assert_eq!(as_text(&PgType::Document, &bytes), "'a':1A,2 'b' 'c':5B");
    assert_eq!(as_text(&PgType::Document, &unhex("0000000161275c62000000")), r"'a''\\b'");
    assert_eq!(as_text(&PgType::Document, &[0; 4]), "");
    for bytes in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat(), &[0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0], &[0xFF; 4], &[]] {
        assert_eq!(column(&PgType::Document, &Type::String, bytes).unwrap_err(), Misfit::Malformed, "{bytes:?}");
    }
}

#[test]
fn queries_have_the_parentheses_that_the_server_writes() {
    for (bytes, text) in [
        ("0000000602030201010c016300020201000062000100006100", "'a' & 'b' | !'c':*AB"),
        ("000000050204000102040001010000630001000062000100006100", "'a' <-> ( 'b' <-> 'c' )"),
        ("000000050204000301000063000204000101000062000100006100", "'a' <-> 'b' <3> 'c'"),
        ("00000006020201000063000201020301000062000100006100", "!( 'a' | 'b' ) & 'c'"),
        ("000000070202020302020100006400010000630001000062000100006100", "'a' & ( 'b' | 'c' & 'd' )"),
        ("0000000402040001020101000062000100006100", "'a' <-> !'b'"),
        ("0000000702040001020301000064000100006300020201000062000100006100", "( 'a' & 'b' ) <-> ( 'c' | 'd' )"),
        ("0000000302020100007900010000697427735c7800", r"'it''s\\x' & 'y'"),
        ("00000003020102010100006100", "!!'a'"),
        ("0000000502030100006300020301000062000100006100", "'a' | 'b' | 'c'"),
        ("0000000502030203010000630001000062000100006100", "'a' | 'b' | 'c'"),
        ("0000000402010204000101000062000100006100", "!( 'a' <-> 'b' )"),
        ("00000000", ""),
    ] {
        assert_eq!(as_text(&PgType::Query, &unhex(bytes)), text);
    }
}

#[test]
fn a_query_is_one_whole_and_is_written_without_recursion() {
    let lexeme = [1, 0, 0, b'a', 0];
    let query = |items: &[&[u8]]| {
        let count = i32::try_from(items.len()).unwrap();
        column(&PgType::Query, &Type::String, &[&count.to_be_bytes()[..], &items.concat()].concat())
    };
    let malformed = |items: &[&[u8]]| assert_eq!(query(items).unwrap_err(), Misfit::Malformed, "{items:?}");
    // An operator without what it is applied to, two queries, an unknown operator, an unknown part.
    malformed(&[&[2, 1]]);
    malformed(&[&[2, 2], &lexeme]);
    malformed(&[&lexeme, &lexeme]);
    malformed(&[&lexeme, &[2, 1]]);
    malformed(&[&[2, 9], &lexeme]);
    malformed(&[&[3, 1], &lexeme]);
    malformed(&[&[2, 4, 0], &lexeme, &lexeme]);
    let deep = [vec![&[2_u8, 1][..]; 200_000], vec![&lexeme[..]]].concat();
    assert_eq!(query(&deep).unwrap().as_string::<i32>().value(0).len(), 200_003);
}
