//! Syntax tree to the written form: processes. Their statements are in [`super::body`].
//!
//! Every process of the file becomes one template `P0`, `P1`, … named after the number of its first copy. Copies that address
//! memory of processes are told apart by a parameter (or are templates of their own, if that memory is no array); the others
//! are alike.

use super::ast::{File, Kind, Process, Statement};
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
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Translates a file. What is wrong with it is reported; the result is then of no use.
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
        let labels = Arc::new(labels(&process.body, messages));
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
        Body { memory, group, me: me.clone(), registers: &mut registers, messages }.translate(process);
    let mut statements = registers.declarations(process, messages);
    statements.append(&mut body);
    let param = |me| {
        let (first, last) = (group.copies.start.into(), (group.copies.end - 1).into());
        Param { name: Name::new(me, process.here.span), ty: Type::range(first, last) }
    };
    Template {
        name: Name::new(Arc::clone(&group.template), process.here.span),
        count: Count::Fixed(if group.by_number { 1 } else { group.copies.len() as u32 }),
        params: me.map(param).into_iter().collect(),
        start: Start::Initially,
        body: statements,
        origin: Origin(process.here.span),
    }
}

/// The labels of a process: their names in `.pal`, and their places.
pub(crate) type Labels<'a> = HashMap<&'a str, (Arc<str>, Here)>;

fn labels<'a>(body: &[Statement<'a>], messages: &mut Messages) -> Labels<'a> {
    fn collect<'a>(
        body: &[Statement<'a>],
        names: &mut Names,
        labels: &mut Labels<'a>,
        messages: &mut Messages,
    ) {
        for statement in body {
            if let Some(label) = statement.label {
                match labels.get(label.text) {
                    Some((_, before)) => duplicate(label, *before, "label", messages),
                    None => {
                        let name = names.fresh(None, &[label.text]);
                        labels.insert(label.text, (name, label.here));
                    }
                }
            }
            match &statement.kind {
                Kind::If(parts) => {
                    collect(&parts.1, names, labels, messages);
                    collect(&parts.2, names, labels, messages);
                }
                Kind::While(parts) => collect(&parts.1, names, labels, messages),
                Kind::Either(alternatives) | Kind::Locked(alternatives) => {
                    alternatives.iter().for_each(|body| collect(body, names, labels, messages));
                }
                Kind::Block(body) => collect(body, names, labels, messages),
                _ => {}
            }
        }
    }
    let mut labels = Labels::new();
    collect(body, &mut Names::default(), &mut labels, messages);
    labels
}
