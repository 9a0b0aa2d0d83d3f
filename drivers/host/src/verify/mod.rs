//! Is a copy what its source is? Compared row by row while the pipeline runs, and while the source changes.
//!
//! First the copy is given time to come to where the log ends now, so that what was wrong before is seen. Then both sides are read
//! whole, the source in chunks, each with a place in the log (its fence) that contains everything it saw. That alone proves nothing,
//! since the sides are not of one moment: whatever differs is only a *suspect*. A suspect is looked at so, twice:
//!
//!  1. its row is read at the source by its key, with a fence;
//!  2. once the copy's effective cut contains that fence, the copy is read;
//!  3. the row is read at the source again.
//!
//! A key is accused if the source said the same all four times, and the copy something else both times, with a second between them. A row
//! that changes stays a suspect, and is not judged in the end. What this can take for a difference is a row that is another one whenever
//! the copy is read, always the same, and is back whenever the source is; or a change that is in the log and stays hidden from every snapshot
//! all the while (a commit that waits for a standby).
//!
//! Nothing is written anywhere.

mod sides;

use std::collections::{BTreeSet, HashMap, HashSet};

use contract::{Error, Kind};
use kernel::id::TableName;
use tokio::time::{Duration, Instant};

use crate::Drivers;
use crate::plan::TablePlan;
use sides::{Print, Sides};

/// So many keys that differ are told; then only that there are more.
const SUSPECTS_MAX: usize = 10_000;
/// How often a row that changes all the time is looked at; one that differs is looked at twice at least.
const ROUNDS: usize = 6;
/// Between two looks at a row that differs: a commit may be in the log for a while before any snapshot sees it.
const BETWEEN: Duration = Duration::from_secs(1);
/// How often the copy is asked how far it is.
const LOOKED_EVERY: Duration = Duration::from_millis(250);

/// What comparing a table found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// The table.
    pub table: TableName,
    /// Rows at the source, those that the pipeline's filter leaves out not counted.
    pub rows: u64,
    /// What differs for certain, by key.
    pub differences: Vec<Difference>,
    /// There may be more: so many differed at first that not all were looked at.
    pub more: bool,
    /// Rows that differed and could not be judged: they changed each time, or the copy did not come as far as the source.
    pub unsettled: u64,
    /// Did the copy not come as far as the source in time?
    pub behind: bool,
    /// Columns whose types can't be compared.
    pub columns_left_out: Vec<String>,
}

/// A row that differs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Difference {
    /// Its key, a text a column.
    pub key: Vec<String>,
    /// How.
    pub how: How,
}

/// How a copy's row differs from the source's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum How {
    /// The source has it, the copy does not.
    Missing,
    /// The copy has it, the source does not.
    Extra,
    /// The copy has it more than once.
    Twice,
    /// Both have it, with other values.
    Other,
}

impl How {
    /// For people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            How::Missing => "missing",
            How::Extra => "extra",
            How::Twice => "twice",
            How::Other => "other values",
        }
    }
}

/// Compares a table. `patience` is how long its copy may take to come as far as the source was.
pub async fn table(drivers: &Drivers, plan: &TablePlan, patience: Duration) -> Result<Verified, Error> {
    let sides = Sides::open(drivers, plan).await?;
    let log = drivers.source.open().await?;
    sides.is_of(&log.identity)?;
    // Where it does not come so far, what it lacks can't be judged below either.
    sides.comes_to(&log.end, patience).await?;
    let (rows, mut suspects, more) = sides.suspects(SUSPECTS_MAX).await?;
    let (mut differences, mut behind) = (Vec::new(), false);
    let mut trial = Trial::default();
    for round in 0..ROUNDS {
        if suspects.is_empty() {
            break;
        }
        if round > 0 {
            tokio::time::sleep(BETWEEN).await;
        }
        let (first, fence) = sides.at_source(&suspects).await?;
        if !sides.comes_to(&fence, patience).await? {
            behind = true;
            break;
        }
        let copied = sides.at_target(&suspects).await?;
        let (second, _) = sides.at_source(&suspects).await?;
        let mut left = BTreeSet::new();
        for key in suspects {
            match trial.judge(&key, first.get(&key).copied(), copied.get(&key).copied(), second.get(&key).copied()) {
                Judgement::Same => {}
                Judgement::Open => {
                    left.insert(key);
                }
                Judgement::Differs(how) => differences.push(Difference { key: sides.key_text(&key)?, how }),
            }
        }
        suspects = left;
    }
    differences.sort();
    let columns_left_out = sides.columns_left_out();
    let (table, unsettled) = (plan.request.table.clone(), suspects.len() as u64);
    Ok(Verified { table, rows, differences, more, unsettled, behind, columns_left_out })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Judgement {
    Same,
    /// It changes, or was found to differ for the first time: it is looked at again.
    Open,
    Differs(How),
}

/// What the source and the copy said of a row. A row that is not there says nothing.
type Said = (Option<Print>, Option<Print>);

/// What is known of the suspects.
#[derive(Default)]
struct Trial {
    /// What was said of a key when it was last found to differ.
    accused: HashMap<Vec<u8>, Said>,
}

impl Trial {
    /// What a suspect is, by what the source said before and after the copy was read, and by what was said of it in the round before.
    fn judge(&mut self, key: &[u8], first: Option<Print>, copied: Option<Print>, second: Option<Print>) -> Judgement {
        let before = self.accused.remove(key);
        let how = match (first, copied) {
            _ if first != second => return Judgement::Open,
            (None, None) => return Judgement::Same,
            (Some(row), Some(copied)) if row == copied => return Judgement::Same,
            (Some(_), None) => How::Missing,
            (None, Some(_)) => How::Extra,
            (Some(_), Some(copied)) if copied.copies > 1 => How::Twice,
            (Some(_), Some(_)) => How::Other,
        };
        if before == Some((first, copied)) {
            return Judgement::Differs(how);
        }
        self.accused.insert(key.to_vec(), (first, copied));
        Judgement::Open
    }
}

impl Sides<'_> {
    /// Reads both sides whole: how many rows the source has, and the keys of rows that differ; whether there are more than `most`.
    async fn suspects(&self, most: usize) -> Result<(u64, BTreeSet<Vec<u8>>, bool), Error> {
        let mut copied: HashMap<u128, Print> = HashMap::new();
        self.scan(|key, print| {
            copied.entry(fingerprint(key)).and_modify(|known| known.copies += 1).or_insert(print);
            if copied.len() <= KEYS_MAX { Ok(()) } else { Err(self.too_large()) }
        })
        .await?;
        let (mut rows, mut suspects, mut more) = (0, BTreeSet::new(), false);
        let mut suspect = |key: &[u8]| {
            if suspects.len() < most {
                suspects.insert(key.to_vec());
            } else {
                more = true;
            }
        };
        self.read(|key, print| {
            rows += 1;
            if copied.remove(&fingerprint(key)) != Some(print) {
                suspect(key);
            }
        })
        .await?;
        // What is left only the copy has. Of its keys only fingerprints are known so far.
        if !copied.is_empty() {
            let left: HashSet<u128> = copied.into_keys().collect();
            self.scan(|key, _| {
                if left.contains(&fingerprint(key)) {
                    suspect(key);
                }
                Ok(())
            })
            .await?;
        }
        Ok((rows, suspects, more))
    }

    /// The copy's rows of these keys.
    async fn at_target(&self, keys: &BTreeSet<Vec<u8>>) -> Result<HashMap<Vec<u8>, Print>, Error> {
        let mut found: HashMap<Vec<u8>, Print> = HashMap::new();
        self.scan(|key, print| {
            if keys.contains(key) {
                found.entry(key.to_vec()).and_modify(|known| known.copies += 1).or_insert(print);
            }
            Ok(())
        })
        .await?;
        Ok(found)
    }

    /// Waits until the copy claims to have everything up to here. `false` if it does not in time.
    async fn comes_to(&self, place: &kernel::position::Position, patience: Duration) -> Result<bool, Error> {
        let begun = Instant::now();
        loop {
            if self.stand().await?.contains(place) {
                return Ok(true);
            }
            if begun.elapsed() >= patience {
                return Ok(false);
            }
            tokio::time::sleep(LOOKED_EVERY).await;
        }
    }

    fn too_large(&self) -> Error {
        let what = format!("table {}: its copy has more than {KEYS_MAX} rows, which are not compared at once", self.name());
        Error::new(Kind::Rejected, "verify-too-large", what, "compare it with another program")
    }
}

/// Forty to eighty bytes of memory each, and half as much again while their table grows.
const KEYS_MAX: usize = 50_000_000;

/// Of a key, so that two keys of one table do not meet in it.
fn fingerprint(key: &[u8]) -> u128 {
    let half = |seed| u128::from(twox_hash::XxHash3_64::oneshot_with_seed(seed, key));
    half(0) << 64 | half(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Print = Print { values: 1, copies: 1 };
    const OTHER: Print = Print { values: 2, copies: 1 };
    const TWICE: Print = Print { values: 1, copies: 2 };

    /// What is said of a suspect, in rounds: by the source, by the copy, by the source again.
    fn judged(rounds: &[(Option<Print>, Option<Print>, Option<Print>)]) -> Judgement {
        let mut trial = Trial::default();
        let judgements = rounds.iter().map(|(first, copied, second)| trial.judge(b"key", *first, *copied, *second));
        judgements.last().expect("a round")
    }

    #[test]
    fn a_row_that_both_sides_say_alike_is_right_at_once() {
        assert_eq!(judged(&[(None, None, None)]), Judgement::Same);
        assert_eq!(judged(&[(Some(ROW), Some(ROW), Some(ROW))]), Judgement::Same);
    }

    #[test]
    fn only_what_the_source_says_four_times_and_the_copy_twice_speaks_against_a_copy() {
        let differs = [
            ((Some(ROW), None, Some(ROW)), How::Missing),
            ((None, Some(ROW), None), How::Extra),
            ((Some(ROW), Some(OTHER), Some(ROW)), How::Other),
            ((Some(ROW), Some(TWICE), Some(ROW)), How::Twice),
        ];
        let changes = [(Some(ROW), Some(OTHER), Some(OTHER)), (None, None, Some(ROW)), (Some(ROW), Some(ROW), None)];
        for (round, how) in differs {
            assert_eq!(judged(&[round]), Judgement::Open, "{round:?}");
            assert_eq!(judged(&[round, round]), Judgement::Differs(how), "{round:?}");
            for changed in changes {
                assert_eq!(judged(&[changed]), Judgement::Open, "{changed:?}");
                assert_eq!(judged(&[round, changed, round]), Judgement::Open, "{round:?} {changed:?}");
            }
        }
        // A row that comes and goes, each time another: it was there whenever the copy was looked at, and never at the source.
        assert_eq!(judged(&[(None, Some(ROW), None), (None, Some(OTHER), None)]), Judgement::Open);
    }
}
