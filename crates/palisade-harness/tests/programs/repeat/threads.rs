//! Two threads with a channel, a lock and thread-local storage.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

thread_local! {
    static MINE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn main() {
    let total = Arc::new(Mutex::new(Vec::new()));
    let turns = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (1..3)
        .map(|number| {
            let (total, turns) = (total.clone(), turns.clone());
            thread::spawn(move || {
                MINE.with(|mine| mine.borrow_mut().push(number));
                turns.fetch_add(1, Ordering::Relaxed);
                let mine = MINE.with(|mine| mine.take());
                total.lock().expect("no thread panics").extend(mine);
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    assert_eq!(turns.load(Ordering::Relaxed), 2);
    assert_eq!(total.lock().expect("no thread panics").iter().sum::<usize>(), 3);
}
