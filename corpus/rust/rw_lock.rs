// A pair under a reader-writer lock: readers see both halves or none of a change.
// Source: P. J. Courtois, F. Heymans, D. L. Parnas, "Concurrent control with readers and writers", CACM 1971.
// broken_1: the reader takes the lock for each half.
use std::sync::RwLock;
use std::thread;

static PAIR: RwLock<(u32, u32)> = RwLock::new((0, 0));

fn read() -> (u32, u32) {
    if cfg!(broken_1) {
        let left = PAIR.read().unwrap().0;
        let right = PAIR.read().unwrap().1;
        return (left, right);
    }
    *PAIR.read().unwrap()
}

fn main() {
    let writer = thread::spawn(|| {
        let mut pair = PAIR.write().unwrap();
        pair.0 = 1;
        pair.1 = 1;
    });
    let (left, right) = read();
    assert_eq!(left, right);
    writer.join().unwrap();
}
