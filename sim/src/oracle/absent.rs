//! Values that updates left out: never stored as something else, read again only with proof, and what is said of keys that were
//! taken as they were read.

use kernel::position::Position;
use kernel::state::TableState;

use super::durability::contains;
use super::{Verdict, View};
use crate::history::{Key, Kind, Row};
use crate::sinks::Filled;
use crate::source::chunks::keys;

/// Rows that were read again.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// When: what was visible then is what they show.
    pub at: u64,
    /// Where the log ended after it; nothing before the answer arrived.
    pub fence: Position,
}

/// A value that was not sent is the row's own, and never null or a placeholder: each was written by a change.
pub fn absent_value_never_stored(images: &[(Key, Option<Row>)]) -> Verdict {
    match images.iter().find(|(_, row)| row.is_some_and(|row| row.large.contains(&0))) {
        Some((key, row)) => Err(format!("key {key} is stored as {row:?}, and 0 was never written")),
        None => Ok(()),
    }
}

/// What was read fills a hole only if it saw the last transaction that touched the row up to its fence, and the commit has passed
/// that. A row of a chunk fills none.
pub fn hole_filled_by_proof(view: &View<'_>, state: &TableState, fills: &[Filled], readings: &[Reading]) -> Verdict {
    for fill in fills.iter().filter(|fill| !fill.whole) {
        let Some(row) = fill.row else { return Err(format!("key {} takes something of a row that is not there", fill.key)) };
        let Some(reading) = row.reading.and_then(|number| readings.get(number)) else {
            return Err(format!("key {} takes a value of {row:?}, which was not read for it", fill.key));
        };
        if !contains(state.cut.upto(), &reading.fence) {
            return Err(format!("key {} is filled at {:?}, the read's fence is {}", fill.key, state.cut, reading.fence));
        }
        let below = view.history.held(&reading.fence);
        let touches = |kind: Kind| kind == Kind::Truncated || keys(kind).contains(&row.key);
        let mut changes = view.history.of_table[view.table].iter().filter(|place| touches(view.history.change(**place).kind));
        let last = changes.rfind(|place| below.holds(view.history, place.tx));
        if let Some(last) = last.filter(|last| view.history.seen(last.tx).listed > reading.at) {
            let what = view.say(*last);
            return Err(format!("key {} is filled by a read at {}, which could not prove {what}", fill.key, reading.at));
        }
    }
    Ok(())
}

/// Until the cut passes it, a state says up to where keys may be ahead: those of its own commit, and those that were before, unless
/// all rows are gone.
pub fn ahead_within_its_fence(
    before: Option<&TableState>,
    state: &TableState,
    emptied: bool,
    fills: &[Filled],
    readings: &[Reading],
) -> Verdict {
    let said = state.cut.upto().join(&state.ahead);
    let before = before.filter(|b| b.generation == state.generation && !emptied).map(|b| &b.ahead);
    let whole = fills.iter().filter(|fill| fill.whole).filter_map(|fill| readings.get(fill.row?.reading?));
    match before.into_iter().chain(whole.map(|reading| &reading.fence)).find(|ahead| !contains(&said, ahead)) {
        Some(ahead) => Err(format!("{:?} at {:?} says {}, keys are ahead up to {ahead}", state.commit, state.cut, state.ahead)),
        None => Ok(()),
    }
}
