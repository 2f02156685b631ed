//! The locations that control may reach repeatedly.
//!
//! These are the locations on a cycle of their code, all locations of a procedure that is called from such a
//! location, and all locations of a recursive procedure.

use palisade_base::{Id, IdVec, limits};
use palisade_program::running::{Code, CodeId, Instr, Location, System};
use rustc_hash::FxHashSet;

/// The locations that are repeated.
pub(crate) struct Repeated {
    on_cycle: FxHashSet<(CodeId, Location)>,
    whole: IdVec<CodeId, bool>,
}

impl Repeated {
    pub(crate) fn new(system: &System) -> Repeated {
        let mut on_cycle = FxHashSet::default();
        let mut calls = Vec::new();
        for (id, code) in system.codes.iter_enumerated() {
            for index in 0..code.location_count() {
                limits::checkpoint();
                let location = Location::from_index(index);
                if reaches_itself(code, location) {
                    on_cycle.insert((id, location));
                }
            }
            for edge in code.edges().iter() {
                if let Instr::Call { code: callee, .. } = edge.instr {
                    calls.push((id, edge.source, callee));
                }
            }
        }
        let mut whole: IdVec<CodeId, bool> = system.codes.iter().map(|_| false).collect();
        let graph = |from: CodeId| calls.iter().filter(move |call| call.0 == from).map(|call| call.2);
        for id in system.codes.ids() {
            let mut open: Vec<CodeId> = graph(id).collect();
            let mut seen: FxHashSet<CodeId> = FxHashSet::default();
            while let Some(callee) = open.pop() {
                if seen.insert(callee) {
                    open.extend(graph(callee));
                }
            }
            whole[id] = seen.contains(&id);
        }
        loop {
            let again = |&&(caller, location, callee): &&(CodeId, Location, CodeId)| {
                !whole[callee] && (whole[caller] || on_cycle.contains(&(caller, location)))
            };
            let Some(&(_, _, callee)) = calls.iter().find(again) else { break };
            whole[callee] = true;
        }
        Repeated { on_cycle, whole }
    }

    pub(crate) fn contains(&self, code: CodeId, location: Location) -> bool {
        self.whole[code] || self.on_cycle.contains(&(code, location))
    }
}

fn reaches_itself(code: &Code, location: Location) -> bool {
    let targets = |from: Location| {
        code.edges_from(from).map(|edge| code.edges()[palisade_program::running::EdgeId(edge)].target)
    };
    let mut open: Vec<Location> = targets(location).collect();
    let mut seen: FxHashSet<Location> = FxHashSet::default();
    while let Some(next) = open.pop() {
        limits::checkpoint();
        if next == location {
            return true;
        }
        if seen.insert(next) {
            open.extend(targets(next));
        }
    }
    false
}
