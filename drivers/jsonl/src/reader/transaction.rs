//! Which lines make a transaction. One ends at an END marker, at a line with another id, at the end of a file, after an idle
//! time; what comes later under the same id is a piece of its own. All of a function of the lines alone but the idle end.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::envelope::{Marker, Tag};

/// Which of a file's lines belong together.
#[derive(Default)]
pub(super) struct Grouping {
    open: Option<Open>,
    /// The open transaction's id. (Kept apart so that its memory is used again.)
    id: String,
    recent: Recent,
    pieces: u64,
    /// The id whose transaction was ended by nothing in the log, and where.
    ended_without_a_word: Option<(String, u64)>,
}

/// A transaction that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Open {
    /// The byte where its first event's line begins.
    pub(super) at: u64,
    /// The byte after its last line so far.
    pub(super) end: u64,
    /// When the source committed it.
    pub(super) time: Option<i64>,
    /// Was anything of it delivered?
    pub(super) delivered: bool,
    has_id: bool,
    postgres: bool,
}

impl Grouping {
    pub(super) fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    /// How often a transaction went on after it had ended, since this was asked last. Remembers the last few thousand.
    pub(super) fn take_pieces(&mut self) -> u64 {
        std::mem::take(&mut self.pieces)
    }

    /// Something of the open transaction is being delivered.
    pub(super) fn deliver(&mut self) {
        if let Some(open) = &mut self.open {
            open.delivered = true;
        }
    }

    /// A table's event. Gives the transaction that it ends.
    pub(super) fn event(&mut self, tag: &Tag<'_>, begin: u64, end: u64) -> Option<Open> {
        if let (Some(open), Some(id)) = (&mut self.open, &tag.id)
            && open.has_id
            && self.id == **id
        {
            open.end = end;
            return None;
        }
        let ended = self.close();
        self.id.clear();
        if let Some(id) = &tag.id {
            self.id.push_str(id);
            self.pieces += u64::from(self.recent.contains(id));
        }
        let has_id = tag.id.is_some();
        self.open = Some(Open { at: begin, end, time: tag.time, delivered: false, has_id, postgres: tag.postgres });
        ended
    }

    /// After a table's event: one without an id is a transaction of its own.
    pub(super) fn event_done(&mut self) -> Option<Open> {
        if self.open.is_some_and(|open| !open.has_id) { self.close() } else { None }
    }

    /// A message: no table's event, so it begins nothing.
    pub(super) fn message(&mut self, tag: &Tag<'_>, end: u64) -> Option<Open> {
        let id = tag.id.as_ref()?;
        if self.open.is_some_and(|open| open.has_id) && self.id == **id {
            self.extend(end);
            return None;
        }
        self.close()
    }

    /// A marker. It names no connector, so an id of PostgreSQL's has its second half here.
    pub(super) fn marker(&mut self, marker: &Marker<'_>, end: u64) -> Option<Open> {
        let open = self.open?;
        let same = open.has_id
            && (self.id == marker.id || open.postgres && marker.id.split(':').next().is_some_and(|before| self.id == before));
        if same && marker.end {
            self.extend(end);
        }
        if same && !marker.end { None } else { self.close() }
    }

    /// The transaction ends here, whatever comes.
    pub(super) fn close(&mut self) -> Option<Open> {
        let ended = self.open.take()?;
        self.ended_without_a_word = None;
        if ended.has_id {
            self.recent.insert(&self.id);
        }
        Some(ended)
    }

    /// It counts as ended though the log does not say so.
    pub(super) fn close_without_a_word(&mut self) -> Option<Open> {
        let ended = self.close()?;
        if ended.has_id {
            self.ended_without_a_word = Some((self.id.clone(), ended.end));
        }
        Some(ended)
    }

    /// The first event after something was ended without a word: if it is of another transaction, that was its end; then the
    /// byte where it was.
    pub(super) fn did_not_go_on(&mut self, tag: &Tag<'_>) -> Option<u64> {
        let (id, end) = self.ended_without_a_word.take()?;
        tag.id.as_ref().is_none_or(|now| id != **now).then_some(end)
    }

    /// Another file begins; its transactions have nothing to do with the last one's.
    pub(super) fn next_file(&mut self) {
        self.recent = Recent::default();
        self.ended_without_a_word = None;
    }

    fn extend(&mut self, end: u64) {
        if let Some(open) = &mut self.open {
            open.end = end;
        }
    }
}

/// Hashes of the ids that ended last.
#[derive(Default)]
struct Recent {
    hashes: HashSet<u64>,
    order: VecDeque<u64>,
}

/// How many are remembered.
const RECENT_MAX: usize = 4_096;

impl Recent {
    fn insert(&mut self, id: &str) {
        let hash = Self::hash(id);
        if self.hashes.insert(hash) {
            self.order.push_back(hash);
        }
        if self.order.len() > RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
    }

    fn contains(&self, id: &str) -> bool {
        self.hashes.contains(&Self::hash(id))
    }

    fn hash(id: &str) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(id)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn tag(id: &str) -> Tag<'_> {
        Tag { id: Some(Cow::Borrowed(id)), postgres: true, time: Some(7) }
    }

    fn marker(end: bool, id: &str) -> Marker<'_> {
        Marker { end, id: Cow::Borrowed(id) }
    }

    fn ends(ended: Option<Open>) -> Option<(u64, u64)> {
        ended.map(|open| (open.at, open.end))
    }

    #[test]
    fn events_of_one_id_are_one_transaction_until_another_id_comes() {
        let mut grouping = Grouping::default();
        assert_eq!(ends(grouping.event(&tag("5"), 0, 10)), None);
        assert_eq!(ends(grouping.event(&tag("5"), 10, 20)), None);
        assert_eq!(ends(grouping.event(&tag("6"), 30, 40)), Some((0, 20)));
        assert_eq!(ends(grouping.close()), Some((30, 40)));
        assert_eq!(ends(grouping.close()), None);
    }

    #[test]
    fn an_end_marker_belongs_to_its_transaction_though_the_rest_of_its_id_differs() {
        let mut grouping = Grouping::default();
        assert_eq!(ends(grouping.marker(&marker(false, "5:100"), 5)), None);
        grouping.event(&tag("5"), 5, 10);
        assert_eq!(ends(grouping.marker(&marker(false, "5:100"), 12)), None);
        assert_eq!(ends(grouping.marker(&marker(true, "5:200"), 15)), Some((5, 15)));
    }

    #[test]
    fn a_marker_of_another_transaction_ends_the_open_one_before_it() {
        for end in [false, true] {
            let mut grouping = Grouping::default();
            grouping.event(&tag("5"), 0, 10);
            assert_eq!(ends(grouping.marker(&marker(end, "6:1"), 20)), Some((0, 10)), "{end}");
        }
    }

    #[test]
    fn the_whole_id_counts_where_the_source_is_no_postgres() {
        let mut grouping = Grouping::default();
        grouping.event(&Tag { id: Some("uuid".into()), postgres: false, time: None }, 0, 10);
        assert_eq!(ends(grouping.marker(&marker(true, "uuid:5"), 20)), Some((0, 10)));
    }

    #[test]
    fn events_without_an_id_are_transactions_of_their_own() {
        let mut grouping = Grouping::default();
        assert_eq!(ends(grouping.event(&Tag::default(), 0, 10)), None);
        assert_eq!(ends(grouping.event_done()), Some((0, 10)));
        grouping.event(&tag("5"), 10, 20);
        assert_eq!(ends(grouping.event_done()), None);
        assert_eq!(ends(grouping.event(&Tag::default(), 20, 30)), Some((10, 20)));
        assert_eq!(ends(grouping.event_done()), Some((20, 30)));
    }

    #[test]
    fn a_message_extends_its_transaction_and_begins_none() {
        let mut grouping = Grouping::default();
        assert_eq!(ends(grouping.message(&tag("5"), 5)), None);
        assert_eq!(grouping.open(), None);
        grouping.event(&tag("5"), 5, 10);
        assert_eq!(ends(grouping.message(&tag("5"), 15)), None);
        assert_eq!(ends(grouping.message(&tag("6"), 20)), Some((5, 15)));
    }

    #[test]
    fn what_comes_later_under_the_same_id_is_a_piece_and_counted() {
        let mut grouping = Grouping::default();
        grouping.event(&tag("5"), 0, 10);
        grouping.event(&tag("6"), 10, 20);
        assert_eq!(grouping.take_pieces(), 0);
        assert_eq!(ends(grouping.event(&tag("5"), 20, 30)), Some((10, 20)));
        assert_eq!(grouping.take_pieces(), 1);
        assert_eq!(grouping.take_pieces(), 0);
        assert_eq!(ends(grouping.close()), Some((20, 30)));
    }

    #[test]
    fn a_silent_end_is_confirmed_by_an_event_of_another_transaction() {
        let mut grouping = Grouping::default();
        grouping.event(&tag("5"), 0, 10);
        assert_eq!(ends(grouping.close_without_a_word()), Some((0, 10)));
        assert_eq!(grouping.did_not_go_on(&tag("6")), Some(10));
        assert_eq!(grouping.did_not_go_on(&tag("6")), None);
        grouping.event(&tag("7"), 10, 20);
        grouping.close_without_a_word();
        assert_eq!(grouping.did_not_go_on(&tag("7")), None);
        assert_eq!(grouping.did_not_go_on(&tag("8")), None);
    }
}
