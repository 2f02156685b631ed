//! Corrupted input: pieces of real input are cut, doubled, mixed and damaged. The same number gives the same
//! input.

use palisade_conformance::random::Random as Numbers;

/// Random choices. The same seed gives the same choices.
pub struct Random(Numbers);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(Numbers::new(seed))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit.max(1))
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// A random range in a text.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.below(4) == 0 { length } else { 24 };
        start..(start + self.below(most + 1)).min(length)
    }
}

/// Numbers that programs tend to trip over.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "2",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "1e999",
];

/// A real input, corrupted in one to six places.
pub fn spoiled(seeds: &[&[u8]], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut text = random.pick(seeds).to_vec();
    for _ in 0..=random.below(6) {
        spoil(&mut text, seeds, words, random);
    }
    text
}

fn spoil(text: &mut Vec<u8>, seeds: &[&[u8]], words: &[&str], random: &mut Random) {
    let range = random.range(text.len());
    match random.below(9) {
        0 => drop(text.drain(range)),
        1 => {
            let copy = text[range.clone()].to_vec();
            text.splice(range.start..range.start, copy);
        }
        2 => {
            let copy = text[range].to_vec();
            let to = random.below(text.len() + 1);
            text.splice(to..to, copy);
        }
        3 => {
            let other = random.pick(seeds);
            let piece = other[random.range(other.len())].to_vec();
            text.splice(range.start..range.start, piece);
        }
        4 => drop(text.splice(range, random.pick(words).bytes())),
        5 => spoil_number(text, random),
        6 => text.truncate(range.start),
        7 => {
            if let Some(byte) = text.get_mut(range.start) {
                *byte ^= 1 << random.below(8);
            }
        }
        _ => text.insert(range.start, random.below(256) as u8),
    }
}

/// Replaces some number by another.
pub fn spoil_number(text: &mut Vec<u8>, random: &mut Random) {
    let from = random.below(text.len() + 1);
    let Some(start) = (from..text.len()).find(|&at| text[at].is_ascii_digit()) else { return };
    let end = (start..text.len()).find(|&at| !text[at].is_ascii_digit()).unwrap_or(text.len());
    let number = match random.below(3) {
        0 => random.pick(&NUMBERS).to_owned(),
        _ => random.below(12).to_string(),
    };
    text.splice(start..end, number.bytes());
}
