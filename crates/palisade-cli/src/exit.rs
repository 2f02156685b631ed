//! Exit codes. Scripts rely on them.

use palisade::Verdict;
use serde::{Deserialize, Serialize};

/// How a command, or its work on one file, ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Exit {
    /// Safe, or done: 0.
    Fine,
    /// Unknown: 3.
    Unknown,
    /// A real program has data races, and nothing worse: 5.
    Races,
    /// A real program fails: 4.
    Failed,
    /// Unsafe, not as expected, or not a witness: 1.
    Violated,
    /// Usage or input error: 2.
    Error,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Violated => 1,
            Exit::Error => 2,
            Exit::Unknown => 3,
            Exit::Failed => 4,
            Exit::Races => 5,
        }
    }

    /// The exit for a verdict.
    pub fn of(verdict: &Verdict) -> Exit {
        match verdict {
            Verdict::Holds => Exit::Fine,
            Verdict::Violated(_) => Exit::Violated,
            Verdict::Unknown(_) => Exit::Unknown,
        }
    }

    /// For several files: the worst, in the order 2, 1, 3, 0.
    pub fn worst(self, other: Exit) -> Exit {
        self.max(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_wins_in_the_order_2_1_3_0() {
        let order = [Exit::Error, Exit::Violated, Exit::Unknown, Exit::Fine];
        assert_eq!(order.map(Exit::code), [2, 1, 3, 0]);
        for (i, &worse) in order.iter().enumerate() {
            for &better in &order[i..] {
                assert_eq!(worse.worst(better), worse);
                assert_eq!(better.worst(worse), worse);
            }
        }
    }
}
