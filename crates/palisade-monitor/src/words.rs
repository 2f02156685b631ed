//! A map from words of memory to numbers, optimised for repeated lookups of the same few words.
//!
//! Programs mostly access what they accessed a moment ago. So the most recently used words are also in a
//! small table in front of the map. Looking one up there takes a multiplication and a comparison.
//!
//! *Invariant*: what the table says about a word is what the map says.

use rustc_hash::FxHashMap;

/// Bytes in a word.
pub const WORD: u64 = 8;

/// Nothing is known about the word.
pub const NONE: u32 = u32::MAX;

/// The table has two to the power of this many entries: few enough that creating one costs next to nothing.
const BITS: u32 = 10;

/// No word of memory has this number.
const NOWHERE: u64 = u64::MAX;

/// A map from words of memory to numbers other than [`NONE`].
#[derive(Clone, Debug)]
pub struct Words {
    all: FxHashMap<u64, u32>,
    recent: Box<[(u64, u32)]>,
}

impl Default for Words {
    fn default() -> Words {
        Words { all: FxHashMap::default(), recent: vec![(NOWHERE, NONE); 1 << BITS].into() }
    }
}

impl Words {
    #[inline(always)]
    fn entry(word: u64) -> usize {
        // Fibonacci hashing (Knuth, volume 3, section 6.4): the distances between thread stacks are nearly
        // powers of two.
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS)) as usize
    }

    /// The number of a word, [`NONE`] if it has none.
    #[inline(always)]
    pub fn get(&mut self, word: u64) -> u32 {
        let (known, number) = self.recent[Words::entry(word)];
        if known == word { number } else { self.look_up(word) }
    }

    fn look_up(&mut self, word: u64) -> u32 {
        let number = self.all.get(&word).copied().unwrap_or(NONE);
        self.recent[Words::entry(word)] = (word, number);
        number
    }

    /// Gives a word a number.
    pub fn set(&mut self, word: u64, number: u32) {
        self.all.insert(word, number);
        self.recent[Words::entry(word)] = (word, number);
    }

    /// Removes the number of a word and returns it.
    pub fn remove(&mut self, word: u64) -> u32 {
        let number = self.all.remove(&word).unwrap_or(NONE);
        self.recent[Words::entry(word)] = (word, NONE);
        number
    }

    /// Removes the numbers of all words, and keeps the memory.
    pub fn clear(&mut self) {
        for (word, _) in self.all.drain() {
            self.recent[Words::entry(word)] = (word, NONE);
        }
    }

    /// The words from `first` to `last` that have a number, in no particular order.
    pub fn within(&self, first: u64, last: u64) -> Vec<u64> {
        if last - first < self.all.len() as u64 {
            (first..=last).filter(|word| self.all.contains_key(word)).collect()
        } else {
            self.all.keys().copied().filter(|word| (first..=last).contains(word)).collect()
        }
    }

    /// Checks the invariant.
    #[cfg(test)]
    pub fn check_invariants(&self) {
        for (place, &(word, number)) in self.recent.iter().enumerate().filter(|(_, entry)| entry.0 != NOWHERE)
        {
            assert_eq!(place, Words::entry(word), "word {word} is in its own entry");
            let known = self.all.get(&word).copied().unwrap_or(NONE);
            assert_eq!(number, known, "the table and the map agree about word {word}");
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.all.capacity() * 2 * size_of::<(u64, u32)>() + size_of_val(&*self.recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn differential_words_are_a_map() {
        let mut words = Words::default();
        let mut map = BTreeMap::new();
        let mut random = Random::new(7);
        for round in 0..20_000 {
            // More words than the table has entries.
            let word = random.below(3_000) as u64;
            match random.below(4) {
                0 => {
                    words.set(word, round);
                    map.insert(word, round);
                }
                1 => assert_eq!(words.remove(word), map.remove(&word).unwrap_or(NONE)),
                _ => assert_eq!(words.get(word), map.get(&word).copied().unwrap_or(NONE)),
            }
            if round % 100 == 0 {
                words.check_invariants();
            }
        }
        for (first, last) in [(0, 2_999), (0, u64::MAX), (17, 40), (5, 5)] {
            let mut within = words.within(first, last);
            within.sort_unstable();
            assert_eq!(within, map.range(first..=last).map(|(&word, _)| word).collect::<Vec<_>>());
        }
    }
}
