// Two threads add to a sum under a mutex and return what they added.
// Source: E. W. Dijkstra, "Cooperating sequential processes", 1965.
// broken_1: the sum is read and written under two locks of the mutex.
// broken_2: a thread locks the mutex that it holds.
use std::sync::{Arc, Mutex};
use std::thread;

fn add(sum: &Mutex<u32>, what: u32) -> u32 {
    #[cfg(not(any(broken_1, broken_2)))]
    {
        *sum.lock().unwrap() += what;
    }
    #[cfg(broken_1)]
    {
        let old = *sum.lock().unwrap();
        *sum.lock().unwrap() = old + what;
    }
    #[cfg(broken_2)]
    {
        let mut guard = sum.lock().unwrap();
        *guard = *sum.lock().unwrap() + what;
    }
    what
}

fn main() {
    let sum = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (1..=2)
        .map(|what| {
            let sum = Arc::clone(&sum);
            thread::spawn(move || add(&sum, what))
        })
        .collect();
    let added: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(*sum.lock().unwrap(), added);
}
