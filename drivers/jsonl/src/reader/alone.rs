//! Lines without a file: what they become, for whoever has them from elsewhere (a test, a fuzzer).

use std::path::Path;
use std::sync::Arc;

use contract::registry::Settings;
use contract::{Error, LogRead};
use kernel::id::StreamName;
use rows::TableSchema;

use super::{Assembler, Breaks, Declared, Place};
use crate::counts::Counts;
use crate::envelope::{Format, Malformed};
use crate::settings::SourceSettings;

/// What the lines of a text become, as a file of one name that ends there, under the usual settings; and which lines, from 0, were
/// passed over because they are no events. The time at which rows came is 0.
pub fn read_text(
    format: Format,
    tables: impl IntoIterator<Item = Arc<TableSchema>>,
    text: &[u8],
) -> Result<(LogRead, Vec<(usize, Malformed)>), Error> {
    let tables = tables.into_iter().map(|schema| (schema, Declared::default()));
    let settings: Settings = [("path".to_owned(), "text".into())].into_iter().collect();
    let options = SourceSettings::read(&settings)?.options;
    let mut assembler = Assembler::new(format, tables, options, Breaks::default(), Arc::new(Counts::default()));
    assembler.begin_file(&StreamName::from("text"), Path::new("text"), 0);
    let (mut begin, mut malformed) = (0, Vec::new());
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let end = begin + line.len() as u64 + 1;
        let mut none = || None;
        if let Err(error) = assembler.line(Place { begin, end, number: &mut none }, line) {
            assembler.skip(end);
            malformed.push((number, error));
        }
        begin = end;
    }
    assembler.end_file(begin);
    Ok((assembler.take(0)?, malformed))
}
