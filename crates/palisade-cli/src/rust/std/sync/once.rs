//! Something that is done once, whoever comes first.

use crate::posix::{self, MutexObject};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use real::panic::{RefUnwindSafe, UnwindSafe};

pub struct Once {
    complete: AtomicBool,
    object: MutexObject,
}

impl UnwindSafe for Once {}
impl RefUnwindSafe for Once {}

pub struct OnceState {
    _private: (),
}

impl OnceState {
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        false
    }
}

impl fmt::Debug for OnceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceState").field("poisoned", &false).finish()
    }
}

impl Once {
    #[inline]
    pub const fn new() -> Once {
        Once { complete: AtomicBool::new(false), object: MutexObject::new() }
    }

    #[inline]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if self.is_completed() {
            return;
        }
        unsafe { posix::pthread_mutex_lock(self.object.get()) };
        if !self.complete.load(Ordering::Relaxed) {
            f();
            self.complete.store(true, Ordering::Release);
        }
        unsafe { posix::pthread_mutex_unlock(self.object.get()) };
    }

    #[inline]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        self.call_once(|| f(&OnceState { _private: () }));
    }

    #[inline]
    pub fn is_completed(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// As if nothing had been done.
    #[inline]
    pub(super) fn reset(&mut self) {
        *self.complete.get_mut() = false;
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}
