//! Limits on the size of a program. Anything larger is either a mistake or too large to check.

/// Memory cells. A state contains all of them.
pub const MAX_CELLS: u64 = 1 << 20;

/// Combinations of parameter values of one process template. Each gets its own code.
pub const MAX_ROLES: u64 = 4096;

/// Processes that start initially with a declared number of instances. State spaces are exponential in it.
pub const MAX_INSTANCES: u64 = 256;

/// Initial states: combinations of values for the cells initialised with `*`. They are enumerated.
pub const MAX_INITIAL_STATES: u64 = 1 << 32;

/// Values of one `any(lo..hi)`. They are enumerated.
pub const MAX_CHOICES: u64 = 1 << 20;

/// Statements and expressions, each counted once per combination of parameter values of its process. Each
/// becomes at most a few edges of about a hundred bytes.
pub const MAX_CODE: usize = 1 << 23;

/// The total number of names compared with unknown names to find suggestions.
pub(super) const MAX_COMPARISONS: usize = 200_000;
