//! Store buffering in Rust.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn main() {
    let order = if std::env::args().len() > 1 { Ordering::SeqCst } else { Ordering::Release };
    let (x, y) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (other_x, other_y) = (x.clone(), y.clone());
    let other = thread::spawn(move || {
        other_x.store(1, order);
        other_y.load(Ordering::Acquire)
    });
    y.store(1, order);
    let seen = x.load(Ordering::Acquire);
    assert!(seen + other.join().unwrap() > 0);
}
