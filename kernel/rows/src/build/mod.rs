//! Change batches in the making: what a log decoder appends to, value by value and row by row, without anything in between.
//!
//! A driver reads the bytes of its log and puts each value where [`Values`] of its column lie; all the rest is the same for every
//! log: nulls, values that were not sent, what the log says of a row, taking back a row that was refused, and the Arrow arrays in
//! the end. Nothing is allocated for a row.

mod batch;
mod column;
mod finish;

pub use batch::BatchBuilder;
pub use column::{ColumnBuilder, Values};
