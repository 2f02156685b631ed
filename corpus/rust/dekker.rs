// Two threads announce themselves and enter only if the other has not.
// Source: E. W. Dijkstra, "Cooperating sequential processes", 1965.
// broken_1: no fence between the announcement and the look.
// broken_2: a fence that only orders loads.
use std::sync::atomic::{fence, AtomicBool, AtomicU32, Ordering};
use std::thread;

static WANTS: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
static INSIDE: AtomicU32 = AtomicU32::new(0);

fn enter(me: usize) {
    WANTS[me].store(true, Ordering::Release);
    #[cfg(not(any(broken_1, broken_2)))]
    fence(Ordering::SeqCst);
    #[cfg(broken_2)]
    fence(Ordering::Acquire);
    if !WANTS[1 - me].load(Ordering::Acquire) {
        assert_eq!(INSIDE.fetch_add(1, Ordering::Relaxed), 0, "both are inside");
        INSIDE.fetch_sub(1, Ordering::Relaxed);
    }
}

fn main() {
    let other = thread::spawn(|| enter(0));
    enter(1);
    other.join().unwrap();
}
