//! Procedures in a process: how a call records where to return, and what is saved during a recursive call.

use super::process::{Part, Process, find, is_used};
use super::statement::{Code, Statement};
use crate::expression::{Condition, Term};
use crate::names::{Names, of_register};
use crate::routine::Section;
use crate::text::Text;
use palisade_base::{Span, limits};
use palisade_program::running::{CodeId, Expr, Instr, Location, RegId};

/// The variables of a procedure in a process.
#[derive(Default)]
pub(super) struct Call {
    /// The label of its start.
    pub start: String,
    /// The call it was entered by, if there are several.
    pub site: Option<String>,
    /// The labels to return to, by call.
    pub back: Vec<String>,
    /// Its result, if it has one.
    pub result: Option<String>,
    /// Registers that are saved during a recursive call, each with its stack; the stack of call sites; and
    /// the number of saved calls.
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
                    let register = of_register(declared);
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

    /// Whether one part may call another, directly or indirectly.
    fn calls(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.parts.len()];
        let mut open = vec![from];
        while let Some(part) = open.pop() {
            limits::checkpoint();
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
                limits::checkpoint();
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

    /// Writes a call or a return.
    pub fn call_or_return(&mut self, number: usize, at: Location, index: usize, text: &mut Text<'_>) {
        let step = self.parts[number].routine.step(at, index).clone();
        match &step.instr {
            Instr::Call { code, args, result } => {
                let callee = self.callee(*code, self.parts[number].routine.section[at]);
                let site = self.sites[&(number, at, index)];
                self.enter(number, callee, site, at, args, step.span, text);
                self.after_return(number, callee, site, *result, step.target, text);
            }
            Instr::Return(value) => self.return_(number, value.as_ref(), step.span, text),
            other => unreachable!("{other:?} is one statement"),
        }
    }

    /// The step that enters a procedure.
    #[expect(clippy::too_many_arguments, reason = "the caller, the callee, the position and the arguments")]
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
            statement.conditions.extend(scope.fit(&scope.term(arg), scope.range(arg), param.ty));
        }
        let again = self.calls(callee, number) || callee == number;
        if again {
            let depth = call.depth.as_ref().expect("a recursive procedure has a stack");
            let room = format!("{depth} < {}", self.model.uses.stack());
            statement.conditions.push(Condition::Must(room, "stack too small"));
            for (register, stack) in &call.saved {
                let register = registers.name(*register);
                statement.effects.push(Code::one(format!("{stack}[{depth}] = {register}")));
            }
            if let (Some(site), Some(stack)) = (&call.site, &call.saved_site) {
                statement.effects.push(Code::one(format!("{stack}[{depth}] = {site}")));
            }
            statement.effects.push(Code::one(format!("{depth}++")));
        }
        let params: Vec<(String, String)> = (registers.declared().ids().skip(privates))
            .zip(args)
            .map(|(register, arg)| {
                let ty = routine.code.registers[register].ty;
                let value = scope.become_(&scope.term(arg), scope.range(arg), ty);
                (registers.name(register), value.text)
            })
            .collect();
        if callee == number && params.len() > 1 {
            // Registers are both read and written, so all are read first.
            for (i, (_, value)) in params.iter().enumerate() {
                let old = self.model.uses.old_argument(i);
                statement.effects.push(Code::one(format!("{old} = {value}")));
            }
            for (i, (register, _)) in params.iter().enumerate() {
                let old = self.model.uses.old_argument(i);
                statement.effects.push(Code::one(format!("{register} = {old}")));
            }
        } else {
            let set = |(register, value): &(String, String)| Code::one(format!("{register} = {value}"));
            statement.effects.extend(params.iter().map(set));
        }
        if again {
            let others = registers.declared().ids().skip(privates + args.len());
            let used = others.filter(|id| is_used(routine, privates, *id));
            let clear = |id: RegId| Code::one(format!("{} = 0", registers.name(id)));
            statement.effects.extend(used.map(clear));
        }
        if let Some(variable) = &call.site {
            statement.effects.push(Code::one(format!("{variable} = {site}")));
        }
        statement.write(span, text);
        text.line(&format!("goto {};", call.start));
    }

    /// The step after the return.
    fn after_return(
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
        // Registers that are no longer needed are set to 0, so that they do not distinguish states.
        let privates = self.model.system.privates;
        let own = registers.declared().ids().skip(privates);
        for id in own.filter(|id| is_used(routine, privates, *id)) {
            let saved = call.saved.iter().find(|(saved, _)| again && *saved == id);
            let value = match (saved, &call.depth) {
                (Some((_, stack)), Some(depth)) => format!("{stack}[{depth} - 1]"),
                _ => "0".to_owned(),
            };
            statement.effects.push(Code::one(format!("{} = {value}", registers.name(id))));
        }
        if let Some(variable) = &call.site {
            let value = match (&call.saved_site, &call.depth) {
                (Some(stack), Some(depth)) if again => format!("{stack}[{depth} - 1]"),
                _ => "0".to_owned(),
            };
            statement.effects.push(Code::one(format!("{variable} = {value}")));
        }
        if let (true, Some(depth)) = (again, &call.depth) {
            statement.effects.push(Code::one(format!("{depth}--")));
            for stack in call.saved.iter().map(|(_, stack)| stack).chain(&call.saved_site) {
                statement.effects.push(Code::one(format!("{stack}[{depth}] = 0")));
            }
        }
        if let Some(variable) = &call.result {
            if let Some(register) = result {
                let part = &self.parts[number];
                let range = self.model.ranges.results[routine.id];
                let ty = part.routine.code.registers[register].ty;
                let value = Term::word(variable.as_str());
                statement.conditions.extend(self.scope(number, None).fit(&value, range, ty));
                let value = self.scope(number, None).become_(&value, range, ty).text;
                let register = part.registers.name(register);
                statement.effects.push(Code::one(format!("{register} = {value}")));
            }
            statement.effects.push(Code::one(format!("{variable} = 0")));
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
            let written = scope.term(&value);
            statement.conditions.extend(scope.fit(&written, scope.range(&value), ty));
            let written = scope.become_(&written, scope.range(&value), ty);
            statement.effects.push(Code::one(format!("{variable} = {}", written.text)));
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
