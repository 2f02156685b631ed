//! The library `std` of programs that are checked.
//!
//! It is the real one, except for what the real one has precompiled and what is followed here instead: threads, locks
//! and printing. They are written in terms of POSIX functions, which the translation knows.
//! Functions are `#[inline]` or generic, so that they are compiled together with the program.

#![no_std]
// The names and signatures are those of the real library.
#![allow(missing_docs)]

extern crate alloc as allocating;
extern crate std as real;

pub use real::*;

mod posix;
mod printing;

pub mod hint;
pub mod prelude;
pub mod process;
pub mod sync;
pub mod thread;
