//! Requirements on single processes, each kept once.
//!
//! Few different processes (kind, state, word) occur in a search, and each of them in many elements. So each is kept
//! once, with what comparisons ask of it, and elements only refer to it. A step changes one process, or a few of them;
//! the others stay the same entries.
//!
//! *Invariant.* Two processes from one table are equal iff they are the same entry. All setups for one program share a
//! table.

use crate::symbol::Symbol;
use crate::values::ValueSets;
use hashbrown::HashTable;
use palisade_automata::StateId;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::cell::{Cell, Ref, RefCell};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// A word over messages, newest first.
pub(crate) type Word = SmallVec<[Symbol; 6]>;

/// What is required of one process.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Requirement {
    /// Which automaton.
    pub kind: u32,
    /// Its state.
    pub state: StateId,
    /// The required content of its buffer.
    pub word: Word,
}

impl Clone for Requirement {
    fn clone(&self) -> Requirement {
        // Letters are copied as a block, which the derived code does not do.
        Requirement { word: Word::from_slice(&self.word), ..*self }
    }
}

impl Requirement {
    /// Kind and state in one number. They have the same order.
    pub fn key(&self) -> u64 {
        u64::from(self.kind) << 32 | u64::from(self.state.0)
    }

    /// Bits for the letters (several letters share a bit). A process below this one has no other bits.
    fn letters(&self, sets: &ValueSets) -> u64 {
        self.word.iter().fold(0, |letters, symbol| {
            let place = [self.kind, self.state.0, u32::from(symbol.is_own())];
            let hash = place
                .iter()
                .fold(symbol.cell().0, |hash, part| (hash.rotate_left(5) ^ part).wrapping_mul(0x9E37_79B9));
            let lacking = sets.filter(symbol.cell(), symbol.set());
            letters | 1 << (hash >> 26) | lacking.rotate_left(hash >> 20)
        })
    }
}

/// An entry of a [`ProcessTable`].
#[derive(Clone, Debug)]
pub(crate) struct Process(Rc<Entry>);

#[derive(Debug)]
struct Entry {
    requirement: Requirement,
    number: u32,
    letters: u64,
}

impl Process {
    /// Its number in the table.
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Bits for its letters.
    pub fn letters(&self) -> u64 {
        self.0.letters
    }
}

impl Deref for Process {
    type Target = Requirement;

    fn deref(&self) -> &Requirement {
        &self.0.requirement
    }
}

impl PartialEq for Process {
    fn eq(&self, other: &Process) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Process {}

impl PartialOrd for Process {
    fn partial_cmp(&self, other: &Process) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Process {
    fn cmp(&self, other: &Process) -> Ordering {
        match self == other {
            true => Ordering::Equal,
            false => self.0.requirement.cmp(&other.0.requirement),
        }
    }
}

impl Hash for Process {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.requirement.hash(state);
    }
}

/// A process of an element that is being changed.
#[derive(Clone)]
pub(crate) enum Part {
    Same(Process),
    Changed(Box<Requirement>),
}

impl Part {
    /// To change it.
    pub fn change(&mut self) -> &mut Requirement {
        if let Part::Same(process) = self {
            *self = Part::Changed(Box::new(Requirement::clone(process)));
        }
        match self {
            Part::Changed(requirement) => requirement,
            Part::Same(_) => unreachable!("it was replaced"),
        }
    }
}

impl Deref for Part {
    type Target = Requirement;

    fn deref(&self) -> &Requirement {
        match self {
            Part::Same(process) => process,
            Part::Changed(requirement) => requirement,
        }
    }
}

/// The processes that occurred.
#[derive(Debug, Default)]
pub(crate) struct ProcessTable {
    entries: RefCell<Vec<Process>>,
    /// Their hashes and numbers.
    numbers: RefCell<HashTable<(u32, u32)>>,
    /// How many were counted by [`ProcessTable::new_bytes`].
    counted: Cell<usize>,
}

impl ProcessTable {
    /// The entry for a process.
    pub fn keep(&self, requirement: &Requirement, sets: &ValueSets) -> Process {
        let mut hasher = FxHasher::default();
        requirement.hash(&mut hasher);
        let hash = (hasher.finish() >> 32) as u32;
        let mut entries = self.entries.borrow_mut();
        let mut numbers = self.numbers.borrow_mut();
        let same = |&(other, number): &(u32, u32)| {
            other == hash && entries[number as usize].0.requirement == *requirement
        };
        if let Some(&(_, number)) = numbers.find(spread(hash), same) {
            return entries[number as usize].clone();
        }
        let number = u32::try_from(entries.len()).expect("fewer than 2^32 processes fit into memory");
        let letters = requirement.letters(sets);
        let process = Process(Rc::new(Entry { requirement: requirement.clone(), number, letters }));
        entries.push(process.clone());
        numbers.insert_unique(spread(hash), (hash, number), |&(hash, _)| spread(hash));
        process
    }

    /// All entries, by their numbers.
    pub fn entries(&self) -> Ref<'_, [Process]> {
        Ref::map(self.entries.borrow(), Vec::as_slice)
    }

    /// The memory of the entries that were added since this was last asked, approximately.
    pub fn new_bytes(&self) -> usize {
        let all = self.entries.borrow().len();
        let new = all - self.counted.replace(all);
        new * (size_of::<Entry>() + 4 * size_of::<usize>() + 4 * size_of::<u32>())
    }
}

/// A hash of all bits of a table's entry.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
