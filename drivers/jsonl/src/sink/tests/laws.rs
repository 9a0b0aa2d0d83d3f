//! The sink keeps the laws of all sinks, torn at any byte.

use std::fs;

use contract::conformance::Word;
use contract::conformance::sink::{self, SinkAbilities, SinkHarness, SinkPlace};
use contract::{Capabilities, Error, StateWrite, async_trait};

use super::*;

struct Files;

struct Place(tempfile::TempDir);

impl Place {
    fn path(&self, table: &SinkTable) -> PathBuf {
        self.0.path().join(format!("{}.jsonl", table.target))
    }
}

#[async_trait]
impl SinkHarness for Files {
    fn abilities(&self) -> SinkAbilities {
        SinkAbilities {
            capabilities: Capabilities { state: StateWrite::WithData, writes_ahead: true, truncates: true, sweeps: true },
            modes: vec![Mode::Upsert, Mode::Append, Mode::AppendIdempotent],
            reads_back: true,
            foreign_commit: false,
            roll_back: false,
            tear: true,
        }
    }

    async fn fresh(&self) -> Result<Box<dyn SinkPlace>, Error> {
        Ok(Box::new(Place(tempfile::tempdir().unwrap())))
    }
}

#[async_trait]
impl SinkPlace for Place {
    async fn open(&self) -> Result<Arc<dyn Sink>, Error> {
        Ok(opened(self.0.path()).await)
    }

    async fn visible_rows(&self, table: &SinkTable) -> Result<Vec<Word>, Error> {
        let word = |row: &Json| Word { id: row["id"].as_i64().unwrap(), word: row["word"].as_str().map(String::from) };
        Ok(rows_of(&self.path(table)).iter().map(word).collect())
    }

    /// Of the last commit's bytes the first ones are there and the rest is not; or the rest is there and the first ones are
    /// zeros, as a file system may leave it that writes the length before the content.
    async fn tear(&self, table: &SinkTable, step: u32) -> Result<bool, Error> {
        let path = self.path(table);
        let mut content = fs::read(&path).unwrap();
        let starts: Vec<usize> = content.windows(9).enumerate().filter(|(_, w)| *w == b"{\"state\":").map(|(at, _)| at).collect();
        let [.., before, last] = starts[..] else { panic!("two commits are expected") };
        let begin = before + content[before..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
        // Each sixth byte, and every byte around where the line of state begins and ends.
        let cut = |at: &usize| at.is_multiple_of(6) || at.abs_diff(last) < 4 || content.len() - at < 4;
        let cuts: Vec<usize> = (begin..=content.len()).filter(cut).collect();
        let holes = cuts.iter().filter(|at| **at > begin);
        let steps: Vec<(usize, bool)> = cuts.iter().map(|at| (*at, false)).chain(holes.map(|at| (*at, true))).collect();
        let Some((at, hole)) = steps.get(step as usize) else { return Ok(false) };
        match hole {
            true => content[begin..*at].fill(0),
            false => content.truncate(*at),
        }
        fs::write(&path, content).unwrap();
        Ok(true)
    }
}

#[tokio::test]
async fn it_keeps_all_laws() {
    sink::check(&Files).await.must_hold(&[
        ("the-highest-state-counts", "the sink's state write is compare-and-set"),
        ("the-highest-version-wins", "the sink's state write is compare-and-set"),
        ("state-survives-foreign-commits", "nobody else can change a table of this sink"),
    ]);
}
