//! What a step touches, and when two steps conflict.

use smallvec::{SmallVec, smallvec};

/// How memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// It is only read.
    Read,
    /// It may be written.
    Write,
}

/// One range of memory that a step touches. Locks and other synchronisation objects are memory, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Touch {
    /// The first address.
    pub address: u64,
    /// The length; at least 1.
    pub size: u64,
    /// How it is accessed.
    pub mode: Mode,
}

/// Everything that a step touches or may touch. It is the same whenever the step's process is in the same
/// local state, whatever memory holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Footprint {
    /// Ranges of memory.
    pub touches: SmallVec<[Touch; 1]>,
    /// Whether it conflicts with everything, for example because it may stop all processes.
    pub everything: bool,
    /// Whether the process has to wait while it is not ready for this step, and others can make it ready
    /// (locking, waiting for another process).
    pub waits: bool,
}

impl Footprint {
    /// Touches nothing.
    pub fn nothing() -> Footprint {
        Footprint::default()
    }

    /// Touches one range.
    pub fn one(address: u64, size: u64, mode: Mode) -> Footprint {
        Footprint { touches: smallvec![Touch { address, size, mode }], everything: false, waits: false }
    }

    /// Whether the order of the two steps matters.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        self.everything
            || other.everything
            || self.touches.iter().any(|a| other.touches.iter().any(|b| a.conflicts(b)))
    }
}

impl Touch {
    fn conflicts(&self, other: &Touch) -> bool {
        (self.mode == Mode::Write || other.mode == Mode::Write) && self.overlaps(other)
    }

    /// Whether the two ranges share memory.
    pub fn overlaps(&self, other: &Touch) -> bool {
        let (a, b) = (self.address, other.address);
        a < b.saturating_add(other.size) && b < a.saturating_add(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts() {
        let check = |a: (u64, u64, Mode), b: (u64, u64, Mode), expected: bool| {
            let [a, b] = [a, b].map(|(address, size, mode)| Footprint::one(address, size, mode));
            assert_eq!((a.conflicts(&b), b.conflicts(&a)), (expected, expected), "{a:?} {b:?}");
        };
        check((0, 1, Mode::Write), (0, 1, Mode::Read), true);
        check((0, 1, Mode::Read), (0, 1, Mode::Read), false);
        check((0, 4, Mode::Write), (3, 1, Mode::Read), true);
        check((0, 4, Mode::Write), (4, 4, Mode::Write), false);
        let all = Footprint { everything: true, ..Footprint::nothing() };
        assert!(all.conflicts(&Footprint::nothing()) && Footprint::nothing().conflicts(&all));
        assert!(!Footprint::nothing().conflicts(&Footprint::one(0, 8, Mode::Write)));
    }
}
