//! Bad input, one test each: one line says what, where and what to do, with the code under which `docs/troubleshooting.md` says
//! more; the exit code is the design's, nothing is lost and no row's value is in what is said. (What the kernel stops at has no
//! code: a log that was cut or replaced, a wait that was given up.)

use std::path::Path;

use e2e::readers::Expectation;
use e2e::{Binary, Changes, Desk, Ended, Process};
use serde_json::{Value, json};

/// Stands in rows, and must stand in no message.
const SECRET: &str = "PRIVATE-VALUE-OF-A-ROW";

const PIPELINE: &str = "pipeline: bad-input
source: { kind: jsonl, path: changes.jsonl }
sink: { kind: iceberg, uri: ./warehouse, namespace: shop }
tables:
  - source: shop.items
    primaryKey: [id]
    columns: [{ name: price, type: \"decimal(6,2)\" }, { name: count, type: int32 }]
  - { source: shop.others, primaryKey: [id] }
";

const TABLES: &str = r#"{
    "items": { "source": "shop.items", "key": ["id"], "columns": { "id": "int64", "name": "string", "price": "decimal(6,2)", "count": "int32" } },
    "others": { "source": "shop.others", "key": ["id"], "columns": { "id": "int64", "name": "string" } }
}"#;

fn item(id: impl Into<Value>) -> Value {
    json!({"id": id.into(), "name": SECRET, "price": "12.50", "count": 3})
}

fn other(id: u64) -> Value {
    json!({"id": id, "name": SECRET})
}

/// Three transactions, in both tables.
fn good(changes: Changes, first: u64) -> Changes {
    (first..first + 3).fold(changes, |changes, n| changes.begin().insert("items", item(n)).insert("others", other(n)))
}

fn desk(changes: &Changes) -> Desk {
    let desk = Desk::new().with_pipeline(PIPELINE);
    desk.write("changes.jsonl", changes.text());
    desk.write("tables.json", TABLES);
    desk
}

/// Compares the warehouse with a change file of its own.
#[track_caller]
fn expect_rows(desk: &Desk, changes: &Changes) {
    let expected = desk.write("expected.jsonl", changes.text());
    let (warehouse, tables) = (desk.warehouse(), desk.path().join("tables.json"));
    let expectation = Expectation { warehouse: &warehouse, namespace: "shop", changes: &expected, tables: &tables };
    expectation.compare(&["--reader", "pyiceberg"]).expect_code(0);
}

/// A line that cannot be read and belongs to no table: the run stops, all before it is committed; when the line is mended,
/// the next run goes on behind it.
#[track_caller]
fn stops_the_source(line: &str, code: &str, words: &[&str]) {
    let before = good(Changes::new(), 1);
    let desk = desk(&good(before.clone().line(line), 4));
    let told = ["changes.jsonl, line 7", code, "correct or remove the line", "onDecodeError"];
    desk.run().expect_code(3).expect_line(&[&told[..], words].concat()).expect_no_words(&[SECRET]);
    expect_rows(&desk, &before);
    let mended = good(before.begin().insert("items", item(99)), 4);
    desk.write("changes.jsonl", mended.text());
    desk.run().expect_code(0);
    expect_rows(&desk, &mended);
}

/// An event that one table cannot take: the table halts before it, the other one goes on; when the line is mended, the halted
/// one resumes.
#[track_caller]
fn halts_the_table(event: &dyn Fn(Changes) -> Changes, code: &str, words: &[&str]) {
    let before = good(Changes::new(), 1);
    let desk = desk(&good(event(before.clone().begin()), 4));
    let told = ["shop.items is halted", "changes.jsonl, line 7", code, "or correct the line"];
    desk.run().expect_code(3).expect_line(&[&told[..], words].concat()).expect_no_words(&[SECRET]);
    let others_go_on = (4..7).fold(before.clone(), |changes, n| changes.begin().insert("others", other(n)));
    expect_rows(&desk, &others_go_on);
    // The other table has read on, so that the lines behind must stay where they are.
    let length = event(before.clone().begin()).text().len();
    let padded = |spaces: usize| {
        let row = json!({"id": 99, "name": format!("mended{}", " ".repeat(spaces)), "price": "1.50", "count": 1});
        before.clone().begin().insert("items", row)
    };
    let mended = good(padded(length - padded(0).text().len()), 4);
    desk.write("changes.jsonl", mended.text());
    desk.urutau(&["table", "resume", "-f", "pipeline.yaml", "shop.items"]).expect_code(0);
    desk.run().expect_code(0);
    expect_rows(&desk, &mended);
}

#[test]
fn a_line_that_is_no_json() {
    stops_the_source(&format!("{{\"before\":null,\"after\":{{\"id\":7,\"name\":\"{SECRET}\""), "[jsonl-malformed]", &["JSON"]);
}

#[test]
fn a_line_that_is_no_envelope() {
    stops_the_source(&json!({"greeting": SECRET}).to_string(), "[jsonl-not-an-event]", &["no change event"]);
}

#[test]
fn an_operation_that_nobody_knows() {
    let event = json!({"before": null, "after": item(7), "source": {"connector": "mysql", "db": "desk", "schema": "shop", "table": "items", "txId": 4}, "op": "x"});
    stops_the_source(&event.to_string(), "[jsonl-operation]", &["operation", "known are c, u, d, r, t and m"]);
}

#[test]
fn a_row_without_its_key_column() {
    let keyless = json!({"name": SECRET, "price": "1.00", "count": 1});
    halts_the_table(&|changes| changes.insert("items", keyless.clone()), "[jsonl-key]", &["shop.items.id", "name a key"]);
}

#[test]
fn a_row_whose_key_is_null() {
    halts_the_table(
        &|changes| changes.insert("items", item(Value::Null)),
        "[jsonl-key]",
        &["shop.items.id", "found null", "name a key"],
    );
}

#[test]
fn a_value_that_does_not_fit() {
    let too_many_digits = json!({"id": 7, "name": SECRET, "price": "12345.50", "count": 1});
    halts_the_table(
        &|changes| changes.insert("items", too_many_digits.clone()),
        "[jsonl-value]",
        &["price", "decimal(6,2)", "tables[].columns"],
    );
    let too_large = json!({"id": 7, "name": SECRET, "price": "1.50", "count": 3_000_000_000_u64});
    halts_the_table(
        &|changes| changes.insert("items", too_large.clone()),
        "[jsonl-value]",
        &["count", "int32", "tables[].columns"],
    );
}

#[test]
fn a_value_of_the_wrong_type() {
    let text = json!({"id": 7, "name": SECRET, "price": "1.50", "count": SECRET});
    halts_the_table(&|changes| changes.insert("items", text.clone()), "[jsonl-value]", &["count", "int32", "tables[].columns"]);
}

#[test]
fn a_column_whose_values_disagree_and_that_is_not_declared() {
    let row = |id: u64, name: Value| json!({"id": id, "name": name});
    let fits = Changes::new().begin().insert("others", row(1, Value::Null));
    let fits = fits.begin().insert("others", other(2)).begin().insert("others", other(3));
    let text = fits.clone().begin().insert("others", row(4, json!(5))).text().to_owned();
    let desk = desk(&Changes::new());
    desk.write("changes.jsonl", &text);
    let place = format!("changes.jsonl, line 4 (byte {})", fits.text().len());
    let told = [
        "shop.others",
        "'name'",
        "numbers and strings",
        &place,
        "declare the column",
        "tables[].columns",
        "[jsonl-type-unknown]",
    ];
    let others = "tables:\n  - { source: shop.others, primaryKey: [id] }\n";
    let (head, _) = PIPELINE.split_once("tables:\n").expect("a list of tables");
    desk.write("pipeline.yaml", &format!("{head}{others}"));
    desk.run().expect_code(2).expect_line(&told).expect_no_words(&[SECRET]);
    for command in ["doctor", "plan"] {
        desk.urutau(&[command, "-f", "pipeline.yaml"]).expect_code(2).expect_line(&told).expect_no_words(&[SECRET]);
    }
    assert!(!desk.warehouse().join("shop/others").exists(), "a refused run has made the table");
    // Declared, the table begins, and halts in front of the line that does not fit: before it nothing is lost.
    let columns = "columns: [{ name: name, type: string }]";
    desk.write("pipeline.yaml", &format!("{head}{}", others.replace(" }", &format!(", {columns} }}"))));
    desk.run()
        .expect_code(3)
        .expect_line(&["shop.others is halted", "changes.jsonl, line 4", "expected string, found a number", "[jsonl-value]"])
        .expect_no_words(&[SECRET]);
    desk.write(
        "tables.json",
        r#"{ "others": { "source": "shop.others", "key": ["id"], "columns": { "id": "int64", "name": "string" } } }"#,
    );
    expect_rows(&desk, &fits);
}

/// A pipeline file with one thing changed, which must be refused before anything is made.
#[track_caller]
fn refused(old: &str, new: &str, words: &[&str]) {
    let desk = desk(&good(Changes::new(), 1));
    assert_eq!(PIPELINE.matches(old).count(), 1, "the test's pipeline has no single '{old}'");
    desk.write("pipeline.yaml", &PIPELINE.replace(old, new));
    desk.run().expect_code(2).expect_line(words).expect_no_words(&[SECRET]);
    assert!(!desk.warehouse().exists(), "a refused run has made a warehouse");
}

#[test]
fn an_unknown_field_is_named_with_the_one_that_was_meant() {
    let told = ["pipeline.yaml:6", "tables[0].primaryKeys", "[unknown-field]", "Did you mean `primaryKey`?"];
    refused("primaryKey: [id]\n", "primaryKeys: [id]\n", &told);
}

#[test]
fn a_file_that_is_not_there() {
    let desk = desk(&good(Changes::new(), 1));
    desk.write("pipeline.yaml", &PIPELINE.replace("path: changes.jsonl", "path: changed.jsonl"));
    desk.run().expect_code(2).expect_line(&["'changed.jsonl'", "check 'source.path'", "[jsonl-no-file]"]);
}

#[test]
fn a_variable_that_is_not_set() {
    let told = ["pipeline.yaml:3", "sink.uri", "[unset-variable]", "Set URUTAU_E2E_NOT_SET in the environment"];
    refused("uri: ./warehouse", "uri: \"${env:URUTAU_E2E_NOT_SET}\"", &told);
}

#[test]
fn a_duration_that_is_none() {
    let checkpoint = "namespace: shop, checkpoint: { interval: 10 parsecs }";
    let told = ["pipeline.yaml:3", "sink.checkpoint.interval", "`10 parsecs`", "[bad-duration]", "The units are"];
    refused("namespace: shop", checkpoint, &told);
}

#[test]
fn all_problems_of_a_pipeline_file_are_told_at_once() {
    let desk = desk(&good(Changes::new(), 1));
    let text = PIPELINE
        .replace("primaryKey: [id]\n", "primaryKeys: [id]\n")
        .replace("int32", "int33")
        .replace("kind: jsonl", "kind: jsonll");
    desk.write("pipeline.yaml", &text);
    desk.run()
        .expect_code(2)
        .expect_line(&["pipeline.yaml:2", "source.kind", "jsonll", "[unknown-word]", "Did you mean `jsonl`?"])
        .expect_line(&["pipeline.yaml:6", "primaryKeys", "[unknown-field]", "Did you mean `primaryKey`?"])
        .expect_line(&["pipeline.yaml:7", "int33", "[bad-column-type]", "Did you mean `int32`?"]);
}

#[test]
fn a_pipeline_file_that_is_not_there() {
    let desk = Desk::new();
    desk.run().expect_code(2).expect_line(&["pipeline.yaml", "`urutau init` writes one", "[unreadable-pipeline]"]);
}

#[test]
fn a_directory_that_may_not_be_read() {
    let desk = desk(&good(Changes::new(), 1));
    let closed = desk.path().join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::rename(desk.path().join("changes.jsonl"), closed.join("changes.jsonl")).expect("the file moves");
    desk.write("pipeline.yaml", &PIPELINE.replace("path: changes.jsonl", "path: closed/changes.jsonl"));
    set_mode(&closed, 0o000);
    // Root may read everything: the run is somebody else's. Whoever else runs this test is refused, too.
    let root = am_i_root();
    let mut binary = Binary::Plain.path().to_path_buf();
    if root {
        // The build's own folder may be closed to others.
        let copy = desk.path().join("urutau");
        std::fs::copy(&binary, &copy).expect("the binary is copied");
        set_mode(desk.path(), 0o777);
        binary = copy;
    }
    let mut command = std::process::Command::new(binary);
    command.args(Desk::RUN).current_dir(desk.path()).env_remove("RUST_BACKTRACE");
    let ended = if root { Process::start_as_nobody(command) } else { Process::start(command) }.wait();
    set_mode(&closed, 0o755);
    ended.expect_code(2).expect_line(&[
        "closed/changes.jsonl",
        "ermission",
        "[jsonl-unreadable]",
        "give the user that urutau runs as the right",
    ]);
}

#[test]
fn a_warehouse_that_another_pipeline_made() {
    let changes = good(Changes::new(), 1);
    let desk = desk(&changes);
    desk.run().expect_code(0);
    desk.write("pipeline.yaml", &PIPELINE.replace("pipeline: bad-input", "pipeline: somebody-else"));
    desk.run().expect_code(2).expect_line(&[
        "'shop.items'",
        "'bad-input'",
        "'somebody-else'",
        "choose another target",
        "[iceberg-foreign-table]",
    ]);
    expect_rows(&desk, &changes);
}

#[test]
fn a_file_that_is_shorter_than_the_stored_offset() {
    let changes = good(good(Changes::new(), 1), 4);
    let desk = desk(&changes);
    desk.run().expect_code(0);
    desk.write("changes.jsonl", good(Changes::new(), 1).text());
    desk.run().expect_code(4).expect_line(&["changes.jsonl", "cut short", "Put the log back"]).expect_no_words(&[SECRET]);
    expect_rows(&desk, &changes);
}

#[test]
fn another_file_under_the_files_name() {
    let changes = good(Changes::new(), 1);
    let desk = desk(&changes);
    desk.run().expect_code(0);
    desk.write("changes.jsonl", good(good(Changes::new(), 100), 200).text());
    desk.run()
        .expect_code(4)
        .expect_line(&["changes.jsonl", "is another one", "Put the old one back"])
        .expect_no_words(&[SECRET]);
    expect_rows(&desk, &changes);
}

#[test]
fn a_disk_that_is_full() {
    let many = |from: u64| {
        let wide = |n: u64| json!({"id": n, "name": format!("{SECRET} {}", noise(n)), "price": "1.50", "count": 1});
        let begun = Changes::new().begin().insert("others", other(1));
        (from..from + 4_000).fold(begun, |changes, n| changes.begin().insert("items", wide(n)))
    };
    let changes = many(0);
    let desk = desk(&changes);
    let retried = format!(
        "{}retry: {{ giveUpAfter: 2s }}\n",
        PIPELINE.replace("namespace: shop", "namespace: shop, checkpoint: { maxRows: 500 }")
    );
    desk.write("pipeline.yaml", &retried);
    std::fs::create_dir(desk.warehouse()).expect("a folder");
    let warehouse = desk.warehouse();
    let disk = SmallDisk::at(&warehouse);
    disk.run(&desk)
        .expect_code(5)
        .expect_line(&["warehouse", "gave up after retry.giveUpAfter", "make room on that disk", "[iceberg-disk-full]"])
        .expect_no_words(&[SECRET]);
    disk.grow();
    desk.run().expect_code(0);
    expect_rows(&desk, &changes);
}

/// Two kilobytes that do not compress.
fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x}")
    };
    std::iter::repeat_with(next).take(128).collect()
}

/// A disk with room for little: a tmpfs, or where mounting is not permitted a bound on the size of each file, which meets
/// the same errors in the same places.
enum SmallDisk<'a> {
    Mounted(&'a Path),
    Bounded,
}

impl SmallDisk<'_> {
    fn at(folder: &Path) -> SmallDisk<'_> {
        if mount(&["-t", "tmpfs", "-o", "size=3m", "tmpfs"], folder) {
            return SmallDisk::Mounted(folder);
        }
        eprintln!("mounting is not permitted here: a bound on the size of files takes the place of a full disk");
        SmallDisk::Bounded
    }

    fn run(&self, desk: &Desk) -> Ended {
        if let SmallDisk::Mounted(_) = self {
            return desk.run();
        }
        let plain = desk.command(Binary::Plain, Desk::RUN);
        let mut bounded = std::process::Command::new("bash");
        bounded.args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
        bounded.current_dir(desk.path());
        Process::start(bounded).wait()
    }

    fn grow(&self) {
        if let SmallDisk::Mounted(folder) = self {
            assert!(mount(&["-o", "remount,size=200m"], folder), "the small disk grows");
        }
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        if let SmallDisk::Mounted(folder) = self {
            // Lazily: a process that is still being ended may hold a file.
            let _ = std::process::Command::new("umount").arg("-l").arg(folder).status();
        }
    }
}

fn mount(options: &[&str], folder: &Path) -> bool {
    let mut command = std::process::Command::new("mount");
    command.args(options).arg(folder).stderr(std::process::Stdio::null());
    am_i_root() && command.status().is_ok_and(|status| status.success())
}

fn am_i_root() -> bool {
    let me = std::fs::metadata("/proc/self").expect("this process has a folder");
    std::os::unix::fs::MetadataExt::uid(&me) == 0
}

fn set_mode(path: &Path, mode: u32) {
    let rights = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, rights).expect("rights can be set");
}
