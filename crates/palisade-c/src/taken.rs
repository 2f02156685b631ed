//! Which functions a call through a pointer can mean: those whose address is used other than to call them.
//!
//! Two uses of an address say more about where it can end up:
//! - **Entries.** The function that `pthread_create` is given is called by the library only.
//! - **Virtual tables** of Rust. A table is a constant that rustc makes. Pointers to it point to its beginning, and a call loads
//!   the function from a fixed slot of it. So a function that occurs in virtual tables only is called through the slots
//!   in which it occurs.
//!
//! What is given to a precompiled function of Rust's library is not called by it: such a function is refused, or it
//! allocates, prints or panics.
//!
//! A call that would mean a function that is left out here fails like a call of an address that is not that of a
//! function. So a mistake here cannot hide one of the program.

use crate::Language;
use crate::library::rust;
use crate::link::{FunctionRef, Linked, Target};
use palisade_llvm::calls::{ArgumentValue, Call, Callee};
use palisade_llvm::instructions::{Instruction, Op};
use palisade_llvm::module::{Body, Function, Global, Module};
use palisade_llvm::types::Type;
use palisade_llvm::values::{ConstantId, ConstantKind, Expression, Operand, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// How the names of virtual tables begin.
const VIRTUAL_TABLE: &str = "vtable.";

/// Functions whose address is used.
#[derive(Default)]
pub(crate) struct AddressesTaken {
    functions: BTreeMap<FunctionRef, Uses>,
    /// Those that no module defines, and how many parameters they are declared with, if it is a fixed number.
    pub(crate) library: Vec<(Box<str>, Option<usize>)>,
}

/// Where the address of a function is used.
#[derive(Default)]
struct Uses {
    /// Elsewhere than below.
    anywhere: bool,
    /// The offsets in virtual tables.
    slots: BTreeSet<u64>,
}

impl AddressesTaken {
    /// Functions that threads may run.
    pub(crate) fn entries(&self) -> impl Iterator<Item = FunctionRef> {
        self.functions.keys().copied()
    }

    /// Functions that a call means, if it loads the function from a slot of a virtual table, or in another way.
    pub(crate) fn called(&self, slot: Option<u64>) -> impl Iterator<Item = FunctionRef> {
        let is_called = move |uses: &Uses| match slot {
            Some(slot) => uses.anywhere || uses.slots.contains(&slot),
            None => uses.anywhere || !uses.slots.is_empty(),
        };
        self.functions.iter().filter(move |(_, uses)| is_called(uses)).map(|(function, _)| *function)
    }
}

/// Collects them.
pub(crate) fn taken(linked: &Linked<'_>, language: Language) -> AddressesTaken {
    let mut walk = Walk {
        linked,
        language,
        taken: AddressesTaken::default(),
        library: BTreeSet::new(),
        seen: BTreeSet::new(),
    };
    for (index, module) in linked.modules.iter().enumerate() {
        for body in module.functions.iter().filter_map(|function| function.body.as_ref()) {
            body.blocks
                .iter()
                .flat_map(|block| &block.instructions)
                .for_each(|it| walk.instruction(index, it));
        }
        // What no instruction mentions is not used. In C that is rare, and in Rust there are tables for all types.
        if language != Language::Rust {
            let initializers = module.globals.iter().filter_map(|global| global.initializer);
            initializers.for_each(|initializer| walk.constant(index, initializer));
        }
    }
    walk.taken.library = walk.library.into_iter().collect();
    walk.taken
}

/// Follows constants to functions.
struct Walk<'a> {
    linked: &'a Linked<'a>,
    language: Language,
    taken: AddressesTaken,
    library: BTreeSet<(Box<str>, Option<usize>)>,
    /// The constants that were followed, by module.
    seen: BTreeSet<(usize, ConstantId)>,
}

impl Walk<'_> {
    /// What an instruction uses, other than to call it.
    fn instruction(&mut self, module: usize, instruction: &Instruction) {
        let mut called: Vec<Operand> = Vec::new();
        if let Some(call) = instruction.op.call()
            && let Callee::Value(callee) = call.callee
        {
            let target = self.target(module, callee);
            match &target {
                // A precompiled function of Rust is refused, or known to call nothing: it allocates, prints or panics.
                Some(Target::Library(name)) if rust::path(name).is_some() => return,
                Some(Target::Library(name)) => called.extend(entry(name, call)),
                _ => {}
            }
            for entry in &called {
                if let Some(Target::Function(function)) = self.target(module, *entry) {
                    self.taken.functions.entry(function).or_default();
                }
            }
            called.push(callee);
        }
        instruction.op.for_each_operand(|operand| {
            // The callee is an operand like any other, once, and so is the entry.
            if let Some(at) = called.iter().position(|known| *known == operand) {
                called.swap_remove(at);
            } else if let Operand::Constant(constant) = operand {
                self.constant(module, constant);
            }
        });
    }

    fn target(&self, module: usize, operand: Operand) -> Option<Target> {
        let Operand::Constant(constant) = operand else { return None };
        match self.linked.modules[module].constants[constant].kind {
            ConstantKind::Symbol(symbol) => self.linked.resolve(module, symbol),
            _ => None,
        }
    }

    /// A constant that is used, and everything that it leads to.
    fn constant(&mut self, module: usize, constant: ConstantId) {
        let mut open = vec![(module, constant)];
        while let Some((index, constant)) = open.pop() {
            if !self.seen.insert((index, constant)) {
                continue;
            }
            let module = &self.linked.modules[index];
            parts(module, constant, &mut |part| open.push((index, part)));
            match self.target(index, Operand::Constant(constant)) {
                Some(Target::Function(function)) => {
                    self.taken.functions.entry(function).or_default().anywhere = true;
                }
                Some(Target::Library(name)) => {
                    let declared = module.functions.iter().find(|function| {
                        function.body.is_none() && module.symbols[function.symbol].name == name
                    });
                    let is_fixed = |function: &&Function| {
                        !matches!(module.types.get(function.ty), Type::Function { variadic: true, .. })
                    };
                    let parameters = declared.filter(is_fixed).map(|function| function.parameters.len());
                    self.library.insert((name, parameters));
                }
                Some(Target::Global(global)) => {
                    let (index, global) =
                        (global.module, &self.linked.modules[global.module].globals[global.global]);
                    open.extend(self.global(index, global).into_iter().map(|part| (index, part)));
                }
                Some(Target::Missing(_)) | None => {}
            }
        }
    }

    /// What a global holds, but for the functions in the slots of a virtual table.
    fn global(&mut self, index: usize, global: &Global) -> Vec<ConstantId> {
        let module = &self.linked.modules[index];
        let Some(initializer) = global.initializer else { return Vec::new() };
        let is_table = self.language == Language::Rust
            && global.constant
            && module.symbols[global.symbol].name.starts_with(VIRTUAL_TABLE);
        let ConstantKind::Aggregate(fields) = &module.constants[initializer].kind else {
            return vec![initializer];
        };
        if !is_table {
            return vec![initializer];
        }
        let mut others = Vec::new();
        for (field, &part) in fields.iter().enumerate() {
            match (self.target(index, Operand::Constant(part)), module.layouts.field_offset(global.ty, field))
            {
                (Some(Target::Function(function)), Some(slot)) => {
                    self.taken.functions.entry(function).or_default().slots.insert(slot);
                }
                _ => others.push(part),
            }
        }
        others
    }
}

/// The function that a call of the library starts a thread with.
fn entry(name: &str, call: &Call) -> Option<Operand> {
    let argument = match name {
        "pthread_create" => 2,
        "thrd_create" => 1,
        _ => return None,
    };
    match call.arguments.get(argument)?.value {
        ArgumentValue::Operand(entry) => Some(entry),
        _ => None,
    }
}

/// What a constant consists of.
fn parts(module: &Module, constant: ConstantId, visit: &mut dyn FnMut(ConstantId)) {
    match &module.constants[constant].kind {
        ConstantKind::Aggregate(parts) => parts.iter().copied().for_each(visit),
        ConstantKind::Splat(part) => visit(*part),
        ConstantKind::Expression(expression) => match expression {
            Expression::Cast { value, .. } => visit(*value),
            Expression::GetElementPtr { base, indices, .. } => {
                visit(*base);
                indices.iter().copied().for_each(visit);
            }
            Expression::Binary { left, right, .. } | Expression::Compare { left, right, .. } => {
                visit(*left);
                visit(*right);
            }
            Expression::Select { condition, yes, no } => {
                visit(*condition);
                visit(*yes);
                visit(*no);
            }
        },
        _ => {}
    }
}

/// The slot of a virtual table from which a function is loaded, if the text shows it: a constant distance from a pointer
/// that was itself loaded or given.
pub(crate) fn slot(module: &Module, body: &Body, callee: Operand) -> Option<u64> {
    let Op::Load { pointer, .. } = definition(body, callee)? else { return None };
    match definition(body, *pointer) {
        Some(Op::GetElementPtr { source, base, indices, .. }) => {
            let [Operand::Constant(index)] = **indices else { return None };
            let ConstantKind::Integer(index) = module.constants[index].kind else { return None };
            let is_plain =
                matches!(definition(body, *base), None | Some(Op::Load { .. } | Op::ExtractValue { .. }));
            let size = module.layouts.size(*source)?;
            is_plain.then(|| u64::try_from(index).ok()?.checked_mul(size)).flatten()
        }
        None | Some(Op::Load { .. } | Op::ExtractValue { .. }) => Some(0),
        Some(_) => None,
    }
}

/// The instruction that defines a value. `None` for parameters.
fn definition(body: &Body, operand: Operand) -> Option<&Op> {
    let Operand::Local(value) = operand else { return None };
    let is_it = |result: Option<ValueId>| result == Some(value);
    let mut instructions = body.blocks.iter().flat_map(|block| &block.instructions);
    instructions.find(|instruction| is_it(instruction.result)).map(|instruction| &instruction.op)
}
