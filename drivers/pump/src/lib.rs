//! Feeds a machine from an environment and carries out what it asks.
