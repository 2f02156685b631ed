//! Threads.

mod builder;
mod handle;
mod result;
mod scoped;

use crate::posix;
use core::time::Duration;

pub use real::thread::*;

pub use builder::Builder;
pub use handle::{spawn, JoinHandle, Thread, ThreadId};
pub use scoped::{scope, Scope, ScopedJoinHandle};

#[inline]
pub fn current() -> Thread {
    Thread::new(unsafe { posix::pthread_self() })
}

/// A thread that panics ends the program.
#[inline]
pub fn panicking() -> bool {
    false
}

#[inline]
pub fn yield_now() {
    unsafe { posix::sched_yield() };
}

/// Any amount of time passes between two steps anyway.
#[inline]
pub fn sleep(_: Duration) {
    yield_now();
}

#[inline]
pub fn park() {
    unsafe { posix::park() }
}

#[inline]
pub fn park_timeout(_: Duration) {
    unsafe { posix::park_timeout() }
}
