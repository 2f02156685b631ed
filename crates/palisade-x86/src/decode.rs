//! The functions of an object file: their instructions, with what these refer to, in basic blocks.
//!
//! Control flow is followed from the entry of each function. Parts of a function that the compiler has moved elsewhere
//! (`main.cold`) belong to it. A jump to another function is a call after which the function returns.

use crate::image::{How, Image, Relocation, SectionKind, SectionOffset, Target};
use crate::library;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};

/// A function with more instructions is refused.
const MAX_INSTRUCTIONS: usize = 100_000;

/// What an operand stands for, where the linker decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reference {
    /// An address, and so many bytes further on.
    Address(Target, i64),
    /// The place in the global offset table that holds this address.
    TableEntry(Target),
    /// The position of a thread-local variable among those of its thread, and so many bytes further on.
    ThreadPosition(Target, i64),
    /// The place in the global offset table that holds this position.
    ThreadTableEntry(Target),
}

impl Reference {
    /// What it refers to, and how many bytes further on.
    pub(crate) fn target(&self) -> (&Target, i64) {
        match self {
            Reference::Address(target, by) | Reference::ThreadPosition(target, by) => (target, *by),
            Reference::TableEntry(target) | Reference::ThreadTableEntry(target) => (target, 0),
        }
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) place: SectionOffset,
    pub(crate) instruction: Instruction,
    /// What its displacement stands for.
    pub(crate) displacement: Option<Reference>,
    /// What its immediate operand stands for.
    pub(crate) immediate: Option<Reference>,
    /// Where a jump or call leads.
    pub(crate) branch: Option<Target>,
    /// Why it cannot be followed.
    pub(crate) refused: Option<String>,
}

/// How control leaves a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// To the next block.
    Next(SectionOffset),
    /// To another place.
    Jump(SectionOffset),
    /// To one of two places, by the flags.
    Branch(SectionOffset, SectionOffset),
    /// To one of several places, by a table: the place of the table and its entries.
    Table(Jumps),
    /// A jump to a function, or to an address in a register.
    TailCall,
    Return,
    /// Nowhere: a trap, or a call that does not return.
    Nowhere,
}

/// A jump by a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Jumps {
    /// Where the table is.
    pub(crate) table: SectionOffset,
    /// Where its entries lead.
    pub(crate) entries: Vec<SectionOffset>,
    /// The register that holds the index, at the jump.
    pub(crate) form: TableForm,
}

/// How the table is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TableForm {
    /// `jmp *table(,%index,8)`.
    Absolute(Register),
    /// The register holds the sum of the table's address and an entry of 4 bytes.
    Relative(Register),
}

/// A basic block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) code: Vec<Code>,
    pub(crate) exit: Exit,
}

impl Block {
    pub(crate) fn successors(&self) -> Vec<SectionOffset> {
        match &self.exit {
            Exit::Next(to) | Exit::Jump(to) => vec![*to],
            Exit::Branch(yes, no) => vec![*yes, *no],
            Exit::Table(jumps) => jumps.entries.clone(),
            Exit::TailCall | Exit::Return | Exit::Nowhere => Vec::new(),
        }
    }
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) entry: SectionOffset,
    pub(crate) global: bool,
    pub(crate) weak: bool,
    /// Other names of it.
    pub(crate) aliases: Vec<(String, bool, bool)>,
    pub(crate) blocks: BTreeMap<SectionOffset, Block>,
    /// Why it cannot be followed at all.
    pub(crate) refused: Option<String>,
}

/// Functions of the C library after which control does not continue.
const NO_RETURN: [&str; 14] = [
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "__assert_fail",
    "__assert",
    "__assert_rtn",
    "__assert_perror_fail",
    "__stack_chk_fail",
    "__fortify_fail",
    "pthread_exit",
    "thrd_exit",
    "__cxa_throw",
];

/// Whether a function of a library returns.
pub(crate) fn returns(name: &str) -> bool {
    !NO_RETURN.contains(&name) && !library::panics(name)
}

/// All functions of an object file.
pub(crate) fn functions(image: &Image) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    for symbol in image.symbols.iter().filter(|symbol| symbol.function && !is_part(&symbol.name)) {
        if image.section(symbol.place).kind != SectionKind::Code {
            continue;
        }
        if let Some(known) = found.iter_mut().find(|known| known.entry == symbol.place) {
            let mut alias = (symbol.name.clone(), symbol.global, symbol.weak);
            // A name that all files see is its first name.
            if symbol.global && !known.global {
                std::mem::swap(&mut alias.0, &mut known.name);
                std::mem::swap(&mut alias.1, &mut known.global);
                std::mem::swap(&mut alias.2, &mut known.weak);
            }
            known.aliases.push(alias);
            continue;
        }
        let (blocks, refused) = match Walk::new(image, symbol.place).blocks() {
            Ok(blocks) => (blocks, None),
            Err(why) => (BTreeMap::new(), Some(why)),
        };
        found.push(Function {
            name: symbol.name.clone(),
            entry: symbol.place,
            global: symbol.global,
            weak: symbol.weak,
            aliases: Vec::new(),
            blocks,
            refused,
        });
    }
    found
}

/// Whether a symbol names a part of a function that the compiler has moved elsewhere.
fn is_part(name: &str) -> bool {
    name.contains(".cold")
}

/// The instructions of one function, while control flow is followed.
struct Walk<'a> {
    image: &'a Image,
    entry: SectionOffset,
    code: BTreeMap<SectionOffset, Code>,
    exits: BTreeMap<SectionOffset, Exit>,
    starts: BTreeSet<SectionOffset>,
    open: Vec<SectionOffset>,
}

impl<'a> Walk<'a> {
    fn new(image: &'a Image, entry: SectionOffset) -> Walk<'a> {
        let (code, exits) = (BTreeMap::new(), BTreeMap::new());
        Walk { image, entry, code, exits, starts: [entry].into(), open: vec![entry] }
    }

    fn blocks(mut self) -> Result<BTreeMap<SectionOffset, Block>, String> {
        while let Some(start) = self.open.pop() {
            self.run(start)?;
        }
        let mut blocks = BTreeMap::new();
        for &start in &self.starts {
            let mut code = Vec::new();
            let mut at = start;
            let exit = loop {
                let Some(one) = self.code.get(&at) else { break Exit::Nowhere };
                code.push(one.clone());
                if let Some(exit) = self.exits.get(&at) {
                    break exit.clone();
                }
                at = at + one.instruction.len() as i64;
                if self.starts.contains(&at) {
                    break Exit::Next(at);
                }
            };
            blocks.insert(start, Block { code, exit });
        }
        Ok(blocks)
    }

    /// The symbol that a place belongs to, with its parts elsewhere.
    fn is_own(&self, place: SectionOffset) -> bool {
        match (self.image.function_at(place), self.image.function_at(self.entry)) {
            (Some(other), Some(own)) => {
                let whole = |name: &str| name.split(".cold").next().map(str::to_owned);
                other.place == own.place
                    || (is_part(&other.name) && whole(&other.name) == whole(&own.name))
                    || (is_part(&other.name) && is_part(&own.name))
            }
            _ => false,
        }
    }

    /// Follows control from a place to where it branches.
    fn run(&mut self, start: SectionOffset) -> Result<(), String> {
        let mut at = start;
        loop {
            if self.code.contains_key(&at) {
                return Ok(());
            }
            if self.code.len() >= MAX_INSTRUCTIONS {
                return Err(format!("more than {MAX_INSTRUCTIONS} instructions"));
            }
            // After a call that does not return, there may be nothing.
            let inside = at == self.entry || self.is_own(at);
            let code = if inside { self.decode(at) } else { None };
            let Some(code) = code else { return Ok(()) };
            let next = at + code.instruction.len() as i64;
            let exit = self.exit(&code, next)?;
            self.code.insert(at, code);
            match exit {
                None => at = next,
                Some(exit) => {
                    let block = Block { code: Vec::new(), exit: exit.clone() };
                    for to in block.successors() {
                        if self.starts.insert(to) {
                            self.open.push(to);
                        }
                    }
                    self.exits.insert(at, exit);
                    return Ok(());
                }
            }
        }
    }

    fn exit(&self, code: &Code, next: SectionOffset) -> Result<Option<Exit>, String> {
        let instruction = &code.instruction;
        Ok(match instruction.flow_control() {
            FlowControl::Next | FlowControl::XbeginXabortXend => None,
            FlowControl::UnconditionalBranch => Some(match &code.branch {
                Some(Target::Place(to)) if self.is_own(*to) && (*to != self.entry) => Exit::Jump(*to),
                Some(Target::Place(to)) if *to == self.entry => Exit::Jump(*to),
                _ => Exit::TailCall,
            }),
            FlowControl::ConditionalBranch => match &code.branch {
                Some(Target::Place(to)) if self.is_own(*to) => Some(Exit::Branch(*to, next)),
                _ => return Err("a conditional jump to another function".to_owned()),
            },
            FlowControl::IndirectBranch => Some(match self.table(code) {
                Some(jumps) => Exit::Table(jumps),
                None => Exit::TailCall,
            }),
            FlowControl::Return => Some(Exit::Return),
            FlowControl::Call => match &code.branch {
                Some(Target::External(name)) if !returns(name) => Some(Exit::Nowhere),
                _ => None,
            },
            FlowControl::IndirectCall => match &code.displacement {
                Some(Reference::TableEntry(Target::External(name))) if !returns(name) => Some(Exit::Nowhere),
                _ => None,
            },
            FlowControl::Exception => Some(Exit::Nowhere),
            FlowControl::Interrupt => None,
        })
    }

    /// The table by which an indirect jump chooses.
    fn table(&self, code: &Code) -> Option<Jumps> {
        let instruction = &code.instruction;
        if instruction.op0_kind() == OpKind::Memory {
            let Some(Reference::Address(target, by)) = &code.displacement else { return None };
            let scaled = instruction.memory_index_scale() == 8 && instruction.memory_base() == Register::None;
            if !scaled || instruction.memory_index() == Register::None {
                return None;
            }
            let table = target.place(*by)?;
            let form = TableForm::Absolute(instruction.memory_index());
            return self.entries(table, 8).map(|entries| Jumps { table, entries, form });
        }
        // `lea table(%rip), %base; movslq (%base,%index,4), %entry; add %base, %entry; jmp *%entry`, with other
        // instructions between them.
        let before: Vec<&Code> =
            self.code.range(self.entry..code.place).map(|(_, code)| code).rev().take(40).collect();
        let table = before.iter().find_map(|code| match &code.displacement {
            Some(Reference::Address(target, by)) if code.instruction.mnemonic() == Mnemonic::Lea => {
                target.place(*by).filter(|table| self.image.section(*table).kind == SectionKind::ReadOnly)
            }
            _ => None,
        })?;
        let form = TableForm::Relative(instruction.op0_register());
        self.entries(table, 4).map(|entries| Jumps { table, entries, form })
    }

    /// Where the entries of a table lead, as long as they lead into this function.
    fn entries(&self, table: SectionOffset, size: i64) -> Option<Vec<SectionOffset>> {
        let section = self.image.section(table);
        if section.kind != SectionKind::ReadOnly {
            return None;
        }
        let mut entries = Vec::new();
        loop {
            let at = table.offset + size * i64::try_from(entries.len()).ok()?;
            let Some(Relocation { how, target, addend }) = section.relocations.get(&at) else { break };
            let to = match (*how, size) {
                (How::Absolute64, 8) => target.place(*addend),
                // Relative to the table, not to the entry.
                (How::Relative32, 4) => target.place(*addend - (at - table.offset)),
                _ => break,
            };
            let Some(to) = to else { break };
            if !self.is_own(to) {
                break;
            }
            entries.push(to);
        }
        (!entries.is_empty()).then_some(entries)
    }

    fn decode(&self, place: SectionOffset) -> Option<Code> {
        let section = self.image.section(place);
        let bytes = section.bytes.get(usize::try_from(place.offset).ok()?..)?;
        if section.kind != SectionKind::Code || bytes.is_empty() {
            return None;
        }
        let mut decoder = Decoder::with_ip(64, bytes, place.offset as u64, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let mut code =
            Code { place, instruction, displacement: None, immediate: None, branch: None, refused: None };
        if instruction.is_invalid() {
            code.refused = Some("bytes that are not an instruction".to_owned());
            return Some(code);
        }
        let offsets = decoder.get_constant_offsets(&instruction);
        let end = place.offset + instruction.len() as i64;
        let is_branch = matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        if is_branch {
            code.branch = Some(Target::Place(SectionOffset {
                offset: instruction.near_branch_target() as i64,
                ..place
            }));
        }
        // A place in the same section, which the assembler knows.
        if instruction.is_ip_rel_memory_operand() {
            let target = SectionOffset { offset: instruction.ip_rel_memory_address() as i64, ..place };
            code.displacement = Some(Reference::Address(Target::Place(target), 0));
        }
        if has_short_addresses(&bytes[..instruction.len()]) && reads_addresses(&instruction) {
            code.refused = Some("addresses of 32 bits".to_owned());
        }
        // An instruction that the assembly has and nobody knows.
        let last = SectionOffset { offset: end - 1, ..place };
        if let Some((_, text)) = self.image.unread.range(place..=last).next() {
            code.refused = Some(format!("the instruction `{text}`"));
        }
        for (&at, relocation) in section.relocations.range(place.offset..end) {
            let field = usize::try_from(at - place.offset).ok()?;
            let operand = if is_branch {
                Operand::Branch
            } else if offsets.has_displacement() && offsets.displacement_offset() == field {
                Operand::Displacement(offsets.displacement_size())
            } else if offsets.has_immediate() && offsets.immediate_offset() == field {
                Operand::Immediate(offsets.immediate_size())
            } else {
                code.refused = Some("a relocation inside an instruction".to_owned());
                continue;
            };
            match self.reference(&instruction, operand, relocation, end - at) {
                Some(Reference::Address(target, by)) if operand == Operand::Branch => {
                    code.branch = Some(target.moved(by));
                    if by != 0 && matches!(target, Target::External(_)) {
                        code.refused = Some("a jump to a place inside another file".to_owned());
                    }
                }
                Some(reference) => match operand {
                    Operand::Displacement(_) => code.displacement = Some(reference),
                    _ => code.immediate = Some(reference),
                },
                None => {
                    let how = relocation.how;
                    code.refused = Some(format!("a relocation of the form {how} in such an instruction"));
                }
            }
        }
        Some(code)
    }

    /// What an operand stands for, if a relocation of this form is followed there. It is that many bytes before the end
    /// of the instruction.
    fn reference(
        &self,
        instruction: &Instruction,
        operand: Operand,
        relocation: &Relocation,
        before_end: i64,
    ) -> Option<Reference> {
        let Relocation { how, target, addend } = relocation;
        let thread_local =
            target.place(0).is_some_and(|place| self.image.section(place).kind == SectionKind::ThreadLocal);
        let is_external = matches!(target, Target::External(_));
        if !is_external && thread_local != how.is_of_thread() {
            return None;
        }
        let relative = addend.wrapping_add(before_end);
        let after_ip = instruction.is_ip_rel_memory_operand();
        let wide = |kind| matches!(kind, OpKind::Immediate32to64);
        let kinds: Vec<OpKind> = instruction.op_kinds().collect();
        Some(match (*how, operand) {
            (How::Relative32, Operand::Branch) => Reference::Address(target.clone(), relative),
            (How::Relative32, Operand::Displacement(4)) if after_ip => {
                Reference::Address(target.clone(), relative)
            }
            (How::Absolute32Signed, Operand::Displacement(4)) if !after_ip => {
                Reference::Address(target.clone(), *addend)
            }
            (How::Absolute32Signed, Operand::Immediate(4)) if kinds.iter().copied().any(wide) => {
                Reference::Address(target.clone(), *addend)
            }
            (How::Absolute64, Operand::Immediate(8)) => Reference::Address(target.clone(), *addend),
            // The address of something in the lowest 4 GiB, with zeros above it.
            (How::Absolute32, Operand::Immediate(4)) if is_short_move(instruction) => {
                Reference::Address(target.clone(), *addend)
            }
            (How::TableEntry, Operand::Displacement(4)) if after_ip && relative == 0 => {
                Reference::TableEntry(target.clone())
            }
            (How::ThreadTableEntry, Operand::Displacement(4)) if after_ip && relative == 0 => {
                Reference::ThreadTableEntry(target.clone())
            }
            (How::ThreadPosition32, Operand::Displacement(4)) if !after_ip => {
                Reference::ThreadPosition(target.clone(), *addend)
            }
            _ => return None,
        })
    }
}

/// Which part of an instruction a relocation is about, with its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operand {
    Branch,
    Displacement(usize),
    Immediate(usize),
}

/// Whether an instruction moves a constant of 32 bits to a register, the rest of which becomes zero.
pub(crate) fn is_short_move(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_gpr32()
        && instruction.op1_kind() == OpKind::Immediate32
}

/// Whether the prefix for addresses of 32 bits is there.
fn has_short_addresses(bytes: &[u8]) -> bool {
    let is_prefix = |byte: &&u8| {
        matches!(**byte, 0x66 | 0x67 | 0xf2 | 0xf3 | 0xf0 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65)
    };
    bytes.iter().take_while(is_prefix).any(|byte| *byte == 0x67)
}

/// Whether an instruction has an operand in memory, or depends on how wide addresses are in another way.
fn reads_addresses(instruction: &Instruction) -> bool {
    !matches!(instruction.mnemonic(), Mnemonic::Nop)
        && !matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::Return
        )
}
