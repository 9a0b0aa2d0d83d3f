//! JSON change files as a source, JSON lines as a sink.
