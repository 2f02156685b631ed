//! Sets of values of one cell, as bits.

use smallvec::SmallVec;

/// A set of values, by their positions among the values of a cell.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Values(SmallVec<[u64; 2]>);

impl Values {
    /// The set of one value.
    pub fn one(value: u32) -> Values {
        Values::of([value])
    }

    /// The set of these values.
    pub fn of(values: impl IntoIterator<Item = u32>) -> Values {
        let mut words = SmallVec::new();
        for value in values {
            let word = value as usize / 64;
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (value % 64);
        }
        Values(words)
    }

    pub fn has(&self, value: u32) -> bool {
        self.0.get(value as usize / 64).is_some_and(|word| word >> (value % 64) & 1 == 1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The values in both sets.
    pub fn and(&self, other: &Values) -> Values {
        let mut words: SmallVec<[u64; 2]> = self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect();
        // Equal sets have equal words.
        while words.last() == Some(&0) {
            words.pop();
        }
        Values(words)
    }

    pub fn is_subset(&self, other: &Values) -> bool {
        self.0.iter().enumerate().all(|(word, a)| a & !other.0.get(word).copied().unwrap_or(0) == 0)
    }

    /// The values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let bits = |(place, &word): (usize, &u64)| {
            let base = 64 * place as u32;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| base + bit)
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::Random;
    use std::collections::BTreeSet;

    /// All operations against ordered sets.
    #[test]
    fn sets_are_what_their_values_say() {
        let mut random = Random::new(1);
        for round in 0..2_000 {
            let most = [3, 70, 200][round % 3];
            let mut some = || -> BTreeSet<u32> {
                let count = random.below(6);
                (0..count).map(|_| random.below(most) as u32).collect()
            };
            let (a, b) = (some(), some());
            let (of_a, of_b) = (Values::of(a.iter().copied()), Values::of(b.iter().copied()));
            assert!(of_a.iter().eq(a.iter().copied()));
            assert_eq!(of_a == of_b, a == b);
            assert_eq!(of_a.is_empty(), a.is_empty());
            assert_eq!(of_a.is_subset(&of_b), a.is_subset(&b));
            assert_eq!(of_a.and(&of_b), Values::of(a.intersection(&b).copied()));
            assert!((0..most as u32 + 70).all(|value| of_a.has(value) == a.contains(&value)));
        }
    }
}
