//! Which registers can still be read.
//!
//! *Problem.* States that differ only in registers that are never read again behave the same. Search engines
//! treat such registers as 0.
//!
//! *Guarantee.* A register that is [dead](Liveness::dead) at a location is overwritten on every path from
//! there before it is read. Its value cannot influence any step, fault or property. Registers that a property
//! mentions are never dead.

use super::{Code, CodeId, Condition, EdgeId, GoalKind, Instr, Location, RegId, System};
use palisade_base::{Id, IdVec, limits};

/// The dead registers at every location.
#[derive(Clone, Debug)]
pub struct Liveness {
    dead: IdVec<CodeId, IdVec<Location, Vec<RegId>>>,
    observed: IdVec<CodeId, Vec<RegId>>,
}

impl Liveness {
    /// Analyses all code of a system.
    pub fn new(system: &System) -> Liveness {
        let mut observed = vec![Vec::new(); system.codes.len()];
        for property in &system.properties {
            observed_registers(system, &property.bad, &mut observed);
        }
        for goal in &system.goals {
            if let GoalKind::Condition { condition, .. } = &goal.kind {
                observed_registers(system, condition, &mut observed);
            }
        }
        let analyse =
            |(id, code): (CodeId, &Code)| dead_registers(code, system.privates, &observed[id.index()]);
        let dead = system.codes.iter_enumerated().map(analyse).collect();
        Liveness { dead, observed: observed.into() }
    }

    /// Whether a property mentions the register.
    pub fn is_observed(&self, code: CodeId, register: RegId) -> bool {
        self.observed[code].contains(&register)
    }

    /// The registers that are dead when control is at a location.
    pub fn dead(&self, code: CodeId, location: Location) -> &[RegId] {
        &self.dead[code][location]
    }
}

fn observed_registers(system: &System, condition: &Condition, observed: &mut [Vec<RegId>]) {
    match condition {
        Condition::Register(thread, register) => {
            observed[system.roles[system.instances[*thread].role].code.index()].push(*register);
        }
        Condition::Unary(_, a) => observed_registers(system, a, observed),
        Condition::Binary(_, a, b) => {
            observed_registers(system, a, observed);
            observed_registers(system, b, observed);
        }
        Condition::Const(_) | Condition::Cell(_) | Condition::At(..) | Condition::Count(_) => {}
    }
}

/// Backward data flow to the least fixpoint: live before = (live after − written) ∪ read.
fn dead_registers(code: &Code, privates: usize, observed: &[RegId]) -> IdVec<Location, Vec<RegId>> {
    let registers = code.registers.len();
    limits::room_for(registers as u64 * code.location_count() as u64);
    let nothing = |_| {
        limits::checkpoint();
        vec![false; registers]
    };
    let mut live: Vec<Vec<bool>> = (0..code.location_count()).map(nothing).collect();
    for at in &mut live {
        observed.iter().for_each(|register| at[register.index()] = true);
    }
    let mut into = vec![Vec::new(); code.location_count()];
    for (id, edge) in code.edges().iter_enumerated() {
        into[edge.target.index()].push(id);
    }
    let mut work: Vec<Location> = (0..code.location_count()).map(Location::from_index).collect();
    while let Some(location) = work.pop() {
        limits::checkpoint();
        for &id in &into[location.index()] {
            if flow(code, id, privates, observed, &mut live) {
                work.push(code.edges()[id].source);
            }
        }
    }
    live.into_iter()
        .map(|at| {
            limits::checkpoint();
            at.iter().enumerate().filter(|(_, live)| !**live).map(|(i, _)| RegId::from_index(i)).collect()
        })
        .collect()
}

/// Propagates liveness backwards over an edge. Returns whether anything changed at its source.
///
/// A call passes the private variables to the procedure and gets them back, perhaps changed. A return passes
/// them back.
fn flow(code: &Code, id: EdgeId, privates: usize, observed: &[RegId], live: &mut [Vec<bool>]) -> bool {
    limits::checkpoint();
    let edge = &code.edges()[id];
    let mut before = live[edge.target.index()].clone();
    if let Some(register) = edge.instr.written_register()
        && !observed.contains(&register)
    {
        before[register.index()] = false;
    }
    if matches!(edge.instr, Instr::Call { .. } | Instr::Return(_)) {
        before[..privates].fill(true);
    }
    edge.instr.read_registers(&mut |register| before[register.index()] = true);
    let at = &mut live[edge.source.index()];
    let mut changed = false;
    for (old, new) in at.iter_mut().zip(before) {
        changed |= new && !*old;
        *old |= new;
    }
    changed
}

impl Instr {
    /// The register of the current frame that the instruction writes.
    pub fn written_register(&self) -> Option<RegId> {
        match self {
            Instr::Assign(register, _) | Instr::Havoc(register, _, _) | Instr::Load(register, _) => {
                Some(*register)
            }
            Instr::Locked { result, .. } => Some(*result),
            Instr::Call { result, .. } => *result,
            _ => None,
        }
    }

    /// Calls `visit` for every register the instruction reads.
    pub fn read_registers(&self, visit: &mut dyn FnMut(RegId)) {
        match self {
            Instr::Assign(_, e) | Instr::Assume(e) | Instr::Assert(e, _) | Instr::Return(Some(e)) => {
                e.registers(visit);
            }
            Instr::Load(_, address) => address.registers(visit),
            Instr::Store(address, value) => {
                address.registers(visit);
                value.registers(visit);
            }
            Instr::Locked { address, operands, .. } => {
                address.registers(visit);
                operands.iter().for_each(|operand| operand.registers(visit));
            }
            Instr::Call { args, .. } | Instr::Spawn(_, args) => {
                args.iter().for_each(|arg| arg.registers(visit));
            }
            Instr::Nop
            | Instr::Havoc(..)
            | Instr::Fence
            | Instr::StoreFence
            | Instr::AtomicBegin
            | Instr::AtomicEnd
            | Instr::Return(None) => {}
        }
    }
}
