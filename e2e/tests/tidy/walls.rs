//! The walls between crates. Cargo enforces that there is no circle; this enforces the rest, and names the edge that
//! goes through a wall.

use std::collections::{BTreeMap, BTreeSet};

use crate::{list, metadata, text};

/// What the house is made of, as far as walls are concerned.
#[derive(Default)]
struct House {
    /// The workspace's crates: name to folder below the top.
    ours: BTreeMap<String, String>,
    /// Who names whom in its manifest.
    edges: Vec<Edge>,
    /// What one package's normal dependencies pull in, all levels: name to names.
    below: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Clone)]
struct Edge {
    from: String,
    to: String,
    /// Only for its tests?
    dev: bool,
    /// The name under which `from` uses it, where that is another one.
    renamed: Option<String>,
}

/// What a crate may name in `[dependencies]`. `ours` are crates of the workspace, `others` from outside.
struct Wall {
    of: &'static str,
    ours: &'static [&'static str],
    others: Others,
}

enum Others {
    /// These, and with a `*` at the end everything that begins so.
    Only(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}
use Others::{AllBut, Only};

/// A runtime, a socket or a clock has no place in these crates.
const RUNTIMES: &[&str] = &["tokio", "axum", "async-std", "smol", "madsim"];

const WALLS: &[Wall] = &[
    Wall { of: "kernel", ours: &[], others: Only(&["serde", "thiserror"]) },
    Wall {
        of: "rows",
        ours: &["kernel"],
        others: Only(&["arrow-*", "hashbrown", "serde", "serde_json", "strsim", "thiserror", "twox-hash"]),
    },
    Wall { of: "trace", ours: &["kernel"], others: Only(&["serde", "serde_json", "thiserror", "twox-hash"]) },
    Wall { of: "contract", ours: &["kernel", "rows"], others: AllBut(RUNTIMES) },
    Wall { of: "spec", ours: &[], others: AllBut(RUNTIMES) },
    // The pump speaks the contract's words, but it runs on any runtime.
    Wall { of: "pump", ours: &["kernel", "rows", "contract"], others: AllBut(RUNTIMES) },
    Wall { of: "host", ours: &["kernel", "rows", "trace", "contract", "spec", "pump"], others: AllBut(&["madsim"]) },
    Wall { of: "sim", ours: &["kernel", "rows", "trace", "pump", "fault-scenarios"], others: AllBut(&["tokio"]) },
    Wall { of: "fault-scenarios", ours: &[], others: Only(&["serde"]) },
    // It feeds decoders and machines, whatever they are of.
    Wall {
        of: FUZZER,
        ours: &["kernel", "rows", "contract", "spec", "jsonl", "postgres-source", "fault-scenarios"],
        others: Only(&["arrow-*", "serde", "serde_json"]),
    },
    // An independent judge uses nothing of what it judges.
    Wall { of: "e2e", ours: &[], others: AllBut(&["madsim"]) },
    Wall { of: "example", ours: &["contract"], others: Only(&["async-trait"]) },
];

/// What a driver may name. It knows no other driver and no host; `contract` shows it the kernel and the rows.
const DRIVER: Wall = Wall { of: "a driver", ours: &["contract", "kernel", "rows"], others: AllBut(&["madsim"]) };

/// Everything below `drivers/` that is no driver.
const NO_DRIVERS: &[&str] = &["contract", "spec", "pump", "host"];

/// The binary: the only place that names concrete drivers.
const BINARY: &str = "urutau";

/// What a fuzzer feeds: it names the drivers whose decoders it feeds, and runs none of them.
const FUZZER: &str = "fuzz-targets";

/// Nobody depends on these.
const TOPS: &[&str] = &["sim", "e2e", BINARY, FUZZER];

/// What the kernel may pull in, all levels: serde and thiserror, with what these need to be compiled.
const KERNEL_BELOW: &[&str] =
    &["serde", "serde_core", "serde_derive", "thiserror", "thiserror-impl", "proc-macro2", "quote", "syn", "unicode-ident"];

impl House {
    fn is_driver(&self, name: &str) -> bool {
        self.ours.get(name).is_some_and(|folder| folder.starts_with("drivers/")) && !NO_DRIVERS.contains(&name)
    }

    /// Every edge that goes through a wall, each with the rule that it breaks.
    fn offences(&self) -> Vec<String> {
        let mut found: Vec<String> =
            self.edges.iter().filter_map(|edge| Some(format!("{edge}: {}", self.offence(edge)?))).collect();
        for (package, below) in &self.below {
            let foreign = below.iter().filter(|name| package == "kernel" && !KERNEL_BELOW.contains(&name.as_str()));
            found.extend(foreign.map(|name| format!("kernel ... -> {name}: the kernel's tree holds serde and thiserror only")));
        }
        found
    }

    fn offence(&self, edge: &Edge) -> Option<String> {
        let (from, to) = (edge.from.as_str(), edge.to.as_str());
        let inside = self.ours.contains_key(to);
        if TOPS.contains(&to) {
            return Some(format!("nothing depends on `{to}`"));
        }
        if edge.renamed.is_some() && (to.starts_with("madsim") || ["tokio", "tonic"].contains(&to)) {
            return Some("nobody renames a runtime: simulation is chosen by the simulator alone".into());
        }
        if self.is_driver(to) && ![BINARY, FUZZER].contains(&from) {
            return Some(format!("only `{BINARY}` names concrete drivers"));
        }
        if to.starts_with("madsim") && from != "sim" {
            return Some("only `sim` depends on madsim".into());
        }
        if edge.dev {
            return None; // For its tests a crate may use what it likes of the outside.
        }
        let wall = match WALLS.iter().find(|wall| wall.of == from) {
            Some(wall) => wall,
            None if self.is_driver(from) => &DRIVER,
            None if from == BINARY => return None,
            None => return Some(format!("`{from}` has no wall yet: add one to e2e/tests/tidy/walls.rs")),
        };
        let allowed = if inside { wall.ours.contains(&to) } else { wall.others.allow(to) };
        (!allowed).then(|| wall.say(inside))
    }
}

impl Others {
    fn allow(&self, name: &str) -> bool {
        let named = |pattern: &&str| pattern.strip_suffix('*').map_or(name == *pattern, |start| name.starts_with(start));
        match self {
            Only(names) => names.iter().any(named),
            AllBut(names) => !names.iter().any(named),
        }
    }
}

impl Wall {
    fn say(&self, inside: bool) -> String {
        match (inside, &self.others) {
            (true, _) => format!("of ours {} depends on [{}] only", self.of, self.ours.join(", ")),
            (false, Only(names)) => format!("from outside {} depends on [{}] only", self.of, names.join(", ")),
            (false, AllBut(names)) => format!("{} does without [{}]", self.of, names.join(", ")),
        }
    }
}

impl std::fmt::Display for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} -> {}{}", self.from, self.to, if self.dev { " (for tests)" } else { "" })
    }
}

/// The house as `cargo metadata` describes it.
fn house(metadata: &serde_json::Value) -> House {
    let top = text(metadata, "workspace_root");
    let members: BTreeSet<&str> = list(metadata, "workspace_members").iter().filter_map(|id| id.as_str()).collect();
    let mut house = House::default();
    for package in list(metadata, "packages").iter().filter(|p| members.contains(text(p, "id"))) {
        let folder =
            text(package, "manifest_path").trim_start_matches(top).trim_start_matches('/').trim_end_matches("/Cargo.toml");
        house.ours.insert(text(package, "name").into(), folder.into());
        house.edges.extend(list(package, "dependencies").iter().map(|dependency| Edge {
            from: text(package, "name").into(),
            to: text(dependency, "name").into(),
            dev: dependency["kind"] == "dev",
            renamed: dependency["rename"].as_str().map(String::from),
        }));
    }
    house.below.insert("kernel".into(), below(metadata, "kernel"));
    house
}

/// The names of everything that a package's normal and build dependencies pull in.
fn below(metadata: &serde_json::Value, package: &str) -> BTreeSet<String> {
    let names: BTreeMap<&str, &str> = list(metadata, "packages").iter().map(|p| (text(p, "id"), text(p, "name"))).collect();
    let nodes: BTreeMap<&str, &serde_json::Value> =
        list(&metadata["resolve"], "nodes").iter().map(|n| (text(n, "id"), n)).collect();
    let top = names.iter().find(|(_, name)| **name == package).map(|(id, _)| *id).expect("the package is in the workspace");
    let mut seen = BTreeSet::new();
    let mut queue = vec![top];
    while let Some(id) = queue.pop() {
        for dependency in list(nodes[id], "deps") {
            let needed = list(dependency, "dep_kinds").iter().any(|kind| kind["kind"] != "dev");
            let id = text(dependency, "pkg");
            if needed && seen.insert(id) {
                queue.push(id);
            }
        }
    }
    seen.into_iter().map(|id| names[id].to_string()).collect()
}

#[test]
fn no_dependency_goes_through_a_wall() {
    let offences = house(&metadata()).offences();
    assert!(offences.is_empty(), "dependencies that the design forbids:\n  {}", offences.join("\n  "));
}

#[test]
fn every_wall_is_of_a_crate_that_exists_or_is_planned() {
    let house = house(&metadata());
    let unknown: Vec<_> = WALLS.iter().map(|wall| wall.of).filter(|of| !house.ours.contains_key(*of)).collect();
    assert!(unknown.iter().all(|of| *of == "fault-scenarios"), "walls of crates that are not there: {unknown:?}");
}

/// A made-up house with one wrong edge: the test of the test.
fn made_up(from: &str, to: &str, dev: bool) -> House {
    let folders = [
        ("kernel", "kernel"),
        ("rows", "kernel/rows"),
        ("contract", "drivers/contract"),
        ("jsonl", "drivers/jsonl"),
        ("null", "drivers/null"),
    ];
    let more = [
        ("example", "drivers/example"),
        ("host", "drivers/host"),
        ("sim", "sim"),
        ("e2e", "e2e"),
        ("urutau", "cli"),
        ("fuzz-targets", "fuzz/targets"),
    ];
    let edge = |from: &str, to: &str, dev| Edge { from: from.into(), to: to.into(), dev, renamed: None };
    House {
        ours: folders.iter().chain(&more).map(|(name, folder)| (name.to_string(), folder.to_string())).collect(),
        edges: vec![
            edge("kernel", "serde", false),
            edge("rows", "kernel", false),
            edge("contract", "rows", false),
            edge("jsonl", "contract", false),
            edge("jsonl", "tokio", false),
            edge("urutau", "jsonl", false),
            edge(from, to, dev),
        ],
        below: BTreeMap::new(),
    }
}

#[test]
fn a_planted_edge_is_reported_with_its_rule() {
    let planted = [
        ("kernel", "tokio", "kernel -> tokio: from outside kernel depends on [serde, thiserror] only"),
        ("rows", "contract", "rows -> contract: of ours rows depends on [kernel] only"),
        ("jsonl", "null", "jsonl -> null: only `urutau` names concrete drivers"),
        ("host", "jsonl", "host -> jsonl: only `urutau` names concrete drivers"),
        ("example", "rows", "example -> rows: of ours example depends on [contract] only"),
        ("example", "tokio", "example -> tokio: from outside example depends on [async-trait] only"),
        ("host", "madsim", "host -> madsim: only `sim` depends on madsim"),
        ("e2e", "kernel", "e2e -> kernel: of ours e2e depends on [] only"),
        ("urutau", "sim", "urutau -> sim: nothing depends on `sim`"),
        (
            "fuzz-targets",
            "host",
            "fuzz-targets -> host: of ours fuzz-targets depends on [kernel, rows, contract, spec, jsonl, postgres-source, fault-scenarios] only",
        ),
        ("host", "fuzz-targets", "host -> fuzz-targets: nothing depends on `fuzz-targets`"),
    ];
    for (from, to, said) in planted {
        assert_eq!(made_up(from, to, false).offences(), [said]);
    }
}

#[test]
fn a_crate_may_use_the_outside_for_its_tests_but_no_driver() {
    assert_eq!(made_up("example", "tokio", true).offences(), Vec::<String>::new());
    assert_eq!(made_up("host", "jsonl", true).offences(), ["host -> jsonl (for tests): only `urutau` names concrete drivers"]);
}

#[test]
fn what_the_kernel_pulls_in_two_levels_down_is_reported() {
    let mut house = made_up("kernel", "thiserror", false);
    house.below.insert("kernel".into(), BTreeSet::from(["serde".into(), "rand".into()]));
    assert_eq!(house.offences(), ["kernel ... -> rand: the kernel's tree holds serde and thiserror only"]);
}

#[test]
fn a_renamed_runtime_is_reported() {
    let mut house = made_up("kernel", "thiserror", false);
    let renamed = Some("tokio".into());
    house.edges.push(Edge { from: "host".into(), to: "madsim-tokio".into(), dev: false, renamed });
    assert_eq!(house.offences(), ["host -> madsim-tokio: nobody renames a runtime: simulation is chosen by the simulator alone"]);
}
