//! What is too large to be meant, or to be checked by anyone.

/// Cells of memory. A state holds all of them.
pub const MAX_CELLS: u64 = 1 << 20;

/// Combinations of parameter values of one process template, each of which gets its own code.
pub const MAX_ROLES: u64 = 4096;

/// Processes that start initially, where their number is declared. State spaces are exponential in it.
pub const MAX_INSTANCES: u64 = 256;

/// Initial states: combinations of values of cells that start with `*`. They are enumerated.
pub const MAX_INITIAL_STATES: u64 = 1 << 32;

/// Values of one `any(lo..hi)`. They are enumerated.
pub const MAX_CHOICES: u64 = 1 << 20;

/// Statements and expressions, each counted once per combination of parameter values of its process. Each
/// becomes at most a few edges of about a hundred bytes.
pub const MAX_CODE: usize = 1 << 23;

/// Names compared with unknown ones to find suggestions, in all.
pub(super) const MAX_COMPARISONS: usize = 200_000;
