//! The environment on tokio: opens drivers, runs coordinator and workers, serves the endpoints.
