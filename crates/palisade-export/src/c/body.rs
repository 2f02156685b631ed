//! One routine as a function.

use super::Model;
use crate::expression::{Condition, Language, Load, LoadForm, Scope, Term, are_opposite};
use crate::names::{Names, of_register};
use crate::observed::ME;
use crate::routine::{Move, Routine, RoutineKind, Section};
use crate::step::{Effect, Plain, plain};
use crate::structure::Node;
use crate::text::Text;
use crate::uses::{Registers, Uses};
use palisade_base::{Id, IdVec, Span, limits};
use palisade_program::Value;
use palisade_program::running::{
    Address, CellId, Expr, Instr, Location, Outside, RegId, Register, RoleId, TemplateId, Type,
};
use std::collections::{BTreeMap, BTreeSet};

/// Whether the parameters of a function are named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameters<'n> {
    Types,
    Named(&'n IdVec<RegId, String>),
}

/// The first line of a function.
pub(super) fn heading(
    model: &Model<'_>,
    index: usize,
    routine: &Routine<'_>,
    parameters: Parameters<'_>,
) -> String {
    let name = &model.functions[index];
    match routine.kind {
        RoutineKind::Process(_) => match parameters {
            Parameters::Types => format!("static void *{name}(void *)"),
            Parameters::Named(_) => format!("static void *{name}(void *argument)"),
        },
        RoutineKind::Procedure(_) => {
            let result = if routine.code.result.is_some() { "value" } else { "void" };
            let first = model.system.privates;
            let params: Vec<String> = (first..first + routine.code.params)
                .map(|i| match parameters {
                    Parameters::Types => "value".to_owned(),
                    Parameters::Named(names) => format!("value {}", names[RegId::from_index(i)]),
                })
                .collect();
            let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
            format!("static {result} {name}({params})")
        }
    }
}

/// A function under construction.
pub(super) struct Body<'m> {
    model: &'m Model<'m>,
    index: usize,
    routine: &'m Routine<'m>,
    registers: Registers,
    labels: BTreeMap<Location, String>,
    /// Labels written so far, and labels of loops.
    passed: BTreeSet<Location>,
    headers: BTreeSet<Location>,
    /// Whether the variables `choice` and `result` are needed.
    chooses: bool,
    keeps_result: bool,
}

impl<'m> Body<'m> {
    pub fn new(model: &'m Model<'m>, index: usize) -> Body<'m> {
        let routine = &model.routines[index];
        let mut names: Names = model.names.clone();
        let register = |id: RegId, declared: &Register, names: &mut Names| match routine.kind {
            RoutineKind::Process(role) if model.observed.registers.contains_key(&(role, id)) => {
                model.observed.own(role, &model.observed.registers[&(role, id)])
            }
            _ if id.index() < model.system.privates => model.privates[id].clone(),
            _ => names.fresh(&of_register(declared)),
        };
        let registers = routine
            .code
            .registers
            .iter_enumerated()
            .map(|(id, declared)| register(id, declared, &mut names))
            .collect();
        let mut labels = BTreeMap::new();
        for &location in &model.structured[index].labels {
            labels.insert(location, names.fresh(&label(model, routine, location)));
        }
        let (passed, headers) = (BTreeSet::new(), BTreeSet::new());
        Body {
            model,
            index,
            routine,
            registers,
            labels,
            passed,
            headers,
            chooses: false,
            keeps_result: false,
        }
    }

    /// Writes the function.
    pub fn write(mut self, routine: &Routine<'_>, text: &mut Text<'_>) {
        // The body is written first, to find out which variables it needs.
        let mut body = text.part();
        body.indent();
        if let RoutineKind::Procedure(section) = routine.kind
            && self.model.is_recursive(self.index)
        {
            body.line(turn(section));
        }
        self.nodes(&self.model.structured[self.index].body, &mut body);
        text.line(&heading(self.model, self.index, routine, Parameters::Named(self.registers.declared())));
        text.line("{");
        text.indent();
        self.declarations(text);
        text.paste(&body.finish());
        // Compilers do not always see that control cannot get here.
        match routine.kind {
            RoutineKind::Process(_) => text.line("return NULL;"),
            RoutineKind::Procedure(_) if routine.code.result.is_some() => text.line("return 0;"),
            RoutineKind::Procedure(_) => {}
        }
        text.dedent();
        text.line("}");
        text.line("");
    }

    /// Whether a register is a global variable because properties observe it.
    fn is_observed(&self, register: RegId) -> bool {
        match self.routine.kind {
            RoutineKind::Process(role) => self.model.observed.registers.contains_key(&(role, register)),
            RoutineKind::Procedure(_) => false,
        }
    }

    /// Declares the registers that the body mentions, and records the private variables among them.
    fn declarations(&self, text: &mut Text<'_>) {
        let mut names = Vec::new();
        let mut unread = Vec::new();
        let privates = self.model.system.privates;
        let mentioned = |id: RegId| self.registers.is_mentioned(id) && !self.is_observed(id);
        let private = self.registers.declared().ids().take(privates);
        private.filter(|id| mentioned(*id)).for_each(|id| self.model.uses.private(id));
        for (id, name) in self.registers.declared().iter_enumerated().skip(privates) {
            if !mentioned(id) {
                if self.routine.is_parameter(privates, id) {
                    unread.push(format!("(void){name};"));
                }
                continue;
            }
            if !self.routine.is_parameter(privates, id) {
                names.push(format!("{name} = 0"));
            }
            if !self.is_read(id) {
                unread.push(format!("(void){name};"));
            }
        }
        if self.chooses {
            names.push("choice = 0".to_owned());
        }
        if self.keeps_result {
            names.push("result = 0".to_owned());
        }
        let mut lines = Vec::new();
        if let RoutineKind::Process(role) = self.routine.kind {
            lines.push(if self.model.observed.are_distinguished(role) {
                format!("int {ME} = (int)(intptr_t)argument;")
            } else {
                "(void)argument;".to_owned()
            });
        }
        // Declarations come first.
        if !names.is_empty() {
            lines.insert(0, format!("value {};", names.join(", ")));
        }
        lines.extend(unread);
        lines.iter().for_each(|line| text.line(line));
        if !lines.is_empty() {
            text.line("");
        }
    }

    /// Whether a register is read anywhere.
    fn is_read(&self, register: RegId) -> bool {
        self.routine.moves.iter().flatten().any(|step| {
            let mut found = false;
            step.instr.read_registers(&mut |other| found |= other == register);
            if let Some((loaded, address)) = &step.load {
                found &= *loaded != register;
                address.registers(&mut |other| found |= other == register);
            }
            found
        })
    }

    fn nodes(&mut self, nodes: &[Node], text: &mut Text<'_>) {
        for (i, node) in nodes.iter().enumerate() {
            limits::checkpoint();
            match node {
                Node::Step(at) => self.step(*at, 0, text),
                Node::Branch(at, alternatives) => self.branch(*at, alternatives, text),
                Node::Label(at) => {
                    self.passed.insert(*at);
                    if let Some(label) = self.labels.get(at) {
                        text.outdented(&format!("{label}:"));
                        // A label at the end of a block needs a statement.
                        if i + 1 == nodes.len() {
                            text.line(";");
                        }
                    }
                }
                Node::Loop(at, body) => {
                    text.line("for (;;) {");
                    text.indent();
                    self.headers.insert(*at);
                    // Every iteration takes a turn, so that every run ends.
                    if !starts_with_turn(self.routine, body) {
                        text.line(turn(self.routine.section[*at]));
                    }
                    self.nodes(body, text);
                    text.dedent();
                    text.line("}");
                }
                Node::Atomic(at, body) => {
                    self.step(*at, 0, text);
                    text.indent();
                    let (end, inside) = body.split_last().expect("a section has an end");
                    self.nodes(inside, text);
                    text.dedent();
                    let Node::Step(end) = end else {
                        unreachable!("a section ends with the step that closes it")
                    };
                    self.step(*end, 0, text);
                }
                Node::Goto(target) => {
                    if self.passed.contains(target) && !self.headers.contains(target) {
                        text.line(turn(self.routine.section[*target]));
                    }
                    let label = self.labels[target].clone();
                    text.line(&format!("goto {label};"));
                }
                Node::Break => text.line("break;"),
                Node::Continue => text.line("continue;"),
                Node::End => text.line(match self.routine.kind {
                    RoutineKind::Process(_) => "return NULL;",
                    RoutineKind::Procedure(_) => "return;",
                }),
                Node::Stuck(at) => text.line(match self.routine.section[*at] {
                    Section::Outside => "STUCK();",
                    Section::Inside => "HALT();",
                }),
            }
        }
    }

    fn scope<'s>(&'s self, load: Option<Load<'s>>) -> Scope<'s> {
        Scope {
            language: Language::C,
            width: self.model.width,
            memory: self.model.memory,
            ranges: self.model.ranges,
            code: self.routine.id,
            registers: &self.registers,
            uses: &self.model.uses,
            load,
        }
    }

    /// Several steps, one of which is taken.
    fn branch(&mut self, at: Location, alternatives: &[Vec<Node>], text: &mut Text<'_>) {
        let moves = &self.routine.moves[at];
        if let [Move { instr: Instr::Assume(yes), .. }, Move { instr: Instr::Assume(no), .. }] = &moves[..]
            && are_opposite(yes, no)
        {
            return self.if_else(at, yes, alternatives, text);
        }
        self.chooses = true;
        let most = moves.len() - 1;
        let choose = format!("choice = choose(0, {most})");
        let line = match self.routine.section[at] {
            Section::Outside => format!("STEP({choose});"),
            Section::Inside => format!("{choose};"),
        };
        text.commented(&line, moves[0].span);
        for (i, alternative) in alternatives.iter().enumerate() {
            limits::checkpoint();
            text.line(&match i {
                0 => "if (choice == 0) {".to_owned(),
                i if i == most => "} else {".to_owned(),
                i => format!("}} else if (choice == {i}) {{"),
            });
            text.indent();
            self.step(at, i, text);
            self.nodes(alternative, text);
            text.dedent();
        }
        text.line("}");
    }

    /// A condition that is true or false.
    fn if_else(&mut self, at: Location, yes: &Expr, alternatives: &[Vec<Node>], text: &mut Text<'_>) {
        let step = self.routine.step(at, 0);
        let section = self.routine.section[at];
        let mut conditions = Vec::new();
        // Inside a section, a cell can be accessed directly. Outside, it is loaded in a separate step, or in
        // place if it is used only once.
        let mut load = None;
        if let Some((register, address)) = &step.load {
            self.scope(None).check_address(address, &mut conditions);
            let mut uses = 0;
            yes.registers(&mut |other| uses += u32::from(other == *register));
            let as_load = |form: LoadForm| Some(Load { register: *register, address, form });
            if section == Section::Inside {
                load = as_load(LoadForm::Cell);
            } else if uses == 1 && conditions.is_empty() && !self.may_fault(yes) {
                load = as_load(LoadForm::Step);
            } else {
                let cell = self.scope(None).place(address);
                let mut statements: Vec<String> =
                    conditions.drain(..).map(|condition| assertion(&condition)).collect();
                statements.push(format!("{} = {cell}", self.registers.name(*register)));
                text.commented(&format!("STEP({});", statements.join("; ")), step.span);
            }
        }
        let scope = self.scope(load);
        scope.check(yes, &mut conditions);
        conditions
            .iter()
            .for_each(|condition| text.commented(&format!("{};", assertion(condition)), step.span));
        let condition = scope.truth(yes);
        let passages: Vec<Vec<String>> =
            (0..2).map(|i| self.passage(Some(at), Some(self.routine.step(at, i).target))).collect();
        let empty = |i: usize| passages[i].is_empty() && is_empty(&alternatives[i]);
        if empty(0) && !empty(1) {
            text.commented(&format!("if ({}) {{", scope.falsehood(yes)), step.span);
            self.alternative(at, &passages[1], &alternatives[1], text);
        } else {
            text.commented(&format!("if ({condition}) {{"), step.span);
            self.alternative(at, &passages[0], &alternatives[0], text);
            if !empty(1) {
                text.line("} else {");
                self.alternative(at, &passages[1], &alternatives[1], text);
            }
        }
        text.line("}");
    }

    /// Whether the evaluation of an expression needs checks. This writes nothing.
    fn may_fault(&self, e: &Expr) -> bool {
        let (registers, uses) = (self.registers.clone(), Uses::default());
        let mut checks = Vec::new();
        Scope { registers: &registers, uses: &uses, ..self.scope(None) }.check(e, &mut checks);
        !checks.is_empty()
    }

    fn alternative(&mut self, at: Location, passage: &[String], nodes: &[Node], text: &mut Text<'_>) {
        text.indent();
        if !passage.is_empty() {
            let mut statements = passage.to_vec();
            self.check_properties(at, true, &mut statements);
            self.emit(at, &[], &statements, Span::NONE, text);
        }
        self.nodes(nodes, text);
        text.dedent();
    }

    /// The effects of a step on what properties observe.
    fn passage(&self, from: Option<Location>, to: Option<Location>) -> Vec<String> {
        match self.routine.kind {
            RoutineKind::Process(role) => {
                let effects = self.model.observed.passage(self.model.system, role, from, to);
                effects.iter().map(effect).collect()
            }
            RoutineKind::Procedure(_) => Vec::new(),
        }
    }

    /// Adds a check of the properties if the step changes what they observe. Inside sections, properties are
    /// not checked.
    fn check_properties(&self, at: Location, changes: bool, statements: &mut Vec<String>) {
        let outside = self.routine.section[at] == Section::Outside;
        if changes && outside && !self.model.system.properties.is_empty() {
            statements.push("check()".to_owned());
        }
    }

    /// Whether a step changes a register or cell that properties observe.
    fn is_seen(&self, instr: &Instr) -> bool {
        let watched = &self.model.watched;
        let cells = |address: &Address| match address {
            Address::Cell(cell) => watched.contains(cell),
            Address::Element { base, len, .. } => watched.range(*base..CellId(base.0 + len)).next().is_some(),
            Address::Pointer(_) => !watched.is_empty(),
        };
        let register = match self.routine.kind {
            RoutineKind::Process(role) => {
                let written = instr.written_register();
                written.is_some_and(|written| self.model.observed.registers.contains_key(&(role, written)))
            }
            RoutineKind::Procedure(_) => false,
        };
        register
            || match instr {
                Instr::Store(address, _) | Instr::Locked { address, .. } => cells(address),
                _ => false,
            }
    }

    /// A step.
    fn step(&mut self, at: Location, index: usize, text: &mut Text<'_>) {
        let step = self.routine.step(at, index).clone();
        let passage = self.passage(Some(at), Some(step.target));
        let moved = !passage.is_empty();
        match &step.instr {
            Instr::AtomicBegin => {
                text.commented("BEGIN();", step.span);
                passage.iter().for_each(|line| text.line(&format!("{line};")));
            }
            Instr::AtomicEnd => {
                passage.iter().for_each(|line| text.line(&format!("{line};")));
                // Changes made inside the section are checked only now.
                if !self.model.system.properties.is_empty() {
                    text.line("check();");
                }
                text.line("END();");
            }
            Instr::Call { code, args, result } => {
                let name = self.model.function(*code, self.routine.section[at]).to_owned();
                self.call(at, &step, &name, args, *result, text);
            }
            Instr::Return(value) => self.return_(at, value.as_ref(), step.span, text),
            Instr::Havoc(register, lo, hi) => {
                let (conditions, mut statements) = self.any(*register, *lo, *hi);
                statements.extend(passage);
                self.check_properties(at, moved || self.is_seen(&step.instr), &mut statements);
                self.emit(at, &conditions, &statements, step.span, text);
            }
            Instr::Spawn(template, args) => {
                let mut conditions = Vec::new();
                args.iter().for_each(|arg| self.scope(None).check(arg, &mut conditions));
                let mut statements = self.spawn(*template, args);
                statements.extend(passage);
                self.check_properties(at, true, &mut statements);
                self.emit(at, &conditions, &statements, step.span, text);
            }
            Instr::Nop | Instr::Fence | Instr::StoreFence if !moved => {
                if step.instr != Instr::Nop {
                    let quoted = text.quote(step.span);
                    text.line(&format!("/* {quoted} */"));
                }
            }
            _ => {
                let load = step.load.as_ref();
                let load = load.map(|(register, address)| Load {
                    register: *register,
                    address,
                    form: LoadForm::Cell,
                });
                let scope = self.scope(load);
                let Plain { conditions, effects } = plain(&scope, &self.routine.code.registers, &step);
                let mut statements: Vec<String> = effects.iter().map(effect).collect();
                statements.extend(passage);
                self.check_properties(at, moved || self.is_seen(&step.instr), &mut statements);
                self.emit(at, &conditions, &statements, step.span, text);
            }
        }
    }

    /// A step with conditions and statements.
    fn emit(
        &self,
        at: Location,
        conditions: &[Condition],
        statements: &[String],
        span: Span,
        text: &mut Text<'_>,
    ) {
        let waits = conditions.iter().any(|condition| matches!(condition, Condition::May(_)));
        let outside = self.routine.section[at] == Section::Outside;
        let guard = || {
            let parts: Vec<String> = conditions
                .iter()
                .map(|condition| match condition {
                    Condition::May(text) if conditions.len() == 1 => text.clone(),
                    Condition::May(text) => format!("({text})"),
                    Condition::Must(text, _) => format!("(assert({text}), 1)"),
                })
                .collect();
            parts.join(" && ")
        };
        let mut all: Vec<String> = Vec::new();
        if !waits {
            all.extend(conditions.iter().map(assertion));
        }
        all.extend(statements.iter().cloned());
        match (waits, outside) {
            (true, true) if all.is_empty() => text.commented(&format!("WHEN({}, (void)0);", guard()), span),
            (true, true) => text.commented(&format!("WHEN({}, {});", guard(), all.join("; ")), span),
            (true, false) => {
                text.commented(&format!("if (!({}))", guard()), span);
                text.line("    HALT();");
                all.iter().for_each(|line| text.line(&format!("{line};")));
            }
            (false, true) if all.is_empty() => text.commented("STEP((void)0);", span),
            (false, true) => text.commented(&format!("STEP({});", all.join("; ")), span),
            (false, false) => all.iter().for_each(|line| text.commented(&format!("{line};"), span)),
        }
    }

    /// Any value for a register.
    fn any(&self, register: RegId, lo: Value, hi: Value) -> (Vec<Condition>, Vec<String>) {
        let ty = self.routine.code.registers[register].ty;
        let (least, most) = ty.domain.bounds().unwrap_or((lo, hi));
        let (from, to) = match ty.outside {
            Outside::Block => (lo.max(least), hi.min(most)),
            Outside::Fault | Outside::Wrap => (lo, hi),
        };
        if from > to {
            return (vec![Condition::May("0".to_owned())], Vec::new());
        }
        let scope = self.scope(None);
        let name = Term::word(self.registers.name(register));
        let (least, most) = (scope.number(from), scope.number(to));
        let range = crate::ranges::Range { lo: from.into(), hi: to.into() };
        let chosen = scope.become_(&Term::word(format!("choose({least}, {most})")), range, ty);
        let mut statements = vec![format!("{} = {}", name.text, chosen.text)];
        if let Some(condition) = scope.fit(&name, range, ty) {
            statements.push(assertion(&condition));
        }
        (Vec::new(), statements)
    }

    /// Starts a process.
    fn spawn(&self, template: TemplateId, args: &[Expr]) -> Vec<String> {
        let system = self.model.system;
        let scope = self.scope(None);
        let roles = &system.templates[template].roles;
        let begin = |role: RoleId| {
            let entry = system.role_code(role).entry;
            let mut statements: Vec<String> =
                self.model.observed.passage(system, role, None, Some(entry)).iter().map(effect).collect();
            statements.insert(0, format!("start({}, 0)", self.model.process(role)));
            statements
        };
        let mut statements = Vec::new();
        if let Some(running) = &self.model.observed.running {
            statements.push(format!("{running}++"));
        }
        if args.is_empty() {
            statements.extend(begin(roles[0]));
            return statements;
        }
        let tight: Vec<String> = args.iter().map(|arg| scope.tight(arg)).collect();
        let mut chain = String::new();
        for &role in roles {
            let values = system.roles[role].args.iter();
            let equal: Vec<String> = tight
                .iter()
                .zip(values)
                .map(|(arg, value)| format!("{arg} == {}", scope.number(*value)))
                .collect();
            chain.push_str(&format!("if ({}) {{ {}; }} else ", equal.join(" && "), begin(role).join("; ")));
        }
        chain.push_str("assert(0)");
        statements.push(chain);
        statements
    }

    fn call(
        &mut self,
        at: Location,
        step: &Move,
        name: &str,
        args: &[Expr],
        result: Option<RegId>,
        text: &mut Text<'_>,
    ) {
        let Instr::Call { code, .. } = &step.instr else { unreachable!("a call") };
        let callee = &self.model.system.codes[*code];
        let scope = self.scope(None);
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        for (arg, param) in args.iter().zip(callee.registers.iter().skip(self.model.system.privates)) {
            scope.check(arg, &mut conditions);
            conditions.extend(scope.fit(&scope.term(arg), scope.range(arg), param.ty));
            values.push(scope.become_(&scope.term(arg), scope.range(arg), param.ty).text);
        }
        let call = format!("{name}({})", values.join(", "));
        let mut leaving = self.passage(Some(at), None);
        self.check_properties(at, !leaving.is_empty(), &mut leaving);
        self.local(at, &conditions, &leaving, step.span, text);
        let entering = self.passage(None, Some(step.target));
        let Some(register) = result else {
            text.commented(&format!("{call};"), step.span);
            let mut entering = entering;
            self.check_properties(at, !entering.is_empty(), &mut entering);
            return self.local(at, &[], &entering, Span::NONE, text);
        };
        let ty: Type = self.routine.code.registers[register].ty;
        let range = self.model.ranges.results[*code];
        let register_name = self.registers.name(register);
        let seen = self.is_seen(&step.instr);
        if !seen && entering.is_empty() {
            let value = self.scope(None).become_(&Term::word(call), range, ty);
            text.commented(&format!("{register_name} = {};", value.text), step.span);
            let value = Term::word(register_name);
            let conditions: Vec<Condition> = self.scope(None).fit(&value, range, ty).into_iter().collect();
            return self.local(at, &conditions, &[], Span::NONE, text);
        }
        self.keeps_result = true;
        text.commented(&format!("result = {call};"), step.span);
        let conditions: Vec<Condition> =
            self.scope(None).fit(&Term::word("result"), range, ty).into_iter().collect();
        let value = self.scope(None).become_(&Term::word("result"), range, ty);
        let mut statements = vec![format!("{register_name} = {}", value.text)];
        statements.extend(entering);
        self.check_properties(at, true, &mut statements);
        self.local(at, &conditions, &statements, Span::NONE, text);
    }

    /// Conditions and statements; a step only if there are statements.
    fn local(
        &self,
        at: Location,
        conditions: &[Condition],
        statements: &[String],
        span: Span,
        text: &mut Text<'_>,
    ) {
        if !statements.is_empty() {
            return self.emit(at, conditions, statements, span, text);
        }
        let stuck = match self.routine.section[at] {
            Section::Outside => "STUCK()",
            Section::Inside => "HALT()",
        };
        for condition in conditions {
            match condition {
                Condition::Must(..) => text.commented(&format!("{};", assertion(condition)), span),
                // Registers do not change while a process waits.
                Condition::May(condition) => {
                    text.commented(&format!("if (!({condition}))"), span);
                    text.line(&format!("    {stuck};"));
                }
            }
        }
    }

    fn return_(&self, at: Location, value: Option<&Expr>, span: Span, text: &mut Text<'_>) {
        let scope = self.scope(None);
        let mut conditions = Vec::new();
        if let Some(value) = value {
            scope.check(value, &mut conditions);
        }
        let line = match self.routine.code.result {
            Some(ty) => {
                let value = value.cloned().unwrap_or(Expr::Const(0));
                let written = scope.term(&value);
                conditions.extend(scope.fit(&written, scope.range(&value), ty));
                format!("return {};", scope.become_(&written, scope.range(&value), ty).text)
            }
            None => "return;".to_owned(),
        };
        self.local(at, &conditions, &[], span, text);
        text.commented(&line, span);
    }
}

/// A condition as an assertion.
fn assertion(condition: &Condition) -> String {
    match condition {
        Condition::Must(text, _) | Condition::May(text) => format!("assert({text})"),
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Set(place, value) => format!("{place} = {value}"),
        Effect::Increment(place) => format!("{place}++"),
        Effect::Decrement(place) => format!("{place}--"),
        Effect::If(condition, yes, no) => {
            let list = |effects: &[Effect]| effects.iter().map(self::effect).collect::<Vec<_>>().join("; ");
            format!("if ({condition}) {{ {}; }} else {{ {}; }}", list(yes), list(no))
        }
    }
}

/// Whether there is nothing to write.
fn is_empty(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| matches!(node, Node::Label(_)))
}

/// A step that does nothing.
fn turn(section: Section) -> &'static str {
    match section {
        Section::Outside => "STEP((void)0);",
        Section::Inside => "TICK();",
    }
}

/// Whether the nodes begin with a step that takes a turn, on every path.
fn starts_with_turn(routine: &Routine<'_>, nodes: &[Node]) -> bool {
    let takes_turn = |step: &Move| {
        step.load.is_some()
            || matches!(
                step.instr,
                Instr::Load(..)
                    | Instr::Store(..)
                    | Instr::Locked { .. }
                    | Instr::Havoc(..)
                    | Instr::Assign(..)
                    | Instr::AtomicBegin
            )
    };
    let first = nodes.iter().find(|node| !matches!(node, Node::Label(_)));
    match first {
        Some(Node::Step(at) | Node::Branch(at, _)) => {
            routine.section[*at] == Section::Outside && routine.moves[*at].iter().all(takes_turn)
        }
        Some(Node::Atomic(..)) => true,
        _ => false,
    }
}

/// A name for a location: its label, or its source line.
fn label(model: &Model<'_>, routine: &Routine<'_>, location: Location) -> String {
    let found = routine.code.labels.iter().find(|(_, at)| *at == location);
    match (found, routine.moves[location].first().and_then(|step| model.line(step.span))) {
        (Some((label, _)), _) => label.clone(),
        (None, Some(line)) => format!("line_{line}"),
        (None, None) => format!("place_{}", location.index()),
    }
}
