//! Waiting for other threads while a mutex is released.

use super::MutexGuard;
use crate::posix::{self, ConditionObject, Time};
use core::fmt;
use core::time::Duration;
use real::panic::{RefUnwindSafe, UnwindSafe};
use real::sync::LockResult;

pub struct Condvar {
    object: ConditionObject,
}

impl UnwindSafe for Condvar {}
impl RefUnwindSafe for Condvar {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    #[inline]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    #[inline]
    pub const fn new() -> Condvar {
        Condvar { object: ConditionObject::new() }
    }

    #[inline]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        unsafe { posix::pthread_cond_wait(self.object.get(), guard.object().get()) };
        Ok(guard)
    }

    #[inline]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            unsafe { posix::pthread_cond_wait(self.object.get(), guard.object().get()) };
        }
        Ok(guard)
    }

    /// The wait may end at any time.
    #[inline]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let until = Time { seconds: 0, nanoseconds: 0 };
        let result =
            unsafe { posix::pthread_cond_timedwait(self.object.get(), guard.object().get(), &until) };
        Ok((guard, WaitTimeoutResult(result != 0)))
    }

    #[inline]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        loop {
            if !condition(&mut *guard) {
                return Ok((guard, WaitTimeoutResult(false)));
            }
            match self.wait_timeout(guard, duration) {
                Ok((woken, result)) => {
                    guard = woken;
                    if result.timed_out() {
                        let still = condition(&mut *guard);
                        return Ok((guard, WaitTimeoutResult(still)));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    #[inline]
    pub fn notify_one(&self) {
        unsafe { posix::pthread_cond_signal(self.object.get()) };
    }

    #[inline]
    pub fn notify_all(&self) {
        unsafe { posix::pthread_cond_broadcast(self.object.get()) };
    }
}

impl Default for Condvar {
    #[inline]
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
