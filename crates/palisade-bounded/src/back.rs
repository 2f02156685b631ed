//! From a run of a translation under SC back to a run of the program on the store-buffer machine.
//!
//! *How.* The run of the translation is read as a *script*. It lists, in order, which thread loads and stores
//! what, which procedures it enters and leaves, and when stores reach memory. Then the program is run by the
//! script. Between the points of the script threads take local steps. These are found by a search, which
//! backtracks where a choice turns out wrong. A script leaves little to choose, so the search is small.

use crate::translate::{Role, Translation};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Effect, Machine, State, Step};
use palisade_program::Value;
use palisade_program::running::{CellId, Code, Instr, System, ThreadId};
use palisade_trace::{Run, take};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// How many states the search may visit.
const MAX_STATES: usize = 300_000;

/// A point of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Point {
    /// A load, from the buffer or from memory.
    Load(CellId, Value),
    /// A store into the buffer.
    Store(CellId, Value),
    /// The oldest pending store reaches memory.
    Update,
    /// A direct effect on memory: in an atomic block, by a locked instruction, or the start of a thread.
    Direct(Effect),
    /// A procedure of the program is entered.
    Enter,
    /// A procedure of the program is left.
    Leave,
}

impl Point {
    /// Whether a step of this instruction with this effect matches the point.
    fn is(self, instr: Option<&Instr>, effect: Effect) -> bool {
        match (self, effect) {
            (Point::Enter, Effect::Local) => matches!(instr, Some(Instr::Call { .. })),
            (Point::Leave, Effect::Local) => matches!(instr, Some(Instr::Return(_))),
            (Point::Load(cell, value), Effect::ReadMemory(c, v) | Effect::ReadBuffer(c, v)) => {
                (cell, value) == (c, v)
            }
            (Point::Store(cell, value), Effect::Buffered(c, v)) => (cell, value) == (c, v),
            (Point::Update, Effect::Updated(..)) => true,
            (Point::Direct(expected), effect) => expected == effect,
            _ => false,
        }
    }
}

/// The run of the program that corresponds to a run of its translation, up to a bad state.
pub(crate) fn back(
    translation: &Translation,
    translated: &System,
    run: &Run,
    original: Machine<'_>,
) -> Option<Run> {
    let script = script(translation, translated, run, original.system)?;
    let memory = run.memory[..original.system.cells.len()].to_vec();
    Search { machine: original, script: &script }.follow(memory)
}

/// Reads a run of a translation.
fn script(
    translation: &Translation,
    translated: &System,
    run: &Run,
    original: &System,
) -> Option<Vec<(ThreadId, Point)>> {
    let machine = Machine::new(translated, palisade_memory::Model::Sc);
    let cells = original.cells.len();
    let is_procedure = |code: &Code| {
        let kept = || original.codes.iter().any(|other| other.name == code.name);
        translation.atomic.contains(&code.name) || kept()
    };
    let replay = take(machine, run).ok()?;
    let mut script = Vec::new();
    // For each thread, its round and the rounds in which its pending stores reach memory.
    let mut rounds: Vec<u32> = Vec::new();
    let mut due: Vec<VecDeque<u32>> = Vec::new();
    for ((step, effect), before) in run.steps.iter().zip(&replay.effects).zip(&replay.states) {
        limits::checkpoint();
        let threads = before.threads.len();
        rounds.resize(threads, 0);
        due.resize(threads, VecDeque::new());
        let id = step.thread.index();
        let Action::Execute { edge, .. } = step.action else { continue };
        let frame = before.threads[step.thread].top();
        let code = &translated.codes[frame.code];
        let args = &frame.registers[translated.privates..];
        let cell = |base: u32, index: Value| CellId::from_index(base as usize + index as usize);
        match (&code.edges()[edge].instr, translation.roles.get(&code.name)) {
            (Instr::Call { code, .. }, _)
                if translation.roles.get(&translated.codes[*code].name) == Some(&Role::Begin) =>
            {
                rounds[id] += 1;
                while due[id].front().is_some_and(|&round| round <= rounds[id]) {
                    due[id].pop_front();
                    script.push((step.thread, Point::Update));
                }
            }
            (Instr::Call { code, .. }, _) if is_procedure(&translated.codes[*code]) => {
                script.push((step.thread, Point::Enter));
            }
            (Instr::Return(_), None) if is_procedure(code) => script.push((step.thread, Point::Leave)),
            (Instr::Return(Some(value)), Some(Role::Load { base })) => {
                let index = if code.params > 0 { args[0] } else { 0 };
                let value = value.eval(&frame.registers).ok()?;
                script.push((step.thread, Point::Load(cell(*base, index), value)));
            }
            (Instr::Return(_), Some(Role::Store { base, array })) => {
                let target = cell(*base, if *array { args[1] } else { 0 });
                // The argument is the value before it wraps around.
                let value = original.cells[target].ty.wrapped(args[0].into()).unwrap_or(args[0]);
                script.push((step.thread, Point::Store(target, value)));
                match translation.delay.map_or(0, |delay| frame.registers[delay]) {
                    0 => script.push((step.thread, Point::Update)),
                    delay => due[id].push_back(rounds[id] + delay as u32),
                }
            }
            (_, role) => {
                let direct = match effect {
                    Effect::ReadMemory(cell, _) | Effect::Wrote(cell, _) => {
                        before.section.is_some() && role.is_none() && cell.index() < cells
                    }
                    Effect::Locked { cell, .. } => cell.index() < cells,
                    Effect::Spawned(_) => true,
                    _ => false,
                };
                if direct {
                    script.push((step.thread, Point::Direct(*effect)));
                }
            }
        }
    }
    Some(script)
}

/// Runs the program by a script.
struct Search<'s> {
    machine: Machine<'s>,
    script: &'s [(ThreadId, Point)],
}

/// A state of the search.
struct Node {
    state: State,
    /// How many points of the script are done.
    done: usize,
    parent: Option<(usize, Step)>,
}

impl Search<'_> {
    fn follow(&self, memory: Vec<Value>) -> Option<Run> {
        let start = Node { state: self.machine.initial_state(&memory)?, done: 0, parent: None };
        let mut known = FxHashSet::from_iter([(start.state.clone(), 0)]);
        let mut nodes = vec![start];
        // Open nodes by the number of points done. Nodes with the most points done are visited first.
        let mut open: Vec<VecDeque<usize>> = vec![VecDeque::new(); self.script.len() + 1];
        open[0].push_back(0);
        let mut most = 0;
        loop {
            let Some(at) = open[most].pop_front() else {
                most = most.checked_sub(1)?;
                continue;
            };
            if self.machine.violation(&nodes[at].state).is_some() {
                return Some(Run { memory, steps: steps_to(&nodes, at) });
            }
            for (step, state, done) in self.moves(&nodes[at]) {
                limits::checkpoint();
                if nodes.len() >= MAX_STATES {
                    return None;
                }
                if known.insert((state.clone(), done)) {
                    open[done].push_back(nodes.len());
                    nodes.push(Node { state, done, parent: Some((at, step)) });
                    most = most.max(done);
                }
            }
        }
    }

    /// The instruction of a step. `None` if the step is a store reaching memory.
    fn instr(&self, node: &Node, step: Step) -> Option<&Instr> {
        let Action::Execute { edge, .. } = step.action else { return None };
        Some(&self.machine.system.codes[node.state.threads[step.thread].top().code].edges()[edge].instr)
    }

    /// The steps that continue the script.
    fn moves(&self, node: &Node) -> Vec<(Step, State, usize)> {
        let next = self.script.get(node.done).copied();
        let holder = node.state.section.map(|section| section.holder);
        let mut moves = Vec::new();
        for successor in self.machine.successors(&node.state) {
            let (thread, effect) = (successor.step.thread, successor.effect);
            let instr = self.instr(node, successor.step);
            // The script records where procedures are entered and left. Otherwise recursion would leave too
            // many choices.
            let local = matches!(effect, Effect::Local | Effect::Fenced | Effect::StoreFenced)
                && !matches!(instr, Some(Instr::Call { .. } | Instr::Return(_)));
            let done = match next {
                Some((own, point)) if own == thread && point.is(instr, effect) => node.done + 1,
                // The next thread of the script gets to its point by local steps. An open section blocks
                // all other threads.
                Some((own, _)) if local && (own == thread || holder == Some(thread)) => node.done,
                // The last access, call or return of a script may be the one that faults. Any fault is a bad
                // state.
                Some((own, _)) if own == thread && matches!(effect, Effect::Faulted(_)) => node.done,
                None if local || matches!(effect, Effect::Faulted(_)) => node.done,
                _ => continue,
            };
            moves.push((successor.step, successor.state, done));
        }
        moves
    }
}

fn steps_to(nodes: &[Node], last: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = last;
    while let Some((parent, step)) = nodes[at].parent {
        steps.push(step);
        at = parent;
    }
    steps.reverse();
    steps
}
