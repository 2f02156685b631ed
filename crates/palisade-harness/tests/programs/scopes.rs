//! Threads in `thread::scope`: what they wrote may be read after it, and what they share is shared.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::thread;

struct Shared(UnsafeCell<u32>);

unsafe impl Sync for Shared {}

impl Shared {
    fn add(&self) {
        unsafe { *self.0.get() += 1 };
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("parts") => {
            let mut list = [0; 4];
            thread::scope(|scope| {
                let (one, two) = list.split_at_mut(2);
                scope.spawn(move || one[0] = 1);
                scope.spawn(move || two[0] = 2);
            });
            assert_eq!(black_box(list[0] + list[2]), 3);
        }
        Some("nested") => {
            let mut counts = [0; 2];
            let [outer, inner] = &mut counts;
            thread::scope(|scope| {
                scope.spawn(move || {
                    *outer += 1;
                    thread::scope(|scope| _ = scope.spawn(|| *inner += 1));
                    *outer += *inner;
                });
            });
            assert_eq!(black_box(counts), [2, 1]);
        }
        Some("panics") => {
            let mut count = 0;
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                thread::scope(|scope| {
                    scope.spawn(|| {
                        count = 1;
                        panic!("in a thread")
                    });
                });
            }));
            assert!(result.is_err());
            assert_eq!(black_box(count), 1);
        }
        // These race.
        Some("threads") => {
            let shared = Shared(UnsafeCell::new(0));
            thread::scope(|scope| {
                scope.spawn(|| shared.add());
                scope.spawn(|| shared.add());
            });
        }
        Some("inside") => {
            let shared = Shared(UnsafeCell::new(0));
            thread::scope(|scope| {
                scope.spawn(|| shared.add());
                black_box(unsafe { *shared.0.get() });
            });
        }
        other => panic!("{other:?}"),
    }
}
