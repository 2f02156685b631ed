//! What the exported text uses, and what must therefore be declared at its top.
//!
//! The declarations come first in the file, but they depend on the rest. So the rest is written first, and
//! everything that has to be declared is recorded here when its name is written.
//!
//! *Invariant.* The name of a guard, of the old values, of the stack, of a register or of a variable gets
//! into the text only through a function that records it. `tests/suite/declared.rs` checks that exactly what
//! is used is declared.

use palisade_base::IdVec;
use palisade_program::running::RegId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// A check that the result of an operation fits into the numbers of the other language.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Guard {
    Add,
    Sub,
    Mul,
    Div,
    Shl,
}

impl Guard {
    fn name(self) -> &'static str {
        match self {
            Guard::Add => "can_add",
            Guard::Sub => "can_sub",
            Guard::Mul => "can_mul",
            Guard::Div => "can_div",
            Guard::Shl => "can_shl",
        }
    }
}

/// What is used by the text written so far.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    guards: RefCell<BTreeSet<Guard>>,
    wraps: Cell<bool>,
    old_value: Cell<bool>,
    old_arguments: Cell<bool>,
    stack: Cell<bool>,
    /// Private variables, by their registers.
    privates: RefCell<BTreeSet<RegId>>,
}

/// The variable in which a step keeps an old value.
pub(crate) const OLD_VALUE: &str = "old_value";
/// The array in which a call keeps its arguments.
pub(crate) const OLD_ARGUMENTS: &str = "old_values";

impl Uses {
    /// A call of a guard.
    pub fn guard(&self, guard: Guard, a: &str, b: &str) -> String {
        self.guards.borrow_mut().insert(guard);
        format!("{}({a}, {b})", guard.name())
    }

    pub fn has_guard(&self, guard: Guard) -> bool {
        self.guards.borrow().contains(&guard)
    }

    /// A value that wraps around in a range.
    pub fn wrap(&self, value: &str, lo: &str, hi: &str) -> String {
        self.wraps.set(true);
        format!("wrap({value}, {lo}, {hi})")
    }

    pub fn has_wrap(&self) -> bool {
        self.wraps.get()
    }

    /// The variable in which a step keeps an old value.
    pub fn old_value(&self) -> String {
        self.old_value.set(true);
        OLD_VALUE.to_owned()
    }

    pub fn has_old_value(&self) -> bool {
        self.old_value.get()
    }

    /// Where a call keeps the argument with this index.
    pub fn old_argument(&self, index: usize) -> String {
        self.old_arguments.set(true);
        format!("{OLD_ARGUMENTS}[{index}]")
    }

    pub fn has_old_arguments(&self) -> bool {
        self.old_arguments.get()
    }

    /// The size of the stacks of recursive procedures.
    pub fn stack(&self) -> &'static str {
        self.stack.set(true);
        "STACK"
    }

    pub fn has_stack(&self) -> bool {
        self.stack.get()
    }

    /// A private variable was mentioned.
    pub fn private(&self, register: RegId) {
        self.privates.borrow_mut().insert(register);
    }

    pub fn has_private(&self, register: RegId) -> bool {
        self.privates.borrow().contains(&register)
    }
}

/// The names of the registers of a routine, and which of them its text mentions.
#[derive(Clone, Debug)]
pub(crate) struct Registers {
    names: IdVec<RegId, String>,
    mentioned: RefCell<BTreeSet<RegId>>,
}

impl FromIterator<String> for Registers {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Registers {
        Registers { names: names.into_iter().collect(), mentioned: RefCell::default() }
    }
}

impl Registers {
    /// The name of a register, for text that mentions it.
    pub fn name(&self, register: RegId) -> String {
        self.mentioned.borrow_mut().insert(register);
        self.names[register].clone()
    }

    pub fn is_mentioned(&self, register: RegId) -> bool {
        self.mentioned.borrow().contains(&register)
    }

    /// All names, for declarations.
    pub fn declared(&self) -> &IdVec<RegId, String> {
        &self.names
    }
}
