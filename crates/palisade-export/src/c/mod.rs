//! C11 with POSIX threads.
//!
//! *Form of the program.* Each process role is a thread function and each procedure a function. Each step of
//! the program is a `STEP`: an atomic section for verifiers (`__CPROVER_atomic_begin` and
//! `__VERIFIER_atomic_begin`), and a turn of a built-in scheduler when the program is compiled and run. Local
//! steps need no `STEP`. After every step that changes something a property observes, `check()` asserts the
//! properties. Nondeterministic values come from `__VERIFIER_nondet_int()`.
//!
//! *Running.* `runtime.c` is part of every exported file. Processes take turns by a seeded random number
//! generator, so a seed identifies a run. A run ends after a number of steps. A run that fails an assertion
//! is a run of the program under SC. If no run fails, that proves nothing.
//!
//! *Waiting.* A process that waits tries again. A process that can never continue leaves the run (for
//! verifiers: an assumption fails). Inside an atomic section no other process can continue either, so the
//! whole run is over.

mod body;
mod words;

use crate::Export;
use crate::expression::{Language, Width, number};
use crate::memory::{Memory, Variable};
use crate::names::{C_WORDS, Names};
use crate::observed::{Observed, number_among_copies};
use crate::ranges::Ranges;
use crate::routine::{Routine, RoutineKind, Section, routines};
use crate::structure::{Continues, Structured, structure};
use crate::text::Text;
use crate::uses::{OLD_VALUE, Uses};
use crate::watch::Watch;
use crate::wrap;
use body::Body;
use palisade_base::{Diagnostic, IdVec, Source, Span, limits};
use palisade_program::lower;
use palisade_program::running::{
    CellId, CodeId, Condition, Instr, Liveness, PropertyKind, RegId, RoleId, System,
};
use std::collections::BTreeSet;

/// The number of processes that a run may spawn in addition to the initial ones.
const SPAWNED: usize = 100;

/// Writes a program in C.
pub(crate) fn write(export: &Export<'_>) -> Result<String, Vec<Diagnostic>> {
    let system = lower(export.program, export.instantiation());
    let problems = wrap::refuse(&system, Width::Long);
    if !problems.is_empty() {
        return Err(problems);
    }
    let watch = Watch::new(&system);
    let liveness = Liveness::new(&system);
    let ranges = Ranges::new(&system);
    let mut names = Names::reserving(&[C_WORDS, words::RUNTIME, words::LIBRARY]);
    let memory = Memory::new(export.program, &system, &mut names);
    let roles: IdVec<RoleId, String> =
        system.roles.iter().map(|role| names.fresh(&crate::role_name(&system, role))).collect();
    let observed = Observed::new(&system, &watch, &roles, &mut names);
    let privates = export.program.privates.iter().map(|private| names.fresh(private.name.as_str())).collect();
    let routines = routines(&system, &watch, &liveness);
    let functions: Vec<String> = routines
        .iter()
        .map(|routine| match routine.kind {
            RoutineKind::Process(role) => roles[role].clone(),
            RoutineKind::Procedure(Section::Outside) => names.fresh(&routine.code.name),
            RoutineKind::Procedure(Section::Inside) => names.fresh(&format!("{}_inside", routine.code.name)),
        })
        .collect();
    let structured: Vec<Structured> =
        routines.iter().map(|routine| structure(routine, Continues::Yes)).collect();
    let model = Model {
        width: width(&system, &memory, &observed, &ranges),
        watched: watched(&system),
        system: &system,
        ranges: &ranges,
        memory: &memory,
        observed: &observed,
        routines: &routines,
        structured: &structured,
        functions: &functions,
        names,
        uses: Uses::default(),
        privates,
        source: export.source,
    };
    let mut text = Text::new(export.source);
    model.prototypes(&mut text);
    for (index, routine) in routines.iter().enumerate().rev() {
        limits::checkpoint();
        Body::new(&model, index).write(routine, &mut text);
    }
    model.main(&mut text);
    let body = text.finish();
    let mut text = Text::new(export.source);
    model.heading(export, &mut text);
    model.declarations(&mut text);
    Ok(text.finish() + &body)
}

/// The width that numbers need.
fn width(system: &System, memory: &Memory, observed: &Observed, ranges: &Ranges) -> Width {
    let step = |id: CodeId, instr: &Instr| {
        let mut fits = true;
        crate::routine::expressions(instr, &mut |e| fits &= ranges.stays_int(id, e));
        fits && ranges.locked(id, instr).is_none_or(|range| range.fits_int())
    };
    let narrow = ranges.cells.iter().all(|range| range.fits_int())
        && ranges.registers.iter().flat_map(|registers| registers.iter()).all(|range| range.fits_int())
        && ranges.results.iter().all(|range| range.fits_int())
        && crate::refuse::numbers(system).is_empty()
        && wrap::refuse(system, Width::Int).is_empty()
        && system
            .codes
            .iter_enumerated()
            .all(|(id, code)| code.edges().iter().all(|edge| step(id, &edge.instr)))
        && system
            .properties
            .iter()
            .all(|property| observed.property(system, memory, ranges, property).stays_int());
    if narrow { Width::Int } else { Width::Long }
}

/// The cells that properties observe.
fn watched(system: &System) -> BTreeSet<CellId> {
    fn cells(condition: &Condition, found: &mut BTreeSet<CellId>) {
        match condition {
            Condition::Cell(cell) => {
                found.insert(*cell);
            }
            Condition::Unary(_, a) => cells(a, found),
            Condition::Binary(_, a, b) => {
                cells(a, found);
                cells(b, found);
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    let forbidden = system.properties.iter().filter(|property| property.kind == PropertyKind::Forbid);
    forbidden.for_each(|property| cells(&property.bad, &mut found));
    found
}

/// Everything that is known about a program.
pub(crate) struct Model<'a> {
    pub system: &'a System,
    pub ranges: &'a Ranges,
    pub memory: &'a Memory,
    pub observed: &'a Observed,
    pub routines: &'a [Routine<'a>],
    pub structured: &'a [Structured],
    /// The names of the routines.
    pub functions: &'a [String],
    /// The global names.
    pub names: Names,
    /// What the text uses.
    pub uses: Uses,
    /// The names of the private variables.
    pub privates: IdVec<RegId, String>,
    pub width: Width,
    /// The cells that must be checked after every step that changes them.
    pub watched: BTreeSet<CellId>,
    source: &'a Source,
}

impl Model<'_> {
    /// The source line of a span.
    pub fn line(&self, span: Span) -> Option<u32> {
        self.source.position(span).map(|position| position.line)
    }

    /// The function of a procedure.
    pub fn function(&self, code: CodeId, section: Section) -> &str {
        let kind = RoutineKind::Procedure(section);
        let found = self.routines.iter().position(|routine| routine.id == code && routine.kind == kind);
        &self.functions[found.expect("every procedure that is called is a routine")]
    }

    /// Whether a routine may call itself, directly or indirectly.
    pub fn is_recursive(&self, index: usize) -> bool {
        let mut seen = vec![false; self.routines.len()];
        let mut open = vec![index];
        while let Some(caller) = open.pop() {
            limits::checkpoint();
            let routine = &self.routines[caller];
            for (location, moves) in routine.moves.iter_enumerated() {
                for step in moves {
                    limits::checkpoint();
                    let Instr::Call { code, .. } = step.instr else { continue };
                    let kind = RoutineKind::Procedure(routine.section[location]);
                    let callee =
                        self.routines.iter().position(|other| other.id == code && other.kind == kind);
                    let callee = callee.expect("every procedure that is called is a routine");
                    if callee == index {
                        return true;
                    }
                    if !std::mem::replace(&mut seen[callee], true) {
                        open.push(callee);
                    }
                }
            }
        }
        false
    }

    /// The function of a process.
    pub fn process(&self, role: RoleId) -> &str {
        let kind = RoutineKind::Process(role);
        let found = self.routines.iter().position(|routine| routine.kind == kind);
        &self.functions[found.expect("every process that is started is a routine")]
    }

    fn heading(&self, export: &Export<'_>, text: &mut Text<'_>) {
        text.line("/*");
        export.heading.lines().for_each(|line| text.line(&format!(" * {}", line.replace("*/", "* /"))));
        text.line(" *");
        text.line(
            " * A failed assertion is an error in the program. To run it with a seed, and to verify it:",
        );
        text.line(" *     gcc -pthread FILE -o program && ./program 1");
        text.line(" *     cbmc --unwind 3 FILE");
        text.line(" */");
        let spawns = self
            .routines
            .iter()
            .any(|routine| routine.moves.iter().flatten().any(|step| matches!(step.instr, Instr::Spawn(..))));
        let instances = self.system.instances.len();
        let processes = if spawns { instances + SPAWNED } else { instances.max(1) };
        let (value, nondet) = match self.width {
            Width::Int => ("int", "int"),
            Width::Long => ("long long", "longlong"),
        };
        text.line(&format!("#define PROCESSES {processes}"));
        let runtime = include_str!("runtime.c")
            .replace("VALUE", value)
            .replace("nondet_NONDET", &format!("nondet_{nondet}"))
            .replace("INSTANCES", &instances.to_string());
        runtime.lines().for_each(|line| text.line(line));
        text.line("");
    }

    /// Declares what the text written so far uses.
    fn declarations(&self, text: &mut Text<'_>) {
        let (max, min) = match self.width {
            Width::Int => ("2147483647", "(-2147483647 - 1)"),
            Width::Long => ("9223372036854775807LL", "(-9223372036854775807LL - 1)"),
        };
        let used = words::GUARDS.iter().filter(|(guard, _)| self.uses.has_guard(*guard));
        let functions: Vec<&str> = used.map(|(_, text)| *text).collect();
        if !functions.is_empty() {
            text.line("/* Arithmetic that would wrap around is an error. */");
            for function in functions {
                let function = function.replace("MAX", max).replace("MIN", min);
                function.lines().for_each(|line| text.line(line));
            }
            text.line("");
        }
        if self.uses.has_wrap() {
            words::WRAP.lines().for_each(|line| text.line(line));
            text.line("");
        }
        match &self.memory.array {
            None => {
                // Compilers warn about unused variables.
                let used = self.memory.variables.iter().filter(|variable| variable.is_mentioned());
                used.for_each(|variable| self.variable(variable, text));
            }
            Some(array) => self.array(array, text),
        }
        for (_, name) in self.privates.iter_enumerated().filter(|(id, _)| self.uses.has_private(*id)) {
            text.line(&format!("static _Thread_local value {name};"));
        }
        self.observed_variables(text);
        if self.uses.has_old_value() {
            text.line(&format!("static value {OLD_VALUE};"));
        }
        text.line("");
    }

    fn variable(&self, variable: &Variable, text: &mut Text<'_>) {
        let name = &variable.name;
        let inits: Vec<i64> =
            variable.cells().map(|cell| self.system.cells[cell].init.unwrap_or(0)).collect();
        let number = |value: &i64| number(Language::C, *value);
        let init = match (&inits[..], variable.len) {
            (values, _) if values.iter().all(|value| *value == 0) => String::new(),
            (values, None) => format!(" = {}", number(&values[0])),
            (values, Some(_)) => {
                format!(" = {{ {} }}", values.iter().map(number).collect::<Vec<_>>().join(", "))
            }
        };
        let len = variable.len.map_or(String::new(), |len| format!("[{}]", len.max(1)));
        text.commented(&format!("static value {name}{len}{init};"), variable.span);
    }

    /// All cells in one array; each variable is a macro.
    fn array(&self, array: &str, text: &mut Text<'_>) {
        let number = |value: i64| number(Language::C, value);
        let inits = self.system.cells.iter().map(|cell| number(cell.init.unwrap_or(0)));
        let inits: Vec<String> = std::iter::once("0".to_owned()).chain(inits).collect();
        let declared =
            format!("static value {array}[{}] = {{ {} }};", self.memory.len() + 1, inits.join(", "));
        self.memory.declare_array(&declared, array, text);
    }

    fn observed_variables(&self, text: &mut Text<'_>) {
        let system = self.system;
        let declare = |role: RoleId, name: &str, start: bool, text: &mut Text<'_>| {
            let copies = self.observed.copies(role) as usize;
            text.line(&match (self.observed.are_distinguished(role), start) {
                (true, true) => {
                    format!("static value {name}[{copies}] = {{ {} }};", vec!["1"; copies].join(", "))
                }
                (true, false) => format!("static value {name}[{copies}];"),
                (false, true) => format!("static value {name} = 1;"),
                (false, false) => format!("static value {name};"),
            });
        };
        for (&(role, location), name) in &self.observed.at {
            declare(role, name, system.role_code(role).entry == location, text);
        }
        for (&(role, _), name) in &self.observed.registers {
            declare(role, name, false, text);
        }
        for (places, name) in &self.observed.counts {
            let start = self.observed.count_at_start(system, places);
            text.line(&format!("static value {name} = {start};"));
        }
        if let Some(running) = &self.observed.running {
            let declared = format!("static value {running} = {};", self.observed.running_at_start(system));
            text.line(&format!("{declared:<55} /* processes that have not ended */"));
        }
    }

    /// The properties, and prototypes of all functions, so that they can call each other.
    fn prototypes(&self, text: &mut Text<'_>) {
        if !self.system.properties.is_empty() {
            text.line("/* Bad states. */");
            text.line("static void check(void)");
            text.line("{");
            text.indent();
            text.forget_line();
            for property in &self.system.properties {
                let seen = self.observed.property(self.system, self.memory, self.ranges, property);
                let bad = self.observed.bad(Language::C, self.width, self.memory, &self.uses, &seen);
                let when = match (property.kind, &self.observed.running) {
                    (PropertyKind::Final, Some(running)) => format!("{running} == 0 && ({bad})"),
                    _ => bad,
                };
                text.commented(&format!("assert(!({when}));"), property.span);
            }
            text.dedent();
            text.line("}");
            text.line("");
        }
        for (index, routine) in self.routines.iter().enumerate() {
            text.line(&format!("{};", body::heading(self, index, routine, body::Parameters::Types)));
        }
        text.line("");
    }

    fn main(&self, text: &mut Text<'_>) {
        text.line("int main(int argc, char **argv)");
        text.line("{");
        text.indent();
        text.line("#if defined(__CPROVER__) || defined(VERIFIER)");
        text.line("(void)argc, (void)argv;");
        text.line("#else");
        text.line("if (argc > 1)");
        text.line("    run_seed = strtoull(argv[1], NULL, 10);");
        text.line("#endif");
        text.forget_line();
        for variable in &self.memory.variables {
            for cell in variable.cells().filter(|cell| self.system.cells[*cell].init.is_none()) {
                limits::checkpoint();
                let bounds = variable.ty.domain.bounds();
                let (lo, hi) = bounds.expect("validation: arbitrary values have a domain");
                let number = |value: i64| number(Language::C, value);
                let place = self.memory.cell(cell);
                text.commented(&format!("{place} = choose({}, {});", number(lo), number(hi)), variable.span);
            }
        }
        if !self.system.properties.is_empty() {
            text.line("check();");
        }
        for (thread, instance) in self.system.instances.iter_enumerated() {
            let me = number_among_copies(self.system, thread);
            text.line(&format!("start({}, {me});", self.process(instance.role)));
        }
        text.line("run();");
        text.line("return 0;");
        text.dedent();
        text.line("}");
    }
}
