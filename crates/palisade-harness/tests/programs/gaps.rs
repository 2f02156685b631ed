//! Store buffering whose stores or loads are of many kinds. The first argument says which kind. With `-` before
//! it, every thread has a fence between its two accesses.

use std::arch::x86_64::{_mm_loadu_si128, _mm_set1_epi32, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256};
use std::arch::x86_64::{_mm256_extract_epi64, _mm256_set1_epi64x, _mm_extract_epi64};
use std::cell::{Cell, UnsafeCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};
use std::thread;

#[repr(align(64))]
struct Memory(UnsafeCell<[u64; 64]>);
unsafe impl Sync for Memory {}
static X: Memory = Memory(UnsafeCell::new([0; 64]));
static Y: Memory = Memory(UnsafeCell::new([0; 64]));

type Place = *mut u64;

#[derive(Clone, Copy)]
struct Large([u64; 16]);

#[derive(Clone, Copy, PartialEq)]
enum Choice {
    Nothing,
    Number(u64),
    Pair(u32, u16),
}

struct Writes(Place);
impl Drop for Writes {
    fn drop(&mut self) {
        unsafe { *self.0 = 1 }
    }
}

#[inline(never)]
fn make(value: u64) -> Large {
    Large([value; 16])
}

#[inline(never)]
fn take(large: Large) -> u64 {
    large.0[0]
}

#[inline(never)]
fn make_pair(value: u64) -> (u64, u64, u64) {
    (value, value, value)
}

#[target_feature(enable = "avx2")]
unsafe fn store_vector(to: Place) {
    unsafe { _mm256_storeu_si256(to.cast(), _mm256_set1_epi64x(1)) }
}

#[target_feature(enable = "avx2")]
unsafe fn load_vector(from: Place) -> u64 {
    unsafe { _mm256_extract_epi64::<0>(_mm256_loadu_si256(from.cast())) as u64 }
}

#[target_feature(enable = "sse4.1")]
unsafe fn load_half(from: Place) -> u64 {
    unsafe { _mm_extract_epi64::<0>(_mm_loadu_si128(from.cast())) as u64 }
}

fn has_vectors() -> bool {
    std::is_x86_feature_detected!("avx2")
}

fn slice<'a>(at: Place, length: usize) -> &'a mut [u64] {
    unsafe { std::slice::from_raw_parts_mut(at, length) }
}

fn bytes<'a>(at: Place, length: usize) -> &'a mut [u8] {
    unsafe { std::slice::from_raw_parts_mut(at.cast(), length) }
}

type Store = unsafe fn(Place);
type Load = unsafe fn(Place) -> u64;

const STORES: &[(&str, Store)] = &[
    ("store", |to| unsafe { *to = 1 }),
    ("store-relaxed", |to| unsafe { AtomicU64::from_ptr(to).store(1, Relaxed) }),
    ("store-release", |to| unsafe { AtomicU32::from_ptr(to.cast()).store(1, Release) }),
    ("store-flag", |to| unsafe { AtomicBool::from_ptr(to.cast()).store(true, Relaxed) }),
    ("store-pointer", |to| unsafe { AtomicPtr::from_ptr(to.cast()).store(to, Relaxed) }),
    ("store-volatile", |to| unsafe { to.write_volatile(1) }),
    ("store-unaligned", |to| unsafe { to.cast::<u8>().add(3).cast::<u64>().write_unaligned(u64::MAX) }),
    ("store-cell", |to| unsafe { (*to.cast::<Cell<u32>>()).set(1) }),
    ("store-u128", |to| unsafe { *to.cast::<u128>() = u128::MAX }),
    ("store-array", |to| unsafe { *to.cast::<[u64; 16]>() = black_box([1; 16]) }),
    ("store-returned", |to| unsafe { *to.cast() = make(1) }),
    ("store-tuple", |to| unsafe { *to.cast() = make_pair(1) }),
    ("store-enum", |to| unsafe { to.cast::<Choice>().write(black_box(Choice::Number(1))) }),
    ("store-copy", |to| unsafe { ptr::copy_nonoverlapping(&black_box([1u64; 16]), to.cast(), 1) }),
    ("store-move", |to| unsafe { ptr::copy(to.add(16), to, 8); *to.add(1) = 1 }),
    ("store-bytes", |to| unsafe { ptr::write_bytes(to, 1, black_box(9)) }),
    ("store-fill", |to| slice(to, black_box(12)).fill(1)),
    ("store-slice", |to| bytes(to, 100).copy_from_slice(&black_box([1; 100]))),
    ("store-loop", |to| slice(to, black_box(16)).iter_mut().for_each(|word| *word += 1)),
    ("store-swap", |to| { let mut one = black_box(Large([1; 16])); std::mem::swap(&mut one, unsafe { &mut *to.cast() }); black_box(&one); }),
    ("store-replace", |to| { black_box(std::mem::replace(unsafe { &mut *to }, 1)); }),
    ("store-uninit", |to| unsafe { (*to.cast::<MaybeUninit<Large>>()).write(make(1)); }),
    ("store-drop", |to| drop(black_box(Writes(to)))),
    ("store-call", |to| { let call: Box<dyn Fn()> = Box::new(move || unsafe { *to = 1 }); black_box(call)() }),
    ("store-float", |to| unsafe { *to.cast::<f64>() = black_box(1.5) }),
    ("store-char", |to| unsafe { *to.cast::<char>() = black_box('a') }),
    ("store-vector", |to| unsafe { if has_vectors() { store_vector(to) } else { *to = 1 } }),
    ("store-half", |to| unsafe { _mm_storeu_si128(to.cast(), _mm_set1_epi32(1)) }),
    ("store-sort", |to| { slice(to, 8)[7] = 1; slice(to, 8).sort_unstable_by(|a, b| b.cmp(a)) }),
    ("store-rotate", |to| { slice(to, 8)[0] = 1; slice(to, 8).rotate_left(black_box(3)) }),
    ("store-reverse", |to| { slice(to, 8)[0] = 1; slice(to, 8).reverse() }),
];

const LOADS: &[(&str, Load)] = &[
    ("load", |from| unsafe { *from }),
    ("load-relaxed", |from| unsafe { AtomicU64::from_ptr(from).load(Relaxed) }),
    ("load-acquire", |from| unsafe { AtomicU32::from_ptr(from.cast()).load(Acquire).into() }),
    ("load-volatile", |from| unsafe { from.read_volatile() }),
    ("load-unaligned", |from| unsafe { from.cast::<u8>().add(3).cast::<u64>().read_unaligned() }),
    ("load-u128", |from| unsafe { *from.cast::<u128>() as u64 }),
    ("load-array", |from| unsafe { black_box(*from.cast::<[u64; 16]>())[0] }),
    ("load-passed", |from| unsafe { take(*from.cast()) }),
    ("load-read", |from| unsafe { ptr::read(from.cast::<Large>()).0[0] }),
    ("load-enum", |from| unsafe { (*from.cast::<Choice>() == Choice::Pair(1, 2)) as u64 + (*from.cast::<Choice>() != Choice::Nothing) as u64 }),
    ("load-copy", |from| { let mut to = [0u64; 16]; unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), black_box(16)) }; black_box(to)[0] }),
    ("load-sum", |from| slice(from, black_box(16)).iter().sum()),
    ("load-equal", |from| (bytes(from, black_box(40)) == black_box([1; 40])) as u64),
    ("load-order", |from| (*bytes(from, black_box(40)) < *black_box(&[1u8; 40][..])) as u64),
    ("load-find", |from| slice(from, black_box(12)).iter().position(|word| *word > 5).unwrap_or(0) as u64),
    ("load-clone", |from| slice(from, black_box(12)).to_vec()[3]),
    ("load-call", |from| { let call: Box<dyn Fn() -> u64> = Box::new(move || unsafe { *from }); black_box(call)() }),
    ("load-vector", |from| unsafe { if has_vectors() { load_vector(from) } else { *from } }),
    ("load-half", |from| unsafe { if has_vectors() { load_half(from) } else { *from } }),
    ("load-float", |from| unsafe { *from.cast::<f32>() as u64 }),
    ("load-text", |from| std::str::from_utf8(bytes(from, 20)).is_ok() as u64),
    ("load-shown", |from| unsafe { (*from).to_string().len() as u64 }),
    ("load-debugged", |from| format!("{:?}", slice(from, 3)).len() as u64),
    ("load-hash", |from| { let mut hasher = DefaultHasher::new(); bytes(from, 20).hash(&mut hasher); hasher.finish() }),
    ("load-joined", |from| black_box([&*bytes(from, 20), b"x"].concat()).len() as u64),
    ("load-pushed", |from| { let mut all = black_box(Vec::new()); all.extend_from_slice(bytes(from, 20)); all.len() as u64 }),
];

fn run(store: Store, load: Load, with_fence: bool) {
    let side = move |own: &'static Memory, other: &'static Memory| {
        unsafe { store(own.0.get().cast()) };
        if with_fence {
            fence(SeqCst);
        }
        black_box(unsafe { load(other.0.get().cast()) });
    };
    let thread = thread::spawn(move || side(&X, &Y));
    side(&Y, &X);
    thread.join().unwrap();
}

fn main() {
    let argument = std::env::args().nth(1).unwrap();
    if argument == "list" {
        STORES.iter().map(|(name, _)| name).chain(LOADS.iter().map(|(name, _)| name)).for_each(|name| println!("{name}"));
        return;
    }
    let name = argument.trim_start_matches('-');
    let store = STORES.iter().find(|(known, _)| *known == name).map_or(STORES[1].1, |(_, store)| *store);
    let load = LOADS.iter().find(|(known, _)| *known == name).map_or(LOADS[1].1, |(_, load)| *load);
    run(store, load, argument.starts_with('-'));
}
