// What Rust has: atomics, threads, closures, enums, traits, panics, thread-local variables.
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::thread;

static READY: AtomicBool = AtomicBool::new(false);
static HEAD: AtomicPtr<Node> = AtomicPtr::new(std::ptr::null_mut());
thread_local!(static OWN: Cell<u32> = const { Cell::new(3) });

struct Node {
    value: u32,
    next: *mut Node,
}

enum Command {
    Push(u32),
    Wait { times: usize },
    Stop,
}

trait Run {
    fn run(&self, total: &AtomicUsize) -> Option<u64>;
}

impl Run for Command {
    fn run(&self, total: &AtomicUsize) -> Option<u64> {
        match self {
            Command::Push(value) => {
                push(*value);
                Some(u64::from(*value))
            }
            Command::Wait { times } => {
                for _ in 0..*times {
                    total.fetch_add(1, Ordering::AcqRel);
                    std::hint::spin_loop();
                }
                None
            }
            Command::Stop => None,
        }
    }
}

fn push(value: u32) {
    let node = Box::into_raw(Box::new(Node { value, next: std::ptr::null_mut() }));
    loop {
        let head = HEAD.load(Ordering::Relaxed);
        unsafe { (*node).next = head };
        if HEAD.compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed).is_ok() {
            break;
        }
    }
}

fn main() {
    let total = Arc::new(AtomicUsize::new(0));
    let queue = Mutex::new(VecDeque::from([1_u128, 2]));
    let other = Arc::clone(&total);
    let worker = thread::spawn(move || {
        let commands: Vec<Box<dyn Run + Send>> =
            vec![Box::new(Command::Push(5)), Box::new(Command::Wait { times: 3 }), Box::new(Command::Stop)];
        commands.iter().filter_map(|command| command.run(&other)).sum::<u64>()
    });
    READY.store(true, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    assert_eq!(worker.join().unwrap(), 5);
    OWN.with(|own| own.set(own.get().wrapping_mul(7)));
    let head = HEAD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    let value = unsafe { (*head).value };
    println!("{value} {:?} {:.1}", queue.lock().unwrap().pop_front(), f64::from(value) * 1.5);
}
