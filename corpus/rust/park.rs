// A thread that sleeps until there is something for it.
// Source: the documentation of `std::thread::park`, which may return for no reason.
// broken_1: it is woken before the flag is set, and not again.
// broken_2: it takes being woken for a sign that the value is there.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

static READY: AtomicBool = AtomicBool::new(false);
static VALUE: AtomicU32 = AtomicU32::new(0);

fn consume() -> u32 {
    if cfg!(broken_2) {
        thread::park();
    } else {
        while !READY.load(Ordering::Acquire) {
            thread::park();
        }
    }
    VALUE.load(Ordering::Relaxed)
}

fn main() {
    let consumer = thread::spawn(consume);
    if cfg!(broken_1) {
        consumer.thread().unpark();
    }
    VALUE.store(7, Ordering::Relaxed);
    READY.store(true, Ordering::Release);
    if !cfg!(broken_1) {
        consumer.thread().unpark();
    }
    assert_eq!(consumer.join().unwrap(), 7);
}
