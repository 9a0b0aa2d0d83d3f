//! Values with values inside, and columns that are taken back.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use rows::Column;

use super::*;

#[test]
fn lists_hold_nulls_and_lists() {
    let array = plain("list(int32)", &["[1,null,3]", "[]", "null"]).unwrap();
    let list = array.as_list::<i32>();
    assert_eq!(list.value(0).as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(1), None, Some(3)]);
    assert_eq!((list.value(1).len(), list.is_null(1), list.is_null(2)), (0, false, true));
    let array = plain("list(list(string))", &["[[\"a\",\"b\"],null,[]]"]).unwrap();
    let outer = array.as_list::<i32>().value(0);
    let inner = outer.as_list::<i32>();
    assert_eq!(inner.value(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), Some("b")]);
    assert_eq!((inner.is_null(1), inner.value(2).len()), (true, 0));
    assert_eq!(plain("list(int32)", &["[1,\"x\"]"]).unwrap_err(), "[1]a string");
    assert_eq!(plain("list(list(int8))", &["[[1],[2,300]]"]).unwrap_err(), "[1][1]a number out of range");
    assert_eq!(plain("list(int32)", &["{}"]).unwrap_err(), "an object");
}

#[test]
fn maps_are_objects_or_pairs() {
    let array = plain("map(string,string)", &["{\"k\":\"v\",\"n\":null}", "{}", "null"]).unwrap();
    let map = array.as_map();
    let entries = map.value(0);
    assert_eq!(entries.column(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("k"), Some("n")]);
    assert_eq!(entries.column(1).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("v"), None]);
    assert_eq!((map.value(1).len(), map.is_null(2)), (0, true));
    for value in ["[[1,\"a\"],[2,\"b\"]]", "{\"1\":\"a\",\"2\":\"b\"}"] {
        let array = plain("map(int32,string)", &[value]).unwrap();
        let entries = array.as_map().value(0);
        assert_eq!(entries.column(0).as_primitive::<Int32Type>().values(), &[1, 2], "{value}");
    }
    assert_eq!(plain("map(string,int8)", &["{\"a\":300}"]).unwrap_err(), "{value}a number out of range");
    assert_eq!(plain("map(string,int8)", &["{\"a\":1,\"a\":2}"]).unwrap_err(), "an object that names a key twice");
    assert_eq!(plain("map(string,int8)", &["[[\"a\"]]"]).unwrap_err(), "an array that is no list of pairs");
    assert_eq!(plain("map(int32,int8)", &["[[null,1]]"]).unwrap_err(), "{key}null");
}

#[test]
fn structs_have_their_members_in_any_order() {
    let kind = Type::Struct(vec![Column::new("x", Type::Float64, false), Column::new("wkb", Type::Binary, true)]);
    let array = column(&kind, None, &options(), &["{\"x\":1.5,\"wkb\":\"AQ==\"}", "{\"wkb\":null,\"x\":2}", "{\"x\":3}", "null"])
        .unwrap();
    let fields = array.as_struct();
    assert_eq!(fields.column(0).as_primitive::<Float64Type>().values()[..3], [1.5, 2.0, 3.0]);
    assert_eq!(fields.column(1).as_binary::<i32>().iter().collect::<Vec<_>>(), [Some(&[1_u8][..]), None, None, None]);
    assert!(fields.is_null(3));
    let misfit = |value: &str| column(&kind, None, &options(), &[value]).unwrap_err();
    assert_eq!(misfit("{\"wkb\":null}"), ".xnothing");
    assert_eq!(misfit("{\"x\":null}"), ".xnull");
    assert_eq!(misfit("{\"x\":1,\"y\":2}"), "an object with an unknown member");
    assert_eq!(misfit("{\"x\":1,\"x\":2}"), "an object that names a member twice");
    assert_eq!(misfit("{\"x\":\"a\"}"), ".xa string");
}

#[test]
fn a_column_is_taken_back_to_where_a_failed_row_began() {
    let kind = kind("list(map(string,list(string)))");
    let reading = Reading::of(&kind, None, &options());
    let mut builder = ColumnBuilder::new(&kind, 0);
    let mut push = |text: &str| {
        let before = builder.len();
        let pushed = builder.push(&reading, Cursor::new(text).value().unwrap(), true);
        if pushed.is_err() {
            builder.truncate(before);
        }
        pushed.is_ok()
    };
    assert!(push("[{\"a\":[\"1\",\"2\"]}]"));
    assert!(!push("[{\"b\":[\"3\"]},{\"c\":[\"4\",5]}]"));
    assert!(push("null"));
    assert!(!push("[{\"d\":[\"6\"],\"d\":[]}]"));
    assert!(push("[{\"e\":[\"7\"]}]"));
    let array = builder.finish(&kind).unwrap();
    let list = array.as_list::<i32>();
    let keys = |row: usize| {
        let maps = list.value(row);
        let keys = maps.as_map().value(0).column(0).as_string::<i32>().value(0).to_owned();
        (keys, maps.as_map().value(0).column(1).as_list::<i32>().value(0).as_string::<i32>().value(0).to_owned())
    };
    assert_eq!(keys(0), ("a".to_owned(), "1".to_owned()));
    assert!(list.is_null(1));
    assert_eq!(keys(2), ("e".to_owned(), "7".to_owned()));
}
