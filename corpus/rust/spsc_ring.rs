// Ring buffer for one producer and one consumer.
// Source: L. Lamport, "Specifying concurrent program modules", ACM TOPLAS 1983.
// broken_1: an element is announced before it is written.
// broken_2: an element is announced by a relaxed store, which PSO lets overtake the element.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

const SIZE: usize = 2;

struct Ring {
    slots: [AtomicUsize; SIZE],
    /// How many elements were removed.
    head: AtomicUsize,
    /// How many elements were added.
    tail: AtomicUsize,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            slots: [AtomicUsize::new(0), AtomicUsize::new(0)],
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
        }
    }

    fn push(&self, element: usize) -> bool {
        let tail = self.tail.load(Ordering::Relaxed);
        if tail - self.head.load(Ordering::Acquire) == SIZE {
            return false;
        }
        if cfg!(broken_1) {
            self.tail.store(tail + 1, Ordering::Release);
        }
        self.slots[tail % SIZE].store(element, Ordering::Relaxed);
        if cfg!(broken_2) {
            self.tail.store(tail + 1, Ordering::Relaxed);
        } else if !cfg!(broken_1) {
            self.tail.store(tail + 1, Ordering::Release);
        }
        true
    }

    fn pop(&self) -> Option<usize> {
        let head = self.head.load(Ordering::Relaxed);
        if head == self.tail.load(Ordering::Acquire) {
            return None;
        }
        let element = self.slots[head % SIZE].load(Ordering::Relaxed);
        self.head.store(head + 1, Ordering::Release);
        Some(element)
    }
}

fn main() {
    let ring = Arc::new(Ring::new());
    let producer = {
        let ring = Arc::clone(&ring);
        thread::spawn(move || {
            for element in 1..=3 {
                while !ring.push(element) {}
            }
        })
    };
    for expected in 1..=3 {
        let element = loop {
            if let Some(element) = ring.pop() {
                break element;
            }
        };
        assert_eq!(element, expected);
    }
    producer.join().unwrap();
}
