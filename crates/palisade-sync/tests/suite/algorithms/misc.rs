//! A sequence lock, Treiber's stack with hazard pointers, double-checked locking.

use super::{Spinlock, Variant, Word, words};
use palisade_sync::hint::spin_loop;
use palisade_sync::sync::atomic::{Ordering, fence};

pub fn seqlock(variant: Variant) {
    let (sequence, data) = (Word::new(0), words(2));
    variant.run(move |me| {
        for op in 0..variant.ops {
            if me == 0 {
                let before = sequence.load();
                sequence.store(before + 1);
                if variant.fenced {
                    fence(Ordering::Release);
                }
                data[0].store(op + 1);
                data[1].publish(op + 1, variant);
                sequence.publish(before + 2, variant);
            } else {
                let (a, b) = loop {
                    let before = sequence.load();
                    let seen = (data[0].load(), data[1].load());
                    let after = sequence.load();
                    if before.is_multiple_of(2) && before == after {
                        break seen;
                    }
                };
                assert_eq!(a, b, "a partial write is visible");
            }
        }
    });
}

pub fn treiber(variant: Variant) {
    // Node numbers start at 1.
    let (value, next) = (words(1 + variant.threads), words(1 + variant.threads));
    let (top, hazard) = (Word::new(0), words(variant.threads));
    variant.run(move |me| {
        let mut node = 1 + me;
        for _ in 0..variant.ops / 2 {
            value[node].store(1 + me);
            loop {
                let first = top.load();
                next[node].publish(first, variant);
                if top.cas(first, node, variant) {
                    break;
                }
            }
            node = loop {
                let first = top.load();
                if first == 0 {
                    continue;
                }
                hazard[me].publish(first, variant);
                variant.fence();
                if top.load() != first {
                    continue;
                }
                let second = next[first].load();
                if top.cas(first, second, variant) {
                    hazard[me].publish(0, variant);
                    variant.fence();
                    break first;
                }
            };
            for other in (0..variant.threads).filter(|&other| other != me) {
                while hazard[other].load() == node {
                    spin_loop();
                }
            }
        }
    });
}

pub fn double_checked(variant: Variant) {
    let (a, b) = (words(1 + variant.threads), words(1 + variant.threads));
    let (instance, lock) = (Word::new(0), Spinlock::default());
    variant.run(move |me| {
        for _ in 0..variant.ops {
            let mut found = instance.load();
            if found == 0 {
                lock.acquire(variant);
                found = instance.load();
                if found == 0 {
                    found = me + 1;
                    a[found].store(1);
                    b[found].store(2);
                    instance.publish(found, variant);
                }
                lock.release(variant);
            }
            assert_eq!(
                (a[found].load(), b[found].load()),
                (1, 2),
                "a partially initialised object is visible"
            );
        }
    });
}
