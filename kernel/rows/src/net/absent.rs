//! Values that were not sent: found in the row's earlier image in the same checkpoint (rule H2), or a hole (rule H1).
//!
//! - An update takes what it lacks from the image that its key had before. After a delete there is none.
//! - The insert of a changed key takes it from its delete, the old row: what that carries, else what that row had before.
//! - A plain insert or a snapshot's row is a new row: what it lacks nobody here knows.

use super::Hole;
use super::located::Located;
use super::survivors::{History, NONE};
use crate::batch::Operation;

/// The columns in which a row that is not a delete lacks a value.
pub(super) fn columns(rows: &Located<'_>) -> Vec<usize> {
    let lacks = |column: &usize| {
        rows.sources.iter().any(|source| {
            let operations = &source.batch.tail.operations;
            let marks = source.batch.absent[*column].iter();
            marks.flat_map(|marks| marks.set_indices()).any(|row| operations[row] != Operation::Delete)
        })
    };
    (0..rows.schema.columns.len()).filter(lacks).collect()
}

/// For each column with absent values, the row that has the value of each row.
#[derive(Clone, Default)]
pub(super) struct Sources {
    columns: Vec<(usize, Vec<u32>)>,
}

impl Sources {
    /// One pass a column, in log order: an earlier row's value is found already.
    pub(super) fn find(rows: &Located<'_>, history: &History, columns: &[usize]) -> Self {
        let find = |column: usize| {
            let mut sources: Vec<u32> = Vec::with_capacity(rows.places.len());
            for number in rows.numbers() {
                let source = if rows.is_absent(number, column) {
                    let earlier = match rows.operation(number) {
                        Operation::Update | Operation::Delete => history.image_before(rows, number),
                        Operation::Insert => rows.moved_from(number),
                        Operation::Read => None,
                    };
                    earlier.map_or(NONE, |earlier| sources[earlier as usize])
                } else {
                    number
                };
                sources.push(source);
            }
            (column, sources)
        };
        Self { columns: columns.iter().map(|column| find(*column)).collect() }
    }

    /// The holes in these rows, of all columns.
    pub(super) fn holes(&self, rows: &Located<'_>, wanted: &[u32]) -> Vec<Hole> {
        self.holes_in(rows, wanted, |_| true)
    }

    /// The holes in these rows, of some columns.
    pub(super) fn holes_in(&self, rows: &Located<'_>, wanted: &[u32], is_asked: impl Fn(usize) -> bool) -> Vec<Hole> {
        let hole = |(column, sources): &(usize, Vec<u32>)| {
            let mut lacking = wanted.iter().filter(|number| sources[**number as usize] == NONE);
            let first = *lacking.next()?;
            Some(Hole {
                column: rows.schema.columns[*column].name.clone(),
                rows: 1 + lacking.count(),
                transaction: rows.transaction(first).clone(),
                coordinate: rows.coordinate(first),
            })
        };
        self.columns.iter().filter(|(column, _)| is_asked(*column)).filter_map(hole).collect()
    }

    /// Does a row lack a value?
    pub(super) fn lacks(&self, number: u32) -> bool {
        self.columns.iter().any(|(_, sources)| sources[number as usize] == NONE)
    }

    /// A row takes from another one what it lacks, or everything.
    pub(super) fn take(&mut self, rows: &Located<'_>, number: u32, from: u32, everything: bool) {
        for (column, sources) in &mut self.columns {
            let source = &mut sources[number as usize];
            if everything || *source == NONE {
                *source = if rows.is_absent(from, *column) { NONE } else { from };
            }
        }
    }

    /// The same, but a delete keeps what it carries itself: nothing is filled into an old row.
    pub(super) fn but_for_deletes(mut self, rows: &Located<'_>) -> Self {
        for (_, sources) in &mut self.columns {
            for number in rows.numbers().filter(|number| rows.operation(*number) == Operation::Delete) {
                sources[number as usize] = number;
            }
        }
        self
    }

    /// The rows that have the values of this column, if they are not the rows themselves.
    pub(super) fn of(&self, column: usize) -> Option<&[u32]> {
        self.columns.iter().find(|(absent, _)| *absent == column).map(|(_, sources)| sources.as_slice())
    }
}
