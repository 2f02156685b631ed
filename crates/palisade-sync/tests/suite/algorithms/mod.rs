//! Concurrent algorithms from the literature, each with a small test. They are the same as the C programs in
//! `bench/programs/run`, which name the sources.
//!
//! Without fences, the tests have only the fences of the published algorithms: stores are relaxed, and loads
//! and read-modify-writes acquire. With fences, stores that others wait for are releases, and there is a full
//! fence where a load must not overtake a store. Nodes are numbers, and 0 means no node. Nodes are never
//! reused, except in the stack with hazard pointers.

mod deques;
mod lists;
mod locks;
mod misc;
mod queues;

use palisade_sync::hint::spin_loop;
use palisade_sync::sync::Arc;
use palisade_sync::sync::atomic::{AtomicUsize, Ordering, fence};
use palisade_sync::thread;

/// The size of a test, and whether it has fences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// At most 3; some algorithms are for 2 threads only.
    pub threads: usize,
    /// The number of operations of each thread.
    pub ops: usize,
    /// Whether it has fences.
    pub fenced: bool,
}

impl Variant {
    /// The order of stores that others wait for.
    fn publish(self) -> Ordering {
        if self.fenced { Ordering::Release } else { Ordering::Relaxed }
    }

    /// The order of read-modify-writes.
    fn modify(self) -> Ordering {
        if self.fenced { Ordering::AcqRel } else { Ordering::Acquire }
    }

    /// A full fence, if the variant has fences.
    #[track_caller]
    fn fence(self) {
        if self.fenced {
            fence(Ordering::SeqCst);
        }
    }

    /// Runs the code in all threads.
    fn run(self, code: impl Fn(usize) + Send + Sync + 'static) {
        let code = Arc::new(code);
        let threads: Vec<_> = (0..self.threads)
            .map(|me| {
                let code = code.clone();
                thread::spawn(move || code(me))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    }
}

/// A word of memory.
#[derive(Debug, Default)]
struct Word(AtomicUsize);

impl Word {
    fn new(value: usize) -> Word {
        Word(AtomicUsize::new(value))
    }

    #[track_caller]
    fn load(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    #[track_caller]
    fn store(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[track_caller]
    fn publish(&self, value: usize, variant: Variant) {
        self.0.store(value, variant.publish());
    }

    #[track_caller]
    fn cas(&self, old: usize, new: usize, variant: Variant) -> bool {
        self.0.compare_exchange(old, new, variant.modify(), Ordering::Acquire).is_ok()
    }

    #[track_caller]
    fn swap(&self, value: usize, variant: Variant) -> usize {
        self.0.swap(value, variant.modify())
    }

    #[track_caller]
    fn add(&self, value: usize, variant: Variant) -> usize {
        self.0.fetch_add(value, variant.modify())
    }
}

fn words(count: usize) -> Vec<Word> {
    (0..count).map(|_| Word::default()).collect()
}

/// A lock that is taken by an exchange and released by a plain store, as is usual on x86.
#[derive(Debug, Default)]
struct Spinlock(Word);

impl Spinlock {
    fn acquire(&self, variant: Variant) {
        while self.0.swap(1, variant) == 1 {
            while self.0.load() == 1 {
                spin_loop();
            }
        }
    }

    fn release(&self, variant: Variant) {
        self.0.publish(0, variant);
    }
}

/// A test of an algorithm.
pub type Program = fn(Variant);

/// The benchmarks of Burnim, Sen and Stergiou, TACAS 2011, Table 1.
pub const SEVEN: [(&str, Program); 7] = [
    ("dekker", locks::dekker),
    ("bakery", locks::bakery),
    ("msn", queues::msn),
    ("ms2", queues::ms2),
    ("harris", lists::harris),
    ("lazylist", lists::lazylist),
    ("snark", deques::snark),
];

/// Other well-known algorithms.
pub const MORE: [(&str, Program); 7] = [
    ("chase_lev", deques::chase_lev),
    ("seqlock", misc::seqlock),
    ("treiber", misc::treiber),
    ("spsc", queues::spsc),
    ("ticket", locks::ticket),
    ("mcs", locks::mcs),
    ("dcl", misc::double_checked),
];
