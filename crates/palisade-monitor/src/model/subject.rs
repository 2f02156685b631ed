//! A model program whose processes take steps one by one, for the search of `palisade-dpor`.
//!
//! A step here is one access to shared memory (a load, a store, a locked instruction or a whole atomic
//! section), followed by the local steps of the same process up to its next access. Local steps include
//! fences, which do nothing under sequential consistency, and starting processes. A process begins with a
//! step that only runs up to its first access.
//!
//! *Guarantee.* Every sequentially consistent run of the program has its accesses in some execution here.
//! There are more executions than runs: where the machine would stop all processes or make a process wait,
//! only that process stops here, after an access that
//! - loads a value that its register does not accept, or one that causes a fault;
//! - is an atomic section that does not reach its end.
//!
//! So what holds for all executions here holds for the program. Whether an execution here is also a run of
//! the program is decided by the machine of `palisade-memory`.
//!
//! Failing assertions and other faults of local steps only end their process: the run in which that step is
//! not taken is also a run.

use crate::event::Access;
use palisade_base::{Id, limits};
use palisade_dpor::{Footprint, Mode, Next, Subject, Touch};
use palisade_engine::Limits;
use palisade_memory::{Action, Effect, Machine, Refusal, State, Step};
use palisade_program::running::{Address, CellId, CodeId, EdgeId, Instr, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// The maximum number of local states to follow between two accesses, or inside an atomic section.
const MAX_LOCAL: usize = 20_000;
/// The limits are checked once per this many local steps.
const CHECK_EVERY: usize = 64;

/// Cells that are accessed, in order, and whether they are written.
pub type Cells = Vec<(CellId, bool)>;

/// What a step did to memory or to other processes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StepEvent {
    /// An access to a cell.
    Access(Access, CellId),
    /// An atomic section: its accesses in order, and whether they write.
    Section(Cells),
    /// A full fence.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// It started a process.
    Spawn(usize),
}

/// A step that was taken.
#[derive(Clone, Debug)]
pub struct ExecutedStep {
    /// The process.
    pub process: usize,
    /// The steps of the machine, all of the same thread.
    pub steps: Vec<Step>,
    /// A step at which the process stopped, because the machine refused it or it was a fault. It has read
    /// memory, but it is not among the steps.
    pub attempt: Option<Step>,
    /// What happened, and after how many of the steps.
    pub events: Vec<(StepEvent, usize)>,
}

impl ExecutedStep {
    /// The cells it accesses, and whether it writes them.
    pub fn cells(&self) -> Cells {
        match self.events.first() {
            Some((StepEvent::Access(access, cell), _)) => vec![(*cell, access.writes())],
            Some((StepEvent::Section(cells), _)) => cells.clone(),
            _ => Vec::new(),
        }
    }
}

/// A model program under exploration.
pub struct Model<'a> {
    machine: Machine<'a>,
    points: Vec<Point>,
    /// The steps taken so far.
    pub taken: Vec<ExecutedStep>,
    /// The processes that were started: the parent, and the index among its children.
    names: Vec<Option<(usize, u32)>>,
    footprints: FxHashMap<(CodeId, EdgeId), Footprint>,
    /// The outcomes that were computed last, with the number of steps before them and the process.
    computed: Option<(usize, usize, Vec<Outcome>)>,
    /// Whether some process could have continued locally for longer than it was followed.
    pub bounded: bool,
    /// Local steps end when these are exceeded. The code that runs the executions checks them too.
    limits: &'a Limits,
}

/// The current point of an execution.
#[derive(Clone)]
struct Point {
    state: State,
    /// By number; `None` for processes that do not exist yet.
    processes: Vec<Option<Process>>,
}

#[derive(Clone)]
struct Process {
    thread: ThreadId,
    ahead: Ahead,
    children: u32,
}

/// What a process does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ahead {
    /// It has not begun.
    Begin,
    /// An access.
    Edge(EdgeId),
    /// Nothing: it has stopped.
    Nothing,
}

/// One possible continuation of a step.
#[derive(Clone)]
struct Outcome {
    point: Point,
    taken: ExecutedStep,
    started: Vec<usize>,
    /// The accesses of the open section.
    section: Cells,
}

impl<'a> Model<'a> {
    /// The program at an initial state. The machine must be sequentially consistent.
    pub fn new(machine: Machine<'a>, state: State, limits: &'a Limits) -> Model<'a> {
        let process = |thread| Some(Process { thread, ahead: Ahead::Begin, children: 0 });
        let processes: Vec<_> = state.threads.ids().map(process).collect();
        Model {
            machine,
            names: vec![None; processes.len()],
            points: vec![Point { state, processes }],
            taken: Vec::new(),
            footprints: FxHashMap::default(),
            computed: None,
            bounded: false,
            limits,
        }
    }

    fn now(&self) -> &Point {
        self.points.last().expect("there is a first point")
    }

    fn process(&self, process: usize) -> Option<&Process> {
        self.now().processes.get(process)?.as_ref()
    }

    /// All outcomes of the next step of a process.
    fn advance(&mut self, process: usize) -> Vec<Outcome> {
        let point = self.now().clone();
        let Process { thread, ahead, .. } = point.processes[process].clone().expect("the process exists");
        let taken = ExecutedStep { process, steps: Vec::new(), attempt: None, events: Vec::new() };
        let mut begin = Outcome { point, taken, started: Vec::new(), section: Vec::new() };
        let Ahead::Edge(edge) = ahead else { return self.run_to_access(begin) };
        let step = Step { thread, action: Action::Execute { edge, choice: None } };
        match self.machine.step(&begin.point.state, step) {
            Ok((state, effect)) if state.fault.is_none() => {
                begin.point.state = state;
                begin.taken.steps.push(step);
                if let Some(what) = access(effect) {
                    begin.taken.events.push((what, 1));
                }
                self.run_to_access(begin)
            }
            _ => {
                let (read, attempt) = (self.faulting_read(&begin.point.state, step), Some(step));
                let events =
                    read.map(|(access, cell)| (StepEvent::Access(access, cell), 0)).into_iter().collect();
                begin.taken = ExecutedStep { attempt, events, ..begin.taken };
                begin.stop(thread);
                vec![begin]
            }
        }
    }

    /// Runs a process to its next access, in all possible ways.
    fn run_to_access(&mut self, begin: Outcome) -> Vec<Outcome> {
        let process = begin.taken.process;
        let thread = begin.point.processes[process].as_ref().expect("the process exists").thread;
        let mut ends: Vec<Outcome> = Vec::new();
        let mut known: FxHashSet<(State, Vec<StepEvent>, Cells)> = FxHashSet::default();
        // Points from which the process might loop forever without another access: those right after starting
        // a process, and the last one.
        let mut rounds: Vec<Outcome> = Vec::new();
        let mut loops = false;
        let mut last = begin.clone();
        let mut queue = VecDeque::from([begin]);
        while let Some(here) = queue.pop_front() {
            limits::checkpoint();
            let events = here.taken.events.iter().map(|(what, _)| what.clone()).collect();
            if !known.insert((here.point.state.clone(), events, here.section.clone())) {
                loops = true;
                continue;
            }
            let ran_out = known.len().is_multiple_of(CHECK_EVERY) && self.limits.check(0).is_err();
            if known.len() > MAX_LOCAL || ran_out {
                self.bounded = true;
                loops = true;
                break;
            }
            if matches!(here.taken.events.last(), Some((StepEvent::Spawn(_), after)) if *after == here.taken.steps.len())
            {
                rounds.push(here.clone());
            }
            last.clone_from(&here);
            let inside = here.point.state.section.is_some();
            let top = here.point.state.threads[thread].top();
            let code = &self.machine.system.codes[top.code];
            let mut continued = false;
            for edge in code.edges_from(top.location).map(EdgeId) {
                let instr = &code.edges()[edge].instr;
                if !inside && is_access(instr) {
                    let mut end = here.clone();
                    end.point.processes[process].as_mut().expect("it exists").ahead = Ahead::Edge(edge);
                    ends.push(end);
                    continued = true;
                    continue;
                }
                let choices: Vec<Option<i64>> = match instr {
                    Instr::Havoc(_, lo, hi) => (*lo..=*hi).map(Some).collect(),
                    _ => vec![None],
                };
                for choice in choices {
                    let step = Step { thread, action: Action::Execute { edge, choice } };
                    match self.machine.step(&here.point.state, step) {
                        Ok((state, effect)) if state.fault.is_none() => {
                            queue.push_back(self.after(&here, step, state, effect));
                            continued = true;
                        }
                        // The section has read the value on which it fails or blocks.
                        Ok(_) | Err(Refusal::Blocked) if inside => {
                            let mut end = here.clone();
                            end.taken.attempt = Some(step);
                            let read = self.faulting_read(&here.point.state, step);
                            end.section.extend(read.map(|(_, cell)| (cell, false)));
                            end.stop(thread);
                            ends.push(end);
                            continued = true;
                        }
                        _ => {}
                    }
                }
            }
            if !continued {
                let mut end = here;
                end.stop(thread);
                ends.push(end);
            }
        }
        if loops {
            rounds.push(last);
            for mut end in rounds {
                end.stop(thread);
                ends.push(end);
            }
        }
        // A process that stops does no more than one that continues and is not observed any further, unless
        // it has started a process or is inside a section.
        let continues = |end: &Outcome| {
            end.point.processes[process].as_ref().is_some_and(|process| process.ahead != Ahead::Nothing)
        };
        if ends.iter().any(continues) {
            let plain = |end: &Outcome| {
                end.started.is_empty() && end.taken.events.len() <= 1 && end.taken.attempt.is_none()
            };
            let same_access = |a: &Outcome, b: &Outcome| a.taken.events.first() == b.taken.events.first();
            let kept: Vec<Outcome> = ends.iter().filter(|end| continues(end)).cloned().collect();
            ends.retain(|end| {
                continues(end) || !plain(end) || !kept.iter().any(|other| same_access(end, other))
            });
        }
        ends
    }

    /// The outcome after one more step of the machine.
    fn after(&mut self, here: &Outcome, step: Step, state: State, effect: Effect) -> Outcome {
        let mut next = here.clone();
        let was_inside = here.point.state.section.is_some();
        next.taken.steps.push(step);
        let steps = next.taken.steps.len();
        match effect {
            Effect::ReadMemory(cell, _) if was_inside => next.section.push((cell, false)),
            Effect::Wrote(cell, _) if was_inside => next.section.push((cell, true)),
            Effect::Locked { cell, wrote, .. } if was_inside => next.section.push((cell, wrote.is_some())),
            Effect::Fenced if !was_inside => next.taken.events.push((StepEvent::Fence, steps)),
            Effect::StoreFenced if !was_inside => next.taken.events.push((StepEvent::StoreFence, steps)),
            Effect::Spawned(child) => {
                let process = next.point.processes[next.taken.process].as_mut().expect("it exists");
                process.children += 1;
                let number = self.number((next.taken.process, process.children));
                let processes = &mut next.point.processes;
                if processes.len() <= number {
                    processes.resize(number + 1, None);
                }
                processes[number] = Some(Process { thread: child, ahead: Ahead::Begin, children: 0 });
                next.started.push(number);
                next.taken.events.push((StepEvent::Spawn(number), steps));
            }
            _ => {}
        }
        let is_inside = state.section.is_some();
        next.point.state = state;
        if was_inside && !is_inside {
            next.end_section();
        }
        next
    }

    /// The number of a process that another starts.
    fn number(&mut self, name: (usize, u32)) -> usize {
        let known = self.names.iter().position(|known| *known == Some(name));
        known.unwrap_or_else(|| {
            self.names.push(Some(name));
            self.names.len() - 1
        })
    }

    /// What a load or locked instruction read if it was refused or ended in a fault.
    fn faulting_read(&self, state: &State, step: Step) -> Option<(Access, CellId)> {
        let Action::Execute { edge, .. } = step.action else { return None };
        let top = state.threads[step.thread].top();
        let (access, address) = match &self.machine.system.codes[top.code].edges()[edge].instr {
            Instr::Load(_, address) => (Access::Load, address),
            Instr::Locked { address, .. } => (Access::LockedLoad, address),
            _ => return None,
        };
        Some((access, self.machine.resolve(address, &top.registers).ok()?))
    }

    /// What an access may touch.
    fn footprint(&mut self, thread: ThreadId, edge: EdgeId) -> Footprint {
        let top = self.now().state.threads[thread].top();
        let (code, registers) = (top.code, top.registers.clone());
        let touch = |cell: Option<CellId>, mode| match cell {
            Some(cell) => Footprint::one(cell.index() as u64, 1, mode),
            None => Footprint::nothing(),
        };
        match &self.machine.system.codes[code].edges()[edge].instr {
            Instr::Load(_, address) => touch(self.machine.resolve(address, &registers).ok(), Mode::Read),
            Instr::Store(address, _) | Instr::Locked { address, .. } => {
                touch(self.machine.resolve(address, &registers).ok(), Mode::Write)
            }
            _ => {
                let machine = self.machine;
                let known = self.footprints.entry((code, edge));
                known.or_insert_with(|| section_footprint(machine, code, edge)).clone()
            }
        }
    }
}

impl Outcome {
    /// Stops the process. If a section is open, it is closed, so that others can continue.
    fn stop(&mut self, thread: ThreadId) {
        if self.point.state.section.take().is_some() {
            self.end_section();
        }
        let is_own = |process: &&mut Process| process.thread == thread;
        if let Some(process) = self.point.processes.iter_mut().flatten().find(is_own) {
            process.ahead = Ahead::Nothing;
        }
    }

    /// Turns the section into an event, before the processes that it started.
    fn end_section(&mut self) {
        let accesses = std::mem::take(&mut self.section);
        let steps = self.taken.steps.len();
        // The step before a section is a separate step of the search, so all events so far are from inside
        // the section.
        for (_, after) in &mut self.taken.events {
            *after = steps;
        }
        self.taken.events.insert(0, (StepEvent::Section(accesses), steps));
    }
}

/// Instructions that other processes can see.
fn is_access(instr: &Instr) -> bool {
    matches!(instr, Instr::Load(..) | Instr::Store(..) | Instr::Locked { .. } | Instr::AtomicBegin)
}

fn access(effect: Effect) -> Option<StepEvent> {
    match effect {
        Effect::ReadMemory(cell, _) | Effect::ReadBuffer(cell, _) => {
            Some(StepEvent::Access(Access::Load, cell))
        }
        Effect::Wrote(cell, _) => Some(StepEvent::Access(Access::Store, cell)),
        Effect::Locked { cell, wrote: Some(_), .. } => Some(StepEvent::Access(Access::Locked, cell)),
        Effect::Locked { cell, wrote: None, .. } => Some(StepEvent::Access(Access::LockedLoad, cell)),
        _ => None,
    }
}

/// Everything that an atomic section may touch, whatever it reads: everything on the paths from its beginning
/// to its end, and in the procedures that it calls.
fn section_footprint(machine: Machine<'_>, code: CodeId, begin: EdgeId) -> Footprint {
    let system = machine.system;
    let mut touches: Vec<Touch> = Vec::new();
    let mut codes: Vec<CodeId> = Vec::new();
    let mut visit = |instr: &Instr, codes: &mut Vec<CodeId>| {
        let (address, mode) = match instr {
            Instr::Load(_, address) => (address, Mode::Read),
            Instr::Store(address, _) | Instr::Locked { address, .. } => (address, Mode::Write),
            Instr::Call { code, .. } => {
                codes.push(*code);
                return;
            }
            _ => return,
        };
        let (first, size) = match address {
            Address::Cell(cell) => (cell.index() as u64, 1),
            Address::Element { base, len, .. } => (base.index() as u64, u64::from(*len)),
            Address::Pointer(_) => (0, system.cells.len() as u64),
        };
        let touch = Touch { address: first, size, mode, own: None };
        if !touches.contains(&touch) {
            touches.push(touch);
        }
    };
    let own = &system.codes[code];
    let mut known = FxHashSet::default();
    let mut work = vec![(own.edges()[begin].target, 1u32)];
    while let Some((location, depth)) = work.pop() {
        limits::checkpoint();
        if depth == 0 || !known.insert((location, depth)) {
            continue;
        }
        for edge in own.edges_from(location).map(EdgeId) {
            let edge = &own.edges()[edge];
            visit(&edge.instr, &mut codes);
            let depth = match edge.instr {
                Instr::AtomicBegin => depth + 1,
                Instr::AtomicEnd => depth - 1,
                _ => depth,
            };
            work.push((edge.target, depth));
        }
    }
    let mut called = FxHashSet::default();
    while let Some(code) = codes.pop() {
        if called.insert(code) {
            system.codes[code].edges().iter().for_each(|edge| visit(&edge.instr, &mut codes));
        }
    }
    Footprint { touches: touches.into(), ..Footprint::nothing() }
}

impl Subject for Model<'_> {
    fn processes(&self) -> usize {
        self.now().processes.len()
    }

    fn next(&mut self, process: usize) -> Next {
        match self.process(process).map(|process| (process.thread, process.ahead)) {
            None | Some((_, Ahead::Nothing)) => Next::Nothing,
            Some((_, Ahead::Begin)) => Next::Ready(Footprint::nothing().into()),
            Some((thread, Ahead::Edge(edge))) => Next::Ready(self.footprint(thread, edge).into()),
        }
    }

    fn outcomes(&mut self, process: usize) -> usize {
        let outcomes = self.advance(process);
        let count = outcomes.len();
        self.computed = Some((self.taken.len(), process, outcomes));
        count
    }

    fn step(&mut self, process: usize, outcome: usize) -> Vec<usize> {
        let computed =
            self.computed.take_if(|computed| (computed.0, computed.1) == (self.taken.len(), process));
        let mut outcomes = computed.map_or_else(|| self.advance(process), |(_, _, outcomes)| outcomes);
        let Outcome { point, taken, started, .. } = outcomes.swap_remove(outcome);
        self.points.push(point);
        self.taken.push(taken);
        started
    }

    fn rewind(&mut self, steps: usize) {
        self.points.truncate(steps + 1);
        self.taken.truncate(steps);
        self.computed = None;
    }

    fn position(&self) -> usize {
        self.taken.len()
    }
}
