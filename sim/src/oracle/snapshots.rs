//! Snapshots: what a reader may see while one is read, at every stored position; and of each chunk row whether it was right to
//! release it.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{CommandId, Version};
use kernel::position::Position;
use kernel::state::TableState;

use super::durability::{Smeared, contains};
use super::{Verdict, View};
use crate::history::{Contents, Key, Kind, Place, RowImage};
use crate::sinks::Commit;
use crate::source::chunks::{is_within, keys};

/// A chunk that was read.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRead {
    /// By which command.
    pub id: CommandId,
    /// When: what was visible then is what it shows.
    pub at: u64,
    /// The schema of its rows.
    pub schema: u32,
}

/// What a life was told.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// Every chunk.
    pub chunks: &'a [ChunkRead],
    /// Transactions of which an answer said that they are visible.
    pub proven: &'a BTreeMap<usize, BTreeSet<CommandId>>,
    /// The state that it found.
    pub began: Option<&'a TableState>,
}

/// At a cut of a generation: a key in a durable range, or touched since the base, shows exactly the source's row at the cut; a row
/// that an older generation left may stand where the source has none, until it is swept, since nothing else finds it. Any other key
/// shows nothing, or what an older generation left. Once the table streams all is exact, and of this generation. Where data
/// may be ahead of the state, a key may show a later state of the source.
pub fn what_a_reader_may_see(
    view: &View<'_>,
    state: &TableState,
    visible: &Contents,
    versions: &BTreeMap<Key, Version>,
    smeared: &Smeared,
) -> (&'static str, Verdict) {
    let all = view.covered(Some(state));
    let covered = |place: Place| all.covers(view.history, place);
    let expected = view.fold(covered);
    let (touched, every_key) = touched_since_base(view, state);
    let ended = state.tiling.is_empty();
    let staging = view.plan.staging;
    let known: BTreeSet<Key> = expected.rows.keys().chain(visible.rows.keys()).copied().collect();
    for key in known {
        let (is, should) = (visible.rows.get(&key).copied(), expected.rows.get(&key).copied());
        let durable = is_durable(state, key);
        let exact = ended || durable || every_key || touched.contains(&key);
        let older = is.is_some() && versions.get(&key).is_some_and(|version| *version < state.begun);
        let dump = || {
            let what = if older { "an older generation's " } else { "" };
            let name = &view.history.tables[view.table];
            let (cut, tiling) = (&state.cut, &state.tiling);
            format!(
                "{name} key {key} of generation {} at {cut:?}: is {what}{is:?}, should be {should:?}; touched {} durable {durable} in {tiling:?}",
                state.generation,
                touched.contains(&key)
            )
        };
        let read_again = |place: Place| smeared.get(&place.tx).is_some_and(|places| places.contains(&place));
        if older {
            match (exact, ended) {
                (false, _) => continue,
                (true, false) if should.is_none() && !every_key && !touched.contains(&key) => continue,
                (true, true) => return ("resnapshot-leaves-no-ghost", Err(dump())),
                (true, false) => return ("visible-decides", Err(dump())),
            }
        }
        if is.is_none() && !exact {
            continue;
        }
        // A row of a transaction that is read again may be one that was filled with a later row.
        let again = view.values_of(key, read_again);
        let filled_again = !again.is_empty() && view.is_ahead(state, &all, key, is);
        if is.is_some() && !exact && staging && !again.contains(&is) && !filled_again {
            return ("generation-begins-durably", Err(dump()));
        }
        let ahead = !staging && view.values_of(key, |place| !covered(place)).contains(&is);
        if is == should || ahead || view.values_of(key, read_again).contains(&is) || view.is_ahead(state, &all, key, is) {
            continue;
        }
        let seen_before = view.values_of(key, covered).contains(&is);
        return match is {
            None if touched.contains(&key) || every_key => ("position-covers-only-durable", Err(dump())),
            None => ("snapshot-complete-means-every-range-durable", Err(dump())),
            Some(_) if seen_before => ("visible-decides", Err(dump())),
            Some(_) => ("state-and-data-move-together", Err(dump())),
        };
    }
    ("visible-decides", Ok(()))
}

/// The keys that a change between a state's base and its cut touched; a TRUNCATE touches all.
fn touched_since_base(view: &View<'_>, state: &TableState) -> (BTreeSet<Key>, bool) {
    let (covered, base) = (view.covered(Some(state)), view.history.held(&state.base));
    let changes = view.history.of_table[view.table].iter().filter(|place| !base.holds(view.history, place.tx));
    let kinds: Vec<Kind> = changes.filter(|p| covered.covers(view.history, **p)).map(|p| view.history.change(*p).kind).collect();
    (kinds.iter().flat_map(|kind| keys(*kind)).collect(), kinds.contains(&Kind::Truncated))
}

fn is_durable(state: &TableState, key: Key) -> bool {
    let mut after = None;
    for range in &state.tiling {
        if is_within(key, after, range.end.as_deref()) {
            return range.durable;
        }
        after = range.end.as_deref();
    }
    false
}

/// After a snapshot only rows of the source remain: nothing of an older generation is even there.
pub fn resnapshot_leaves_no_ghost(state: &TableState, versions: &BTreeMap<Key, Version>) -> Verdict {
    match versions.iter().find(|(_, version)| **version < state.begun) {
        Some((key, version)) => {
            Err(format!("key {key} of {version:?} is there, generation {} began at {:?}", state.generation, state.begun))
        }
        None => Ok(()),
    }
}

/// What a sweep removes belongs to no generation that a reader, or a newer life, goes on with. A sink that compares refuses it.
pub fn only_what_is_superseded_is_swept(before: Option<&TableState>, commit: &Commit) -> Verdict {
    let needed = |b: &&TableState| b.generation < commit.state.generation && b.incarnation > commit.state.incarnation;
    match before.filter(needed) {
        Some(before) if commit.sweep && commit.token.as_str().is_empty() => Err(format!(
            "life {} sweeps what generation {} left; life {} goes on with generation {}",
            commit.state.incarnation, commit.state.generation, before.incarnation, before.generation
        )),
        _ => Ok(()),
    }
}

/// A generation begins with a commit that carries no data, above every version ever written, and the source still holds what lies
/// above its base.
pub fn generation_begins_durably(
    state: &TableState,
    staged: usize,
    versions: &BTreeMap<Key, Version>,
    acknowledged: Option<&Position>,
) -> Verdict {
    let dump = |what: &str| Err(format!("generation {} at {:?}: {what}", state.generation, state.cut));
    if staged > 0 {
        return dump("it begins with data");
    }
    if state.cut.upto() != &state.base || !state.cut.is_whole() || state.tiling.iter().any(|range| range.durable) {
        return dump(&format!("its base is {}, its ranges are {:?}", state.base, state.tiling));
    }
    if state.tiling.is_empty() {
        return dump("it begins complete");
    }
    if let Some((key, version)) = versions.iter().find(|(_, version)| **version >= state.begun) {
        return dump(&format!("key {key} has {version:?}, it begins at {:?}", state.begun));
    }
    match acknowledged.filter(|acknowledged| !contains(&state.base, acknowledged)) {
        Some(acknowledged) => dump(&format!("acknowledged is {acknowledged}")),
        None => Ok(()),
    }
}

/// No chunk is asked for while a transaction in doubt at the base or at the cut that the life found is unproven.
pub fn doubt_proven_before_chunk(view: &View<'_>, state: Option<&TableState>, began: Option<&TableState>, now: u64) -> Verdict {
    let Some(state) = state else { return Ok(()) };
    let hidden = |place: &&Place| view.history.seen(place.tx).listed > now;
    match view.history.of_table[view.table].iter().filter(hidden).find(|place| is_in_doubt(view, state, began, **place)) {
        Some(place) => Err(format!("a chunk is read, and {} is not proven to be visible", view.say(*place))),
        None => Ok(()),
    }
}

/// Lies a change where this life remembers no keys: at or below the base, or the cut that it found?
fn is_in_doubt(view: &View<'_>, state: &TableState, began: Option<&TableState>, place: Place) -> bool {
    let found = began.filter(|b| b.generation == state.generation && b.commit.number > 0);
    view.history.holds(&state.base, place.tx) || found.is_some_and(|b| view.covered(Some(b)).covers(view.history, place))
}

/// A chunk row beats a logged change only if the chunk's snapshot provably saw it. Found before a reader could see the harm.
pub fn chunk_rows_are_proven(view: &View<'_>, state: &TableState, rows: &[RowImage], told: &Told<'_>) -> (&'static str, Verdict) {
    let last: BTreeMap<Key, &RowImage> = rows.iter().map(|row| (row.key, row)).collect();
    let covered = view.covered(Some(state));
    for (key, row) in last {
        let Some(chunk) = row.chunk.and_then(|number| told.chunks.get(number)) else { continue };
        let touches = |place: &&Place| {
            let kind = view.history.change(**place).kind;
            kind == Kind::Truncated || keys(kind).contains(&key)
        };
        let mut beaten = view.history.of_table[view.table].iter().filter(touches).filter(|p| covered.covers(view.history, **p));
        let unproven = |place: &&Place| view.history.seen(place.tx).listed > chunk.at;
        let Some(place) = beaten.rfind(unproven) else { continue };
        let others = told.proven.get(&place.tx).is_some_and(|answers| answers.iter().any(|id| *id != chunk.id));
        let rule = match view.history.change(*place).kind {
            _ if is_in_doubt(view, state, told.began, *place) => "doubt-proven-before-chunk",
            Kind::Truncated => "truncate-empties-open-chunks",
            Kind::Moved(from, ..) if from == key => "touched-keys-complete-and-bounded",
            _ if others => "forgetting-is-per-chunk",
            _ => "visible-decides",
        };
        let dump = format!("{row:?} of chunk {:?}, read at {}, beats {}", chunk.id, chunk.at, view.say(*place));
        return (rule, Err(dump));
    }
    ("visible-decides", Ok(()))
}
