//! Ranges, pairs, geometry and vectors by their bytes, and bytes that are none of theirs.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int16Type};

use super::*;

fn wrong(of: &PgType, bytes: &[u8]) -> Misfit {
    column(of, &Type::String, bytes).unwrap_err()
}

/// A value behind its length.
pub(super) fn sized(bytes: &[u8]) -> Vec<u8> {
    [&i32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn int(value: i32) -> Vec<u8> {
    sized(&value.to_be_bytes())
}

fn floats(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// `[1,10)` and its like, by the flags and the bounds.
fn range(flags: u8, bounds: &[Vec<u8>]) -> Vec<u8> {
    [vec![flags], bounds.concat()].concat()
}

#[test]
fn ranges_tell_which_bounds_there_are_and_which_belong_to_them() {
    let of = PgType::Range(Box::new(PgType::Int4));
    assert_eq!(as_text(&of, &range(0x02, &[int(1), int(10)])), "[1,10)");
    assert_eq!(as_text(&of, &range(0x04, &[int(-1), int(10)])), "(-1,10]");
    assert_eq!(as_text(&of, &range(0x08 | 0x04, &[int(5)])), "(,5]");
    assert_eq!(as_text(&of, &range(0x10 | 0x02, &[int(5)])), "[5,)");
    assert_eq!(as_text(&of, &[0x18]), "(,)");
    assert_eq!(as_text(&of, &[0x01]), "empty");
    let numbers = PgType::Range(Box::new(NUMERIC));
    let bounds = [sized(&numeric(&[1, 5000], 0, 0, 2)), sized(&numeric(&[], 0, 0xC000, 0))];
    assert_eq!(as_text(&numbers, &range(0x06, &bounds)), "[1.50,NaN]");
    let days = PgType::Range(Box::new(PgType::Date));
    let bounds = [sized(&i32::MIN.to_be_bytes()), sized(&i32::MAX.to_be_bytes())];
    assert_eq!(as_text(&days, &range(0x02, &bounds)), "[-infinity,infinity)");
}

#[test]
fn bounds_stand_in_quotes_where_they_would_mean_something_else_without() {
    let of = PgType::Range(Box::new(PgType::Text));
    let text = |lower: &str, upper: &str| as_text(&of, &range(0x02, &[sized(lower.as_bytes()), sized(upper.as_bytes())]));
    assert_eq!(text("a,b", "c\"d\\e"), r#"["a,b","c""d\\e")"#);
    assert_eq!(text("", "x y"), r#"["","x y")"#);
    assert_eq!(text("null", "É"), "[null,É)");
    assert_eq!(text("(", "]"), r#"["(","]")"#);
    assert_eq!(text("{", "'"), "[{,')");
}

#[test]
fn what_is_no_range_is_refused() {
    let of = PgType::Range(Box::new(PgType::Int4));
    let null = (-1_i32).to_be_bytes().to_vec();
    for bytes in [
        vec![],
        // Flags that only stand in indexes and old formats.
        range(0x22, &[int(1), int(2)]),
        range(0x80, &[int(1), int(2)]),
        // An empty one with a bound, a bound too many, one that is not there, is null, too short, too long, of no length.
        range(0x01, &[int(1)]),
        range(0x02, &[int(1), int(2), int(3)]),
        range(0x02, &[int(1)]),
        range(0x02, &[null.clone(), int(2)]),
        range(0x02, &[sized(&[0, 1]), int(2)]),
        range(0x02, &[i32::MAX.to_be_bytes().to_vec(), int(2)]),
        range(0x02, &[i32::MIN.to_be_bytes().to_vec(), int(2)]),
    ] {
        assert_eq!(wrong(&of, &bytes), Misfit::Malformed, "{bytes:?}");
    }
}

#[test]
fn multiranges_are_their_ranges() {
    let of = PgType::MultiRange(Box::new(PgType::Int4));
    let some = |count: i32, ranges: &[Vec<u8>]| [count.to_be_bytes().to_vec(), ranges.concat()].concat();
    let (one, two) = (sized(&range(0x02, &[int(1), int(2)])), sized(&range(0x02, &[int(4), int(6)])));
    assert_eq!(as_text(&of, &some(2, &[one.clone(), two.clone()])), "{[1,2),[4,6)}");
    assert_eq!(as_text(&of, &some(0, &[])), "{}");
    for bytes in [some(1, &[one.clone(), two.clone()]), some(3, &[one.clone(), two]), some(i32::MAX, &[]), some(-1, &[one])] {
        assert_eq!(wrong(&of, &bytes), Misfit::Malformed, "{bytes:?}");
    }
    let null = some(1, &[vec![0xFF; 4], vec![0]]);
    assert_eq!(wrong(&of, &null), Misfit::Malformed);
}

/// `hstore` by its pairs.
fn pairs(pairs: &[(&str, Option<&str>)]) -> Vec<u8> {
    let mut bytes = i32::try_from(pairs.len()).unwrap().to_be_bytes().to_vec();
    for (name, value) in pairs {
        bytes.extend(sized(name.as_bytes()));
        bytes.extend(value.map_or((-1_i32).to_be_bytes().to_vec(), |value| sized(value.as_bytes())));
    }
    bytes
}

#[test]
fn pairs_become_a_map_with_its_nulls_or_their_text() {
    let kind = natural(&PgType::Pairs);
    assert_eq!(kind, Type::Map(Box::new(Type::String), Box::new(Type::String)));
    let bytes = pairs(&[("a", Some("1")), ("b", None), ("q\"u", Some("x\\y"))]);
    let map = column(&PgType::Pairs, &kind, &bytes).unwrap();
    let entries = map.as_map().value(0);
    let (names, values) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
    assert_eq!(names.iter().flatten().collect::<Vec<_>>(), ["a", "b", "q\"u"]);
    assert_eq!(values.iter().collect::<Vec<_>>(), [Some("1"), None, Some("x\\y")]);
    assert_eq!(as_text(&PgType::Pairs, &bytes), r#""a"=>"1", "b"=>NULL, "q\"u"=>"x\\y""#);
    assert_eq!(as_text(&PgType::Pairs, &pairs(&[])), "");
    assert_eq!(column(&PgType::Pairs, &kind, &pairs(&[])).unwrap().as_map().value(0).len(), 0);
}

#[test]
fn what_are_no_pairs_is_refused_and_leaves_the_map_as_it_was() {
    let kind = natural(&PgType::Pairs);
    let mut builder = ColumnBuilder::new(&kind, 0);
    append(&mut builder, &PgType::Pairs, Datum::Binary(&pairs(&[("a", Some("1"))]))).unwrap();
    let counted = |count: i32| [&count.to_be_bytes()[..], &pairs(&[("a", Some("1"))])[4..]].concat();
    let nameless = [&1_i32.to_be_bytes()[..], &[0xFF; 4], &[0; 4]].concat();
    for bytes in [
        // One name twice, and names in another order than the server's.
        pairs(&[("a", Some("1")), ("a", None)]),
        pairs(&[("bb", None), ("a", None)]),
        counted(2),
        counted(0),
        counted(-1),
        counted(i32::MAX),
        nameless,
        vec![],
    ] {
        assert_eq!(append(&mut builder, &PgType::Pairs, Datum::Binary(&bytes)), Err(Misfit::Malformed), "{bytes:?}");
    }
    append(&mut builder, &PgType::Pairs, Datum::Null).unwrap();
    let maps = builder.finish(&kind).unwrap();
    assert_eq!((maps.len(), maps.as_map().entries().len(), maps.is_null(1)), (2, 1, true));
}

#[test]
fn geometry_is_written_as_the_server_writes_it() {
    use super::Geometric::*;
    let text = |kind, bytes: Vec<u8>| as_text(&PgType::Geometric(kind), &bytes);
    assert_eq!(text(Point, floats(&[f64::NAN, f64::NEG_INFINITY])), "(NaN,-Infinity)");
    assert_eq!(text(Point, floats(&[1e30, 0.1])), "(1e+30,0.1)");
    assert_eq!(text(Line, floats(&[0.0, -1.0, 1e-7])), "{0,-1,1e-07}");
    assert_eq!(text(Segment, floats(&[1.0, 2.0, 3.0, 4.0])), "[(1,2),(3,4)]");
    assert_eq!(text(Box, floats(&[3.0, 4.0, -0.0, 2.0])), "(3,4),(-0,2)");
    assert_eq!(text(Circle, floats(&[1.0, 2.0, 3.5])), "<(1,2),3.5>");
    let path = |closed: u8, count: i32| [&[closed][..], &count.to_be_bytes(), &floats(&[1.0, 2.0, 3.0, 4.0])].concat();
    assert_eq!(text(Path, path(0, 2)), "[(1,2),(3,4)]");
    assert_eq!(text(Path, path(1, 2)), "((1,2),(3,4))");
    assert_eq!(text(Polygon, path(1, 2)[1..].to_vec()), "((1,2),(3,4))");
    for (kind, bytes) in [
        (Point, floats(&[1.0])),
        (Point, floats(&[1.0, 2.0, 3.0])),
        (Circle, floats(&[1.0, 2.0])),
        (Path, path(2, 2)),
        (Path, path(1, 1)),
        (Path, path(1, 3)),
        (Polygon, path(1, i32::MAX)[1..].to_vec()),
        (Polygon, path(1, -1)[1..].to_vec()),
    ] {
        assert_eq!(wrong(&PgType::Geometric(kind), &bytes), Misfit::Malformed, "{kind:?} {bytes:?}");
    }
}

#[test]
fn boxes_in_an_array_stand_apart_by_semicolons_and_shapes_of_postgis_by_colons() {
    let of = PgType::Array(Box::new(PgType::Geometric(Geometric::Box)));
    let one = floats(&[1.0, 1.0, 0.0, 0.0]);
    assert_eq!(as_text(&of, &array(&[(2, 1)], &[Some(&one), None])), "{(1,1),(0,0);NULL}");
    let of = PgType::Array(Box::new(PgType::Geometric(Geometric::Point)));
    assert_eq!(as_text(&of, &array(&[(1, 1)], &[Some(&one[..16])])), r#"{"(1,1)"}"#);
    let of = PgType::Array(Box::new(PgType::Spatial));
    assert_eq!(as_text(&of, &array(&[(3, 1)], &[Some(&[1, 2]), None, Some(&[3])])), "{0102:NULL:03}");
}

#[test]
fn a_dimension_without_elements_cannot_make_another_one_long() {
    let of = PgType::Array(Box::new(PgType::Int8));
    assert_eq!(wrong(&of, &array(&[(1_000_000_000, 1), (0, 1)], &[])), Misfit::Malformed);
    assert_eq!(wrong(&of, &array(&[(0, 1), (1_000_000_000, 1)], &[])), Misfit::Malformed);
}

#[test]
fn old_vectors_begin_at_zero_and_are_lists_all_the_same() {
    let of = PgType::Vector(Box::new(PgType::Int2));
    let (one, two) = (1_i16.to_be_bytes(), 2_i16.to_be_bytes());
    let bytes = array(&[(2, 0)], &[Some(&one), Some(&two)]);
    let list = column(&of, &Type::List(Box::new(Type::Int16)), &bytes).unwrap();
    assert_eq!(list.as_list::<i32>().value(0).as_primitive::<Int16Type>().values(), &[1, 2]);
    assert_eq!(as_text(&of, &bytes), "1 2");
    assert_eq!(as_text(&of, &array(&[(0, 0)], &[])), "");
    assert_eq!(wrong(&of, &array(&[(1, 0)], &[None])), Misfit::Malformed);
    assert_eq!(wrong(&of, &array(&[(1, 0), (1, 0)], &[Some(&one)])), Misfit::Malformed);
}

#[test]
fn vectors_become_lists_of_numbers() {
    let bytes =
        [&3_u16.to_be_bytes()[..], &[0; 2], &1_f32.to_be_bytes(), &2.5_f32.to_be_bytes(), &1e-7_f32.to_be_bytes()].concat();
    let of = PgType::Embedding(Number::Single);
    let list = column(&of, &natural(&of), &bytes).unwrap();
    assert_eq!(list.as_list::<i32>().value(0).as_primitive::<Float32Type>().values(), &[1.0, 2.5, 1e-7]);
    assert_eq!(as_text(&of, &bytes), "[1,2.5,1e-07]");
    for bytes in [&bytes[..bytes.len() - 1], &bytes[..3], &[bytes.clone(), vec![0]].concat()] {
        assert_eq!(wrong(&of, bytes), Misfit::Malformed);
    }
}

#[test]
fn numbers_of_sixteen_bits_are_read_exactly() {
    let of = PgType::Embedding(Number::Half);
    // One, a tenth, the highest, the lowest above zero, the highest below the normal ones, minus zero, infinity, no number.
    let halves: [u16; 8] = [0x3C00, 0x2E66, 0x7BFF, 0x0001, 0x03FF, 0x8000, 0xFC00, 0x7E00];
    let bytes = [vec![0, 8, 0, 0], halves.iter().flat_map(|half| half.to_be_bytes()).collect()].concat();
    let list = column(&of, &natural(&of), &bytes).unwrap().as_list::<i32>().value(0);
    let numbers = list.as_primitive::<Float32Type>().values();
    assert_eq!(numbers[..5], [1.0, 0.099_975_586, 65504.0, 5.960_464_5e-8, 6.097_555e-5]);
    assert!(numbers[5] == 0.0 && numbers[5].is_sign_negative() && numbers[6] == f32::NEG_INFINITY && numbers[7].is_nan());
    assert_eq!(
        as_text(&of, &bytes[..10].iter().copied().enumerate().map(|(n, b)| if n == 1 { 3 } else { b }).collect::<Vec<_>>()),
        "[1,0.099975586,65504]"
    );
}

#[test]
fn vectors_that_are_mostly_zero_name_the_places_that_are_not() {
    let sparse = |length: i32, count: i32, rest: &[u8]| [&length.to_be_bytes()[..], &count.to_be_bytes(), &[0; 4], rest].concat();
    let rest = [&0_i32.to_be_bytes()[..], &2_i32.to_be_bytes(), &1.5_f32.to_be_bytes(), &(-2_f32).to_be_bytes()].concat();
    assert_eq!(as_text(&PgType::SparseEmbedding, &sparse(5, 2, &rest)), "{1:1.5,3:-2}/5");
    assert_eq!(as_text(&PgType::SparseEmbedding, &sparse(3, 0, &[])), "{}/3");
    for bytes in [sparse(5, 1, &rest), sparse(5, 3, &rest), sparse(5, -1, &rest), sparse(5, i32::MAX, &rest), vec![0; 11]] {
        assert_eq!(wrong(&PgType::SparseEmbedding, &bytes), Misfit::Malformed);
    }
}

#[test]
fn places_snapshots_and_texts_behind_a_number_are_written_as_the_server_writes_them() {
    assert_eq!(as_text(&PgType::RowPlace, &[0, 0, 0, 7, 0, 8]), "(7,8)");
    let snapshot = |count: i32, xids: &[u64]| {
        [count.to_be_bytes().to_vec(), xids.iter().flat_map(|xid| xid.to_be_bytes()).collect()].concat()
    };
    assert_eq!(as_text(&PgType::Snapshot, &snapshot(2, &[10, 20, 12, 15])), "10:20:12,15");
    assert_eq!(as_text(&PgType::Snapshot, &snapshot(0, &[10, 20])), "10:20:");
    assert_eq!(wrong(&PgType::Snapshot, &snapshot(1, &[10, 20, 12, 15])), Misfit::Malformed);
    assert_eq!(wrong(&PgType::Snapshot, &snapshot(-1, &[10, 20])), Misfit::Malformed);
    assert_eq!(as_text(&PgType::Versioned, b"\x01$.a"), "$.a");
    assert_eq!(wrong(&PgType::Versioned, b"\x02$.a"), Misfit::Malformed);
    assert_eq!(as_text(&PgType::Spatial, &[1, 0xAB]), "01AB");
    let kept = column(&PgType::Spatial, &Type::Binary, &[1, 0xAB]).unwrap();
    assert_eq!(kept.as_binary::<i32>().value(0), [1, 0xAB]);
}

#[test]
fn only_a_type_without_a_binary_form_is_taken_as_text() {
    let mut builder = ColumnBuilder::new(&Type::String, 0);
    append(&mut builder, &PgType::TextOnly, Datum::Text(b"a=r/a")).unwrap();
    append(&mut builder, &PgType::TextOnly, Datum::Binary(b"a=r/a")).unwrap();
    assert_eq!(append(&mut builder, &PgType::Composite, Datum::Text(b"(1)")), Err(Misfit::TextForm));
    assert_eq!(append(&mut builder, &PgType::Other("weird".into()), Datum::Text(b"x")), Err(Misfit::TextForm));
    let texts = builder.finish(&Type::String).unwrap();
    assert_eq!(texts.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a=r/a", "a=r/a"]);
}
