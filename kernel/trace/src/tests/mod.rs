//! What a trace is held to: one form for each thing, nothing of a row in it, and machines that do the same again.

mod forms;
mod inputs;
mod life;
