//! The syntax tree of a litmus test.

use super::heading::Arch;
use super::mnemonics::Mnemonic;
use super::registers::{Register, Width};
use palisade_base::Span;
use std::ops::Range;

/// A whole test.
pub(super) struct Test<'a> {
    pub(super) arch: Arch,
    pub(super) init: Vec<InitItem<'a>>,
    pub(super) threads: Vec<Thread<'a>>,
    /// `locations [...]`: shown in lists of outcomes.
    pub(super) locations: Vec<Location<'a>>,
    pub(super) filter: Option<Condition<'a>>,
    pub(super) question: Option<(Quantifier, Condition<'a>, Span)>,
}

/// A name and its span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) span: Span,
}

/// A column of the code.
pub(super) struct Thread<'a> {
    /// `0` for `P0`.
    pub(super) number: u32,
    pub(super) name: Word<'a>,
    pub(super) code: Vec<Instruction<'a>>,
    /// The operands of all instructions, in one list.
    pub(super) operands: Vec<Operand<'a>>,
    /// Labels, each with the position of the instruction after it.
    pub(super) labels: Vec<(usize, Word<'a>)>,
}

impl<'a> Thread<'a> {
    /// The operands of an instruction.
    pub(super) fn operands(&self, instruction: &Instruction<'a>) -> &[Operand<'a>] {
        &self.operands[instruction.operands.start as usize..instruction.operands.end as usize]
    }
}

/// An instruction.
pub(super) struct Instruction<'a> {
    pub(super) lock: Option<Span>,
    pub(super) mnemonic: Mnemonic,
    pub(super) name: Word<'a>,
    /// The range of its operands in the thread's list.
    pub(super) operands: Range<u32>,
    pub(super) span: Span,
}

/// An operand.
#[derive(Debug)]
pub(super) struct Operand<'a> {
    pub(super) kind: OperandKind<'a>,
    pub(super) span: Span,
}

/// The kinds of operands.
#[derive(Debug)]
pub(super) enum OperandKind<'a> {
    Register(Register),
    Number(i128),
    /// `$x`: the address of a variable.
    Address(Word<'a>, i64),
    /// `x`: a variable, or a label.
    Name(Word<'a>),
    Memory(Memory<'a>),
}

/// A memory operand.
#[derive(Debug, Default)]
pub(super) struct Memory<'a> {
    pub(super) symbol: Option<Word<'a>>,
    pub(super) base: Option<Register>,
    pub(super) index: Option<(Register, i64)>,
    /// The displacement in bytes.
    pub(super) displacement: i64,
    /// `dword ptr` and similar.
    pub(super) size: Option<Width>,
}

/// One item of the initial state.
pub(super) struct InitItem<'a> {
    pub(super) location: Location<'a>,
    pub(super) ty: Option<Ty>,
    /// The number of elements, for an array.
    pub(super) len: Option<u32>,
    /// The values. Empty if none are given.
    pub(super) values: Vec<(Constant<'a>, Span)>,
    pub(super) span: Span,
}

/// A declared type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ty {
    pub(super) width: Width,
    pub(super) span: Span,
}

/// A register of a thread, or a variable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Location<'a> {
    Register { thread: u32, register: Register, span: Span },
    Variable { name: Word<'a>, element: Option<u32>, span: Span },
}

/// A constant value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Constant<'a> {
    Number(i128),
    /// The address of a variable, or of an element of an array.
    Address(Word<'a>, u32),
}

/// What the test asks about its outcomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quantifier {
    /// `exists`.
    Reachable,
    /// `~exists`.
    Unreachable,
    /// `forall`.
    Always,
}

/// A condition on an outcome.
#[derive(Clone, Debug)]
pub(super) enum Condition<'a> {
    Constant(bool, Span),
    Atom(Box<Atom<'a>>),
    Not(Box<Condition<'a>>, Span),
    /// All conditions hold.
    And(Vec<Condition<'a>>),
    /// At least one condition holds.
    Or(Vec<Condition<'a>>),
    Implies(Box<Condition<'a>>, Box<Condition<'a>>),
}

/// A comparison.
#[derive(Clone, Debug)]
pub(super) struct Atom<'a> {
    pub(super) left: Location<'a>,
    pub(super) equal: bool,
    pub(super) right: Side<'a>,
    pub(super) span: Span,
}

/// The right side of a comparison.
#[derive(Clone, Debug)]
pub(super) enum Side<'a> {
    Constant(Constant<'a>, Span),
    Location(Location<'a>),
    /// The contents of an array.
    Elements(Vec<(Constant<'a>, Span)>),
}
