// Threads of a scope borrow from the function that starts them.
// Source: M. E. Conway, "A multiprocessor system design", AFIPS 1963.
// broken_1: the threads add in two steps.
// broken_2: the sum is looked at before the threads have ended.
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

fn add(sum: &AtomicU32, what: u32) {
    if cfg!(broken_1) {
        let old = sum.load(Ordering::SeqCst);
        sum.store(old + what, Ordering::SeqCst);
    } else {
        sum.fetch_add(what, Ordering::Relaxed);
    }
}

fn main() {
    let sum = AtomicU32::new(0);
    let numbers = [1, 2];
    thread::scope(|scope| {
        for number in &numbers {
            let sum = &sum;
            scope.spawn(move || add(sum, *number));
        }
        if cfg!(broken_2) {
            assert_eq!(sum.load(Ordering::Relaxed), 3);
        }
    });
    assert_eq!(sum.load(Ordering::Relaxed), 3);
}
