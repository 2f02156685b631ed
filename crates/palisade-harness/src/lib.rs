//! Runs C, C++ and Rust programs under a scheduler of its own and records what they do to memory.
