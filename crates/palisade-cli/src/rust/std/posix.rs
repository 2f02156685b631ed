//! Functions and types of POSIX. A type is as many zeros as its static initialiser.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

pub(crate) type Handle = u64;
pub(crate) type Entry = extern "C" fn(*mut c_void) -> *mut c_void;

/// An object of the thread library with so many words of 8 bytes.
#[repr(C)]
pub(crate) struct Object<const WORDS: usize>(UnsafeCell<[u64; WORDS]>);

impl<const WORDS: usize> Object<WORDS> {
    #[inline]
    pub(crate) const fn new() -> Object<WORDS> {
        Object(UnsafeCell::new([0; WORDS]))
    }

    #[inline]
    pub(crate) const fn get(&self) -> *mut [u64; WORDS] {
        self.0.get()
    }
}

// The functions below synchronise.
unsafe impl<const WORDS: usize> Send for Object<WORDS> {}
unsafe impl<const WORDS: usize> Sync for Object<WORDS> {}

pub(crate) type MutexObject = Object<5>;
pub(crate) type ConditionObject = Object<6>;
pub(crate) type LockObject = Object<7>;

#[repr(C)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

#[allow(improper_ctypes)]
extern "C" {
    pub(crate) fn pthread_create(
        handle: *mut Handle,
        attributes: *const c_void,
        entry: Entry,
        argument: *mut c_void,
    ) -> c_int;
    pub(crate) fn pthread_join(handle: Handle, result: *mut *mut c_void) -> c_int;
    pub(crate) fn pthread_detach(handle: Handle) -> c_int;
    pub(crate) fn pthread_self() -> Handle;
    pub(crate) fn pthread_equal(one: Handle, other: Handle) -> c_int;
    pub(crate) fn sched_yield() -> c_int;
    pub(crate) fn pthread_mutex_lock(mutex: *mut [u64; 5]) -> c_int;
    pub(crate) fn pthread_mutex_trylock(mutex: *mut [u64; 5]) -> c_int;
    pub(crate) fn pthread_mutex_unlock(mutex: *mut [u64; 5]) -> c_int;
    pub(crate) fn pthread_cond_wait(condition: *mut [u64; 6], mutex: *mut [u64; 5]) -> c_int;
    pub(crate) fn pthread_cond_timedwait(
        condition: *mut [u64; 6],
        mutex: *mut [u64; 5],
        until: *const Time,
    ) -> c_int;
    pub(crate) fn pthread_cond_signal(condition: *mut [u64; 6]) -> c_int;
    pub(crate) fn pthread_cond_broadcast(condition: *mut [u64; 6]) -> c_int;
    pub(crate) fn palisade_rwlock_rdlock(lock: *mut [u64; 7]) -> c_int;
    pub(crate) fn palisade_rwlock_tryrdlock(lock: *mut [u64; 7]) -> c_int;
    pub(crate) fn palisade_rwlock_wrlock(lock: *mut [u64; 7]) -> c_int;
    pub(crate) fn palisade_rwlock_trywrlock(lock: *mut [u64; 7]) -> c_int;
    pub(crate) fn palisade_rwlock_unlock(lock: *mut [u64; 7]) -> c_int;
    pub(crate) fn exit(code: c_int) -> !;
    pub(crate) fn abort() -> !;

    // What POSIX lacks.
    #[link_name = "std::thread::park"]
    pub(crate) fn park();
    #[link_name = "std::thread::park_timeout"]
    pub(crate) fn park_timeout();
    #[link_name = "std::thread::Thread::unpark"]
    pub(crate) fn unpark(handle: Handle);
    #[link_name = "std::thread::JoinHandle::is_finished"]
    pub(crate) fn is_finished(handle: Handle) -> c_int;

    // What is not followed. The name is the one that the user sees.
    #[link_name = "std::thread::Thread::name"]
    pub(crate) fn refuse_name() -> &'static str;
}
