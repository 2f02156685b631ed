//! Events: what an execution did to memory, in the order in which it did it.

use palisade_base::define_id;

define_id!(
    /// A process (thread) of the execution, by any small number that whoever records it likes. See [`MAX_PROCESSES`].
    Process
);
define_id!(
    /// An instruction of the program, by its index in a [table of instructions](crate::Instructions).
    Instruction
);

/// Process numbers are below this.
pub const MAX_PROCESSES: u32 = 4096;

/// The largest access, in bytes: that of the widest vector instructions. Larger copies are not atomic on any machine and are several events.
pub const LARGEST_ACCESS: u32 = 64;

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// Whose.
    pub process: Process,
    /// By which instruction.
    pub instruction: Instruction,
    /// What.
    pub action: Action,
}

/// What an event does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// It accesses memory.
    Access(Access, Bytes),
    /// A full fence: all stores before it reach memory before anything after it happens.
    Fence,
    /// A store-store fence: the stores before it reach memory before those after it (matters under PSO only).
    StoreFence,
    /// It starts a process. What it did before happens before what that process does; its stores may still be pending.
    Spawn(Process),
    /// It starts a process by way of the operating system: a full fence, then [`Action::Spawn`].
    Start(Process),
    /// It has waited for a process to end. All of that process happens before what comes now, and its stores have reached memory.
    Join(Process),
    /// Memory is given back: what was at these bytes is gone, and what will be there is something else.
    Free {
        /// The first byte.
        address: u64,
        /// How many.
        size: u64,
    },
}

/// How memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A locked instruction that reads and writes.
    Locked,
    /// A locked instruction that wrote nothing: a compare-and-swap that failed.
    LockedLoad,
}

impl Access {
    /// Whether it writes.
    pub fn writes(self) -> bool {
        matches!(self, Access::Store | Access::Locked)
    }

    /// Whether it waits for pending stores.
    pub fn locks(self) -> bool {
        matches!(self, Access::Locked | Access::LockedLoad)
    }
}

/// A range of bytes that one event accesses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bytes {
    /// The first.
    pub address: u64,
    /// How many: from 1 to [`LARGEST_ACCESS`]. The last byte is not beyond the end of the address space.
    pub size: u32,
}

impl Bytes {
    /// A range; `None` if it is empty, larger than [`LARGEST_ACCESS`] or runs over the end of the address space.
    pub fn new(address: u64, size: u32) -> Option<Bytes> {
        let fits = (1..=LARGEST_ACCESS).contains(&size) && address.checked_add(u64::from(size)).is_some();
        fits.then_some(Bytes { address, size })
    }

    /// One past the last byte.
    pub fn end(self) -> u64 {
        self.address + u64::from(self.size)
    }
}
