//! Which bounds are enough, so that a program that is safe within them is safe.
//!
//! *Rounds.* Take a run under TSO to a bad state. Each step of a thread is either local (registers, stores
//! into the buffer, fences) or an *access* (a load, a store reaching memory, a locked instruction, an atomic
//! block, a start of a thread). Local steps commute with the steps of others. So they can be moved right
//! before the next access of their thread, or after its last one. Then every round has an access, and a
//! thread has at most as many rounds as accesses (or one round, if it has no accesses). Without loops and
//! recursion, the longest path of its code bounds the number of accesses.
//!
//! *Store age.* A store into the buffer also commutes with older stores of the same thread reaching memory.
//! So it can be moved to a later point:
//! - right before the next load (or start of a thread) in program order, if that comes before the store
//!   reaches memory;
//! - otherwise, right before the store reaches memory;
//! - if it never reaches memory, to the end of the run. There everything can be written to memory, because no
//!   property on memory is judged while a store is pending.
//!
//! From that load on, the thread's accesses are loads and starts of threads after the store, and older stores
//! reaching memory. All of them lie on one path of the code that passes no fence, locked instruction or
//! atomic block, since these wait for the store. So the greatest number of loads, starts and other stores on
//! such a path is enough. If no load can follow a store on such a path, 0 is enough. This also holds for
//! loops, if every loop that could run forever on such a path is cut by a fence.

use palisade_base::{Id, limits};
use palisade_program::running::{Code, CodeId, EdgeId, Instr, Location, System};

/// The number of rounds that is enough, if it is known.
pub(crate) fn rounds(system: &System) -> Option<u32> {
    let mut known = vec![Known::New; system.codes.len()];
    let mut most = 1;
    for role in &system.roles {
        most = most.max(accesses(system, role.code, &mut known)?);
    }
    Some(most + late(system))
}

/// One extra round where processes have parameters. The translation covers all instances at once. An instance
/// may pass a label one round late if that label is not the first one for all instances.
fn late(system: &System) -> u32 {
    u32::from(system.roles.len() > system.templates.len())
}

/// The store age that is enough, if it is known.
pub(crate) fn age(system: &System) -> Option<u32> {
    let by_rounds = rounds(system).map(|rounds| rounds - 1);
    let by_fences = || {
        let calls = |code: &Code| code.edges().iter().any(|edge| matches!(edge.instr, Instr::Call { .. }));
        if system.codes.iter().any(calls) {
            return None;
        }
        let codes = system.roles.iter().map(|role| pending_for(&system.codes[role.code]));
        let most = codes.collect::<Option<Vec<u32>>>().map(|all| all.into_iter().max().unwrap_or(0));
        most.map(|most| most + late(system))
    };
    match (by_rounds, by_fences()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The state of the analysis of a code or location.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    New,
    /// It is being visited, so reaching it again is a loop.
    Open,
    Accesses(u32),
}

/// The largest number of accesses on a path through a code. `None` if there are loops.
fn accesses(system: &System, id: CodeId, codes: &mut [Known]) -> Option<u32> {
    match codes[id.index()] {
        Known::Open => return None,
        Known::Accesses(accesses) => return Some(accesses),
        Known::New => {}
    }
    codes[id.index()] = Known::Open;
    let code = &system.codes[id];
    let mut locations = vec![Known::New; code.location_count()];
    // Depth first without recursion: a location is closed when all locations after it are.
    let mut work = vec![code.entry];
    while let Some(&at) = work.last() {
        limits::checkpoint();
        if let Known::Accesses(_) = locations[at.index()] {
            work.pop();
            continue;
        }
        locations[at.index()] = Known::Open;
        let mut most = Some(0);
        for edge in code.edges_from(at).map(|edge| &code.edges()[EdgeId(edge)]) {
            match locations[edge.target.index()] {
                Known::Open => return None,
                Known::New => {
                    work.push(edge.target);
                    most = None;
                    break;
                }
                Known::Accesses(after) => {
                    let own = match edge.instr {
                        Instr::Call { code, .. } => accesses(system, code, codes)?,
                        _ => is_access(&edge.instr).into(),
                    };
                    most = most.map(|most| u32::max(most, after.saturating_add(own)));
                }
            }
        }
        if let Some(most) = most {
            locations[at.index()] = Known::Accesses(most);
            work.pop();
        }
    }
    let Known::Accesses(most) = locations[code.entry.index()] else { unreachable!("the entry is closed") };
    codes[id.index()] = Known::Accesses(most);
    Some(most)
}

/// Whether the instruction is an access or leads to one (a store reaches memory later).
fn is_access(instr: &Instr) -> bool {
    matches!(
        instr,
        Instr::Load(..) | Instr::Store(..) | Instr::Locked { .. } | Instr::AtomicBegin | Instr::Spawn(..)
    )
}

/// The largest number of loads, starts of threads and stores on a path without fences from a store (which is
/// not counted) to a load or start of a thread. `None` if there is no largest number.
fn pending_for(code: &Code) -> Option<u32> {
    let after_store = after_stores(code);
    // For each location where a store may be pending, the weight of the heaviest path to a load, if there is
    // one.
    let mut heaviest: Vec<Option<u32>> = vec![None; code.location_count()];
    let mut changed = true;
    // Without loops of positive weight, no path is longer than the number of locations.
    for _ in 0..=code.location_count() {
        limits::checkpoint();
        if !changed {
            break;
        }
        changed = false;
        for edge in code.edges().iter().filter(|edge| after_store[edge.source.index()]) {
            let after = heaviest[edge.target.index()];
            let weight = match edge.instr {
                _ if drains(&edge.instr) => None,
                Instr::Load(..) | Instr::Spawn(..) => Some(1 + after.unwrap_or(0)),
                Instr::Store(..) => after.map(|after| after + 1),
                _ => after,
            };
            if weight > heaviest[edge.source.index()] {
                heaviest[edge.source.index()] = weight;
                changed = true;
            }
        }
    }
    if changed {
        return None;
    }
    let stores = code.edges().iter().filter(|edge| matches!(edge.instr, Instr::Store(..)));
    let after = |location: Location| heaviest[location.index()].unwrap_or(0);
    Some(stores.map(|edge| after(edge.target)).max().unwrap_or(0))
}

/// Whether the instruction waits for pending stores.
fn drains(instr: &Instr) -> bool {
    matches!(instr, Instr::Fence | Instr::Locked { .. } | Instr::AtomicBegin)
}

/// The locations that control can reach with a store pending.
fn after_stores(code: &Code) -> Vec<bool> {
    let mut found = vec![false; code.location_count()];
    let stores = code.edges().iter().filter(|edge| matches!(edge.instr, Instr::Store(..)));
    let mut work: Vec<Location> = stores.map(|edge| edge.target).collect();
    while let Some(at) = work.pop() {
        limits::checkpoint();
        if std::mem::replace(&mut found[at.index()], true) {
            continue;
        }
        let edges = code.edges_from(at).map(|edge| &code.edges()[EdgeId(edge)]);
        work.extend(edges.filter(|edge| !drains(&edge.instr)).map(|edge| edge.target));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;
    use palisade_program::{Instantiation, lower};
    use palisade_syntax::{Language, parse};

    /// The bounds that are enough for a process: rounds and store age.
    #[track_caller]
    fn check(body: &str, expected: (Option<u32>, Option<u32>)) {
        let text = format!("shared x, y; proc f() {{ x = y; }} process P {{ {body} }}");
        let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("well formed").program;
        let mut system = lower(&program, Instantiation::declared(1));
        if !body.contains("f()") {
            system.codes = system.codes.iter().take(1).cloned().collect();
        }
        assert_eq!((rounds(&system), age(&system)), expected, "{body}");
    }

    #[test]
    fn without_loops_the_longest_path_counts() {
        check("", (Some(1), Some(0)));
        check("x = 1; let r = y;", (Some(2), Some(1)));
        check("if y == 1 { x = 1; y = 2; } else { fence; }", (Some(3), Some(0)));
        check("f(); f();", (Some(4), Some(3)));
        check("spawnless: skip; atomic { x = 1; }", (Some(2), Some(0)));
    }

    #[test]
    fn with_loops_fences_count() {
        check("loop { x = 1; }", (None, Some(0)));
        check("loop { await y == 1; }", (None, Some(0)));
        check("loop { x = 1; await y == 1; }", (None, None));
        check("loop { x = 1; fence; await y == 1; }", (None, Some(0)));
        check("loop { x = 1; let r = y; x = 2; let s = y; fence; while y == 1 { } }", (None, Some(3)));
        check("loop { while y == 1 { } x = 1; fence; }", (None, Some(0)));
        check("loop { while y == 1 { } x = 1; }", (None, None));
        check("loop { f(); fence; }", (None, None));
    }
}
