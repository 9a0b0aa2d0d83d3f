//! Rows that are read again for values that updates left out, from what a source answers to what netting takes of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::coordinator::{Fill, HeldBatch, RowRange, RowsAnswer};
use kernel::id::{EncodedKey, Version};
use rows::filter::Filter;
use rows::net::{NetError, NetOutcome, Numbering};
use rows::store::RowStore;
use rows::{ChangeBatch, EncodedKeys, Netted, ReadAgain, Slice, TableSchema};

use crate::env::RowsAgain;
use crate::intake::{broken_key_text, to_u32};

/// An answer whose long work is done.
pub(crate) struct PreparedRows {
    rows: Option<(Arc<ChangeBatch>, Arc<EncodedKeys>)>,
    answer: RowsAnswer,
}

/// Encodes the rows' keys. A row that was asked for under another spelling of its key is another row here: of this key there is none.
pub(crate) fn prepare_rows(again: RowsAgain, asked: &[EncodedKey]) -> Result<PreparedRows, String> {
    let RowsAgain { rows, gone, visibility, fence, identity } = again;
    let gone: Option<Vec<EncodedKey>> = gone.iter().map(|place| asked.get(*place).cloned()).collect();
    let Some(gone) = gone else {
        return Err("the source driver names keys that were not asked for: a fault of the driver".into());
    };
    let (mut held, mut keys) = (None, Vec::new());
    if let Some(batch) = rows {
        let of = EncodedKeys::encode(&batch.schema, &batch.data).map_err(|e| broken_key_text(&batch, &e.to_string()))?;
        let places: BTreeMap<&[u8], &EncodedKey> = asked.iter().map(|key| (key.as_bytes(), key)).collect();
        let wanted: Vec<usize> = (0..batch.rows()).filter(|row| places.contains_key(of.key(*row))).collect();
        keys = wanted.iter().filter_map(|row| places.get(of.key(*row)).copied().cloned()).collect();
        if !wanted.is_empty() {
            let (batch, of) = match wanted.len() == batch.rows() {
                true => (batch, of),
                false => {
                    (Arc::new(batch.pick(&wanted).map_err(|e| broken_key_text(&batch, &e.to_string()))?), of.select(&wanted))
                }
            };
            held = Some((batch, Arc::new(of)));
        }
    }
    let answer = RowsAnswer { rows: None, keys, gone, visibility, fence, identity };
    Ok(PreparedRows { rows: held, answer })
}

/// Puts the rows into the store; what is left is a fact.
pub(crate) fn hold_rows(prepared: PreparedRows, store: &mut RowStore) -> RowsAnswer {
    let rows = prepared.rows.map(|(batch, keys)| {
        let (rows, bytes) = (to_u32(batch.rows()), batch.bytes());
        HeldBatch { batch: store.insert(batch, keys), rows, bytes }
    });
    RowsAnswer { rows, ..prepared.answer }
}

/// The rows of a part, and what is taken for what they lack. `None` where the row store does not have them.
pub(crate) struct Filling {
    slices: Option<Vec<Slice>>,
    fills: Option<Vec<(Fill, Option<Slice>)>>,
}

impl Filling {
    /// Looks the rows up.
    pub(crate) fn of(store: &RowStore, rows: &[RowRange], fills: Vec<Fill>) -> Self {
        let slices = rows.iter().map(|range| store.slice(range)).collect();
        let fill = |fill: Fill| match &fill.row {
            Some(range) => store.slice(range).map(|slice| (fill, Some(slice))),
            None => Some((fill, None)),
        };
        Self { slices, fills: fills.into_iter().map(fill).collect() }
    }

    /// What the rows look like.
    pub(crate) fn schema(&self) -> Option<&TableSchema> {
        self.slices.as_ref()?.first().map(|slice| slice.batch.schema.as_ref())
    }
}

/// One image a key, or every row; what can't be netted is said for people.
pub(crate) fn net(
    filling: Filling,
    keeps_every_row: bool,
    filter: Option<&Filter>,
    first: Version,
) -> Result<Box<Netted>, String> {
    let (Some(slices), Some(fills)) = (filling.slices, filling.fills) else {
        return Err("rows are missing from the row store: a fault in urutau itself".into());
    };
    let numbering = Numbering { incarnation: first.incarnation(), first: first.sequence() };
    let outcome = if keeps_every_row {
        rows::net::append(&slices, numbering)
    } else {
        let mut again = Vec::with_capacity(fills.len());
        for (fill, row) in &fills {
            again.push(ReadAgain { key: fill.key.as_bytes(), row: row.clone(), whole: fill.whole });
        }
        rows::net::net_filled(&slices, numbering, filter, &again)
    };
    match outcome {
        Ok(NetOutcome::Netted(netted)) => Ok(netted),
        Ok(NetOutcome::Holes(holes)) => {
            let holes: Vec<String> = holes.iter().map(ToString::to_string).collect();
            Err(format!("{}. Have the source send whole rows: an unknown value is never replaced by null", holes.join("; ")))
        }
        Err(error @ NetError::Nothing) => Err(format!("{error}: a fault in urutau itself")),
        Err(error) => Err(error.to_string()),
    }
}
