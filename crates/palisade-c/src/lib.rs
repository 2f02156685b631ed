//! C programs, as LLVM IR, turned into written programs.
//!
//! *Problem.* The engines work on programs with processes, shared cells and registers. C has pointers, calls,
//! local variables, a heap and a thread library.
//!
//! *How.* [`translate`] links the modules, inlines every call, one copy per thread and call site, and turns each
//! thread into a process:
//! 1. `inline` and `library` turn instructions and library calls into steps ([`flat`]).
//! 2. `promote`, `propagate` and `tidy` keep locals whose address does not leave the thread in registers, fold
//!    constants, and drop what nobody reads.
//! 3. `threads` finds the threads that each thread starts, until no new ones turn up.
//! 4. `layout` gives every object that is left an address, and `emit` writes the statements.
//!
//! *Conventions.*
//! - Pointers are byte addresses. An access of 2^k bytes at address a dereferences the key `a * 8 + k`, and a
//!   cell of 2^k bytes is placed there. An access of the wrong size or place is then a bad pointer.
//! - Values narrower than 64 bits are kept sign-extended, `i1` as 0 or 1.
//! - Memory that was never written holds [`UNINITIALISED`], freed memory [`FREED`].
//!
//! *Guarantee.* The program that is returned can do what the compiled C program can do on a machine with store
//! buffers, if the compiler keeps the order of atomic and volatile accesses and there is no data race on the
//! others. What is not understood is refused with a diagnostic. Checks that are
//! [limits](palisade_program::written::Check::is_limit) fail where the translation may differ.

mod objects;

pub use objects::{Object, ObjectKind, Objects, Problem};

use palisade_base::{Diagnostic, Span};
use palisade_llvm::Module;
use palisade_program::written::Program;

/// What a cell holds that was never written. Values that are stored are checked to be different.
pub const UNINITIALISED: i64 = 0x8BAD_F00D_DEAD_BEE1_u64 as i64;

/// What a cell of freed memory holds.
pub const FREED: i64 = 0x8BAD_F00D_F4EE_D0E3_u64 as i64;

/// What decides how a program is translated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many threads there is room for.
    pub slots: Slots,
    /// How many objects there is room for, per allocation site and thread.
    pub pool: u32,
    /// Whether waits for condition variables may end without a signal.
    pub spurious: bool,
    /// Whether data races are to be reported.
    pub races: bool,
    /// Where execution starts.
    pub roots: Roots,
}

impl Default for Options {
    fn default() -> Options {
        Options { slots: Slots::default(), pool: 4, spurious: true, races: true, roots: Roots::Main }
    }
}

/// How many threads a thread may start where the number is not known from the text. Creates whose number is
/// known always have room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slots {
    /// By `main`.
    pub main: u32,
    /// By every other thread.
    pub nested: u32,
}

impl Default for Slots {
    fn default() -> Slots {
        Slots { main: 4, nested: 1 }
    }
}

/// Where execution starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roots {
    /// In `main`.
    Main,
    /// A library without `main`: in these functions.
    Functions {
        /// Runs first, before the threads start.
        init: Option<String>,
        /// One thread each.
        threads: Vec<String>,
        /// Runs after all threads have ended.
        finally: Option<String>,
    },
}

/// Where places of the debug information are in the text that spans refer to.
pub trait Places {
    /// The span of a place; `None` if it is not in a file of the user.
    fn span(&self, file: &str, directory: &str, line: u32, column: u32) -> Option<Span>;
}

/// A translated program.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The program.
    pub program: Program,
    /// What the answer rests on, to be stated with it.
    pub notes: Vec<Note>,
    /// What lies where in memory, to explain bad pointers.
    pub objects: Objects,
    /// The threads, in the order of the processes.
    pub threads: Vec<Thread>,
}

/// Something that an answer rests on: one sentence in lower case without a full stop.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Note(pub String);

/// A thread of the translated program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// The name of its process: that of its function, with a number if there are several.
    pub name: String,
    /// The functions that it may run.
    pub functions: Vec<String>,
}

/// Translates the modules of one program.
///
/// # Errors
/// What the translation does not understand, and what is missing.
pub fn translate(
    modules: &[Module],
    places: &dyn Places,
    options: &Options,
) -> Result<Translation, Vec<Diagnostic>> {
    let _ = (modules, places, options);
    Err(vec![Diagnostic::error("c-unsupported", "C programs cannot be translated yet")])
}
