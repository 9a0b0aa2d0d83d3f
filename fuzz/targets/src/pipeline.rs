//! Pipeline files, and the small texts in them.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use spec::{ColumnType, Duration, Environment, Size};

use crate::Saw;

/// A variable and a file, the same everywhere.
struct Outside;

impl Environment for Outside {
    fn variable(&self, name: &str) -> Option<OsString> {
        (name == "HOST").then(|| "db.example".into())
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("/run/password") => Ok(b"open sesame\n".to_vec()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }
}

/// The bytes are a file. Its first lines are also taken for a duration, a size, or a type of a column each.
pub fn pipeline(bytes: &[u8]) -> Saw {
    let lines = bytes.split(|byte| *byte == b'\n').take(4).filter_map(|line| std::str::from_utf8(line).ok());
    let small = lines.filter(|line| small_texts(line)).count() > 0;
    let read = spec::parse_bytes(bytes, "fuzz.yaml", &Outside);
    let again = spec::parse_bytes(bytes, "fuzz.yaml", &Outside);
    match (&read, &again) {
        (Ok(pipeline), Ok(_)) => {
            assert!(!pipeline.name.is_empty() && !pipeline.tables.is_empty());
        }
        (Err(problems), Err(again)) => {
            assert_eq!(problems.to_string(), again.to_string(), "what is wrong is told alike each time");
            assert!(!problems.list().is_empty());
            let lines = bytes.split(|byte| *byte == b'\n').count();
            for problem in problems.list() {
                // A carriage return alone ends a line, too, so there may be more of them than line feeds.
                let returns = bytes.iter().filter(|byte| **byte == b'\r').count();
                let separators = String::from_utf8_lossy(bytes).matches(['\u{85}', '\u{2028}', '\u{2029}']).count();
                assert!(problem.line <= lines + returns + separators, "line {} of {lines}: {problem:?}", problem.line);
                assert!(!problem.found.is_empty() && !problem.expected.is_empty(), "{problem:?}");
                assert_ne!(problem.code, spec::Code::Internal, "{problem:?}");
            }
        }
        _ => panic!("it is a pipeline, and it is none"),
    }
    Saw::taken_if(small || read.is_ok())
}

/// What is read is written so that it is read back the same.
fn small_texts(text: &str) -> bool {
    let mut taken = false;
    if let Ok(duration) = text.parse::<Duration>() {
        assert_eq!(duration.to_string().parse::<Duration>().ok(), Some(duration), "'{text}' is written '{duration}'");
        taken = true;
    }
    if let Ok(size) = text.parse::<Size>() {
        assert_eq!(size.to_string().parse::<Size>().ok(), Some(size), "'{text}' is written '{size}'");
        taken = true;
    }
    if let Ok(kind) = text.parse::<ColumnType>() {
        assert_eq!(kind.as_str().parse::<ColumnType>().ok().as_ref(), Some(&kind), "'{text}'");
        // What the pipeline file lets through, the rows must know.
        let known = kind.as_str().parse::<rows::Type>();
        assert!(known.is_ok(), "'{text}' is a type in a pipeline file and none of rows: {known:?}");
        taken = true;
    }
    if let Ok(kind) = text.parse::<rows::Type>() {
        assert_eq!(kind.to_string().parse::<rows::Type>().ok().as_ref(), Some(&kind), "'{text}' is written '{kind}'");
        taken = true;
    }
    taken
}
