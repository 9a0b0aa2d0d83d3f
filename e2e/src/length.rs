//! How long a test is that shows more the longer it goes on.

/// Is the long form of such tests asked for (`E2E_LONG=1`)? `make test` has the short one. A test counts what happens, not the time.
pub fn is_long() -> bool {
    std::env::var_os("E2E_LONG").is_some_and(|asked| !asked.is_empty() && asked != "0")
}
