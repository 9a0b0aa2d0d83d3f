//! The tiling against a model that knows what it may not: the order of the keys. Whatever is planned, opened, given up, released,
//! stored and restored, the ranges stay an unbroken chain, no key is lost, and none is read twice without a cause.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::ToString;
use std::vec;

use proptest::prelude::*;

use super::*;
use crate::id::Incarnation;

/// Places where a range can end, but for the end of the key space, which is the one after them.
const PLACES: usize = 12;
const ROWS_MAX: u32 = 64;

/// What may happen to a tiling.
#[derive(Clone, Debug)]
enum Step {
    Plan(BTreeSet<usize>),
    PlanBadly(usize),
    Open,
    /// Of the open chunks this one, and how many rows at once the next time.
    GiveUp(usize, u32),
    /// Of the open chunks this one, how far it came, and how many rows at once the next time.
    Release(usize, usize, u32),
    /// A chunk that nobody knows.
    Stranger,
    Store,
    /// A life ends; the next one finds what was stored last.
    Restore,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => prop::collection::btree_set(0..PLACES, 0..4).prop_map(Step::Plan),
        1 => (0..PLACES).prop_map(Step::PlanBadly),
        6 => Just(Step::Open),
        2 => (any::<usize>(), 1..ROWS_MAX).prop_map(|(which, rows)| Step::GiveUp(which, rows)),
        6 => (any::<usize>(), any::<usize>(), 1..ROWS_MAX).prop_map(|(which, how_far, rows)| Step::Release(which, how_far, rows)),
        1 => Just(Step::Stranger),
        2 => Just(Step::Store),
        1 => Just(Step::Restore),
    ]
}

/// What every place of the key space is, by itself.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Missing(u32),
    Open(CommandId),
    Released,
}

/// The key space, place by place, and what a commit has made of it.
struct Model {
    places: Vec<Place>,
    durable: Vec<bool>,
    stored: Vec<Range>,
    /// Every range that is open, as it was given out: from and up to which place.
    open: BTreeMap<CommandId, (usize, usize)>,
    commands: u64,
}

/// The name of a place. That they are in order is the test's secret: the names are not.
fn bound_of(place: usize) -> Option<Bound> {
    (place < PLACES).then(|| Bound::from(format!("{}~{place}", (place * 7) % 5).as_str()))
}

fn place_of(bound: Option<&str>) -> usize {
    bound.map_or(PLACES, |text| text.split('~').nth(1).unwrap().parse().unwrap())
}

impl Model {
    fn new() -> (Self, Tiling) {
        let tiling = Tiling::whole(ROWS_MAX);
        let places = vec![Place::Missing(ROWS_MAX); PLACES + 1];
        let model =
            Self { places, durable: vec![false; PLACES + 1], stored: tiling.to_store(), open: BTreeMap::new(), commands: 0 };
        (model, tiling)
    }

    fn next_id(&mut self) -> CommandId {
        self.commands += 1;
        CommandId { incarnation: Incarnation(1), number: self.commands }
    }

    fn chosen(&self, which: usize) -> Option<CommandId> {
        let open: Vec<CommandId> = self.open.keys().copied().collect();
        (!open.is_empty()).then(|| open[which % open.len()])
    }

    fn go(&mut self, tiling: &mut Tiling, step: &Step) {
        match step {
            Step::Plan(places) => {
                let before = tiling.clone();
                let was_untouched = tiling.is_untouched();
                let divided = tiling.divide(places.iter().filter_map(|place| bound_of(*place)).collect());
                assert_eq!(divided, was_untouched, "only an untouched key space is divided");
                assert_eq!(tiling.len(), if divided { places.len() + 1 } else { before.len() });
            }
            Step::PlanBadly(place) => {
                let before = tiling.clone();
                let twice = bound_of(*place).unwrap();
                assert!(!tiling.divide(vec![twice.clone(), twice]), "a bound that comes twice is none");
                assert_eq!(*tiling, before);
            }
            Step::Open => self.open_next(tiling),
            Step::GiveUp(which, rows) => {
                let Some(id) = self.chosen(*which) else { return };
                tiling.give_up(id, *rows);
                self.closed(id, None, *rows);
            }
            Step::Release(which, how_far, rows) => {
                let Some(id) = self.chosen(*which) else { return };
                let (from, to) = self.open[&id];
                self.release(tiling, id, from + how_far % (to + 1 - from), *rows);
            }
            Step::Stranger => {
                let (before, id) = (tiling.clone(), self.next_id());
                tiling.give_up(id, 1);
                assert!(!tiling.release(id, None, 1));
                assert!(tiling.open().all(|open| open != id));
                assert_eq!(*tiling, before);
            }
            Step::Store => {
                self.stored = tiling.to_store();
                self.durable = self.places.iter().map(|place| *place == Place::Released).collect();
            }
            Step::Restore => {
                let text = serde_json::to_string(&self.stored).unwrap();
                let read: Vec<Range> = serde_json::from_str(&text).unwrap();
                assert_eq!(read, self.stored, "what is stored is read as it was");
                *tiling = Tiling::stored(&read, ROWS_MAX).expect("what was stored is a tiling");
                assert_eq!(tiling.to_store(), self.stored, "and is stored again as it was");
                self.open.clear();
                let place = |durable: &bool| if *durable { Place::Released } else { Place::Missing(ROWS_MAX) };
                self.places = self.durable.iter().map(place).collect();
            }
        }
    }

    /// The first range that is missing, whole: nothing of it is open or released, and nothing before it is missing.
    fn open_next(&mut self, tiling: &mut Tiling) {
        let id = self.next_id();
        let first = self.places.iter().position(|place| matches!(place, Place::Missing(_)));
        let Some((range, rows_max)) = tiling.open_next(id) else {
            assert_eq!(first, None, "something is missing, and nothing is asked for");
            return;
        };
        let from = range.after.as_ref().map_or(0, |after| place_of(Some(after.as_str())) + 1);
        let to = place_of(range.end.as_ref().map(Bound::as_str));
        assert_eq!(Some(from), first, "the first one that is missing is asked for");
        for place in from..=to {
            assert_eq!(self.places[place], Place::Missing(rows_max), "place {place} is read a second time");
            self.places[place] = Place::Open(id);
        }
        self.open.insert(id, (from, to));
    }

    fn release(&mut self, tiling: &mut Tiling, id: CommandId, came_to: usize, rows: u32) {
        let (_, to) = self.open[&id];
        assert!(tiling.may_end(id, bound_of(came_to).as_ref()), "a chunk may come to any place in its range");
        if let Some(elsewhere) = self.elsewhere(tiling, to) {
            assert!(!tiling.may_end(id, Some(&elsewhere)), "none comes to the end of another range");
        }
        let divided = tiling.release(id, bound_of(came_to), rows);
        assert_eq!(divided, came_to < to);
        self.closed(id, Some(came_to), rows);
    }

    /// Where another range ends.
    fn elsewhere(&self, tiling: &Tiling, not: usize) -> Option<Bound> {
        tiling
            .to_store()
            .iter()
            .filter_map(|range| range.end.as_deref().map(Bound::from))
            .find(|b| place_of(Some(b.as_str())) != not)
    }

    /// A chunk is closed: up to here it is released, and what is behind that is missing. `None` came nowhere.
    fn closed(&mut self, id: CommandId, came_to: Option<usize>, rows: u32) {
        let Some((from, to)) = self.open.remove(&id) else { return };
        for place in from..=to {
            let released = came_to.is_some_and(|came_to| place <= came_to);
            self.places[place] = if released { Place::Released } else { Place::Missing(rows) };
        }
    }

    /// The ranges say of every place what the model says, and of all places that they are there, once and in order.
    fn agrees(&self, tiling: &Tiling) {
        assert!(tiling.is_chain(), "{tiling:?} is no chain");
        let mut from = 0;
        for range in tiling.to_store() {
            let to = place_of(range.end.as_deref());
            assert!(from <= to && to <= PLACES, "{tiling:?} goes from {from} to {to}");
            for place in from..=to {
                assert_eq!(self.places[place] == Place::Released, range.durable, "place {place} of {tiling:?}");
            }
            from = to + 1;
        }
        assert_eq!(from, PLACES + 1, "the key space ends with the last range");
        let released = self.places.iter().all(|place| *place == Place::Released);
        assert_eq!(tiling.is_complete(), released);
        assert_eq!(tiling.missing() == 0, released);
        assert_eq!(tiling.has_missing(), self.places.iter().any(|place| matches!(place, Place::Missing(_))));
        assert_eq!(tiling.open().collect::<BTreeSet<_>>(), self.open.keys().copied().collect());
    }

    /// Reads what is left.
    fn finish(&mut self, tiling: &mut Tiling) {
        while tiling.has_missing() {
            self.open_next(tiling);
        }
        while let Some(id) = self.chosen(0) {
            let (_, to) = self.open[&id];
            self.release(tiling, id, to, 1);
        }
        self.agrees(tiling);
        assert!(tiling.is_complete());
        assert_eq!(tiling.to_store(), [Range { end: None, durable: true }], "neighbours that are done are one");
    }
}

proptest! {
    #[test]
    fn ranges_stay_an_unbroken_chain_and_no_key_is_lost_or_read_twice(steps in prop::collection::vec(step(), 0..60)) {
        let (mut model, mut tiling) = Model::new();
        for step in &steps {
            model.go(&mut tiling, step);
            model.agrees(&tiling);
        }
        model.finish(&mut tiling);
    }

    #[test]
    fn what_is_no_tiling_is_not_taken_for_one(ends in prop::collection::vec((0..=PLACES, any::<bool>()), 0..5)) {
        let ranges: Vec<Range> = ends
            .iter()
            .map(|(end, durable)| Range { end: bound_of(*end).map(|b| b.as_str().to_string()), durable: *durable })
            .collect();
        let open_ends = ranges.iter().filter(|range| range.end.is_none()).count();
        let names: BTreeSet<_> = ranges.iter().map(|range| &range.end).collect();
        let is_one = open_ends == 1 && ranges.last().is_some_and(|r| r.end.is_none()) && names.len() == ranges.len();
        prop_assert_eq!(Tiling::stored(&ranges, ROWS_MAX).is_some(), is_one);
    }
}
