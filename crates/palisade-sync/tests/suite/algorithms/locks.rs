//! Mutual exclusion: Dekker, Lamport's bakery, ticket lock, MCS lock.

use super::{Variant, Word, words};
use palisade_sync::hint::spin_loop;

/// Checks that no other thread is inside.
fn inside(word: &Word, me: usize) {
    word.store(me + 1);
    assert_eq!(word.load(), me + 1, "another thread is inside");
}

pub fn dekker(variant: Variant) {
    let (wants, turn, place) = (words(2), Word::new(0), Word::new(0));
    Variant { threads: 2, ..variant }.run(move |me| {
        let other = 1 - me;
        for _ in 0..variant.ops {
            wants[me].store(1);
            variant.fence();
            while wants[other].load() == 1 {
                if turn.load() != me {
                    wants[me].store(0);
                    variant.fence();
                    while turn.load() != me {
                        spin_loop();
                    }
                    wants[me].store(1);
                    variant.fence();
                }
            }
            inside(&place, me);
            turn.publish(other, variant);
            wants[me].publish(0, variant);
            variant.fence();
        }
    });
}

pub fn bakery(variant: Variant) {
    let (choosing, number) = (words(variant.threads), words(variant.threads));
    let place = Word::new(0);
    variant.run(move |me| {
        for _ in 0..variant.ops {
            choosing[me].store(1);
            variant.fence();
            let own = 1 + (0..variant.threads).map(|other| number[other].load()).max().unwrap_or(0);
            number[me].publish(own, variant);
            choosing[me].publish(0, variant);
            variant.fence();
            for other in (0..variant.threads).filter(|&other| other != me) {
                while choosing[other].load() == 1 {
                    spin_loop();
                }
                loop {
                    let theirs = number[other].load();
                    if theirs == 0 || (theirs, other) > (own, me) {
                        break;
                    }
                }
            }
            inside(&place, me);
            number[me].publish(0, variant);
            variant.fence();
        }
    });
}

pub fn ticket(variant: Variant) {
    let (next, serving, counter) = (Word::new(0), Word::new(0), Word::new(0));
    variant.run(move |_| {
        for _ in 0..variant.ops {
            let ticket = next.add(1, variant);
            while serving.load() != ticket {
                spin_loop();
            }
            counter.store(counter.load() + 1);
            serving.publish(ticket + 1, variant);
        }
    });
}

pub fn mcs(variant: Variant) {
    let (next, waits) = (words(1 + variant.threads), words(1 + variant.threads));
    let (last, counter) = (Word::new(0), Word::new(0));
    variant.run(move |me| {
        let node = me + 1;
        for _ in 0..variant.ops {
            next[node].store(0);
            waits[node].store(1);
            let before = last.swap(node, variant);
            if before != 0 {
                next[before].publish(node, variant);
                while waits[node].load() == 1 {
                    spin_loop();
                }
            }
            counter.store(counter.load() + 1);
            if next[node].load() == 0 {
                if last.cas(node, 0, variant) {
                    continue;
                }
                while next[node].load() == 0 {
                    spin_loop();
                }
            }
            waits[next[node].load()].publish(0, variant);
        }
    });
}
