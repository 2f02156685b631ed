//! Litmus tests for X86 and X86_64, as herd7 reads them.
//!
//! *How it works*:
//! 1. [`heading`] parses the heading, [`lexer`] splits the rest into tokens.
//! 2. [`parser`], with [`init`], [`code`] and [`condition`], builds the syntax tree.
//! 3. [`variables`], [`ir`] and [`bank`] resolve names, notation and widths.
//! 4. [`walk`], [`arithmetic`], [`exchange`], [`memory`], [`flags`], [`values`], [`state`] and [`knowledge`]
//!    emit statements. [`question`] emits the property.
//!
//! *Semantics*. Instructions behave as in Intel's manual.
//! - A plain access is one load or store.
//! - An instruction that changes memory without a lock is a load followed by a store.
//! - Locked instructions, and `xchg` with memory, are one atomic step after the buffer has drained.
//! - Accesses to part of a variable are rejected (except narrower loads), because these machines buffer whole
//!   variables.
//!
//! *Differences from herd7*: carry, sign and overflow are computed (herd only approximates the flags).
//! Invalid tests are rejected, and all errors are reported at once. `docs/litmus.md` is the reference.

mod arithmetic;
mod bank;
mod code;
mod condition;
mod exchange;
mod flags;
mod heading;
mod init;
mod ir;
mod knowledge;
mod lexer;
mod liveness;
mod memory;
mod mnemonics;
mod outcomes;
mod parser;
mod question;
mod registers;
mod state;
mod test;
mod values;
mod variables;
mod walk;

use crate::Parsed;
use crate::generate::{self, Names};
use crate::report::Report;
pub use outcomes::{Asks, LitmusQuestion, LitmusTest, Shown, litmus_test};

use bank::Bank;
use ir::Instr;
use knowledge::{Knowledge, held};
use palisade_base::{Diagnostic, Origin, Source, Span, limits};
use palisade_program::written::{
    Block, Count, Expr, ExprKind, Init, InitValue, Name, Place, PlaceKind, Program, Shared, Start as Starts,
    Template, Type,
};
use registers::Family;
use state::{RegisterNames, Setting, State};
use std::sync::Arc;
use test::Test;
use variables::{Start, VarId, Variables};

/// Parses a program.
pub(crate) fn parse(source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    let mut report = Report::default();
    let program = translate(source.text(), &mut report);
    match program {
        Some(program) if !report.has_errors() => {
            Ok(Parsed { program, warnings: report.into_diagnostics(), bound: Vec::new() })
        }
        _ => Err(report.into_diagnostics()),
    }
}

fn translate(text: &str, report: &mut Report) -> Option<Program> {
    translate_for(text, Purpose::Check, report).map(|translated| translated.program)
}

/// The test with what is shown of its outcomes.
fn translate_for_outcomes(text: &str, report: &mut Report) -> Option<LitmusTest> {
    translate_for(text, Purpose::Outcomes, report)
}

/// What a translation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// The question becomes a property.
    Check,
    /// The question is separate. Registers in `locations [...]` are kept.
    Outcomes,
}

fn translate_for(text: &str, purpose: Purpose, report: &mut Report) -> Option<LitmusTest> {
    let heading = heading::heading(text, report)?;
    let tokens = lexer::lex(text, heading.init, report);
    let mut test = parser::parse(text, heading.arch, &tokens, report);
    drop(tokens);
    let half = report.has_errors();
    if test.threads.is_empty() {
        return None;
    }
    let mut names = Names::default();
    let templates: Vec<Arc<str>> = test.threads.iter().map(|thread| names.fresh(thread.name.text)).collect();
    let mut variables = Variables::collect(&test, &mut names, report);
    let code = ir::resolve(text, &test, &mut variables, report);
    let upper = has_upper_case_registers(text, &test);
    for thread in &mut test.threads {
        // These are large and no longer needed.
        (thread.code, thread.operands) = (Vec::new(), Vec::new());
    }
    if !half {
        question::check(&test, &variables, report);
    }
    if test.question.is_none() && !report.has_errors() {
        let end = text.trim_end().len();
        let message = "the test has no final condition, so there is nothing to check";
        let diagnostic = Diagnostic::warning("no-condition", message).at(Span::new(end..end), "");
        report.push(diagnostic.help("add `exists (…)`, `~exists (…)` or `forall (…)` at the end"));
    }
    if report.has_errors() {
        return None;
    }
    let locations = if purpose == Purpose::Outcomes { test.locations.as_slice() } else { &[] };
    let (banks, never_set) = bank::banks(&test, &code, &variables, locations);
    for span in never_set {
        let message = "this register is never set and stays 0";
        report.push(Diagnostic::warning("never-set", message).at(span, ""));
    }
    // Conditions can be large. A program for `check` takes them apart as it is built.
    let question = match purpose {
        Purpose::Check => question::Question { filter: test.filter.take(), question: test.question.take() },
        Purpose::Outcomes => {
            question::Question { filter: test.filter.take(), question: test.question.clone() }
        }
    };
    let translation =
        Translation { test: &test, variables: &variables, code: &code, templates, names: &names, upper };
    Some(translation.program(&banks, Asked { text, name: heading.name, purpose, question }, report))
}

/// What a translation needs besides the code.
struct Asked<'a> {
    text: &'a str,
    name: &'a str,
    purpose: Purpose,
    question: question::Question<'a>,
}

struct Translation<'t, 'a> {
    test: &'t Test<'a>,
    variables: &'t Variables<'a>,
    code: &'t [Vec<Option<Instr>>],
    templates: Vec<Arc<str>>,
    names: &'t Names<'t>,
    /// Whether registers are written in capitals.
    upper: bool,
}

/// If there are loops, bounds that still grow after this many walks are widened to their limits.
const EXACT_WALKS: usize = 3;

/// Without loops each instruction runs at most once, so a value passes through at most as many instructions
/// as there are. After that many walks all values are known. Larger tests are treated as if they had loops.
const MAX_WALKS: usize = 64;

impl Translation<'_, '_> {
    fn program(self, banks: &[Bank], asked: Asked<'_>, report: &mut Report) -> LitmusTest {
        let threads: Vec<Thread<'_>> = (self.test.threads.iter().zip(banks).zip(self.code))
            .map(|((thread, bank), code)| Thread::new(thread, bank, code, self.upper, self.names.inner()))
            .collect();
        let mut knowledge = Knowledge::new(self.test, banks, self.variables);
        let length: usize = self.code.iter().map(Vec::len).sum();
        let has_loops = self.code.iter().any(|code| {
            let back = |(at, instr): (usize, &Option<Instr>)| {
                instr.as_ref().and_then(|instr| instr.target).is_some_and(|target| target <= at)
            };
            code.iter().enumerate().any(back)
        });
        let exact_walks = if has_loops || length > MAX_WALKS { EXACT_WALKS } else { usize::MAX };
        for walks in 0.. {
            let before = (walks >= exact_walks).then(|| knowledge.snapshot());
            knowledge.grown = false;
            for (position, thread) in threads.iter().enumerate() {
                limits::checkpoint();
                self.walk(&mut knowledge, banks, position, thread, report, false);
            }
            if !knowledge.grown || exact_walks == usize::MAX && walks >= length {
                break;
            }
            if let Some(before) = before {
                knowledge.widen(&before, banks);
            }
        }
        let mut program = Program { shared: self.shared(), ..Program::default() };
        for (position, thread) in threads.iter().enumerate() {
            let body = self.walk(&mut knowledge, banks, position, thread, report, true);
            let written = self.test.threads[position].name;
            program.templates.push(Template {
                name: Name::new(self.templates[position].clone(), written.span),
                params: Vec::new(),
                count: Count::Fixed(1),
                start: Starts::Initially,
                body,
                origin: Origin(written.span),
            });
        }
        let registers: Vec<_> = threads.into_iter().map(|thread| thread.registers).collect();
        let by_number = self
            .test
            .threads
            .iter()
            .enumerate()
            .map(|(position, thread)| (thread.number, position))
            .collect();
        let context = question::ConditionContext {
            variables: self.variables,
            banks,
            knowledge: &knowledge,
            templates: &self.templates,
            registers: &registers,
            by_number,
        };
        let Asked { text, name, purpose, question } = asked;
        let (mut shown, mut filter, mut judged) = (Vec::new(), None, None);
        match purpose {
            Purpose::Check => program.properties.extend(context.property(question, report)),
            Purpose::Outcomes => {
                shown = context.shown(text, self.test);
                (filter, judged) = context.judged(question, report);
            }
        }
        LitmusTest { program, name: name.to_owned(), shown, filter, question: judged }
    }

    /// Walks over the code of a thread. Returns its body if it is being built.
    fn walk(
        &self,
        knowledge: &mut Knowledge,
        banks: &[Bank],
        position: usize,
        thread: &Thread<'_>,
        report: &mut Report,
        build: bool,
    ) -> Block {
        let written = &self.test.threads[position];
        let instrs = &self.code[position];
        let code = walk::Code { instrs, live: &thread.live, labels: &thread.labels };
        let bank = &banks[position];
        let setting = Setting {
            variables: self.variables,
            thread: position,
            bank,
            registers: &thread.registers,
            names: &thread.names,
        };
        let mut state = State::new(setting, knowledge, report, build);
        let mut skip = false;
        for at in 0..instrs.len() {
            limits::checkpoint();
            if thread.labels[at].is_some() {
                state.label(thread.all_labels(at, build));
            }
            if !std::mem::take(&mut skip) {
                skip = state.instruction(code, at);
            }
        }
        if thread.labels[instrs.len()].is_some() {
            state.label(thread.all_labels(instrs.len(), build));
        }
        state.finish(|family| self.start_of_register(written.number, family, bank))
    }

    fn start_of_register(&self, thread: u32, family: Family, bank: &Bank) -> Expr {
        match self.variables.registers.get(&(thread, family)) {
            None => Expr::int(0),
            Some((register, start)) => {
                self.start(*start, |number| held(number, *register, bank.width(family)))
            }
        }
    }

    fn start(&self, start: Start, number: impl Fn(i128) -> i64) -> Expr {
        match start {
            Start::Number(value, span) => generate::int(number(value), span),
            Start::Address(var, element) => {
                Expr::new(ExprKind::AddressOf(self.element(var, element)), Span::NONE)
            }
        }
    }

    fn element(&self, var: VarId, element: u32) -> Place {
        let variable = &self.variables.all[var];
        match variable.len {
            None => generate::named(&variable.name, Span::NONE),
            Some(_) => {
                let name = Name::generated(variable.name.clone());
                Place::new(PlaceKind::Element(name, Box::new(Expr::int(element.into()))), Span::NONE)
            }
        }
    }

    fn shared(&self) -> Vec<Shared> {
        (self.variables.all.iter_enumerated())
            .map(|(id, variable)| {
                let width = self.variables.width(id);
                let values: Vec<InitValue> = (variable.init.iter())
                    .map(|start| {
                        InitValue::Const(self.start(*start, |number| width.signed(number).unwrap_or(0)))
                    })
                    .collect();
                let init = match (variable.len, values.len()) {
                    (_, 0) => Init::Every(InitValue::Const(Expr::int(0))),
                    (None, _) => Init::Every(values.into_iter().next().expect("at least one")),
                    (Some(_), _) => Init::Each(values),
                };
                Shared {
                    name: Name::new(variable.name.clone(), variable.span),
                    len: variable.len,
                    ty: Type::INT,
                    init,
                    at: None,
                    origin: Origin(variable.span),
                }
            })
            .collect()
    }
}

/// What every walk over a thread needs.
struct Thread<'n> {
    registers: RegisterNames,
    live: Vec<liveness::Live>,
    /// The name of the first label at each position.
    labels: Vec<Option<Arc<str>>>,
    /// All labels in order, each with its position.
    all: Vec<(usize, Name)>,
    names: Names<'n>,
}

impl<'n> Thread<'n> {
    fn new(
        thread: &test::Thread<'_>,
        bank: &Bank,
        code: &[Option<Instr>],
        upper: bool,
        mut names: Names<'n>,
    ) -> Thread<'n> {
        let registers = state::register_names(bank, upper, &mut names);
        let mut label_names = Names::default();
        let mut labels = vec![None; code.len() + 1];
        let mut all = Vec::with_capacity(thread.labels.len());
        for (at, word) in &thread.labels {
            let name = label_names.fresh(word.text);
            labels[*at].get_or_insert_with(|| name.clone());
            all.push((*at, Name::new(name, word.span)));
        }
        Thread { registers, live: liveness::live_out(code, bank), labels, all, names }
    }

    /// All labels at a position, if statements are being emitted.
    fn all_labels(&self, at: usize, build: bool) -> Vec<Name> {
        if !build {
            return Vec::new();
        }
        let first = self.all.partition_point(|(position, _)| *position < at);
        self.all[first..]
            .iter()
            .take_while(|(position, _)| *position == at)
            .map(|(_, name)| name.clone())
            .collect()
    }
}

/// Whether the test writes its registers in capitals, judged by the first register in the code.
fn has_upper_case_registers(text: &str, test: &Test<'_>) -> bool {
    let mut operands = test.threads.iter().flat_map(|thread| &thread.operands);
    let first = operands.find(|operand| matches!(operand.kind, test::OperandKind::Register(_)));
    first.is_some_and(|operand| text[operand.span.range()].contains(|c: char| c.is_ascii_uppercase()))
}
