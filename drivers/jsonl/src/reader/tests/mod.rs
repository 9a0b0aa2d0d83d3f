//! What a log reader makes of files: rows, transactions, positions, refusals; and that it makes the same of them however they are
//! read.

mod files;
mod laws;
mod rows;
mod schema;
mod transactions;
