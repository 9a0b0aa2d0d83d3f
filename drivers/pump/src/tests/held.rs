//! After every step the row store holds exactly the batches that the machine knows, or the life ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::FutureExt;
use kernel::config::{Config, TableConfig};
use kernel::coordinator::{Coordinator, Restart, StopReason, Visibility};
use kernel::id::{AttemptId, BatchId, Bound, CommitId, Incarnation, Session, TableName, Token, TransactionName};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::position::{LogIdentity, Position};
use kernel::state::{PipelineState, TableState};
use kernel::time::Time;
use kernel::worker::Worker;
use rows::filter::Filter;
use rows::{Netted, RowStore, TableSchema};

use super::{batch, keys, place, transaction};
use crate::env::{
    Chunk, ChunkEvent, Commit, Env, Failure, Notice, OpenedLog, RowsAgain, RowsWanted, SnapshotChunk, SnapshotRead,
};
use crate::intake::Divided;
use crate::lanes::Lanes;
use crate::{Pump, Woken};

/// A world in which nothing was ever stored, whose log brings one chunk and then stays silent. Time stands still.
struct World {
    log: Mutex<Option<Chunk>>,
}

#[async_trait]
impl Env for World {
    type Staged = ();

    fn now(&self) -> Time {
        Time(0)
    }

    async fn sleep_until(&self, _: Time) {
        futures::future::pending().await
    }

    async fn compute<T: Send + 'static>(&self, work: Box<dyn FnOnce() -> T + Send>) -> T {
        work()
    }

    async fn read_pipeline_state(&self) -> Result<(Option<PipelineState>, Token), Failure> {
        Ok((None, Token::from("none")))
    }

    async fn store_pipeline_state(&self, _: &Token, new: &PipelineState) -> StoreOutcome {
        StoreOutcome::Stored { token: Token::from(format!("{new:?}").as_str()) }
    }

    async fn recover_table(&self, _: &TableName) -> Result<(Option<TableState>, Token), Failure> {
        Ok((None, Token::from("none")))
    }

    async fn open_log(&self, _: Incarnation) -> Result<OpenedLog, LogFailure> {
        let (floor, end) = (Position::START, Position::START);
        Ok(OpenedLog { session: Session(1), identity: LogIdentity::default(), floor, end })
    }

    async fn read_log(&self, _: Option<&Restart>, _: u64) -> Result<Chunk, LogFailure> {
        let chunk = self.log.lock().unwrap().take();
        match chunk {
            Some(chunk) => Ok(chunk),
            None => futures::future::pending().await,
        }
    }

    async fn plan_ranges(&self, _: &TableName, _: u32) -> Result<Vec<Bound>, Failure> {
        Err(Failure::Refused("no tables to read".to_owned()))
    }

    async fn read_chunk(&self, _: SnapshotRead) -> Result<SnapshotChunk, Failure> {
        Err(Failure::Refused("no tables to read".to_owned()))
    }

    async fn read_visibility(&self, _: &BTreeSet<TransactionName>, _: bool) -> Result<Visibility, Failure> {
        Err(Failure::Refused("no tables to read".to_owned()))
    }

    fn reads_rows(&self) -> bool {
        false
    }

    async fn read_rows(&self, _: RowsWanted) -> Result<RowsAgain, Failure> {
        Err(Failure::Refused("no tables to read".to_owned()))
    }

    async fn acknowledge(&self, _: Session, _: &Position) {}

    fn filter(&self, _: &TableSchema) -> Option<Arc<Filter>> {
        None
    }

    fn keeps_every_row(&self, _: &TableName) -> bool {
        false
    }

    async fn write(&self, _: &TableName, _: AttemptId, _: Netted) -> (WriteOutcome, Option<()>) {
        futures::future::pending().await
    }

    async fn commit(&self, _: Commit<'_, ()>) -> CommitOutcome {
        futures::future::pending().await
    }

    async fn resolve(&self, _: &TableName, _: CommitId, _: Incarnation) -> Result<(bool, Token), Failure> {
        futures::future::pending().await
    }

    async fn delete_staged(&self, _: &TableName, _: Arc<()>) {}

    async fn discard_older(&self, _: &TableName, _: Incarnation) {}

    fn notice(&self, _: Notice) {}

    fn observe(&self, _: &Coordinator) {}
}

/// A life that has read one batch, of which nothing is written.
fn life() -> Pump<World> {
    let of = batch("shop.t", &[(transaction(7), place(1, 0)), (transaction(7), place(2, 0))]);
    let events = vec![ChunkEvent::Rows { batch: 0, rows: 0..2, transaction: transaction(7) }];
    let log = Mutex::new(Some(Chunk { batches: vec![of], events, ..Chunk::default() }));
    let config = Config::new(BTreeMap::from([(TableName::from("shop.t"), TableConfig::new())]));
    let mut pump = Pump {
        witness: None,
        env: Arc::new(World { log }),
        coordinator: Coordinator::new(Time(0), config),
        worker: Worker::new(),
        facts: std::collections::VecDeque::new(),
        store: RowStore::new(),
        netted: BTreeMap::new(),
        staged: BTreeMap::new(),
        divided: Divided::new(),
        lanes: Lanes::new(),
        stopped: None,
    };
    pump.step();
    let mut nobody = futures::stream::pending();
    while let Some(Woken::Answer(answer)) = pump.wait(&mut nobody, true).now_or_never() {
        pump.answered(answer);
        pump.step();
    }
    pump
}

/// What the next step makes of it.
fn stopped(pump: &mut Pump<World>) -> Option<(&'static str, String)> {
    pump.step();
    match pump.stopped.take() {
        None => None,
        Some(StopReason::Violation { rule, dump }) => Some((rule, dump)),
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn rows_that_were_read_are_held_and_known() {
    let mut pump = life();
    assert_eq!(pump.coordinator.batches(), [BatchId(1)]);
    assert_eq!(pump.store.ids().collect::<Vec<_>>(), [BatchId(1)]);
    assert_eq!(stopped(&mut pump), None);
}

#[test]
fn a_batch_that_is_held_and_that_the_machine_does_not_know_ends_the_life() {
    let mut pump = life();
    let leaked = batch("shop.t", &[(transaction(8), place(1, 0))]);
    let of = keys(&leaked);
    pump.store.insert(leaked, Arc::new(of));
    let (rule, dump) = stopped(&mut pump).expect("a violation");
    assert_eq!(rule, "rows-held-equal-rows-known");
    assert_eq!(dump, "the store holds [BatchId(1), BatchId(2)], the machine knows [BatchId(1)]");
}

#[test]
fn a_batch_that_the_machine_knows_and_that_is_freed_ends_the_life() {
    let mut pump = life();
    pump.store.release(BatchId(1)).unwrap();
    let (rule, dump) = stopped(&mut pump).expect("a violation");
    assert_eq!(rule, "rows-held-equal-rows-known");
    assert_eq!(dump, "the store holds [], the machine knows [BatchId(1)]");
}

#[test]
fn another_batch_in_the_place_of_a_known_one_ends_the_life() {
    let mut pump = life();
    pump.store.release(BatchId(1)).unwrap();
    let other = batch("shop.t", &[(transaction(7), place(1, 0)), (transaction(7), place(2, 0))]);
    let of = keys(&other);
    pump.store.insert(other, Arc::new(of));
    let (rule, _) = stopped(&mut pump).expect("as many, and not the same");
    assert_eq!(rule, "rows-held-equal-rows-known");
}
