//! The variables of a test: their declarations, widths and initial values.

use super::heading::Arch;
use super::mnemonics::Op;
use super::parser::shown;
use super::registers::{Family, Register, Width};
use super::test::{Constant, InitItem, Location, OperandKind, Test, Word};
use crate::generate::Names;
use crate::report::Report;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, IdVec, Span, define_id};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

define_id!(
    /// A variable of a test.
    VarId
);

/// A variable.
pub(super) struct Variable {
    /// Its name in the program.
    pub(super) name: Arc<str>,
    /// Where it first appears.
    pub(super) span: Span,
    /// Its declared width.
    declared: Option<Width>,
    /// The widest access to a variable without a type; see [`Variables::width`].
    accessed: Option<Width>,
    /// `None` for a scalar, the number of elements for an array.
    pub(super) len: Option<u32>,
    /// Its initial values: none, one, or one per element.
    pub(super) init: Vec<Start>,
    /// Where its initial value is given.
    given: Option<Span>,
    /// Whether a register or variable can hold its address.
    pub(super) address_taken: bool,
    /// The address of its first cell.
    pub(super) address: i64,
    in_init: bool,
}

/// The initial value of a variable or register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    Number(i128, Span),
    Address(VarId, u32),
}

/// All variables, and the initial values of the registers.
pub(super) struct Variables<'a> {
    pub(super) all: IdVec<VarId, Variable>,
    by_name: FxHashMap<&'a str, VarId>,
    /// By thread number and register.
    pub(super) registers: FxHashMap<(u32, Family), (Register, Start)>,
    /// The widest access through a register.
    indirect: Option<Width>,
    arch: Arch,
}

/// How many undeclared variables are reported individually.
const MAX_WARNINGS: usize = 20;

impl<'a> Variables<'a> {
    /// Collects the variables that the initial state and the code mention, in the order of the text.
    pub(super) fn collect(test: &Test<'a>, names: &mut Names<'_>, report: &mut Report) -> Variables<'a> {
        let mut variables = Variables {
            all: IdVec::new(),
            by_name: FxHashMap::default(),
            registers: FxHashMap::default(),
            indirect: None,
            arch: test.arch,
        };
        let threads: FxHashSet<u32> = test.threads.iter().map(|thread| thread.number).collect();
        let mut undeclared = 0;
        for item in &test.init {
            if let Location::Variable { name, .. } = item.location {
                let id = variables.variable(name, names);
                variables.all[id].in_init = true;
            }
        }
        let declares = !variables.all.is_empty();
        for item in &test.init {
            if let Location::Register { thread, span, .. } = item.location
                && !test.threads.is_empty()
                && !threads.contains(&thread)
            {
                report.push(unknown_thread(thread, span, test));
                continue;
            }
            variables.init(item, names, report);
        }
        for thread in &test.threads {
            for instruction in &thread.code {
                for operand in thread.operands(instruction) {
                    let name = match &operand.kind {
                        OperandKind::Memory(memory) => memory.symbol,
                        OperandKind::Address(name, _) => Some(*name),
                        OperandKind::Name(name) if !instruction.mnemonic.is_jump() => Some(*name),
                        _ => None,
                    };
                    let Some(name) = name else { continue };
                    let known = variables.by_name.contains_key(name.text);
                    let id = variables.variable(name, names);
                    if matches!(operand.kind, OperandKind::Address(..)) || instruction.mnemonic.op == Op::Lea
                    {
                        variables.all[id].address_taken = true;
                    }
                    if !known && declares && undeclared < MAX_WARNINGS {
                        undeclared += 1;
                        report.push(variables.undeclared(name));
                    }
                }
            }
        }
        variables.check_elements(test, report);
        let mut address = 1;
        for id in variables.all.ids() {
            variables.all[id].address = address;
            address += i64::from(variables.all[id].len.unwrap_or(1));
        }
        variables
    }

    /// Checks that addresses in the initial state refer to elements that exist.
    fn check_elements(&self, test: &Test<'a>, report: &mut Report) {
        for (value, span) in test.init.iter().flat_map(|item| &item.values) {
            if let Constant::Address(name, element) = value
                && let Some(var) = self.find(name.text)
                && *element >= self.all[var].len.unwrap_or(1)
            {
                let message = format!("`{}` has no element {element}", shown(name.text));
                report.push(Diagnostic::error("outside-variable", message).at(*span, ""));
            }
        }
    }

    fn undeclared(&self, name: Word<'_>) -> Diagnostic {
        let message = format!("`{}` is not in the initial state, so it starts at 0", shown(name.text));
        let diagnostic = Diagnostic::warning("undeclared-variable", message).at(name.span, "");
        let known =
            self.all.iter().filter(|variable| variable.in_init).map(|variable| &*variable.name).take(500);
        match nearest(name.text, known) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        }
    }

    fn variable(&mut self, name: Word<'a>, names: &mut Names<'_>) -> VarId {
        let all = &mut self.all;
        *self.by_name.entry(name.text).or_insert_with(|| {
            all.push(Variable {
                name: names.fresh(name.text),
                span: name.span,
                declared: None,
                accessed: None,
                len: None,
                init: Vec::new(),
                given: None,
                address_taken: false,
                address: 0,
                in_init: false,
            })
        })
    }

    fn init(&mut self, item: &InitItem<'a>, names: &mut Names<'_>, report: &mut Report) {
        let mut starts = Vec::new();
        for (value, span) in &item.values {
            starts.push(match *value {
                Constant::Number(number) => Start::Number(number, *span),
                Constant::Address(name, element) => {
                    let id = self.variable(name, names);
                    self.all[id].address_taken = true;
                    Start::Address(id, element)
                }
            });
        }
        match item.location {
            Location::Register { thread, register, span } => {
                let start = starts.first().copied().unwrap_or(Start::Number(0, span));
                if let Start::Number(number, span) = start
                    && register.part.width().signed(number).is_none()
                {
                    report.push(too_wide(number, register.part.width(), span));
                }
                let key = (thread, register.family);
                if !item.values.is_empty()
                    && self.registers.get(&key).is_some_and(|(_, start)| is_given(start))
                {
                    let message = "this register has two initial values";
                    report.push(Diagnostic::error("defined-twice", message).at(item.span, ""));
                } else if !item.values.is_empty() || !self.registers.contains_key(&key) {
                    self.registers.insert(key, (register, start));
                }
            }
            Location::Variable { name, .. } => {
                let id = self.variable(name, names);
                let variable = &mut self.all[id];
                if !starts.is_empty() {
                    if let Some(first) = variable.given.replace(item.span) {
                        let message = format!("`{}` has two initial values", shown(name.text));
                        let diagnostic = Diagnostic::error("defined-twice", message).at(item.span, "");
                        report.push(diagnostic.at(first, "the first one is here"));
                    }
                    variable.init = starts;
                }
                if let Some(ty) = item.ty {
                    if variable.declared.is_some_and(|declared| declared != ty.width) {
                        let message = format!("`{}` is declared with two types", shown(name.text));
                        report.push(Diagnostic::error("defined-twice", message).at(ty.span, ""));
                    }
                    variable.declared = Some(ty.width);
                }
                if item.len.is_some() {
                    variable.len = item.len;
                }
                let width = variable.declared;
                let pointer = if self.arch == Arch::X86 { Width::LONG } else { Width::QUAD };
                for start in &variable.init {
                    match (start, width) {
                        (Start::Number(number, span), Some(width)) if width.signed(*number).is_none() => {
                            report.push(too_wide(*number, width, *span));
                        }
                        (Start::Number(number, span), None) if Width::QUAD.signed(*number).is_none() => {
                            report.push(too_wide(*number, Width::QUAD, *span));
                        }
                        (Start::Address(..), None) => variable.accessed = Some(pointer),
                        _ => {}
                    }
                }
            }
        }
    }

    /// The variable with a name, if there is one.
    pub(super) fn find(&self, name: &str) -> Option<VarId> {
        self.by_name.get(name).copied()
    }

    /// The error for a condition that mentions an unknown variable.
    pub(super) fn unknown(&self, name: Word<'_>, suggest: bool) -> Diagnostic {
        let message = format!("this test has no variable `{}`", shown(name.text));
        let diagnostic = Diagnostic::error("unknown-variable", message).at(name.span, "");
        let known = self.all.iter().map(|variable| &*variable.name).take(500);
        match suggest.then(|| nearest(name.text, known)).flatten() {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help("write a register together with its thread: `0:EAX`"),
        }
    }

    /// The width of a variable: the declared width, else that of its widest access, else that of an int.
    pub(super) fn width(&self, id: VarId) -> Width {
        let variable = &self.all[id];
        let indirect = self.indirect.filter(|_| variable.address_taken);
        variable.declared.or(variable.accessed.max(indirect)).unwrap_or(Width::LONG)
    }

    /// Records an access to a variable. It matters if the variable has no type.
    pub(super) fn note_access(&mut self, id: VarId, width: Width) {
        let accessed = &mut self.all[id].accessed;
        *accessed = (*accessed).max(Some(width));
    }

    /// Records an access through a register. It may be to any variable whose address is taken.
    pub(super) fn note_indirect(&mut self, width: Width) {
        self.indirect = self.indirect.max(Some(width));
    }
}

fn is_given(start: &Start) -> bool {
    !matches!(start, Start::Number(0, _))
}

/// The error for an unknown thread.
pub(super) fn unknown_thread(thread: u32, span: Span, test: &Test<'_>) -> Diagnostic {
    let message = format!("there is no thread P{thread}");
    let names: Vec<&str> = test.threads.iter().map(|thread| thread.name.text).take(8).collect();
    Diagnostic::error("unknown-thread", message)
        .at(span, "")
        .help(format!("the threads are {}", names.join(", ")))
}

/// The error for a number with too many bits.
pub(super) fn too_wide(number: i128, width: Width, span: Span) -> Diagnostic {
    Diagnostic::error("constant-too-wide", format!("{number} does not fit into {width} bits")).at(span, "")
}
