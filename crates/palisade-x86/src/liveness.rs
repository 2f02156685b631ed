//! Which registers functions take, change and return, and which registers are live where.
//!
//! *How.* Sets that only grow, until nothing changes: what a function takes follows from what is live at its entry,
//! and what is live before a call follows from what the called function takes.
//!
//! There are two kinds of sets. In one, everything that an instruction reads is live. In the other, only what the program
//! has a use for: compilers make room on the stack by pushing any register (`push %rcx`), and functions without a result
//! return with anything in `rax`. What a function takes follows from the second, unless what it pushes is used later.

use crate::decode::{Block, Code, Exit};
use crate::image::SectionOffset;
use crate::library;
use crate::program::{Callee, FunctionId, Program};
use crate::registers::{ARGUMENTS, FLAGS, Gpr, RAX, RDX, RSP, SAVED, Set};
use iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess, OpKind, RflagsBits};
use std::collections::{BTreeMap, BTreeSet};

/// What is known about a function from outside.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Summary {
    /// How many arguments it takes in registers.
    pub(crate) parameters: usize,
    /// What it may change besides the registers that it must restore.
    pub(crate) changes: Set,
    /// Whether a caller uses `rdx` as a second result.
    pub(crate) pair: bool,
    /// Whether a caller uses `rax`.
    pub(crate) result: bool,
}

/// What is live in the functions of a program.
#[derive(Debug)]
pub(crate) struct Liveness {
    pub(crate) summaries: BTreeMap<FunctionId, Summary>,
    /// What is live at the beginnings of blocks.
    pub(crate) at: BTreeMap<(FunctionId, SectionOffset), Set>,
    /// What the program has a use for there.
    used: BTreeMap<(FunctionId, SectionOffset), Set>,
    /// The functions in which what is pushed is used.
    pushing: BTreeSet<FunctionId>,
}

/// What counts as live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Live {
    /// All that is read.
    Read,
    /// What the program has a use for.
    Used,
}

/// What an instruction reads and overwrites.
struct Effect {
    reads: Set,
    kills: Set,
}

impl Liveness {
    /// Finds out what is live. In the functions that are given, what is pushed is used.
    pub(crate) fn new(program: &Program, pushing: BTreeSet<FunctionId>) -> Liveness {
        let summaries = program.ids().map(|id| (id, Summary::default())).collect();
        let mut liveness = Liveness { summaries, at: BTreeMap::new(), used: BTreeMap::new(), pushing };
        // What threads return is used by those that wait for them.
        for id in starts(program) {
            liveness.summaries.entry(id).or_default().result = true;
        }
        let mut factory = InstructionInfoFactory::new();
        let mut changed = true;
        while changed {
            changed = false;
            for id in program.ids() {
                changed |= liveness.function(program, id, &mut factory);
            }
        }
        liveness
    }

    pub(crate) fn summary(&self, id: FunctionId) -> Summary {
        self.summaries[&id]
    }

    /// How many arguments a call through a pointer passes: as many as a function takes whose address is used.
    fn pointer_parameters(&self, program: &Program) -> usize {
        program.address_taken.iter().map(|id| self.summary(*id).parameters).max().unwrap_or(0)
    }

    /// What a call reads, and what it changes.
    fn call(&self, program: &Program, callee: &Callee) -> Effect {
        let first = |count: usize| Set::of(&ARGUMENTS[..count.min(6)]);
        match callee {
            Callee::Function(id) => {
                let summary = self.summary(*id);
                Effect { reads: first(summary.parameters), kills: summary.changes.with(FLAGS) }
            }
            Callee::Library(name) => {
                let signature = library::signature(name);
                let count = signature.map_or(0, |signature| signature.arguments.len());
                Effect { reads: first(count), kills: Set::volatile().with(FLAGS) }
            }
            Callee::Pointer => {
                Effect { reads: first(self.pointer_parameters(program)), kills: Set::volatile().with(FLAGS) }
            }
        }
    }

    fn function(&mut self, program: &Program, id: FunctionId, factory: &mut InstructionInfoFactory) -> bool {
        let function = program.function(id);
        let before = self.summary(id);
        let mut summary = before;
        let mut called = Called::default();
        for kind in [Live::Read, Live::Used] {
            let mut changed = true;
            while changed {
                changed = false;
                for (place, block) in function.blocks.iter().rev() {
                    let live = self.back_to(program, id, block, 0, kind, factory, &mut called, &mut summary);
                    let sets = if kind == Live::Read { &mut self.at } else { &mut self.used };
                    let known = sets.entry((id, *place)).or_default();
                    changed |= *known != live;
                    *known = live;
                }
            }
        }
        let live = self.used.get(&(id, function.entry)).copied().unwrap_or_default();
        let taken = ARGUMENTS.iter().rposition(|register| live.has(*register)).map_or(0, |index| index + 1);
        summary.parameters = summary.parameters.max(taken);
        let mut others_changed = false;
        for callee in called.pairs {
            let of = self.summaries.get_mut(&callee).expect("all functions have summaries");
            others_changed |= !of.pair;
            of.pair = true;
        }
        for callee in called.results {
            let of = self.summaries.get_mut(&callee).expect("all functions have summaries");
            others_changed |= !of.result;
            of.result = true;
        }
        summary.pair |= self.summaries[&id].pair;
        summary.result |= self.summaries[&id].result;
        self.summaries.insert(id, summary);
        summary != before || others_changed
    }

    /// What the program has a use for after an instruction of a block.
    pub(crate) fn used_after(&self, program: &Program, id: FunctionId, block: &Block, index: usize) -> Set {
        let (mut factory, mut called) = (InstructionInfoFactory::new(), Called::default());
        let mut summary = self.summary(id);
        self.back_to(program, id, block, index + 1, Live::Used, &mut factory, &mut called, &mut summary)
    }

    /// What is live before an instruction of a block, by its index.
    #[allow(clippy::too_many_arguments)]
    fn back_to(
        &self,
        program: &Program,
        id: FunctionId,
        block: &Block,
        first: usize,
        kind: Live,
        factory: &mut InstructionInfoFactory,
        called: &mut Called,
        summary: &mut Summary,
    ) -> Set {
        let mut live = match block.exit {
            Exit::Return | Exit::TailCall => {
                let result =
                    if kind == Live::Read || summary.result { Set::of(&[RAX]) } else { Set::default() };
                let second = if summary.pair { Set::of(&[RDX]) } else { Set::default() };
                Set::of(&SAVED).with(result).with(second)
            }
            _ => Set::default(),
        };
        let sets = if kind == Live::Read { &self.at } else { &self.used };
        for to in block.successors() {
            live = live.with(sets.get(&(id, to)).copied().unwrap_or_default());
        }
        let inside = matches!(block.exit, Exit::Jump(_) | Exit::Branch(..) | Exit::Table(_));
        for (index, code) in block.code.iter().enumerate().skip(first).rev() {
            let is_call = !(inside && index + 1 == block.code.len());
            let callee = program.callee(id.unit, code).filter(|_| is_call);
            if let (Some(callee), Live::Used, true) = (&callee, kind, live.has(RAX)) {
                match callee {
                    Callee::Function(function) => called.results.push(*function),
                    Callee::Pointer => called.results.extend(&program.address_taken),
                    Callee::Library(_) => {}
                }
            }
            let makes_room = kind == Live::Used
                && code.instruction.mnemonic() == Mnemonic::Push
                && code.instruction.op0_kind() == OpKind::Register
                && !self.pushing.contains(&id);
            let pushed = Gpr::of(code.instruction.op0_register())
                .filter(|register| makes_room && Set::volatile().has(*register) && !live.has(*register));
            live = self.before(program, code, callee, live, factory, called, summary);
            if let Some(register) = pushed {
                live = live.without(Set::of(&[register]));
            }
        }
        live
    }

    /// What is live before an instruction.
    #[allow(clippy::too_many_arguments)]
    fn before(
        &self,
        program: &Program,
        code: &Code,
        callee: Option<Callee>,
        live: Set,
        factory: &mut InstructionInfoFactory,
        called: &mut Called,
        summary: &mut Summary,
    ) -> Set {
        if let Some(callee) = callee {
            let effect = self.call(program, &callee);
            if let (Callee::Function(function), true) = (&callee, live.has(RDX) && effect.kills.has(RDX)) {
                called.pairs.push(*function);
            }
            summary.changes = summary.changes.with(effect.kills.without(FLAGS));
            let own = Self::effect(code, factory).reads.without(Set::of(&[RSP]));
            return live.without(effect.kills).with(effect.reads).with(own);
        }
        let Effect { mut reads, kills } = Self::effect(code, factory);
        for (register, parts) in needed(code, live) {
            reads = reads.without(Set::of(&[register])).with(parts);
        }
        let written = Self::written(code, factory).without(Set::of(&SAVED)).without(Set::of(&[RSP]));
        summary.changes = summary.changes.with(written);
        live.without(kills).with(reads)
    }

    fn effect(code: &Code, factory: &mut InstructionInfoFactory) -> Effect {
        let mut effect = Effect { reads: Set::default(), kills: Set::default() };
        for used in factory.info(&code.instruction).used_registers() {
            let Some(one) = Set::part(used.register()) else { continue };
            let reads = matches!(
                used.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            let kills = matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite);
            if reads {
                effect.reads = effect.reads.with(one);
            }
            if kills {
                effect.kills = effect.kills.with(one);
            }
        }
        let all = RflagsBits::CF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF;
        if code.instruction.rflags_modified() & all == all {
            effect.kills = effect.kills.with(FLAGS);
        }
        if code.instruction.rflags_read() != 0 {
            effect.reads = effect.reads.with(FLAGS);
        }
        effect
    }

    fn written(code: &Code, factory: &mut InstructionInfoFactory) -> Set {
        let mut written = Set::default();
        for used in factory.info(&code.instruction).used_registers() {
            let writes = !matches!(
                used.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
            );
            if let Some(register) = Gpr::of(used.register()).filter(|_| writes) {
                written = written.with(Set::of(&[register]));
            }
        }
        written
    }
}

/// Functions of which more is used than was known.
#[derive(Default)]
struct Called {
    pairs: Vec<FunctionId>,
    results: Vec<FunctionId>,
}

/// The functions that threads start with: all whose address is used, if it is not clear which.
fn starts(program: &Program) -> BTreeSet<FunctionId> {
    let mut found = BTreeSet::new();
    for id in program.ids() {
        for block in program.function(id).blocks.values() {
            for (index, code) in block.code.iter().enumerate() {
                let start = match program.callee(id.unit, code) {
                    Some(Callee::Library(name)) if name == "pthread_create" => ARGUMENTS[2],
                    Some(Callee::Library(name)) if name == "thrd_create" => ARGUMENTS[1],
                    _ => continue,
                };
                let is_set = |code: &&Code| {
                    code.instruction.op0_kind() == OpKind::Register
                        && Gpr::of(code.instruction.op0_register()) == Some(start)
                };
                let set = block.code[..index].iter().rev().find(is_set);
                let reference = set.and_then(|code| code.displacement.as_ref().or(code.immediate.as_ref()));
                let target = reference.map(|reference| {
                    let (target, by) = reference.target();
                    target.moved(by)
                });
                match target.and_then(|target| program.resolve(id.unit, &target)) {
                    Some(Callee::Function(function)) => _ = found.insert(function),
                    _ => found.extend(&program.address_taken),
                }
            }
        }
    }
    found
}

/// What an instruction needs of the registers that it reads, where that need not be all of them.
///
/// - `and` and `test` with a constant need the bits of the constant.
/// - Of a result of which only the lowest bits are used, only the lowest bits of the operands matter.
fn needed(code: &Code, live: Set) -> Vec<(Gpr, Set)> {
    let instruction = &code.instruction;
    let to = instruction.op0_register();
    let is_register = |operand: u32| instruction.op_kind(operand) == OpKind::Register;
    if let (Mnemonic::Lea, Some(first)) = (instruction.mnemonic(), Gpr::of(to)) {
        let used = |register: Gpr| (register, live.part_of(first).moved(first, register).up_to(register));
        let parts = [instruction.memory_base(), instruction.memory_index()];
        return parts.into_iter().filter_map(Gpr::of).map(used).collect();
    }
    if instruction.op_count() != 2 || !is_register(0) || to.size() < 4 {
        return Vec::new();
    }
    let second = if is_register(1) { Gpr::of(instruction.op1_register()) } else { None };
    let Some(first) = Gpr::of(to).filter(|first| second != Some(*first)) else { return Vec::new() };
    let constant = !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
    let used = |register: Gpr| (register, live.part_of(first).moved(first, register).up_to(register));
    match instruction.mnemonic() {
        Mnemonic::And | Mnemonic::Test if constant && code.immediate.is_none() => {
            match instruction.immediate(1) {
                0..=0xff => vec![(first, Set::lowest(first, 1))],
                0x100..=0xffff => vec![(first, Set::lowest(first, 2))],
                _ => Vec::new(),
            }
        }
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Or | Mnemonic::Xor
            if !live.has_flags() && (constant || second.is_some()) =>
        {
            std::iter::once(first).chain(second).map(used).collect()
        }
        Mnemonic::Mov => second.into_iter().map(used).collect(),
        _ => Vec::new(),
    }
}
