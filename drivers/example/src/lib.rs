//! # A driver from outside, as a tutorial
//!
//! This crate is what somebody writes who wants urutau to read or write something new. It depends on `contract` (and on
//! `async-trait`) and on nothing else of urutau; the kernel, the host and the other drivers do not know it.
//!
//! It has two halves, each about as small as a correct one can be:
//!
//! - [`Notebook`], a source: a text file of changes, one a line;
//! - [`Pages`], a sink: a directory with one document a table.
//!
//! Read them in this order. Each part says what a driver owes there, and why. What all drivers owe is checked by
//! `contract::conformance`: `tests/conformance.rs` shows how little it takes to run it. Write that test first.
//!
//! Three rules to begin with:
//!
//! 1. **A driver reports facts.** It does not decide which rows count, does not retry, does not acknowledge by itself. If
//!    something may work later it says `Transient`, and the kernel decides.
//! 2. **What it says must repeat.** Positions, coordinates, refusals: the same log gives the same answers on every reading,
//!    whatever was asked for besides. Recovery is built on that.
//! 3. **An error is a message to a person**: what happened, to which table or file, what was expected and found, what to do
//!    now. Never a row's value, never a secret.

mod sink;
mod source;

use std::sync::Arc;

use contract::registry::{Settings, SinkFactory, SourceFactory};
use contract::{Error, Kind, Sink, Source, async_trait};

pub use sink::Pages;
pub use source::Notebook;

/// Makes notebooks of the sections `source: { kind: notebook, path: ... }` of pipeline files.
///
/// A program adds it to its `contract::registry::Registry`; that is the only place which names a driver.
pub struct NotebookFactory;

#[async_trait]
impl SourceFactory for NotebookFactory {
    fn kind(&self) -> &'static str {
        "notebook"
    }

    fn summary(&self) -> &'static str {
        "a text file of changes, one a line"
    }

    async fn open(&self, _pipeline: &str, settings: &Settings) -> Result<Arc<dyn Source>, Error> {
        Ok(Arc::new(Notebook::new(text(settings, "source.path", "path")?)))
    }
}

/// Makes pages of the sections `sink: { kind: pages, uri: ... }` of pipeline files.
pub struct PagesFactory;

#[async_trait]
impl SinkFactory for PagesFactory {
    fn kind(&self) -> &'static str {
        "pages"
    }

    fn summary(&self) -> &'static str {
        "a directory with one document a table"
    }

    async fn open(&self, pipeline: &str, settings: &Settings) -> Result<Arc<dyn Sink>, Error> {
        Ok(Arc::new(Pages::new(pipeline, text(settings, "sink.uri", "uri")?)))
    }
}

/// Settings come as JSON, checked for their names by the validator. What they mean is the driver's business, and so is what
/// it says about a wrong one: the field, what is expected, what to do.
fn text<'a>(settings: &'a Settings, field: &str, name: &str) -> Result<&'a str, Error> {
    settings.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty()).ok_or_else(|| {
        let what = format!("{field}: a path is expected");
        Error::new(Kind::Config, "example-setting", what, format!("write `{name}: some/path`"))
    })
}
