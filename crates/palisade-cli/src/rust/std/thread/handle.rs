//! Threads that may outlive the function that starts them.
//!
//! What a thread returns that is never joined is not dropped.

use super::result::{pack, unpack};
use crate::posix::{self, Handle};
use allocating::boxed::Box;
use core::ffi::c_void;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::forget;
use core::ptr;

/// A thread that runs or has run.
#[derive(Clone)]
pub struct Thread {
    handle: Handle,
}

impl Thread {
    #[inline]
    pub(super) fn new(handle: Handle) -> Thread {
        Thread { handle }
    }

    #[inline]
    pub fn id(&self) -> ThreadId {
        ThreadId(self.handle)
    }

    #[inline]
    pub(super) fn is_finished(&self) -> bool {
        unsafe { posix::is_finished(self.handle) != 0 }
    }

    #[inline]
    pub fn name(&self) -> Option<&str> {
        Some(unsafe { posix::refuse_name() })
    }

    #[inline]
    pub fn unpark(&self) {
        unsafe { posix::unpark(self.handle) }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// What distinguishes threads.
#[derive(Clone, Copy)]
pub struct ThreadId(Handle);

impl PartialEq for ThreadId {
    #[inline]
    fn eq(&self, other: &ThreadId) -> bool {
        unsafe { posix::pthread_equal(self.0, other.0) != 0 }
    }
}

impl Eq for ThreadId {}

impl Hash for ThreadId {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadId").field(&self.0).finish()
    }
}

/// A thread that can be joined. It is detached if this is dropped.
pub struct JoinHandle<T> {
    thread: Thread,
    result: PhantomData<*const T>,
}

unsafe impl<T> Send for JoinHandle<T> {}
unsafe impl<T> Sync for JoinHandle<T> {}

/// Starts a thread.
#[inline]
pub(super) unsafe fn create(entry: posix::Entry, argument: *mut c_void) -> Thread {
    let mut handle: Handle = 0;
    posix::pthread_create(&mut handle, ptr::null(), entry, argument);
    Thread::new(handle)
}

/// Waits for the end of a thread, and returns what it returns.
#[inline]
pub(super) unsafe fn wait_for(thread: &Thread) -> *mut c_void {
    let mut result = ptr::null_mut();
    posix::pthread_join(thread.handle, &mut result);
    result
}

extern "C" fn start<F: FnOnce() -> T, T>(argument: *mut c_void) -> *mut c_void {
    let work = unsafe { Box::from_raw(argument.cast::<F>()) };
    pack(work())
}

#[inline]
pub(super) unsafe fn spawn_any<F: FnOnce() -> T, T>(work: F) -> JoinHandle<T> {
    let thread = create(start::<F, T>, Box::into_raw(Box::new(work)).cast());
    JoinHandle { thread, result: PhantomData }
}

#[inline]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    unsafe { spawn_any(f) }
}

impl<T> JoinHandle<T> {
    #[inline]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    #[inline]
    pub fn join(self) -> super::Result<T> {
        let result = unsafe { unpack(wait_for(&self.thread)) };
        forget(self);
        Ok(result)
    }

    #[inline]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        unsafe { posix::pthread_detach(self.thread.handle) };
    }
}

#[cfg(unix)]
impl<T> real::os::unix::thread::JoinHandleExt for JoinHandle<T> {
    #[inline]
    fn as_pthread_t(&self) -> real::os::unix::thread::RawPthread {
        self.thread.handle as real::os::unix::thread::RawPthread
    }

    #[inline]
    fn into_pthread_t(self) -> real::os::unix::thread::RawPthread {
        let handle = self.as_pthread_t();
        forget(self);
        handle
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}
