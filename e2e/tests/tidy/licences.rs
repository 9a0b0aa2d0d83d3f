//! What `deny.toml` says about licences, bans and sources, held to without the tool that reads it: a test must not need
//! a download of its own.

use std::collections::BTreeSet;

use crate::{list, metadata, root, text};

/// The licences of `deny.toml`.
fn allowed() -> BTreeSet<String> {
    let file = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read");
    let list = file.split_once("\nallow = [").and_then(|(_, rest)| rest.split_once(']')).expect("deny.toml lists licences").0;
    list.split('"').skip(1).step_by(2).map(String::from).collect()
}

/// Does an SPDX expression leave a choice that `allowed` covers? `None` if it is no expression.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let value = either(&words, &mut at, allowed)?;
    (at == words.len()).then_some(value)
}

/// `all OR all ...`
fn either(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut value = all(words, at, allowed)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all(words, at, allowed)?;
    }
    Some(value)
}

/// `one AND one ...`
fn all(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut value = one(words, at, allowed)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(words, at, allowed)?;
    }
    Some(value)
}

/// A licence, with an exception perhaps, or an expression in brackets.
fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> Option<bool> {
    let word = *words.get(*at)?;
    *at += 1;
    if word == "(" {
        let value = either(words, at, allowed)?;
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return closed.then_some(value);
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1)?;
        *at += 2;
        return Some(allowed.contains(&format!("{word} WITH {exception}")));
    }
    (!["AND", "OR", "WITH", ")"].contains(&word)).then(|| allowed.contains(word))
}

#[test]
fn every_dependency_has_a_licence_that_deny_toml_allows() {
    let (metadata, allowed) = (metadata(), allowed());
    let wrong: Vec<String> = list(&metadata, "packages")
        .iter()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("none stated");
            (permits(licence, &allowed) != Some(true)).then(|| format!("{}: {licence}", text(package, "name")))
        })
        .collect();
    assert!(wrong.is_empty(), "licences that deny.toml does not allow:\n  {}", wrong.join("\n  "));
}

#[test]
fn every_dependency_comes_from_the_registry_or_from_here() {
    let metadata = metadata();
    let elsewhere: Vec<String> = list(&metadata, "packages")
        .iter()
        .filter(|package| package["source"].as_str().is_some_and(|source| !source.starts_with("registry+")))
        .map(|package| format!("{} from {}", text(package, "name"), text(package, "source")))
        .collect();
    assert!(elsewhere.is_empty(), "packages from unknown places:\n  {}", elsewhere.join("\n  "));
}

#[test]
fn no_banned_package_is_in_the_tree() {
    let metadata = metadata();
    let file = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read");
    let banned = file.lines().filter(|line| line.contains("{ name = ") && !line.contains("wrappers"));
    let banned: BTreeSet<&str> = banned.filter_map(|line| line.split('"').nth(1)).collect();
    assert!(banned.len() >= 3, "the bans of deny.toml are not found any more: {banned:?}");
    let present: Vec<&str> =
        list(&metadata, "packages").iter().map(|p| text(p, "name")).filter(|name| banned.contains(name)).collect();
    assert!(present.is_empty(), "banned by deny.toml, yet there: {present:?}");
}

#[test]
fn one_arrow_serves_everything() {
    let metadata = metadata();
    let arrows =
        list(&metadata, "packages").iter().filter(|p| text(p, "name").starts_with("arrow-") || text(p, "name") == "parquet");
    let majors: BTreeSet<&str> = arrows.filter_map(|p| text(p, "version").split('.').next()).collect();
    assert_eq!(majors, BTreeSet::from(["58"]));
}

#[test]
fn a_licence_expression_is_read_as_it_is_meant() {
    let allowed = BTreeSet::from(["MIT".to_string(), "Apache-2.0 WITH LLVM-exception".to_string(), "ISC".to_string()]);
    assert_eq!(permits("MIT OR GPL-3.0", &allowed), Some(true));
    assert_eq!(permits("MIT/GPL-3.0", &allowed), Some(true));
    assert_eq!(permits("MIT AND GPL-3.0", &allowed), Some(false));
    assert_eq!(permits("(GPL-3.0 OR MIT) AND ISC", &allowed), Some(true));
    assert_eq!(permits("Apache-2.0 WITH LLVM-exception", &allowed), Some(true));
    assert_eq!(permits("Apache-2.0", &allowed), Some(false));
    assert_eq!(permits("(MIT", &allowed), None);
    assert_eq!(permits("", &allowed), None);
}
