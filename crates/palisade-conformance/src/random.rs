//! Random numbers that are the same everywhere and will never change: a seed names a program.
//!
//! *Source.* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
//! 2014).

use palisade_program::Value;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next number.
    pub fn next_word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0. (Slightly uneven, which does not matter here.)
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_word() % bound as u64) as usize
    }

    /// A number in the range, both ends included.
    pub fn between(&mut self, lo: usize, hi: usize) -> usize {
        lo + self.below(hi - lo + 1)
    }

    /// A value in the range, both ends included.
    pub fn value(&mut self, lo: Value, hi: Value) -> Value {
        lo + self.below((hi - lo + 1) as usize) as Value
    }

    /// True with this probability, in percent.
    pub fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < chance as usize
    }

    /// One of the items. There must be at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// One of the items, chosen according to their weights.
    pub fn weighted<'a, T>(&mut self, items: &'a [(u32, T)]) -> &'a T {
        let total: u32 = items.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total as usize) as u32;
        for (weight, item) in items {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return item,
            }
        }
        unreachable!("the weights add up to the total")
    }

    /// Puts the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_a_stream() {
        let take = |seed| {
            let mut random = Random::new(seed);
            [random.next_word(), random.next_word(), random.next_word()]
        };
        // The first numbers of the published generator for seed 1234567.
        assert_eq!(take(1_234_567), [6457827717110365317, 3203168211198807973, 9817491932198370423]);
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn weights_are_kept() {
        let mut random = Random::new(7);
        let items = [(0, 'a'), (1, 'b'), (9, 'c')];
        let mut seen = [0; 3];
        for _ in 0..1000 {
            seen[(*random.weighted(&items) as u8 - b'a') as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1] > 50 && seen[2] > 800, "{seen:?}");
    }

    #[test]
    fn a_shuffle_keeps_the_items() {
        let mut items: Vec<usize> = (0..20).collect();
        Random::new(3).shuffle(&mut items);
        assert_ne!(items, (0..20).collect::<Vec<_>>());
        items.sort();
        assert_eq!(items, (0..20).collect::<Vec<_>>());
    }
}
