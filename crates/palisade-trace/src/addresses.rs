//! What addresses mean, for programs whose pointers are addresses of bytes.

use palisade_base::Span;
use palisade_program::Value;
use std::fmt::Debug;

/// What addresses mean in a program whose pointers are addresses of bytes. It is only used to put runs into
/// words.
pub trait Addresses: Debug + Send + Sync {
    /// What is wrong with an access through a pointer that is not the address of a cell, in words.
    fn bad_pointer(&self, pointer: Value, access: BadAccess) -> String;

    /// A value of the cell with an address, if words say more than the number: an address in memory as `&lock`.
    fn value(&self, cell: Value, value: Value) -> Option<String>;

    /// Whether the cell with an address belongs to memory that the program allocates while it runs. Its
    /// declaration is then the place that allocates it.
    fn is_allocated(&self, cell: Value) -> bool;

    /// Whether a cell that holds this value belongs to memory that was freed.
    fn is_freed(&self, value: Value) -> bool;

    /// With what the variable ends to which the cell with an address belongs, if it exists only for a time.
    fn ended(&self, _cell: Value) -> Option<Ended> {
        None
    }

    /// Whether a cell that holds this value was never written.
    fn is_uninitialised(&self, value: Value) -> bool;

    /// What a thread waits for at a place where it reads a value from the cell with an address and a name, if
    /// words say more than the value.
    fn awaited(&self, _place: Span, _cell: Value, _name: &str, _value: Value) -> Option<Awaited> {
        None
    }

    /// Whether the cell with an address is no variable of the program: it was made to start and join threads.
    fn is_made(&self, _cell: Value) -> bool {
        false
    }
}

/// How the lifetime of a variable ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ended {
    /// Its function returns.
    Function,
    /// Its block ends.
    Block,
    /// Its thread ends.
    Thread,
}

/// What an access through a bad pointer was to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BadAccess {
    /// Load.
    Read,
    /// Store.
    Write,
    /// Both at once.
    Exchange,
}

/// What a thread waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// To be started.
    Start,
    /// The end of these threads.
    Ends(Vec<String>),
    /// Something else, in words: `for mutex m, which main holds`.
    Other(String),
}
