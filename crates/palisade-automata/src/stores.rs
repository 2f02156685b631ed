//! The largest number of stores in a run.

use palisade_base::{Id, limits};
use palisade_program::running::{CodeId, Instr, RoleId, System};
use rustc_hash::FxHashMap;

/// The largest number of stores and locked instructions of all threads together in any run. `None` if there
/// is no such number: with loops that store, with recursion, with threads started at run time, or with any
/// number of threads.
pub(crate) fn most_stores(system: &System, is_any: impl Fn(RoleId) -> bool) -> Option<usize> {
    let mut total = 0usize;
    let mut known = FxHashMap::default();
    for instance in system.instances.iter() {
        if is_any(instance.role) {
            return None;
        }
        total = total.checked_add(of_code(
            system,
            system.roles[instance.role].code,
            &mut Vec::new(),
            &mut known,
        )?)?;
    }
    Some(total)
}

/// The longest path of a procedure or process body, counted in stores. `calling` holds the codes on the
/// current call path, `known` those already computed.
fn of_code(
    system: &System,
    code_id: CodeId,
    calling: &mut Vec<CodeId>,
    known: &mut FxHashMap<CodeId, usize>,
) -> Option<usize> {
    if let Some(&longest) = known.get(&code_id) {
        return Some(longest);
    }
    if calling.contains(&code_id) {
        return None;
    }
    calling.push(code_id);
    let code = &system.codes[code_id];
    let mut weights = Vec::new();
    for edge in code.edges().iter() {
        weights.push(match &edge.instr {
            Instr::Store(..) | Instr::Locked { .. } => 1,
            Instr::Call { code, .. } => of_code(system, *code, calling, known)?,
            Instr::Spawn(..) => return None,
            _ => 0,
        });
    }
    calling.pop();
    // Longest distances from any location. If they still grow after as many rounds as there are locations, a
    // loop contains a store.
    let locations = code.edges().iter().map(|edge| edge.source.index().max(edge.target.index()) + 1).max();
    let mut longest = vec![0usize; locations.unwrap_or(0)];
    for _ in 0..=longest.len() {
        let mut grown = false;
        limits::checkpoint();
        for (edge, weight) in code.edges().iter().zip(&weights) {
            let there = longest[edge.source.index()].checked_add(*weight)?;
            if there > longest[edge.target.index()] {
                longest[edge.target.index()] = there;
                grown = true;
            }
        }
        if !grown {
            let longest = longest.into_iter().max().unwrap_or(0);
            known.insert(code_id, longest);
            return Some(longest);
        }
    }
    None
}
