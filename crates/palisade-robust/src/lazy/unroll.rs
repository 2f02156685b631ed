//! Bounded unrolling: a program without loops, in which every loop is followed for a bounded number of
//! rounds.
//!
//! Each location is copied once per round. An edge that leads back to a location on the path to it (a back
//! edge of a depth-first search) leads to the next round. In the last round it is removed. A location that
//! properties refer to stands for any of its copies. All rounds share the same exit.
//!
//! *Guarantee.* Every run of the unrolled program is a run of the program. Every run of the program in which
//! no thread passes more back edges than the bound allows is a run of the unrolled program.

use crate::lazy::draft::{Draft, Tag};
use palisade_base::{Id, IdVec, limits};
use palisade_program::running::{BinaryOp, Code, CodeId, Condition, Edge, EdgeId, Instr, Location, System};

/// For each code, which of its edges are back edges.
pub(crate) fn back_edges(system: &System) -> IdVec<CodeId, Vec<bool>> {
    system.codes.iter().map(back_edges_of).collect()
}

/// Whether the program has loops or recursion, or may start threads forever.
pub(crate) fn is_cyclic(system: &System) -> bool {
    let calls = |instr: &Instr| matches!(instr, Instr::Call { .. });
    let starts = |instr: &Instr| matches!(instr, Instr::Spawn(..));
    let any = |what: &dyn Fn(&Instr) -> bool| {
        system.codes.iter().any(|code| code.edges().iter().any(|edge| what(&edge.instr)))
    };
    back_edges(system).iter().flatten().any(|&back| back) || any(&calls) || any(&starts)
}

fn back_edges_of(code: &Code) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Colour {
        New,
        OnPath,
        Done,
    }
    let mut back = vec![false; code.edges().len()];
    let mut colours = vec![Colour::New; code.location_count()];
    let mut path: Vec<(Location, u32)> = vec![(code.entry, code.edges_from(code.entry).start)];
    colours[code.entry.index()] = Colour::OnPath;
    while let Some((location, next)) = path.last_mut() {
        limits::checkpoint();
        let edges = code.edges_from(*location);
        if *next >= edges.end {
            colours[location.index()] = Colour::Done;
            path.pop();
            continue;
        }
        let edge = EdgeId(*next);
        *next += 1;
        let target = code.edges()[edge].target;
        match colours[target.index()] {
            Colour::OnPath => back[edge.index()] = true,
            Colour::Done => {}
            Colour::New => {
                colours[target.index()] = Colour::OnPath;
                path.push((target, code.edges_from(target).start));
            }
        }
    }
    back
}

/// The program with every loop followed up to this many rounds.
pub(crate) fn unroll(system: &System, rounds: usize) -> Draft {
    let mut draft = Draft::new(system);
    let mut copies: IdVec<CodeId, Vec<Vec<Location>>> = IdVec::new();
    for (id, back) in back_edges(system).iter_enumerated() {
        let code = &system.codes[id];
        let unrolled = draft.code_mut(id);
        // The copy of each location in each round.
        let mut at: Vec<Vec<Location>> = vec![(0..code.location_count()).map(Location::from_index).collect()];
        for _ in 0..if back.contains(&true) { rounds } else { 0 } {
            let mut round: Vec<Location> = (0..code.location_count()).map(|_| unrolled.location()).collect();
            round[code.exit.index()] = code.exit;
            at.push(round);
        }
        unrolled.edges.clear();
        for (round, here) in at.iter().enumerate() {
            for (number, edge) in code.edges().iter_enumerated() {
                limits::checkpoint();
                let target = if back[number.index()] { at.get(round + 1) } else { Some(here) };
                let Some(target) = target else { continue };
                let updates = matches!(edge.instr, Instr::Store(..));
                let tag = Tag { execute: Some(number), updates, only_if_faulting: false };
                let (source, target) = (here[edge.source.index()], target[edge.target.index()]);
                unrolled.add(Edge { source, target, ..edge.clone() }, tag);
            }
        }
        copies.push(at);
    }
    let roles: Vec<CodeId> = system.roles.iter().map(|role| role.code).collect();
    let instances: Vec<CodeId> =
        system.instances.iter().map(|instance| roles[instance.role.index()]).collect();
    for property in &mut draft.system_mut().properties {
        widen(&mut property.bad, &copies, &roles, &instances);
    }
    draft
}

/// Makes a condition accept any copy of a location.
fn widen(
    condition: &mut Condition,
    copies: &IdVec<CodeId, Vec<Vec<Location>>>,
    roles: &[CodeId],
    instances: &[CodeId],
) {
    match condition {
        Condition::At(thread, location) => {
            let (thread, location) = (*thread, *location);
            let mut places: Vec<Location> =
                copies[instances[thread.index()]].iter().map(|round| round[location.index()]).collect();
            places.dedup();
            let any = places.into_iter().map(|place| Condition::At(thread, place));
            let or = |a, b| Condition::Binary(BinaryOp::Or, Box::new(a), Box::new(b));
            *condition = any.reduce(or).expect("there is at least one round");
        }
        Condition::Count(places) => {
            let mut all: Vec<_> = places
                .iter()
                .flat_map(|&(role, location)| {
                    let rounds = copies[roles[role.index()]].iter();
                    rounds.map(move |round| (role, round[location.index()]))
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            *places = all;
        }
        Condition::Unary(_, a) => widen(a, copies, roles, instances),
        Condition::Binary(_, a, b) => {
            widen(a, copies, roles, instances);
            widen(b, copies, roles, instances);
        }
        Condition::Const(_) | Condition::Cell(_) | Condition::Register(..) => {}
    }
}
