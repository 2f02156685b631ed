//! Three threads and a mutex. Code that was compiled without Palisade takes it after a wait.

use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let count = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let count = count.clone();
            thread::spawn(move || *count.lock().expect("no thread panics") += 1)
        })
        .collect();
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    assert_eq!(*count.lock().expect("no thread panics"), 3);
}
