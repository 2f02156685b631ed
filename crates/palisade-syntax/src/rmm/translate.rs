//! Translates processes of the syntax tree into the written form. Their statements are in [`super::body`].
//!
//! Every process of the file becomes one template `P0`, `P1`, …, named after the number of its first copy. If
//! copies address the memory of processes, a parameter distinguishes them (or they are separate templates, if
//! that memory is not an array). Otherwise the copies are identical.

use super::ast::{File, Process};
use super::body::Body;
use super::forbidden::{Group, properties};
use super::locals::{Addressing, duplicate};
use super::memory::Memory;
use super::messages::Messages;
use super::names::Names;
use super::registers::Registers;
use super::token::Here;
use palisade_base::Origin;
use palisade_program::written::{Count, Name, Param, Program, Start, Template, Type};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Translates a file. Errors are reported; the result is then meaningless.
pub(crate) fn translate(file: &File<'_>, messages: &mut Messages) -> Program {
    let mut names = Names::default();
    let mut program = Program::default();
    let memory = Memory::new(file, &mut names, &mut program.shared, messages);
    let mut groups = Vec::new();
    for (index, process) in file.processes.iter().enumerate() {
        let numbers = memory.locals.numbers(index);
        let addressing = memory.locals.addressing(&process.body);
        let parts: Vec<Range<u32>> = match addressing {
            Addressing::Named => numbers.map(|number| number..number + 1).collect(),
            _ => vec![numbers],
        };
        let labels = Arc::new(labels(process, messages));
        groups.extend(parts.into_iter().map(|copies| Group {
            process: index,
            template: names.fresh(None, &[&format!("P{}", copies.start)]),
            by_number: addressing != Addressing::None && copies.len() > 1,
            copies,
            labels: Arc::clone(&labels),
        }));
    }
    for group in &groups {
        let template = template(&file.processes[group.process], group, &memory, &names, messages);
        program.templates.push(template);
    }
    program.properties = properties(file, &groups, messages);
    program
}

fn template<'a>(
    process: &'a Process<'a>,
    group: &Group<'a>,
    memory: &Memory<'a>,
    outer: &Names,
    messages: &mut Messages,
) -> Template {
    let mut names = Names::default();
    let me = group.by_number.then(|| names.fresh(Some(outer), &["me"]));
    let mut registers = Registers::new(process, outer, &mut names, messages);
    let mut body =
        Body { memory, process, group, me: me.clone(), registers: &mut registers, messages }.translate();
    body.splice(0..0, registers.declarations(process, messages));
    let param = |me| {
        let (first, last) = (group.copies.start.into(), (group.copies.end - 1).into());
        Param { name: Name::new(me, process.here.span), ty: Type::range(first, last) }
    };
    Template {
        name: Name::new(Arc::clone(&group.template), process.here.span),
        count: Count::Fixed(if group.by_number { 1 } else { group.copies.len() as u32 }),
        params: me.map(param).into_iter().collect(),
        start: Start::Initially,
        body,
        origin: Origin(process.here.span),
    }
}

/// The labels of a process: their names in `.pal`, and their places.
pub(crate) type Labels<'a> = FxHashMap<&'a str, (Arc<str>, Here)>;

fn labels<'a>(process: &Process<'a>, messages: &mut Messages) -> Labels<'a> {
    let mut labels = Labels::default();
    let mut names = Names::default();
    // In `.pal` every body already has a label `end`.
    names.fresh(None, &["end"]);
    for label in &process.labels {
        match labels.get(label.text) {
            Some((_, before)) => duplicate(*label, *before, "label", messages),
            None => {
                labels.insert(label.text, (names.fresh(None, &[label.text]), label.here));
            }
        }
    }
    labels
}
