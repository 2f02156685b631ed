//! All object files of a program, and which function calls which.

use crate::decode::{Code, Function, Reference, functions};
use crate::image::{Image, SectionOffset, Target};
use crate::library;
use iced_x86::{FlowControl, OpKind};
use std::collections::BTreeSet;

/// One object file.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) image: Image,
    pub(crate) functions: Vec<Function>,
}

/// A function, by its unit and its index there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FunctionId {
    pub(crate) unit: usize,
    pub(crate) index: usize,
}

/// What a call calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Callee {
    Function(FunctionId),
    /// A function that no file defines.
    Library(String),
    /// A function whose address is computed.
    Pointer,
}

/// The object files of a program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) units: Vec<Unit>,
    /// The functions whose address is used other than to call them.
    pub(crate) address_taken: Vec<FunctionId>,
    /// Those of the C library.
    pub(crate) library_taken: Vec<String>,
}

impl Program {
    pub(crate) fn new(images: Vec<Image>) -> Program {
        let units = images.into_iter().map(|image| Unit { functions: functions(&image), image }).collect();
        let mut program = Program { units, address_taken: Vec::new(), library_taken: Vec::new() };
        let (taken, library) = program.find_address_taken();
        program.address_taken = taken.into_iter().collect();
        program.library_taken = library.into_iter().collect();
        program
    }

    pub(crate) fn function(&self, id: FunctionId) -> &Function {
        &self.units[id.unit].functions[id.index]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = FunctionId> + '_ {
        let of_unit =
            |(unit, of): (usize, &Unit)| (0..of.functions.len()).map(move |index| FunctionId { unit, index });
        self.units.iter().enumerate().flat_map(of_unit)
    }

    /// The function at a place.
    pub(crate) fn at(&self, unit: usize, place: SectionOffset) -> Option<FunctionId> {
        let index = self.units[unit].functions.iter().position(|function| function.entry == place)?;
        Some(FunctionId { unit, index })
    }

    /// The function with a name that all files see.
    pub(crate) fn named(&self, name: &str) -> Option<FunctionId> {
        let is_named = |id: &FunctionId, weak: bool| {
            let function = self.function(*id);
            (function.global && function.name == name && function.weak == weak)
                || function
                    .aliases
                    .iter()
                    .any(|(alias, global, is_weak)| *global && alias == name && *is_weak == weak)
        };
        // One that is not weak replaces those that are.
        self.ids().find(|id| is_named(id, false)).or_else(|| self.ids().find(|id| is_named(id, true)))
    }

    /// What a reference to a target in a unit stands for, if that is a function.
    pub(crate) fn resolve(&self, unit: usize, target: &Target) -> Option<Callee> {
        match target {
            Target::Place(place) | Target::Symbol(place) => self.at(unit, *place).map(Callee::Function),
            Target::External(name) => match self.named(name) {
                Some(function) => Some(Callee::Function(function)),
                None => library::signature(name).map(|_| Callee::Library(name.clone())),
            },
        }
    }

    /// What an instruction calls. `None` if it is not a call, or a jump to a function.
    pub(crate) fn callee(&self, unit: usize, code: &Code) -> Option<Callee> {
        let any = |target: &Target| match target {
            Target::External(name) => match self.named(name) {
                Some(function) => Callee::Function(function),
                None => Callee::Library(name.clone()),
            },
            Target::Place(place) | Target::Symbol(place) => {
                self.at(unit, *place).map_or(Callee::Pointer, Callee::Function)
            }
        };
        match code.instruction.flow_control() {
            FlowControl::Call | FlowControl::UnconditionalBranch => code.branch.as_ref().map(any),
            FlowControl::IndirectCall | FlowControl::IndirectBranch => Some(match &code.displacement {
                Some(Reference::TableEntry(target)) if code.instruction.op0_kind() == OpKind::Memory => {
                    any(target)
                }
                _ => Callee::Pointer,
            }),
            _ => None,
        }
    }

    /// The functions of the program and of the C library whose address is used other than to call them.
    fn find_address_taken(&self) -> (BTreeSet<FunctionId>, BTreeSet<String>) {
        let (mut found, mut library) = (BTreeSet::new(), BTreeSet::new());
        for (index, unit) in self.units.iter().enumerate() {
            let mut note = |target: &Target, by: i64| match self.resolve(index, &target.moved(by)) {
                Some(Callee::Function(function)) => _ = found.insert(function),
                Some(Callee::Library(name)) => _ = library.insert(name),
                Some(Callee::Pointer) | None => {}
            };
            for section in unit.image.sections.iter().filter(|section| {
                section.kind != crate::image::SectionKind::Code
                    && section.kind != crate::image::SectionKind::Other
            }) {
                // The table for unwinding refers to functions too.
                if section.name.starts_with(".eh_frame") || section.name.starts_with(".note") {
                    continue;
                }
                section
                    .relocations
                    .values()
                    .for_each(|relocation| note(&relocation.target, relocation.addend));
            }
            for code in unit.functions.iter().flat_map(|f| f.blocks.values()).flat_map(|block| &block.code) {
                let called = self.callee(index, code).is_some_and(|callee| callee != Callee::Pointer);
                for reference in
                    [&code.displacement, &code.immediate].into_iter().flatten().filter(|_| !called)
                {
                    let (target, by) = reference.target();
                    note(target, by);
                }
            }
        }
        (found, library)
    }
}
