//! Run-time errors in the words of the program's language.

use palisade_memory::{Action, Effect};
use palisade_program::Value;
use palisade_program::running::{Address, BinaryOp, CellId, Expr, Fault, Instr};
use palisade_program::written::Check;
use palisade_trace::{BadAccess, Ended, Evidence};

/// The error at the end of a step. Where pointers are addresses of bytes, it says which object is meant.
pub(crate) fn fault(evidence: &Evidence<'_>, step: usize, fault: Fault) -> String {
    if let Fault::OutOfBounds(index) = fault
        && let Some(words) = out_of_bounds(evidence, step, index)
    {
        return words;
    }
    let Some(addresses) = evidence.addresses else { return fault.to_string() };
    match fault {
        Fault::BadPointer(pointer) => return addresses.bad_pointer(pointer, access(evidence, step)),
        // Where pointers are addresses of bytes, all other arithmetic wraps.
        Fault::Overflow => return Check::Overflow.message().to_owned(),
        Fault::CheckFailed(Check::Index) => {
            return index(evidence, step).unwrap_or_else(|| fault.to_string());
        }
        Fault::CheckFailed(Check::NotFreed | Check::Initialised) => {}
        _ => return fault.to_string(),
    }
    // The thread has just read the value that shows what is wrong.
    let thread = evidence.run.steps[step].thread;
    let earlier = (0..step).rev().filter(|&step| evidence.run.steps[step].thread == thread);
    let read = earlier.map(|step| evidence.replay.effects[step]).find_map(|effect| match effect {
        Effect::ReadMemory(cell, value) | Effect::ReadBuffer(cell, value) => Some((cell, value)),
        Effect::Locked { cell, read, .. } => Some((cell, read)),
        _ => None,
    });
    let Some((cell, value)) = read else { return fault.to_string() };
    let cell = &evidence.machine.system.cells[cell];
    // Which variable is meant, and where it was allocated.
    if fault == Fault::CheckFailed(Check::NotFreed) && addresses.is_freed(value) {
        if let Some(ended) = addresses.ended(cell.address) {
            let (kind, ended) = match ended {
                Ended::Function => ("local", "its function has returned"),
                Ended::Block => ("local", "its block has ended"),
                Ended::Thread => ("thread-local", "its thread has ended"),
            };
            return format!("use of the {kind} variable `{}` after {ended}", cell.name);
        }
        let line = evidence.source.line_in_words(cell.span).filter(|_| addresses.is_allocated(cell.address));
        let origin = line.map_or_else(String::new, |line| format!(" (allocated at {line})"));
        return format!("{fault}: `{}`{origin}", cell.name);
    }
    if fault == Fault::CheckFailed(Check::Initialised) && addresses.is_uninitialised(value) {
        return format!("{fault}: `{}`", cell.name);
    }
    fault.to_string()
}

/// The element that an array of arrays does not have, as it is written: its cells are those of one array, whose index says
/// little. `None` for other arrays.
fn out_of_bounds(evidence: &Evidence<'_>, step: usize, index: Value) -> Option<String> {
    let taken = evidence.run.steps[step];
    let Action::Execute { edge, .. } = taken.action else { return None };
    let code = evidence.replay.states[step].threads[taken.thread].top().code;
    let system = evidence.machine.system;
    let (Instr::Load(_, address) | Instr::Store(address, _) | Instr::Locked { address, .. }) =
        &system.codes[code].edges()[edge].instr
    else {
        return None;
    };
    let Address::Element { base, len, .. } = address else { return None };
    // The last cell has the largest index in every dimension.
    let last = CellId(base.0.checked_add(*len)?.checked_sub(1)?);
    let name = &system.cells.get(last)?.name;
    let mut parts: Vec<(&str, Value)> = Vec::new();
    let mut rest = name.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let (number, after) = after.split_once(']')?;
        parts.push((before, number.parse().ok()?));
        rest = after;
    }
    if parts.len() < 2 {
        return None;
    }
    let mut left = index;
    let mut indices: Vec<Value> = Vec::new();
    for (_, largest) in parts[1..].iter().rev() {
        indices.push(left.rem_euclid(largest + 1));
        left = left.div_euclid(largest + 1);
    }
    indices.push(left);
    let written: String = parts
        .iter()
        .zip(indices.iter().rev())
        .map(|((before, _), index)| format!("{before}[{index}]"))
        .collect();
    Some(format!("`{written}{rest}` is out of bounds"))
}

/// An index that is out of bounds, and the number of elements, if the instruction shows both.
fn index(evidence: &Evidence<'_>, step: usize) -> Option<String> {
    let taken = evidence.run.steps[step];
    let Action::Execute { edge, .. } = taken.action else { return None };
    let frame = evidence.replay.states[step].threads[taken.thread].top();
    let Instr::Assert(Expr::Binary(op, index, end), _) =
        &evidence.machine.system.codes[frame.code].edges()[edge].instr
    else {
        return None;
    };
    let (BinaryOp::WordLt | BinaryOp::Lt, Expr::Const(length)) = (op, &**end) else { return None };
    let index = index.eval(&frame.registers).ok()?;
    Some(format!("array index {index} is out of bounds ({length} elements)"))
}

/// What the instruction of a step does to memory.
fn access(evidence: &Evidence<'_>, step: usize) -> BadAccess {
    let taken = evidence.run.steps[step];
    let Action::Execute { edge, .. } = taken.action else { return BadAccess::Write };
    let code = evidence.replay.states[step].threads[taken.thread].top().code;
    match evidence.machine.system.codes[code].edges()[edge].instr {
        Instr::Store(..) => BadAccess::Write,
        Instr::Locked { .. } => BadAccess::Exchange,
        _ => BadAccess::Read,
    }
}
