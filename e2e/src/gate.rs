//! The position gate: whenever it is looked, what the server was told that it may forget is not beyond what the copy's stored states say, no
//! stored state is beyond what the server has, and none of them ever goes back.
//!
//! One look asks the slot first, then the copy, then the server: each of the three only grows, so that the order of the questions makes
//! the comparison right although nobody stands still.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::postgres::Postgres;
use crate::{Desk, readers};

/// Looks, and remembers what it saw.
#[derive(Clone, Debug)]
pub struct Gate {
    slot: &'static str,
    quiet: u64,
    stood: BTreeMap<(String, u64), u64>,
}

/// What one look saw.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// What was acknowledged, as the slot keeps it.
    pub confirmed: u64,
    /// Up to where the record says that nothing is owed.
    pub quiet: u64,
    /// Where the server's log ended.
    pub end: u64,
    /// The tables by their sources' names.
    pub tables: BTreeMap<String, Stand>,
    /// What was asked about rows, in the order of the questions.
    pub answers: Vec<Option<String>>,
}

/// Where a table's copy stands.
#[derive(Clone, Debug, Default)]
pub struct Stand {
    /// Its own position.
    pub upto: u64,
    /// What it lacks nothing of: its own position, or the record's.
    pub effective: u64,
    /// Is it in the midst of a transaction?
    pub is_divided: bool,
    /// The snapshot that it began with.
    pub generation: u64,
    /// Ranges of its keys that the snapshot has, and that it lacks.
    pub ranges: (usize, usize),
}

impl Stand {
    /// Is its snapshot being read, some of it here and some missing?
    pub fn is_half_read(&self) -> bool {
        self.ranges.0 > 0 && self.ranges.1 > 0
    }
}

impl Gate {
    /// Of the one slot of a pipeline.
    pub fn new(slot: &'static str) -> Gate {
        Gate { slot, quiet: 0, stood: BTreeMap::new() }
    }

    /// Looks, and asks the copy about rows (table, expression). `Err` says where the gate is broken.
    pub fn look(&mut self, server: &Postgres, desk: &Desk, questions: &[(&str, &str)]) -> Result<Look, String> {
        Ok(self.look_for(server, desk, questions, 60)?.expect("nobody holds the catalogue's lock for a minute"))
    }

    /// Looks at what a process has that is frozen; `None` if that is the lock of the catalogue. `Err` says where the gate is broken.
    pub fn look_at_frozen(&mut self, server: &Postgres, desk: &Desk) -> Result<Option<Look>, String> {
        self.look_for(server, desk, &[], 1)
    }

    fn look_for(
        &mut self,
        server: &Postgres,
        desk: &Desk,
        questions: &[(&str, &str)],
        patience_seconds: u32,
    ) -> Result<Option<Look>, String> {
        let confirmed = server.slot(self.slot).acknowledged;
        let Some(said) = readers::states(&desk.warehouse(), "shop", questions, patience_seconds) else { return Ok(None) };
        let look = Look::of(&said, confirmed, server.log_end());
        let faults = [look.faults(), self.went_back(&look)].concat();
        if !faults.is_empty() {
            return Err(format!("the position gate is broken: {}\n{look:#?}\n{said:#}", faults.join("; ")));
        }
        Ok(Some(look))
    }

    /// What is behind what was seen before.
    fn went_back(&mut self, look: &Look) -> Vec<String> {
        let mut faults = Vec::new();
        if look.quiet < self.quiet {
            faults.push(format!("the record went back from {} to {}", self.quiet, look.quiet));
        }
        self.quiet = look.quiet;
        for (name, stand) in &look.tables {
            let before = self.stood.insert((name.clone(), stand.generation), stand.effective).unwrap_or(0);
            if stand.effective < before {
                faults.push(format!("{name} went back from {before} to {}", stand.effective));
            }
            let newest = self.stood.keys().filter(|(table, _)| table == name).map(|(_, generation)| *generation).max();
            if newest.is_some_and(|newest| stand.generation < newest) {
                faults.push(format!("{name} went back to snapshot {}", stand.generation));
            }
        }
        faults
    }
}

impl Look {
    fn of(said: &Value, confirmed: u64, end: u64) -> Look {
        let record = said["records"].as_object().and_then(|records| records.values().next()).cloned().unwrap_or_default();
        let quiet = offset(&record["quiet"]);
        let stand = |(target, state): (&String, &Value)| {
            let source = format!("public.{target}");
            let upto = offset(&state["cut"]["upto"]);
            let named = &record["tables"][&source]["named"];
            let effective = if is_built_upon(state, named) { upto.max(quiet) } else { upto };
            let durable = |range: &&Value| range["durable"] == true;
            let tiling = state["tiling"].as_array().map(Vec::as_slice).unwrap_or_default();
            let read = tiling.iter().filter(durable).count();
            let stand = Stand {
                upto,
                effective,
                is_divided: state["cut"]["within"].as_array().is_some_and(|within| !within.is_empty()),
                generation: state["generation"].as_u64().expect("a generation"),
                ranges: (read, tiling.len() - read),
            };
            (source, stand)
        };
        let tables = said["tables"].as_object().expect("tables").iter().map(stand).collect();
        let answers =
            said["answers"].as_array().expect("answers").iter().map(|answer| answer.as_str().map(str::to_owned)).collect();
        Look { confirmed, quiet, end, tables, answers }
    }

    /// What is beyond what it may be.
    fn faults(&self) -> Vec<String> {
        let beyond =
            |what: &str, is: u64, most: u64, of: &str| (is > most).then(|| format!("{what} is at {is}, beyond {of}, {most}"));
        let mut faults: Vec<Option<String>> = vec![
            beyond("the slot", self.confirmed, self.quiet, "what the stored record says"),
            beyond("the stored record", self.quiet, self.end, "the server's end"),
        ];
        for (name, stand) in &self.tables {
            faults.push(beyond("the slot", self.confirmed, stand.effective, &format!("what the copy of {name} holds")));
            faults.push(beyond(name, stand.upto, self.end, "the server's end"));
        }
        faults.into_iter().flatten().collect()
    }
}

/// A position in a log that is one stream: '' is its beginning.
fn offset(position: &Value) -> u64 {
    match position.as_str() {
        None | Some("") => 0,
        Some(text) => text.parse().unwrap_or_else(|_| panic!("'{text}' is no position of one stream")),
    }
}

/// Is this the named commit's state, or one that was built upon it?
fn is_built_upon(state: &Value, named: &Value) -> bool {
    let run_has = |run: &Value| {
        let within = run["first"].as_u64()..=run["last"].as_u64();
        run["incarnation"] == named["incarnation"] && within.contains(&named["number"].as_u64())
    };
    !named.is_null() && (state["commit"] == *named || state["ancestors"].as_array().is_some_and(|runs| runs.iter().any(run_has)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A copy at 50 of a transaction that it was told whole, whose record is quiet up to 70 and names commit 2.
    fn said(commit: u64, first: u64) -> Value {
        let state = json!({
            "cut": { "upto": "50" }, "generation": 1, "commit": { "incarnation": 1, "number": commit },
            "ancestors": [{ "incarnation": 1, "first": first, "last": commit - 1 }],
        });
        let record = json!({ "quiet": "70", "tables": { "public.orders": { "named": { "incarnation": 1, "number": 2 } } } });
        json!({ "tables": { "orders": state }, "records": { "urutau_desk": record }, "answers": [] })
    }

    #[test]
    fn the_record_speaks_for_a_table_only_by_a_commit_that_it_was_built_upon() {
        assert_eq!(Look::of(&said(2, 1), 70, 80).faults(), Vec::<String>::new());
        assert_eq!(Look::of(&said(5, 1), 70, 80).faults(), Vec::<String>::new());
        assert_eq!(Look::of(&said(5, 3), 70, 80).faults().len(), 1);
        assert_eq!(Look::of(&said(5, 3), 50, 80).faults(), Vec::<String>::new());
    }

    #[test]
    fn each_position_that_is_beyond_what_it_may_be_is_a_fault() {
        assert_eq!(Look::of(&said(2, 1), 71, 80).faults().len(), 2, "the slot is beyond the record and the table");
        assert_eq!(Look::of(&said(2, 1), 50, 60).faults().len(), 1, "the record is beyond the server");
        assert_eq!(Look::of(&said(2, 1), 40, 49).faults().len(), 2, "the table is, too");
    }

    #[test]
    fn nothing_that_was_stored_goes_back() {
        let mut gate = Gate::new("desk");
        let at = |quiet: u64, upto: u64, generation: u64| {
            let stand = Stand { upto, effective: upto, generation, ..Stand::default() };
            Look { quiet, tables: BTreeMap::from([("public.orders".to_owned(), stand)]), ..Look::default() }
        };
        assert!(gate.went_back(&at(70, 70, 1)).is_empty());
        assert_eq!(gate.went_back(&at(69, 70, 1)).len(), 1);
        assert_eq!(gate.went_back(&at(70, 69, 1)).len(), 1);
        assert!(gate.went_back(&at(70, 60, 2)).is_empty(), "a snapshot that begins anew");
        assert_eq!(gate.went_back(&at(70, 70, 1)).len(), 1, "an older snapshot");
    }
}
