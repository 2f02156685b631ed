//! Deques: Snark, with its two-word compare-and-swap implemented by a lock, and the work-stealing deque of
//! Chase and Lev.

use super::{Spinlock, Variant, Word, words};

/// The dummy node.
const DUMMY: usize = 0;

/// The Snark deque. Both ends work the same, with left and right exchanged.
struct Snark {
    variant: Variant,
    /// The outermost node, by end.
    hats: [Word; 2],
    /// The node next to each node, by direction.
    links: [Vec<Word>; 2],
    value: Vec<Word>,
    lock: Spinlock,
}

impl Snark {
    fn dcas(&self, a: &Word, b: &Word, old: (usize, usize), new: (usize, usize)) -> bool {
        self.lock.acquire(self.variant);
        let equal = a.load() == old.0 && b.load() == old.1;
        if equal {
            a.store(new.0);
            b.publish(new.1, self.variant);
        }
        self.lock.release(self.variant);
        equal
    }

    fn push(&self, end: usize, node: usize) {
        let (hat, other_hat) = (&self.hats[end], &self.hats[1 - end]);
        self.links[end][node].store(DUMMY);
        self.value[node].store(node);
        loop {
            let first = hat.load();
            let beyond = self.links[end][first].load();
            if beyond == first {
                self.links[1 - end][node].store(DUMMY);
                let other = other_hat.load();
                if self.dcas(hat, other_hat, (first, other), (node, node)) {
                    return;
                }
            } else {
                self.links[1 - end][node].store(first);
                if self.dcas(hat, &self.links[end][first], (first, beyond), (node, node)) {
                    return;
                }
            }
        }
    }

    /// The value at an end, or 0.
    fn pop(&self, end: usize) -> usize {
        let (hat, other_hat) = (&self.hats[end], &self.hats[1 - end]);
        loop {
            let (first, other) = (hat.load(), other_hat.load());
            if self.links[end][first].load() == first {
                return 0;
            }
            if first == other {
                if self.dcas(hat, other_hat, (first, other), (DUMMY, DUMMY)) {
                    return self.value[first].load();
                }
            } else {
                let inner = self.links[1 - end][first].load();
                if self.dcas(hat, &self.links[1 - end][first], (first, inner), (inner, first)) {
                    let value = self.value[first].load();
                    self.links[end][first].publish(DUMMY, self.variant);
                    return value;
                }
            }
        }
    }
}

pub fn snark(variant: Variant) {
    let nodes = 1 + variant.threads * variant.ops;
    let deque = Snark {
        variant,
        hats: [Word::new(DUMMY), Word::new(DUMMY)],
        links: [words(nodes), words(nodes)],
        value: words(nodes),
        lock: Spinlock::default(),
    };
    variant.run(move |me| {
        for op in 0..variant.ops {
            let node = 1 + me * variant.ops + op;
            let value = match (2 * me + op) % 4 {
                0 => {
                    deque.push(1, node);
                    0
                }
                1 => deque.pop(0),
                2 => {
                    deque.push(0, node);
                    0
                }
                _ => deque.pop(1),
            };
            assert!(value < nodes);
        }
    });
}

pub fn chase_lev(variant: Variant) {
    const SIZE: usize = 8;
    let (tasks, done) = (words(SIZE), words(1 + variant.ops));
    // One more than in the paper, so that no index is negative.
    let (top, bottom) = (Word::new(1), Word::new(1));
    let take = move |tasks: &[Word], top: &Word, bottom: &Word| {
        let b = bottom.load() - 1;
        bottom.store(b);
        variant.fence();
        let t = top.load();
        if b < t {
            bottom.publish(t, variant);
            return 0;
        }
        let task = tasks[b % SIZE].load();
        if b > t {
            return task;
        }
        let won = top.cas(t, t + 1, variant);
        bottom.publish(b + 1, variant);
        if won { task } else { 0 }
    };
    let steal = move |tasks: &[Word], top: &Word, bottom: &Word| {
        let t = top.load();
        variant.fence();
        if t >= bottom.load() {
            return 0;
        }
        let task = tasks[t % SIZE].load();
        if top.cas(t, t + 1, variant) { task } else { 0 }
    };
    variant.run(move |me| {
        for op in 0..variant.ops {
            let mut task = 0;
            if me != 0 {
                task = steal(&tasks, &top, &bottom);
            } else if op.is_multiple_of(2) {
                let b = bottom.load();
                tasks[b % SIZE].store(op + 1);
                bottom.publish(b + 1, variant);
            } else {
                task = take(&tasks, &top, &bottom);
            }
            assert!(task == 0 || done[task].add(1, variant) == 0, "task {task} is done twice");
        }
    });
}
