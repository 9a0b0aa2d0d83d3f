//! What a fuzzer feeds: one function a target, from bytes to laws.
//!
//! Each takes any bytes and panics where a law is broken: a decoder that panics, a text that is not read back as it was written,
//! two encodings of one value, a machine whose own checks fail. That something is refused is no fault; [`Saw`] tells it, so that
//! the tests can see that a corpus holds both kinds.
//!
//! The functions run in two places: under cargo-fuzz, where `fuzz/fuzz_targets/` has a program for each, and as ordinary tests on
//! the stable toolchain, over the kept inputs and over many small changes of them (`tests/replay.rs`).
#![deny(missing_docs)]

mod bytes;
mod copied;
mod frames;
mod key;
mod lines;
mod machine;
pub mod mutate;
mod pipeline;
mod position;
mod read;
mod scenario;
mod state;
mod values;

/// What became of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Saw {
    /// Something in it was of the target's form, and its laws were looked at.
    Taken,
    /// Nothing in it was.
    Refused,
}

impl Saw {
    fn taken_if(taken: bool) -> Self {
        if taken { Saw::Taken } else { Saw::Refused }
    }
}

/// Something to be fed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of its function, its program, and the folders of its kept inputs.
    pub name: &'static str,
    /// Looks at the laws.
    pub run: fn(&[u8]) -> Saw,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "position", run: position },
    Target { name: "state", run: state },
    Target { name: "key", run: key },
    Target { name: "machine", run: machine },
    Target { name: "lines", run: lines },
    Target { name: "pipeline", run: pipeline },
    Target { name: "frames", run: frames },
    Target { name: "copied", run: copied },
    Target { name: "values", run: values },
    Target { name: "scenario", run: scenario },
];

pub use copied::copied;
pub use frames::frames;
pub use key::key;
pub use lines::lines;
pub use machine::machine;
pub use pipeline::pipeline;
pub use position::position;
pub use scenario::scenario;
pub use state::state;
pub use values::values;
