//! Mutexes that are initialised statically and are not of the usual kind.
//!
//! What is called with a mutex is known, but what its bytes mean is not: types are gone. A mutex of the usual kind is all
//! zero at first. One that is recursive or checks for errors has a number at [`KIND`], and it must not be taken for a
//! usual one. So a variable that looks like this is refused in a program that uses mutexes.

use crate::image::{SectionKind, Target};
use crate::names::{Names, Variable};
use crate::program::{Program, Unit};

/// The size of a mutex, and where its kind is, for x86-64 Linux.
const SIZE: usize = 40;
const KIND: usize = 16;
const ALIGN: usize = 8;

/// A variable that may hold such a mutex, and its file.
pub(crate) fn of_another_kind(program: &Program, names: &Names) -> Option<(usize, String)> {
    if !program.units.iter().any(uses_mutexes) {
        return None;
    }
    let mut units = program.units.iter().enumerate();
    units.find_map(|(number, unit)| {
        let found = names.variables(number).values().find(|variable| may_hold_one(unit, variable));
        found.map(|variable| (number, variable.name.clone()))
    })
}

fn uses_mutexes(unit: &Unit) -> bool {
    let mut relocations = unit.image.sections.iter().flat_map(|section| section.relocations.values());
    relocations.any(|relocation| match &relocation.target {
        Target::External(name) => name.starts_with("pthread_mutex_"),
        Target::Place(_) | Target::Symbol(_) => false,
    })
}

fn may_hold_one(unit: &Unit, variable: &Variable) -> bool {
    let section = unit.image.section(variable.place);
    let bytes = usize::try_from(variable.place.offset).ok().zip(usize::try_from(variable.size).ok());
    let bytes = bytes.and_then(|(start, size)| section.bytes.get(start..start.checked_add(size)?));
    let is_one = |bytes: &[u8]| {
        let (before, kind, after) = (&bytes[..KIND], &bytes[KIND..KIND + 4], &bytes[KIND + 4..]);
        kind != [0; 4] && before.iter().chain(after).all(|byte| *byte == 0)
    };
    section.kind == SectionKind::Data
        && bytes.is_some_and(|bytes| bytes.windows(SIZE).step_by(ALIGN).any(is_one))
}
