//! Resources and liveness.

use std::collections::BTreeSet;

use kernel::id::BatchId;

use super::Verdict;

/// The row store holds what the machine says, and not more than the budget and one read.
pub fn budget_conserved(held: u64, counted: u64, bytes_max: u64, largest_read: u64) -> Verdict {
    if held != counted {
        return Err(format!("the row store holds {held} bytes, the machine counts {counted}"));
    }
    if held >= bytes_max + largest_read {
        return Err(format!("{held} bytes are held; the bound is {bytes_max}, the largest read was {largest_read}"));
    }
    Ok(())
}

/// The row store holds exactly the ids that the machine knows.
pub fn rows_held_equal_rows_known(held: &BTreeSet<BatchId>, known: &BTreeSet<BatchId>) -> Verdict {
    match held.symmetric_difference(known).next() {
        Some(batch) if held.contains(batch) => Err(format!("{batch:?} is held and not known")),
        Some(batch) => Err(format!("{batch:?} is known and not held")),
        None => Ok(()),
    }
}

/// A deadline that has come moves something: else it would come again and again.
pub fn every_wait_has_an_exit(now: u64, deadline: Option<(u64, &str)>, said_something: bool) -> Verdict {
    match deadline {
        Some((at, why)) if at <= now && !said_something => Err(format!("'{why}' was due at {at}, and nothing came of it")),
        _ => Ok(()),
    }
}

/// While one table is stopped the others come on: each has all that the log held a while ago.
pub fn one_table_does_not_stop_others(stopped: &str, others: &[(String, Option<String>)]) -> Verdict {
    match others.iter().find_map(|(name, lacks)| lacks.as_ref().map(|l| (name, l))) {
        Some((name, lacks)) => Err(format!("{stopped} is stopped, and {name} lacks {lacks}")),
        None => Ok(()),
    }
}

/// After the faults have ended everything comes to rest in time.
pub fn converges_after_healing(missing: Option<&str>, waiting: &[String]) -> Verdict {
    match missing {
        Some(missing) => Err(format!("{missing}; waiting: {waiting:?}")),
        None if waiting.is_empty() => Ok(()),
        None => Err(format!("everything is there, and still it waits: {waiting:?}")),
    }
}

/// A life that ends as drained owes nothing.
pub fn drained_means_durable(owed: u64, behind: Option<&str>) -> Verdict {
    match (owed, behind) {
        (0, None) => Ok(()),
        (0, Some(behind)) => Err(format!("it ended as current, and {behind}")),
        (rows, _) => Err(format!("it ended as drained and owes {rows} rows")),
    }
}
