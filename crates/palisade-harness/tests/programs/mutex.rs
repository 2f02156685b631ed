//! A contended mutex of Rust's standard library. Its precompiled slow path waits in the kernel.

use std::sync::Mutex;
use std::thread;

fn main() {
    let count = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| *count.lock().unwrap() += 1);
        }
        *count.lock().unwrap() += 1;
    });
    assert_eq!(*count.lock().unwrap(), 3);
}
