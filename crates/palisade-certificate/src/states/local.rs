//! Where a thread is on its own: whatever it can do there concerns nobody else, and no property sees it.

use crate::seen::{Seen, seen};
use palisade_base::Id;
use palisade_program::running::{Code, CodeId, Edge, EdgeId, Instr, Location, System};

/// Where threads are on their own, for each location of each code.
pub(super) struct Local(Vec<Vec<bool>>);

impl Local {
    pub fn new(system: &System) -> Local {
        let seen = seen(system, |_| true);
        Local(system.codes.iter().zip(&seen).map(|(code, seen)| alone(code, seen)).collect())
    }

    pub fn is_alone(&self, code: CodeId, location: Location) -> bool {
        self.0[code.index()][location.index()]
    }
}

/// The locations of a code where a thread is on its own, and from where it comes to one where it is not, or cannot go on, after a few steps: cycles are left out.
fn alone(code: &Code, seen: &Seen) -> Vec<bool> {
    let locations = || (0..code.location_count()).map(Location::from_index);
    let leads_on = |edge: &Edge| {
        let unseen = match &edge.instr {
            Instr::Nop | Instr::Assume(_) | Instr::Assert(_) => true,
            Instr::Assign(register, _) | Instr::Havoc(register, _, _) => !seen.registers.contains(register),
            _ => false,
        };
        unseen && !seen.locations.contains(&edge.source) && !seen.locations.contains(&edge.target)
    };
    let edges = |location: Location| code.edges_from(location).map(|edge| &code.edges()[EdgeId(edge)]);
    // Where there are no edges there is nothing to do, either.
    let on_its_own: Vec<bool> = locations().map(|location| edges(location).all(leads_on)).collect();
    // From the last steps to the first.
    let mut alone = vec![false; on_its_own.len()];
    let mut grown = true;
    while grown {
        grown = false;
        for location in locations() {
            let ends = |edge: &Edge| !on_its_own[edge.target.index()] || alone[edge.target.index()];
            if on_its_own[location.index()] && !alone[location.index()] && edges(location).all(ends) {
                alone[location.index()] = true;
                grown = true;
            }
        }
    }
    alone
}
