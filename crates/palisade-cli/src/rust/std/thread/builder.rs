//! Threads with names and stack sizes, which make no difference here.

use super::handle::spawn_any;
use super::{JoinHandle, Scope, ScopedJoinHandle};
use allocating::string::String;
use real::io;

#[derive(Debug, Default)]
pub struct Builder {
    _private: (),
}

impl Builder {
    #[inline]
    pub fn new() -> Builder {
        Builder { _private: () }
    }

    #[inline]
    pub fn name(self, _: String) -> Builder {
        self
    }

    #[inline]
    pub fn stack_size(self, _: usize) -> Builder {
        self
    }

    #[inline]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Ok(super::spawn(f))
    }

    /// # Safety
    /// The thread must be joined before what it uses is gone.
    #[inline]
    pub unsafe fn spawn_unchecked<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        Ok(spawn_any(f))
    }

    #[inline]
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Ok(scope.spawn(f))
    }
}
