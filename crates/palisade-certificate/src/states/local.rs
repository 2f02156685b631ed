//! Where a thread is on its own: its steps there do not affect other threads, and no property sees them.

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

/// The locations of a code where a thread is on its own and which it leaves after a bounded number of steps,
/// either because it reaches a location where it is not on its own or because it cannot continue. Cycles are
/// left out.
fn alone(code: &Code, seen: &Seen) -> Vec<bool> {
    let locations = || (0..code.location_count()).map(Location::from_index);
    let leads_on = |edge: &Edge| {
        let unseen = match &edge.instr {
            Instr::Nop | Instr::Assume(_) | Instr::Assert(..) => true,
            Instr::Assign(register, _) | Instr::Havoc(register, _, _) => !seen.registers.contains(register),
            _ => false,
        };
        unseen && !seen.locations.contains(&edge.source) && !seen.locations.contains(&edge.target)
    };
    let edges = |location: Location| code.edges_from(location).map(|edge| &code.edges()[EdgeId(edge)]);
    // Locations without edges count too, since a thread has nothing to do there.
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
