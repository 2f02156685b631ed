//! What functions and variables are called in LLVM IR, and which variables there are.

use crate::image::{Image, Kind, Place};
use crate::program::{FunctionId, Program};
use std::collections::{BTreeMap, BTreeSet};

/// A variable: a part of a section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) size: i64,
    pub(crate) global: bool,
    pub(crate) weak: bool,
    /// Other names of it that other files see.
    pub(crate) aliases: Vec<String>,
}

/// The names of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    functions: BTreeMap<FunctionId, String>,
    /// The variables of each unit, by their place.
    variables: Vec<BTreeMap<Place, Variable>>,
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
        names
    }

    pub(crate) fn function(&self, id: FunctionId) -> &str {
        &self.functions[&id]
    }

    /// Whether some file defines a variable with this name.
    pub(crate) fn is_variable(&self, name: &str) -> bool {
        self.visible.contains(name)
    }

    pub(crate) fn variables(&self, unit: usize) -> &BTreeMap<Place, Variable> {
        &self.variables[unit]
    }

    /// The variable at a place, and the offset in it. The end of a variable belongs to it if no other one begins there.
    pub(crate) fn variable(&self, unit: usize, place: Place) -> Option<(String, i64)> {
        let first = Place { offset: i64::MIN, ..place };
        let (_, variable) = self.variables[unit].range(first..=place).next_back()?;
        Some((variable.name.clone(), place.offset - variable.place.offset))
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
fn variables(image: &Image) -> BTreeMap<Place, Variable> {
    let mut found: BTreeMap<Place, Variable> = BTreeMap::new();
    for (section, data) in image.sections.iter().enumerate() {
        if !matches!(data.kind, Kind::Data | Kind::ReadOnly | Kind::ThreadLocal)
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
                },
            );
            at = start + symbol.size;
        }
        gaps.push((at, length));
        for (start, end) in gaps.into_iter().filter(|(start, end)| start < end) {
            let place = Place { section, offset: start };
            let name = format!("{}+{start:#x}", data.name);
            let (global, weak, aliases) = (false, false, Vec::new());
            found.insert(place, Variable { name, place, size: end - start, global, weak, aliases });
        }
    }
    found
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
