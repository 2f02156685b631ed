//! What addresses mean, for programs whose pointers are addresses of bytes.

use palisade_program::Value;
use std::fmt::Debug;

/// What addresses mean in a program whose pointers are addresses of bytes. It is only used to put runs into
/// words.
pub trait Addresses: Debug + Send + Sync {
    /// What is wrong with an access through a pointer that is not the address of a cell, in words.
    fn bad_pointer(&self, pointer: Value) -> String;

    /// A value of the cell with an address, if words say more than the number: an address in memory as `&lock`.
    fn value(&self, cell: Value, value: Value) -> Option<String>;

    /// Whether the cell with an address belongs to memory that the program allocates while it runs. Its
    /// declaration is then the place that allocates it.
    fn is_allocated(&self, cell: Value) -> bool;

    /// Whether a cell that holds this value belongs to memory that was freed.
    fn is_freed(&self, value: Value) -> bool;

    /// Whether a cell that holds this value was never written.
    fn is_uninitialised(&self, value: Value) -> bool;
}
