//! Hints for the processor, which change nothing.

pub use real::hint::*;

#[inline]
pub fn spin_loop() {}
