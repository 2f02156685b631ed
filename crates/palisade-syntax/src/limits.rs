//! Where the parsers give up, so that no input exhausts the stack or the memory.

/// Larger texts are refused: places in a text are 32 bits wide.
pub const MAX_BYTES: usize = u32::MAX as usize;

/// How deep statements, blocks and parenthesised expressions may nest in a text.
pub const MAX_NESTING: u32 = 200;

/// How high the tree of one expression may be. A chain such as `a + a + …` grows the tree by one per
/// operator. Everything that walks over expressions recurses, so this bounds the stack it needs.
pub const MAX_EXPR_DEPTH: u32 = 500;

/// How large a program may be: one for each expression, two for each statement and declaration. One takes
/// about a hundred bytes of memory.
pub const MAX_SIZE: usize = 6_000_000;

/// How many errors are reported one by one.
pub const MAX_ERRORS: usize = 50;
