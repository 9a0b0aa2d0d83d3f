//! The simulator: the kernel's machines in a world with faults, judged by an oracle.
