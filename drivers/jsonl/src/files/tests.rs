//! Files on a disk: which there are, what they are recognised by, their lines, and whether reading may go on.

use std::fs;
use std::path::Path;

use kernel::position::{Offset, Position};
use tempfile::TempDir;

use super::*;

fn write(dir: &TempDir, name: &str, content: impl AsRef<[u8]>) {
    let path = dir.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn location(dir: &TempDir, path: &str) -> Location {
    Location::new(dir.path().join(path).to_str().unwrap()).unwrap()
}

fn names(location: &Location) -> Vec<String> {
    location.list().unwrap().iter().map(|file| file.stream.to_string()).collect()
}

fn position(streams: &[(&str, u64)]) -> Position {
    streams.iter().map(|(stream, offset)| (StreamName::from(*stream), Offset(*offset))).collect()
}

#[test]
fn a_plain_path_is_a_log_of_one_stream_called_by_the_files_name() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "sub/a.jsonl", "x\n");
    let found = location(&dir, "sub/a.jsonl").list().unwrap();
    assert_eq!((found.len(), found[0].stream.as_str(), found[0].bytes), (1, "a.jsonl", 2));
    assert_eq!(location(&dir, "sub/b.jsonl").list().unwrap(), []);
    assert_eq!(location(&dir, "sub").list().unwrap(), []);
}

#[test]
fn a_glob_is_the_matching_files_in_the_order_of_their_names_below_its_base() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["c/2026-01.jsonl", "c/2025-12.jsonl", "c/10/b.jsonl", "c/9/a.jsonl", "c/x.txt", "d/a.jsonl"] {
        write(&dir, name, "x\n");
    }
    fs::create_dir(dir.path().join("c/folder.jsonl")).unwrap();
    assert_eq!(names(&location(&dir, "c/*.jsonl")), ["2025-12.jsonl", "2026-01.jsonl"]);
    assert_eq!(names(&location(&dir, "c/**/*.jsonl")), ["10/b.jsonl", "2025-12.jsonl", "2026-01.jsonl", "9/a.jsonl"]);
    assert_eq!(names(&location(&dir, "*/a.jsonl")), ["d/a.jsonl"]);
    assert_eq!(names(&location(&dir, "c/?/[ab].jsonl")), ["9/a.jsonl"]);
    assert!(location(&dir, "c/*.json").list().unwrap().is_empty());
}

#[test]
fn a_relative_glob_has_names_below_its_base_too() {
    // Tests run in the crate's folder.
    for glob in ["src/file*/mod.rs", "./src/file*/mod.rs"] {
        let found = Location::new(glob).unwrap().list().unwrap();
        assert_eq!(found.iter().map(|file| file.stream.as_str()).collect::<Vec<_>>(), ["files/mod.rs"], "{glob}");
    }
}

#[test]
fn a_file_whose_name_looks_like_a_glob_is_that_file() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "a[1].jsonl", "x\n");
    write(&dir, "a1.jsonl", "x\n");
    assert_eq!(names(&location(&dir, "a[1].jsonl")), ["a[1].jsonl"]);
}

fn file(dir: &TempDir, name: &str) -> LogFile {
    location(dir, name).list().unwrap().remove(0)
}

#[test]
fn a_file_is_recognised_by_its_first_complete_line() {
    let dir = tempfile::tempdir().unwrap();
    let identity_of = |content: &str| {
        write(&dir, "a", content);
        identity(&file(&dir, "a")).unwrap().map(|identity| identity.as_str().to_owned())
    };
    // FNV-1a, 128 bits, of `foobar`.
    let expected = Some("line1:343e1662793c64bf6f0d3597ba446f18".to_owned());
    assert_eq!(identity_of("foobar\n"), expected);
    assert_eq!(identity_of("foobar\nmore\n"), expected);
    assert_eq!(identity_of("\u{feff}foobar\r\n"), expected);
    assert_ne!(identity_of("foobaz\n"), expected);
    assert_eq!(identity_of("foobar"), None);
    assert_eq!(identity_of(""), None);
}

#[test]
fn complete_lines_end_after_the_last_line_end() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(200_000);
    for (content, expected) in [
        ("", 0),
        ("a", 0),
        ("a\n", 2),
        ("a\nb", 2),
        ("\n", 1),
        (&format!("a\n{long}")[..], 2),
        (&format!("{long}\n")[..], 200_001),
    ] {
        write(&dir, "a", content);
        assert_eq!(complete_end(&file(&dir, "a")).unwrap(), expected, "{} bytes", content.len());
    }
}

/// All lines from an offset on: where they begin and end, and their text.
fn lines(path: &Path, offset: u64) -> Vec<(u64, u64, String)> {
    let mut lines = Lines::open(path, offset).unwrap();
    let mut all = Vec::new();
    loop {
        let (place, partial) = match lines.next().unwrap() {
            Next::Line(place) => (place, ""),
            Next::Partial(place) => (place, "..."),
            Next::TooLong { begin } => {
                let end = lines.skip_too_long().unwrap();
                all.push((begin, end, "too long".to_owned()));
                continue;
            }
            Next::End => return all,
        };
        assert_eq!(lines.next().unwrap(), if partial.is_empty() { Next::Line(place) } else { Next::Partial(place) });
        all.push((place.begin, place.end, String::from_utf8_lossy(lines.bytes(&place)).into_owned() + partial));
        lines.consume(&place);
        assert_eq!(lines.offset(), place.end);
    }
}

#[test]
fn lines_have_no_line_end_and_no_byte_order_mark() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "a", "\u{feff}a\r\n\nb\n\u{feff}c\r\nd\r");
    let text = |(begin, end, text): &(u64, u64, String)| (*begin, *end, text.clone());
    let expected = [
        (0, 6, "a".to_owned()),
        (6, 7, String::new()),
        (7, 9, "b".to_owned()),
        (9, 15, "\u{feff}c".to_owned()),
        (15, 17, "d...".to_owned()),
    ];
    assert_eq!(lines(&dir.path().join("a"), 0).iter().map(text).collect::<Vec<_>>(), expected);
    assert_eq!(lines(&dir.path().join("a"), 7), expected[2..]);
}

#[test]
fn lines_are_whole_however_they_fall_into_the_buffer() {
    let dir = tempfile::tempdir().unwrap();
    let lengths: Vec<usize> = (0..60).map(|n| n * n * 131 % 300_000).chain([30 << 20, 1, 0, (1 << 20) - 1, 1 << 20]).collect();
    let texts: Vec<String> =
        lengths.iter().enumerate().map(|(n, length)| char::from(b'a' + (n % 26) as u8).to_string().repeat(*length)).collect();
    write(&dir, "a", texts.iter().map(|text| format!("{text}\n")).collect::<String>());
    let found = lines(&dir.path().join("a"), 0);
    assert_eq!(found.len(), texts.len());
    let mut begin = 0;
    for ((at, end, text), expected) in found.iter().zip(&texts) {
        assert!(*at == begin && *end == begin + expected.len() as u64 + 1 && text == expected, "line at {at}");
        begin = *end;
    }
}

#[test]
fn a_line_beyond_the_bound_is_not_held_and_can_be_passed() {
    let dir = tempfile::tempdir().unwrap();
    let long = LINE_BYTES_MAX as u64 + 5;
    write(&dir, "a", format!("a\n{}\nb\n", "x".repeat(long as usize)));
    let expected = [(0, 2, "a".to_owned()), (2, 2 + long + 1, "too long".to_owned()), (long + 3, long + 5, "b".to_owned())];
    assert_eq!(lines(&dir.path().join("a"), 0), expected);
    write(&dir, "b", "x".repeat(long as usize));
    assert_eq!(lines(&dir.path().join("b"), 0), [(0, long, "too long".to_owned())]);
}

#[test]
fn a_line_that_grows_is_read_when_it_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "a", "ab");
    let mut lines = Lines::open(&dir.path().join("a"), 0).unwrap();
    assert!(matches!(lines.next().unwrap(), Next::Partial(place) if lines.bytes(&place) == b"ab"));
    write(&dir, "a", "abcd\ne");
    let Next::Line(place) = lines.next().unwrap() else { panic!("no line") };
    assert_eq!((lines.bytes(&place), place.end), (&b"abcd"[..], 5));
    lines.consume(&place);
    assert!(matches!(lines.next().unwrap(), Next::Partial(place) if lines.bytes(&place) == b"e"));
}

#[test]
fn line_numbers_count_from_the_files_beginning() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "a", "1\n2\n3\n4\n");
    let mut from_start = LineNumbers::new(&dir.path().join("a"), 0);
    from_start.advance();
    assert_eq!(from_start.current(), Some(2));
    let mut from_middle = LineNumbers::new(&dir.path().join("a"), 4);
    from_middle.advance();
    assert_eq!(from_middle.current(), Some(4));
    assert_eq!(LineNumbers::new(&dir.path().join("gone"), 4).current(), None);
}

#[test]
fn reading_may_go_on_only_in_the_log_that_was_read() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "a", "12345678\n");
    write(&dir, "b", "12345678\n");
    write(&dir, "c", "");
    let files = location(&dir, "*").list().unwrap();
    let check = |from: &[(&str, u64)]| check_resumable(&files, &position(from)).map_err(|e| (e.kind, e.code));
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(check(&[("a", 5)]), Ok(()));
    assert_eq!(check(&[("a", 9)]), Ok(()));
    assert_eq!(check(&[("a", 9), ("b", 5)]), Ok(()));
    // A file that was read to its end may be removed, once a later one was begun.
    assert_eq!(check(&[("0", 7), ("a", 9), ("b", 5)]), Ok(()));
    assert_eq!(check(&[("z", 7)]), Err((Kind::PositionLost, "jsonl-file-gone")));
    assert_eq!(check(&[("a", 9), ("z", 7)]), Err((Kind::PositionLost, "jsonl-file-gone")));
    assert_eq!(check(&[("a", 10)]), Err((Kind::PositionLost, "jsonl-file-shorter")));
    assert_eq!(check(&[("a", 5), ("b", 5)]), Err((Kind::Config, "jsonl-file-order")));
    assert_eq!(check(&[("b", 5)]), Err((Kind::Config, "jsonl-file-order")));
}

#[test]
fn a_position_is_where_a_line_begins() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "a", "12\n45\r\n8");
    let check = |offset| line_begins_at(&file(&dir, "a"), offset).map_err(|e| (e.kind, e.code));
    for offset in [0, 3, 7, 8] {
        assert_eq!(check(offset), Ok(()), "{offset}");
    }
    // Before a line end: a last line that was complete without one has got it since.
    assert_eq!((check(2), check(5)), (Ok(()), Ok(())));
    for offset in [1, 4] {
        assert_eq!(check(offset), Err((Kind::PositionLost, "jsonl-not-a-line")), "{offset}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("a");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = location(&dir, "a").list().unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-path"));
}
