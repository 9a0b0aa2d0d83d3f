//! A sink that counts and forgets: dry runs and benchmarks.
