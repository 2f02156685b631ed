//! Inline assembly writes to memory that threads share.

use std::arch::asm;
use std::cell::UnsafeCell;

struct Shared(UnsafeCell<u32>);
unsafe impl Sync for Shared {}
static SHARED: Shared = Shared(UnsafeCell::new(0));

fn write() {
    unsafe { asm!("mov dword ptr [{}], 1", in(reg) SHARED.0.get()) }
}

fn main() {
    // What the rewriter knows, or what does nothing.
    unsafe {
        asm!("");
        asm!("pause", "mfence");
    }
    std::hint::black_box(1);
    if std::env::args().count() > 1 {
        let other = std::thread::spawn(write);
        write();
        other.join().unwrap();
    }
}
