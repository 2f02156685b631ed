//! One process role as a `proctype`, with the procedures it calls.

use super::sections::blocks_late;
use super::{Model, any, parameters, type_of};
use crate::expression::{Condition, Language, Scope, Width, are_opposite};
use crate::names::Names;
use crate::routine::{Kind, Routine, Section};
use crate::step::{Effect, OLD, Plain, plain};
use crate::structure::Node;
use crate::text::Text;
use palisade_base::{Id, IdVec, Span};
use palisade_program::running::{CodeId, Expr, Instr, Location, RegId, RoleId, TemplateId};
use std::collections::BTreeMap;

/// A process on its way to text.
pub(super) struct Process<'m> {
    model: &'m Model<'m>,
    role: RoleId,
    /// Its own routine and those it calls, directly or not.
    parts: Vec<Part<'m>>,
    /// The number of each call among those of the same procedure, from 1.
    sites: BTreeMap<(usize, Location, usize), u32>,
    /// Whether the end of the process is jumped to.
    ends_early: bool,
    /// The label of the end.
    end: String,
    /// Whether what is written now is inside of Promela's `atomic`.
    inside: bool,
}

/// A routine in a process.
struct Part<'m> {
    index: usize,
    routine: &'m Routine<'m>,
    registers: IdVec<RegId, String>,
    labels: BTreeMap<Location, String>,
    /// For procedures.
    call: Call,
}

/// The variables of a procedure in a process.
#[derive(Default)]
struct Call {
    /// The label of its start.
    start: String,
    /// Which call it belongs to, if there are several.
    site: Option<String>,
    /// Where each call goes on.
    back: Vec<String>,
    /// What it returns, if anybody wants to know.
    result: Option<String>,
    /// Registers that are saved while the procedure is called again, each with its stack; and how many calls are saved.
    saved: Vec<(RegId, String)>,
    saved_site: Option<String>,
    depth: Option<String>,
}

/// A step in full.
struct Statement {
    conditions: Vec<Condition>,
    effects: Vec<String>,
    /// A statement that comes before the effects.
    extra: Option<String>,
    /// Whether Promela's `atomic` is around it.
    inside: bool,
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
            let number = process.parts.len();
            let routine = &model.routines[wanted[number]];
            for (location, moves) in routine.moves.iter_enumerated() {
                for (i, step) in moves.iter().enumerate() {
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
            Kind::Process(_) => String::new(),
            Kind::Procedure(_) => format!("{}_", routine.code.name),
        };
        let register = |id: RegId, name: &str, names: &mut Names| match routine.kind {
            Kind::Process(role) if model.observed.registers.contains_key(&(role, id)) => {
                model.observed.own(role, &model.observed.registers[&(role, id)])
            }
            // Private variables are the same in all parts.
            Kind::Procedure(_) if id.index() < model.system.privates => self.parts[0].registers[id].clone(),
            _ => names.fresh(&format!("{prefix}{}", name.replace('%', "t"))),
        };
        let registers = routine
            .code
            .registers
            .iter_enumerated()
            .map(|(id, declared)| register(id, &declared.name, names))
            .collect();
        let mut labels = BTreeMap::new();
        for &location in &model.structured[index].labels {
            labels.insert(location, names.fresh(&label(model, routine, location)));
        }
        Part { index, routine, registers, labels, call: Call::default() }
    }

    /// The variables for calls of a procedure.
    fn call(&self, number: usize, sites: u32, names: &mut Names) -> Call {
        let part = &self.parts[number];
        let name = &part.routine.code.name;
        let mut call = Call { start: names.fresh(&format!("{name}_start")), ..Call::default() };
        call.back = (1..=sites).map(|site| names.fresh(&format!("{name}_back_{site}"))).collect();
        call.site = (sites > 1).then(|| names.fresh(&format!("{name}_site")));
        call.result = part.routine.code.result.map(|_| names.fresh(&format!("{name}_result")));
        if self.calls(number, number) {
            call.depth = Some(names.fresh(&format!("{name}_depth")));
            call.saved_site = call.site.is_some().then(|| names.fresh(&format!("{name}_saved_site")));
            let own = part.routine.code.registers.iter_enumerated().skip(self.model.system.privates);
            for (id, declared) in own {
                if self.is_live_during_calls(part, id) {
                    let register = declared.name.replace('%', "t");
                    call.saved.push((id, names.fresh(&format!("{name}_saved_{register}"))));
                }
            }
        }
        call
    }

    fn is_live_during_calls(&self, part: &Part<'_>, register: RegId) -> bool {
        part.routine.moves.iter().flatten().any(|step| {
            matches!(step.instr, Instr::Call { result, .. } if result != Some(register))
                && !self.model.liveness.dead(part.routine.id, step.target).contains(&register)
        })
    }

    /// Whether one part may call another, directly or not.
    fn calls(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.parts.len()];
        let mut open = vec![from];
        while let Some(part) = open.pop() {
            for callee in self.callees(part) {
                if callee == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[callee], true) {
                    open.push(callee);
                }
            }
        }
        false
    }

    fn callees(&self, number: usize) -> Vec<usize> {
        let routine = self.parts[number].routine;
        let mut callees = Vec::new();
        for (location, moves) in routine.moves.iter_enumerated() {
            for step in moves {
                if let Instr::Call { code, .. } = step.instr {
                    callees.push(self.callee(code, routine.section[location]));
                }
            }
        }
        callees
    }

    fn callee(&self, code: CodeId, section: Section) -> usize {
        let index = find(self.model, code, section);
        self.parts.iter().position(|part| part.index == index).expect("all callees are parts")
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
        // A body, and a label, must be followed by something.
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
            for (id, name) in part.registers.iter_enumerated() {
                let seen = match part.routine.kind {
                    Kind::Process(role) => model.observed.registers.contains_key(&(role, id)),
                    Kind::Procedure(_) => false,
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
            let stack = |name: &String| format!("{name}[STACK]");
            declared.entry("byte").or_default().extend(call.site.iter().cloned());
            declared.entry("byte").or_default().extend(call.depth.iter().cloned());
            declared.entry("byte").or_default().extend(call.saved_site.iter().map(stack));
            for (register, name) in &call.saved {
                declared.entry(type_of(range(*register))).or_default().push(stack(name));
            }
        }
        let mut any = false;
        for (ty, names) in declared.iter().filter(|(_, names)| !names.is_empty()) {
            text.line(&format!("{ty} {};", names.join(", ")));
            any = true;
        }
        if any {
            text.line("");
        }
    }

    fn nodes(&mut self, number: usize, nodes: &[Node], text: &mut Text<'_>) {
        for (i, node) in nodes.iter().enumerate() {
            self.node(number, node, i + 1 == nodes.len(), text);
        }
    }

    fn node(&mut self, number: usize, node: &Node, last: bool, text: &mut Text<'_>) {
        let part = &self.parts[number];
        match node {
            Node::Step(at) => self.step(number, *at, text),
            Node::Branch(at, alternatives) => {
                text.line("if");
                self.options(number, *at, alternatives, text);
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
            Node::Loop(_, body) => {
                text.line("do");
                match &body[..] {
                    [Node::Branch(at, alternatives)] => self.options(number, *at, alternatives, text),
                    body => {
                        text.line("::");
                        text.indent();
                        if is_empty(body) {
                            text.line("skip;");
                        }
                        self.nodes(number, body, text);
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

    /// The alternatives of a place, as they stand between `if` and `fi`.
    fn options(&mut self, number: usize, at: Location, alternatives: &[Vec<Node>], text: &mut Text<'_>) {
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
                    self.special(number, at, i, text);
                    text.dedent();
                }
            }
            text.indent();
            self.nodes(number, alternative, text);
            text.dedent();
        }
    }

    /// The only step of a place.
    fn step(&mut self, number: usize, at: Location, text: &mut Text<'_>) {
        let span = self.parts[number].routine.step(at, 0).span;
        match self.statement(number, at, 0) {
            Some(statement) => statement.write(span, text),
            None => self.special(number, at, 0, text),
        }
    }

    fn scope<'s>(&'s self, number: usize, load: Option<(RegId, &'s str)>) -> Scope<'s> {
        let part = &self.parts[number];
        Scope {
            language: Language::Promela,
            width: Width::Int,
            memory: self.model.memory,
            ranges: self.model.ranges,
            code: part.routine.id,
            registers: &part.registers,
            load,
        }
    }

    /// What changes for properties when a step is taken.
    fn passage(&self, number: usize, from: Option<Location>, to: Option<Location>) -> Vec<String> {
        match self.parts[number].routine.kind {
            Kind::Process(role) => {
                let effects = self.model.observed.passage(self.model.system, role, from, to);
                effects.iter().map(effect).collect()
            }
            Kind::Procedure(_) => Vec::new(),
        }
    }

    /// A step as one statement; `None` for calls and returns, which are several.
    fn statement(&self, number: usize, at: Location, index: usize) -> Option<Statement> {
        let part = &self.parts[number];
        let step = part.routine.step(at, index);
        let mut passage = self.passage(number, Some(at), Some(step.target));
        let mut statement =
            Statement { conditions: Vec::new(), effects: Vec::new(), extra: None, inside: self.inside };
        match &step.instr {
            Instr::Call { .. } | Instr::Return(_) => return None,
            Instr::AtomicBegin => statement.effects.push("holder = _pid".to_owned()),
            Instr::AtomicEnd => statement.effects.push("holder = 0".to_owned()),
            Instr::Havoc(register, lo, hi) => {
                let ty = part.routine.code.registers[*register].ty;
                let (least, most) = ty.domain.bounds().unwrap_or((*lo, *hi));
                let wrong = *lo < least || *hi > most;
                let (from, to) = ((*lo).max(least), (*hi).min(most));
                let name = &part.registers[*register];
                let faults = wrong && ty.outside == palisade_program::running::Outside::Fault;
                statement.extra = Some(match (from <= to, faults) {
                    (true, false) => any(name, from, to),
                    (true, true) => format!("if :: {} :: assert(false) fi", any(name, from, to)),
                    (false, true) => "assert(false)".to_owned(),
                    (false, false) => "(false)".to_owned(),
                });
            }
            Instr::Spawn(template, args) => {
                let scope = self.scope(number, None);
                args.iter().for_each(|arg| scope.check(arg, &mut statement.conditions));
                statement.extra = Some(self.spawn(&scope, *template, args));
                if let Some(running) = &self.model.observed.running {
                    statement.effects.push(format!("{running}++"));
                }
            }
            _ => {
                let place = step
                    .load
                    .as_ref()
                    .map(|(register, address)| (*register, self.scope(number, None).place(address)));
                let load = place.as_ref().map(|(register, place)| (*register, place.as_str()));
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
    fn spawn(&self, scope: &Scope<'_>, template: TemplateId, args: &[Expr]) -> String {
        let system = self.model.system;
        let roles = &system.templates[template].roles;
        let start = |role: RoleId| {
            let entry = system.role_code(role).entry;
            let mut effects: Vec<String> =
                self.model.observed.passage(system, role, None, Some(entry)).iter().map(effect).collect();
            effects.insert(0, format!("run {}()", self.model.roles[role]));
            effects.join("; ")
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
                format!(":: {} -> {}", equal.join(" && "), start(role))
            })
            .collect();
        options.push(":: else -> assert(false)".to_owned());
        format!("if {} fi", options.join(" "))
    }

    /// A section that Promela's `atomic` takes, held as well if it may block later than at its first step.
    fn atomic(&mut self, number: usize, at: Location, body: &[Node], text: &mut Text<'_>) {
        let part = &self.parts[number];
        let (routine, begin) = (part.routine, part.routine.step(at, 0));
        let held = blocks_late(self.model.system, routine, body);
        let mut entering = self.passage(number, Some(at), Some(begin.target));
        text.commented("atomic {", begin.span);
        text.indent();
        self.inside = true;
        if held {
            entering.insert(0, "holder = _pid".to_owned());
        }
        let (end, inside) = body.split_last().expect("a section has an end");
        // A section that is not held may wait at its first step, which therefore comes first.
        let mut rest = inside;
        while !held && !entering.is_empty() {
            let Some((node, others)) = rest.split_first() else { break };
            rest = others;
            self.node(number, node, false, text);
            if !matches!(node, Node::Label(_)) {
                break;
            }
        }
        entering.iter().for_each(|line| text.line(&format!("{line};")));
        self.nodes(number, rest, text);
        let Node::Step(end) = end else { unreachable!("a section ends with the step that closes it") };
        let target = routine.step(*end, 0).target;
        let mut leaving = self.passage(number, Some(*end), Some(target));
        if held {
            leaving.push("holder = 0".to_owned());
        }
        leaving.iter().for_each(|line| text.line(&format!("{line};")));
        if is_empty(inside) && leaving.is_empty() && entering.is_empty() {
            text.line("skip;");
        }
        self.inside = false;
        text.dedent();
        text.line("};");
    }

    /// Calls and returns.
    fn special(&mut self, number: usize, at: Location, index: usize, text: &mut Text<'_>) {
        let step = self.parts[number].routine.step(at, index).clone();
        match &step.instr {
            Instr::Call { code, args, result } => {
                let callee = self.callee(*code, self.parts[number].routine.section[at]);
                let site = self.sites[&(number, at, index)];
                self.enter(number, callee, site, at, args, step.span, text);
                self.go_on(number, callee, site, *result, step.target, text);
            }
            Instr::Return(value) => self.return_(number, value.as_ref(), step.span, text),
            other => unreachable!("{other:?} is one statement"),
        }
    }

    /// The step that enters a procedure.
    #[expect(clippy::too_many_arguments, reason = "who calls whom, where, with what")]
    fn enter(
        &self,
        number: usize,
        callee: usize,
        site: u32,
        at: Location,
        args: &[Expr],
        span: Span,
        text: &mut Text<'_>,
    ) {
        let scope = self.scope(number, None);
        let (call, routine) = (&self.parts[callee].call, self.parts[callee].routine);
        let registers = &self.parts[callee].registers;
        let mut statement = Statement {
            conditions: Vec::new(),
            effects: self.passage(number, Some(at), None),
            extra: None,
            inside: self.inside,
        };
        let privates = self.model.system.privates;
        for (arg, param) in args.iter().zip(routine.code.registers.iter().skip(privates)) {
            scope.check(arg, &mut statement.conditions);
            statement.conditions.extend(scope.fit(&scope.expr(arg), scope.range(arg), param.ty));
        }
        let again = self.calls(callee, number) || callee == number;
        if again {
            let depth = call.depth.as_ref().expect("a procedure that is called again has a stack");
            let room = format!("{depth} < STACK");
            statement.conditions.push(Condition::Must(room, "stack too small"));
            for (register, stack) in &call.saved {
                statement.effects.push(format!("{stack}[{depth}] = {}", registers[*register]));
            }
            if let (Some(site), Some(stack)) = (&call.site, &call.saved_site) {
                statement.effects.push(format!("{stack}[{depth}] = {site}"));
            }
            statement.effects.push(format!("{depth}++"));
        }
        let params: Vec<(&String, String)> =
            registers.iter().skip(privates).zip(args.iter().map(|arg| scope.expr(arg))).collect();
        if callee == number && params.len() > 1 {
            // Own registers are read and written: all are read first.
            for (i, (_, value)) in params.iter().enumerate() {
                statement.effects.push(format!("{OLD}s[{i}] = {value}"));
            }
            for (i, (register, _)) in params.iter().enumerate() {
                statement.effects.push(format!("{register} = {OLD}s[{i}]"));
            }
        } else {
            statement.effects.extend(params.iter().map(|(register, value)| format!("{register} = {value}")));
        }
        if again {
            let others = registers.iter_enumerated().skip(privates + args.len());
            let used = others.filter(|(id, _)| is_used(routine, privates, *id));
            statement.effects.extend(used.map(|(_, register)| format!("{register} = 0")));
        }
        if let Some(variable) = &call.site {
            statement.effects.push(format!("{variable} = {site}"));
        }
        statement.write(span, text);
        text.line(&format!("goto {};", call.start));
    }

    /// The step that comes back.
    fn go_on(
        &self,
        number: usize,
        callee: usize,
        site: u32,
        result: Option<RegId>,
        target: Location,
        text: &mut Text<'_>,
    ) {
        let (call, routine) = (&self.parts[callee].call, self.parts[callee].routine);
        let registers = &self.parts[callee].registers;
        text.outdented(&format!("{}:", call.back[site as usize - 1]));
        let mut statement =
            Statement { conditions: Vec::new(), effects: Vec::new(), extra: None, inside: self.inside };
        let again = self.calls(callee, number) || callee == number;
        // Registers that nobody needs are 0, so that they tell no states apart.
        let privates = self.model.system.privates;
        let own = registers.iter_enumerated().skip(privates);
        for (id, register) in own.filter(|(id, _)| is_used(routine, privates, *id)) {
            let saved = call.saved.iter().find(|(saved, _)| again && *saved == id);
            let value = match (saved, &call.depth) {
                (Some((_, stack)), Some(depth)) => format!("{stack}[{depth} - 1]"),
                _ => "0".to_owned(),
            };
            statement.effects.push(format!("{register} = {value}"));
        }
        if let Some(variable) = &call.site {
            let value = match (&call.saved_site, &call.depth) {
                (Some(stack), Some(depth)) if again => format!("{stack}[{depth} - 1]"),
                _ => "0".to_owned(),
            };
            statement.effects.push(format!("{variable} = {value}"));
        }
        if let (true, Some(depth)) = (again, &call.depth) {
            statement.effects.push(format!("{depth}--"));
            for stack in call.saved.iter().map(|(_, stack)| stack).chain(&call.saved_site) {
                statement.effects.push(format!("{stack}[{depth}] = 0"));
            }
        }
        if let Some(variable) = &call.result {
            if let Some(register) = result {
                let part = &self.parts[number];
                let range = self.model.ranges.results[routine.id];
                let ty = part.routine.code.registers[register].ty;
                statement.conditions.extend(self.scope(number, None).fit(variable, range, ty));
                statement.effects.push(format!("{} = {variable}", part.registers[register]));
            }
            statement.effects.push(format!("{variable} = 0"));
        }
        statement.effects.extend(self.passage(number, None, Some(target)));
        statement.write(Span::NONE, text);
    }

    fn return_(&self, number: usize, value: Option<&Expr>, span: Span, text: &mut Text<'_>) {
        let scope = self.scope(number, None);
        let (call, routine) = (&self.parts[number].call, self.parts[number].routine);
        let mut statement =
            Statement { conditions: Vec::new(), effects: Vec::new(), extra: None, inside: self.inside };
        if let Some(value) = value {
            scope.check(value, &mut statement.conditions);
        }
        if let (Some(variable), Some(ty)) = (&call.result, routine.code.result) {
            let value = value.cloned().unwrap_or(Expr::Const(0));
            statement.conditions.extend(scope.fit(&scope.expr(&value), scope.range(&value), ty));
            statement.effects.push(format!("{variable} = {}", scope.expr(&value)));
        }
        if !statement.conditions.is_empty() || !statement.effects.is_empty() {
            statement.write(span, text);
        }
        match &call.site {
            None => text.line(&format!("goto {};", call.back[0])),
            Some(site) => {
                let options = call.back.iter().enumerate();
                let options: Vec<String> =
                    options.map(|(i, back)| format!(":: {site} == {} -> goto {back}", i + 1)).collect();
                text.line(&format!("if {} fi;", options.join(" ")));
            }
        }
    }
}

impl Statement {
    /// The condition under which the step faults, if it may also have to wait: waiting must then be told from faulting.
    fn fault_before_waiting(&self) -> Option<String> {
        if !self.is_mixed() {
            return None;
        }
        let mut passed: Vec<String> = Vec::new();
        let mut faults = Vec::new();
        for condition in &self.conditions {
            match condition {
                Condition::Must(text, _) => {
                    let mut all = passed.clone();
                    all.push(format!("!({text})"));
                    faults.push(all.join(" && "));
                    passed.push(format!("({text})"));
                }
                Condition::May(text) => passed.push(format!("({text})")),
            }
        }
        Some(match &faults[..] {
            [one] => one.clone(),
            many => many.iter().map(|fault| format!("({fault})")).collect::<Vec<_>>().join(" || "),
        })
    }

    fn is_mixed(&self) -> bool {
        let must = |condition: &Condition| matches!(condition, Condition::Must(..));
        self.conditions.iter().any(must) && !self.conditions.iter().all(must)
    }

    /// Whether something is more than one statement of Promela.
    fn is_compound(&self) -> bool {
        self.effects.iter().chain(&self.extra).any(|part| part.contains("; ") || part.contains("->"))
    }

    /// Everything in one statement, which can be taken only if nothing faults or waits; if it cannot wait, faults are assertions in it.
    fn guarded(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut guard: Vec<&str> = Vec::new();
        for condition in &self.conditions {
            match condition {
                Condition::Must(text, _) if !self.is_mixed() => parts.push(format!("assert({text})")),
                Condition::Must(text, _) | Condition::May(text) => guard.push(text),
            }
        }
        let guard = match &guard[..] {
            [] => None,
            [one] => Some((*one).to_owned()),
            many => Some(many.iter().map(|text| format!("({text})")).collect::<Vec<_>>().join(" && ")),
        };
        parts.extend(self.extra.clone());
        parts.extend(self.effects.iter().cloned());
        match (guard, &parts[..]) {
            (None, []) => "skip".to_owned(),
            (None, [one]) if !self.is_compound() => one.clone(),
            (Some(guard), []) => guard,
            (None, many) if self.inside => many.join("; "),
            (Some(guard), many) if self.inside => format!("{guard} -> {}", many.join("; ")),
            (None, many) => format!("atomic {{ {} }}", many.join("; ")),
            (Some(guard), many) => format!("atomic {{ {guard} -> {} }}", many.join("; ")),
        }
    }

    /// The step on its own.
    fn write(&self, span: Span, text: &mut Text<'_>) {
        match self.fault_before_waiting() {
            None => text.commented(&format!("{};", self.guarded()), span),
            Some(fault) => {
                text.line("if");
                text.commented(&format!(":: {fault} -> assert(false)"), span);
                text.line(&format!(":: {}", self.guarded()));
                text.line("fi;");
            }
        }
    }
}

/// Whether there is nothing to write.
fn is_empty(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| matches!(node, Node::Label(_)))
}

/// The place of a routine among all.
fn find(model: &Model<'_>, code: CodeId, section: Section) -> usize {
    let kind = Kind::Procedure(section);
    let found = model.routines.iter().position(|routine| routine.id == code && routine.kind == kind);
    found.expect("every procedure that is called is a routine")
}

/// A name for a place: its label, or the line of what is written there.
fn label(model: &Model<'_>, routine: &Routine<'_>, location: Location) -> String {
    let found = routine.code.labels.iter().find(|(_, at)| *at == location);
    let name = match (found, routine.moves[location].first().and_then(|step| model.line(step.span))) {
        (Some((label, _)), _) => label.clone(),
        (None, Some(line)) => format!("line_{line}"),
        (None, None) => format!("place_{}", location.index()),
    };
    // These beginnings mean something to Spin.
    if ["end", "accept", "progress"].iter().any(|word| name.starts_with(word)) {
        format!("at_{name}")
    } else {
        name
    }
}

fn is_used(routine: &Routine<'_>, privates: usize, register: RegId) -> bool {
    if routine.is_parameter(privates, register) {
        return true;
    }
    routine.moves.iter().flatten().any(|step| {
        let mut found = step.instr.written_register() == Some(register);
        step.instr.read_registers(&mut |other| found |= other == register);
        let loaded = step.load.as_ref().is_some_and(|(loaded, _)| *loaded == register);
        // A fused load leaves no trace of its register, unless that is assigned as well.
        found && (!loaded || step.instr.written_register() == Some(register))
            || step.load.as_ref().is_some_and(|(_, address)| {
                let mut found = false;
                address.registers(&mut |other| found |= other == register);
                found
            })
    })
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Set(place, value) => format!("{place} = {value}"),
        Effect::More(place) => format!("{place}++"),
        Effect::Less(place) => format!("{place}--"),
        Effect::If(condition, yes, no) => {
            let list = |effects: &[Effect]| effects.iter().map(self::effect).collect::<Vec<_>>().join("; ");
            format!("if :: {condition} -> {} :: else -> {} fi", list(yes), list(no))
        }
    }
}
