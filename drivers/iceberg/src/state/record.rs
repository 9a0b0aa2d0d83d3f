//! The pipeline's record: the property of a control table without rows, `<namespace>.urutau_<pipeline>`, replaced by the
//! catalogue's compare-and-set. Its token is the location of the control table's metadata.

use std::collections::HashMap;
use std::sync::Arc;

use contract::{Error, Kind, Versioned};
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use iceberg::{NamespaceIdent, TableIdent, TableRequirement, TableUpdate};
use kernel::id::Token;
use kernel::outcome::StoreOutcome;
use kernel::state::{FORMAT, PipelineState};

use super::{PIPELINE, check_pipeline};
use crate::catalog::{About, Catalog, Commit, Loaded, NewTable, Outcome};
use crate::failpoint::failpoint;
use crate::storage::Storage;
use crate::table::BOUNDED_METADATA;

/// The record, JSON.
const RECORD: &str = "urutau.pipeline-state";
/// The token of a record that is not there.
const ABSENT: &str = "absent";

/// The pipeline's record.
#[derive(Debug)]
pub(crate) struct Record {
    catalog: Arc<dyn Catalog>,
    storage: Arc<dyn Storage>,
    pipeline: String,
    table: TableIdent,
}

impl Record {
    /// The record of a pipeline whose tables are in `namespace`.
    pub(crate) fn new(catalog: Arc<dyn Catalog>, storage: Arc<dyn Storage>, pipeline: &str, namespace: &NamespaceIdent) -> Self {
        // In names of tables a dot divides; two pipelines that meet in one name are told apart by the property.
        let name = format!("urutau_{}", pipeline.replace('.', "_"));
        Self { catalog, storage, pipeline: pipeline.to_owned(), table: TableIdent::new(namespace.clone(), name) }
    }

    /// Reads it.
    pub(crate) async fn read(&self) -> Result<Versioned<Option<PipelineState>>, Error> {
        match self.catalog.load(&self.table).await? {
            None => Ok(Versioned { value: None, token: Token::from(ABSENT) }),
            Some(loaded) => self.of(&loaded),
        }
    }

    /// Replaces it if it still is the one of `expected`.
    pub(crate) async fn store(&self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        let outcome = match self.catalog.load(&self.table).await {
            Err(e) => return unknown(&e),
            Ok(None) if expected.as_str() == ABSENT => self.create(new).await,
            Ok(None) => Stored::Conflict,
            Ok(Some(loaded)) if loaded.location == expected.as_str() => self.replace(&loaded, new).await,
            Ok(Some(_)) => Stored::Conflict,
        };
        match outcome {
            Stored::Done(now) => {
                failpoint!("iceberg-record-stored");
                StoreOutcome::Stored { token: Token::from(now.location) }
            }
            Stored::Unknown(why) => StoreOutcome::Unknown { why },
            Stored::Conflict => match self.read().await {
                Ok(found) => StoreOutcome::Conflict { found: found.value.map(Box::new), token: found.token },
                Err(e) => unknown(&e),
            },
        }
    }

    async fn create(&self, new: &PipelineState) -> Stored {
        let text = NestedField::optional(1, "none", Type::Primitive(PrimitiveType::String)).with_doc("this table has no rows");
        let schema = match Schema::builder().with_fields([text.into()]).build() {
            Ok(schema) => schema,
            Err(e) => return Stored::Unknown(e.to_string()),
        };
        let bounded = BOUNDED_METADATA.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let properties = bounded.chain(self.properties(new)).collect();
        match self.catalog.create(&self.table, NewTable { schema, properties }).await {
            Ok(Some(now)) => Stored::Done(now),
            Ok(None) => Stored::Conflict,
            Err(e) => Stored::Unknown(e.to_string()),
        }
    }

    async fn replace(&self, base: &Loaded, new: &PipelineState) -> Stored {
        if let Err(e) = check_pipeline(base, &self.pipeline) {
            return Stored::Unknown(e.to_string());
        }
        let requirements = vec![TableRequirement::UuidMatch { uuid: base.metadata.uuid() }];
        let updates = vec![TableUpdate::SetProperties { updates: self.properties(new).collect::<HashMap<_, _>>() }];
        match self.catalog.commit(Commit { base, requirements, updates, about: About::Record }).await {
            Outcome::Committed { now, forgotten } => {
                let storage = Arc::clone(&self.storage);
                crate::blocking::delete_quietly(storage, forgotten).await;
                Stored::Done(now)
            }
            Outcome::Conflict => Stored::Conflict,
            Outcome::Unsent(e) => Stored::Unknown(e.to_string()),
            Outcome::Unknown(why) | Outcome::Refused(why) => Stored::Unknown(why),
        }
    }

    fn properties(&self, new: &PipelineState) -> impl Iterator<Item = (String, String)> + use<> {
        // A record is numbers and text under fixed names: this always is JSON.
        let json = serde_json::to_string(new).unwrap_or_default();
        [(RECORD.to_owned(), json), (PIPELINE.to_owned(), self.pipeline.clone())].into_iter()
    }

    fn of(&self, loaded: &Loaded) -> Result<Versioned<Option<PipelineState>>, Error> {
        check_pipeline(loaded, &self.pipeline)?;
        let unreadable = |why: String| {
            let what = format!("the pipeline's record in table '{}' is not what urutau wrote: {why}", self.table);
            let remedy = "restore it or run the version that wrote it; without it nobody knows which tables are complete";
            Error::new(Kind::Config, "iceberg-record-unreadable", what, remedy)
        };
        let text =
            loaded.metadata.properties().get(RECORD).ok_or_else(|| unreadable(format!("there is no property {RECORD}")))?;
        let state: PipelineState = serde_json::from_str(text).map_err(|e| unreadable(e.to_string()))?;
        if state.format > FORMAT {
            return Err(unreadable(format!("it is of format {}, and this version knows up to {FORMAT}", state.format)));
        }
        Ok(Versioned { value: Some(state), token: Token::from(loaded.location.as_str()) })
    }
}

enum Stored {
    Done(Loaded),
    Conflict,
    Unknown(String),
}

/// There is no word for 'certainly not'; the caller reads the record again in either case.
fn unknown(error: &Error) -> StoreOutcome {
    StoreOutcome::Unknown { why: error.to_string() }
}
