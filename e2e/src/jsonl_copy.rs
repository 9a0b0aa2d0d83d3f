//! A table's copy in a file of JSON lines, read as `docs/sinks/jsonl.md` tells everybody to read it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// The rows of a table that is kept by key, by the text of their keys. What stands behind the last line of state does not count, so
/// that a file may be read while it is written. Panics at a line that the page does not know.
pub fn rows(file: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut lines = text.split_inclusive('\n');
    let header: Value = serde_json::from_str(lines.next().expect("a header")).expect("the header is JSON");
    assert_eq!((header["urutau"].as_str(), header["mode"].as_str()), (Some("jsonl/1"), Some("upsert")), "{header}");
    let (mut rows, mut open) = (BTreeMap::new(), Vec::new());
    for line in lines.filter(|line| line.ends_with('\n')) {
        if line.starts_with("{\"state\":") {
            open.drain(..).for_each(|line| take(&mut rows, line));
        } else {
            open.push(line);
        }
    }
    rows
}

/// A number of a row, or of whatever else is an object. Panics if it is none.
pub fn number(row: &Value, of: &str) -> u64 {
    row[of].as_u64().unwrap_or_else(|| panic!("no number '{of}': {row}"))
}

fn take(rows: &mut BTreeMap<String, Value>, line: &str) {
    let mut change: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    match change["op"].as_str() {
        Some("u") => drop(rows.insert(change["key"].to_string(), change["row"].take())),
        Some("d") => drop(rows.remove(&change["key"].to_string())),
        Some("t") => rows.clear(),
        _ => panic!("no reader knows this line: {line}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::rows;

    const HEADER: &str = "{\"urutau\":\"jsonl/1\",\"pipeline\":\"p\",\"table\":\"t\",\"mode\":\"upsert\",\"key\":[\"id\"]}\n";

    fn read(lines: &[&str]) -> Vec<(String, serde_json::Value)> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), format!("{HEADER}{}", lines.concat())).expect("it can be written");
        rows(file.path()).into_iter().collect()
    }

    fn upsert(id: u64, n: u64) -> String {
        format!("{}\n", json!({ "key": { "id": id }, "op": "u", "row": { "id": id, "n": n } }))
    }

    const STATE: &str = "{\"state\":{},\"token\":\"1\"}\n";

    #[test]
    fn the_last_line_of_a_key_counts_and_nothing_behind_the_last_state() {
        let (one, two, again) = (upsert(1, 5), upsert(2, 5), upsert(1, 6));
        let gone = "{\"key\":{\"id\":2},\"op\":\"d\",\"row\":null}\n";
        let left = [("{\"id\":1}".to_owned(), json!({ "id": 1, "n": 6 }))];
        assert_eq!(read(&[&one, &two, STATE, &again, gone, STATE, &upsert(3, 1), "{\"st"]), left);
        assert_eq!(read(&[&one, &two, gone]), []);
    }

    #[test]
    fn what_stood_before_a_line_that_empties_the_table_is_gone_with_its_state() {
        let (one, two, empty) = (upsert(1, 5), upsert(2, 7), "{\"op\":\"t\"}\n");
        let two_only = [("{\"id\":2}".to_owned(), json!({ "id": 2, "n": 7 }))];
        assert_eq!(read(&[&one, STATE, empty, &two, STATE]), two_only);
        assert_eq!(read(&[&one, STATE, empty, &two]).len(), 1, "the commit that empties it is under way");
    }

    #[test]
    #[should_panic = "no reader knows this line"]
    fn a_line_that_the_page_does_not_know_is_told() {
        let _ = read(&["{\"key\":{\"id\":1},\"op\":\"s\",\"row\":null}\n", STATE]);
    }
}
