//! The end of the program.

use crate::posix;

pub use real::process::*;

#[inline]
pub fn exit(code: i32) -> ! {
    unsafe { posix::exit(code) }
}

#[inline]
pub fn abort() -> ! {
    unsafe { posix::abort() }
}
