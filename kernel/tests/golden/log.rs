//! What a script says of a log: rows of a table in a transaction, ends, keepalives.
//!
//! `orders 10/11-13` are three rows of table `orders` in the transaction that begins at 10, at the coordinates 11 to 13;
//! `end 10 at 20` is its end, `end a:5` that of one which has the number 5 in a log of sets. `orders 10/11-13 keys 01 -02 03?` says the same with what each row tells of its key: all of it, that it
//! is gone, some of it; `-01 02^` is a row that goes from 01 to 02 and does not tell all, `01!` a new one that does not. In a log of several
//! streams a transaction is `a:10`.

use kernel::coordinator::{HeldBatch, LogEvent, RowRange, Told, Touched};
use kernel::id::{BatchId, EncodedKey, StreamName, TableName, TransactionName};
use kernel::position::{Coordinate, Digest, Offset, Position, Transaction};

/// What one read brings.
pub(crate) struct Read {
    pub(crate) batches: Vec<HeldBatch>,
    pub(crate) events: Vec<LogEvent>,
    pub(crate) finished: bool,
}

/// Bytes of a row.
const ROW_BYTES: u64 = 10;

/// Reads `text`; `batches` is the number of the last batch that was ever given.
pub(crate) fn read(text: &str, batches: &mut u64) -> Result<Read, String> {
    let mut read = Read { batches: vec![], events: vec![], finished: false };
    for said in text.split(';').map(str::trim) {
        let words: Vec<&str> = said.split_whitespace().collect();
        let event = match words.as_slice() {
            ["nothing"] => continue,
            ["finished"] => {
                read.finished = true;
                continue;
            }
            ["end", transaction, "at", end] => {
                let transaction = self::transaction(transaction)?;
                let upto = Position::of(transaction.stream.clone(), Offset(number(end)?));
                LogEvent::Ended { transaction, upto }
            }
            ["end", transaction] => {
                let transaction = self::transaction(transaction)?;
                let upto = Position::between(transaction.stream.clone(), transaction.at, Offset(transaction.at.0 + 1));
                LogEvent::Ended { transaction, upto }
            }
            ["keepalive", upto] => LogEvent::Keepalive { upto: position(upto)? },
            ["truncate", table, place] => {
                let (transaction, coordinate, _) = self::place(place)?;
                LogEvent::Truncated { table: TableName::from(*table), transaction, coordinate, by: None }
            }
            ["schema", table, place, schema] => {
                let (transaction, coordinate, _) = self::place(place)?;
                LogEvent::Schema { table: TableName::from(*table), transaction, coordinate, schema: (*schema).into(), by: None }
            }
            ["refused", table, place, why @ ..] => {
                let (transaction, coordinate, _) = self::place(place)?;
                LogEvent::Refused { table: TableName::from(*table), transaction, coordinate, why: why.join(" ") }
            }
            [table, place, "keys", keys @ ..] => with_keys(rows(&mut read, table, place, 0, batches)?, keys)?,
            [table, place] => rows(&mut read, table, place, 0, batches)?,
            [table, place, "otherwise"] => rows(&mut read, table, place, 1, batches)?,
            _ => return Err(format!("the log can't say '{said}'")),
        };
        read.events.push(event);
    }
    Ok(read)
}

fn rows(read: &mut Read, table: &str, place: &str, lie: u64, batches: &mut u64) -> Result<LogEvent, String> {
    let (transaction, first, last) = self::place(place)?;
    *batches += 1;
    let batch = BatchId(*batches);
    let count = u32::try_from(last.major + 1 - first.major).map_err(|_| "too many rows")?;
    let bytes = u64::from(count) * ROW_BYTES;
    read.batches.push(HeldBatch { batch, rows: count, bytes });
    // Any function of the coordinates will do: the same rows have the same sum, however they come.
    let hash = (first.major..=last.major).fold(lie, |sum, c| sum.wrapping_add((c + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let digest = Digest { count: u64::from(count), hash };
    let rows = RowRange { batch, rows: 0..count };
    let touched = None;
    Ok(LogEvent::Rows { table: TableName::from(table), transaction, rows, bytes, first, last, digest, touched })
}

fn with_keys(mut event: LogEvent, words: &[&str]) -> Result<LogEvent, String> {
    if let LogEvent::Rows { transaction, touched, .. } = &mut event {
        let by = TransactionName::from(format!("x{}", transaction.at.0).as_str());
        let told = words.iter().map(|word| match (word.chars().next(), word.chars().last()) {
            (Some('-'), _) => Told::Gone,
            (_, Some('?')) => Told::Part,
            (_, Some('^')) => Told::PartOfMoved,
            (_, Some('!')) => Told::PartOfNew,
            _ => Told::Whole,
        });
        let told = told.collect();
        let keys = words.iter().map(|word| key(word.trim_matches(['-', '?', '^', '!']))).collect::<Result<_, _>>()?;
        *touched = Some(Box::new(Touched { by, keys, told }));
    }
    Ok(event)
}

/// `01`: a byte.
pub(crate) fn key(text: &str) -> Result<EncodedKey, String> {
    let byte = u8::from_str_radix(text, 16).map_err(|_| format!("'{text}' is no key"))?;
    Ok(EncodedKey::from([byte].as_slice()))
}

/// `10/11-13` or `a:10/11`.
fn place(text: &str) -> Result<(Transaction, Coordinate, Coordinate), String> {
    let (transaction, rows) = text.split_once('/').ok_or(format!("'{text}' is no place in a transaction"))?;
    let (first, last) = rows.split_once('-').unwrap_or((rows, rows));
    let coordinate = |text| Ok::<_, String>(Coordinate { major: number(text)?, minor: 0 });
    Ok((self::transaction(transaction)?, coordinate(first)?, coordinate(last)?))
}

fn transaction(text: &str) -> Result<Transaction, String> {
    let (stream, at) = text.rsplit_once(':').unwrap_or(("", text));
    Ok(Transaction { stream: StreamName::from(stream), at: Offset(number(at)?) })
}

pub(crate) fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is no number"))
}

/// `[10]`, `[a:5,b:3]`, `[]`, or the same without brackets.
pub(crate) fn position(text: &str) -> Result<Position, String> {
    text.trim_start_matches('[').trim_end_matches(']').parse().map_err(|e| format!("{e}"))
}
