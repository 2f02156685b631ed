//! The log: what the runtime inside a program reports about an execution.
//!
//! A log is a sequence of records of 16 bytes. A record is two 64-bit numbers, the lowest byte first.
//! `runtime/log.h` has the same definitions in C.
//!
//! | bits | first number | second number |
//! |---|---|---|
//! | 0 to 47 | address | return address of the instruction's call into the runtime |
//! | 48 to 55 | size in bytes | low 8 bits of the thread |
//! | 56 to 60, 56 to 59 | kind | high 4 bits of the thread |
//! | 61 to 63, 60 to 63 | memory order | flags |
//!
//! *Invariants.*
//! 1. Every decision of the scheduler yields exactly one record with [`CHOSEN`]. It belongs to the chosen
//!    thread, or to its buffer ([`RecordKind::Update`]). So these records are the schedule.
//! 2. If footprints are requested, a record with [`PENDING`] shows what a thread will do when it is chosen
//!    next. It comes before the next decision. It comes again when the thread becomes ready or has to wait
//!    ([`WAITS`]). If the step accesses more than one record can say, records with both flags follow.
//! 3. In a search, a thread has the same number in all executions: it is identified by its parent and its
//!    index among the parent's children. Otherwise threads are numbered in the order in which they are
//!    started.

/// The size of a record in bytes.
pub const RECORD: usize = 16;

/// The record belongs to a thread that the scheduler chose. Without this flag, a record belongs to the step
/// before.
pub const CHOSEN: u8 = 1;
/// It has not happened yet: the thread will do it when it is chosen.
pub const PENDING: u8 = 2;
/// With [`PENDING`]: the thread cannot be chosen now.
pub const WAITS: u8 = 4;
/// With [`PENDING`]: the step is one that may have to wait (taking a lock, joining a thread).
pub const MAY_WAIT: u8 = 8;

/// Without [`PENDING`]: the store waits in the buffer of its thread.
pub const BUFFERED: u8 = WAITS;

/// The size in a record of kind [`RecordKind::Free`] that frees nothing: a step of runtime/order.c.
pub const ORDERED: u8 = 2;

/// What a record describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RecordKind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A locked instruction that reads and writes. Operations on locks, semaphores and similar objects are
    /// recorded this way, at the address of the object.
    Locked,
    /// A locked instruction that wrote nothing.
    LockedLoad,
    /// A fence. Depending on its order, it may matter only to compilers and happens-before.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// Starts the thread whose number is in the address.
    Start,
    /// Has waited for the thread whose number is in the address.
    Join,
    /// Memory is freed. The size is in the field that holds the return address in other records, except with
    /// [`CHOSEN`] and not with [`PENDING`], and in the announcement of the step: these name the call.
    Free,
    /// A step without any effect on memory: sleeping, yielding, the end of a wait.
    Pause,
    /// The thread has ended.
    Ended,
    /// Something happened that cannot be followed; the address says what.
    Note,
    /// A thread that cannot continue when no thread can. The fields are as with [`PENDING`].
    Stuck,
    /// The process ends: the address holds the exit code.
    Exit,
    /// Text follows, padded to whole records. The address holds its length in bytes; the size says what it is
    /// about.
    Text,
    /// The execution is over. A text that describes how it ended follows immediately.
    End,
    /// A pending store of the thread reaches memory. The other fields are those of the store. Stores of the same
    /// thread to the same address reach memory in order.
    Update,
    /// Memory is used in a way that is an error. The size says what it is about: see [`crate::misuse`].
    Misuse,
    /// What a call site stands for: the address is the call site, and the place is one of the return addresses. They
    /// come one after the other, that of the access first; the size is the index. From then on, the call site is used
    /// as a place.
    Site,
    /// The thread gets a nondeterministic value. Bits 0 to 23 of the address have the number of values that it
    /// could be, and bits 24 to 47 which of them it is. The number is 0 if it depends on the seed.
    Choice,
    /// A value in memory: bits 0 to 47 are in the address, and the others in the place. The size is in bytes.
    ///
    /// With [`PENDING`] and [`CHOSEN`], the announced step writes only if memory holds this value. If the size is 0, it
    /// writes only under some other condition. A step that turns out not to write is a [`RecordKind::LockedLoad`].
    ///
    /// Without flags, the next record is a step that writes memory, and this is what it replaces. This is logged in a
    /// search, for addresses at which memory is compared.
    Value,
}

impl RecordKind {
    const ALL: [RecordKind; 21] = [
        RecordKind::Load,
        RecordKind::Store,
        RecordKind::Locked,
        RecordKind::LockedLoad,
        RecordKind::Fence,
        RecordKind::StoreFence,
        RecordKind::Start,
        RecordKind::Join,
        RecordKind::Free,
        RecordKind::Pause,
        RecordKind::Ended,
        RecordKind::Note,
        RecordKind::Stuck,
        RecordKind::Exit,
        RecordKind::Text,
        RecordKind::End,
        RecordKind::Update,
        RecordKind::Misuse,
        RecordKind::Site,
        RecordKind::Choice,
        RecordKind::Value,
    ];
}

/// How an access takes part in synchronisation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Order {
    /// It does not.
    Plain,
    /// An access of a `volatile` object.
    Volatile,
    /// Atomic, without further guarantees.
    Relaxed,
    /// It sees what happened before the store that it sees.
    Acquire,
    /// What happened before it is visible to every access that sees it.
    Release,
    /// Both.
    AcqRel,
    /// Both, and in a single order with all other accesses of this kind.
    SeqCst,
}

impl Order {
    pub(crate) const ALL: [Order; 7] = [
        Order::Plain,
        Order::Volatile,
        Order::Relaxed,
        Order::Acquire,
        Order::Release,
        Order::AcqRel,
        Order::SeqCst,
    ];

    /// Whether what it sees happens before what comes next.
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    /// Whether what came before happens before what sees it.
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

/// A record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// What it describes.
    pub kind: RecordKind,
    /// How it synchronises.
    pub order: Order,
    /// The thread.
    pub thread: u16,
    /// [`CHOSEN`] and the other flags.
    pub flags: u8,
    /// How many bytes are accessed.
    pub size: u8,
    /// The address.
    pub address: u64,
    /// Where in the program the runtime was called.
    pub place: u64,
}

const ADDRESS: u64 = (1 << 48) - 1;

const CHOICE_BITS: u32 = 24;
const CHOICE: u64 = (1 << CHOICE_BITS) - 1;

impl Record {
    /// Decodes a record; `None` if the bytes are not a valid one.
    pub fn decode(bytes: &[u8; RECORD]) -> Option<Record> {
        let number = |at: usize| {
            let bytes: [u8; 8] = bytes[at..at + 8].try_into().expect("half of a record is eight bytes");
            u64::from_le_bytes(bytes)
        };
        let (first, second) = (number(0), number(8));
        Some(Record {
            kind: *RecordKind::ALL.get((first >> 56 & 31) as usize)?,
            order: *Order::ALL.get((first >> 61) as usize)?,
            thread: (second >> 48 & 0xfff) as u16,
            flags: (second >> 60) as u8,
            size: (first >> 48 & 0xff) as u8,
            address: first & ADDRESS,
            place: second & ADDRESS,
        })
    }

    /// The bytes of a record.
    pub fn encode(&self) -> [u8; RECORD] {
        let order = Order::ALL.iter().position(|order| *order == self.order).expect("all orders are listed");
        let first = self.address & ADDRESS
            | u64::from(self.size) << 48
            | (self.kind as u64) << 56
            | (order as u64) << 61;
        let second =
            self.place & ADDRESS | u64::from(self.thread & 0xfff) << 48 | u64::from(self.flags) << 60;
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..].copy_from_slice(&second.to_le_bytes());
        bytes
    }

    /// Whether the scheduler chose the thread for this record.
    pub fn is_chosen(&self) -> bool {
        self.flags & (CHOSEN | PENDING) == CHOSEN
    }

    /// Whether it says more about a step that has not happened yet: it accesses this range, too.
    pub fn continues(&self) -> bool {
        self.flags & (CHOSEN | PENDING) == CHOSEN | PENDING
    }

    /// Whether it is a store that waits in the buffer of its thread.
    pub fn is_buffered(&self) -> bool {
        self.kind == RecordKind::Store && self.flags & (PENDING | BUFFERED) == BUFFERED
    }

    /// The number of values that are possible, and which of them the thread gets, if it gets one that a search
    /// decides.
    pub fn choice(&self) -> Option<(usize, usize)> {
        let (count, which) = (self.address & CHOICE, self.address >> CHOICE_BITS);
        (self.kind == RecordKind::Choice && count > 0).then_some((count as usize, which as usize))
    }

    /// The number in a record of a value, if it has one.
    pub fn value(&self) -> Option<u64> {
        (self.kind == RecordKind::Value && self.size > 0).then_some(self.address | self.place << 48)
    }

    /// Whether it has not happened yet.
    pub fn is_pending(&self) -> bool {
        self.flags & PENDING != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive() {
        for kind in RecordKind::ALL {
            for order in Order::ALL {
                let record = Record {
                    kind,
                    order,
                    thread: 4095,
                    flags: CHOSEN | MAY_WAIT,
                    size: 64,
                    address: 0x7fff_ffff_fff8,
                    place: 0x5555_5555_5123,
                };
                assert_eq!(Record::decode(&record.encode()), Some(record));
            }
        }
        assert_eq!(Record::decode(&[0xff; RECORD]), None);
    }
}
