//! Carrying out: each command becomes a future, each answer a fact.

use std::sync::Arc;

use futures::FutureExt;
use kernel::coordinator::{Input, Output, Restart};
use kernel::id::{AttemptId, CommandId, Session, TableName};
use kernel::outcome::{CommitOutcome, LogFailure, WriteOutcome};
use kernel::worker::{NetOutcome, WorkerInput, WorkerOutput};
use rows::Netted;

use crate::again::{Filling, PreparedRows, hold_rows, net, prepare_rows};
use crate::env::{Commit, Env, Failure, Notice, RowsWanted, SnapshotRead};
use crate::intake::{Prepared, PreparedChunk, Telling, hold, hold_chunk, prepare, prepare_chunk};
use crate::lanes::Lane;
use crate::{Fact, Pump};

/// What a command's future ends with.
pub(crate) enum Answer<E: Env> {
    Fact(Input),
    Read { id: CommandId, prepared: Result<Prepared, LogFailure> },
    Chunk { id: CommandId, prepared: Box<PreparedChunk> },
    Rows { id: CommandId, prepared: Box<PreparedRows> },
    Netted { attempt: AttemptId, netted: Result<Box<Netted>, String>, rows: u64 },
    Wrote { attempt: AttemptId, outcome: WriteOutcome, staged: Option<E::Staged> },
    Nothing,
}

impl<E: Env> Pump<E> {
    pub(crate) fn answered(&mut self, answer: Answer<E>) {
        match answer {
            Answer::Fact(input) => self.facts.push_back(Fact::Coordinator(input)),
            Answer::Read { id, prepared: Ok(prepared) } => {
                let (batches, events, finished) = hold(prepared, &mut self.store);
                self.facts.push_back(Fact::Coordinator(Input::LogRead { id, batches, events, finished }));
            }
            Answer::Read { id, prepared: Err(failure) } => {
                self.facts.push_back(Fact::Coordinator(Input::LogFailed { id, failure }));
            }
            Answer::Chunk { id, prepared } => {
                let chunk = Box::new(hold_chunk(*prepared, &mut self.store));
                self.facts.push_back(Fact::Coordinator(Input::ChunkRead { id, chunk }));
            }
            Answer::Rows { id, prepared } => {
                let answer = Box::new(hold_rows(*prepared, &mut self.store));
                self.facts.push_back(Fact::Coordinator(Input::RowsRead { id, answer }));
            }
            Answer::Netted { attempt, netted, rows } => {
                let outcome = match netted {
                    Ok(netted) => {
                        let images = (netted.upsert_versions.len() + netted.delete_versions.len()) as u64;
                        let keys = cfg!(debug_assertions).then(|| different_keys(&netted)).flatten();
                        self.netted.insert(attempt, netted);
                        NetOutcome::Netted { rows, images, keys }
                    }
                    Err(why) => NetOutcome::Rejected { why },
                };
                self.facts.push_back(Fact::Worker(WorkerInput::Netted { attempt, outcome }));
            }
            Answer::Wrote { attempt, outcome, staged } => {
                if let Some(staged) = staged {
                    self.staged.insert(attempt, Arc::new(staged));
                }
                self.facts.push_back(Fact::Worker(WorkerInput::Wrote { attempt, outcome }));
            }
            Answer::Nothing => {}
        }
    }

    pub(crate) fn carry_out(&mut self, output: Output) {
        let env = self.env.clone();
        match output {
            Output::ReadPipelineState { id } => self.start(async move {
                match env.read_pipeline_state().await {
                    Ok((state, token)) => Input::PipelineStateRead { id, state: state.map(Box::new), token },
                    Err(failure) => failed(id, failure),
                }
            }),
            Output::StorePipelineState { id, expected, new } => self.start(async move {
                let outcome = env.store_pipeline_state(&expected, &new).await;
                Input::PipelineStateStored { id, outcome }
            }),
            Output::RecoverTable { id, table } => self.start(async move {
                match env.recover_table(&table).await {
                    Ok((state, token)) => Input::TableRecovered { id, table, state: state.map(Box::new), token },
                    Err(failure) => failed(id, failure),
                }
            }),
            Output::OpenLog { id } => {
                let incarnation = self.coordinator.incarnation();
                self.start(async move {
                    match env.open_log(incarnation).await {
                        Ok(log) => {
                            let (session, identity) = (log.session, log.identity);
                            Input::LogOpened { id, session, identity, floor: log.floor, end: log.end }
                        }
                        Err(failure) => Input::LogFailed { id, failure },
                    }
                });
            }
            Output::ReadLog { id, session: _, restart, bytes_max, keys_of } => self.read_log(id, restart, bytes_max, keys_of),
            Output::PlanRanges { id, table, wanted } => self.start(async move {
                match env.plan_ranges(&table, wanted).await {
                    Ok(bounds) => Input::RangesPlanned { id, bounds },
                    Err(failure) => failed(id, failure),
                }
            }),
            Output::ReadChunk { id, table, range, rows_max, bytes_max, about } => {
                let about = about.into_iter().collect();
                self.read_chunk(id, SnapshotRead { table, range, rows_max, bytes_max, about });
            }
            Output::ReadVisibility { id, table: _, about, unfinished } => self.start(async move {
                match env.read_visibility(&about.into_iter().collect(), unfinished).await {
                    Ok(visibility) => Input::VisibilityRead { id, visibility },
                    Err(failure) => failed(id, failure),
                }
            }),
            Output::ReadRows { id, table, keys, schema, bytes_max, about } => {
                let about = about.into_iter().collect();
                self.read_rows(id, RowsWanted { table, keys, schema, bytes_max, about });
            }
            Output::ReleaseBatch { batch } => {
                // A wrong release shows in the comparison that follows every step.
                let _ = self.store.release(batch);
            }
            Output::Send(told) => self.facts.push_back(Fact::Worker(WorkerInput::Told(told))),
            Output::Commit { id, table, token, state, staged, truncate_first, sweep } => {
                let lane = Lane::Commits(table.clone());
                let artefacts: Option<Vec<_>> = staged.iter().map(|attempt| self.staged.get(attempt).cloned()).collect();
                self.start_in(lane, async move {
                    let outcome = match artefacts {
                        Some(staged) => {
                            env.commit(Commit { table: &table, token: &token, state: &state, staged, truncate_first, sweep })
                                .await
                        }
                        None => CommitOutcome::Rejected {
                            why: format!("what {staged:?} staged is not here: a fault in urutau itself"),
                        },
                    };
                    Input::Committed { id, table, outcome }
                });
            }
            Output::Resolve { id, table, commit, incarnation } => {
                self.start_in(Lane::Commits(table.clone()), async move {
                    match env.resolve(&table, commit, incarnation).await {
                        Ok((found, token)) => Input::Resolved { id, table, found, token },
                        Err(failure) => failed(id, failure),
                    }
                });
            }
            Output::ReleaseStaged { table, attempt, delete } => self.release_staged(table, attempt, delete),
            Output::DiscardOlder { table, incarnation } => {
                let lane = Lane::Commits(table.clone());
                let work = async move { env.discard_older(&table, incarnation).await };
                self.lanes.run_in(lane, work.map(|()| Answer::Nothing).boxed());
            }
            Output::Acknowledge { session, upto } => self.acknowledge(session, upto),
            Output::Started { table, state, floor: _, lost } => env.notice(Notice::Started { table, state, lost }),
            Output::HaltTable { table, why, at } => env.notice(Notice::Halted { table, why, at }),
            Output::Declined { table, why } => env.notice(Notice::Declined { table, why }),
            Output::Skipped { table, transaction, coordinate } => env.notice(Notice::Skipped { table, transaction, coordinate }),
            Output::Stop { reason } => {
                self.stopped.get_or_insert(reason);
            }
        }
    }

    pub(crate) fn carry_out_for_worker(&mut self, output: WorkerOutput) {
        let env = self.env.clone();
        match output {
            WorkerOutput::Net { attempt, part, rows, first_version, fills } => {
                let filling = Filling::of(&self.store, &rows, fills);
                let keeps_every_row = env.keeps_every_row(&part.table);
                let filter = filling.schema().and_then(|schema| env.filter(schema));
                let rows = rows.iter().map(|range| u64::from(range.count())).sum();
                let work = async move {
                    let netted =
                        env.compute(Box::new(move || net(filling, keeps_every_row, filter.as_deref(), first_version))).await;
                    Answer::Netted { attempt, netted, rows }
                };
                self.lanes.run(work.boxed());
            }
            WorkerOutput::Write { attempt, table } => {
                let Some(netted) = self.netted.remove(&attempt) else { return };
                let lane = Lane::Writes(table.clone());
                let work = async move {
                    let (outcome, staged) = env.write(&table, attempt, *netted).await;
                    Answer::Wrote { attempt, outcome, staged }
                };
                self.lanes.run_in(lane, work.boxed());
            }
            WorkerOutput::Forget { attempt } => {
                self.netted.remove(&attempt);
                self.staged.remove(&attempt);
            }
            WorkerOutput::Written { attempt, outcome } => {
                self.facts.push_back(Fact::Coordinator(Input::Written { attempt, outcome }));
            }
        }
    }

    fn read_log(&mut self, id: CommandId, restart: Option<Restart>, bytes_max: u64, keys_of: Vec<TableName>) {
        if let Some(restart) = &restart {
            self.divided.clone_from(&restart.divided);
        }
        let telling = Telling { divided: self.divided.clone(), keys_of, reads_rows: self.env.reads_rows() };
        let env = self.env.clone();
        let work = async move {
            let prepared = match env.read_log(restart.as_ref(), bytes_max).await {
                Ok(chunk) if chunk.batches.is_empty() => prepare(chunk, &telling),
                Ok(chunk) => env.compute(Box::new(move || prepare(chunk, &telling))).await,
                Err(failure) => Err(failure),
            };
            Answer::Read { id, prepared }
        };
        self.lanes.run_in(Lane::Reads, work.boxed());
    }

    fn read_chunk(&mut self, id: CommandId, read: SnapshotRead) {
        let env = self.env.clone();
        let work = async move {
            let prepared = match env.read_chunk(read).await {
                Ok(chunk) => env.compute(Box::new(move || prepare_chunk(chunk))).await.map_err(Failure::Refused),
                Err(failure) => Err(failure),
            };
            match prepared {
                Ok(prepared) => Answer::Chunk { id, prepared: Box::new(prepared) },
                Err(failure) => Answer::Fact(failed(id, failure)),
            }
        };
        self.lanes.run(work.boxed());
    }

    fn read_rows(&mut self, id: CommandId, wanted: RowsWanted) {
        let (env, keys) = (self.env.clone(), wanted.keys.clone());
        let work = async move {
            let prepared = match env.read_rows(wanted).await {
                Ok(again) => env.compute(Box::new(move || prepare_rows(again, &keys))).await.map_err(Failure::Refused),
                Err(failure) => Err(failure),
            };
            match prepared {
                Ok(prepared) => Answer::Rows { id, prepared: Box::new(prepared) },
                Err(failure) => Answer::Fact(failed(id, failure)),
            }
        };
        self.lanes.run(work.boxed());
    }

    fn release_staged(&mut self, table: TableName, attempt: AttemptId, delete: bool) {
        let Some(staged) = self.staged.remove(&attempt).filter(|_| delete) else { return };
        let env = self.env.clone();
        let lane = Lane::Commits(table.clone());
        let work = async move { env.delete_staged(&table, staged).await };
        self.lanes.run_in(lane, work.map(|()| Answer::Nothing).boxed());
    }

    fn acknowledge(&mut self, session: Session, upto: kernel::position::Position) {
        let env = self.env.clone();
        let work = async move { env.acknowledge(session, &upto).await };
        self.lanes.run_in(Lane::Acknowledgements, work.map(|()| Answer::Nothing).boxed());
    }

    fn start(&mut self, command: impl Future<Output = Input> + Send + 'static) {
        self.lanes.run(command.map(Answer::Fact).boxed());
    }

    fn start_in(&mut self, lane: Lane, command: impl Future<Output = Input> + Send + 'static) {
        self.lanes.run_in(lane, command.map(Answer::Fact).boxed());
    }
}

fn failed(id: CommandId, failure: Failure) -> Input {
    match failure {
        Failure::Transient(why) => Input::Failed { id, why },
        Failure::Refused(why) => Input::Refused { id, why },
    }
}

/// How many different keys the result has; `None` where every row is kept.
fn different_keys(netted: &Netted) -> Option<u64> {
    if netted.upsert_keys.is_empty() && netted.delete_keys.is_empty() {
        return None;
    }
    let keys: std::collections::BTreeSet<&[u8]> = netted.upsert_keys.iter().chain(netted.delete_keys.iter()).collect();
    Some(keys.len() as u64)
}
