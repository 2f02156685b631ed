//! Store buffering through what Rust's standard library offers: shared memory of many kinds, and operations
//! between the two accesses that order them or do not. The first argument says which. With `-` before it, every
//! thread has a fence between its two accesses.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, fence};
use std::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, mpsc};
use std::thread;

static X: AtomicU32 = AtomicU32::new(0);
static Y: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static MINE: AtomicU32 = const { AtomicU32::new(0) };
    static LAZY: Box<AtomicU32> = Box::new(AtomicU32::new(0));
    static COUNT: Cell<u32> = const { Cell::new(0) };
}

type Between = Arc<dyn Fn() + Send + Sync>;

fn side(own: &AtomicU32, other: &AtomicU32, between: &Between) {
    own.store(1, Relaxed);
    between();
    black_box(other.load(Relaxed));
}

/// Two threads with something between their accesses.
fn spawned(between: Between) {
    let again = between.clone();
    let thread = thread::spawn(move || side(&X, &Y, &again));
    side(&Y, &X, &between);
    thread.join().unwrap();
}

/// The variables are on the stack of the first thread.
fn scoped(between: Between) {
    let (x, y) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| side(&x, &y, &between));
        scope.spawn(|| side(&y, &x, &between));
    });
}

/// The variables are on the heap and are freed by the last owner.
fn shared(between: Between) {
    let both = Arc::new((AtomicU32::new(0), Box::new(AtomicU32::new(0))));
    let threads = [true, false].map(|first| {
        let (both, between) = (both.clone(), between.clone());
        thread::spawn(move || {
            let (x, y) = (&both.0, &*both.1);
            if first { side(x, y, &between) } else { side(y, x, &between) }
        })
    });
    drop(both);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Each variable belongs to a thread, and the other thread finds it by a pointer.
fn local(between: Between, lazy: bool) {
    static FOUND: [AtomicPtr<AtomicU32>; 2] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 2];
    static READY: AtomicUsize = AtomicUsize::new(0);
    let part = move |me: usize, between: Between| {
        let act = |mine: &AtomicU32| {
            FOUND[me].store(std::ptr::from_ref(mine).cast_mut(), SeqCst);
            READY.fetch_add(1, SeqCst);
            while READY.load(SeqCst) < 2 {
                thread::yield_now();
            }
            let other = unsafe { &*FOUND[1 - me].load(SeqCst) };
            side(mine, other, &between);
            COUNT.set(COUNT.get() + 1);
            // The memory of the thread has to last.
            READY.fetch_add(1, SeqCst);
            while READY.load(SeqCst) < 4 {
                thread::yield_now();
            }
        };
        if lazy { LAZY.with(|mine| act(mine)) } else { MINE.with(act) }
    };
    let again = between.clone();
    let thread = thread::spawn(move || part(1, again));
    part(0, between);
    thread.join().unwrap();
}

fn main() {
    let argument = std::env::args().nth(1).unwrap();
    let with_fence = argument.starts_with('-');
    let nothing: Between = if with_fence { Arc::new(|| fence(SeqCst)) } else { Arc::new(|| ()) };
    let lock = Arc::new(Mutex::new(0));
    let shelf = Arc::new(RwLock::new(0));
    let counted = Arc::new(());
    match argument.trim_start_matches('-') {
        "spawned" => spawned(nothing),
        "scoped" => scoped(nothing),
        "shared" => shared(nothing),
        "local" => local(nothing, false),
        "lazy" => local(nothing, true),
        // These order nothing.
        "compiler-fence" => spawned(Arc::new(|| std::sync::atomic::compiler_fence(SeqCst))),
        "acquire" => spawned(Arc::new(|| fence(std::sync::atomic::Ordering::AcqRel))),
        "known" => {
            static KNOWN: OnceLock<u32> = OnceLock::new();
            KNOWN.set(1).unwrap();
            spawned(Arc::new(|| _ = black_box(KNOWN.get())));
        }
        "forced" => {
            static FORCED: LazyLock<u32> = LazyLock::new(|| 1);
            black_box(*FORCED);
            spawned(Arc::new(|| _ = black_box(*FORCED)));
        }
        "once" => {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| ());
            spawned(Arc::new(|| ONCE.call_once(|| ())));
        }
        // These are locked instructions.
        "counts" => spawned(Arc::new(move || drop(black_box(counted.clone())))),
        "lock" => spawned(Arc::new(move || *lock.lock().unwrap() += 1)),
        "try-lock" => spawned(Arc::new(move || drop(lock.try_lock()))),
        "reader" => spawned(Arc::new(move || _ = black_box(*shelf.read().unwrap()))),
        "writer" => spawned(Arc::new(move || *shelf.write().unwrap() += 1)),
        "sends" => {
            let (sender, receiver) = mpsc::channel();
            spawned(Arc::new(move || sender.send(1).unwrap()));
            drop(receiver);
        }
        "waits" => {
            let barrier = Barrier::new(2);
            spawned(Arc::new(move || _ = barrier.wait()));
        }
        "swaps" => {
            static SWAPPED: AtomicU32 = AtomicU32::new(0);
            spawned(Arc::new(|| _ = black_box(SWAPPED.swap(1, Relaxed))));
        }
        // No violation, and nothing to report: data is handed over.
        "channel" => {
            let (sender, receiver) = mpsc::channel::<Vec<u64>>();
            let thread = thread::spawn(move || (0..2).for_each(|i| sender.send(vec![i; 3]).unwrap()));
            assert_eq!(receiver.iter().map(|list| list.iter().sum::<u64>()).sum::<u64>(), 3);
            thread.join().unwrap();
        }
        "rendezvous" => {
            let (sender, receiver) = mpsc::sync_channel::<Box<u64>>(0);
            let thread = thread::spawn(move || sender.send(Box::new(7)).unwrap());
            assert_eq!(*receiver.recv().unwrap(), 7);
            thread.join().unwrap();
        }
        "condition" => {
            let pair = Arc::new((Mutex::new(None), Condvar::new()));
            let other = pair.clone();
            let thread = thread::spawn(move || {
                *other.0.lock().unwrap() = Some(vec![1, 2]);
                other.1.notify_one();
            });
            let list = pair.1.wait_while(pair.0.lock().unwrap(), |list| list.is_none()).unwrap().take();
            assert_eq!(list, Some(vec![1, 2]));
            thread.join().unwrap();
        }
        "parked" => {
            static GIVEN: AtomicU32 = AtomicU32::new(0);
            let waiting = thread::current();
            let thread = thread::spawn(move || {
                GIVEN.store(1, SeqCst);
                waiting.unpark();
            });
            while GIVEN.load(SeqCst) == 0 {
                thread::park();
            }
            thread.join().unwrap();
        }
        "first" => {
            static FIRST: OnceLock<Vec<u64>> = OnceLock::new();
            let thread = thread::spawn(|| FIRST.get_or_init(|| vec![1, 2]).len());
            assert_eq!(FIRST.get_or_init(|| vec![1, 2]).len(), 2);
            assert_eq!(thread.join().unwrap(), 2);
        }
        other => panic!("{other}"),
    }
}
