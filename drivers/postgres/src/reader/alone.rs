//! Frames without a session: what they become, for whoever has them from elsewhere (a recording, a fuzzer).

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{Error, LogRead};
use rows::TableSchema;

use super::{Assembler, Selected, Taken};
use crate::pgoutput::Lsn;
use crate::values::Types;
use crate::visibility::{FullXid, Xids};

/// What frames become, read from the beginning of a log, in which these tables are kept by key; and why reading ended before the last of
/// them, if it did. The time at which rows came is 0.
pub fn read_frames<'a>(
    tables: impl IntoIterator<Item = Arc<TableSchema>>,
    types: Types,
    frames: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(LogRead, Option<Error>), Error> {
    let selected = |schema: Arc<TableSchema>| {
        let table = schema.table.clone();
        (table, Selected { schema, declared: BTreeMap::new(), keeps_every_row: false, relation: None })
    };
    let tables = tables.into_iter().map(selected).collect();
    let mut assembler = Assembler::new(tables, Arc::new(types), Lsn(0), Xids::near(FullXid(0)));
    // Nobody knows more than this: what waits for types is taken without them, and says so in its place.
    let mut take = |frame| {
        let mut taken = assembler.take(frame)?;
        while taken != Taken::Whole {
            if let Taken::LacksAttributes(relation) = taken {
                assembler.set_attributes(relation, BTreeMap::new());
            }
            taken = assembler.take_after_looking(frame)?;
        }
        Ok(())
    };
    let ended = frames.into_iter().find_map(|frame| take(frame).err());
    Ok((assembler.finish(0)?, ended))
}
