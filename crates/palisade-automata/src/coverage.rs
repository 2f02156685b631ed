//! Which steps of a program runs take: the edges taken, the roles started, and whether a run ends.
//!
//! Searches fill it in. Depending on the search it is exact, a part of what runs do (a search that was cut
//! off), or more than they do (automata in which a thread may read any value that its cell may hold).

use palisade_base::{Id, IdVec};
use palisade_memory::{Action, Thread};
use palisade_program::running::{CodeId, EdgeId, Instr, Location, RoleId, System};

/// What runs do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    taken: IdVec<CodeId, Vec<bool>>,
    /// For each location, whether a procedure returns to it.
    returned: IdVec<CodeId, Vec<bool>>,
    started: IdVec<RoleId, bool>,
    /// Whether a state is reached in which all threads have ended and all buffers are empty.
    pub ends: bool,
}

impl Coverage {
    /// No step. The threads that exist at the start are started.
    pub fn new(system: &System) -> Coverage {
        let taken = system.codes.iter().map(|code| vec![false; code.edges().len()]).collect();
        let returned = system.codes.iter().map(|code| vec![false; code.location_count()]).collect();
        let mut started: IdVec<RoleId, bool> = system.roles.iter().map(|_| false).collect();
        system.instances.iter().for_each(|instance| started[instance.role] = true);
        Coverage { taken, returned, started, ends: false }
    }

    /// A thread takes a step.
    pub fn step(&mut self, system: &System, before: &Thread, action: Action, after: &Thread) {
        let Action::Execute { edge, .. } = action else { return };
        let code = before.top().code;
        self.taken[code][edge.index()] = true;
        if matches!(system.codes[code].edges()[edge].instr, Instr::Return(_))
            && after.frames.len() < before.frames.len()
        {
            self.returned[after.top().code][after.top().location.index()] = true;
        }
    }

    /// A thread of a role is started.
    pub fn start(&mut self, role: RoleId) {
        self.started[role] = true;
    }

    /// Whether a thread takes an edge.
    pub fn is_taken(&self, code: CodeId, edge: EdgeId) -> bool {
        self.taken[code][edge.index()]
    }

    /// Whether a procedure returns to a location.
    pub fn is_returned_to(&self, code: CodeId, location: Location) -> bool {
        self.returned[code][location.index()]
    }

    /// Whether a thread of a role is started.
    pub fn is_started(&self, role: RoleId) -> bool {
        self.started[role]
    }

    /// Notes that each of these codes, which have the same edges, takes the steps that one of them takes.
    pub fn share(&mut self, codes: &[CodeId]) {
        let Some((&first, others)) = codes.split_first() else { return };
        let mut taken = self.taken[first].clone();
        let mut add =
            |code: CodeId| taken.iter_mut().zip(&self.taken[code]).for_each(|(any, one)| *any |= one);
        others.iter().for_each(|&code| add(code));
        codes.iter().for_each(|&code| self.taken[code].clone_from(&taken));
    }

    /// Adds what another search of the same program found.
    pub fn add(&mut self, other: &Coverage) {
        for (mine, theirs) in self.taken.iter_mut().zip(&other.taken) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
        }
        for (mine, theirs) in self.returned.iter_mut().zip(&other.returned) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
        }
        self.started.iter_mut().zip(&other.started).for_each(|(mine, theirs)| *mine |= theirs);
        self.ends |= other.ends;
    }
}
