// Lock-free stack: two threads push, then the first one pops everything.
// Source: R. K. Treiber, "Systems programming: coping with parallelism", IBM RJ 5118, 1986.
// broken_1: the top is replaced without looking whether it is still the same.
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

struct Node {
    value: u32,
    next: *mut Node,
}

static TOP: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

fn push(value: u32) {
    let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
    loop {
        let top = TOP.load(Ordering::Acquire);
        unsafe { (*node).next = top };
        if cfg!(broken_1) {
            TOP.store(node, Ordering::Release);
            return;
        }
        if TOP.compare_exchange(top, node, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Nobody else pops, so a node that was read is still there.
fn pop() -> Option<u32> {
    loop {
        let top = TOP.load(Ordering::Acquire);
        if top.is_null() {
            return None;
        }
        let next = unsafe { (*top).next };
        if TOP.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let node = unsafe { Box::from_raw(top) };
            return Some(node.value);
        }
    }
}

fn main() {
    let other = thread::spawn(|| push(1));
    push(2);
    other.join().unwrap();
    let mut sum = 0;
    while let Some(value) = pop() {
        sum += value;
    }
    assert_eq!(sum, 3);
}
