//! Cells that only count: the values that a cell can hold if every thread adds to it a bounded number of times.
//!
//! *Problem.* [`Pointers`](crate::Pointers) ignores the order and the number of steps, so a cell to which something is
//! added may hold any value. Indices of arrays are often such counters.
//!
//! *Guarantee.* If nothing else writes a cell, it holds its initial value plus what some of the locked additions to
//! it have added. An addition that is on no cycle of the control flow is executed at most once by each thread. The
//! user of this file has to check that nothing else writes the cell.

use palisade_base::{Id, limits};
use palisade_program::Value;
use palisade_program::running::{Address, CellId, Code, CodeId, Expr, Instr, Location, Rmw, System};
use rustc_hash::FxHashMap;

/// The cells that count, and the values that each of them can hold, at most `most` of them, in increasing order.
pub(crate) fn counters(system: &System, most: usize) -> FxHashMap<CellId, Vec<Value>> {
    let mut threads: FxHashMap<CodeId, usize> = FxHashMap::default();
    for instance in system.instances.iter() {
        *threads.entry(system.roles[instance.role].code).or_default() += 1;
    }
    // What is added to a cell, each as often as it may be; `None` if there is something else.
    let mut added: FxHashMap<CellId, Option<Vec<Value>>> = FxHashMap::default();
    for (id, code) in system.codes.iter_enumerated() {
        for edge in code.edges().iter() {
            limits::checkpoint();
            let cell = match &edge.instr {
                Instr::Store(Address::Cell(cell), _) | Instr::Locked { address: Address::Cell(cell), .. } => {
                    *cell
                }
                Instr::Store(Address::Element { base, len, .. }, _)
                | Instr::Locked { address: Address::Element { base, len, .. }, .. } => {
                    let cells = (0..*len).map(|index| CellId::from_index(base.index() + index as usize));
                    cells.for_each(|cell| _ = added.insert(cell, None));
                    continue;
                }
                // Threads that are started, and procedures that are called, may be any number.
                Instr::Spawn(..) | Instr::Call { .. } => return FxHashMap::default(),
                _ => continue,
            };
            let constant = match &edge.instr {
                Instr::Locked { rmw: Rmw::FetchAdd, operands, .. } => constant(&operands[0]),
                Instr::Locked { rmw: Rmw::FetchSub, operands, .. } => {
                    constant(&operands[0]).and_then(Value::checked_neg)
                }
                _ => None,
            };
            let constant = constant.filter(|_| !leads_to(code, edge.target, edge.source));
            let sums = added.entry(cell).or_insert_with(|| Some(Vec::new()));
            match (constant, sums) {
                (Some(value), Some(sums)) => {
                    sums.extend(std::iter::repeat_n(value, threads.get(&id).copied().unwrap_or(0)));
                }
                (_, sums) => *sums = None,
            }
        }
    }
    let all = added.into_iter().filter_map(|(cell, added)| Some((cell, sums(system, cell, &added?, most)?)));
    all.collect()
}

fn constant(e: &Expr) -> Option<Value> {
    match e {
        Expr::Const(value) => Some(*value),
        _ => None,
    }
}

/// The initial value of a cell plus every choice of these numbers.
fn sums(system: &System, cell: CellId, added: &[Value], most: usize) -> Option<Vec<Value>> {
    let ty = system.cells[cell].ty;
    let mut sums = vec![system.cells[cell].init?];
    for &value in added {
        let more: Option<Vec<Value>> = sums
            .iter()
            .map(|&sum| {
                let exact = i128::from(sum) + i128::from(value);
                ty.wrapped(exact).or_else(|| Value::try_from(exact).ok())
            })
            .collect();
        sums.extend(more?);
        sums.sort_unstable();
        sums.dedup();
        if sums.len() > most {
            return None;
        }
    }
    Some(sums)
}

/// Whether control can get from one location to another, or is there.
fn leads_to(code: &Code, from: Location, to: Location) -> bool {
    let mut seen = vec![false; code.location_count()];
    let mut work = vec![from];
    while let Some(location) = work.pop() {
        if location == to {
            return true;
        }
        if !std::mem::replace(&mut seen[location.index()], true) {
            let edges = code.edges_from(location).map(palisade_program::running::EdgeId);
            work.extend(edges.map(|edge| code.edges()[edge].target));
        }
    }
    false
}
