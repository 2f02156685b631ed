// The spin lock with a guard, in an Arc that threads share.
// Source: M. Herlihy, N. Shavit, "The Art of Multiprocessor Programming", chapter 7.
// broken_1: the guard is dropped before the value is used.
// broken_2: the lock is released by a relaxed store before the value is written.
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

unsafe impl<T: Send> Sync for Lock<T> {}

struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Lock<T> {
    fn new(value: T) -> Lock<T> {
        Lock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    fn lock(&self) -> Guard<'_, T> {
        while self.held.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::hint::spin_loop();
        }
        #[cfg(broken_2)]
        self.held.store(false, Ordering::Relaxed);
        Guard { lock: self }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
    }
}

fn main() {
    let lock = Arc::new(Lock::new(0u32));
    let other = Arc::clone(&lock);
    let thread = thread::spawn(move || *other.lock() += 1);
    #[cfg(not(broken_1))]
    {
        *lock.lock() += 1;
    }
    #[cfg(broken_1)]
    {
        let value: *mut u32 = {
            let mut guard = lock.lock();
            &mut *guard
        };
        unsafe { *value += 1 };
    }
    thread.join().unwrap();
    assert_eq!(*lock.lock(), 2);
}
