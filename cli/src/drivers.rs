//! The drivers of this binary.

use contract::registry::Registry;

/// All of them.
pub(crate) fn registry() -> Registry {
    Registry::default()
        .with_source(jsonl::SourceFactory)
        .with_source(postgres_source::SourceFactory)
        .with_sink(jsonl::sink::Factory)
        .with_sink(null::Factory)
        .with_sink(iceberg_sink::Factory)
}
