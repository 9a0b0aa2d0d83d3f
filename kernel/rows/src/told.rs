//! What each row of a batch says of the row with its key: all of it, some of it, that it is gone. The machines decide by this which
//! rows lack values that have to be read (rule H1); they see no values.

use std::ops::Range;

use kernel::coordinator::Told;
use kernel::position::Transaction;

use crate::batch::{ChangeBatch, Operation};

/// Does any of these rows lack a value that its own change does not carry?
pub fn lacks_values(batch: &ChangeBatch, rows: Range<usize>) -> bool {
    batch.absent.iter().any(Option::is_some) && told(batch, rows).into_iter().any(Told::lacks)
}

/// What these rows tell, in their order. Both halves of a changed key lie in one range (rule O1).
pub fn told(batch: &ChangeBatch, rows: Range<usize>) -> Vec<Told> {
    let lacks = |row: usize, old: Option<usize>| {
        let columns = 0..batch.absent.len();
        // What the old half of a changed key carries is the row's own.
        columns.clone().any(|column| batch.is_absent(column, row) && old.is_none_or(|old| batch.is_absent(column, old)))
    };
    let tell = |row: usize| match batch.tail.operations[row] {
        Operation::Delete => Told::Gone,
        Operation::Update if lacks(row, None) => Told::Part,
        Operation::Read if lacks(row, None) => Told::PartOfNew,
        Operation::Insert => match moved_from(batch, row) {
            Some(old) if lacks(row, Some(old)) => Told::PartOfMoved,
            None if lacks(row, None) => Told::PartOfNew,
            Some(_) | None => Told::Whole,
        },
        Operation::Update | Operation::Read => Told::Whole,
    };
    rows.map(tell).collect()
}

/// The old half of a changed key.
fn moved_from(batch: &ChangeBatch, row: usize) -> Option<usize> {
    batch.moved_from(row).filter(|before| transaction(batch, row) == transaction(batch, *before))
}

fn transaction(batch: &ChangeBatch, row: usize) -> Option<&Transaction> {
    let mut end = 0;
    let run = batch.tail.transactions.iter().find(|run| {
        end += run.rows;
        row < end
    });
    run.map(|run| &run.transaction)
}
