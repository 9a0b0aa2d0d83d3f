//! The way to a field, as problems name it: `tables[1].columns[0].type`.

use std::fmt;

use crate::shown::printable;

/// Where a walk through the file is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    text: String,
}

impl Path {
    /// Goes into a field.
    pub(crate) fn enter(&mut self, field: &str) {
        if !self.text.is_empty() {
            self.text.push('.');
        }
        self.text.push_str(&printable(field));
    }

    /// Goes into an entry of a list.
    pub(crate) fn enter_item(&mut self, index: usize) {
        self.text.push_str(&format!("[{index}]"));
    }

    /// How long it is, for going back.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Goes back to where it was so long.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
