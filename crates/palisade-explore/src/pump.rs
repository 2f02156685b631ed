//! Whether store buffers can grow without bound.
//!
//! *Guarantee.* If the answer is no, no thread's buffer ever holds more stores than the program has store
//! edges on an acyclic path, and a search without a bound on buffers is exact. The answer is no if every
//! cycle of the control flow that passes a store also passes a fence, a locked instruction or the opening of
//! an atomic section. All of these wait until the buffer is empty. Calls are followed into procedures and
//! back to any caller.

use palisade_base::Id;
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::running::{CodeId, Instr, Location};

/// Whether the buffer of some thread may grow without bound.
pub(crate) fn can_pump(machine: Machine<'_>) -> bool {
    if machine.model == Model::Sc {
        return false;
    }
    let flow = Flow::new(machine);
    let component = flow.components();
    flow.stores.iter().any(|&(from, to)| component[from] == component[to])
}

/// Control flow over all codes, without the edges that wait for an empty buffer.
struct Flow {
    next: Vec<Vec<usize>>,
    stores: Vec<(usize, usize)>,
}

impl Flow {
    fn new(machine: Machine<'_>) -> Flow {
        let system = machine.system;
        let mut first = Vec::new();
        let mut nodes = 0;
        for code in &system.codes {
            first.push(nodes);
            nodes += code.location_count();
        }
        let node = |code: CodeId, location: Location| first[code.index()] + location.index();
        let mut flow = Flow { next: vec![Vec::new(); nodes], stores: Vec::new() };
        for (id, code) in system.codes.iter_enumerated() {
            for edge in code.edges() {
                let (from, to) = (node(id, edge.source), node(id, edge.target));
                match &edge.instr {
                    Instr::Fence | Instr::AtomicBegin => continue,
                    Instr::Locked { .. } if waits_for_all(machine) => continue,
                    Instr::Call { code: callee, .. } => {
                        let code = &system.codes[*callee];
                        flow.next[from].push(node(*callee, code.entry));
                        flow.next[node(*callee, code.exit)].push(to);
                        continue;
                    }
                    Instr::Store(..) => flow.stores.push((from, to)),
                    _ => {}
                }
                flow.next[from].push(to);
            }
        }
        flow
    }

    /// A number for each node, equal for nodes that reach each other. It identifies the node's strongly
    /// connected component, found by two depth-first searches (Kosaraju and Sharir).
    fn components(&self) -> Vec<usize> {
        let nodes = self.next.len();
        let mut before = vec![Vec::new(); nodes];
        for (node, next) in self.next.iter().enumerate() {
            next.iter().for_each(|&to| before[to].push(node));
        }
        let mut order = Vec::with_capacity(nodes);
        let mut seen = vec![false; nodes];
        (0..nodes).for_each(|root| visit(&self.next, root, &mut seen, |node| order.push(node)));
        let mut component = vec![0; nodes];
        seen.fill(false);
        for &root in order.iter().rev() {
            visit(&before, root, &mut seen, |node| component[node] = root);
        }
        component
    }
}

/// Visits all nodes that are reachable from a node and not yet seen, depth first. Each node is reported after
/// all nodes reached from it.
fn visit(next: &[Vec<usize>], root: usize, seen: &mut [bool], mut done: impl FnMut(usize)) {
    if std::mem::replace(&mut seen[root], true) {
        return;
    }
    let mut path = vec![(root, 0)];
    while let Some((node, followed)) = path.last_mut() {
        match next[*node].get(*followed) {
            Some(&to) => {
                *followed += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    path.push((to, 0));
                }
            }
            None => {
                done(*node);
                path.pop();
            }
        }
    }
}

fn waits_for_all(machine: Machine<'_>) -> bool {
    (machine.model, machine.interlocked) != (Model::Pso, Interlocked::OwnAddress)
}
