//! Turns a [`File`] into a program. States become labels, several transitions from one state become a choice,
//! and locked parts become atomic blocks.
//!
//! A state that can be entered both with and without the lock is emitted twice, once inside the atomic block.

use super::addresses::Memory;
use super::check::{Section, Sections};
use super::file::{File, Instruction, RegisterId, StateId, Term, TermKind, Thread, Transition};
use crate::generate::{self, Names, assign, declare, goto, named, read};
use palisade_base::{Id, IdVec, Origin, Span, limits};
use palisade_program::written::{
    BinaryOp, Block, Count, Expr, ExprKind, Init, InitValue, Name, Observation, Place, PlaceKind, ProcessRef,
    Program, Property, PropertyKind, Select, Shared, Start, Stmt, StmtKind, Template, Type, UnaryOp,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The program of a file without errors.
pub(super) fn write(file: &File<'_>, sections: &[Sections], memory: Memory) -> Program {
    let mut names = Names::default();
    let cells = names.fresh("mem");
    let mut program = Program::default();
    if memory.cells > 0 {
        let origin = Origin(file.memory_size.map_or(Span::NONE, |(_, span)| span));
        program.shared.push(Shared {
            name: Name::generated(cells.clone()),
            len: Some(memory.cells),
            ty: Type::INT,
            init: Init::Every(InitValue::Const(Expr::int(0))),
            at: None,
            origin,
        });
    }
    let templates: Vec<Arc<str>> = file.threads.iter().map(|thread| names.fresh(thread.name.text)).collect();
    let mut goals = Vec::new();
    for ((thread, sections), template) in file.threads.iter().zip(sections).zip(templates) {
        let mut writer = Writer::new(thread, sections, &cells, memory, names.inner());
        let body = writer.body();
        let name = Name::new(template, thread.name.span);
        if let Some(last) = thread.last {
            goals.push(writer.reached(&name, last));
        }
        program.templates.push(Template {
            name,
            params: Vec::new(),
            count: Count::Fixed(1),
            start: Start::Initially,
            body,
            origin: Origin(thread.name.span),
        });
    }
    let all = |left, right| generate::binary(BinaryOp::And, left, right, Span::NONE);
    if let Some(condition) = goals.into_iter().reduce(all) {
        let origin = condition.origin;
        program.properties.push(Property { kind: PropertyKind::Forbid, condition, origin });
    }
    program
}

/// Where a piece of the body is: outside all sections, or in one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Region {
    Outside,
    Section(usize),
}

struct Writer<'w, 'a> {
    thread: &'w Thread<'a>,
    sections: &'w Sections,
    memory: Memory,
    cells: &'w Arc<str>,
    registers: IdVec<RegisterId, Arc<str>>,
    /// The label of each state in each region where it is emitted.
    labels: FxHashMap<(Region, StateId), Arc<str>>,
    /// For sections that are not emitted in place, the label before their atomic block.
    gates: Vec<Option<Arc<str>>>,
    by_entry: FxHashMap<StateId, usize>,
}

impl<'w, 'a> Writer<'w, 'a> {
    fn new(
        thread: &'w Thread<'a>,
        sections: &'w Sections,
        cells: &'w Arc<str>,
        memory: Memory,
        mut names: Names<'_>,
    ) -> Writer<'w, 'a> {
        let registers = thread.registers.iter().map(|register| names.fresh(register.text)).collect();
        // Labels have a name space of their own.
        let mut names = Names::default();
        let mut labels = FxHashMap::default();
        for (state, outside) in sections.outside.iter_enumerated() {
            if *outside {
                labels.insert((Region::Outside, state), names.fresh(thread.states[state].name.text));
            }
        }
        let mut seen: IdVec<StateId, bool> = sections.outside.clone();
        for (number, section) in sections.sections.iter().enumerate() {
            for &state in &section.states {
                limits::checkpoint();
                let name = thread.states[state].name.text;
                let first = !std::mem::replace(&mut seen[state], true);
                let label = if first { names.fresh(name) } else { names.fresh(&format!("{name}_locked")) };
                labels.insert((Region::Section(number), state), label);
            }
        }
        let mut in_place = vec![false; sections.sections.len()];
        let by_entry: FxHashMap<StateId, usize> =
            sections.sections.iter().enumerate().map(|(number, section)| (section.entry, number)).collect();
        for transition in &thread.transitions {
            limits::checkpoint();
            if matches!(transition.instruction, Instruction::Lock)
                && sections.outside[transition.from]
                && thread.states[transition.from].out.len() == 1
            {
                let number = by_entry[&transition.to];
                in_place[number] = sections.sections[number].entrances == 1;
            }
        }
        let gates = (sections.sections.iter().zip(in_place))
            .map(|(section, in_place)| {
                (!in_place).then(|| names.fresh(&format!("lock_{}", thread.states[section.entry].name.text)))
            })
            .collect();
        Writer { thread, sections, memory, cells, registers, labels, gates, by_entry }
    }

    fn body(&mut self) -> Block {
        let mut body: Block = (self.thread.registers.iter_enumerated())
            .map(|(register, word)| declare(&self.registers[register], Expr::int(0), word.span))
            .collect();
        let initial = self.thread.initial;
        let mut order = vec![initial];
        order.extend(
            self.in_order(self.sections.outside.iter_enumerated().filter(|(_, o)| **o).map(|(s, _)| s)),
        );
        let mut first = true;
        order.retain(|state| *state != initial || std::mem::replace(&mut first, false));
        self.states(Region::Outside, &order, None, &mut body);
        for (number, section) in self.sections.sections.iter().enumerate() {
            if let Some(gate) = &self.gates[number] {
                let span = self.thread.states[section.entry].name.span;
                let mut block = Stmt::new(StmtKind::Atomic(self.section(number, section, None)), span);
                block.labels.push(Name::new(gate.clone(), span));
                body.push(block);
            }
        }
        body
    }

    /// The states in the order in which the file first leaves them. States that are never left come last.
    fn in_order(&self, states: impl Iterator<Item = StateId>) -> Vec<StateId> {
        let mut states: Vec<StateId> = states.collect();
        states.sort_by_key(|state| self.thread.states[*state].out.first().copied().unwrap_or(usize::MAX));
        states
    }

    /// The block of a section that is followed by the given state outside.
    fn section(&self, number: usize, section: &Section, next: Option<StateId>) -> Block {
        let mut order = vec![section.entry];
        order.extend(self.in_order(section.states[1..].iter().copied()));
        let mut block = Vec::new();
        self.states(Region::Section(number), &order, next.map(|next| (Region::Outside, next)), &mut block);
        block
    }

    /// Emits the states in order. `after` is what follows the last of them.
    fn states(&self, region: Region, order: &[StateId], after: Option<(Region, StateId)>, block: &mut Block) {
        for (position, &state) in order.iter().enumerate() {
            limits::checkpoint();
            let next = order.get(position + 1).map(|next| (region, *next)).or(after);
            let start = block.len();
            self.state(region, state, next, block);
            let label = Name::new(self.labels[&(region, state)].clone(), self.thread.states[state].name.span);
            block[start].labels.push(label);
        }
    }

    /// Emits at least one statement.
    fn state(&self, region: Region, state: StateId, next: Option<(Region, StateId)>, block: &mut Block) {
        let thread = self.thread;
        let transitions: Vec<&Transition> =
            thread.states[state].out.iter().map(|&position| &thread.transitions[position]).collect();
        match transitions[..] {
            [] => {
                let kind = match region {
                    Region::Outside => StmtKind::Return(None),
                    Region::Section(_) => StmtKind::Assume(Expr::new(ExprKind::Bool(false), Span::NONE)),
                };
                block.push(Stmt::new(kind, thread.states[state].name.span));
            }
            [only] => self.transition(region, only, next, block),
            [first, second] if excludes(&first.instruction, &second.instruction) => {
                let is_next = |transition: &Transition| next == Some((region, transition.to));
                if first.to == second.to {
                    block.push(Stmt::new(StmtKind::Skip, first.span));
                    if !is_next(first) {
                        block.push(goto(&self.labels[&(region, first.to)], first.span));
                    }
                    return;
                }
                // The branch that leads to the next state needs no jump, so it is the `else` branch.
                let (taken, other) = if is_next(first) { (second, first) } else { (first, second) };
                let Instruction::Check(condition) = &taken.instruction else {
                    unreachable!("only checks exclude each other")
                };
                let jump = |to: &Transition| vec![goto(&self.labels[&(region, to.to)], to.span)];
                let otherwise = if is_next(other) { Vec::new() } else { jump(other) };
                let condition = self.term(condition);
                block.push(Stmt::new(StmtKind::If { condition, then: jump(taken), otherwise }, taken.span));
            }
            _ => {
                let branches = transitions
                    .iter()
                    .map(|transition| {
                        let mut branch = Vec::new();
                        self.transition(region, transition, next, &mut branch);
                        branch
                    })
                    .collect();
                block.push(Stmt::new(StmtKind::Choose(branches), transitions[0].span));
            }
        }
    }

    fn transition(
        &self,
        region: Region,
        transition: &Transition,
        next: Option<(Region, StateId)>,
        block: &mut Block,
    ) {
        let span = transition.span;
        let stuck = || Stmt::new(StmtKind::Assume(Expr::new(ExprKind::Bool(false), Span::NONE)), span);
        let mut target = (region, transition.to);
        let statement = match &transition.instruction {
            Instruction::Write { value, address } => assign(self.cell(address), self.term(value), span),
            Instruction::Read { register, address } => {
                assign(self.register(*register, span), read(self.cell(address)), span)
            }
            Instruction::Local { register, value } => {
                assign(self.register(*register, span), self.term(value), span)
            }
            Instruction::Fence => Stmt::new(StmtKind::Fence, span),
            Instruction::Noop => Stmt::new(StmtKind::Skip, span),
            Instruction::Check(condition) => Stmt::new(StmtKind::Assume(self.term(condition)), span),
            Instruction::Lock => {
                let Region::Outside = region else { return block.push(stuck()) };
                let number = self.by_entry[&transition.to];
                let Some(gate) = &self.gates[number] else {
                    let next = next.map(|(_, next)| next);
                    let section = self.section(number, &self.sections.sections[number], next);
                    return block.push(Stmt::new(StmtKind::Atomic(section), span));
                };
                return block.push(goto(gate, span));
            }
            Instruction::Unlock => {
                let Region::Section(_) = region else { return block.push(stuck()) };
                // Leaving the atomic block releases the lock. The goto below represents the instruction.
                target = (Region::Outside, transition.to);
                let statement = match next == Some(target) {
                    true => Stmt::new(StmtKind::Skip, span),
                    false => goto(&self.labels[&target], span),
                };
                return block.push(statement);
            }
        };
        block.push(statement);
        if next != Some(target) {
            block.push(goto(&self.labels[&target], span));
        }
    }

    fn register(&self, register: RegisterId, span: Span) -> Place {
        named(&self.registers[register], span)
    }

    fn cell(&self, address: &Term) -> Place {
        let shift = -self.memory.least;
        let index = match (&address.kind, shift) {
            (TermKind::Int(value), _) => match value.checked_add(shift) {
                Some(index) => generate::int(index, address.span),
                None => self.term(address),
            },
            (_, 0) => self.term(address),
            _ => generate::binary(
                BinaryOp::Add,
                self.term(address),
                generate::int(shift, address.span),
                address.span,
            ),
        };
        let name = Name::new(self.cells.clone(), address.span);
        Place::new(PlaceKind::Element(name, Box::new(index)), address.span)
    }

    fn term(&self, term: &Term) -> Expr {
        match &term.kind {
            TermKind::Int(value) => generate::int(*value, term.span),
            TermKind::Register(register) => read(self.register(*register, term.span)),
            TermKind::Not(operand) => generate::unary(UnaryOp::Not, self.term(operand), term.span),
            TermKind::Binary(op, left, right) => {
                generate::binary(*op, self.term(left), self.term(right), term.span)
            }
        }
    }

    /// The condition that the thread is in a state, with or without the lock. A state after a second `lock`
    /// is never reached.
    fn reached(&self, template: &Name, state: StateId) -> Expr {
        let span = self.thread.states[state].name.span;
        let process = ProcessRef { template: template.clone(), select: Select::Only, origin: Origin(span) };
        let outside = self.labels.get(&(Region::Outside, state));
        let inside = || {
            let mut sections = 0..self.sections.sections.len();
            sections.find_map(|number| self.labels.get(&(Region::Section(number), state)))
        };
        let Some(label) = outside.or_else(inside).cloned() else { return generate::int(0, span) };
        let at = Observation::At { process, label: Name::new(label, span) };
        Expr::new(ExprKind::Observe(at), span)
    }
}

/// Whether exactly one of two checks holds, whatever the register values.
fn excludes(first: &Instruction, second: &Instruction) -> bool {
    let (Instruction::Check(first), Instruction::Check(second)) = (first, second) else { return false };
    match (&first.kind, &second.kind) {
        (TermKind::Binary(op, a, b), TermKind::Binary(other, c, d)) => {
            let opposite = matches!(
                (op, other),
                (BinaryOp::Eq, BinaryOp::Ne)
                    | (BinaryOp::Ne, BinaryOp::Eq)
                    | (BinaryOp::Lt, BinaryOp::Ge)
                    | (BinaryOp::Ge, BinaryOp::Lt)
                    | (BinaryOp::Le, BinaryOp::Gt)
                    | (BinaryOp::Gt, BinaryOp::Le)
            );
            opposite && same(a, c) && same(b, d)
        }
        (TermKind::Not(operand), _) => same(operand, second),
        (_, TermKind::Not(operand)) => same(first, operand),
        _ => false,
    }
}

fn same(a: &Term, b: &Term) -> bool {
    match (&a.kind, &b.kind) {
        (TermKind::Int(a), TermKind::Int(b)) => a == b,
        (TermKind::Register(a), TermKind::Register(b)) => a.index() == b.index(),
        (TermKind::Not(a), TermKind::Not(b)) => same(a, b),
        (TermKind::Binary(op, a, b), TermKind::Binary(other, c, d)) => {
            op == other && same(a, c) && same(b, d)
        }
        _ => false,
    }
}
