//! A position store that forgets everything with the process: for dry runs and tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use kernel::id::Token;

use super::{PositionStore, Replaced};
use crate::{Error, Versioned};

/// Texts in memory. Share it (`Arc`) to let another life find them.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// The number of each text's last replacement, and the text.
    texts: Mutex<BTreeMap<String, (u64, String)>>,
}

impl MemoryStore {
    /// A store that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }
}

fn found(text: Option<&(u64, String)>) -> Versioned<Option<String>> {
    let number = text.map_or(0, |(number, _)| *number);
    Versioned { value: text.map(|(_, text)| text.clone()), token: Token::from(number.to_string()) }
}

#[async_trait]
impl PositionStore for MemoryStore {
    async fn read(&self, name: &str) -> Result<Versioned<Option<String>>, Error> {
        // What is behind the lock is whole at every moment, so a panic elsewhere is no reason to stop.
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(found(texts.get(name)))
    }

    async fn replace(&self, name: &str, expected: &Token, text: &str) -> Replaced {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let found = found(texts.get(name));
        if found.token != *expected {
            return Replaced::Conflict { found };
        }
        let number = texts.get(name).map_or(0, |(number, _)| *number) + 1;
        texts.insert(name.to_string(), (number, text.to_string()));
        Replaced::Stored { token: Token::from(number.to_string()) }
    }
}
