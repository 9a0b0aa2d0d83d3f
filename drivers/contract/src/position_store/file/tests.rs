//! Who wins, who is told so, and what a process that was stopped at the worst moment can still do.

use std::process::Command;

use super::*;

fn store() -> (tempfile::TempDir, FileStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::new(directory.path().join("positions"));
    (directory, store)
}

/// Replaces what is there, and gives the new token.
fn replace(store: &FileStore, name: &str, text: &str) -> Token {
    let there = store.read_now(name).unwrap();
    match store.replace_now(name, &there.token, text) {
        Replaced::Stored { token } => token,
        other => panic!("{other:?}"),
    }
}

fn files(store: &FileStore) -> Vec<String> {
    let mut files = store.files().unwrap();
    files.sort();
    files
}

#[test]
fn nothing_is_there_before_the_first_text() {
    let (_directory, store) = store();
    assert_eq!(store.read_now("pipeline").unwrap(), Versioned { value: None, token: Token::from("0") });
    assert!(!store.directory().exists(), "reading makes no directory");
}

#[test]
fn a_text_comes_back_byte_for_byte_in_another_process() {
    let (_directory, store) = store();
    let text = "{\"a\": 1}\n\n  second line\r\n\u{1F980}";
    let token = replace(&store, "pipeline", text);
    let other = FileStore::new(store.directory());
    assert_eq!(other.read_now("pipeline").unwrap(), Versioned { value: Some(text.into()), token });
}

#[test]
fn a_stale_token_conflicts_and_says_what_is_there() {
    let (_directory, store) = store();
    let none = store.read_now("pipeline").unwrap().token;
    let first = replace(&store, "pipeline", "one");
    let second = replace(&store, "pipeline", "two");
    let there = Versioned { value: Some("two".to_string()), token: second };
    for stale in [none, first] {
        assert_eq!(store.replace_now("pipeline", &stale, "three"), Replaced::Conflict { found: there.clone() });
    }
    assert_eq!(store.read_now("pipeline").unwrap(), there);
}

#[test]
fn two_names_have_nothing_to_do_with_each_other() {
    let (_directory, store) = store();
    replace(&store, "a", "of a");
    for odd in ["a.1.state", "a.1", "a.", ".a"] {
        let token = replace(&store, odd, odd);
        let prepared = store.prepare(odd, &token, "under way").unwrap().ok().unwrap();
        replace(&store, "a", odd);
        assert!(prepared.unnumbered.exists(), "what is under way under the name {odd} is none of the other's business");
        assert_eq!(store.read_now("a").unwrap().value.as_deref(), Some(odd));
        assert_eq!(store.read_now(odd).unwrap().value.as_deref(), Some(odd));
    }
}

#[test]
fn a_name_cannot_leave_the_directory() {
    let (directory, store) = store();
    replace(&store, "../../escaped/.x", "text");
    assert_eq!(files(&store).len(), 1);
    assert_eq!(files(&store), ["%2E.%2F..%2Fescaped%2F.x.1.state"]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn the_first_and_the_newest_eight_files_stay() {
    let (_directory, store) = store();
    for n in 1..=20 {
        replace(&store, "p", &n.to_string());
    }
    let expected: Vec<String> =
        [1, 13, 14, 15, 16, 17, 18, 19, 20].iter().map(|n| format!("p.{n}.state")).collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(files(&store), expected);
}

#[test]
fn of_two_that_looked_at_the_same_text_one_wins() {
    let (_directory, store) = store();
    let token = replace(&store, "p", "begin");
    let slow = store.prepare("p", &token, "slow").unwrap().ok().unwrap();
    let quick = store.prepare("p", &token, "quick").unwrap().ok().unwrap();
    let Replaced::Stored { token } = store.publish("p", &quick) else { panic!("the first link wins") };
    let found = Versioned { value: Some("quick".into()), token };
    assert_eq!(store.publish("p", &slow), Replaced::Conflict { found: found.clone() });
    assert_eq!(store.read_now("p").unwrap(), found);
    assert_eq!(files(&store), ["p.1.state", "p.2.state"], "nothing of the loser is left");
}

/// The case that a link alone does not decide: the number it wants was taken and removed while it slept.
#[test]
fn a_process_that_slept_through_many_replacements_wins_nothing() {
    let (_directory, store) = store();
    replace(&store, "p", "first");
    let token = replace(&store, "p", "begin");
    let asleep = store.prepare("p", &token, "from the grave").unwrap().ok().unwrap();
    // The others remove the sleeper's own file as well; it is put back, to let it try at all.
    let kept = fs::read(&asleep.unnumbered).unwrap();
    for n in 0..20 {
        replace(&store, "p", &n.to_string());
    }
    fs::write(&asleep.unnumbered, kept).unwrap();
    assert!(!store.path("p", asleep.number).exists(), "the number is free again, or this test proves nothing");
    let newest = store.read_now("p").unwrap();
    assert!(matches!(store.publish("p", &asleep), Replaced::Unknown { .. }));
    assert_eq!(store.read_now("p").unwrap(), newest);
    assert!(!store.path("p", asleep.number).exists(), "what it made is taken back");
}

#[test]
fn a_process_whose_new_file_was_tidied_up_learns_who_won() {
    let (_directory, store) = store();
    let token = replace(&store, "p", "begin");
    let asleep = store.prepare("p", &token, "late").unwrap().ok().unwrap();
    let token = replace(&store, "p", "quick");
    assert!(!asleep.unnumbered.exists());
    let found = Versioned { value: Some("quick".into()), token };
    assert_eq!(store.publish("p", &asleep), Replaced::Conflict { found });
}

#[test]
fn a_process_that_slept_since_the_beginning_wins_nothing() {
    let (_directory, store) = store();
    let none = store.read_now("p").unwrap().token;
    let asleep = store.prepare("p", &none, "from the grave").unwrap().ok().unwrap();
    let kept = fs::read(&asleep.unnumbered).unwrap();
    for n in 0..20 {
        replace(&store, "p", &n.to_string());
    }
    fs::write(&asleep.unnumbered, kept).unwrap();
    let newest = store.read_now("p").unwrap();
    assert_eq!(store.publish("p", &asleep), Replaced::Conflict { found: newest.clone() });
    assert_eq!(store.read_now("p").unwrap(), newest);
}

#[test]
fn a_kill_before_the_link_leaves_nothing_that_counts() {
    let (_directory, store) = store();
    let token = replace(&store, "p", "before");
    drop(store.prepare("p", &token, "half way").unwrap().ok().unwrap());
    assert_eq!(store.read_now("p").unwrap(), Versioned { value: Some("before".into()), token });
    replace(&store, "p", "after");
    assert_eq!(files(&store), ["p.1.state", "p.2.state"], "the next replacement tidies up");
}

#[test]
fn a_file_that_is_no_position_is_named() {
    let (_directory, store) = store();
    replace(&store, "p", "good");
    for bad in
        ["", "{}", "urutau-position 2.0123456789abcdef", "urutau-position 3.0123456789abcdef\n{}", "urutau-position 2.1\n{}"]
    {
        fs::write(store.path("p", 2), bad).unwrap();
        let error = store.read_now("p").unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Config, "position-store"));
        assert!(error.what.contains("p.2.state should begin with 'urutau-position 2.'"), "{error}");
    }
}

#[test]
fn a_place_that_cannot_be_a_directory_is_a_fault_of_the_configuration() {
    let (directory, _) = store();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let store = FileStore::new(file.join("below"));
    let error = store.read_now("p").unwrap_err();
    assert_eq!(error.kind, Kind::Config);
    assert!(error.to_string().contains("file/below"), "{error}");
}

const CHILD: &str = "URUTAU_TEST_POSITION_CHILD";
const CHILDREN: usize = 3;
const ROUNDS: u64 = 60;

/// Counts up entry `child` of a text like `3 0 12`. A replacement that is not lost leaves the others' counts as they were.
fn count_up(store: &FileStore, child: usize) {
    let mut stored = 0;
    while stored < ROUNDS {
        let there = store.read_now("count").unwrap();
        let text = there.value.unwrap_or_else(|| "0 0 0".into());
        let mut counts: Vec<u64> = text.split(' ').map(|count| count.parse().unwrap()).collect();
        assert!(counts[child] == stored || counts[child] == stored + 1, "told {stored}, found '{text}'");
        if counts[child] > stored {
            stored += 1; // It was unknown, and had happened.
            continue;
        }
        counts[child] += 1;
        let text: Vec<String> = counts.iter().map(u64::to_string).collect();
        match store.replace_now("count", &there.token, &text.join(" ")) {
            Replaced::Stored { .. } => stored += 1,
            Replaced::Conflict { .. } | Replaced::Unknown { .. } => {}
            Replaced::Failed(error) => panic!("{error}"),
        }
    }
}

#[test]
fn processes_that_count_at_the_same_time_lose_no_count() {
    if let Ok(child) = std::env::var(CHILD) {
        let (child, directory) = child.split_once(' ').unwrap();
        return count_up(&FileStore::new(directory), child.parse().unwrap());
    }
    let (_directory, store) = store();
    let name = "position_store::file::tests::processes_that_count_at_the_same_time_lose_no_count";
    let start = |child: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name]).env(CHILD, format!("{child} {}", store.directory().display()));
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut children: Vec<_> = (0..CHILDREN).map(start).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(store.read_now("count").unwrap().value.as_deref(), Some("60 60 60"));
}
