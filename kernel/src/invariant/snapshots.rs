//! The rules about snapshots, as far as a machine can see them. What decides about rows (*visible-decides*, everything about
//! doubt) needs the source's truth: the simulator's oracle judges it at every commit.

use alloc::format;

use super::{Violation, broken};
use crate::checkpoint::{Kind, Table};
use crate::coordinator::{Coordinator, Output};
use crate::id::TableName;
use crate::snapshot::{Snapshot, Stage};
use crate::state::Phase;

impl Coordinator {
    pub(super) fn snapshots_are_kept(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        self.generation_begins_durably(name, table)?;
        nothing_is_missing_at_the_end(name, table)?;
        let Some(snapshot) = &table.snapshot else { return Ok(()) };
        chunk_released_after_its_fence(name, snapshot)?;
        visible_decides(name, snapshot)?;
        self.touched_keys_bounded(name, snapshot)?;
        truncate_empties_open_chunks(name, snapshot)?;
        self.chunk_of_this_log(name, table, snapshot)?;
        chunk_schema_equals_stream_schema(name, snapshot)?;
        snapshot_complete_means_every_range_durable(name, table, snapshot)
    }

    /// Nothing of a generation is written before its beginning is durable.
    fn generation_begins_durably(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        let rule = "generation-begins-durably";
        if table.is_beginning() && (table.open.taken > 0 || table.closed.iter().any(|c| !c.rows.is_empty())) {
            return broken(rule, format!("{name} has taken rows, and its generation has not begun"));
        }
        let Some(flight) = &table.flight else { return Ok(()) };
        match flight.point.kind {
            Kind::Begin(_) if !flight.point.rows.is_empty() || flight.attempt.is_some() => {
                broken(rule, format!("{name}: generation {} begins with data", flight.new.generation))
            }
            Kind::Begin(_) | Kind::Claim => Ok(()),
            Kind::Data | Kind::Base if flight.new.generation > table.generation() => broken(
                rule,
                format!("{name}: a commit of generation {}, stored is {}", flight.new.generation, table.generation()),
            ),
            Kind::Data | Kind::Base => Ok(()),
        }
    }

    /// Both keys of an update are remembered, no more keys than the bound until a chunk is answered.
    fn touched_keys_bounded(&self, name: &TableName, snapshot: &Snapshot) -> Result<(), Violation> {
        let bound = self.config.snapshot.touched_keys_max;
        let over = snapshot.chunks.iter().find(|(_, chunk)| chunk.held.is_none() && chunk.touched.len() > bound);
        if let Some((id, chunk)) = over {
            let dump = format!("{name}: {} keys are touched for chunk {id:?}, the bound is {bound}", chunk.touched.len());
            return broken("touched-keys-complete-and-bounded", dump);
        }
        if snapshot.unproven.len() > bound {
            let dump = format!("{name}: {} keys are remembered, the bound is {bound}", snapshot.unproven.len());
            return broken("touched-keys-complete-and-bounded", dump);
        }
        Ok(())
    }

    /// An open chunk does not outlive a reconnect of the log reader, nor the table's reading of it.
    fn chunk_of_this_log(&self, name: &TableName, table: &Table, snapshot: &Snapshot) -> Result<(), Violation> {
        if let Some((id, chunk)) = snapshot.chunks.iter().find(|(_, chunk)| chunk.session != self.log.session) {
            let dump = format!("{name}: chunk {id:?} is of session {:?}, the log's is {:?}", chunk.session, self.log.session);
            return broken("chunk-of-this-log", dump);
        }
        if !snapshot.chunks.is_empty() && (table.phase != Phase::Snapshotting || snapshot.stage != Stage::Reading) {
            return broken("chunk-of-this-log", format!("{name} is {} and has open chunks", table.phase.as_str()));
        }
        Ok(())
    }

    /// The edge of [`Output::Commit`]: a sweep comes with the state that says that nothing is missing, and no other state says so.
    pub(super) fn sweep_comes_with_the_end(&self, output: &Output) -> Result<(), Violation> {
        let Output::Commit { table, state, sweep, .. } = output else { return Ok(()) };
        let before = self.tables.get(table).and_then(|t| t.stored.as_ref());
        let was_incomplete = before.is_some_and(|b| b.generation == state.generation && !b.tiling.is_empty());
        let ends = state.tiling.is_empty() && was_incomplete;
        let swept = *sweep || crate::planted::planted!(self.config, NoSweep);
        if ends == swept || (!ends && !*sweep) {
            return Ok(());
        }
        let rule = "snapshot-complete-means-every-range-durable";
        broken(rule, format!("{table}: {:?} sweeps: {sweep}, and ends a snapshot: {ends}", state.commit))
    }
}

/// A chunk is released only when the log has passed its fence, inclusive.
fn chunk_released_after_its_fence(name: &TableName, snapshot: &Snapshot) -> Result<(), Violation> {
    match snapshot.released.iter().find(|release| !release.taken.contains(&release.fence)) {
        Some(release) => {
            let dump = format!("{name}: released at {}, the fence is {}", release.taken, release.fence);
            broken("chunk-released-after-its-fence", dump)
        }
        None => Ok(()),
    }
}

/// A chunk row beats a logged change only if the chunk's snapshot provably saw it: every touch that the table cannot prove, and
/// the chunk's own visibility does not, is remembered for the chunk.
fn visible_decides(name: &TableName, snapshot: &Snapshot) -> Result<(), Violation> {
    for (id, chunk) in &snapshot.chunks {
        let none = Default::default();
        let missing = match &chunk.held {
            None => chunk.touched.first_missing(&snapshot.unproven, |_| true, &none),
            Some(held) => chunk.touched.first_missing(&snapshot.unproven, |key| held.keys.contains(key), &held.proven),
        };
        if let Some((key, transaction)) = missing {
            let dump = format!("{name}: {transaction} touched {key:?}, and chunk {id:?} does not know it");
            return broken("visible-decides", dump);
        }
    }
    Ok(())
}

/// No row of a chunk that did not provably see a TRUNCATE is released after it.
fn truncate_empties_open_chunks(name: &TableName, snapshot: &Snapshot) -> Result<(), Violation> {
    if snapshot.released.iter().any(|release| release.survived_truncate) {
        return broken("truncate-empties-open-chunks", format!("{name}: rows of a chunk survived a truncate"));
    }
    let forgotten = |chunk: &&crate::snapshot::Chunk| snapshot.unproven.truncated() && !chunk.touched.truncated();
    match snapshot.chunks.values().filter(|c| c.held.is_none()).find(forgotten) {
        Some(_) => broken("truncate-empties-open-chunks", format!("{name}: an open chunk does not know of a truncate")),
        None => Ok(()),
    }
}

/// A chunk is released only under the stream's schema, or brings it.
fn chunk_schema_equals_stream_schema(name: &TableName, snapshot: &Snapshot) -> Result<(), Violation> {
    match snapshot.released.iter().find(|release| release.schema != release.stream_schema) {
        Some(release) => {
            let dump = format!("{name}: a chunk of {:?} is released under {:?}", release.schema, release.stream_schema);
            broken("chunk-schema-equals-stream-schema", dump)
        }
        None => Ok(()),
    }
}

/// A snapshot ends only when every range is read.
fn nothing_is_missing_at_the_end(name: &TableName, table: &Table) -> Result<(), Violation> {
    let points = table.flight.iter().map(|f| &f.point).chain(&table.closed);
    let ended = points.filter_map(|point| point.progress.as_ref()).filter(|progress| progress.sweep);
    match ended.map(|progress| &progress.ranges).find(|ranges| !ranges.as_ref().is_some_and(|r| r.is_complete())) {
        Some(ranges) => broken("snapshot-complete-means-every-range-durable", format!("{name} ends its snapshot at {ranges:?}")),
        None => Ok(()),
    }
}

/// The ranges tile the key space, all of one generation.
fn snapshot_complete_means_every_range_durable(name: &TableName, table: &Table, snapshot: &Snapshot) -> Result<(), Violation> {
    let rule = "snapshot-complete-means-every-range-durable";
    let open: alloc::vec::Vec<_> = snapshot.tiling.open().collect();
    let known: alloc::vec::Vec<_> = snapshot.chunks.keys().copied().collect();
    let same = open.len() == known.len() && open.iter().all(|id| snapshot.chunks.contains_key(id));
    if !snapshot.tiling.is_chain() || !same {
        return broken(rule, format!("{name}: {:?}, open chunks {known:?}", snapshot.tiling));
    }
    let stored = table.stored.as_ref().filter(|_| !snapshot.is_beginning());
    if let Some(state) = stored.filter(|state| state.generation != snapshot.generation || state.base != snapshot.base) {
        let dump = format!("{name}: generation {} is read, stored is {}", snapshot.generation, state.generation);
        return broken(rule, dump);
    }
    let released = snapshot.tiling.missing() < snapshot.tiling.len();
    if snapshot.is_beginning() && released {
        return broken(rule, format!("{name}: a range is released before generation {} has begun", snapshot.generation));
    }
    Ok(())
}
