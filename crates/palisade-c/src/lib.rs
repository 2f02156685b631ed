//! C programs, as LLVM IR, turned into written programs.
//!
//! *Problem.* The engines work on programs with processes, shared cells and registers. C has pointers, calls,
//! local variables, a heap and a thread library.
//!
//! *How.* [`translate`] links the modules, inlines every call, one copy per thread and call site, and turns each
//! thread into a process:
//! 1. `inline`, `calls` and `library` turn instructions and library calls into steps ([`flat`]).
//! 2. `promote`, `propagate` and `tidy` keep locals whose address does not leave the thread in registers, fold
//!    constants, and drop what is never read.
//! 3. `threads` finds the threads that each thread starts, until no new ones turn up.
//! 4. `layout` gives every object that is left an address, and `emit` writes the statements.
//!
//! *Conventions.*
//! - Pointers are byte addresses. An access of 2^k bytes at address a dereferences the key `a * 8 + k`, and a
//!   cell of 2^k bytes is placed there. An access of the wrong size or place is then a bad pointer.
//! - Values narrower than 64 bits are kept sign-extended, `i1` as 0 or 1.
//! - Memory that was never written holds [`UNINITIALISED`], freed memory [`FREED`].
//!
//! *Guarantee.* The program that is returned can do what the compiled C program can do on a machine with store
//! buffers, if the compiler keeps the order of atomic and volatile accesses and there is no data race on the
//! others. What is not understood is refused with a diagnostic. Checks that are
//! [limits](palisade_program::written::Check::is_limit) fail where the translation may differ.

mod arguments;
mod arithmetic;
mod assembly;
mod bits;
mod cache_lines;
mod calls;
mod cells;
mod definite;
mod emit;
mod exit;
mod expr;
mod features;
mod finish;
mod flat;
mod groups;
mod heap;
mod inline;
mod layout;
mod library;
mod link;
mod liveness;
mod memory;
mod narrow;
mod objects;
mod promote;
mod propagate;
mod returns;
mod scopes;
mod shapes;
mod statement_of_end;
mod statements;
mod taken;
mod threads;
mod tidy;
mod undefined;
mod unsupported;
mod waits;

pub use exit::Allocation;
pub use objects::{Object, ObjectKind, Objects, Part, Problem};
pub use waits::{ThreadCell, Wait, WaitTable};

use expr::Expr;
use inline::Context;
use layout::Layout;
use link::Linked;
use memory::Memory;
use palisade_base::{Diagnostic, Origin, Span};
use palisade_llvm::Module;
use palisade_program::written::{Count, Init, InitValue, Name, Placement, Program, Shared, Template};
use statement_of_end::{WakeUps, stays_possible, wakes_alone};
use std::collections::BTreeSet;

/// What a cell holds that was never written. Values that are stored are checked to be different.
pub const UNINITIALISED: i64 = 0x8BAD_F00D_DEAD_BEE1_u64 as i64;

/// What a cell of freed memory holds.
pub const FREED: i64 = 0x8BAD_F00D_F4EE_D0E3_u64 as i64;

/// What decides how a program is translated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many threads there is room for.
    pub slots: Slots,
    /// How many objects there is room for, per allocation site and thread.
    pub pool: u32,
    /// What is asked about the program.
    pub aim: Aim,
    /// Whether data races are to be reported.
    pub races: bool,
    /// Whether globals that only one thread accesses stay in memory, where their last value can be seen.
    pub keep_globals: bool,
    /// Where execution starts.
    pub roots: Roots,
    /// What a thread knows about itself.
    pub identity: Identity,
}

/// What a thread knows about itself. What it does not know is a value about which nothing can be concluded, another one in
/// each thread: threads become instances of one process only if it makes no difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identity {
    /// Its handle and its argument.
    Known,
    /// Its argument.
    WithoutHandle,
    /// Neither.
    Unknown,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            slots: Slots::default(),
            pool: 4,
            aim: Aim::Safety,
            races: true,
            keep_globals: false,
            roots: Roots::Main,
            identity: Identity::Known,
        }
    }
}

/// What a program is written in. The conventions of compilers differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    /// C, by clang.
    C,
    /// Rust, by rustc: objects are bytes, and functions have mangled names.
    Rust,
    /// Machine code: objects are bytes, every access is the machine's, and nothing is said about types.
    Machine,
}

impl Language {
    /// What modules are written in: machine code if one of them says so, and Rust if one of them has names as rustc
    /// makes them.
    fn of(modules: &[Module]) -> Language {
        if modules.iter().any(|module| module.triple.as_deref() == Some(palisade_llvm::MACHINE_CODE)) {
            return Language::Machine;
        }
        let mut symbols = modules.iter().flat_map(|module| &module.symbols);
        if symbols.any(|symbol| library::rust::path(&symbol.name).is_some()) {
            Language::Rust
        } else {
            Language::C
        }
    }
}

/// What is asked about a program. The translations differ in whether a wait may end spuriously.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Aim {
    /// What can go wrong. Waits for condition variables may end without a signal.
    #[default]
    Safety,
    /// Whether the program can finish, as [`Translation::finish`] says. Waits for condition variables end by
    /// signals and timeouts only. Once the program is over, no thread can be waited for any more: a thread that
    /// ends the program stays at a label of its own, and is never stuck there. A failed assumption ends the
    /// program too, so that what follows is not judged.
    Progress,
    /// Both at once. Whether waits on condition variables may end without a signal is chosen at the start of a run,
    /// for the whole run. Only in runs in which they may not, the program must be able to finish. So the program is
    /// correct if and only if the other two are.
    Both,
    /// What is left when the program ends. `main` asserts that all threads have ended
    /// ([`Check::AllEnded`](palisade_program::written::Check)), and [`Translation::allocations`] says where
    /// allocations are counted. Globals stay in memory, and threads that were never started end with `main`.
    Exit,
}

impl Aim {
    /// Whether to check that the program can finish.
    pub(crate) fn asks_finish(self) -> bool {
        match self {
            Aim::Safety | Aim::Exit => false,
            Aim::Progress | Aim::Both => true,
        }
    }
}

/// What it means for a program to finish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finish {
    /// The program is over: `main` has returned, or a thread has called `exit`. Under [`Aim::Progress`] and
    /// [`Aim::Both`] the program states that this stays possible.
    Over,
    /// There is no `main`: all threads have ended. Under [`Aim::Progress`] the program states that this stays
    /// possible.
    AllEnded,
    /// The program is made to run forever: from the beginning of `main`, or of a thread that must end first, no
    /// path leads to its end, whatever conditions hold.
    Never,
    /// This is not followed, for a reason: the end of a sentence.
    NotFollowed(&'static str),
}

/// How many threads a thread may start where the number is not known from the text. Creates whose number is
/// known always have room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slots {
    /// By `main`.
    pub main: u32,
    /// By every other thread.
    pub nested: u32,
}

impl Default for Slots {
    fn default() -> Slots {
        Slots { main: 4, nested: 1 }
    }
}

/// Where execution starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roots {
    /// In `main`.
    Main,
    /// A library without `main`: in these functions.
    Functions {
        /// Runs first, before the threads start.
        init: Option<String>,
        /// One thread each.
        threads: Vec<String>,
        /// Runs after all threads have ended.
        finally: Option<String>,
    },
}

/// Where places of the debug information are in the text that spans refer to.
pub trait Places {
    /// The span of a place; `None` if it is not in a file of the user.
    fn span(&self, file: &str, directory: &str, line: u32, column: u32) -> Option<Span>;
}

/// A translated program.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The program.
    pub program: Program,
    /// What the answer rests on, to be stated with it.
    pub notes: Vec<Note>,
    /// What every answer, positive or not, assumes, to be stated with it.
    pub circumstances: Vec<Note>,
    /// The places where the program's behaviour depends on the numeric values of addresses.
    pub uses_of_bits: Vec<Span>,
    /// What lies where in memory, to explain bad pointers.
    pub objects: Objects,
    /// The threads, in the order of the instances of the processes.
    pub threads: Vec<Thread>,
    /// What it means for the program to finish.
    pub finish: Finish,
    /// What its waits are for.
    pub waits: WaitTable,
    /// Whether waits can end spuriously, so that the translation for [`Aim::Progress`] has fewer runs than
    /// the one for [`Aim::Safety`].
    pub spurious: bool,
    /// Whether a thread may still run when the one that started it ends, as far as the text says.
    pub outlives: bool,
    /// Whether an assertion of the program turned out to always hold, so that nothing is left of it.
    pub asserted: bool,
    /// Whether it may allocate memory.
    pub allocates: bool,
    /// Under [`Aim::Exit`], all objects that the program may allocate. `None` if that is not followed.
    pub allocations: Option<Vec<Allocation>>,
}

/// Something that an answer rests on: one sentence in lower case without a full stop.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Note(pub String);

/// A thread of the translated program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// The name of its process: that of its function, with a number if there are several.
    pub name: String,
    /// The functions that it may run.
    pub functions: Vec<String>,
    /// Where it is started, if that is one place.
    pub started_at: Span,
    /// Whether all instances of its process are started with the same argument, or do not know it.
    pub same_argument: bool,
}

/// Translates the modules of one program.
///
/// # Errors
/// What the translation does not understand, and what is missing.
pub fn translate(
    modules: &[Module],
    places: &dyn Places,
    options: &Options,
) -> Result<Translation, Vec<Diagnostic>> {
    let extended: Vec<Module>;
    let modules = match library::strings::module(modules) {
        Some(strings) => {
            extended = modules.iter().cloned().chain([strings]).collect();
            &extended[..]
        }
        None => modules,
    };
    let linked = Linked::new(modules)?;
    let language = Language::of(modules);
    let taken = taken::taken(&linked, language);
    let mut context = Context {
        language,
        memory: Memory::new(&linked, language),
        places,
        options,
        unsupported: Vec::new(),
        taken,
        notes: BTreeSet::new(),
        circumstances: BTreeSet::new(),
        features: features::features(&linked),
        waiting: Vec::new(),
        tokens: Vec::new(),
        heap: heap::Heap::default(),
        waits: Vec::new(),
        owners: Vec::new(),
        unmarked: Vec::new(),
    };
    let threads::Generated { threads, finish, cells, outlives, counters, started } =
        threads::generate(&mut context)?;
    let layout = Layout::new(&threads, &context.memory);
    // Atomic variables of Rust are aligned.
    if language != Language::Rust {
        cache_lines::check(&layout, &threads, &context.memory, language)?;
    }
    let mut program = Program::default();
    for cell in &layout.cells {
        program.shared.push(shared(cell, &layout, &context.memory));
    }
    let frees = context.features.frees || layout.cells.iter().any(|cell| cell.left);
    if context.features.frees && context.notes.contains(&Note(heap::SUCCEED.to_owned())) {
        context.notes.insert(Note(heap::REUSE.to_owned()));
    }
    if context.unmarked.iter().any(|&object| layout.is_exposed(object)) {
        let note = "accesses to a local variable after its block has ended are reported only once its function has \
                    returned";
        context.notes.insert(Note(note.to_owned()));
    }
    context.notes.extend(scopes::kept_pointers(&threads, &layout, &context.memory));
    let waiting = context.waiting.len();
    let emitted = emit::Emitted { layout: &layout, frees, waiting, races: options.races, aim: options.aim };
    let merged = merge(threads.iter().map(|thread| (thread, emitted.process(thread))).collect());
    let count = started.names.len();
    if count > 0 {
        let (at_most, plural) =
            (if started.at_most { "at most " } else { "" }, if count == 1 { "" } else { "s" });
        let (first, names) = (&threads[0].name, started.names.join(", "));
        context.notes.insert(Note(format!("{at_most}{count} thread{plural} besides `{first}`: {names}")));
        if options.roots == Roots::Main {
            context.notes.insert(Note("starting a thread succeeds".to_owned()));
        }
    }
    let note = match language {
        Language::C | Language::Rust => {
            "the compiler keeps the order of atomic and volatile accesses, and of plain ones around them"
        }
        Language::Machine => "functions of the C library leave the registers as the ABI says",
    };
    context.notes.insert(Note(note.to_owned()));
    let mut order: Vec<(&threads::ThreadCode, bool)> = Vec::new();
    for (alike, _) in &merged {
        let same_argument = alike.iter().all(|thread| thread.arguments == alike[0].arguments);
        order.extend(alike.iter().map(|thread| (*thread, same_argument)));
    }
    program.templates = merged.iter().map(|(_, template)| template.clone()).collect();
    if options.aim.asks_finish() {
        let wake_ups =
            if options.aim == Aim::Both && waiting > 0 { WakeUps::Open } else { WakeUps::BySignal };
        program.progress.extend(stays_possible(&finish, wake_ups, &program.templates));
        if wake_ups == WakeUps::Open {
            program.shared.push(wakes_alone());
        }
    }
    let functions = |thread: &threads::ThreadCode| {
        thread.functions.iter().map(|function| linked.name(*function).to_owned()).collect()
    };
    let name = |number: &memory::ThreadNumber| {
        let thread = threads.iter().find(|thread| thread.number == *number);
        thread.map_or_else(String::new, |thread| instance_name(&merged, &thread.name))
    };
    let owners = context.owners.iter().map(name).collect();
    let renamed = |cell: ThreadCell| match cell {
        ThreadCell::Ended(names) => {
            ThreadCell::Ended(names.iter().map(|name| instance_name(&merged, name)).collect())
        }
        cell => cell,
    };
    let cells = cells
        .into_iter()
        .filter_map(|(object, cell)| Some((layout.known_address(object)? * 8 + 2, renamed(cell))));
    let allocations =
        counters.map(|counters| exit::allocations(&counters, &layout, &context.memory, &context.heap));
    let waits = WaitTable { calls: std::mem::take(&mut context.waits), cells: cells.collect(), owners };
    Ok(Translation {
        program,
        notes: context.notes.iter().cloned().collect(),
        circumstances: context.circumstances.iter().cloned().collect(),
        uses_of_bits: bits::uses_of_bits(&threads, &layout, &context.memory),
        objects: layout.objects(&context.memory),
        threads: order
            .into_iter()
            .map(|(thread, same_argument)| Thread {
                name: thread.name.clone(),
                functions: functions(thread),
                started_at: thread.started_at,
                same_argument,
            })
            .collect(),
        finish,
        waits,
        spurious: waiting > 0,
        outlives,
        asserted: threads.iter().any(|thread| thread.code.asserted),
        allocates: !context.heap.objects.is_empty(),
        allocations,
    })
}

/// Threads that run the same code are instances of one process, so that engines can see that they are alike.
fn merge(processes: Vec<(&threads::ThreadCode, Template)>) -> Vec<(Vec<&threads::ThreadCode>, Template)> {
    let mut merged: Vec<(Vec<&threads::ThreadCode>, Template)> = Vec::new();
    for (thread, process) in processes {
        let alike = merged
            .iter_mut()
            .find(|(threads, known)| known.body == process.body && threads[0].functions == thread.functions);
        match alike {
            Some((threads, known)) => {
                threads.push(thread);
                known.count = Count::Fixed(u32::try_from(threads.len()).expect("few threads"));
            }
            None => merged.push((vec![thread], process)),
        }
    }
    merged
}

/// The name of the process instance that a thread has become.
fn instance_name(merged: &[(Vec<&threads::ThreadCode>, Template)], name: &str) -> String {
    for (threads, template) in merged {
        if let Some(index) = threads.iter().position(|thread| thread.name == name)
            && threads.len() > 1
        {
            return format!("{}[{index}]", template.name);
        }
    }
    name.to_owned()
}

/// The declaration of a cell.
fn shared(cell: &layout::Cell, layout: &Layout, memory: &Memory<'_>) -> Shared {
    let object = memory.object(cell.object);
    let leaf = object.leaves.iter().find(|leaf| leaf.offset == cell.offset).expect("a cell is a leaf");
    let value = match &leaf.init {
        None => UNINITIALISED,
        Some(Expr::Int(value)) => *value,
        Some(Expr::Address(object, offset)) => layout.address(*object, *offset),
        Some(_) => unreachable!("initial values are constants"),
    };
    let ty = emit::width_type(if cell.wide { 64 } else { 8 << cell.size });
    let key = layout.address(cell.object, cell.offset) * 8 + i64::from(cell.size);
    Shared {
        name: Name::generated(cell.name.as_str()),
        len: None,
        ty,
        init: Init::Every(InitValue::Const(emit::int(value))),
        at: Some(Placement { address: key, step: 1 }),
        origin: Origin(object.span),
    }
}
