//! Plays a script's lines against a worker.

use kernel::coordinator::{RowRange, ToWorker};
use kernel::id::{AttemptId, BatchId, CheckpointNumber, Incarnation, Part, Slot, TableName, Version};
use kernel::outcome::WriteOutcome;
use kernel::worker::{NetOutcome, Worker, WorkerInput};

use crate::Player;
use crate::log::number;
use crate::words;

/// A worker and nothing else.
#[derive(Default)]
pub(crate) struct Workshop {
    worker: Worker,
    batches: u64,
}

impl Player for Workshop {
    fn play(&mut self, line: &str) -> Result<Vec<String>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let input = match words.as_slice() {
            ["told", "to", "write", attempt, "of", table, "checkpoint", checkpoint, "rows", rows] => {
                self.batches += 1;
                let part =
                    Part { table: TableName::from(*table), checkpoint: CheckpointNumber(number(checkpoint)?), slot: Slot(0) };
                let count = u32::try_from(number(rows)?).map_err(|e| e.to_string())?;
                let rows = vec![RowRange { batch: BatchId(self.batches), rows: 0..count }];
                let attempt = self::attempt(attempt)?;
                let first_version = Version::new(attempt.incarnation, 1);
                WorkerInput::Told(ToWorker::Write { attempt, part, rows, first_version, fills: vec![] })
            }
            ["told", "to", "abandon", attempt] => WorkerInput::Told(ToWorker::Abandon { attempt: self::attempt(attempt)? }),
            ["netted", attempt, "rows", rows, "images", images, "keys", keys] => {
                let outcome = NetOutcome::Netted {
                    rows: number(rows)?,
                    images: number(images)?,
                    keys: if *keys == "kept" { None } else { Some(number(keys)?) },
                };
                WorkerInput::Netted { attempt: self::attempt(attempt)?, outcome }
            }
            ["can't", "net", attempt] => {
                let outcome = NetOutcome::Rejected { why: "a key is null".into() };
                WorkerInput::Netted { attempt: self::attempt(attempt)?, outcome }
            }
            ["wrote", attempt] => WorkerInput::Wrote { attempt: self::attempt(attempt)?, outcome: WriteOutcome::Written },
            ["can't", "write", attempt] => {
                let outcome = WriteOutcome::Transient { why: "the disk is full".into() };
                WorkerInput::Wrote { attempt: self::attempt(attempt)?, outcome }
            }
            _ => return Err("nobody knows what this means".into()),
        };
        self.worker.handle_input(input);
        let mut said: Vec<String> = std::iter::from_fn(|| self.worker.poll_output()).map(|o| words::worker_output(&o)).collect();
        said.extend(self.worker.check().err().map(|violation| format!("VIOLATION of {}: {}", violation.rule, violation.dump)));
        Ok(said)
    }
}

/// `a1.2`.
fn attempt(text: &str) -> Result<AttemptId, String> {
    let (life, number) = text.strip_prefix('a').and_then(|t| t.split_once('.')).ok_or(format!("'{text}' is no attempt"))?;
    let incarnation = life.parse().map(Incarnation).map_err(|_| format!("'{text}' is no attempt"))?;
    Ok(AttemptId { incarnation, number: self::number(number)? })
}
