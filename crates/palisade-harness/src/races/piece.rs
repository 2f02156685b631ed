//! Bytes that were always accessed together, and the accesses to them that later ones may race with.

use super::Clock;
use palisade_monitor::NONE;

/// An access: its thread, the thread's own clock, and the place of its instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) thread: u16,
    pub(super) moment: u32,
    pub(super) place: u64,
    pub(super) plain: bool,
}

/// Bytes of a word that were always accessed together.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) from: u8,
    pub(super) to: u8,
    /// The thread that made all the accesses kept here; [`SEVERAL`] if it is not exactly one.
    pub(super) alone: u16,
    /// The next piece of the word, after this one; [`NONE`] if this is the last.
    pub(super) next: u32,
    pub(super) write: Option<Access>,
    pub(super) reads: Vec<Access>,
    /// What was released here, if an atomic object begins here.
    pub(super) released: Clock,
}

/// Not exactly one thread.
const SEVERAL: u16 = u16::MAX;

impl Piece {
    pub(super) fn new(from: u8, to: u8, next: u32) -> Piece {
        Piece { from, to, alone: SEVERAL, next, write: None, reads: Vec::new(), released: Clock::new() }
    }

    /// Makes this a piece without accesses, and keeps its memory.
    pub(super) fn renew(&mut self, from: u8, to: u8) {
        (self.from, self.to, self.alone, self.next, self.write) = (from, to, SEVERAL, NONE, None);
        self.reads.clear();
        self.released.clear();
    }

    /// Compares an access with earlier ones, and keeps it.
    #[inline(always)]
    pub(super) fn judge(
        &mut self,
        known: &Clock,
        access: Access,
        writes: bool,
        found: impl FnMut(&Access, bool),
    ) {
        // A thread does not race with itself.
        if self.alone != access.thread {
            self.compare(known, access, writes, found);
        }
        if writes {
            self.write = Some(access);
            self.reads.clear();
            self.alone = access.thread;
        } else {
            self.read(access);
        }
    }

    /// Reports the earlier accesses with which this one races.
    #[inline(never)]
    fn compare(&self, known: &Clock, access: Access, writes: bool, mut found: impl FnMut(&Access, bool)) {
        let races = |other: &&Access| {
            other.thread != access.thread
                && (other.plain || access.plain)
                && known.get(usize::from(other.thread)).copied().unwrap_or(0) < other.moment
        };
        if let Some(write) = self.write.as_ref().filter(races) {
            found(write, true);
        }
        if writes {
            self.reads.iter().filter(races).for_each(|read| found(read, false));
        }
    }

    /// Keeps a read.
    #[inline(always)]
    fn read(&mut self, access: Access) {
        match self.reads.iter_mut().find(|read| read.thread == access.thread) {
            // At the same moment, a plain read takes precedence over one that is not plain.
            Some(read) if read.moment == access.moment && read.plain && !access.plain => {}
            Some(read) => *read = access,
            None => {
                let is_first = self.write.is_none() && self.reads.is_empty();
                if self.alone != access.thread {
                    self.alone = if is_first { access.thread } else { SEVERAL };
                }
                self.reads.push(access);
            }
        }
    }
}
