// A value is made once, by whoever needs it first.
// Source: D. C. Schmidt, T. Harrison, "Double-checked locking", Pattern Languages of Program Design 3, 1997.
// broken_1: it is made by hand, without a lock.
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::thread;

static MADE: AtomicU32 = AtomicU32::new(0);
static VALUE: OnceLock<u32> = OnceLock::new();

fn make() -> u32 {
    MADE.fetch_add(1, Ordering::Relaxed);
    5
}

fn value() -> u32 {
    if cfg!(broken_1) {
        if let Some(value) = VALUE.get() {
            return *value;
        }
        let _ = VALUE.set(make());
    }
    *VALUE.get_or_init(make)
}

fn main() {
    let other = thread::spawn(value);
    assert_eq!(value(), 5);
    assert_eq!(other.join().unwrap(), 5);
    assert_eq!(MADE.load(Ordering::Relaxed), 1, "it is made once");
}
