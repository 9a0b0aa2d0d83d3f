//! What a check of the outside found, with the statement that mends it.

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Good to know.
    Info,
    /// It works, but not as well or not for ever.
    Warning,
    /// A run would fail.
    Error,
}

/// One thing that a check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code with a page in the docs.
    pub code: &'static str,
    /// What it is about: a table, a setting, a file.
    pub subject: String,
    /// What was expected and found.
    pub what: String,
    /// The statement, setting or command that mends it; may be empty for `Info`.
    pub remedy: String,
}
