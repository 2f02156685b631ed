//! Limits of the translation: how many threads and objects there is room for.
//!
//! A translated program asserts that it stays within these limits. A run that leaves them shows nothing about
//! the C program, so it must never become `unsafe`; and as long as there is one, the program is not `safe`.

use super::words::CWords;
use palisade_c::Slots;
use palisade_memory::{Fault, Violation};
use palisade_program::running::ThreadId;
use palisade_program::written::{Block, Check, Program, StmtKind};

/// How much room a translated program has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    pub(super) slots: Slots,
    pub(super) heap: u32,
}

/// The maximum number of threads that one thread starts, where the number is not known from the text.
pub const MAX_SLOTS: u32 = 16;
/// The maximum number of objects that a thread allocates at one place in the program.
pub const MAX_HEAP: u32 = 64;

/// A limit of the translation that a run exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    /// `main` starts more threads than there is room for.
    MainThreads,
    /// Another thread starts more threads than there is room for.
    NestedThreads,
    /// More objects are allocated than there is room for.
    Heap,
    /// An access covers part of a variable, or several variables.
    Size,
    /// A value that the translation uses for marks of its own.
    Value,
    /// A string of unknown content is printed as a format.
    Format,
}

impl Limit {
    /// The limit that the end of a run exceeds, if it does.
    pub(super) fn of(violation: Violation, words: &CWords) -> Option<Limit> {
        let Violation::Fault(thread, fault) = violation else { return None };
        match fault {
            Fault::BadPointer(pointer) if words.is_limit(pointer) => Some(Limit::Size),
            Fault::CheckFailed(Check::Threads) if thread == ThreadId(0) => Some(Limit::MainThreads),
            Fault::CheckFailed(Check::Threads) => Some(Limit::NestedThreads),
            Fault::CheckFailed(Check::Heap) => Some(Limit::Heap),
            Fault::CheckFailed(Check::Size) => Some(Limit::Size),
            Fault::CheckFailed(Check::Format) => Some(Limit::Format),
            Fault::CheckFailed(check) if check.is_limit() => Some(Limit::Value),
            _ => None,
        }
    }

    /// More room, if this limit can be raised. Sizes are doubled: each step costs a translation and a search.
    pub(super) fn raised(self, room: Room) -> Option<Room> {
        let more = |now: u32, most: u32| (now < most).then(|| (now * 2).clamp(1, most));
        let mut raised = room;
        match self {
            Limit::MainThreads => raised.slots.main = more(room.slots.main, MAX_SLOTS)?,
            Limit::NestedThreads => raised.slots.nested = more(room.slots.nested, MAX_SLOTS)?,
            Limit::Heap => raised.heap = more(room.heap, MAX_HEAP)?,
            Limit::Size | Limit::Value | Limit::Format => return None,
        }
        Some(raised)
    }

    /// What happened, where, and what to do, for an answer that is unknown. `what` is how the run ends, in words,
    /// and `place` is where.
    pub(super) fn describe(self, room: Room, what: &str, place: &str) -> String {
        let Room { slots, heap } = room;
        let (main, nested) = (slots.main, slots.nested);
        match self {
            Limit::MainThreads => {
                format!("`main` can start more than {}{place}; allow more with --slots N", threads(main))
            }
            Limit::NestedThreads => {
                format!("a thread can start more than {}{place}; allow more with --slots N", threads(nested))
            }
            Limit::Heap => {
                let objects = if heap == 1 { "1 object".to_owned() } else { format!("{heap} objects") };
                format!("a thread can allocate more than {objects}{place}; allow more with --heap N")
            }
            Limit::Size => {
                format!("{what}{place}, which is not followed; access each variable with its own type")
            }
            Limit::Format => format!("{what}{place}, which is not followed; print it with `%s`"),
            Limit::Value => format!("{what}{place}, which is not followed; store another value there"),
        }
    }
}

fn threads(number: u32) -> String {
    if number == 1 { "1 thread".to_owned() } else { format!("{number} threads") }
}

/// The program with the limits as assumptions: runs that exceed them are left out.
pub(super) fn within_limits(program: &Program) -> Program {
    let mut program = program.clone();
    let templates = program.templates.iter_mut().map(|template| &mut template.body);
    let procedures = program.procedures.iter_mut().map(|procedure| &mut procedure.body);
    templates.chain(procedures).for_each(|body| rewrite(body, &|check| check.is_limit()));
    program
}

/// The program in which only the limits are asserted. Its other assertions become assumptions.
pub(super) fn only_limits(program: &Program) -> Program {
    let mut program = program.clone();
    program.properties.clear();
    program.progress.clear();
    let templates = program.templates.iter_mut().map(|template| &mut template.body);
    let procedures = program.procedures.iter_mut().map(|procedure| &mut procedure.body);
    templates.chain(procedures).for_each(|body| rewrite(body, &|check| !check.is_limit()));
    program
}

/// Whether a run can exceed a limit, as far as the text says: by an assertion of one, or through a pointer.
pub(super) fn has_limits(program: &Program) -> bool {
    let templates = program.templates.iter().map(|template| &template.body);
    let mut bodies = templates.chain(program.procedures.iter().map(|procedure| &procedure.body));
    bodies.any(|body| asserts_limit(body) || format!("{body:?}").contains("Deref("))
}

fn asserts_limit(block: &Block) -> bool {
    block.iter().any(|statement| match &statement.kind {
        StmtKind::Assert(_, check) => check.is_limit(),
        kind => kind.blocks().into_iter().any(asserts_limit),
    })
}

/// Turns the assertions of such checks into assumptions.
fn rewrite(block: &mut Block, assumed: &dyn Fn(Check) -> bool) {
    palisade_base::limits::checkpoint();
    for statement in block {
        match &mut statement.kind {
            StmtKind::Assert(condition, check) if assumed(*check) => {
                statement.kind = StmtKind::Assume(condition.clone());
            }
            kind => kind.blocks_mut().into_iter().for_each(|inner| rewrite(inner, assumed)),
        }
    }
}
