//! Real processes, independent readers, crash tests, benchmarks.
