//! What is left when a C program ends: threads that still run, and memory that was leaked. Both become warnings.
//!
//! *What is asked*, about a program that is safe and has a `main`:
//! 1. Can `main` return while a thread that it or another thread has started still runs? Threads that were detached do
//!    not count. If the text shows that all threads are joined, there is no search.
//! 2. Is there a final state in which an object was allocated, not freed, and cannot be reached from a global variable?
//!    In a *final state* `main` has returned or called `exit`, all other threads that were started have ended, and all
//!    stores are in memory.
//!
//! *Guarantee.*
//! - Every warning is about a run of the program. The answer says so where a search did not visit all states.
//! - An object counts as reachable if a 64-bit variable that is global, thread-local, or part of a reachable object
//!   holds an address in it, with any tag in the upper bits. Local variables do not count.
//!
//! The verdict stays the same.

use super::{CProgram, Input};
use crate::answer::Answer;
use crate::check::{CheckOptions, EngineChoice, check_states};
use crate::coverage::CoverageWanted;
use crate::error::AskError;
use palisade_base::{Diagnostic, Span};
use palisade_c::{Aim, Allocation, FREED, ObjectKind, Roots, UNINITIALISED};
use palisade_engine::{Limits, Reason, Verdict};
use palisade_memory::Machine;
use palisade_program::running::{CellId, Condition, System};
use palisade_program::written::{Block, Check, Program, StmtKind};
use palisade_program::{Instantiation, Value, lower};
use std::collections::{BTreeMap, BTreeSet};

/// The engine that answers these questions.
const EXPLICIT: &str = "explicit";

/// At most this many states are visited for each of the questions: a warning is not worth more.
const BUDGET: u64 = 1 << 18;

/// Addresses are below this bit. The bits above may be a tag.
const ADDRESS_BITS: u32 = 46;

/// The ids of the warnings.
const LEAK: &str = "leak";
const STILL_RUNNING: &str = "still-running";

/// Whether a warning is about what is left when a program ends.
pub fn is_about_the_end(warning: &Diagnostic) -> bool {
    [LEAK, STILL_RUNNING].contains(&warning.id)
}

/// If the program is safe, adds warnings about what is left when it ends.
pub(super) fn with_warnings(
    input: &mut Input,
    answer: &mut Answer,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<(), AskError> {
    let Some(c) = &input.c else { return Ok(()) };
    let asked = c.recipe.options.exit
        && !c.any_threads()
        && c.recipe.options.roots == Roots::Main
        && !c.build.within_limits;
    let (outlives, allocates) = (c.outlives && c.asks_finish(), c.allocates);
    if !asked || answer.outcome.verdict != Verdict::Holds || !(outlives || allocates) {
        return Ok(());
    }
    if let EngineChoice::Named(name) = &options.engine
        && name != EXPLICIT
    {
        if allocates {
            answer.add_note(format!("leaks were not looked for: engine `{name}` cannot find them"));
        }
        return Ok(());
    }
    let Ok((program, other)) = c.recipe.translate(c.room, Aim::Exit) else {
        answer.add_note(
            "what is left at its end is not known: it could not be translated for that question".to_owned(),
        );
        return Ok(());
    };
    let limits = limits.clone().at_most_work(BUDGET);
    if outlives {
        match still_running(&program, &other, options, &limits)? {
            Ok(warning) => input.warnings.extend(warning),
            Err(reason) => {
                answer.add_note(format!(
                    "whether threads still run when `main` returns is not known: {reason}"
                ));
            }
        }
    }
    if allocates {
        match leaks(&program, &other, options, &limits) {
            Ok(warnings) => input.warnings.extend(warnings),
            Err(reason) => answer.add_note(format!("leaks are not ruled out: {reason}")),
        }
    }
    Ok(())
}

/// A warning about threads that can still run when `main` returns, or why it is not known whether there are any.
fn still_running(
    program: &Program,
    c: &CProgram,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Result<Option<Diagnostic>, Reason>, AskError> {
    let options = CheckOptions {
        engine: EngineChoice::Named(EXPLICIT.to_owned()),
        prove: false,
        certify: false,
        coverage: CoverageWanted::No,
        ..options.clone()
    };
    let answer = check_states(program, &options, limits)?;
    if let Verdict::Unknown(reason) = answer.outcome.verdict {
        return Ok(Err(reason));
    }
    let Some(confirmed) = &answer.confirmed else { return Ok(Ok(None)) };
    let Some(last) = confirmed.replay.states.last() else { return Ok(Ok(None)) };
    let value = |name: &str| {
        let named = confirmed.system.cells.iter_enumerated().find(|(_, cell)| cell.name == name);
        named.map(|(cell, _)| last.memory[cell])
    };
    let runs = |thread: &&palisade_c::Thread| {
        let cell = |what: &str| value(&format!("{}.{what}", thread.name));
        cell("started") == Some(1) && cell("ended") == Some(0)
    };
    let running: Vec<&palisade_c::Thread> = c.threads.iter().filter(runs).collect();
    let names: Vec<String> = running.iter().map(|thread| format!("`{}`", thread.name)).collect();
    let (names, are) = match names.as_slice() {
        [] => ("a thread".to_owned(), "is"),
        [one] => (one.clone(), "is"),
        [others @ .., last] => (format!("{} and {last}", others.join(", ")), "are"),
    };
    let message = format!("`main` can return while {names} {are} still running");
    let help = "it is not checked whether a thread that is cut off could finish: join it, or end `main` with pthread_exit";
    let warning = Diagnostic::warning("still-running", message).help(help);
    let place = running.iter().map(|thread| thread.started_at).find(|span| !span.is_none());
    Ok(Ok(Some(match place {
        Some(span) => warning.at(span, ""),
        None => warning,
    })))
}

/// Warnings about what is leaked, one per place that allocates it, or why it is not known.
fn leaks(
    program: &Program,
    c: &CProgram,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Vec<Diagnostic>, Reason> {
    let Some(allocations) = &c.allocations else {
        let why = "one place allocates objects of several sizes";
        return Err(Reason::Unsupported(why.to_owned()));
    };
    let mut program = program.clone();
    program.templates.iter_mut().for_each(|template| drop_checks(&mut template.body));
    let system = lower(&program, Instantiation::declared(1));
    let judge = Judge::new(&system, c, allocations);
    let conditions: Vec<Condition> = judge.cells.iter().map(|&cell| Condition::Cell(cell)).collect();
    let machine = Machine { system: &system, model: options.model, interlocked: options.interlocked };
    let outcomes = palisade_explore::outcomes(machine, &conditions, &options.options, limits);
    let leaked: Vec<BTreeSet<usize>> = outcomes.found.iter().map(|values| judge.leaked(values)).collect();
    if let Some(reason) = outcomes.missing
        && leaked.iter().all(BTreeSet::is_empty)
    {
        return Err(reason);
    }
    // For each place, in how many outcomes something is leaked that was allocated there.
    let mut places: BTreeMap<Span, usize> = BTreeMap::new();
    for leaked in &leaked {
        let spans: BTreeSet<Span> = leaked.iter().map(|&index| allocations[index].span).collect();
        spans.into_iter().for_each(|span| *places.entry(span).or_default() += 1);
    }
    let warning = |(span, count): (Span, usize)| {
        let which = if count == leaked.len() { "all runs that end" } else { "some runs" };
        let message = format!(
            "memory allocated here is leaked in {which}: at the end it is not freed, and no global variable \
             leads to it"
        );
        Diagnostic::warning("leak", message).at(span, "").help("free it before the program ends")
    };
    Ok(places.into_iter().map(warning).collect())
}

/// Drops the assertions that no thread still runs.
fn drop_checks(block: &mut Block) {
    for statement in block {
        match &mut statement.kind {
            StmtKind::Assert(_, Check::AllEnded) => statement.kind = StmtKind::Skip,
            kind => kind.blocks_mut().into_iter().for_each(drop_checks),
        }
    }
}

/// Finds what is leaked in a final state.
struct Judge<'a> {
    /// The cells that matter.
    cells: Vec<CellId>,
    /// The indices of those that are global or thread-local.
    roots: Vec<usize>,
    objects: Vec<Judged<'a>>,
}

/// An object, with the indices of its cells.
struct Judged<'a> {
    allocation: &'a Allocation,
    counter: Option<usize>,
    first: Option<usize>,
    pointers: Vec<usize>,
}

impl<'a> Judge<'a> {
    fn new(system: &System, c: &CProgram, allocations: &'a [Allocation]) -> Judge<'a> {
        let mut judge = Judge { cells: Vec::new(), roots: Vec::new(), objects: Vec::new() };
        for object in c.words.objects.iter() {
            if !matches!(object.kind, ObjectKind::Global | ObjectKind::ThreadLocal) {
                continue;
            }
            let keys: Vec<Value> = pointers(object.address, &object.cells);
            let own = keys.into_iter().filter(|key| !c.words.waits.is_made(*key));
            let roots: Vec<usize> = own.filter_map(|key| judge.cell(system, key)).collect();
            judge.roots.extend(roots);
        }
        for allocation in allocations {
            let cells = c.words.objects.at(allocation.address).map_or(&[][..], |object| &object.cells);
            let keys = pointers(allocation.address, cells);
            let pointers = keys.into_iter().filter_map(|key| judge.cell(system, key)).collect();
            let counter = judge.cell(system, allocation.counter);
            let first = allocation.first.and_then(|key| judge.cell(system, key));
            judge.objects.push(Judged { allocation, counter, first, pointers });
        }
        judge
    }

    /// The index of the cell at an address.
    fn cell(&mut self, system: &System, address: Value) -> Option<usize> {
        let cell = system.cell_at(address)?;
        let known = self.cells.iter().position(|known| *known == cell);
        Some(known.unwrap_or_else(|| {
            self.cells.push(cell);
            self.cells.len() - 1
        }))
    }

    /// The objects that are leaked in a final state with these values.
    fn leaked(&self, values: &[Value]) -> BTreeSet<usize> {
        let is_allocated = |object: &Judged<'_>| {
            let counted = object.counter.is_some_and(|cell| values[cell] > object.allocation.index);
            counted && object.first.is_none_or(|cell| values[cell] != FREED)
        };
        let mut lost: BTreeSet<usize> =
            (0..self.objects.len()).filter(|&index| is_allocated(&self.objects[index])).collect();
        let mut open: Vec<Value> = self.roots.iter().map(|&cell| values[cell]).collect();
        while let Some(value) = open.pop() {
            if value == FREED || value == UNINITIALISED {
                continue;
            }
            let address = value & ((1 << ADDRESS_BITS) - 1);
            let found = lost.iter().copied().find(|&index| {
                let Allocation { address: first, size, .. } = *self.objects[index].allocation;
                (first..first + size).contains(&address)
            });
            if let Some(index) = found {
                lost.remove(&index);
                open.extend(self.objects[index].pointers.iter().map(|&cell| values[cell]));
            }
        }
        lost
    }
}

/// The addresses of the cells of an object that can hold a pointer.
fn pointers(address: Value, cells: &[(i64, u32)]) -> Vec<Value> {
    let wide = cells.iter().filter(|(_, size)| *size == 3);
    wide.map(|(offset, size)| (address + offset) * 8 + Value::from(*size)).collect()
}
