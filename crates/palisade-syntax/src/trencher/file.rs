//! The syntax tree of a Trencher file: threads with states and transitions.

use palisade_base::{IdVec, Span, define_id};
use palisade_program::Value;
use palisade_program::written::BinaryOp;

define_id!(
    /// A state of a thread.
    StateId
);
define_id!(
    /// A register of a thread.
    RegisterId
);

/// A whole file.
pub(super) struct File<'a> {
    /// `memory_size N`, if given.
    pub(super) memory_size: Option<(u32, Span)>,
    /// The threads in order.
    pub(super) threads: Vec<Thread<'a>>,
}

/// A name and where it first appears.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) span: Span,
}

/// A thread.
pub(super) struct Thread<'a> {
    pub(super) name: Word<'a>,
    pub(super) initial: StateId,
    /// `final Q`, if given.
    pub(super) last: Option<StateId>,
    pub(super) states: IdVec<StateId, State<'a>>,
    pub(super) registers: IdVec<RegisterId, Word<'a>>,
    pub(super) transitions: Vec<Transition>,
}

/// A state.
pub(super) struct State<'a> {
    pub(super) name: Word<'a>,
    /// Indices of the transitions that leave it, in order.
    pub(super) out: Vec<usize>,
}

/// A transition.
pub(super) struct Transition {
    pub(super) from: StateId,
    pub(super) to: StateId,
    /// Where the source state is written.
    pub(super) from_span: Span,
    pub(super) instruction: Instruction,
    /// The whole transition.
    pub(super) span: Span,
}

/// What a transition does.
pub(super) enum Instruction {
    Write { value: Term, address: Term },
    Read { register: RegisterId, address: Term },
    Fence,
    Local { register: RegisterId, value: Term },
    Check(Term),
    Noop,
    Lock,
    Unlock,
}

impl Instruction {
    /// The address that it accesses, if any.
    pub(super) fn address(&self) -> Option<&Term> {
        match self {
            Instruction::Write { address, .. } | Instruction::Read { address, .. } => Some(address),
            _ => None,
        }
    }

    /// The register it sets, if any.
    pub(super) fn sets(&self) -> Option<RegisterId> {
        match self {
            Instruction::Read { register, .. } | Instruction::Local { register, .. } => Some(*register),
            _ => None,
        }
    }

    /// The expressions it evaluates.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        let (first, second) = match self {
            Instruction::Write { value, address } => (Some(value), Some(address)),
            Instruction::Read { address, .. } => (Some(address), None),
            Instruction::Local { value, .. } | Instruction::Check(value) => (Some(value), None),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// An expression.
pub(super) struct Term {
    pub(super) kind: TermKind,
    pub(super) span: Span,
}

/// The kinds of expressions.
pub(super) enum TermKind {
    Int(Value),
    Register(RegisterId),
    Not(Box<Term>),
    Binary(BinaryOp, Box<Term>, Box<Term>),
}

impl Term {
    /// Calls `visit` for every mention of a register.
    pub(super) fn registers(&self, visit: &mut impl FnMut(RegisterId, Span)) {
        match &self.kind {
            TermKind::Int(_) => {}
            TermKind::Register(register) => visit(*register, self.span),
            TermKind::Not(operand) => operand.registers(visit),
            TermKind::Binary(_, left, right) => {
                left.registers(visit);
                right.registers(visit);
            }
        }
    }
}
