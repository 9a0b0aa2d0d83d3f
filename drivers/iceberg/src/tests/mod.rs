//! The sink as a whole, on a directory: what a commit does, what becomes of it, and what others may do to its tables.

mod columns;
mod commits;
mod expiry;
mod faults;
mod foreign;
mod index;
mod sweeps;
mod types;
mod world;
