// Message passing: data, then a flag.
// Source: P. Sewell et al., "x86-TSO: a rigorous and usable programmer's model", CACM 2010.
// broken_1: the flag comes first.
// broken_2: the flag is stored by a relaxed store, which PSO lets overtake the data.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

static DATA: AtomicU64 = AtomicU64::new(0);
static READY: AtomicBool = AtomicBool::new(false);

fn main() {
    let sender = thread::spawn(|| {
        if cfg!(broken_1) {
            READY.store(true, Ordering::Release);
        }
        DATA.store(42, Ordering::Relaxed);
        let order = if cfg!(broken_2) { Ordering::Relaxed } else { Ordering::Release };
        READY.store(true, order);
    });
    while !READY.load(Ordering::Acquire) {
        std::hint::spin_loop();
    }
    assert_eq!(DATA.load(Ordering::Relaxed), 42);
    sender.join().unwrap();
}
