//! The flags and registers that are still needed after each instruction.
//!
//! Flags are written only if they are read. `cmpxchg` is a plain `cas` if the accumulator is not read
//! afterwards. This is a backward data-flow analysis with a work list. Each set grows at most once per
//! element, so the cost is linear.

use super::bank::{Bank, bit};
use super::ir::{Instr, Mem, Opnd};
use super::mnemonics::{BitOp, Cc, Op};
use super::registers::{Family, Part, Register};
use palisade_base::limits;

/// A set of flags and registers.
pub(super) type Live = u32;

pub(super) const ZERO: Live = 1 << 16;
pub(super) const SIGN: Live = 1 << 17;
pub(super) const CARRY: Live = 1 << 18;
pub(super) const OVERFLOW: Live = 1 << 19;
pub(super) const FLAGS: Live = ZERO | SIGN | CARRY | OVERFLOW;

/// The flags and registers that are needed after each instruction.
pub(super) fn live_out(code: &[Option<Instr>], bank: &Bank) -> Vec<Live> {
    let end = bank.observed;
    let needs_it = |instr: &Instr| matches!(instr.op, Op::Jcc(_) | Op::Set(_) | Op::Cmov(_) | Op::Cmpxchg);
    if !code.iter().flatten().any(needs_it) {
        return vec![0; code.len()];
    }
    let mut jumps: Vec<Vec<usize>> = vec![Vec::new(); code.len() + 1];
    for (position, instr) in code.iter().enumerate() {
        if let Some(target) = instr.as_ref().and_then(|instr| instr.target) {
            jumps[target].push(position);
        }
    }
    let mut live_in = vec![0; code.len() + 1];
    live_in[code.len()] = end;
    let mut waiting: Vec<usize> = (0..code.len()).collect();
    let mut live_out = vec![0; code.len()];
    while let Some(position) = waiting.pop() {
        limits::checkpoint();
        let instr = code[position].as_ref();
        let mut out = if falls_through(instr) { live_in[position + 1] } else { 0 };
        if let Some(target) = instr.and_then(|instr| instr.target) {
            out |= live_in[target];
        }
        live_out[position] = out;
        let before = instr.map_or(out, |instr| uses(instr, bank) | out & !defines(instr, bank));
        if before != live_in[position] {
            live_in[position] = before;
            if position > 0 && falls_through(code[position - 1].as_ref()) {
                waiting.push(position - 1);
            }
            waiting.extend(&jumps[position]);
        }
    }
    live_out
}

fn falls_through(instr: Option<&Instr>) -> bool {
    instr.is_none_or(|instr| instr.op != Op::Jmp)
}

/// The flags that a condition reads.
pub(super) fn looks_at(cc: Cc) -> Live {
    match cc {
        Cc::Equal | Cc::NotEqual => ZERO,
        Cc::Less | Cc::GreaterEqual => SIGN | OVERFLOW,
        Cc::LessEqual | Cc::Greater => ZERO | SIGN | OVERFLOW,
        Cc::Below | Cc::AboveEqual => CARRY,
        Cc::BelowEqual | Cc::Above => CARRY | ZERO,
        Cc::Sign | Cc::NotSign => SIGN,
        Cc::Overflow | Cc::NotOverflow => OVERFLOW,
    }
}

/// The flags an instruction sets.
pub(super) fn flags_set(op: Op) -> Live {
    match op {
        Op::Cmp | Op::Test | Op::Binary(_) | Op::Neg | Op::Xadd | Op::Cmpxchg | Op::Shift(_) => FLAGS,
        Op::Inc | Op::Dec => ZERO | SIGN | OVERFLOW,
        Op::Bit(_) => CARRY,
        _ => 0,
    }
}

fn address_uses(memory: &Mem) -> Live {
    memory
        .base
        .into_iter()
        .chain(memory.index.map(|(index, _)| index))
        .map(|r| bit(r.family))
        .fold(0, |a, b| a | b)
}

fn uses(instr: &Instr, bank: &Bank) -> Live {
    let mut live = match instr.op {
        Op::Jcc(cc) | Op::Set(cc) | Op::Cmov(cc) => looks_at(cc),
        _ => 0,
    };
    match &instr.source {
        Some(Opnd::Register(register, _)) => live |= bit(register.family),
        Some(Opnd::Memory(memory)) => live |= address_uses(memory),
        _ => {}
    }
    match &instr.destination {
        Some(Opnd::Memory(memory)) => live |= address_uses(memory),
        Some(Opnd::Register(register, _)) => {
            let only_writes =
                matches!(instr.op, Op::Mov | Op::MovZero(_) | Op::MovSign(_) | Op::Lea | Op::Set(_));
            if !only_writes || !replaces(*register, bank) {
                live |= bit(register.family);
            }
        }
        _ => {}
    }
    if instr.op == Op::Cmpxchg {
        live |= bit(Family::ACCUMULATOR);
    }
    live
}

/// The flags and registers that an instruction always overwrites.
fn defines(instr: &Instr, bank: &Bank) -> Live {
    let mut defined = match instr.op {
        // A shift by 0 sets no flags.
        Op::Shift(_) => 0,
        op => flags_set(op),
    };
    let always_writes = !matches!(
        instr.op,
        Op::Cmp | Op::Test | Op::Cmov(_) | Op::Cmpxchg | Op::Bit(BitOp::Keep) | Op::Jmp | Op::Jcc(_)
    );
    if let Some(Opnd::Register(register, _)) = instr.destination
        && always_writes
        && replaces(register, bank)
    {
        defined |= bit(register.family);
    }
    defined
}

/// Whether a write to a part of a register leaves nothing of the old value.
fn replaces(register: Register, bank: &Bank) -> bool {
    matches!(register.part, Part::Low32 | Part::All64)
        || register.part != Part::High8 && register.part.width() == bank.width(register.family)
}
