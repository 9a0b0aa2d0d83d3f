//! Tables of a real server, read in chunks beside its log.

#[path = "../common/everything.rs"]
#[allow(unreachable_pub, reason = "shared with other tests of this driver")]
mod everything;
#[path = "../../../../e2e/src/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "the harness of the end-to-end tests, of which this test needs a part")]
mod postgres;

mod again;
mod composites;
mod desk;
mod generated;
mod keys;
mod lists;
mod race;
mod tables;
mod values;
mod visibility;
mod walks;
