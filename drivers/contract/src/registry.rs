//! How a driver is found by the word that a pipeline file uses for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Error, Sink, Source};

/// The part of a pipeline file that is a driver's own: its `source` or `sink` section as JSON, defaults filled in.
pub type Settings = serde_json::Map<String, serde_json::Value>;

/// Opens sources of one kind.
#[async_trait]
pub trait SourceFactory: Send + Sync {
    /// The word for it in a pipeline file.
    fn kind(&self) -> &'static str;
    /// What it is, in a line, for `urutau drivers`.
    fn summary(&self) -> &'static str;
    /// Opens one. Connects only as far as it must to say whether it can.
    async fn open(&self, pipeline: &str, settings: &Settings) -> Result<Arc<dyn Source>, Error>;
}

/// Opens sinks of one kind.
#[async_trait]
pub trait SinkFactory: Send + Sync {
    /// The word for it in a pipeline file.
    fn kind(&self) -> &'static str;
    /// What it is, in a line, for `urutau drivers`.
    fn summary(&self) -> &'static str;
    /// Opens one. Connects only as far as it must to say whether it can.
    async fn open(&self, pipeline: &str, settings: &Settings) -> Result<Arc<dyn Sink>, Error>;
}

/// The drivers of a program.
#[derive(Default)]
pub struct Registry {
    sources: BTreeMap<&'static str, Box<dyn SourceFactory>>,
    sinks: BTreeMap<&'static str, Box<dyn SinkFactory>>,
}

impl Registry {
    /// Adds a source.
    #[must_use]
    pub fn with_source(mut self, factory: impl SourceFactory + 'static) -> Self {
        self.sources.insert(factory.kind(), Box::new(factory));
        self
    }

    /// Adds a sink.
    #[must_use]
    pub fn with_sink(mut self, factory: impl SinkFactory + 'static) -> Self {
        self.sinks.insert(factory.kind(), Box::new(factory));
        self
    }

    /// The source of that kind.
    pub fn source(&self, kind: &str) -> Option<&dyn SourceFactory> {
        self.sources.get(kind).map(Box::as_ref)
    }

    /// The sink of that kind.
    pub fn sink(&self, kind: &str) -> Option<&dyn SinkFactory> {
        self.sinks.get(kind).map(Box::as_ref)
    }

    /// All sources, by kind.
    pub fn sources(&self) -> impl Iterator<Item = &dyn SourceFactory> {
        self.sources.values().map(Box::as_ref)
    }

    /// All sinks, by kind.
    pub fn sinks(&self) -> impl Iterator<Item = &dyn SinkFactory> {
        self.sinks.values().map(Box::as_ref)
    }
}
