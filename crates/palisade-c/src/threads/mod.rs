//! The threads of a program: `main`, the threads that it starts, those that they start, and so on.
//!
//! A thread is generated and simplified; then the places where it starts threads say which threads there are and
//! what they run. Every thread but the first waits until its cell `started` is set, and sets `ended` at its end,
//! both by locked exchanges.

mod expand;

use crate::cells::{Cells, await_cell, load_cell, set_cell};
use crate::exit::{self, Counter};
use crate::expr::Expr;
use crate::flat::{Access, Code, End, ObjectId, RegId, Step, StepKind, Written};
use crate::inline::{Context, Generator};
use crate::library::{self, first_child};
use crate::link::{FunctionRef, Target};
use crate::memory::{ThreadNumber, Val, as_function};
use crate::objects::ObjectKind;
use crate::promote::promote;
use crate::shapes::Calls;
use crate::{
    Aim, Finish, Identity, Language, Roots, ThreadCell, arguments, definite, finish, heap, narrow, propagate,
    scopes, shapes, tidy,
};
use palisade_base::{Diagnostic, Span};
use palisade_program::written::BinaryOp;
use rustc_hash::{FxHashMap, FxHashSet};

/// How deep threads may start threads.
const MAX_DEPTH: u32 = 3;

/// The number of the last function of a library. Those of its threads follow. The threads that its first function
/// starts, and so on, have smaller numbers, because they are at most [`MAX_DEPTH`] deep.
const LIBRARY: ThreadNumber = 1_000_000_000;

/// The most threads.
pub(crate) const MAX_THREADS: usize = 64;

/// A thread with its code.
pub(crate) struct ThreadCode {
    pub(crate) number: ThreadNumber,
    pub(crate) name: String,
    pub(crate) functions: Vec<FunctionRef>,
    pub(crate) code: Code,
    /// Where it is started, if that is one place.
    pub(crate) started_at: Span,
    /// The arguments with which it may be started, if it knows them.
    pub(crate) arguments: Vec<Expr>,
    /// The registers that count what it allocates, and the cells that hold their last values.
    counted: Vec<(RegId, ObjectId)>,
    depth: u32,
}

/// What is known about a thread before it is generated.
#[derive(Clone, Default)]
struct Slot {
    /// The functions that it may run.
    entries: Vec<FunctionRef>,
    /// Whether some place starts it with a function that is not known there.
    computed: bool,
    /// The arguments with which it may be started.
    arguments: Vec<Expr>,
    /// The places that may start it.
    starts: Vec<Span>,
    cells: Option<Cells>,
}

/// All threads.
pub(crate) struct Generated {
    pub(crate) threads: Vec<ThreadCode>,
    pub(crate) finish: Finish,
    /// Cells through which threads are started and joined.
    pub(crate) cells: Vec<(ObjectId, ThreadCell)>,
    /// Whether a thread may still run when the one that started it ends.
    pub(crate) outlives: bool,
    /// The pools of objects, under [`Aim::Exit`]. `None` if it is not followed what is allocated.
    pub(crate) counters: Option<Vec<Counter>>,
    pub(crate) started: Started,
}

/// Which threads may run besides the first one.
pub(crate) struct Started {
    pub(crate) names: Vec<String>,
    /// Whether it is not known how many of them are started.
    pub(crate) at_most: bool,
}

/// Generates all threads.
pub(crate) fn generate(context: &mut Context<'_>) -> Result<Generated, Vec<Diagnostic>> {
    let roots = context.options.roots.clone();
    let mut program =
        Threads { context, threads: Vec::new(), slots: FxHashMap::default(), cells: Vec::new() };
    match roots {
        Roots::Main => program.main()?,
        Roots::Functions { init, threads, finally } => {
            program.library(init.as_deref(), &threads, finally.as_deref())?;
        }
    }
    program.settle();
    // Before it turns out that a variable that a thread waits for never changes.
    let codes: Vec<(ThreadNumber, &Code)> =
        program.threads.iter().map(|thread| (thread.number, &thread.code)).collect();
    let finish = finish::by_text(&codes, &program.context.options.roots);
    let outlives = exit::may_outlive(&codes);
    let aim = program.context.options.aim;
    if !program.context.options.keep_globals && aim != Aim::Exit {
        program.private_globals();
    }
    let counters = if aim == Aim::Exit { program.counters() } else { Some(Vec::new()) };
    for thread in &mut program.threads {
        narrow::narrow(&mut thread.code);
        while propagate::fold(&mut thread.code) | tidy::tidy(&mut thread.code) {}
        definite::resolve(&mut thread.code);
        while tidy::tidy(&mut thread.code) {}
    }
    let started = program.started();
    program.expand();
    for thread in &mut program.threads {
        scopes::enter_once(&mut thread.code);
        while tidy::tidy(&mut thread.code) {}
        propagate::keep_faults(&mut thread.code);
    }
    let refused = program.refused();
    let Threads { threads, cells, .. } = program;
    match refused.is_empty() {
        true => Ok(Generated { threads, finish, cells, outlives, counters, started }),
        false => Err(refused),
    }
}

struct Threads<'a, 'c> {
    context: &'c mut Context<'a>,
    threads: Vec<ThreadCode>,
    slots: FxHashMap<ThreadNumber, Slot>,
    /// What cells say about threads.
    cells: Vec<(ObjectId, ThreadCell)>,
}

fn missing(name: &str) -> Vec<Diagnostic> {
    vec![
        Diagnostic::error("c-no-function", format!("there is no function `{name}`"))
            .help("without `main`, name the functions to run with --init, --thread and --final"),
    ]
}

impl Slot {
    /// The function that is built into its code: the only one with which it is started.
    fn only_entry(&self) -> Option<FunctionRef> {
        match self.entries.as_slice() {
            [only] if !self.computed => Some(*only),
            _ => None,
        }
    }
}

impl Threads<'_, '_> {
    fn find(&self, name: &str) -> Result<FunctionRef, Vec<Diagnostic>> {
        self.context.memory.linked.function(name).ok_or_else(|| missing(name))
    }

    fn main(&mut self) -> Result<(), Vec<Diagnostic>> {
        let main = self.find("main")?;
        let arguments = arguments::of_main(self.context, main);
        let mut generator = Generator::new(self.context, 1);
        let _ = generator.call(main, arguments);
        generator.program_ends(true);
        generator.end(End::Over);
        let code = generator.finish(|_| {});
        self.add(1, "main".to_owned(), vec![main], code, 0);
        self.children(0);
        Ok(())
    }

    /// A library: an optional first function, threads, and an optional last function.
    fn library(
        &mut self,
        init: Option<&str>,
        threads: &[String],
        finally: Option<&str>,
    ) -> Result<(), Vec<Diagnostic>> {
        if threads.is_empty() {
            return Err(vec![Diagnostic::error("c-no-thread", "no function was named to run as a thread")]);
        }
        let init = init.map(|name| self.find(name)).transpose()?;
        let finally = finally.map(|name| self.find(name)).transpose()?;
        let entries: Vec<FunctionRef> =
            threads.iter().map(|name| self.find(name)).collect::<Result<_, _>>()?;
        let started = init.map(|_| self.context.memory.add_cell("initialised".to_owned(), 2, 0));
        if let (Some(init), Some(started)) = (init, started) {
            let name = self.name(&[init]);
            let arguments = arguments::zeros(self.context, init);
            let mut generator = Generator::new(self.context, 1);
            let _ = generator.call(init, arguments);
            let code = generator.finish(|generator| set_cell(generator, started));
            self.add(1, name, vec![init], code, 0);
            self.children(0);
        }
        let mut ended = Vec::new();
        for (index, &entry) in entries.iter().enumerate() {
            let name = self.name(&[entry]);
            let arguments = arguments::zeros(self.context, entry);
            let number = LIBRARY + 1 + ThreadNumber::try_from(index).expect("few threads");
            let done = finally.map(|_| self.context.memory.add_cell(format!("{name}.ended"), 2, 0));
            ended.extend(done);
            let mut generator = Generator::new(self.context, number);
            if let Some(started) = started {
                await_cell(&mut generator, started);
            }
            let _ = generator.call(entry, arguments);
            let code = generator.finish(|generator| {
                if let Some(done) = done {
                    set_cell(generator, done);
                }
            });
            self.add(number, name, vec![entry], code, 1);
            let index = self.threads.len() - 1;
            self.children(index);
        }
        if let Some(finally) = finally {
            let name = self.name(&[finally]);
            let arguments = arguments::zeros(self.context, finally);
            let mut generator = Generator::new(self.context, LIBRARY);
            for done in ended {
                await_cell(&mut generator, done);
            }
            let _ = generator.call(finally, arguments);
            let code = generator.finish(|_| {});
            self.add(LIBRARY, name, vec![finally], code, 1);
            let index = self.threads.len() - 1;
            self.children(index);
        }
        Ok(())
    }

    /// A name for a thread that runs one of these functions.
    fn name(&self, functions: &[FunctionRef]) -> String {
        let linked = self.context.memory.linked;
        let names: Vec<String> =
            functions.iter().map(|function| library::rust::thread_name(linked.name(*function))).collect();
        let base = if names.is_empty() { "thread".to_owned() } else { names.join("|") };
        let taken = |name: &str| self.threads.iter().any(|thread| thread.name == name);
        let mut name = base.clone();
        let mut count = 1;
        while taken(&name) {
            count += 1;
            name = format!("{base}#{count}");
        }
        name
    }

    fn add(
        &mut self,
        number: ThreadNumber,
        name: String,
        functions: Vec<FunctionRef>,
        mut code: Code,
        depth: u32,
    ) {
        let ended = self.slots.get(&number).and_then(|slot| slot.cells).map(|cells| cells.ended);
        let counted = match self.context.options.aim {
            Aim::Exit => exit::count_allocations(&mut code, &name, ended, &mut self.context.memory),
            Aim::Safety | Aim::Progress | Aim::Both => Vec::new(),
        };
        simplify(&mut code, self.context);
        let starts = self.slots.get(&number).map_or(&[][..], |slot| &slot.starts);
        let started_at = match starts {
            [only] => *only,
            _ => Span::NONE,
        };
        let arguments = self.slots.get(&number).map_or_else(Vec::new, |slot| slot.arguments.clone());
        self.threads.push(ThreadCode {
            number,
            name,
            functions,
            code,
            started_at,
            arguments,
            counted,
            depth,
        });
    }

    /// Generates the threads that a thread starts.
    fn children(&mut self, parent: usize) {
        let (number, depth) = (self.threads[parent].number, self.threads[parent].depth);
        let first = first_child(number);
        let limit =
            if number == 1 { self.context.options.slots.main } else { self.context.options.slots.nested };
        let mut found: Vec<ThreadNumber> = Vec::new();
        let code = &self.threads[parent].code;
        let blocks = code.reachable();
        let steps = || blocks.iter().flat_map(|block| &code.block(*block).steps);
        // Where the number is not known, it may be that of any thread that is started elsewhere.
        let known = steps().filter_map(|step| match &step.kind {
            StepKind::Start { thread: Expr::Int(thread), .. } => Some(thread + 1),
            _ => None,
        });
        let end = known.chain([first + i64::from(limit)]).max().unwrap_or(first);
        for step in steps() {
            let StepKind::Start { thread, entry, argument } = &step.kind else { continue };
            let range = match thread {
                Expr::Int(thread) => *thread..*thread + 1,
                _ => first..end,
            };
            let entries: Vec<FunctionRef> = match entry {
                Expr::Int(address) => {
                    self.context.memory.function_at(*address).and_then(as_function).into_iter().collect()
                }
                _ => {
                    let linked = self.context.memory.linked;
                    let fits = |function: &FunctionRef| {
                        let module = &linked.modules[function.module];
                        module.functions[function.function].parameters.len() <= 1
                    };
                    self.context.taken.entries().filter(fits).collect()
                }
            };
            for thread in range {
                let slot = self.slots.entry(thread).or_default();
                slot.computed |= !matches!(entry, Expr::Int(_));
                for entry in &entries {
                    if !slot.entries.contains(entry) {
                        slot.entries.push(*entry);
                    }
                }
                if !slot.starts.contains(&step.span) {
                    slot.starts.push(step.span);
                }
                if !slot.arguments.contains(argument) {
                    slot.arguments.push(argument.clone());
                }
                if !found.contains(&thread) {
                    found.push(thread);
                }
            }
        }
        found.sort_unstable();
        for thread in found {
            if depth >= MAX_DEPTH || self.threads.len() >= MAX_THREADS {
                self.slots.remove(&thread);
                continue;
            }
            self.child(thread, depth + 1);
        }
    }

    fn child(&mut self, number: ThreadNumber, depth: u32) {
        let slot = self.slots[&number].clone();
        let name = self.name(&slot.entries);
        let cell = |context: &mut Context<'_>, what: &str, size| {
            context.memory.add_cell(format!("{name}.{what}"), size, 0)
        };
        let cells = Cells {
            started: cell(self.context, "started", 2),
            entry: cell(self.context, "entry", 3),
            argument: cell(self.context, "argument", 3),
            ended: cell(self.context, "ended", 2),
            result: cell(self.context, "result", 3),
            detached: cell(self.context, "detached", 2),
        };
        self.slots.entry(number).or_default().cells = Some(cells);
        let differs = |other: &Slot| other.entries == slot.entries && other.arguments != slot.arguments;
        let is_unknown =
            self.context.options.identity == Identity::Unknown && self.slots.values().any(differs);
        let mut generator = Generator::new(self.context, number);
        generator.joinable = true;
        await_cell(&mut generator, cells.started);
        if generator.context.options.aim == Aim::Exit {
            let started = load_cell(&mut generator, cells.started, 2);
            let never = generator.binary(BinaryOp::Eq, started, Expr::Int(exit::NEVER_STARTED));
            let (stop, run) = (generator.new_block(), generator.new_block());
            generator.end(End::Branch(never, stop, run));
            generator.go_on(stop);
            generator.end(End::Stop);
            generator.go_on(run);
        }
        let argument = match slot.arguments.as_slice() {
            [only] if only.is_constant() && !is_unknown => only.clone(),
            [only] if only.is_constant() => generator.unknown(),
            _ => load_cell(&mut generator, cells.argument, 3),
        };
        let returns = |generator: &mut Generator<'_, '_>, entry| {
            let parameters = {
                let module = &generator.context.memory.linked.modules[entry_module(entry)];
                module.functions[entry_function(entry)].parameters.len()
            };
            let arguments = vec![Val::Scalar(argument.clone()); parameters.min(1)];
            let _ = generator.call(entry, arguments);
        };
        match slot.only_entry() {
            Some(only) => returns(&mut generator, only),
            None => {
                let entry = load_cell(&mut generator, cells.entry, 3);
                for function in &slot.entries {
                    let address = generator.context.memory.function_address(Target::Function(*function));
                    let equal = generator.binary(BinaryOp::Eq, entry.clone(), Expr::Int(address));
                    let (yes, no) = (generator.new_block(), generator.new_block());
                    generator.end(End::Branch(equal, yes, no));
                    generator.go_on(yes);
                    returns(&mut generator, *function);
                    generator.end(End::Goto(generator.exit));
                    generator.go_on(no);
                }
                let nothing = generator.temporary(8);
                let from = Access { pointer: entry, size: 0, plain: false };
                generator.step(StepKind::Load { to: nothing, from, written: Written::Needed });
                generator.end(End::Stop);
            }
        }
        let code = generator.finish(|generator| {
            for object in generator.context.memory.thread_locals(number) {
                generator.step(StepKind::Leave(object));
            }
            let value = Expr::Reg(generator.result);
            let to = Access { pointer: Expr::Address(cells.result, 0), size: 3, plain: false };
            generator.step(StepKind::Store { to, value });
            set_cell(generator, cells.ended);
        });
        self.add(number, name, slot.entries, code, depth);
        if let Some(thread) = self.threads.last_mut().filter(|_| is_unknown) {
            thread.arguments.clear();
        }
        let index = self.threads.len() - 1;
        self.children(index);
    }

    /// The threads besides the first one that run from the beginning, or that some thread may start.
    fn started(&self) -> Started {
        let mut found: FxHashSet<ThreadNumber> = FxHashSet::default();
        let mut at_most = false;
        let roots = self.threads.iter().filter(|thread| !self.slots.contains_key(&thread.number));
        let mut open: Vec<ThreadNumber> = roots.map(|thread| thread.number).collect();
        while let Some(number) = open.pop() {
            if !found.insert(number) {
                continue;
            }
            let Some(thread) = self.threads.iter().find(|thread| thread.number == number) else { continue };
            let blocks = thread.code.reachable();
            for step in blocks.iter().flat_map(|block| &thread.code.block(*block).steps) {
                match &step.kind {
                    StepKind::Start { thread: Expr::Int(child), .. } => open.push(*child),
                    StepKind::Start { .. } => {
                        at_most = true;
                        let children = first_child(number)..first_child(number) + library::MAX_CHILDREN;
                        open.extend(self.slots.keys().filter(|child| children.contains(child)));
                    }
                    _ => {}
                }
            }
        }
        let others = self.threads.iter().skip(1).filter(|thread| found.contains(&thread.number));
        Started { names: others.map(|thread| thread.name.clone()).collect(), at_most }
    }

    /// Cuts objects that are only bytes so far into scalars, and copies bytes by them.
    fn settle(&mut self) {
        let is_late = |step: &Step| matches!(step.kind, StepKind::Copy { .. } | StepKind::Fill { .. });
        let mut steps =
            self.threads.iter().flat_map(|thread| &thread.code.blocks).flat_map(|block| &block.steps);
        if self.context.memory.open.is_empty() && !steps.any(is_late) {
            return;
        }
        let cells = || self.slots.iter().filter_map(|(number, slot)| Some((*number, slot.cells?)));
        let calls = Calls {
            arguments: cells().map(|(number, cells)| (number, cells.argument)).collect(),
            results: cells().map(|(number, cells)| (number, cells.result)).collect(),
        };
        let mut codes: Vec<&mut Code> = self.threads.iter_mut().map(|thread| &mut thread.code).collect();
        shapes::settle_all(&mut codes, &calls, self.context);
        for thread in &mut self.threads {
            simplify(&mut thread.code, self.context);
        }
    }

    /// Globals that only one thread accesses become registers of that thread.
    fn private_globals(&mut self) {
        let mut users: FxHashMap<ObjectId, FxHashSet<usize>> = FxHashMap::default();
        for (index, thread) in self.threads.iter().enumerate() {
            for block in thread.code.reachable() {
                let block = thread.code.block(block);
                let mut note = |e: &Expr| {
                    e.for_each_object(&mut |object| _ = users.entry(object).or_default().insert(index));
                };
                block.steps.iter().for_each(|step| step.kind.for_each_expr(&mut note));
                if let End::Branch(condition, ..) = &block.end {
                    note(condition);
                }
            }
        }
        // Objects whose address is in the initial value of another one.
        let mut pointed: FxHashSet<ObjectId> = FxHashSet::default();
        for object in &self.context.memory.objects {
            for leaf in &object.leaves {
                if let Some(init) = &leaf.init {
                    init.for_each_object(&mut |object| _ = pointed.insert(object));
                }
            }
        }
        let library: FxHashSet<ObjectId> =
            self.slots.values().filter_map(|slot| slot.cells).flat_map(Cells::all).collect();
        for (index, thread) in self.threads.iter_mut().enumerate() {
            let memory = &self.context.memory;
            let candidate = |object: ObjectId| {
                memory.object(object).kind == ObjectKind::Global
                    && !library.contains(&object)
                    && !pointed.contains(&object)
                    && users.get(&object).is_some_and(|users| users.len() == 1 && users.contains(&index))
            };
            if promote(&mut thread.code, memory, &candidate) {
                simplify(&mut thread.code, self.context);
            }
        }
    }

    /// The pools of all threads.
    fn counters(&self) -> Option<Vec<Counter>> {
        let mut all = Vec::new();
        for thread in &self.threads {
            all.extend(exit::counters(&thread.code, &thread.counted)?);
        }
        Some(all)
    }

    /// What cannot be translated and may be reached.
    fn refused(&self) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = Vec::new();
        for thread in &self.threads {
            for block in thread.code.reachable() {
                for step in &thread.code.block(block).steps {
                    if let StepKind::Unsupported(index) = step.kind {
                        let diagnostic = self.context.unsupported[index].diagnostic(&thread.name);
                        if !found.contains(&diagnostic) {
                            found.push(diagnostic);
                        }
                    }
                }
            }
        }
        found.sort_by_key(Diagnostic::span);
        found
    }
}

fn entry_module(entry: FunctionRef) -> usize {
    entry.module
}

fn entry_function(entry: FunctionRef) -> palisade_llvm::module::FunctionId {
    entry.function
}

/// Simplifies code until nothing changes.
fn simplify(code: &mut Code, context: &mut Context<'_>) {
    let mut refused = FxHashSet::default();
    loop {
        let mut changed = true;
        while changed {
            shapes::settle_locals(code, &mut context.memory);
            let memory = &context.memory;
            // What a thread-local variable leads to at the end is not leaked.
            let kept = context.options.aim == Aim::Exit;
            let local = |object: ObjectId| match memory.object(object).kind {
                ObjectKind::ThreadLocal => !kept,
                kind => kind.is_local(),
            };
            changed = promote(code, memory, &local);
            // Checks that cannot fail would keep values in registers.
            if context.language == Language::Rust {
                definite::drop_checks(code);
            }
            changed |= propagate::fold(code);
            changed |= tidy::tidy(code);
        }
        if !propagate::unroll(code, &mut refused) && !heap::expand_allocations(code, context) {
            break;
        }
    }
    // Sizes that are not known by now never will be.
    for block in code.reachable() {
        for step in &mut code.block_mut(block).steps {
            if matches!(step.kind, StepKind::Allocate { .. }) {
                let what = "an allocation whose size is not a constant";
                step.kind = context.unsupported(what, step.span);
            }
        }
    }
}
