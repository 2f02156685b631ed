//! Limits of the reader, so that no input exhausts the stack or the memory.

/// Larger texts are rejected: positions in a text have 32 bits.
pub const MAX_BYTES: usize = u32::MAX as usize;

/// How deeply types, constants and metadata can nest. Everything that walks them is recursive, so this bounds
/// its stack. Compilers stay below twenty.
pub const MAX_NESTING: u32 = 100;

/// The widest integer type, as in LLVM.
pub const MAX_INTEGER_BITS: u32 = 1 << 23;

/// How many errors are reported individually.
pub const MAX_ERRORS: usize = 50;
