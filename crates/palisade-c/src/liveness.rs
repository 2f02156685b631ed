//! Which registers may still be read.

use crate::flat::{BlockId, Code, End, RegId};

/// A set of registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RegSet(Vec<u64>);

impl RegSet {
    pub(crate) fn new(registers: usize) -> RegSet {
        RegSet(vec![0; registers.div_ceil(64)])
    }

    pub(crate) fn contains(&self, register: RegId) -> bool {
        self.0[register.0 as usize / 64] >> (register.0 % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, register: RegId) {
        self.0[register.0 as usize / 64] |= 1 << (register.0 % 64);
    }

    pub(crate) fn remove(&mut self, register: RegId) {
        self.0[register.0 as usize / 64] &= !(1 << (register.0 % 64));
    }

    /// Adds all of another set. Returns whether it grew.
    pub(crate) fn add(&mut self, other: &RegSet) -> bool {
        let mut grew = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            grew |= *theirs & !*mine != 0;
            *mine |= theirs;
        }
        grew
    }
}

/// The registers that may be read after the start of each block before they are assigned.
pub(crate) struct Liveness {
    live_in: Vec<RegSet>,
}

impl Liveness {
    pub(crate) fn new(code: &Code) -> Liveness {
        let registers = code.registers.len();
        let order = code.reachable();
        let mut live_in = vec![RegSet::new(registers); code.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().rev() {
                let live = before(code, block, live_out(code, &live_in, block));
                changed |= live_in[block.0 as usize].add(&live);
            }
        }
        Liveness { live_in }
    }

    pub(crate) fn live_in(&self, block: BlockId) -> &RegSet {
        &self.live_in[block.0 as usize]
    }

    /// The registers that are live after the last step of a block, those of its condition included.
    pub(crate) fn at_end(&self, code: &Code, block: BlockId) -> RegSet {
        let mut live = live_out(code, &self.live_in, block);
        if let End::Branch(condition, ..) = &code.block(block).end {
            condition.for_each_register(&mut |register| live.insert(register));
        }
        live
    }
}

fn live_out(code: &Code, live_in: &[RegSet], block: BlockId) -> RegSet {
    let mut live = RegSet::new(code.registers.len());
    code.block(block).end.for_each_successor(|to| _ = live.add(&live_in[to.0 as usize]));
    live
}

fn before(code: &Code, block: BlockId, mut live: RegSet) -> RegSet {
    if let End::Branch(condition, ..) = &code.block(block).end {
        condition.for_each_register(&mut |register| live.insert(register));
    }
    for step in code.block(block).steps.iter().rev() {
        step_before(&step.kind, &mut live);
    }
    live
}

/// Turns what is live after a step into what is live before it. Writes in atomic sections may not happen.
pub(crate) fn step_before(kind: &crate::flat::StepKind, live: &mut RegSet) {
    use crate::flat::StepKind;
    if !kind.may_not_write() {
        kind.for_each_written(&mut |register| live.remove(register));
    }
    kind.for_each_read(&mut |register| live.insert(register));
    // What is assigned in an atomic section is read there.
    if let StepKind::AwaitLoad { temporary, .. } = kind {
        live.remove(*temporary);
    }
}
