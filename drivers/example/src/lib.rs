//! A third-party driver that depends on the contract alone.
