//! Which atomic sections can use Promela's `atomic`, and which must be held by `holder`.

use crate::expression::are_opposite;
use crate::routine::{Move, Routine};
use crate::structure::Node;
use palisade_program::running::{Instr, Location, Outside, RegId, System, Type};

/// Whether a section of the text must be held.
pub(super) fn holds(system: &System, routine: &Routine<'_>, text: &[Node]) -> bool {
    text.iter().any(|node| match node {
        Node::Step(at) => routine.step(*at, 0).instr == Instr::AtomicBegin,
        Node::Branch(at, alternatives) => {
            routine.moves[*at].iter().any(|step| step.instr == Instr::AtomicBegin)
                || alternatives.iter().any(|text| holds(system, routine, text))
        }
        Node::Loop(_, body) => holds(system, routine, body),
        Node::Atomic(_, body) => blocks_late(system, routine, body),
        _ => false,
    })
}

/// Whether the text of a section may block after its first step.
pub(super) fn blocks_late(system: &System, routine: &Routine<'_>, text: &[Node]) -> bool {
    let mut steps = text.iter().filter(|node| !matches!(node, Node::Label(_)));
    let first = steps.next().is_some_and(|node| match node {
        Node::Branch(_, alternatives) => {
            alternatives.iter().flatten().any(|node| blocks(system, routine, node))
        }
        Node::Stuck(_) => true,
        _ => false,
    });
    first || steps.any(|node| blocks(system, routine, node))
}

fn blocks(system: &System, routine: &Routine<'_>, node: &Node) -> bool {
    match node {
        Node::Step(at) => may_block(system, routine, *at),
        Node::Branch(at, alternatives) => {
            may_block(system, routine, *at)
                || alternatives.iter().flatten().any(|node| blocks(system, routine, node))
        }
        Node::Stuck(_) => true,
        _ => false,
    }
}

/// Whether a process may have to wait at a location, judged by the form of its steps.
fn may_block(system: &System, routine: &Routine<'_>, at: Location) -> bool {
    let moves = &routine.moves[at];
    !moves.iter().any(|step| !may_wait(system, routine, step)) && !is_total(moves)
}

/// Whether a step is impossible for some values.
fn may_wait(system: &System, routine: &Routine<'_>, step: &Move) -> bool {
    let blocking = |ty: Type| ty.outside == Outside::Block;
    let register = |register: &RegId| blocking(routine.code.registers[*register].ty);
    let memory = || system.cells.iter().any(|cell| blocking(cell.ty));
    match &step.instr {
        Instr::Assume(_) => true,
        Instr::Assign(to, _) | Instr::Havoc(to, ..) | Instr::Load(to, _) => register(to),
        Instr::Store(..) => memory(),
        Instr::Locked { result, .. } => register(result) || memory(),
        Instr::Call { .. } | Instr::Return(_) => true,
        Instr::Nop
        | Instr::Assert(..)
        | Instr::Fence
        | Instr::StoreFence
        | Instr::AtomicBegin
        | Instr::AtomicEnd
        | Instr::Spawn(..) => false,
    }
}

/// Whether some two of the steps have opposite conditions, so that one of them is always possible.
fn is_total(moves: &[Move]) -> bool {
    moves.iter().enumerate().any(|(i, a)| {
        moves[i + 1..].iter().any(|b| match (&a.instr, &b.instr) {
            (Instr::Assume(a), Instr::Assume(b)) => are_opposite(a, b),
            _ => false,
        })
    })
}
