//! Promela, the language of Spin.
//!
//! *Form of the model.* Each process role is a `proctype`. Each step of the program is one statement or
//! `atomic`. `init` initialises memory and starts the processes. A process `monitor` watches the properties:
//! it can take a step only in a bad state, or when nothing else can. A program is unsafe exactly if Spin finds a
//! violated assertion. Processes that wait forever are not an error, so no state may look like a deadlock to Spin: where
//! nothing else can move, the monitor goes on waiting (`timeout`), which leads to the same state again. Labels for
//! valid end states would not be enough: a process that is stuck in a section stops others at any statement.
//!
//! *Atomic sections.* Promela's `atomic` lets other processes run when a statement inside blocks. Here they
//! must not. So a section that may block after its first step records its process in `holder`, and every
//! `proctype` is `provided` that no other process holds a section. A section that blocks at its first step
//! can wait outside instead: if it had been entered, nothing more would happen in that run. Spin does not
//! look for cycles inside `atomic`. Sections with loops or calls are therefore held by `holder` alone.
//!
//! *Procedures.* Promela has none. Each process contains the code of the procedures it calls, once, with
//! separate registers. A call records where to return, and jumps. A procedure that may be called while it
//! runs saves its registers on a stack of `STACK` entries. Exceeding the stack is a violated assertion; it
//! never goes unnoticed.
//!
//! *Numbers* have 32 bits in Promela. Larger constants are refused, and a result that could be too large is
//! guarded by an assertion.

mod calls;
mod process;
mod sections;
mod statement;
mod words;

use crate::expression::{Language, Width, number};
use crate::memory::{Memory, Variable};
use crate::names::{C_WORDS, Names};
use crate::observed::{ME, Observed, number_among_copies};
use crate::ranges::{Range, Ranges};
use crate::routine::{Routine, RoutineKind, routines};
use crate::structure::{Continues, Structured, structure};
use crate::text::Text;
use crate::uses::{OLD_ARGUMENTS, OLD_VALUE, Uses};
use crate::watch::Watch;
use crate::{Export, refuse, wrap};
use palisade_base::{Diagnostic, IdVec, Source, Span, limits};
use palisade_program::lower;
use palisade_program::running::{Liveness, PropertyKind, RoleId, System};
use process::Process;
use statement::Code;

/// The maximum number of processes in Spin, including `init` and the monitor.
const MAX_PROCESSES: usize = 255;

/// Writes a program as a Promela model.
pub(crate) fn write(export: &Export<'_>) -> Result<String, Vec<Diagnostic>> {
    let system = lower(export.program, export.instantiation());
    let mut problems = refuse::numbers(&system);
    problems.extend(wrap::refuse(&system, Width::Int));
    if system.instances.len() + 2 > MAX_PROCESSES {
        let message = format!(
            "Spin allows at most {MAX_PROCESSES} processes, two of them for the model itself; this program has {}",
            system.instances.len()
        );
        problems.push(Diagnostic::error("too-many-processes", message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let watch = Watch::new(&system);
    let liveness = Liveness::new(&system);
    let ranges = Ranges::new(&system);
    let mut names = Names::reserving(&[C_WORDS, words::PROMELA, words::SPIN]);
    let memory = Memory::new(export.program, &system, &mut names);
    let roles: IdVec<RoleId, String> =
        system.roles.iter().map(|role| names.fresh(&crate::role_name(&system, role))).collect();
    let observed = Observed::new(&system, &watch, &roles, &mut names);
    for property in &system.properties {
        if !observed.property(&system, &memory, &ranges, property).of_ints().stays_int() {
            let message =
                "the property may need numbers of more than 32 bits, the size of numbers in Promela";
            problems.push(Diagnostic::error("number-too-large", message).at(property.span, ""));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let routines = routines(&system, &watch, &liveness);
    let structured: Vec<Structured> =
        routines.iter().map(|routine| structure(routine, Continues::No)).collect();
    let model = Model {
        system: &system,
        liveness: &liveness,
        ranges: &ranges,
        memory: &memory,
        observed: &observed,
        routines: &routines,
        structured: &structured,
        roles: &roles,
        names,
        uses: Uses::default(),
        holds: needs_holder(&system, &routines, &structured),
        source: export.source,
    };
    let mut text = Text::new(export.source);
    for (index, routine) in routines.iter().enumerate() {
        if let RoutineKind::Process(role) = routine.kind {
            Process::new(&model, index, role).write(&mut text);
        }
    }
    model.monitor(&mut text);
    model.init(&mut text);
    let body = text.finish();
    let mut text = Text::new(export.source);
    model.heading(export, &mut text);
    model.declarations(&mut text);
    Ok(text.finish() + &body)
}

/// Whether a section needs to be held.
fn needs_holder(system: &System, routines: &[Routine<'_>], structured: &[Structured]) -> bool {
    routines.iter().zip(structured).any(|(routine, text)| sections::holds(system, routine, &text.body))
}

/// Everything that is known about a program.
pub(crate) struct Model<'a> {
    pub system: &'a System,
    pub liveness: &'a Liveness,
    pub ranges: &'a Ranges,
    pub memory: &'a Memory,
    pub observed: &'a Observed,
    pub routines: &'a [Routine<'a>],
    pub structured: &'a [Structured],
    pub roles: &'a IdVec<RoleId, String>,
    /// The global names.
    pub names: Names,
    /// What the text uses.
    pub uses: Uses,
    /// Whether a section is held by `holder`.
    pub holds: bool,
    source: &'a Source,
}

impl Model<'_> {
    /// The source line of a span.
    pub fn line(&self, span: Span) -> Option<u32> {
        self.source.position(span).map(|position| position.line)
    }

    fn heading(&self, export: &Export<'_>, text: &mut Text<'_>) {
        text.line("/*");
        export.heading.lines().for_each(|line| text.line(&format!(" * {}", line.replace("*/", "* /"))));
        text.line(" *");
        text.line(" * A violated assertion is an error in the program; a process that waits forever is not:");
        text.line(" *     spin -run -safety -m1000000 FILE");
        text.line(" */");
        text.line("");
    }

    /// Declares what the text written so far uses.
    fn declarations(&self, text: &mut Text<'_>) {
        let used = words::GUARDS.iter().filter(|(guard, _)| self.uses.has_guard(*guard));
        let macros: Vec<&str> = used.map(|(_, text)| *text).collect();
        if !macros.is_empty() {
            text.line("#define MAX 2147483647");
            text.line("#define MIN (-2147483647 - 1)");
            macros.into_iter().for_each(|line| text.line(line));
            text.line("");
        }
        if self.uses.has_wrap() {
            words::WRAP.lines().for_each(|line| text.line(line));
            text.line("");
        }
        if self.uses.has_stack() {
            text.line("#ifndef STACK");
            text.line(&format!("{:<55} /* nested calls of the same procedure */", "#define STACK 8"));
            text.line("#endif");
            text.line("");
        }
        match &self.memory.array {
            None => self.memory.variables.iter().for_each(|variable| self.variable(variable, text)),
            Some(array) => self.array(array, text),
        }
        self.observed_variables(text);
        if self.holds {
            text.line(&format!("{:<55} /* the process in an atomic section */", "byte holder;"));
        }
        if self.uses.has_old_value() {
            text.line(&format!("hidden int {OLD_VALUE};"));
        }
        if self.uses.has_old_arguments() {
            let most = self.routines.iter().map(|routine| routine.code.params).max().unwrap_or(0);
            text.line(&format!("hidden int {OLD_ARGUMENTS}[{most}];"));
        }
        text.line("");
    }

    fn variable(&self, variable: &Variable, text: &mut Text<'_>) {
        let ty = type_of(self.memory.range(self.ranges, variable));
        let name = &variable.name;
        let first = |cell| self.system.cells[cell].init;
        let inits: Vec<Option<i64>> = variable.cells().map(first).collect();
        let same = inits.windows(2).all(|pair| pair[0] == pair[1]);
        let len = variable.len.map_or(String::new(), |len| format!("[{}]", len.max(1)));
        let init = match inits.first() {
            Some(Some(value)) if same && *value != 0 => format!(" = {}", number(Language::Promela, *value)),
            _ => String::new(),
        };
        text.commented(&format!("{ty} {name}{len}{init};"), variable.span);
    }

    /// All cells in one array; each variable is a macro.
    fn array(&self, array: &str, text: &mut Text<'_>) {
        let ranges = self.system.cells.ids().map(|cell| self.ranges.cells[cell]);
        let range =
            ranges.reduce(|a, b| Range { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi) }).unwrap_or(Range::of(0));
        let ty = type_of(range);
        let declared = format!("{ty} {array}[{}];", self.memory.len() + 1);
        self.memory.declare_array(&declared, array, text);
    }

    fn observed_variables(&self, text: &mut Text<'_>) {
        let system = self.system;
        let copies = |role: RoleId| {
            if self.observed.are_distinguished(role) {
                format!("[{}]", self.observed.copies(role))
            } else {
                String::new()
            }
        };
        for (&(role, location), name) in &self.observed.at {
            let at_start = if system.role_code(role).entry == location { " = 1" } else { "" };
            text.line(&format!("bit {name}{}{at_start};", copies(role)));
        }
        for (&(role, register), name) in &self.observed.registers {
            let range = self.ranges.register_range(system.roles[role].code, register);
            text.line(&format!("{} {name}{};", type_of(range), copies(role)));
        }
        for (places, name) in &self.observed.counts {
            let at_start = match self.observed.count_at_start(system, places) {
                0 => String::new(),
                count => format!(" = {count}"),
            };
            text.line(&format!("byte {name}{at_start};"));
        }
        if let Some(running) = &self.observed.running {
            let declared = format!("byte {running} = {};", self.observed.running_at_start(system));
            text.line(&format!("{declared:<55} /* processes that have not ended */"));
        }
    }

    fn monitor(&self, text: &mut Text<'_>) {
        text.line("/* The monitor can take a step only in a bad state, or where nothing else can: waiting forever is no error. */");
        text.line("proctype monitor() {");
        text.indent();
        text.line("do");
        text.forget_line();
        for property in &self.system.properties {
            let seen = self.observed.property(self.system, self.memory, self.ranges, property).of_ints();
            let bad = self.observed.bad(Language::Promela, Width::Int, self.memory, &self.uses, &seen);
            let when = match (property.kind, &self.observed.running) {
                (PropertyKind::Final, Some(running)) => format!("{running} == 0 && ({bad})"),
                _ if self.holds => format!("holder == 0 && ({bad})"),
                _ => bad,
            };
            text.commented(&format!(":: {when} -> assert(false)"), property.span);
        }
        text.line(":: timeout");
        text.line("od");
        text.dedent();
        text.line("}");
        text.line("");
    }

    fn init(&self, text: &mut Text<'_>) {
        text.line("init {");
        text.indent();
        text.line("atomic {");
        text.indent();
        text.forget_line();
        for variable in &self.memory.variables {
            self.initial_values(variable, text);
        }
        for (thread, instance) in self.system.instances.iter_enumerated() {
            let me = if self.observed.are_distinguished(instance.role) {
                number_among_copies(self.system, thread).to_string()
            } else {
                String::new()
            };
            text.line(&format!("run {}({me});", self.roles[instance.role]));
        }
        text.line("run monitor();");
        text.dedent();
        text.line("}");
        text.dedent();
        text.line("}");
    }

    /// Initial values that a declaration does not give.
    fn initial_values(&self, variable: &Variable, text: &mut Text<'_>) {
        let inits: Vec<Option<i64>> = variable.cells().map(|cell| self.system.cells[cell].init).collect();
        let same = inits.windows(2).all(|pair| pair[0] == pair[1]);
        let declared = self.memory.array.is_none() && same;
        for (cell, init) in variable.cells().zip(inits) {
            limits::checkpoint();
            let place = self.memory.cell(cell);
            match init {
                Some(0) => {}
                Some(_) if declared => {}
                Some(value) => text.line(&format!("{place} = {};", number(Language::Promela, value))),
                None => {
                    let bounds = variable.ty.domain.bounds();
                    let (lo, hi) = bounds.expect("validation: arbitrary values have a domain");
                    text.commented(&format!("{};", any(&place, lo, hi).text), variable.span);
                }
            }
        }
    }
}

/// Sets a variable to any value of a range. This is one step if the range is small.
fn any(place: &str, lo: i64, hi: i64) -> Code {
    if hi - lo < 16 {
        let values: Vec<String> = (lo..=hi).map(|value| format!(":: {place} = {value}")).collect();
        Code::one(format!("if {} fi", values.join(" ")))
    } else {
        let number = |value| number(Language::Promela, value);
        let (lo, hi) = (number(lo), number(hi));
        Code::several(format!("{place} = {lo}; do :: {place} < {hi} -> {place}++ :: break od"))
    }
}

/// The narrowest type for a range.
pub(crate) fn type_of(range: Range) -> &'static str {
    if range.within(0, 1) {
        "bit"
    } else if range.within(0, 255) {
        "byte"
    } else if range.within(i16::MIN.into(), i16::MAX.into()) {
        "short"
    } else {
        "int"
    }
}

/// The parameters of a process.
pub(crate) fn parameters(observed: &Observed, role: RoleId) -> String {
    if observed.are_distinguished(role) { format!("byte {ME}") } else { String::new() }
}
