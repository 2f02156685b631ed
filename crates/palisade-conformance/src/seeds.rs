//! Which seeds a test tries: as many as it requests, unless the environment says otherwise.
//!
//! | variable | what every test tries |
//! |---|---|
//! | `PALISADE_SEEDS=1000` | a thousand seeds |
//! | `PALISADE_SEEDS=10%` | a tenth of its own number, and at least one |
//! | `PALISADE_SEED=7` | this seed only |

use std::ops::Range;

/// The seeds of one test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seeds {
    first: u64,
    count: u64,
    /// The number that the test requested.
    default: u64,
    /// The seed of `PALISADE_SEED`.
    only: Option<u64>,
}

/// The seeds `0..default`, or those that the environment specifies instead.
///
/// # Panics
/// If a variable is not a number.
pub fn seeds(default: u64) -> Seeds {
    let read = |name: &str| std::env::var(name).ok();
    Seeds::new(default, read("PALISADE_SEED").as_deref(), read("PALISADE_SEEDS").as_deref())
}

impl Seeds {
    fn new(default: u64, only: Option<&str>, count: Option<&str>) -> Seeds {
        let number = |name: &str, text: &str| -> u64 {
            text.trim().parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}"))
        };
        let only = only.map(|text| number("PALISADE_SEED", text));
        let count = match count.map(str::trim) {
            None => default,
            Some(text) => match text.strip_suffix('%') {
                Some(percent) => (default * number("PALISADE_SEEDS", percent) / 100).max(1),
                None => number("PALISADE_SEEDS", text),
            },
        };
        Seeds { first: 0, count, default, only }
    }

    /// The same number of seeds, starting with `first`.
    pub fn starting_at(self, first: u64) -> Seeds {
        Seeds { first, ..self }
    }

    /// The number of seeds.
    pub fn count(&self) -> u64 {
        self.only.map_or(self.count, |_| 1)
    }

    /// Whether there are at least as many as the test requested. Only then may the test expect that rare
    /// cases occurred.
    pub fn suffice(&self) -> bool {
        self.count() >= self.default
    }

    /// The seeds, in order.
    pub fn range(&self) -> Range<u64> {
        match self.only {
            Some(seed) => seed..seed + 1,
            None => self.first..self.first + self.count,
        }
    }
}

impl IntoIterator for Seeds {
    type Item = u64;
    type IntoIter = Range<u64>;

    fn into_iter(self) -> Range<u64> {
        self.range()
    }
}

impl IntoIterator for &Seeds {
    type Item = u64;
    type IntoIter = Range<u64>;

    fn into_iter(self) -> Range<u64> {
        self.range()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds of a test that requests forty seeds starting with 5, and whether they suffice.
    #[track_caller]
    fn check(only: Option<&str>, count: Option<&str>, expected: Range<u64>, suffice: bool) {
        let seeds = Seeds::new(40, only, count).starting_at(5);
        assert_eq!((seeds.range(), seeds.suffice()), (expected.clone(), suffice));
        assert_eq!(seeds.count(), expected.end - expected.start);
    }

    #[test]
    fn the_environment_decides() {
        check(None, None, 5..45, true);
        check(None, Some("1000"), 5..1005, true);
        check(None, Some("3"), 5..8, false);
        check(None, Some("10%"), 5..9, false);
        check(None, Some("1%"), 5..6, false);
        check(None, Some("250%"), 5..105, true);
        check(Some("7"), None, 7..8, false);
        check(Some("7"), Some("1000"), 7..8, false);
    }

    #[test]
    #[should_panic(expected = "PALISADE_SEEDS is not a number: many")]
    fn anything_but_a_number_is_refused() {
        Seeds::new(40, None, Some("many"));
    }
}
