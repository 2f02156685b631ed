//! One process role as a `proctype`, with the procedures it calls.

use super::calls::Call;
use super::sections::blocks_late;
use super::statement::{Code, Statement, effect, sequence};
use super::{Model, any, parameters, type_of};
use crate::expression::{Language, Load, LoadForm, Scope, Width, are_opposite};
use crate::names::{Names, of_register};
use crate::routine::{Routine, RoutineKind, Section};
use crate::step::{Plain, plain};
use crate::structure::Node;
use crate::text::Text;
use crate::uses::Registers;
use crate::wrap;
use palisade_base::{Id, limits};
use palisade_program::running::{CodeId, Expr, Instr, Location, RegId, Register, RoleId, TemplateId};
use std::collections::BTreeMap;

/// Longer lists of variables are broken into lines.
const LONGEST_DECLARATION: usize = 90;

/// A process under construction.
pub(super) struct Process<'m> {
    pub model: &'m Model<'m>,
    role: RoleId,
    /// Its own routine, and those it calls directly or indirectly.
    pub parts: Vec<Part<'m>>,
    /// The index of each call among those of the same procedure, from 1.
    pub sites: BTreeMap<(usize, Location, usize), u32>,
    /// Whether there is a jump to the end of the process.
    ends_early: bool,
    /// The label of the end.
    end: String,
    /// Whether the current position is inside Promela's `atomic`.
    pub inside: bool,
}

/// A routine in a process.
pub(super) struct Part<'m> {
    pub index: usize,
    pub routine: &'m Routine<'m>,
    pub registers: Registers,
    pub labels: BTreeMap<Location, String>,
    /// For procedures.
    pub call: Call,
}

/// The construct around alternatives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    If,
    Do,
}

impl<'m> Process<'m> {
    pub fn new(model: &'m Model<'m>, index: usize, role: RoleId) -> Process<'m> {
        let mut names = model.names.clone();
        let end = names.fresh("finished");
        let mut process = Process {
            model,
            role,
            parts: Vec::new(),
            sites: BTreeMap::new(),
            ends_early: false,
            end,
            inside: false,
        };
        let mut calls: BTreeMap<usize, u32> = BTreeMap::new();
        let mut wanted = vec![index];
        while process.parts.len() < wanted.len() {
            limits::checkpoint();
            let number = process.parts.len();
            let routine = &model.routines[wanted[number]];
            for (location, moves) in routine.moves.iter_enumerated() {
                for (i, step) in moves.iter().enumerate() {
                    limits::checkpoint();
                    if let Instr::Call { code, .. } = step.instr {
                        let callee = find(model, code, routine.section[location]);
                        if !wanted.contains(&callee) {
                            wanted.push(callee);
                        }
                        let count = calls.entry(callee).or_default();
                        *count += 1;
                        process.sites.insert((number, location, i), *count);
                    }
                }
            }
            let part = process.part(wanted[number], &mut names);
            process.parts.push(part);
        }
        for number in 1..process.parts.len() {
            let sites = calls[&process.parts[number].index];
            process.parts[number].call = process.call(number, sites, &mut names);
        }
        process
    }

    fn part(&self, index: usize, names: &mut Names) -> Part<'m> {
        let model = self.model;
        let routine = &model.routines[index];
        let prefix = match routine.kind {
            RoutineKind::Process(_) => String::new(),
            RoutineKind::Procedure(_) => format!("{}_", routine.code.name),
        };
        let register = |id: RegId, declared: &Register, names: &mut Names| match routine.kind {
            RoutineKind::Process(role) if model.observed.registers.contains_key(&(role, id)) => {
                model.observed.own(role, &model.observed.registers[&(role, id)])
            }
            // Private variables are shared by all parts.
            RoutineKind::Procedure(_) if id.index() < model.system.privates => {
                self.parts[0].registers.name(id)
            }
            _ => names.fresh(&format!("{prefix}{}", of_register(declared))),
        };
        let registers = routine
            .code
            .registers
            .iter_enumerated()
            .map(|(id, declared)| register(id, declared, names))
            .collect();
        let mut labels = BTreeMap::new();
        for &location in &model.structured[index].labels {
            labels.insert(location, names.fresh(&label(model, routine, location)));
        }
        Part { index, routine, registers, labels, call: Call::default() }
    }

    /// Writes the `proctype`.
    pub fn write(mut self, text: &mut Text<'_>) {
        let model = self.model;
        let name = &model.roles[self.role];
        let provided = if model.holds { " provided (holder == 0 || holder == _pid)" } else { "" };
        text.line(&format!("proctype {name}({}){provided} {{", parameters(model.observed, self.role)));
        text.indent();
        text.forget_line();
        self.declarations(text);
        for number in 0..self.parts.len() {
            let part = &self.parts[number];
            if number > 0 {
                text.line("");
                text.forget_line();
                text.outdented(&format!("{}: /* {} */", part.call.start, part.routine.code.name));
            }
            let body = &model.structured[part.index].body;
            self.nodes(number, body, text);
            if number == 0 && self.parts.len() > 1 {
                text.line(&format!("goto {};", self.end));
                self.ends_early = true;
            }
        }
        if self.ends_early {
            text.line("");
            text.outdented(&format!("{}:", self.end));
        }
        // A body and a label need a statement after them.
        if self.ends_early || model.structured[self.parts[0].index].body.is_empty() {
            text.line("skip");
        }
        text.dedent();
        text.line("}");
        text.line("");
    }

    fn declarations(&self, text: &mut Text<'_>) {
        let model = self.model;
        let mut declared: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let privates = model.system.privates;
        for (number, part) in self.parts.iter().enumerate() {
            let range = |register: RegId| model.ranges.register_range(part.routine.id, register);
            for (id, name) in part.registers.declared().iter_enumerated() {
                limits::checkpoint();
                let seen = match part.routine.kind {
                    RoutineKind::Process(role) => model.observed.registers.contains_key(&(role, id)),
                    RoutineKind::Procedure(_) => false,
                };
                let used = match id.index() < privates {
                    true => number == 0 && self.parts.iter().any(|part| is_used(part.routine, privates, id)),
                    false => is_used(part.routine, privates, id),
                };
                if !seen && used {
                    declared.entry(type_of(range(id))).or_default().push(name.clone());
                }
            }
            let call = &part.call;
            if let Some(result) = &call.result {
                let range = model.ranges.results[part.routine.id];
                declared.entry(type_of(range)).or_default().push(result.clone());
            }
            let stack = |name: &String| format!("{name}[{}]", model.uses.stack());
            declared.entry("byte").or_default().extend(call.site.iter().cloned());
            declared.entry("byte").or_default().extend(call.depth.iter().cloned());
            declared.entry("byte").or_default().extend(call.saved_site.iter().map(stack));
            for (register, name) in &call.saved {
                declared.entry(type_of(range(*register))).or_default().push(stack(name));
            }
        }
        let mut any = false;
        for (ty, names) in declared.iter().filter(|(_, names)| !names.is_empty()) {
            let mut line = format!("{ty} ");
            for (i, name) in names.iter().enumerate() {
                if line.len() + name.len() > LONGEST_DECLARATION {
                    text.line(line.trim_end());
                    line = "    ".to_owned();
                }
                line.push_str(name);
                line.push_str(if i + 1 == names.len() { ";" } else { ", " });
            }
            text.line(&line);
            any = true;
        }
        if any {
            text.line("");
        }
    }

    fn nodes(&mut self, number: usize, nodes: &[Node], text: &mut Text<'_>) {
        for (i, node) in nodes.iter().enumerate() {
            limits::checkpoint();
            self.node(number, node, i + 1 == nodes.len(), text);
        }
    }

    fn node(&mut self, number: usize, node: &Node, last: bool, text: &mut Text<'_>) {
        let part = &self.parts[number];
        match node {
            Node::Step(at) => self.step(number, *at, text),
            Node::Branch(at, alternatives) => {
                text.line("if");
                self.options(number, *at, alternatives, Around::If, text);
                text.line("fi;");
            }
            Node::Label(at) => {
                if let Some(label) = part.labels.get(at) {
                    text.outdented(&format!("{label}:"));
                    // A label at the end of a block needs a statement.
                    if last {
                        text.line("skip;");
                    }
                }
            }
            Node::Loop(_, body) if self.is_idle_loop(number, body) => text.line("(false);"),
            Node::Loop(_, body) => {
                let written =
                    |node: &&Node| !matches!(node, Node::Label(at) if !part.labels.contains_key(at));
                let body: Vec<&Node> = body.iter().filter(written).collect();
                text.line("do");
                match &body[..] {
                    [Node::Branch(at, alternatives)] => {
                        self.options(number, *at, alternatives, Around::Do, text);
                    }
                    body => {
                        text.line("::");
                        text.indent();
                        for (i, node) in body.iter().enumerate() {
                            self.node(number, node, i + 1 == body.len(), text);
                        }
                        text.dedent();
                    }
                }
                text.line("od;");
            }
            Node::Atomic(at, body) => self.atomic(number, *at, body, text),
            Node::Goto(target) => text.line(&format!("goto {};", part.labels[target])),
            Node::Break => text.line("break;"),
            Node::Continue => unreachable!("Promela has no `continue`"),
            Node::End => {
                text.line(&format!("goto {};", self.end));
                self.ends_early = true;
            }
            Node::Stuck(_) => text.line("(false);"),
        }
    }

    /// Whether a loop only repeats an empty step. Its process can stop instead, and Spin refuses such loops.
    fn is_idle_loop(&self, number: usize, body: &[Node]) -> bool {
        let mut steps = body.iter().filter(|node| !matches!(node, Node::Label(_)));
        match (steps.next(), steps.next()) {
            (None, _) => true,
            (Some(Node::Step(at)), None) => {
                self.statement(number, *at, 0).is_some_and(|statement| statement.is_skip())
            }
            _ => false,
        }
    }

    /// The alternatives of a location, as they appear between `if` and `fi`.
    fn options(
        &mut self,
        number: usize,
        at: Location,
        alternatives: &[Vec<Node>],
        around: Around,
        text: &mut Text<'_>,
    ) {
        let routine = self.parts[number].routine;
        let moves = &routine.moves[at];
        let statements: Vec<Option<Statement>> =
            (0..moves.len()).map(|i| self.statement(number, at, i)).collect();
        let otherwise = moves.len() == 2
            && matches!((&moves[0].instr, &moves[1].instr), (Instr::Assume(a), Instr::Assume(b)) if are_opposite(a, b))
            && statements.iter().flatten().all(|s| s.conditions.len() == 1)
            && statements[1].as_ref().is_some_and(|s| s.effects.is_empty());
        let mut wrong: Vec<String> = Vec::new();
        for (i, alternative) in alternatives.iter().enumerate() {
            let span = moves[i].span;
            let arrow = if is_empty(alternative) { "" } else { " ->" };
            match &statements[i] {
                // Another iteration that does nothing: Spin refuses it, and it is not needed.
                Some(statement) if around == Around::Do && arrow.is_empty() && statement.is_skip() => {
                    text.line(":: false");
                }
                Some(_) if otherwise && i == 1 => text.commented(&format!(":: else{arrow}"), span),
                Some(statement) => {
                    if let Some(fault) = statement.fault_before_waiting()
                        && !wrong.contains(&fault)
                    {
                        text.commented(&format!(":: {fault} -> assert(false)"), span);
                        wrong.push(fault);
                    }
                    text.commented(&format!(":: {}{arrow}", statement.guarded()), span);
                }
                None => {
                    text.line("::");
                    text.indent();
                    self.call_or_return(number, at, i, text);
                    text.dedent();
                }
            }
            text.indent();
            self.nodes(number, alternative, text);
            text.dedent();
        }
    }

    /// The only step of a location.
    fn step(&mut self, number: usize, at: Location, text: &mut Text<'_>) {
        let span = self.parts[number].routine.step(at, 0).span;
        match self.statement(number, at, 0) {
            Some(statement) => statement.write(span, text),
            None => self.call_or_return(number, at, 0, text),
        }
    }

    pub fn scope<'s>(&'s self, number: usize, load: Option<Load<'s>>) -> Scope<'s> {
        let part = &self.parts[number];
        Scope {
            language: Language::Promela,
            width: Width::Int,
            memory: self.model.memory,
            ranges: self.model.ranges,
            code: part.routine.id,
            registers: &part.registers,
            uses: &self.model.uses,
            load,
        }
    }

    /// The effects of a step on what properties observe.
    pub fn passage(&self, number: usize, from: Option<Location>, to: Option<Location>) -> Vec<Code> {
        match self.parts[number].routine.kind {
            RoutineKind::Process(role) => {
                let effects = self.model.observed.passage(self.model.system, role, from, to);
                effects.iter().map(effect).collect()
            }
            RoutineKind::Procedure(_) => Vec::new(),
        }
    }

    /// A step as one statement; `None` for calls and returns, which take several.
    fn statement(&self, number: usize, at: Location, index: usize) -> Option<Statement> {
        limits::checkpoint();
        let part = &self.parts[number];
        let step = part.routine.step(at, index);
        let mut passage = self.passage(number, Some(at), Some(step.target));
        let mut statement =
            Statement { conditions: Vec::new(), effects: Vec::new(), extra: None, inside: self.inside };
        match &step.instr {
            Instr::Call { .. } | Instr::Return(_) => return None,
            Instr::AtomicBegin => statement.effects.push(Code::one("holder = _pid")),
            Instr::AtomicEnd => statement.effects.push(Code::one("holder = 0")),
            Instr::Havoc(register, lo, hi) => {
                let ty = part.routine.code.registers[*register].ty;
                let name = part.registers.name(*register);
                if let Some(chosen) = wrap::images(ty, *lo, *hi) {
                    let options: Vec<String> =
                        chosen.iter().map(|&(from, to)| any(&name, from, to).text).collect();
                    statement.extra = Some(match &chosen[..] {
                        [(from, to)] => any(&name, *from, *to),
                        _ => Code::several(format!("if :: {} fi", options.join(" :: "))),
                    });
                    statement.effects.append(&mut passage);
                    return Some(statement);
                }
                let (least, most) = ty.domain.bounds().unwrap_or((*lo, *hi));
                let wrong = *lo < least || *hi > most;
                let (from, to) = ((*lo).max(least), (*hi).min(most));
                let faults = wrong && ty.outside == palisade_program::running::Outside::Fault;
                statement.extra = Some(match (from <= to, faults) {
                    (true, false) => any(&name, from, to),
                    (true, true) => {
                        any(&name, from, to).map(|any| format!("if :: {any} :: assert(false) fi"))
                    }
                    (false, true) => Code::one("assert(false)"),
                    (false, false) => Code::one("(false)"),
                });
            }
            Instr::Spawn(template, args) => {
                let scope = self.scope(number, None);
                args.iter().for_each(|arg| scope.check(arg, &mut statement.conditions));
                statement.extra = Some(self.spawn(&scope, *template, args));
                if let Some(running) = &self.model.observed.running {
                    statement.effects.push(Code::one(format!("{running}++")));
                }
            }
            _ => {
                let load = step.load.as_ref();
                let load = load.map(|(register, address)| Load {
                    register: *register,
                    address,
                    form: LoadForm::Cell,
                });
                let scope = self.scope(number, load);
                let Plain { conditions, effects } = plain(&scope, &part.routine.code.registers, step);
                statement.conditions = conditions;
                statement.effects = effects.iter().map(effect).collect();
            }
        }
        statement.effects.append(&mut passage);
        Some(statement)
    }

    /// Starts a process.
    fn spawn(&self, scope: &Scope<'_>, template: TemplateId, args: &[Expr]) -> Code {
        let system = self.model.system;
        let roles = &system.templates[template].roles;
        let start = |role: RoleId| {
            let entry = system.role_code(role).entry;
            let run = Code::one(format!("run {}()", self.model.roles[role]));
            let passage = self.model.observed.passage(system, role, None, Some(entry));
            sequence(std::iter::once(run).chain(passage.iter().map(effect)).collect())
        };
        if args.is_empty() {
            return start(roles[0]);
        }
        let tight: Vec<String> = args.iter().map(|arg| scope.tight(arg)).collect();
        let mut options: Vec<String> = roles
            .iter()
            .map(|&role| {
                let values = system.roles[role].args.iter();
                let equal: Vec<String> =
                    tight.iter().zip(values).map(|(arg, value)| format!("{arg} == {value}")).collect();
                format!(":: {} -> {}", equal.join(" && "), start(role).text)
            })
            .collect();
        options.push(":: else -> assert(false)".to_owned());
        Code::several(format!("if {} fi", options.join(" ")))
    }

    /// A section that Promela's `atomic` can express. It is also held if it may block after its first step.
    fn atomic(&mut self, number: usize, at: Location, body: &[Node], text: &mut Text<'_>) {
        let part = &self.parts[number];
        let (routine, begin) = (part.routine, part.routine.step(at, 0));
        let held = blocks_late(self.model.system, routine, body);
        let mut entering = self.passage(number, Some(at), Some(begin.target));
        text.commented("atomic {", begin.span);
        text.indent();
        self.inside = true;
        if held {
            entering.insert(0, Code::one("holder = _pid"));
        }
        let (end, inside) = body.split_last().expect("a section has an end");
        // A section that is not held may wait at its first step, so that step comes first.
        let mut rest = inside;
        while !held && !entering.is_empty() {
            let Some((node, others)) = rest.split_first() else { break };
            rest = others;
            self.node(number, node, false, text);
            if !matches!(node, Node::Label(_)) {
                break;
            }
        }
        entering.iter().for_each(|code| text.line(&format!("{};", code.text)));
        self.nodes(number, rest, text);
        let Node::Step(end) = end else { unreachable!("a section ends with the step that closes it") };
        let target = routine.step(*end, 0).target;
        let mut leaving = self.passage(number, Some(*end), Some(target));
        if held {
            leaving.push(Code::one("holder = 0"));
        }
        leaving.iter().for_each(|code| text.line(&format!("{};", code.text)));
        if is_empty(inside) && leaving.is_empty() && entering.is_empty() {
            text.line("skip;");
        }
        self.inside = false;
        text.dedent();
        text.line("};");
    }
}

/// Whether there is nothing to write.
fn is_empty(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| matches!(node, Node::Label(_)))
}

/// The index of a routine.
pub(super) fn find(model: &Model<'_>, code: CodeId, section: Section) -> usize {
    let kind = RoutineKind::Procedure(section);
    let found = model.routines.iter().position(|routine| routine.id == code && routine.kind == kind);
    found.expect("every procedure that is called is a routine")
}

/// A name for a location: its label, or its source line.
fn label(model: &Model<'_>, routine: &Routine<'_>, location: Location) -> String {
    let found = routine.code.labels.iter().find(|(_, at)| *at == location);
    let name = match (found, routine.moves[location].first().and_then(|step| model.line(step.span))) {
        (Some((label, _)), _) => label.clone(),
        (None, Some(line)) => format!("line_{line}"),
        (None, None) => format!("place_{}", location.index()),
    };
    // These prefixes have a meaning in Spin.
    if ["end", "accept", "progress"].iter().any(|word| name.starts_with(word)) {
        format!("at_{name}")
    } else {
        name
    }
}

pub(super) fn is_used(routine: &Routine<'_>, privates: usize, register: RegId) -> bool {
    if routine.is_parameter(privates, register) {
        return true;
    }
    routine.moves.iter().flatten().any(|step| {
        let mut found = step.instr.written_register() == Some(register);
        step.instr.read_registers(&mut |other| found |= other == register);
        let loaded = step.load.as_ref().is_some_and(|(loaded, _)| *loaded == register);
        // The register of a fused load does not appear, unless it is also assigned.
        found && (!loaded || step.instr.written_register() == Some(register))
            || step.load.as_ref().is_some_and(|(_, address)| {
                let mut found = false;
                address.registers(&mut |other| found |= other == register);
                found
            })
    })
}
