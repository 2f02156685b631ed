//! Thread states: everything about one thread that is not memory, and its single steps.
//!
//! A *thread state* holds a thread's frames, its store buffer, its share in an atomic section and its fault.
//! Two threads with the same thread state behave the same, so searches compose global states from thread
//! states. A step of a thread depends on its thread state and, for reads of memory, on the one value read.
//!
//! Steps are taken by the trusted machine of `palisade-memory` on a state with this thread alone. Nothing
//! here defines what a step does.

use palisade_base::{Id, limits};
use palisade_memory::{
    Action, Effect, Fault, Interlocked, Machine, Model, NextAccess, Pending, Section, State, Step, Thread,
};
use palisade_program::Value;
use palisade_program::running::{CellId, CodeId, EdgeId, Instr, Liveness, RegId, RoleId, System, ThreadId};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A thread state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Local {
    /// Frames and buffer.
    pub thread: Thread,
    /// Its share in an atomic section.
    pub hold: Hold,
    /// The error it ran into.
    pub fault: Option<Fault>,
    /// What it was about to access in the local steps since its last other step, where data races are looked for;
    /// see [`crate::run_on`].
    pub passed: Vec<NextAccess>,
}

/// A thread's share in an atomic section.
///
/// The opening of a section is put off to its first access to memory, because until then no thread can
/// observe whether the section is open. A thread in between is *armed*. It behaves as if it were still in
/// front of the section.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hold {
    /// Not in a section.
    Outside,
    /// Past the opening, but nothing has been accessed yet. Other threads may run.
    Armed(u32),
    /// In the section. No other thread may run.
    Entered(u32),
}

impl Hold {
    fn depth(self) -> u32 {
        match self {
            Hold::Outside => 0,
            Hold::Armed(depth) | Hold::Entered(depth) => depth,
        }
    }
}

/// What a thread can do next at one edge or with its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Concerns no other thread: its outcome does not depend on memory, and memory does not change.
    Local,
    /// Reads the thread's newest pending store to this cell. This is not local: once that store has reached
    /// memory, a store of another thread may have replaced it there.
    ReadsOwn(CellId),
    /// Reads this cell of memory. A locked instruction may also write it.
    Reads(CellId),
    /// Writes this cell of memory.
    Writes(CellId),
    /// Starts a thread.
    Spawns,
    /// The buffer is as long as the search allows.
    BufferFull,
    /// Passes a full fence, where fences are letters.
    Fences,
    /// Passes a store-store fence, where fences are letters.
    StoreFences,
}

/// How fences are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fences {
    /// They are local steps that wait for the buffer of the thread state.
    Wait,
    /// They are letters. The thread state has no buffer, and the user of the automaton defines what a fence
    /// waits for.
    Letters,
}

/// What becomes of threads that get stuck without having changed anything; see [`crate::run_on`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stuck {
    /// They are forgotten: the others can do the same without their last step.
    Forgotten,
    /// They are kept, for questions about what stays possible.
    Kept,
}

/// The result of one step of a thread.
#[derive(Clone, Debug)]
pub struct After {
    /// The thread state.
    pub local: Local,
    /// The write to memory, if there was one.
    pub write: Option<(CellId, Value)>,
    /// The thread that was started, if any.
    pub child: Option<Local>,
}

/// How single threads run.
pub struct ThreadMachine<'a> {
    /// The machine that takes the steps.
    pub machine: Machine<'a>,
    liveness: Arc<Liveness>,
    /// How many stores a buffer may hold.
    pub bound: usize,
    /// Whether opening a section is put off to its first access.
    pub arming: bool,
    /// How fences are treated.
    pub fences: Fences,
    /// What becomes of threads that get stuck when local steps are collapsed.
    pub stuck: Stuck,
    /// The openings of sections that can be left without an access to memory.
    passable: FxHashSet<(CodeId, EdgeId)>,
    /// A memory whose values do not matter, except for the one cell that is set before a read.
    scratch: Vec<Value>,
}

const ALONE: ThreadId = ThreadId(0);

impl<'a> ThreadMachine<'a> {
    /// Threads with buffers up to a bound. `liveness` is the liveness of the machine's system.
    pub fn new(
        machine: Machine<'a>,
        liveness: Arc<Liveness>,
        bound: usize,
        arming: bool,
    ) -> ThreadMachine<'a> {
        let scratch = vec![0; machine.system.cells.len()];
        ThreadMachine {
            machine,
            liveness,
            bound,
            arming,
            fences: Fences::Wait,
            stuck: Stuck::Forgotten,
            passable: passable(machine.system),
            scratch,
        }
    }

    /// The liveness of the machine's system.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// A thread at its start.
    pub fn start(&self, role: RoleId) -> Local {
        let thread = Thread::start(self.machine.system, role);
        self.forget_dead(Local { thread, hold: Hold::Outside, fault: None, passed: Vec::new() })
    }

    /// The edges the thread could take.
    pub fn edges(&self, local: &Local) -> impl Iterator<Item = EdgeId> + use<> {
        let top = local.thread.top();
        let none = local.fault.is_some();
        let range = self.machine.system.codes[top.code].edges_from(top.location);
        range.filter(move |_| !none).map(EdgeId)
    }

    /// The actions of an edge: either one, or one per value to choose from.
    pub fn actions(&self, local: &Local, edge: EdgeId) -> impl Iterator<Item = Action> + use<> {
        let (lo, hi, havoc) = match self.instr(local, edge) {
            Instr::Havoc(_, lo, hi) => (*lo, *hi, true),
            _ => (0, 0, false),
        };
        (lo..=hi).map(move |value| Action::Execute { edge, choice: havoc.then_some(value) })
    }

    fn instr(&self, local: &Local, edge: EdgeId) -> &'a Instr {
        &self.machine.system.codes[local.thread.top().code].edges()[edge].instr
    }

    /// Whether the edge is a plain load.
    pub fn is_load(&self, local: &Local, edge: EdgeId) -> bool {
        matches!(self.instr(local, edge), Instr::Load(..))
    }

    /// How taking an edge affects other threads. Steps that are impossible, or that end in a fault before
    /// they touch memory, are `Local`.
    pub fn kind(&self, local: &Local, edge: EdgeId) -> StepKind {
        let registers = &local.thread.top().registers;
        let resolve = |address| self.machine.resolve(address, registers).ok();
        let outside = local.hold == Hold::Outside;
        match self.instr(local, edge) {
            Instr::Load(_, address) => match resolve(address) {
                Some(cell) if local.thread.newest_pending(cell).is_some() => StepKind::ReadsOwn(cell),
                Some(cell) => StepKind::Reads(cell),
                None => StepKind::Local,
            },
            Instr::Store(address, _) => match resolve(address) {
                Some(cell) if self.machine.model == Model::Sc || !outside => StepKind::Writes(cell),
                Some(_) if self.is_full(&local.thread.buffer) => StepKind::BufferFull,
                _ => StepKind::Local,
            },
            Instr::Locked { address, .. } => match resolve(address) {
                Some(cell) if self.may_lock(local, cell) => StepKind::Reads(cell),
                _ => StepKind::Local,
            },
            Instr::Spawn(..) => StepKind::Spawns,
            Instr::Fence if self.fences == Fences::Letters => StepKind::Fences,
            Instr::StoreFence if self.fences == Fences::Letters => StepKind::StoreFences,
            // A section waits for the buffer even if it never reaches an access.
            Instr::AtomicBegin if self.fences == Fences::Letters && outside => {
                match self.passable.contains(&(local.thread.top().code, edge)) {
                    true => StepKind::Fences,
                    false => StepKind::Local,
                }
            }
            _ => StepKind::Local,
        }
    }

    /// Whether no more stores are buffered. Store-store fences do not count: there is at most one after each store.
    fn is_full(&self, buffer: &[Pending]) -> bool {
        buffer.iter().filter(|pending| matches!(pending, Pending::Store(..))).count() >= self.bound
    }

    /// Whether an instruction is possible only once some of the thread's pending stores have reached memory.
    pub fn waits_for_buffer(&self, local: &Local, edge: EdgeId) -> bool {
        let instr = self.instr(local, edge);
        let drains = matches!(instr, Instr::Fence | Instr::Locked { .. } | Instr::AtomicBegin);
        let is_possible =
            || self.actions(local, edge).into_iter().any(|action| self.step(local, action, None).is_some());
        drains && !local.thread.buffer.is_empty() && !is_possible()
    }

    fn may_lock(&self, local: &Local, cell: CellId) -> bool {
        match (self.machine.model, self.machine.interlocked) {
            (Model::Pso, Interlocked::OwnAddress) => local.thread.may_lock_alone(cell),
            _ => local.thread.buffer.is_empty(),
        }
    }

    /// Takes a step. `read` gives the value of the cell that the step reads. Returns `None` if the step is
    /// not possible.
    pub fn step(&self, local: &Local, action: Action, read: Option<(CellId, Value)>) -> Option<After> {
        limits::checkpoint();
        let depth = local.hold.depth();
        let mut memory = self.scratch.clone();
        if let Some((cell, value)) = read {
            memory[cell.index()] = value;
        }
        let alone = State {
            memory: memory.into(),
            threads: vec![Arc::new(local.thread.clone())].into(),
            section: (depth > 0).then_some(Section { holder: ALONE, depth }),
            fault: None,
        };
        let (state, effect) = self.machine.step(&alone, Step { thread: ALONE, action }).ok()?;
        let write = match effect {
            Effect::Wrote(cell, value) | Effect::Updated(cell, value) => Some((cell, value)),
            Effect::Locked { cell, wrote, .. } => wrote.map(|value| (cell, value)),
            _ => None,
        };
        // A fault inside a section happens there, so the opening of the section can no longer be put off.
        let touched = matches!(
            effect,
            Effect::ReadMemory(..)
                | Effect::Wrote(..)
                | Effect::Locked { .. }
                | Effect::Spawned(_)
                | Effect::Faulted(_)
        );
        let hold = match (state.section, local.hold) {
            (None, _) => Hold::Outside,
            (Some(section), Hold::Entered(_)) => Hold::Entered(section.depth),
            (Some(section), _) if touched || !self.arming => Hold::Entered(section.depth),
            (Some(section), _) => Hold::Armed(section.depth),
        };
        let child = match effect {
            Effect::Spawned(child) => Some(self.start(state.threads[child].role)),
            _ => None,
        };
        let fault = state.fault.map(|(_, fault)| fault);
        let thread = state.threads.into_iter().next().expect("a thread stays when it has ended");
        let thread = Arc::unwrap_or_clone(thread);
        Some(After {
            local: self.forget_dead(Local { thread, hold, fault, passed: Vec::new() }),
            write,
            child,
        })
    }

    /// Sets registers that are never read again to 0. A caller's register that waits for a result is set to 0
    /// as well, unless properties observe it.
    pub fn forget_dead(&self, mut local: Local) -> Local {
        let mut awaited: Option<RegId> = None;
        for frame in local.thread.frames.iter_mut().rev() {
            let dead = self.liveness.dead(frame.code, frame.location).iter().copied();
            let awaited_here = awaited.filter(|&register| !self.liveness.is_observed(frame.code, register));
            for register in dead.chain(awaited_here) {
                frame.registers[register.index()] = 0;
            }
            awaited = frame.result;
        }
        local
    }
}

/// The openings of sections from which some path reaches the end of the section without an access to memory.
/// Procedures are not inspected: a procedure may do nothing.
fn passable(system: &System) -> FxHashSet<(CodeId, EdgeId)> {
    let mut found = FxHashSet::default();
    for (code_id, code) in system.codes.iter_enumerated() {
        let openings = code.edges().iter_enumerated().filter(|(_, edge)| edge.instr == Instr::AtomicBegin);
        for (opening, edge) in openings {
            let mut seen = FxHashSet::from_iter([(edge.target, 1u32)]);
            let mut work = vec![(edge.target, 1u32)];
            while let Some((location, depth)) = work.pop() {
                limits::checkpoint();
                for next in code.edges_from(location).map(|edge| &code.edges()[EdgeId(edge)]) {
                    let depth = match next.instr {
                        Instr::Load(..) | Instr::Store(..) | Instr::Locked { .. } | Instr::Spawn(..) => {
                            continue;
                        }
                        Instr::AtomicBegin => depth + 1,
                        Instr::AtomicEnd => depth - 1,
                        _ => depth,
                    };
                    if depth == 0 {
                        found.insert((code_id, opening));
                    } else if seen.insert((next.target, depth)) {
                        work.push((next.target, depth));
                    }
                }
            }
        }
    }
    found
}
