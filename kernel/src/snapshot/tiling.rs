//! How far a snapshot is: an ordered list of ranges that together are the key space (rule S8).
//!
//! A bound is the source's word for a place in its own order of keys. Nothing here compares two of them but for equality, so no
//! collation is needed: a range is divided where its reading stopped, and neighbours that are done become one.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use crate::coordinator::ChunkRange;
use crate::id::{Bound, CommandId};
use crate::state::Range;

/// The ranges of a key space, in its order. The last one is open, no other is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tiling {
    tiles: Vec<Tile>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Tile {
    end: Option<Bound>,
    state: TileState,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum TileState {
    /// To be read, so many rows at once.
    Missing(u32),
    /// A chunk of it is open.
    Open(CommandId),
    /// Its rows are in a checkpoint, or durable.
    Released,
}

impl Tiling {
    /// Nothing is read.
    pub(crate) fn whole(rows_max: u32) -> Self {
        Self { tiles: alloc::vec![Tile { end: None, state: TileState::Missing(rows_max) }] }
    }

    /// What is stored, or `None` if it is no tiling.
    pub(crate) fn stored(ranges: &[Range], rows_max: u32) -> Option<Self> {
        let state = |durable| if durable { TileState::Released } else { TileState::Missing(rows_max) };
        let tile = |range: &Range| Tile { end: range.end.as_deref().map(Bound::from), state: state(range.durable) };
        let tiling = Self { tiles: ranges.iter().map(tile).collect() };
        tiling.is_chain().then_some(tiling)
    }

    /// What is stored with a checkpoint that holds all that was released so far.
    pub(crate) fn to_store(&self) -> Vec<Range> {
        let range = |tile: &Tile| Range {
            end: tile.end.as_ref().map(|bound| String::from(bound.as_str())),
            durable: tile.state == TileState::Released,
        };
        let mut ranges: Vec<Range> = Vec::new();
        for next in self.tiles.iter().map(range) {
            match ranges.last_mut() {
                Some(last) if last.durable && next.durable => *last = next,
                _ => ranges.push(next),
            }
        }
        ranges
    }

    /// An unbroken chain from open start to open end?
    pub(crate) fn is_chain(&self) -> bool {
        let mut seen = BTreeSet::new();
        let last = self.tiles.len().wrapping_sub(1);
        self.tiles.iter().enumerate().all(|(n, tile)| tile.end.is_none() == (n == last) && seen.insert(&tile.end))
            && !self.tiles.is_empty()
    }

    /// Is every range released?
    pub(crate) fn is_complete(&self) -> bool {
        self.is_chain() && self.tiles.iter().all(|tile| tile.state == TileState::Released)
    }

    /// Is nothing missing but the open range at the end, of several?
    pub(crate) fn misses_last_only(&self) -> bool {
        self.missing() <= 1 && self.tiles.len() > 1 && self.tiles.last().is_some_and(|tile| tile.state != TileState::Released)
    }

    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.tiles.len()
    }

    /// How many of them are not released.
    pub(crate) fn missing(&self) -> usize {
        self.tiles.iter().filter(|tile| tile.state != TileState::Released).count()
    }

    /// Is it one range, of which nothing was asked for?
    pub(crate) fn is_untouched(&self) -> bool {
        matches!(self.tiles.as_slice(), [Tile { end: None, state: TileState::Missing(_) }])
    }

    /// Divides the untouched key space at these bounds; false if they are no bounds.
    pub(crate) fn divide(&mut self, bounds: Vec<Bound>) -> bool {
        let Some(Tile { state, .. }) = self.tiles.first().cloned().filter(|_| self.is_untouched()) else { return false };
        let ends = bounds.into_iter().map(Some).chain([None]);
        let divided = Self { tiles: ends.map(|end| Tile { end, state }).collect() };
        let chain = divided.is_chain();
        if chain {
            *self = divided;
        }
        chain
    }

    /// The first range that is to be read, and how many rows at once; it is open from now on.
    pub(crate) fn open_next(&mut self, id: CommandId) -> Option<(ChunkRange, u32)> {
        let mut after = None;
        for tile in &mut self.tiles {
            if let TileState::Missing(rows_max) = tile.state {
                tile.state = TileState::Open(id);
                return Some((ChunkRange { after, end: tile.end.clone() }, rows_max));
            }
            after.clone_from(&tile.end);
        }
        None
    }

    /// Is there a range to be read?
    pub(crate) fn has_missing(&self) -> bool {
        self.tiles.iter().any(|tile| matches!(tile.state, TileState::Missing(_)))
    }

    /// The chunk is given up: its range is to be read again, so many rows at once.
    pub(crate) fn give_up(&mut self, id: CommandId, rows_max: u32) {
        if let Some(tile) = self.tiles.iter_mut().find(|tile| tile.state == TileState::Open(id)) {
            tile.state = TileState::Missing(rows_max);
        }
    }

    /// Could a chunk of this range have come to `end`?
    pub(crate) fn may_end(&self, id: CommandId, end: Option<&Bound>) -> bool {
        let whole = self.tiles.iter().any(|tile| tile.state == TileState::Open(id) && tile.end.as_ref() == end);
        // A new bound is none that is there: nobody can tell on which side of it that one lies.
        whole || (end.is_some() && self.tiles.iter().all(|tile| tile.end.as_ref() != end))
    }

    /// The rows up to `end` are in a checkpoint; what is left of the range is to be read, so many rows at once.
    pub(crate) fn release(&mut self, id: CommandId, end: Option<Bound>, rows_max: u32) -> bool {
        let Some(at) = self.tiles.iter().position(|tile| tile.state == TileState::Open(id)) else { return false };
        let rest = self.tiles.get(at).map(|tile| tile.end.clone()).filter(|whole| *whole != end);
        let divided = rest.is_some();
        if let Some(rest) = rest {
            self.tiles.insert(at + 1, Tile { end: rest, state: TileState::Missing(rows_max) });
        }
        if let Some(tile) = self.tiles.get_mut(at) {
            *tile = Tile { end, state: TileState::Released };
        }
        self.merge();
        divided
    }

    /// Neighbours that are released become one.
    fn merge(&mut self) {
        let mut merged: Vec<Tile> = Vec::new();
        for next in self.tiles.drain(..) {
            match merged.last_mut() {
                Some(last) if last.state == TileState::Released && next.state == TileState::Released => *last = next,
                _ => merged.push(next),
            }
        }
        self.tiles = merged;
    }

    /// The chunks that are open, as the ranges know them.
    pub(crate) fn open(&self) -> impl Iterator<Item = CommandId> {
        self.tiles.iter().filter_map(|tile| if let TileState::Open(id) = tile.state { Some(id) } else { None })
    }
}

#[cfg(test)]
mod tests;
