//! Limits of the parsers, so that no input exhausts the stack or the memory.

/// Larger texts are rejected: positions in a text have 32 bits.
pub const MAX_BYTES: usize = u32::MAX as usize;

/// How deeply statements, blocks and parenthesised expressions can nest.
pub const MAX_NESTING: u32 = 200;

/// The maximum height of an expression tree. A chain such as `a + a + …` grows the tree by one per operator.
/// All code that walks expressions is recursive, so this bounds its stack.
pub const MAX_EXPR_DEPTH: u32 = 500;

/// The maximum size of a program: one unit for each expression, two for each statement and declaration. A
/// unit takes about a hundred bytes of memory.
pub const MAX_SIZE: usize = 6_000_000;

/// How many errors are reported individually.
pub const MAX_ERRORS: usize = 50;

/// How many files a program can import, directly or through others.
pub const MAX_IMPORTS: usize = 200;

/// How deeply imports can nest.
pub const MAX_IMPORT_DEPTH: usize = 30;

/// The maximum size of a program with the files that it imports, in bytes.
pub const MAX_IMPORTED_BYTES: usize = 256 << 20;
