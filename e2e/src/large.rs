//! Large change files, written fast: what memory and speed are measured with.
//!
//! Every value is a function of the key and of how often it was written, so that a reader can check each row by a formula;
//! the writer counts along, and its totals are what a reader must find.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Keys of the first half of the memory test's file, one transaction for each [`SMALL_TRANSACTION`] of them.
const HALF: u64 = 2_000_000;
const SMALL_TRANSACTION: u64 = 1_000;
/// In the large transaction every so many events one changes a row of the first half.
const CHANGED_EVERY: u64 = 10;

/// Rows and sums of one table, as a reader must find them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// How many rows.
    pub rows: u64,
    /// The sum of the keys.
    pub keys: u64,
    /// The sum of the readings.
    pub readings: u64,
}

impl Totals {
    fn add(&mut self, id: u64, version: u64) {
        self.rows += 1;
        self.keys += id;
        self.readings += reading(id, version);
    }
}

/// What the memory test's file must lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryFile {
    /// Of the table `meters`.
    pub meters: Totals,
    /// Of the table `alarms`.
    pub alarms: Totals,
    /// Events in the file.
    pub events: u64,
    /// Its size.
    pub bytes: u64,
}

/// The column `reading`, as `READING` says it in SQL.
fn reading(id: u64, version: u64) -> u64 {
    id * 7919 % 1_000_003 + version * 10_000_000
}

/// [`reading`] as SQL over the columns `id` and `version`.
pub const READING: &str = "id * 7919 % 1000003 + version * 10000000";

/// Writes 4 M keys: one half in transactions of a thousand, the other half, with changes of every tenth key of the first, as
/// one transaction over two tables.
pub fn write_memory_file(path: &Path) -> std::io::Result<MemoryFile> {
    let mut events = Events::create(path)?;
    let mut file = MemoryFile::default();
    for id in 0..HALF {
        events.transaction = 1 + id / SMALL_TRANSACTION;
        events.write("meters", id, 0, None)?;
        file.meters.add(id, 0);
    }
    events.transaction += 1;
    for n in 0..HALF {
        if n % 2 == 0 {
            events.write("meters", HALF + n / 2, 0, None)?;
            file.meters.add(HALF + n / 2, 0);
        } else {
            events.write("alarms", n / 2, 0, None)?;
            file.alarms.add(n / 2, 0);
        }
        if n % CHANGED_EVERY == 0 {
            events.write("meters", n, 1, Some(n))?;
            file.meters.readings += reading(n, 1) - reading(n, 0);
        }
    }
    (file.events, file.bytes) = events.finish()?;
    Ok(file)
}

/// A writer of events whose rows are functions of their keys.
struct Events {
    out: BufWriter<File>,
    transaction: u64,
    events: u64,
    bytes: u64,
    line: Vec<u8>,
}

impl Events {
    fn create(path: &Path) -> std::io::Result<Events> {
        let out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        Ok(Events { out, transaction: 0, events: 0, bytes: 0, line: Vec::with_capacity(1024) })
    }

    /// One event: an insert, or an update of the key `changed`.
    fn write(&mut self, table: &str, id: u64, version: u64, changed: Option<u64>) -> std::io::Result<()> {
        const FILLER: &str = "the reading was taken by the night shift and confirmed in the morning; nothing else was noted here";
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"before\":null,\"after\":{\"id\":");
        digits(line, id);
        line.extend_from_slice(b",\"version\":");
        digits(line, version);
        line.extend_from_slice(b",\"reading\":");
        digits(line, reading(id, version));
        line.extend_from_slice(b",\"note\":\"");
        line.extend_from_slice(FILLER.as_bytes());
        digits(line, id ^ 0x5DEE_CE66);
        line.extend_from_slice(b"\"},\"source\":{\"connector\":\"mysql\",\"db\":\"plant\",\"schema\":\"plant\",\"table\":\"");
        line.extend_from_slice(table.as_bytes());
        line.extend_from_slice(b"\",\"txId\":");
        digits(line, self.transaction);
        line.extend_from_slice(if changed.is_some() {
            b",\"ts_ms\":1767600000000},\"op\":\"u\"}\n"
        } else {
            b",\"ts_ms\":1767600000000},\"op\":\"c\"}\n"
        });
        self.put()
    }

    fn put(&mut self) -> std::io::Result<()> {
        self.events += 1;
        self.bytes += self.line.len() as u64;
        self.out.write_all(&self.line)
    }

    fn finish(mut self) -> std::io::Result<(u64, u64)> {
        self.out.flush()?;
        Ok((self.events, self.bytes))
    }
}

/// A number in decimal digits: the one thing that `write!` would make slow.
fn digits(line: &mut Vec<u8>, mut number: u64) {
    let mut reversed = [0; 20];
    let mut length = 0;
    loop {
        reversed[length] = b'0' + (number % 10) as u8;
        length += 1;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend(reversed[..length].iter().rev());
}

/// Writes `rows` upserts of ten columns in transactions of a hundred; every second one changes a row that is there.
pub fn write_bench_file(path: &Path, rows: u64) -> std::io::Result<()> {
    let mut events = Events::create(path)?;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for n in 0..rows {
        events.transaction = 1 + n / 100;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let fresh = n < 1_000 || n % 2 == 0;
        let id = if fresh { n } else { state % (n / 2) * 2 };
        events.write_ten_columns(id, state, fresh)?;
    }
    events.finish().map(|_| ())
}

impl Events {
    fn write_ten_columns(&mut self, id: u64, noise: u64, fresh: bool) -> std::io::Result<()> {
        let day = |n: u64| (1 + n % 12, 1 + n / 12 % 28);
        let ((month, date), (hour, minute)) = (day(noise), (noise % 24, noise / 24 % 60));
        self.line.clear();
        write!(
            self.line,
            "{{\"before\":null,\"after\":{{\"id\":{id},\"name\":\"customer {id} of {}\",\"amount\":\"{}.{:02}\",\"ratio\":{}.{},\
             \"made_at\":\"2026-{month:02}-{date:02}T{hour:02}:{minute:02}:07.{:06}Z\",\"seen_at\":\"2026-{month:02}-{date:02}T{hour:02}:{minute:02}:09\",\
             \"due\":\"2026-{month:02}-{date:02}\",\"token\":\"{:08x}-0000-4000-8000-{:012x}\",\"blob\":\"{}\",\"count\":{}}},\
             \"source\":{{\"connector\":\"mysql\",\"db\":\"bench\",\"schema\":\"bench\",\"table\":\"rows\",\"txId\":{},\"ts_ms\":1767600000000}},\"op\":\"{}\"}}",
            noise % 977,
            noise % 1_000_000,
            noise % 100,
            noise % 1000,
            noise % 97,
            noise % 1_000_000,
            noise as u32,
            noise >> 16,
            ["3q2+7w==", "AAECAwQFBgc=", "", "/////w=="][(noise % 4) as usize],
            noise % 10_000,
            self.transaction,
            if fresh { 'c' } else { 'u' },
        )?;
        self.line.push(b'\n');
        self.put()
    }
}
