//! Threads that end before a function does.
//!
//! A scope has a list of its threads. When it ends, it joins those that nobody has joined, until the list is empty.
//! A thread that starts others adds them before it ends, so none is missed.
//!
//! A handle may be joined by another thread while the scope ends. Whoever changes [`Node::state`] first joins the
//! thread. If that is the scope, it passes the result on.

use super::handle::{create, wait_for};
use super::result::{pack, unpack};
use super::Thread;
use allocating::boxed::Box;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Nobody has joined the thread.
const OPEN: u32 = 0;
/// The handle is being joined, or was.
const JOINED: u32 = 1;
/// The scope is joining the thread.
const JOINED_BY_SCOPE: u32 = 2;
/// The scope has joined the thread, and the result is there.
const PASSED_ON: u32 = 3;

/// A function that drops what a thread returns. It has the signature of no other function, so that it is clear which
/// functions can be called.
type Discard = unsafe fn(*mut c_void, i8, i16) -> i8;

/// A thread of a scope.
struct Node {
    thread: Thread,
    state: AtomicU32,
    result: UnsafeCell<*mut c_void>,
    /// Drops what the thread returns.
    discard: Discard,
    next: *mut Node,
}

pub struct Scope<'scope, 'env: 'scope> {
    threads: AtomicPtr<Node>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

pub struct ScopedJoinHandle<'scope, T> {
    node: *mut Node,
    result: PhantomData<(*const T, &'scope ())>,
}

unsafe impl<T> Send for ScopedJoinHandle<'_, T> {}
unsafe impl<T> Sync for ScopedJoinHandle<'_, T> {}

#[inline]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope { threads: AtomicPtr::new(ptr::null_mut()), scope: PhantomData, env: PhantomData };
    let result = f(&scope);
    unsafe { end(&scope.threads) };
    result
}

/// Joins all threads, and then frees the list. Handles may be used until all threads have ended.
#[inline]
unsafe fn end(threads: &AtomicPtr<Node>) {
    let mut ended: *mut Node = ptr::null_mut();
    loop {
        let mut node = threads.swap(ptr::null_mut(), Ordering::Acquire);
        if node.is_null() {
            break;
        }
        while !node.is_null() {
            let next = (*node).next;
            finish(node);
            (*node).next = ended;
            ended = node;
            node = next;
        }
    }
    while !ended.is_null() {
        let node = Box::from_raw(ended);
        ended = node.next;
        if node.state.load(Ordering::Relaxed) == PASSED_ON {
            // Nobody took the result.
            (node.discard)(*node.result.get(), 0, 0);
        }
    }
}

/// Joins a thread for its scope, unless it was joined.
#[inline]
unsafe fn finish(node: *mut Node) {
    let state = &(*node).state;
    if state.compare_exchange(OPEN, JOINED_BY_SCOPE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        *(*node).result.get() = wait_for(&(*node).thread);
        state.store(PASSED_ON, Ordering::Release);
    }
}

extern "C" fn start<F: FnOnce() -> T, T>(argument: *mut c_void) -> *mut c_void {
    let work = unsafe { Box::from_raw(argument.cast::<F>()) };
    pack(work())
}

unsafe fn discard<T>(word: *mut c_void, _: i8, _: i16) -> i8 {
    drop(unpack::<T>(word));
    0
}

impl<'scope, 'env> Scope<'scope, 'env> {
    #[inline]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let thread = unsafe { create(start::<F, T>, Box::into_raw(Box::new(f)).cast()) };
        let node = Box::into_raw(Box::new(Node {
            thread,
            state: AtomicU32::new(OPEN),
            result: UnsafeCell::new(ptr::null_mut()),
            discard: discard::<T>,
            next: ptr::null_mut(),
        }));
        let mut first = self.threads.load(Ordering::Relaxed);
        loop {
            unsafe { (*node).next = first };
            match self.threads.compare_exchange(first, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => first = other,
            }
        }
        ScopedJoinHandle { node, result: PhantomData }
    }
}

impl<'scope, T> ScopedJoinHandle<'scope, T> {
    #[inline]
    pub fn thread(&self) -> &Thread {
        unsafe { &(*self.node).thread }
    }

    #[inline]
    pub fn join(self) -> super::Result<T> {
        let node = unsafe { &*self.node };
        let joins = node.state.compare_exchange(OPEN, JOINED, Ordering::AcqRel, Ordering::Acquire);
        let word = match joins {
            Ok(_) => unsafe { wait_for(&node.thread) },
            Err(_) => {
                while node
                    .state
                    .compare_exchange(PASSED_ON, JOINED, Ordering::AcqRel, Ordering::Acquire)
                    .is_err()
                {}
                unsafe { *node.result.get() }
            }
        };
        Ok(unsafe { unpack(word) })
    }

    #[inline]
    pub fn is_finished(&self) -> bool {
        self.thread().is_finished()
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}
