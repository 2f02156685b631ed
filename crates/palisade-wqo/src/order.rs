//! Orders on words and multisets.

use smallvec::{SmallVec, smallvec};

/// Whether `a` results from `b` by leaving letters out.
pub fn is_subword<L: Copy + PartialEq>(a: &[L], b: &[L]) -> bool {
    embeds(a, b, |letter, other| letter == other)
}

/// Whether the letters of `a` can be mapped, in order, to letters of `b` that are above them. Mapping each to
/// the first that is possible leaves most of `b` to the others. Over a finite alphabet with any order this is
/// a well-quasi-order (Higman).
pub fn embeds<L: Copy>(a: &[L], b: &[L], below: impl Fn(L, L) -> bool) -> bool {
    if a.len() > b.len() {
        return false;
    }
    let mut rest = b.iter();
    a.iter().all(|&letter| rest.any(|&other| below(letter, other)))
}

/// Whether each of `few` items can be mapped to a different one of `many` places that is above it. This is a
/// bipartite matching, found by augmenting paths.
pub fn injects(few: usize, many: usize, below: impl Fn(usize, usize) -> bool) -> bool {
    if few > many {
        return false;
    }
    let mut taken_by = small(None, many);
    (0..few).all(|item| augment(item, &below, &mut taken_by, &mut small(false, many)))
}

/// A vector that rarely has more than a few items.
fn small<T: Clone>(item: T, count: usize) -> SmallVec<[T; 8]> {
    smallvec![item; count]
}

fn augment(
    item: usize,
    below: &impl Fn(usize, usize) -> bool,
    taken_by: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for place in 0..tried.len() {
        if tried[place] || !below(item, place) {
            continue;
        }
        tried[place] = true;
        let free = match taken_by[place] {
            None => true,
            Some(other) => augment(other, below, taken_by, tried),
        };
        if free {
            taken_by[place] = Some(item);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0u8..3, 0..8)
    }

    /// All words that result from leaving letters out, by enumeration.
    fn subwords(word: &[u8]) -> Vec<Vec<u8>> {
        let keep = |mask: u32| (0..word.len()).filter(|i| mask >> i & 1 == 1).map(|i| word[i]).collect();
        (0..1u32 << word.len()).map(keep).collect()
    }

    /// Tries all ways to map the items of `a` to different items of `b`.
    fn injects_slowly(a: &[Vec<u8>], b: &[Vec<u8>]) -> bool {
        let Some((first, rest)) = a.split_first() else { return true };
        (0..b.len()).any(|i| {
            let mut others = b.to_vec();
            is_subword(first, &others.remove(i)) && injects_slowly(rest, &others)
        })
    }

    proptest! {
        #[test]
        fn differential_subword_agrees_with_enumeration(a in word(), b in word()) {
            prop_assert_eq!(is_subword(&a, &b), subwords(&b).contains(&a));
        }

        #[test]
        fn subword_is_a_partial_order(a in word(), b in word(), c in word()) {
            prop_assert!(is_subword(&a, &a));
            prop_assert!(!(is_subword(&a, &b) && is_subword(&b, &c)) || is_subword(&a, &c));
            prop_assert!(!(is_subword(&a, &b) && is_subword(&b, &a)) || a == b);
        }

        #[test]
        fn differential_injection_agrees_with_enumeration(
            a in proptest::collection::vec(word(), 0..4),
            b in proptest::collection::vec(word(), 0..5),
        ) {
            prop_assert_eq!(injects(a.len(), b.len(), |i, j| is_subword(&a[i], &b[j])), injects_slowly(&a, &b));
        }
    }
}
