// Ticket lock: threads draw numbers and are served in that order.
// Source: J. M. Mellor-Crummey, M. L. Scott, "Algorithms for scalable synchronization on shared-memory
// multiprocessors", ACM TOCS 1991.
// broken_1: a ticket is drawn in two steps, so two threads can have the same.
// broken_2: the next thread is served by a relaxed store, which PSO lets overtake the counter.
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

static NEXT: AtomicU32 = AtomicU32::new(0);
static SERVED: AtomicU32 = AtomicU32::new(0);
static COUNTER: AtomicU32 = AtomicU32::new(0);

#[cfg(not(broken_1))]
fn draw() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(broken_1)]
fn draw() -> u32 {
    let ticket = NEXT.load(Ordering::Relaxed);
    NEXT.store(ticket + 1, Ordering::Relaxed);
    ticket
}

fn count() {
    let ticket = draw();
    while SERVED.load(Ordering::Acquire) != ticket {
        thread::yield_now();
    }
    let value = COUNTER.load(Ordering::Relaxed);
    COUNTER.store(value + 1, Ordering::Relaxed);
    let order = if cfg!(broken_2) { Ordering::Relaxed } else { Ordering::Release };
    SERVED.store(ticket + 1, order);
}

fn main() {
    let threads = [thread::spawn(count), thread::spawn(count)];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(COUNTER.load(Ordering::Relaxed), 2);
}
