//! Queues: the non-blocking and the two-lock queue of Michael and Scott, and a ring for one producer and one
//! consumer.

use super::{Spinlock, Variant, Word, words};
use palisade_sync::hint::spin_loop;

/// Threads enqueue and dequeue in turn; nothing is dequeued twice.
fn exercise<Q: Send + Sync + 'static>(
    variant: Variant,
    queue: Q,
    enqueue: impl Fn(&Q, usize) + Send + Sync + 'static,
    dequeue: impl Fn(&Q) -> usize + Send + Sync + 'static,
) {
    let taken = words(1 + variant.threads * variant.ops);
    variant.run(move |me| {
        for op in 0..variant.ops {
            if (me + op).is_multiple_of(2) {
                enqueue(&queue, 1 + me * variant.ops + op);
            } else {
                let value = dequeue(&queue);
                assert!(value == 0 || taken[value].add(1, variant) == 0, "{value} is dequeued twice");
            }
        }
    });
}

/// Node 1 is the dummy; the node of value v is v + 1.
struct Queue {
    value: Vec<Word>,
    next: Vec<Word>,
    head: Word,
    tail: Word,
    head_lock: Spinlock,
    tail_lock: Spinlock,
}

impl Queue {
    fn new(variant: Variant) -> Queue {
        let nodes = 2 + variant.threads * variant.ops;
        Queue {
            value: words(nodes),
            next: words(nodes),
            head: Word::new(1),
            tail: Word::new(1),
            head_lock: Spinlock::default(),
            tail_lock: Spinlock::default(),
        }
    }
}

pub fn msn(variant: Variant) {
    let enqueue = move |queue: &Queue, value: usize| {
        let node = value + 1;
        queue.value[node].store(value);
        queue.next[node].publish(0, variant);
        let last = loop {
            let last = queue.tail.load();
            let next = queue.next[last].load();
            if last != queue.tail.load() {
                continue;
            }
            if next != 0 {
                queue.tail.cas(last, next, variant);
            } else if queue.next[last].cas(0, node, variant) {
                break last;
            }
        };
        queue.tail.cas(last, node, variant);
    };
    let dequeue = move |queue: &Queue| {
        loop {
            let (first, last) = (queue.head.load(), queue.tail.load());
            let next = queue.next[first].load();
            if first != queue.head.load() {
                continue;
            }
            if first != last {
                let value = queue.value[next].load();
                if queue.head.cas(first, next, variant) {
                    return value;
                }
            } else if next == 0 {
                return 0;
            } else {
                queue.tail.cas(last, next, variant);
            }
        }
    };
    exercise(variant, Queue::new(variant), enqueue, dequeue);
}

pub fn ms2(variant: Variant) {
    let enqueue = move |queue: &Queue, value: usize| {
        let node = value + 1;
        queue.value[node].store(value);
        queue.next[node].store(0);
        queue.tail_lock.acquire(variant);
        let last = queue.tail.load();
        queue.next[last].publish(node, variant);
        queue.tail.store(node);
        queue.tail_lock.release(variant);
    };
    let dequeue = move |queue: &Queue| {
        let mut value = 0;
        queue.head_lock.acquire(variant);
        let next = queue.next[queue.head.load()].load();
        if next != 0 {
            value = queue.value[next].load();
            queue.head.store(next);
        }
        queue.head_lock.release(variant);
        value
    };
    exercise(variant, Queue::new(variant), enqueue, dequeue);
}

pub fn spsc(variant: Variant) {
    const SIZE: usize = 2;
    let (ring, written, taken) = (words(SIZE), Word::new(0), Word::new(0));
    Variant { threads: 2, ..variant }.run(move |me| {
        for op in 0..variant.ops {
            if me == 0 {
                while op - taken.load() == SIZE {
                    spin_loop();
                }
                ring[op % SIZE].store(op + 1);
                written.publish(op + 1, variant);
                variant.fence();
            } else {
                while written.load() == op {
                    spin_loop();
                }
                assert_eq!(ring[op % SIZE].load(), op + 1);
                taken.publish(op + 1, variant);
                variant.fence();
            }
        }
    });
}
