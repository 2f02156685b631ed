//! Events: what an execution did to memory, in order.

use palisade_base::define_id;

define_id!(
    /// A process (thread) of the execution. The recorder may choose any small number for it. See
    /// [`MAX_PROCESSES`].
    Process
);
define_id!(
    /// An instruction of the program, by its index in a [table of instructions](crate::Instructions).
    Instruction
);

/// Process numbers are below this.
pub const MAX_PROCESSES: u32 = 4096;

/// The largest access, in bytes: that of the widest vector instructions. Larger copies are not atomic on any
/// machine; they are recorded as several events.
pub const LARGEST_ACCESS: u32 = 64;

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// The process.
    pub process: Process,
    /// The instruction.
    pub instruction: Instruction,
    /// The action.
    pub action: Action,
}

/// What an event does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// It accesses memory.
    Access(Access, Bytes),
    /// A full fence: all stores before it reach memory before anything after it happens.
    Fence,
    /// A store-store fence: the stores before it reach memory before those after it. It matters only under
    /// PSO.
    StoreFence,
    /// It starts a process. What it did before happens before everything that process does. Its stores may
    /// still be pending.
    Spawn(Process),
    /// It starts a process through the operating system: a full fence, then [`Action::Spawn`].
    Start(Process),
    /// It has waited for a process to end. Everything in that process happens before what comes now, and its
    /// stores have reached memory.
    Join(Process),
    /// Memory is freed. The old content of these bytes is gone, and later accesses to them are unrelated to
    /// it.
    Free {
        /// The first byte.
        address: u64,
        /// The number of bytes.
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
    /// The first byte.
    pub address: u64,
    /// The number of bytes, from 1 to [`LARGEST_ACCESS`]. The last byte is not beyond the end of the address
    /// space.
    pub size: u32,
}

impl Bytes {
    /// A range of bytes; `None` if it is empty, larger than [`LARGEST_ACCESS`] or extends past the end of the
    /// address space.
    pub fn new(address: u64, size: u32) -> Option<Bytes> {
        let fits = (1..=LARGEST_ACCESS).contains(&size) && address.checked_add(u64::from(size)).is_some();
        fits.then_some(Bytes { address, size })
    }

    /// One past the last byte.
    pub fn end(self) -> u64 {
        self.address + u64::from(self.size)
    }
}
