//! Tables whose order depends on random numbers from the operating system.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let sum = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let sum = sum.clone();
            thread::spawn(move || {
                let table: HashMap<usize, usize> = (0..8).map(|key| (key, key * number)).collect();
                let first = table.iter().next().map_or(0, |(key, _)| *key);
                // The number of steps depends on the table.
                for _ in 0..first % 3 {
                    *sum.lock().expect("no thread panics") += 1;
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no thread panics");
    }
}
