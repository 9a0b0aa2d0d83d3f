//! One life, fact by fact: what it does with states that no life has written, and where a table stands when the log is not what it was.

mod desk;
mod forged;
mod reasons;
mod standing;
