//! Verdicts about safety, without their runs and reasons.

use palisade_corpus::Safety;
use palisade_engine::Verdict;

/// A verdict about safety.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SafetyVerdict {
    /// No bad state is reachable.
    Safe,
    /// A bad state is reachable.
    Unsafe,
    /// Not known.
    Unknown,
}

impl SafetyVerdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            SafetyVerdict::Safe => "safe",
            SafetyVerdict::Unsafe => "unsafe",
            SafetyVerdict::Unknown => "unknown",
        }
    }

    /// The verdict that a word means. The words of litmus tests are accepted too.
    pub fn parse(word: &str) -> Option<SafetyVerdict> {
        match word {
            "safe" | "unreachable" => Some(SafetyVerdict::Safe),
            "unsafe" | "reachable" => Some(SafetyVerdict::Unsafe),
            "unknown" => Some(SafetyVerdict::Unknown),
            _ => None,
        }
    }
}

impl From<&Verdict> for SafetyVerdict {
    fn from(verdict: &Verdict) -> SafetyVerdict {
        match verdict {
            Verdict::Holds => SafetyVerdict::Safe,
            Verdict::Violated(_) => SafetyVerdict::Unsafe,
            Verdict::Unknown(_) => SafetyVerdict::Unknown,
        }
    }
}

impl From<Safety> for SafetyVerdict {
    fn from(safety: Safety) -> SafetyVerdict {
        match safety {
            Safety::Safe => SafetyVerdict::Safe,
            Safety::Unsafe => SafetyVerdict::Unsafe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_printed() {
        for verdict in [SafetyVerdict::Safe, SafetyVerdict::Unsafe, SafetyVerdict::Unknown] {
            assert_eq!(SafetyVerdict::parse(verdict.name()), Some(verdict));
        }
        assert_eq!(SafetyVerdict::parse("reachable"), Some(SafetyVerdict::Unsafe));
        assert_eq!(SafetyVerdict::parse("unreachable"), Some(SafetyVerdict::Safe));
        assert_eq!(SafetyVerdict::parse("exists"), None);
    }
}
