//! Accesses for which LLVM's pass makes no call: a vector of 32 bytes, a large struct.

use std::arch::x86_64::{__m256i, _mm256_set1_epi64x, _mm256_storeu_si256};
use std::cell::UnsafeCell;

#[repr(align(32))]
struct Shared(UnsafeCell<[u64; 32]>);
unsafe impl Sync for Shared {}
static SHARED: Shared = Shared(UnsafeCell::new([0; 32]));

#[derive(Clone, Copy)]
struct Large([u64; 32]);

#[target_feature(enable = "avx")]
unsafe fn write_vector() {
    unsafe { _mm256_storeu_si256(SHARED.0.get().cast::<__m256i>(), _mm256_set1_epi64x(7)) }
}

#[inline(never)]
fn made(from: u64) -> Large {
    Large([from; 32])
}

#[inline(never)]
unsafe fn write_large(to: *mut Large) {
    unsafe { *to = made(3) }
}

fn write(what: &str) {
    unsafe {
        match what {
            // Machines without these vectors have nothing to miss.
            "vector" if std::is_x86_feature_detected!("avx") => write_vector(),
            _ => write_large(SHARED.0.get().cast()),
        }
    }
}

fn main() {
    let what = std::env::args().nth(1).unwrap();
    // Somebody else may read it.
    std::hint::black_box(SHARED.0.get());
    let again = what.clone();
    let other = std::thread::spawn(move || write(&again));
    write(&what);
    other.join().unwrap();
    std::hint::black_box(unsafe { *SHARED.0.get() });
}
