//! Instructions with their operands in a fixed order, whatever the notation, and with names resolved.

use super::mnemonics::{Mnemonic, Op};
use super::parser::shown;
use super::registers::{Part, Register, Width};
use super::test::{Instruction, Operand, OperandKind, Test, Thread, Word};
use super::variables::{VarId, Variables};
use crate::report::Report;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, Span};
use rustc_hash::FxHashMap;

/// An instruction.
#[derive(Debug)]
pub(super) struct Instr {
    pub(super) op: Op,
    pub(super) locked: bool,
    /// How many bits it works on, if its name says so.
    pub(super) width: Option<Width>,
    /// The operand that it changes or compares.
    pub(super) destination: Option<Opnd>,
    /// The other operand.
    pub(super) source: Option<Opnd>,
    /// The target of a jump: the position of an instruction, or one past the last.
    pub(super) target: Option<usize>,
    pub(super) span: Span,
}

/// An operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Opnd {
    Register(Register, Span),
    Number(i128, Span),
    /// The address of a variable plus this many bytes.
    Address(VarId, i64, Span),
    Memory(Mem),
}

impl Opnd {
    pub(super) fn span(&self) -> Span {
        match self {
            Opnd::Register(_, span) | Opnd::Number(_, span) | Opnd::Address(_, _, span) => *span,
            Opnd::Memory(memory) => memory.span,
        }
    }

    fn is_memory(&self) -> bool {
        matches!(self, Opnd::Memory(_))
    }

    fn is_constant(&self) -> bool {
        matches!(self, Opnd::Number(..) | Opnd::Address(..))
    }

    /// The width of the operand itself, if it has one.
    fn width(&self) -> Option<Width> {
        match self {
            Opnd::Register(register, _) => Some(register.part.width()),
            Opnd::Memory(memory) => memory.size,
            _ => None,
        }
    }
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mem {
    pub(super) var: Option<VarId>,
    pub(super) base: Option<Register>,
    pub(super) index: Option<(Register, i64)>,
    /// The displacement in bytes.
    pub(super) displacement: i64,
    size: Option<Width>,
    pub(super) span: Span,
}

/// The order in which operands are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Notation {
    /// The destination comes last.
    AtAndT,
    /// The destination comes first.
    Intel,
}

/// Resolves the names of all instructions. The result is as long as the code of each thread, with `None` for
/// instructions that were reported as errors.
pub(super) fn resolve<'a>(
    text: &str,
    test: &Test<'a>,
    variables: &mut Variables<'a>,
    report: &mut Report,
) -> Vec<Vec<Option<Instr>>> {
    let notation = notation(text, test, report);
    test.threads
        .iter()
        .map(|thread| {
            let labels = labels(thread, report);
            (thread.code.iter())
                .map(|instruction| {
                    let operands = thread.operands(instruction);
                    let resolver = Resolver { notation, variables, labels: &labels, instruction, operands };
                    match resolver.instruction() {
                        Ok(instr) => Some(instr),
                        Err(Problem::Label(word)) => {
                            report.push(unknown_label(word, thread, report.has_room()));
                            None
                        }
                        Err(Problem::Other(diagnostic)) => {
                            report.push(*diagnostic);
                            None
                        }
                    }
                })
                .collect()
        })
        .collect()
}

/// The notation of a test. Unambiguous instructions decide first: a number is never a destination.
fn notation(text: &str, test: &Test<'_>, report: &mut Report) -> Notation {
    let mut first: [Option<Span>; 2] = [None, None];
    let (mut percent, mut pointer, mut parentheses, mut suffix) = (false, false, false, false);
    for (thread, instruction) in
        test.threads.iter().flat_map(|thread| thread.code.iter().map(move |i| (thread, i)))
    {
        let operands = thread.operands(instruction);
        if let [left, right] = operands {
            let is_number = |operand: &Operand<'_>| {
                matches!(operand.kind, OperandKind::Number(_) | OperandKind::Address(..))
            };
            if is_number(left) != is_number(right) {
                let slot = if is_number(left) { 0 } else { 1 };
                first[slot].get_or_insert(instruction.span);
            }
        }
        suffix |= instruction.mnemonic.width.is_some();
        for operand in operands {
            let written = &text[operand.span.range()];
            percent |= written.contains('%');
            parentheses |= written.contains('(');
            pointer |= matches!(&operand.kind, OperandKind::Memory(memory) if memory.size.is_some());
        }
    }
    match first {
        [Some(at_and_t), Some(intel)] => {
            let diagnostic = Diagnostic::error("mixed-notation", "this test mixes AT&T and Intel notation");
            report.push(
                diagnostic
                    .at(at_and_t.max(intel), "")
                    .at(at_and_t.min(intel), "here the operands are in the other order")
                    .help("AT&T notation puts the destination last (`movl $1,(x)`), Intel notation puts it first (`mov [x], 1`)"),
            );
            Notation::AtAndT
        }
        [Some(_), None] => Notation::AtAndT,
        [None, Some(_)] => Notation::Intel,
        [None, None] if percent => Notation::AtAndT,
        [None, None] if pointer => Notation::Intel,
        [None, None] if parentheses => Notation::AtAndT,
        [None, None] if suffix && test.arch == super::heading::Arch::X86_64 => Notation::AtAndT,
        [None, None] => Notation::Intel,
    }
}

/// The labels of a thread and their positions.
fn labels<'a>(thread: &Thread<'a>, report: &mut Report) -> FxHashMap<&'a str, usize> {
    let mut positions: FxHashMap<&'a str, (usize, Span)> = FxHashMap::default();
    for (position, label) in &thread.labels {
        if let Some((_, first)) = positions.get(label.text) {
            let message = format!("label `{}` is defined twice in this thread", shown(label.text));
            report.push(
                Diagnostic::error("defined-twice", message)
                    .at(label.span, "")
                    .at(*first, "first defined here"),
            );
        } else {
            positions.insert(label.text, (*position, label.span));
        }
    }
    positions.into_iter().map(|(name, (position, _))| (name, position)).collect()
}

fn unknown_label(word: Word<'_>, thread: &Thread<'_>, suggest: bool) -> Diagnostic {
    let message = format!("label `{}` is not defined in {}", shown(word.text), thread.name.text);
    let diagnostic = Diagnostic::error("unknown-label", message).at(word.span, "");
    let known = thread.labels.iter().map(|(_, label)| label.text).take(500);
    match suggest.then(|| nearest(word.text, known)).flatten() {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => {
            diagnostic.help("a jump needs a label in the same thread, written `L:` before an instruction")
        }
    }
}

enum Problem<'a> {
    Label(Word<'a>),
    Other(Box<Diagnostic>),
}

impl From<Diagnostic> for Problem<'_> {
    fn from(diagnostic: Diagnostic) -> Self {
        Problem::Other(Box::new(diagnostic))
    }
}

struct Resolver<'r, 'a, 'v> {
    notation: Notation,
    variables: &'v mut Variables<'a>,
    labels: &'r FxHashMap<&'a str, usize>,
    instruction: &'r Instruction<'a>,
    operands: &'r [Operand<'a>],
}

impl<'a> Resolver<'_, 'a, '_> {
    fn instruction(mut self) -> Result<Instr, Problem<'a>> {
        let Instruction { mnemonic: Mnemonic { op, width }, span, .. } = self.instruction;
        let mut instr = Instr {
            op: *op,
            locked: self.instruction.lock.is_some(),
            width: *width,
            destination: None,
            source: None,
            target: None,
            span: *span,
        };
        match op {
            Op::Nothing => {}
            Op::Jmp | Op::Jcc(_) => instr.target = Some(self.target()?),
            _ => {
                self.count(*op, self.operands.len())?;
                (instr.destination, instr.source) = match self.operands {
                    [] => (None, None),
                    [only] => (Some(self.operand(only)), None),
                    [first, second, ..] => {
                        let (first, second) = (self.operand(first), self.operand(second));
                        if (self.notation == Notation::AtAndT) != self.is_reversed(*op, &first, &second) {
                            (Some(second), Some(first))
                        } else {
                            (Some(first), Some(second))
                        }
                    }
                };
                self.shapes(&instr)?;
                self.widths(&mut instr)?;
            }
        }
        self.lock(&instr)?;
        Ok(instr)
    }

    fn error(&self, id: &'static str, message: String, span: Span) -> Diagnostic {
        Diagnostic::error(id, message).at(span, "")
    }

    fn name(&self) -> &'a str {
        self.instruction.name.text
    }

    fn target(&self) -> Result<usize, Problem<'a>> {
        match self.operands {
            [Operand { kind: OperandKind::Name(word), .. }] => {
                self.labels.get(word.text).copied().ok_or(Problem::Label(*word))
            }
            _ => {
                let message = format!("`{}` takes one label", self.name());
                Err(self.error("bad-operand", message, self.instruction.span).into())
            }
        }
    }

    fn operand(&self, operand: &Operand<'a>) -> Opnd {
        let span = operand.span;
        let var = |word: &Word<'_>| {
            self.variables.find(word.text).expect("every variable of the code was collected")
        };
        match &operand.kind {
            OperandKind::Register(register) => Opnd::Register(*register, span),
            OperandKind::Number(number) => Opnd::Number(*number, span),
            OperandKind::Address(name, offset) => Opnd::Address(var(name), *offset, span),
            OperandKind::Name(name) => Opnd::Memory(Mem {
                var: Some(var(name)),
                base: None,
                index: None,
                displacement: 0,
                size: None,
                span,
            }),
            OperandKind::Memory(memory) => {
                let mut base = memory.base;
                let mut index = memory.index;
                if base.is_none() && index.is_some_and(|(_, scale)| scale == 1) {
                    base = index.take().map(|(register, _)| register);
                }
                Opnd::Memory(Mem {
                    var: memory.symbol.as_ref().map(var),
                    base,
                    index,
                    displacement: memory.displacement,
                    size: memory.size,
                    span,
                })
            }
        }
    }

    fn count(&self, op: Op, found: usize) -> Result<(), Problem<'a>> {
        let (least, most) = match op {
            Op::Mfence | Op::Sfence => (0, 0),
            Op::Inc | Op::Dec | Op::Neg | Op::Not | Op::Set(_) => (1, 1),
            Op::Shift(_) => (1, 2),
            _ => (2, 2),
        };
        if (least..=most).contains(&found) {
            return Ok(());
        }
        let wanted = match most {
            0 => "no operands".to_owned(),
            1 => "one operand".to_owned(),
            _ if least == 1 => "one or two operands".to_owned(),
            _ => "two operands".to_owned(),
        };
        let message = format!("`{}` takes {wanted}, not {found}", self.name());
        Err(self.error("wrong-operands", message, self.instruction.span).into())
    }

    /// Whether the operands are in the opposite order to the notation. herd writes `cmpxchg (x),%rbx` and
    /// `cmovc %rax,(x)`. Only one order makes sense there, so both are accepted.
    fn is_reversed(&self, op: Op, left: &Opnd, right: &Opnd) -> bool {
        let (first, second) = match self.notation {
            Notation::AtAndT => (right, left),
            Notation::Intel => (left, right),
        };
        match op {
            Op::Cmpxchg | Op::Xadd => second.is_memory() && !first.is_memory(),
            Op::Cmov(_) => first.is_memory() && !second.is_memory(),
            Op::Test => first.is_constant() && !second.is_constant(),
            _ => false,
        }
    }

    /// Checks that the instruction accepts these kinds of operands.
    fn shapes(&self, instr: &Instr) -> Result<(), Problem<'a>> {
        let (Some(destination), source) = (&instr.destination, &instr.source) else { return Ok(()) };
        let bad = |message: &str, operand: &Opnd| {
            let message = format!("{message} `{}`", self.name());
            self.error("bad-operand", message, operand.span())
        };
        if destination.is_constant() {
            let help = match self.notation {
                Notation::AtAndT => "this test is in AT&T notation: the destination comes last",
                Notation::Intel => "this test is in Intel notation: the destination comes first",
            };
            return Err(bad("a constant cannot be the destination of", destination).help(help).into());
        }
        if let (Opnd::Memory(_), Some(second @ Opnd::Memory(_))) = (destination, source) {
            let diagnostic = bad("at most one memory operand is allowed for", second);
            return Err(diagnostic.help("copy one of them through a register").into());
        }
        let needs_register = matches!(instr.op, Op::Lea | Op::MovZero(_) | Op::MovSign(_) | Op::Cmov(_));
        if needs_register && destination.is_memory() {
            return Err(bad("expected a register as the destination of", destination).into());
        }
        let Some(source) = source else { return Ok(()) };
        match instr.op {
            Op::Lea if !source.is_memory() => Err(bad("expected an address for", source).into()),
            Op::Cmpxchg | Op::Xadd | Op::Xchg | Op::XchgUnlocked if source.is_constant() => {
                Err(bad("expected a register for", source).into())
            }
            Op::Cmpxchg | Op::Xadd if source.is_memory() => {
                Err(bad("expected a register for", source).into())
            }
            Op::MovZero(_) | Op::MovSign(_) | Op::Cmov(_) if source.is_constant() => {
                Err(bad("expected a register or memory for", source).into())
            }
            Op::Shift(_) | Op::Bit(_) if !matches!(source, Opnd::Number(..)) => {
                Err(bad("only constant counts and bit numbers are supported for", source).into())
            }
            _ => Ok(()),
        }
    }

    /// Determines how many bits the instruction works on, and checks that its operands agree.
    fn widths(&mut self, instr: &mut Instr) -> Result<(), Problem<'a>> {
        let Some(destination) = instr.destination else { return Ok(()) };
        let source_width = instr.source.and_then(|source| source.width());
        match instr.op {
            Op::MovZero(from) | Op::MovSign(from) => {
                instr.width = self.agree(instr.width, destination.width(), instr.span)?;
                let from = self.agree(from, source_width, instr.span)?;
                if let (Some(from), Some(to)) = (from, instr.width)
                    && from >= to
                {
                    let message = format!("`{}` cannot widen {from} bits to {to}", self.name());
                    return Err(self.error("operand-size", message, instr.span).into());
                }
                instr.op =
                    if matches!(instr.op, Op::MovZero(_)) { Op::MovZero(from) } else { Op::MovSign(from) };
                self.note(&instr.source, from);
            }
            Op::Set(_) => {
                instr.width = self.agree(Some(Width::BYTE), destination.width(), instr.span)?;
                self.note(&instr.destination, instr.width);
            }
            Op::Lea => instr.width = self.agree(instr.width, destination.width(), instr.span)?,
            _ => {
                instr.width = self.agree(instr.width, destination.width(), instr.span)?;
                instr.width = self.agree(instr.width, source_width, instr.span)?;
                self.note(&instr.destination, instr.width);
                self.note(&instr.source, instr.width);
            }
        }
        Ok(())
    }

    fn agree(
        &self,
        one: Option<Width>,
        other: Option<Width>,
        span: Span,
    ) -> Result<Option<Width>, Problem<'a>> {
        match (one, other) {
            (Some(one), Some(other)) if one != other => {
                let message = format!("`{}` mixes {one}-bit and {other}-bit operands", self.name());
                Err(self.error("operand-size", message, span).into())
            }
            _ => Ok(one.or(other)),
        }
    }

    /// Records the width of an access.
    fn note(&mut self, operand: &Option<Opnd>, width: Option<Width>) {
        let (Some(Opnd::Memory(memory)), Some(width)) = (operand, width) else { return };
        match memory.var {
            Some(var) => self.variables.note_access(var, width),
            None => self.variables.note_indirect(width),
        }
    }

    fn lock(&self, instr: &Instr) -> Result<(), Problem<'a>> {
        let Some(lock) = self.instruction.lock else { return Ok(()) };
        let can_be_locked = matches!(
            instr.op,
            Op::Binary(_)
                | Op::Inc
                | Op::Dec
                | Op::Neg
                | Op::Not
                | Op::Xchg
                | Op::Xadd
                | Op::Cmpxchg
                | Op::Bit(_)
        ) && instr.op != Op::Bit(super::mnemonics::BitOp::Keep);
        let on_memory = instr.destination.is_some_and(|operand| operand.is_memory())
            || instr.op == Op::Xchg && instr.source.is_some_and(|operand| operand.is_memory());
        if can_be_locked && on_memory {
            return Ok(());
        }
        let message = if can_be_locked {
            format!("`lock {}` needs a memory operand that it changes", self.name())
        } else {
            format!("`{}` cannot be locked", self.name())
        };
        Err(self.error("bad-lock", message, lock).into())
    }
}

impl Register {
    /// The part of the accumulator that a `cmpxchg` of this width compares with.
    pub(super) fn accumulator(width: Width) -> Register {
        Register { family: super::registers::Family::ACCUMULATOR, part: Part::low(width) }
    }
}
