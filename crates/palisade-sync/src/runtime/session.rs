//! What stays the same over the executions of a session: names of instructions and numbers of threads.

use palisade_monitor::Instruction;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::panic::Location;

/// An instruction: a place in the source, and what is done there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The file, as the compiler was told its name.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The operation, such as `store`.
    pub operation: &'static str,
}

impl Place {
    /// What is done at a place.
    pub(crate) fn new(location: &'static Location<'static>, operation: &'static str) -> Place {
        Place { file: location.file(), line: location.line(), column: location.column(), operation }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// See the header.
#[derive(Debug, Default)]
pub struct Session {
    places: Vec<Place>,
    by_place: FxHashMap<Place, Instruction>,
    threads: FxHashMap<(usize, u32), usize>,
    /// Loops that were seen to go on by themselves.
    pub no_waits: FxHashSet<Instruction>,
    /// Loops that were taken as waits.
    pub waits: BTreeSet<Instruction>,
}

impl Session {
    /// The number of an instruction.
    pub fn instruction(&mut self, place: Place) -> Instruction {
        *self.by_place.entry(place).or_insert_with(|| {
            self.places.push(place);
            Instruction(self.places.len() as u32 - 1)
        })
    }

    /// Where an instruction is.
    pub fn place(&self, instruction: Instruction) -> Place {
        self.places[instruction.0 as usize]
    }

    /// The number of the thread that another starts, as which of its children.
    pub fn thread(&mut self, parent: usize, child: u32) -> usize {
        let next = self.threads.len() + 1;
        *self.threads.entry((parent, child)).or_insert(next)
    }
}
