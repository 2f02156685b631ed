//! Thread states by number, and their moves up to the next point where a thread waits.
//!
//! *Guarantee.* A thread waits where it may access memory, start a thread, open or close an atomic section, is at the head of a loop, or where its next step changes what `forbid` properties
//! see. All other steps concern nobody else and come to an end, so they are taken together with the step before them: whatever others do in between they can do before or after.

use crate::views::loop_heads;
use palisade_automata::{After, Hold, Kind, Local, Observer, ThreadMachine};
use palisade_base::{Id, Interner, define_id, limits};
use palisade_memory::{Action, Machine};
use palisade_program::Value;
use palisade_program::running::{CellId, Instr, Liveness, Location, RoleId, System};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;

define_id!(
    /// A thread state.
    LocalId
);

/// A step of a thread together with the local steps after it.
#[derive(Clone, Debug)]
pub(crate) struct Leap {
    pub target: LocalId,
    pub actions: Rc<[Action]>,
}

/// What a thread can do at once.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Where the thread may be afterwards.
    pub leaps: Rc<[Leap]>,
    pub write: Option<(CellId, Value)>,
    /// The thread it starts, before its first step, and whether that may take steps at once.
    pub child: Option<(RoleId, Wakes)>,
}

/// When a new thread takes its first local steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wakes {
    AtOnce,
    /// Its parent is in an atomic section.
    Later,
}

/// A move: its action, and the cell it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub action: Action,
    pub reads: Option<CellId>,
}

/// Thread states and their moves.
pub(crate) struct Tokens<'a> {
    machine: ThreadMachine<'a>,
    observer: Observer,
    locals: Interner<LocalId, Local>,
    /// Where loops close.
    pub heads: Vec<FxHashSet<Location>>,
    moves: FxHashMap<LocalId, Rc<[Move]>>,
    outcomes: FxHashMap<(LocalId, Action, Value), Option<Outcome>>,
    starts: FxHashMap<RoleId, Rc<[Leap]>>,
}

impl<'a> Tokens<'a> {
    /// The threads of a program without recursion, under SC.
    pub fn new(machine: Machine<'a>, liveness: Arc<Liveness>) -> Tokens<'a> {
        Tokens {
            machine: ThreadMachine::new(machine, liveness, usize::MAX, false),
            observer: Observer::new(machine.system),
            locals: Interner::new(),
            heads: machine.system.codes.iter().map(loop_heads).collect(),
            moves: FxHashMap::default(),
            outcomes: FxHashMap::default(),
            starts: FxHashMap::default(),
        }
    }

    /// The program.
    pub fn system(&self) -> &'a System {
        self.machine.machine.system
    }

    /// The machine that takes the steps.
    pub fn machine(&self) -> Machine<'a> {
        self.machine.machine
    }

    /// A thread state.
    pub fn local(&self, id: LocalId) -> &Rc<Local> {
        self.locals.get(id)
    }

    /// How many thread states there are.
    pub fn len(&self) -> usize {
        self.locals.len()
    }

    /// All thread states.
    pub fn iter(&self) -> impl Iterator<Item = &Local> {
        self.locals.iter()
    }

    /// A thread at its start.
    pub fn asleep(&mut self, role: RoleId) -> LocalId {
        let start = self.machine.start(role);
        self.locals.id(start)
    }

    /// Where a thread that starts may come to wait first.
    pub fn starts(&mut self, role: RoleId) -> Rc<[Leap]> {
        if let Some(known) = self.starts.get(&role) {
            return Rc::clone(known);
        }
        let start = self.machine.start(role);
        let leaps = self.run_on(start, None);
        self.starts.insert(role, Rc::clone(&leaps));
        leaps
    }

    /// The same, for a role that was asked for before.
    pub fn known_starts(&self, role: RoleId) -> &[Leap] {
        &self.starts[&role]
    }

    /// The moves of a thread state.
    pub fn moves(&mut self, id: LocalId) -> Rc<[Move]> {
        if let Some(known) = self.moves.get(&id) {
            return Rc::clone(known);
        }
        let local = Rc::clone(self.locals.get(id));
        let mut moves = Vec::new();
        for edge in self.machine.edges(&local) {
            let reads = match self.machine.kind(&local, edge) {
                Kind::Reads(cell) => Some(cell),
                _ => None,
            };
            moves.extend(self.machine.actions(&local, edge).map(|action| Move { action, reads }));
        }
        let moves: Rc<[Move]> = moves.into();
        self.moves.insert(id, Rc::clone(&moves));
        moves
    }

    /// What a move does, with the value it reads; `None` if it is not possible.
    pub fn outcome(&mut self, id: LocalId, mv: Move, value: Value) -> Option<Outcome> {
        let key = (id, mv.action, value);
        if let Some(known) = self.outcomes.get(&key) {
            return known.clone();
        }
        let local = Rc::clone(self.locals.get(id));
        let after = self.machine.step(&local, mv.action, mv.reads.map(|cell| (cell, value)));
        let outcome = after.map(|After { local, write, child }| {
            let wakes = if local.hold == Hold::Outside { Wakes::AtOnce } else { Wakes::Later };
            let child = child.map(|child| (child.thread.role, wakes));
            Outcome { leaps: self.run_on(local, Some(mv.action)), write, child }
        });
        self.outcomes.insert(key, outcome.clone());
        outcome
    }

    /// Runs on through local steps to where the thread waits.
    fn run_on(&mut self, local: Local, first: Option<Action>) -> Rc<[Leap]> {
        let mut leaps: Vec<Leap> = Vec::new();
        let mut seen: FxHashSet<Local> = FxHashSet::default();
        let mut work = vec![(local, Vec::from_iter(first))];
        while let Some((local, actions)) = work.pop() {
            limits::go_on();
            if !seen.insert(local.clone()) {
                continue;
            }
            match self.passes_through(&local) {
                Some(steps) => {
                    for (action, next) in steps.into_iter().rev() {
                        work.push((next, actions.iter().copied().chain([action]).collect()));
                    }
                }
                None => leaps.push(Leap { target: self.locals.id(local), actions: actions.into() }),
            }
        }
        leaps.into()
    }

    /// The local steps of a thread state that does not wait.
    fn passes_through(&self, local: &Local) -> Option<Vec<(Action, Local)>> {
        let top = local.thread.top();
        if local.fault.is_some() || self.heads[top.code.index()].contains(&top.location) {
            return None;
        }
        let view = self.observer.view(local);
        let code = &self.system().codes[top.code];
        let mut steps = Vec::new();
        for edge in self.machine.edges(local) {
            let sections = matches!(code.edges()[edge].instr, Instr::AtomicBegin | Instr::AtomicEnd);
            if sections || self.machine.kind(local, edge) != Kind::Local {
                return None;
            }
            for action in self.machine.actions(local, edge) {
                let Some(after) = self.machine.step(local, action, None) else { continue };
                if after.local.fault.is_some() || self.observer.view(&after.local) != view {
                    return None;
                }
                steps.push((action, after.local));
            }
        }
        (!steps.is_empty()).then_some(steps)
    }
}
