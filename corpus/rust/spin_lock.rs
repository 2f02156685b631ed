// Test-and-set spin lock in a static variable, around a plain counter.
// Source: M. Herlihy, N. Shavit, "The Art of Multiprocessor Programming", chapter 7.
// broken_1: the lock is read and taken in two steps.
// broken_2: the lock is not taken at all.
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

struct SpinLock {
    held: AtomicBool,
    value: UnsafeCell<u32>,
}

unsafe impl Sync for SpinLock {}

impl SpinLock {
    const fn new(value: u32) -> SpinLock {
        SpinLock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[cfg(not(any(broken_1, broken_2)))]
    fn lock(&self) {
        while self.held.swap(true, Ordering::Acquire) {
            spin_loop();
        }
    }

    #[cfg(broken_1)]
    fn lock(&self) {
        while self.held.load(Ordering::Acquire) {
            spin_loop();
        }
        self.held.store(true, Ordering::Relaxed);
    }

    #[cfg(broken_2)]
    fn lock(&self) {
        spin_loop();
    }

    fn unlock(&self) {
        self.held.store(false, Ordering::Release);
    }

    fn with<T>(&self, change: impl FnOnce(&mut u32) -> T) -> T {
        self.lock();
        let result = change(unsafe { &mut *self.value.get() });
        self.unlock();
        result
    }
}

static COUNTER: SpinLock = SpinLock::new(0);

fn count() {
    COUNTER.with(|value| *value += 1);
}

fn main() {
    let first = thread::spawn(count);
    let second = thread::spawn(count);
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!(COUNTER.with(|value| *value), 2);
}
