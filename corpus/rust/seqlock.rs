// Sequence lock: a reader repeats if a writer was at work.
// Source: H.-J. Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012.
// broken_1: the reader does not look at the sequence number again.
// broken_2: the last store of the writer is relaxed, which PSO lets overtake the data.
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::thread;

static SEQUENCE: AtomicU32 = AtomicU32::new(0);
static LEFT: AtomicU32 = AtomicU32::new(0);
static RIGHT: AtomicU32 = AtomicU32::new(0);

fn write(value: u32) {
    let sequence = SEQUENCE.load(Ordering::Relaxed);
    SEQUENCE.store(sequence + 1, Ordering::Relaxed);
    fence(Ordering::Release);
    LEFT.store(value, Ordering::Relaxed);
    RIGHT.store(value, Ordering::Relaxed);
    let order = if cfg!(broken_2) { Ordering::Relaxed } else { Ordering::Release };
    SEQUENCE.store(sequence + 2, order);
}

fn read() -> (u32, u32) {
    loop {
        let before = SEQUENCE.load(Ordering::Acquire);
        let found = (LEFT.load(Ordering::Relaxed), RIGHT.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let after = SEQUENCE.load(Ordering::Relaxed);
        if before % 2 == 0 && (before == after || cfg!(broken_1)) {
            return found;
        }
    }
}

fn main() {
    let writer = thread::spawn(|| {
        write(1);
        write(2);
    });
    let (left, right) = read();
    assert_eq!(left, right);
    writer.join().unwrap();
}
