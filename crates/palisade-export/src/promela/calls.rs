//! Procedures in a process: where a call notes where to go on, and what is saved while a procedure is called again.

use super::process::{Part, Process, find, is_used};
use super::statement::Statement;
use crate::expression::Condition;
use crate::names::Names;
use crate::routine::Section;
use crate::step::OLD;
use crate::text::Text;
use palisade_base::{Span, limits};
use palisade_program::running::{CodeId, Expr, Instr, Location, RegId};

/// The variables of a procedure in a process.
#[derive(Default)]
pub(super) struct Call {
    /// The label of its start.
    pub start: String,
    /// Which call it belongs to, if there are several.
    pub site: Option<String>,
    /// Where each call goes on.
    pub back: Vec<String>,
    /// What it returns, if anybody wants to know.
    pub result: Option<String>,
    /// Registers that are saved while the procedure is called again, each with its stack; and how many calls are saved.
    pub saved: Vec<(RegId, String)>,
    pub saved_site: Option<String>,
    pub depth: Option<String>,
}

impl Process<'_> {
    /// The variables for calls of a procedure.
    pub fn call(&self, number: usize, sites: u32, names: &mut Names) -> Call {
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
            limits::go_on();
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
                limits::go_on();
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

    /// Calls and returns.
    pub fn special(&mut self, number: usize, at: Location, index: usize, text: &mut Text<'_>) {
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
