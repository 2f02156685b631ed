//! Facts about thread states that are looked at for every state: one bit each, so that a few instructions tell
//! whether they hold of some thread, and whether of two.

use std::ops::{BitAnd, BitOr};

/// Facts about one thread state, or about several.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Flags(u8);

impl Flags {
    /// No fact holds, as for "no thread".
    pub const NONE: Flags = Flags(0);
    /// It is inside an atomic section.
    pub const ENTERED: Flags = Flags(1);
    /// A `forbid` looks at threads of this role while the thread is armed. Then the state cannot be judged.
    pub const UNJUDGED: Flags = Flags(1 << 1);
    /// It is at a location a `forbid` looks at.
    pub const AT_SEEN: Flags = Flags(1 << 2);
    /// It has caused a fault.
    pub const FAULTED: Flags = Flags(1 << 3);
    /// It is, or was in its last local steps, about to access a cell on which data races are possible.
    pub const MAY_RACE: Flags = Flags(1 << 4);
    /// Its buffer is not empty.
    pub const PENDING: Flags = Flags(1 << 5);
    /// It has not run to its end, or its buffer is not empty.
    pub const UNFINISHED: Flags = Flags(1 << 6);
    /// Its moves are not known yet.
    pub const UNKNOWN: Flags = Flags(1 << 7);

    /// These facts if `holds`.
    pub fn when(self, holds: bool) -> Flags {
        if holds { self } else { Flags::NONE }
    }

    /// Whether some of these facts hold.
    #[inline]
    pub fn has(self, some: Flags) -> bool {
        self.0 & some.0 != 0
    }

    /// All facts but these.
    pub fn without(self, these: Flags) -> Flags {
        Flags(self.0 & !these.0)
    }
}

impl BitOr for Flags {
    type Output = Flags;

    #[inline]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitAnd for Flags {
    type Output = Flags;

    #[inline]
    fn bitand(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
}

/// Facts about all threads of a state.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct OfThreads {
    /// What holds of at least one thread.
    pub some: Flags,
    /// What holds of at least two.
    pub two: Flags,
}

impl OfThreads {
    /// With one thread more.
    #[inline]
    pub fn and(self, thread: Flags) -> OfThreads {
        OfThreads { some: self.some | thread, two: self.two | self.some & thread }
    }
}
