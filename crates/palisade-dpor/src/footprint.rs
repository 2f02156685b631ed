//! What a step touches, and when two steps conflict.
//!
//! *Problem.* On a machine with store buffers, a load that reads its own thread's store does not care about
//! writes of others that reach memory before that store does. Whether two steps conflict depends on how far
//! the buffer has got.
//!
//! *How.* A store buffer is a process of its own, whose steps write memory. A read names the
//! [newest own store](Touch::own) to what it reads: a step of the buffer. It conflicts with exactly those
//! writes of others that come after that step. The name depends only on what the thread has done so far, so
//! a footprint does not change while the store moves from the buffer to memory. See `explore.rs` for why
//! this gives one execution per trace.

use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// How memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// It is only read.
    Read,
    /// It may be written.
    Write,
}

/// When a step whose footprint has [`Mode::Write`] writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Writes {
    /// Always, or it counts as if it did.
    #[default]
    Always,
    /// Only if what it touches holds this number: a compare-and-swap.
    IfHolds(u64),
    /// Only if what it touches is in a certain state: trying to take a lock.
    Perhaps,
}

/// A step by its process and its index among the steps of the process, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StepId {
    /// The process.
    pub process: u32,
    /// The index.
    pub number: u32,
}

impl StepId {
    /// A step of a process, by its index from 1.
    pub fn new(process: usize, number: usize) -> StepId {
        let narrow = |number: usize| u32::try_from(number).expect("there are fewer than 2³² steps");
        StepId { process: narrow(process), number: narrow(number) }
    }
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
    /// For a read on a machine with store buffers: the step of a buffer with which the reading thread's own
    /// newest store to this range reaches memory, whether that has happened or not. The read conflicts only
    /// with writes of others after that step. If no store was buffered, or the thread has waited since for
    /// its buffer to be empty, `None`. A range with several newest stores is given as several touches.
    pub own: Option<StepId>,
}

/// Everything that a step touches or may touch. It is the same whenever the step's process is in the same
/// local state, whatever memory holds. There is one exception: a [conditional](Footprint::writes) step has
/// [`Mode::Read`] where it is known to write nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Footprint {
    /// Ranges of memory.
    pub touches: SmallVec<[Touch; 1]>,
    /// Whether it conflicts with everything, for example because it may stop all processes.
    pub everything: bool,
    /// Whether the process has to wait while it is not ready for this step, and others can make it ready
    /// (locking, waiting for another process).
    pub waits: bool,
    /// Steps of other processes without which this step does not exist or cannot be taken: the store that a
    /// buffer writes to memory, or the steps that empty a buffer before a fence. They always happen before
    /// this step, and no other order is tried. A step with number 0 stands for none.
    pub after: SmallVec<[StepId; 1]>,
    /// When it writes what it may write.
    pub writes: Writes,
}

impl Footprint {
    /// Touches nothing.
    pub fn nothing() -> Footprint {
        Footprint::default()
    }

    /// Touches one range.
    pub fn one(address: u64, size: u64, mode: Mode) -> Footprint {
        Footprint { touches: smallvec![Touch { address, size, mode, own: None }], ..Footprint::default() }
    }

    /// The same step, which comes after these steps of other processes.
    pub fn after(self, steps: impl IntoIterator<Item = StepId>) -> Footprint {
        Footprint { after: steps.into_iter().collect(), ..self }
    }

    /// Whether it may write memory, as far as is known.
    pub(crate) fn may_write(&self) -> bool {
        self.touches.iter().any(|touch| touch.mode == Mode::Write)
    }

    /// Whether it may change whether a conditional step fails.
    pub(crate) fn may_change(&self, conditional: &Footprint) -> bool {
        let range = |touch: &Touch| (touch.address, touch.size);
        let differs = |touch: &Touch| {
            conditional.touches.iter().any(|other| touch.overlaps(other) && range(touch) != range(other))
        };
        self.everything || self.may_write() || self.touches.iter().any(differs)
    }

    /// Whether memory decides whether it writes.
    pub fn is_conditional(&self) -> bool {
        self.writes != Writes::Always
    }

    /// The same step where it is known whether it fails, that is, writes nothing. It must be conditional.
    pub fn settled(self: &Arc<Footprint>, fails: bool) -> Arc<Footprint> {
        if self.may_write() != fails {
            return self.clone();
        }
        let mut footprint = Footprint::clone(self);
        for touch in &mut footprint.touches {
            touch.mode = if fails { Mode::Read } else { Mode::Write };
        }
        Arc::new(footprint)
    }

    /// Whether it is the same step, whether it writes or not.
    pub(crate) fn is_same_step(&self, other: &Footprint) -> bool {
        let range = |touch: &Touch| (touch.address, touch.size, touch.own);
        let same_ranges = || self.touches.iter().map(range).eq(other.touches.iter().map(range));
        self == other
            || self.is_conditional()
                && (self.everything, self.waits, self.writes) == (other.everything, other.waits, other.writes)
                && self.after == other.after
                && same_ranges()
    }

    /// A few bits for what it touches; see [`may_conflict`].
    pub(crate) fn mask(&self) -> u64 {
        const WORD: u64 = 8;
        const LARGE: u64 = 8 * WORD;
        let of = |touch: &Touch| {
            if touch.size > LARGE {
                return EVERYTHING;
            }
            let (first, last) =
                (touch.address / WORD, touch.address.saturating_add(touch.size.max(1) - 1) / WORD);
            (first..=last).fold(0, |mask, word| mask | 1 << (word.wrapping_mul(SPREAD) >> 58))
        };
        if self.everything { EVERYTHING } else { self.touches.iter().fold(0, |mask, touch| mask | of(touch)) }
    }

    /// Whether the order of the two steps can matter. With store buffers this also depends on how far they
    /// have got; see [`Sleeper::is_woken_by`](crate::Sleeper::is_woken_by).
    pub fn conflicts(&self, other: &Footprint) -> bool {
        self.everything
            || other.everything
            || self.touches.iter().any(|a| other.touches.iter().any(|b| a.conflicts(self, b, other)))
    }
}

/// Spreads neighbouring words over the bits of a mask: 2⁶⁴ divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The mask of a step that may conflict with all others, even those that touch nothing.
const EVERYTHING: u64 = u64::MAX;

/// Whether steps with these masks may conflict. This excludes most pairs of steps that do not, and takes less time than
/// [`conflict`].
pub(crate) fn may_conflict(a: u64, b: u64) -> bool {
    a & b != 0 || a == EVERYTHING || b == EVERYTHING
}

/// A step whose order with another matters or not.
#[derive(Clone, Copy)]
pub(crate) struct Party<'a, C> {
    pub process: usize,
    pub footprint: &'a Footprint,
    /// Whether a step happens before this one. This is asked only about steps of buffers that write what this
    /// one writes, so it is the same as whether that step comes before this one.
    pub knows: C,
}

/// Whether the order of two steps of different processes matters.
pub(crate) fn conflict(a: Party<'_, impl Fn(StepId) -> bool>, b: Party<'_, impl Fn(StepId) -> bool>) -> bool {
    if a.footprint.everything || b.footprint.everything {
        return true;
    }
    a.footprint.touches.iter().any(|x| {
        b.footprint.touches.iter().any(|y| {
            x.conflicts(a.footprint, y, b.footprint)
                && x.sees(b.process, &b.knows)
                && y.sees(a.process, &a.knows)
        })
    })
}

impl Touch {
    /// Whether a part of one step conflicts with a part of another. A conditional step that has failed conflicts with
    /// reads of other ranges, as if it had written. See `explore.rs` for the reason.
    fn conflicts(&self, of: &Footprint, other: &Touch, of_other: &Footprint) -> bool {
        let may_write = |touch: &Touch, of: &Footprint| {
            let is_same_range = (self.address, self.size) == (other.address, other.size);
            touch.mode == Mode::Write || (of.is_conditional() && !is_same_range)
        };
        self.overlaps(other) && (may_write(self, of) || may_write(other, of_other))
    }

    /// Whether the two ranges share memory.
    pub fn overlaps(&self, other: &Touch) -> bool {
        let (a, b) = (self.address, other.address);
        a < b.saturating_add(other.size) && b < a.saturating_add(self.size)
    }

    /// Whether a write of a process matters to this touch, if it is a read with an own store.
    fn sees(&self, process: usize, knows: impl Fn(StepId) -> bool) -> bool {
        self.own.is_none_or(|own| own.process as usize != process && knows(own))
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
        let failed = Footprint { writes: Writes::Perhaps, ..Footprint::one(0, 2, Mode::Read) };
        assert!(!failed.conflicts(&failed) && !failed.conflicts(&Footprint::one(0, 2, Mode::Read)));
        assert!(
            failed.conflicts(&Footprint::one(0, 1, Mode::Read)),
            "it may succeed after a write to the rest"
        );
        let all = Footprint { everything: true, ..Footprint::nothing() };
        assert!(all.conflicts(&Footprint::nothing()) && Footprint::nothing().conflicts(&all));
        assert!(!Footprint::nothing().conflicts(&Footprint::one(0, 8, Mode::Write)));
    }

    /// A read whose own store is step 2 of process 5.
    #[test]
    fn own_stores() {
        let own = Some(StepId::new(5, 2));
        let read = Footprint {
            touches: smallvec![Touch { address: 0, size: 4, mode: Mode::Read, own }],
            ..Footprint::nothing()
        };
        let check = |process: usize, written: u32, expected: bool| {
            let write = Footprint::one(3, 1, Mode::Write);
            let reader = || Party { process: 0, footprint: &read, knows: |_| false };
            let knows = |step: StepId| step.process == 5 && step.number <= written;
            let writer = || Party { process, footprint: &write, knows };
            assert_eq!(conflict(reader(), writer()), expected, "{process} {written}");
            assert_eq!(conflict(writer(), reader()), expected, "{process} {written}");
        };
        check(1, 1, false);
        check(1, 2, true);
        check(1, 3, true);
        check(5, 2, false);
        check(5, 3, false);
    }
}
