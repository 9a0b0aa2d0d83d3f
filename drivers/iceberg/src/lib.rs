//! Apache Iceberg as a sink: row deltas with deletion vectors, found by a key index.
