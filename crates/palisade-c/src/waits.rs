//! What the waits of a translated program are for, so that they can be described in C terms.

use palisade_base::Span;

/// What a wait is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wait {
    /// A mutex that is held.
    Mutex,
    /// A reader-writer lock that is held.
    ReadWriteLock,
    /// A signal of a condition variable.
    Condition,
    /// A semaphore that is 0.
    Semaphore,
    /// Other threads that have not come to a barrier.
    Barrier,
    /// A call of `unpark` for this thread.
    Unpark,
}

/// What a cell of the translation says about threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ThreadCell {
    /// Whether a thread was started.
    Started,
    /// How many of these threads have ended.
    Ended(Vec<String>),
    /// Whether a thread was detached.
    Detached,
}

/// The waits of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WaitTable {
    /// Calls that wait, by their place.
    pub(crate) calls: Vec<(Span, Wait)>,
    /// Cells of the translation, by their address as [`Objects::decode`](crate::Objects::decode) takes it.
    pub(crate) cells: Vec<(i64, ThreadCell)>,
    /// The threads that can hold mutexes, in the order of the numbers that they store there.
    pub(crate) owners: Vec<String>,
}

impl WaitTable {
    /// What the call at a place waits for.
    pub fn call(&self, place: Span) -> Option<Wait> {
        self.calls.iter().find(|(span, _)| *span == place).map(|(_, wait)| *wait)
    }

    /// What a cell says about threads.
    pub fn cell(&self, key: i64) -> Option<&ThreadCell> {
        self.cells.iter().find(|(known, _)| *known == key).map(|(_, cell)| cell)
    }

    /// Whether the translation made the cell.
    pub fn is_made(&self, key: i64) -> bool {
        self.cell(key).is_some()
    }

    /// The thread that holds a mutex whose first word is this.
    pub fn holder(&self, word: i64) -> Option<&str> {
        let number = usize::try_from(word & crate::library::OWNER).ok()?;
        self.owners.get(number.checked_sub(1)?).map(String::as_str)
    }
}
