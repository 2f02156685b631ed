//! What functions and variables are called in LLVM IR, and which variables there are.

use crate::image::{How, Image, Section, SectionKind, SectionOffset, Target};
use crate::program::{FunctionId, Program};
use std::collections::{BTreeMap, BTreeSet};

/// A variable: a part of a section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) place: SectionOffset,
    pub(crate) size: i64,
    pub(crate) global: bool,
    pub(crate) weak: bool,
    /// Other names of it that other files see.
    pub(crate) aliases: Vec<String>,
    /// Why what it holds is not followed.
    pub(crate) unreadable: Option<Unreadable>,
}

/// Why what a variable holds is not followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unreadable {
    /// It holds places in the code, as a table of jumps does.
    Jumps,
    /// It holds something of this form.
    Relocation(How),
}

impl Variable {
    /// Whether a place is in it.
    pub(crate) fn contains(&self, place: SectionOffset) -> bool {
        place.section == self.place.section
            && (self.place.offset..self.place.offset + self.size).contains(&place.offset)
    }
}

/// The names of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    functions: BTreeMap<FunctionId, String>,
    /// The variables of each unit, by their place.
    variables: Vec<BTreeMap<SectionOffset, Variable>>,
    /// The names that all files see.
    visible: BTreeSet<String>,
}

/// The number of the first piece of metadata that is a function.
const FIRST_SUBPROGRAM: usize = 10;

impl Names {
    pub(crate) fn new(program: &Program) -> Names {
        let mut names = Names::default();
        // Names that only one file sees need not be different, so some of them are changed.
        let mut taken: BTreeSet<(usize, String)> = BTreeSet::new();
        let mut ids: Vec<FunctionId> = program.ids().collect();
        ids.sort_by_key(|id| !program.function(*id).global);
        for id in ids {
            let name = unique(&mut taken, id.unit, &program.function(id).name);
            names.functions.insert(id, name);
        }
        for (index, unit) in program.units.iter().enumerate() {
            let mut variables = variables(&unit.image);
            for global in [true, false] {
                for variable in variables.values_mut().filter(|variable| variable.global == global) {
                    variable.name = unique(&mut taken, index, &variable.name);
                }
            }
            for variable in variables.values().filter(|variable| variable.global) {
                names.visible.insert(variable.name.clone());
                names.visible.extend(variable.aliases.iter().cloned());
            }
            names.variables.push(variables);
        }
        names.find_unreadable(program);
        names
    }

    pub(crate) fn function(&self, id: FunctionId) -> &str {
        &self.functions[&id]
    }

    /// Whether some file defines a variable with this name.
    pub(crate) fn is_variable(&self, name: &str) -> bool {
        self.visible.contains(name)
    }

    pub(crate) fn variables(&self, unit: usize) -> &BTreeMap<SectionOffset, Variable> {
        &self.variables[unit]
    }

    /// The variable that so many bytes after a target belong to, and the offset in it. The end of a variable belongs to it
    /// if no other one begins there, or if its own symbol is used.
    pub(crate) fn target(&self, unit: usize, target: &Target, by: i64) -> Option<(&Variable, i64)> {
        let variables = &self.variables[unit];
        let at = |place: SectionOffset| {
            let first = SectionOffset { offset: i64::MIN, ..place };
            variables.range(first..=place).next_back().map(|(_, variable)| variable)
        };
        let place = target.place(by)?;
        let variable = match target {
            Target::Symbol(symbol) => at(*symbol)?,
            _ => at(place)?,
        };
        Some((variable, place.offset.wrapping_sub(variable.place.offset)))
    }

    /// A variable that all files see, or `None` if it is no variable.
    pub(crate) fn global(&self, name: &str) -> Option<&Variable> {
        let all = self.variables.iter().flat_map(BTreeMap::values).filter(|variable| variable.global);
        all.into_iter()
            .find(|variable| variable.name == name || variable.aliases.iter().any(|alias| alias == name))
    }

    /// Finds the variables that hold something that is not followed, and those that hold addresses of such variables.
    fn find_unreadable(&mut self, program: &Program) {
        loop {
            let mut found = Vec::new();
            for (unit, variables) in self.variables.iter().enumerate() {
                for variable in variables.values().filter(|variable| variable.unreadable.is_none()) {
                    let why = self.unreadable(program, unit, variable);
                    found.extend(why.map(|why| (unit, variable.place, why)));
                }
            }
            if found.is_empty() {
                return;
            }
            for (unit, place, why) in found {
                let variable = self.variables[unit].get_mut(&place).expect("it was found there");
                variable.unreadable = Some(why);
            }
        }
    }

    fn unreadable(&self, program: &Program, unit: usize, variable: &Variable) -> Option<Unreadable> {
        let section = program.units[unit].image.section(variable.place);
        let (start, end) = (variable.place.offset, variable.place.offset + variable.size);
        let mut jumps = None;
        let mut free = start;
        // One that begins before the variable reaches into it.
        for (&at, relocation) in section.relocations.range(start - 7..end) {
            let How::Absolute64 = relocation.how else {
                let is_code =
                    |place: SectionOffset| program.units[unit].image.section(place).kind == SectionKind::Code;
                let is_jump = relocation.how == How::Relative32
                    && relocation.target.place(relocation.addend).is_some_and(is_code)
                    && section.kind == SectionKind::ReadOnly
                    && start <= at
                    && at + 4 <= end;
                if !is_jump && at + 4 > start {
                    return Some(Unreadable::Relocation(relocation.how));
                }
                if is_jump {
                    jumps = Some(Unreadable::Jumps);
                }
                continue;
            };
            if at + 8 <= start {
                continue;
            }
            if at < free || at + 8 > end {
                return Some(Unreadable::Relocation(relocation.how));
            }
            free = at + 8;
            let (target, by) = (&relocation.target, relocation.addend);
            if program.resolve(unit, &target.moved(by)).is_some() {
                continue;
            }
            let held = match target {
                Target::External(name) => self.global(name),
                _ => self.target(unit, target, by).map(|(variable, _)| variable),
            };
            match held {
                Some(Variable { unreadable: Some(why), .. }) => return Some(why.clone()),
                None if !matches!(target, Target::External(_)) => jumps = Some(Unreadable::Jumps),
                _ => {}
            }
        }
        jumps
    }

    /// The number of the metadata of a function.
    pub(crate) fn subprogram(&self, id: FunctionId) -> usize {
        FIRST_SUBPROGRAM + self.functions.keys().filter(|other| other.unit == id.unit && **other < id).count()
    }

    /// The number of the first place in the metadata.
    pub(crate) fn first_location(&self) -> usize {
        FIRST_SUBPROGRAM + self.functions.len()
    }
}

/// A name that the unit does not have yet.
fn unique(taken: &mut BTreeSet<(usize, String)>, unit: usize, name: &str) -> String {
    let mut found = name.to_owned();
    let mut count = 1;
    while !taken.insert((unit, found.clone())) {
        count += 1;
        found = format!("{name}#{count}");
    }
    found
}

/// The variables of an object file: what symbols name, and what is between them.
fn variables(image: &Image) -> BTreeMap<SectionOffset, Variable> {
    let mut found: BTreeMap<SectionOffset, Variable> = BTreeMap::new();
    for (section, data) in image.sections.iter().enumerate() {
        if !matches!(data.kind, SectionKind::Data | SectionKind::ReadOnly | SectionKind::ThreadLocal)
            || data.name.starts_with(".eh_frame")
            || data.name.starts_with(".note")
        {
            continue;
        }
        let length = i64::try_from(data.bytes.len()).unwrap_or(i64::MAX);
        let mut symbols: Vec<_> =
            image.symbols.iter().filter(|s| s.place.section == section && s.size > 0).collect();
        symbols.sort_by_key(|symbol| (symbol.place, std::cmp::Reverse(symbol.size)));
        let mut at = 0;
        let mut gaps = Vec::new();
        for symbol in symbols {
            let start = symbol.place.offset;
            if start < at {
                // Inside the one before: another name for it.
                if let Some(known) = found.get_mut(&symbol.place)
                    && symbol.global
                {
                    if known.global {
                        known.aliases.push(symbol.name.clone());
                    } else {
                        (known.name, known.global) = (symbol.name.clone(), true);
                    }
                }
                continue;
            }
            if start < 0 || start + symbol.size > length {
                continue;
            }
            if start > at {
                gaps.push((at, start));
            }
            found.insert(
                symbol.place,
                Variable {
                    name: symbol.name.clone(),
                    place: symbol.place,
                    size: symbol.size,
                    global: symbol.global,
                    weak: symbol.weak,
                    aliases: Vec::new(),
                    unreadable: None,
                },
            );
            at = start + symbol.size;
        }
        gaps.push((at, length));
        let gaps = gaps.into_iter().flat_map(|(start, end)| without_tables(image, data, start, end));
        for (start, end) in gaps.filter(|(start, end)| start < end) {
            let place = SectionOffset { section, offset: start };
            let name = format!("{}+{start:#x}", data.name);
            let (global, weak, aliases) = (false, false, Vec::new());
            found.insert(
                place,
                Variable { name, place, size: end - start, global, weak, aliases, unreadable: None },
            );
        }
    }
    found
}

/// Cuts tables of jumps out of a part of a section that has no name, where constants may be too.
fn without_tables(image: &Image, section: &Section, start: i64, end: i64) -> Vec<(i64, i64)> {
    let is_code = |place: SectionOffset, how: How| {
        // What is relative to an entry counts from the table, so it need not be where it leads.
        let is_function = || image.symbols.iter().any(|symbol| symbol.function && symbol.place == place);
        image.section(place).kind == SectionKind::Code && (how == How::Relative32 || !is_function())
    };
    let mut parts = Vec::new();
    let (mut from, mut table) = (start, start..start);
    for (&at, relocation) in section.relocations.range(start..end) {
        let to = relocation.target.place(relocation.addend);
        let is_entry = to.is_some_and(|place| is_code(place, relocation.how));
        let size = match relocation.how {
            How::Relative32 => 4,
            How::Absolute64 => 8,
            _ => continue,
        };
        if section.kind != SectionKind::ReadOnly || !is_entry || at + size > end || at < table.end {
            continue;
        }
        if at == table.end && !table.is_empty() {
            table.end = at + size;
            continue;
        }
        parts.extend([(from, table.start), (table.start, table.end)]);
        (from, table) = (table.end, at..at + size);
    }
    parts.extend([(from, table.start), (table.start, table.end), (table.end, end)]);
    parts
}

/// A name in LLVM IR.
pub(crate) fn quoted(name: &str) -> String {
    let mut text = String::from("@\"");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' | 0..=31 | 127.. => text.push_str(&format!("\\{byte:02X}")),
            _ => text.push(byte.into()),
        }
    }
    text.push('"');
    text
}
