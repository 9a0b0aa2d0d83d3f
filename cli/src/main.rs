//! The `urutau` binary.
fn main() {}
