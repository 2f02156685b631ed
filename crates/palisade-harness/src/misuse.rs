//! Memory errors: what the runtime reports about one, and how it is described.
//!
//! *Problem.* An access to a block that was freed, or to a frame that was left, reads or changes memory that is used
//! for something else by now. On a real machine it is a matter of luck whether this shows.
//!
//! *How.* The runtime keeps freed blocks from being used again for a while and checks every access
//! (`runtime/heap.c`, `runtime/misuse.c`). The execution ends with the first error. It is described by a few records
//! of kind [`RecordKind::Misuse`](crate::log::RecordKind::Misuse).

use crate::log::Record;
use serde::{Deserialize, Serialize};

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum MisuseKind {
    /// An access to a block that was freed.
    #[default]
    UseAfterFree,
    /// A block is freed again.
    DoubleFree,
    /// Something is freed that is not the start of a block.
    InvalidFree,
    /// An access before the start of a block or after its end.
    HeapOverflow,
    /// An access to a frame of a stack that was left.
    StackUseAfterReturn,
    /// An access to a thread-local variable of a thread that has ended.
    ThreadLocalUseAfterEnd,
    /// A thread unlocks what it has not locked.
    UnlockNotHeld,
    /// A lock is used after it was destroyed.
    UseAfterDestroy,
    /// A lock is destroyed while a thread holds it.
    DestroyInUse,
    /// A read of memory that was never written.
    UninitialisedRead,
}

/// What an access does. It is given together with its size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum AccessKind {
    /// It only reads.
    Read,
    /// It writes, and may read.
    Write,
    /// A store that was executed before, and leaves the store buffer now.
    Update,
}

/// A place in the program, and the thread that was there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Spot {
    /// The thread.
    pub thread: u16,
    /// The place; 0 if it is not known.
    pub place: u64,
}

/// A memory error.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Misuse {
    /// What is wrong.
    pub kind: MisuseKind,
    /// Where.
    pub at: Spot,
    /// The first address that must not be accessed, or the one that is freed.
    pub address: u64,
    /// The access; `None` if something is freed, and for locks.
    pub access: Option<(u64, AccessKind)>,
    /// The size of the block that it is about.
    pub size: Option<u64>,
    /// Where that block begins.
    pub start: u64,
    /// Where the block was allocated.
    pub made: Option<Spot>,
    /// Where the block was freed, or the lock destroyed.
    pub freed: Option<Spot>,
    /// The thread to whose stack the address belongs, and whether it has ended; or the thread that holds the lock.
    pub owner: Option<(u16, bool)>,
}

/// The record that describes the access.
pub(crate) const MISUSE_ACCESS: u8 = 16;

/// What is wrong, if a record says so. The numbers are those of `enum misuse` in `runtime/log.h`.
pub(crate) fn kind(record: &Record) -> Option<MisuseKind> {
    match record.size {
        1 => Some(MisuseKind::UseAfterFree),
        2 => Some(MisuseKind::DoubleFree),
        3 => Some(MisuseKind::InvalidFree),
        4 => Some(MisuseKind::HeapOverflow),
        5 => Some(MisuseKind::StackUseAfterReturn),
        6 => Some(MisuseKind::ThreadLocalUseAfterEnd),
        7 => Some(MisuseKind::UnlockNotHeld),
        8 => Some(MisuseKind::UseAfterDestroy),
        9 => Some(MisuseKind::DestroyInUse),
        10 => Some(MisuseKind::UninitialisedRead),
        _ => None,
    }
}

/// Whether a record says that the access is a store that was executed before. It comes before the record with the
/// kind.
pub(crate) fn is_update(record: &Record) -> bool {
    record.size == MISUSE_ACCESS && record.address >> 9 & 1 != 0
}

/// Whether a record says that a step was chosen for the access. That step is not in the log. The record comes before
/// the one with the kind.
pub(crate) fn is_chosen(record: &Record) -> bool {
    record.size == MISUSE_ACCESS && record.address >> 10 & 1 != 0
}

/// The thread to whose stack the memory belongs, or which holds the lock, if a record says so. It comes before the record with the kind.
pub(crate) fn owner(record: &Record) -> Option<u16> {
    (record.size == 21).then_some(record.thread)
}

impl Misuse {
    /// Takes the next record about the error.
    pub(crate) fn take(&mut self, record: &Record) {
        let spot = Spot { thread: record.thread, place: record.place };
        if let Some(kind) = kind(record) {
            self.kind = kind;
            self.at = spot;
            self.address = record.address;
        }
        if let Some(owner) = owner(record) {
            self.owner = Some((owner, record.address != 0));
        }
        match record.size {
            MISUSE_ACCESS => {
                let kind = match record.address >> 8 & 3 {
                    0 => AccessKind::Read,
                    1 => AccessKind::Write,
                    _ => AccessKind::Update,
                };
                self.access = Some((record.address & 0xff, kind));
            }
            17 => self.size = Some(record.address),
            18 => self.start = record.address,
            19 => self.made = Some(spot),
            20 => self.freed = Some(spot),
            _ => {}
        }
    }

    /// A short name, for machine-readable output.
    pub fn name(&self) -> &'static str {
        match self.kind {
            MisuseKind::UseAfterFree => "use-after-free",
            MisuseKind::DoubleFree => "double-free",
            MisuseKind::InvalidFree => "invalid-free",
            MisuseKind::HeapOverflow => "heap-overflow",
            MisuseKind::StackUseAfterReturn => "stack-use-after-return",
            MisuseKind::ThreadLocalUseAfterEnd => "thread-local-use-after-end",
            MisuseKind::UnlockNotHeld => "unlock-not-held",
            MisuseKind::UseAfterDestroy => "use-after-destroy",
            MisuseKind::DestroyInUse => "destroy-in-use",
            MisuseKind::UninitialisedRead => "uninitialised-read",
        }
    }

    /// One sentence. `number` returns the number by which users know a thread.
    pub fn message(&self, number: impl Fn(u16) -> u16) -> String {
        let thread = number(self.at.thread);
        let block = self.size.map_or("a block".to_owned(), |size| format!("a block of {}", bytes(size)));
        match self.kind {
            MisuseKind::UseAfterFree => {
                format!("use after free: thread {thread} {} in {block} that was freed", self.accesses())
            }
            MisuseKind::DoubleFree => {
                format!("double free: thread {thread} frees {block} that was already freed")
            }
            MisuseKind::InvalidFree if self.size.is_some() => {
                let into = self.address.wrapping_sub(self.start);
                format!(
                    "invalid free: thread {thread} frees an address {} after the start of {block}",
                    bytes(into)
                )
            }
            MisuseKind::InvalidFree => {
                format!("invalid free: thread {thread} frees an address that `malloc` has not returned")
            }
            MisuseKind::HeapOverflow => {
                let (size, end) = (self.size.unwrap_or(0), self.start + self.size.unwrap_or(0));
                let (distance, which) = if self.address >= end {
                    (self.address - end, "after the end of")
                } else {
                    (self.start - self.address, "before")
                };
                let distance = if distance == 0 { "right".to_owned() } else { bytes(distance) };
                format!(
                    "heap overflow: thread {thread} {}, {distance} {which} a block of {}",
                    self.accesses(),
                    bytes(size)
                )
            }
            MisuseKind::StackUseAfterReturn => {
                let of = match self.owner {
                    Some((owner, true)) => {
                        format!("on the stack of thread {}, which has ended", number(owner))
                    }
                    Some((owner, false)) if owner != self.at.thread => {
                        format!("on the stack of thread {}, in a function that has returned", number(owner))
                    }
                    _ => "on its own stack, in a function that has returned".to_owned(),
                };
                format!("stack use after return: thread {thread} {} {of}", self.accesses())
            }
            MisuseKind::ThreadLocalUseAfterEnd => {
                let of = self
                    .owner
                    .map_or_else(|| "a thread".to_owned(), |(owner, _)| format!("thread {}", number(owner)));
                format!(
                    "thread-local use after end: thread {thread} {} of a thread-local variable of {of}, which has ended",
                    self.accesses()
                )
            }
            MisuseKind::UnlockNotHeld => {
                format!(
                    "unlock of a lock that is not held: thread {thread} unlocks a lock that {}",
                    self.holder(number)
                )
            }
            MisuseKind::UseAfterDestroy => {
                format!("use after destroy: thread {thread} uses a lock that was destroyed")
            }
            MisuseKind::DestroyInUse => {
                format!(
                    "destroyed while in use: thread {thread} destroys a lock that {}",
                    self.holder(number)
                )
            }
            MisuseKind::UninitialisedRead => {
                let of = match self.owner {
                    Some((owner, _)) if owner == self.at.thread => "on its own stack".to_owned(),
                    Some((owner, _)) => format!("on the stack of thread {}", number(owner)),
                    None => format!("in {block}"),
                };
                let size = bytes(self.access.map_or(1, |(size, _)| size));
                format!("uninitialised read: thread {thread} reads {size} {of} that no store has reached yet")
            }
        }
    }

    fn holder(&self, number: impl Fn(u16) -> u16) -> String {
        match self.owner {
            Some((owner, _)) if owner == self.at.thread => "it holds itself".to_owned(),
            Some((owner, _)) => format!("thread {} holds", number(owner)),
            None if self.kind == MisuseKind::UnlockNotHeld => "no thread holds".to_owned(),
            None => "is held".to_owned(),
        }
    }

    fn accesses(&self) -> String {
        match self.access {
            Some((size, AccessKind::Write)) => format!("writes {}", bytes(size)),
            Some((size, AccessKind::Read)) => format!("reads {}", bytes(size)),
            Some((size, AccessKind::Update)) => {
                format!("has stored {}, which leave its store buffer only now,", bytes(size))
            }
            None => "accesses memory".to_owned(),
        }
    }

    /// Related places, each with a note.
    pub fn places(
        &self,
        number: impl Fn(u16) -> u16,
        mut name: impl FnMut(u64) -> String,
    ) -> Vec<(String, String)> {
        let does = match (self.kind, self.access) {
            (MisuseKind::UninitialisedRead, _) => "reads it here",
            (_, Some((_, AccessKind::Update))) => "has stored to it here",
            (_, Some(_)) => "accesses it here",
            (MisuseKind::UnlockNotHeld, _) => "unlocks it here",
            (MisuseKind::UseAfterDestroy, _) => "uses it here",
            (MisuseKind::DestroyInUse, _) => "destroys it here",
            (_, None) => "frees it here",
        };
        let is_lock = self.kind == MisuseKind::UseAfterDestroy;
        let freed = if is_lock { "destroyed it here" } else { "freed it here" };
        let spots = [(Some(self.at), does), (self.freed, freed), (self.made, "allocated it here")];
        let known = spots.into_iter().filter_map(|(spot, does)| Some((spot?, does)));
        known
            .filter(|(spot, _)| spot.place != 0)
            .map(|(spot, does)| (name(spot.place), format!("thread {} {does}", number(spot.thread))))
            .collect()
    }
}

fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}
