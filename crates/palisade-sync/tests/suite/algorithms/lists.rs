//! Sets as sorted lists: Harris's, whose deleted nodes have odd next pointers, and the lazy list.

use super::{Spinlock, Variant, Word, words};
use palisade_sync::sync::Arc;

const HEAD: usize = 0;
const TAIL: usize = 1;

struct List {
    variant: Variant,
    key: Vec<Word>,
    /// Harris: twice the node, plus 1 if this node is deleted. Lazy list: the node.
    next: Vec<Word>,
    marked: Vec<Word>,
    lock: Vec<Spinlock>,
}

impl List {
    fn new(variant: Variant, first: usize) -> List {
        let nodes = 2 + variant.threads * variant.ops;
        let list = List {
            variant,
            key: words(nodes),
            next: words(nodes),
            marked: words(nodes),
            lock: (0..nodes).map(|_| Spinlock::default()).collect(),
        };
        list.next[HEAD].store(first);
        list
    }
}

/// At the end the set contains the keys that were inserted more often than erased.
fn exercise(
    list: List,
    insert: fn(&List, usize, usize) -> bool,
    erase: fn(&List, usize) -> bool,
    contains: fn(&List, usize) -> bool,
    kinds: usize,
) {
    let variant = list.variant;
    let (list, balance) = (Arc::new(list), Arc::new(words(3)));
    let (shared, counted) = (list.clone(), balance.clone());
    variant.run(move |me| {
        for op in 0..variant.ops {
            let key = 1 + op / 2 % 2;
            match (me + op) % kinds {
                0 => {
                    if insert(&shared, 2 + me * variant.ops + op, key) {
                        counted[key].add(1, variant);
                    }
                }
                1 => {
                    if erase(&shared, key) {
                        counted[key].add(usize::MAX, variant);
                    }
                }
                _ => drop(contains(&shared, key)),
            }
        }
    });
    for key in 1..3 {
        assert_eq!(balance[key].load(), usize::from(contains(&list, key)), "key {key}");
    }
}

pub fn harris(variant: Variant) {
    /// The first node with at least this key, and the node before it; marked nodes between them are removed.
    fn search(list: &List, key: usize) -> (usize, usize) {
        loop {
            let (mut left, mut left_next) = (HEAD, list.next[HEAD].load());
            let (mut at, mut next) = (HEAD, left_next);
            loop {
                if next.is_multiple_of(2) {
                    (left, left_next) = (at, next);
                }
                at = next / 2;
                if at == TAIL {
                    break;
                }
                next = list.next[at].load();
                if next.is_multiple_of(2) && list.key[at].load() >= key {
                    break;
                }
            }
            let adjacent = left_next == 2 * at;
            if (adjacent || list.next[left].cas(left_next, 2 * at, list.variant))
                && (at == TAIL || list.next[at].load().is_multiple_of(2))
            {
                return (left, at);
            }
        }
    }
    fn insert(list: &List, node: usize, key: usize) -> bool {
        list.key[node].store(key);
        loop {
            let (left, right) = search(list, key);
            if right != TAIL && list.key[right].load() == key {
                return false;
            }
            list.next[node].publish(2 * right, list.variant);
            if list.next[left].cas(2 * right, 2 * node, list.variant) {
                return true;
            }
        }
    }
    fn erase(list: &List, key: usize) -> bool {
        loop {
            let (left, right) = search(list, key);
            if right == TAIL || list.key[right].load() != key {
                return false;
            }
            let next = list.next[right].load();
            if next.is_multiple_of(2) && list.next[right].cas(next, next + 1, list.variant) {
                if !list.next[left].cas(2 * right, next, list.variant) {
                    search(list, key);
                }
                return true;
            }
        }
    }
    fn contains(list: &List, key: usize) -> bool {
        let (_, right) = search(list, key);
        right != TAIL && list.key[right].load() == key
    }
    exercise(List::new(variant, 2 * TAIL), insert, erase, contains, 2);
}

pub fn lazylist(variant: Variant) {
    fn locate(list: &List, key: usize) -> (usize, usize) {
        let (mut left, mut right) = (HEAD, list.next[HEAD].load());
        while right != TAIL && list.key[right].load() < key {
            (left, right) = (right, list.next[right].load());
        }
        (left, right)
    }
    /// Locks the nodes around a key and applies a change, and repeats this until the nodes are adjacent and
    /// not deleted.
    fn change(list: &List, key: usize, change: impl Fn(usize, usize) -> bool) -> bool {
        loop {
            let (left, right) = locate(list, key);
            list.lock[left].acquire(list.variant);
            list.lock[right].acquire(list.variant);
            let valid = list.marked[left].load() == 0
                && list.marked[right].load() == 0
                && list.next[left].load() == right;
            let changed = valid && change(left, right);
            list.lock[right].release(list.variant);
            list.lock[left].release(list.variant);
            if valid {
                return changed;
            }
        }
    }
    fn insert(list: &List, node: usize, key: usize) -> bool {
        change(list, key, |left, right| {
            let absent = right == TAIL || list.key[right].load() != key;
            if absent {
                list.key[node].store(key);
                list.marked[node].store(0);
                list.next[node].store(right);
                list.next[left].publish(node, list.variant);
            }
            absent
        })
    }
    fn erase(list: &List, key: usize) -> bool {
        change(list, key, |left, right| {
            let present = right != TAIL && list.key[right].load() == key;
            if present {
                list.marked[right].store(1);
                list.next[left].publish(list.next[right].load(), list.variant);
            }
            present
        })
    }
    fn contains(list: &List, key: usize) -> bool {
        let (_, at) = locate(list, key);
        at != TAIL && list.key[at].load() == key && list.marked[at].load() == 0
    }
    exercise(List::new(variant, TAIL), insert, erase, contains, 3);
}
