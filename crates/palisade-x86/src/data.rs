//! The variables of an object file as LLVM IR: bytes, and addresses among them.

use crate::image::{COMMON, How, SectionKind, Target};
use crate::names::{Names, Variable, quoted};
use crate::program::{Callee, Program};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The text of all variables of a unit. Names of functions and variables elsewhere are added to the sets.
pub(crate) fn variables(
    program: &Program,
    names: &Names,
    unit: usize,
    external: &mut BTreeSet<String>,
    declared: &mut std::collections::BTreeMap<String, String>,
) -> String {
    let mut out = String::new();
    for variable in names.variables(unit).values() {
        variable_text(program, names, unit, variable, external, declared, &mut out);
    }
    out
}

fn variable_text(
    program: &Program,
    names: &Names,
    unit: usize,
    variable: &Variable,
    external: &mut BTreeSet<String>,
    declared: &mut std::collections::BTreeMap<String, String>,
    out: &mut String,
) {
    let section = program.units[unit].image.section(variable.place);
    let start = variable.place.offset;
    let end = start + variable.size;
    let linkage = match variable {
        _ if section.name == COMMON => "common ",
        Variable { weak: true, .. } => "weak ",
        Variable { global: true, .. } => "",
        _ => "internal ",
    };
    let kind = match section.kind {
        SectionKind::ReadOnly => "constant",
        _ => "global",
    };
    let thread_local = if section.kind == SectionKind::ThreadLocal { "thread_local " } else { "" };
    let mut types = Vec::new();
    let mut values = Vec::new();
    let bytes = |from: i64, to: i64, types: &mut Vec<String>, values: &mut Vec<String>| {
        let Some(part) = usize::try_from(from).ok().zip(usize::try_from(to).ok()) else { return };
        let Some(part) = section.bytes.get(part.0..part.1).filter(|part| !part.is_empty()) else { return };
        let ty = format!("[{} x i8]", part.len());
        if part.iter().all(|byte| *byte == 0) {
            values.push(format!("{ty} zeroinitializer"));
        } else {
            let text: String = part.iter().map(|byte| format!("\\{byte:02X}")).collect();
            values.push(format!("{ty} c\"{text}\""));
        }
        types.push(ty);
    };
    let mut at = start;
    for (&place, relocation) in section.relocations.range(start..end) {
        // Nothing reads variables that hold anything else, so what they hold does not matter.
        let (size, value) = match relocation.how {
            How::Absolute64 => {
                (8, address(program, names, unit, &relocation.target, relocation.addend, external, declared))
            }
            // The entry of a table of jumps: its own place stands for it.
            _ => (4, format!("i32 {place}")),
        };
        if place < at || place + size > end {
            continue;
        }
        bytes(at, place, &mut types, &mut values);
        types.push(if size == 8 { "i64" } else { "i32" }.to_owned());
        values.push(value);
        at = place + size;
    }
    bytes(at, end, &mut types, &mut values);
    // It is as aligned as its place in the section is.
    let align = match start {
        0 => section.align.min(4096),
        start => section.align.min(4096).min(1 << start.trailing_zeros().min(12)),
    };
    writeln!(
        out,
        "{} = {linkage}{thread_local}{kind} <{{ {} }}> <{{ {} }}>, align {align}",
        quoted(&variable.name),
        types.join(", "),
        values.join(", ")
    )
    .expect("writing to a string");
    for alias in &variable.aliases {
        writeln!(out, "{} = alias i8, ptr {}", quoted(alias), quoted(&variable.name))
            .expect("writing to a string");
    }
}

/// An address that a variable holds.
fn address(
    program: &Program,
    names: &Names,
    unit: usize,
    target: &Target,
    by: i64,
    external: &mut BTreeSet<String>,
    declared: &mut std::collections::BTreeMap<String, String>,
) -> String {
    let (name, by) = match (program.resolve(unit, &target.moved(by)), target) {
        (Some(Callee::Function(function)), _) => (names.function(function).to_owned(), 0),
        (Some(Callee::Library(name)), _) => {
            declared.insert(name.clone(), crate::emit::library_type(&name));
            (name, 0)
        }
        (_, Target::External(name)) => {
            if !names.is_variable(name) {
                external.insert(name.clone());
            }
            (name.clone(), by)
        }
        (_, Target::Place(_) | Target::Symbol(_)) => match names.target(unit, target, by) {
            Some((variable, by)) => (variable.name.clone(), by),
            // A place in the code, as in a table of jumps, which nothing reads.
            None => return "i64 0".to_owned(),
        },
    };
    let name = quoted(&name);
    match by {
        0 => format!("i64 ptrtoint (ptr {name} to i64)"),
        by => format!("i64 add (i64 ptrtoint (ptr {name} to i64), i64 {by})"),
    }
}
