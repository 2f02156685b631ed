//! The thread automaton: thread states by number, and their moves, worked out on demand.
//!
//! The search never evaluates an expression. It looks up, by number, what a thread state does next: each [`Move`] names the cell it reads or
//! writes, and for each value read, the possible targets. All of this is worked out once per thread state, not once per global
//! state, and only when the search first asks for it.
//!
//! *Invariants*
//! 1. Numbers and tables only grow, so what was looked up stays valid.
//! 2. Number 0 is "no thread"; it has no moves.
//! 3. The moves of a thread state begin with its updates.
//!
//! *Stuck threads.* A thread that can never take a step again, whatever memory holds, is told from another such thread only by what properties see of it. All that look the same have one number. In programs translated
//! from TSO to SC these are the processes that have no rounds left.

use crate::codes::Codes;
use crate::footprint::{Cells, Footprint, Footprints, Reach, only};
use hashbrown::HashTable;
use palisade_automata::{After, Hold, Kind, Local, ThreadMachine};
use palisade_automata::{MOST_FRAMES, Runs, Stop, run_on};
use palisade_automata::{Observer, View};
use palisade_base::{Id, limits};
use palisade_memory::Action;
use palisade_program::Value;
use palisade_program::running::{CellId, RoleId};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// A thread state by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LocalId(pub u32);

impl LocalId {
    /// No thread.
    pub const NONE: LocalId = LocalId(0);
}

/// Values of a cell that are tried to find out whether a thread is stuck.
const MOST_VALUES: u64 = 16;

/// No value.
pub(crate) const NOTHING: u32 = u32::MAX;

/// What the search needs to know of a thread state at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    /// Its moves, once known: updates first.
    first_move: u32,
    moves: u32,
    pub updates: u32,
    /// Whether it is inside an atomic section.
    pub entered: bool,
    /// Whether it is armed for a section, or in one.
    pub holds: bool,
    /// Whether a `forbid` looks at threads of this role, and it is armed: nothing can be judged.
    pub unjudged: bool,
    /// Whether it is at a location a `forbid` looks at.
    pub at_seen: bool,
    pub faulted: bool,
    /// How often in a row the local steps of the thread were cut off, up to here, when it came here first. 0: it waits for something here.
    pub cuts: u32,
    /// Whether it has run to its end and its buffer is empty.
    pub finished: bool,
    pub buffer_empty: bool,
    /// Whether all its next instructions are loads.
    pub only_loads: bool,
    /// What its next instructions access.
    pub next: Footprint,
    /// What it, and the threads it starts, may ever access.
    pub future: Footprint,
    /// What the threads it starts may ever access.
    pub children: Footprint,
}

impl Info {
    fn unknown(reach: Reach) -> Info {
        Info {
            first_move: 0,
            moves: NOTHING,
            updates: 0,
            entered: false,
            holds: false,
            unjudged: false,
            at_seen: false,
            faulted: false,
            cuts: 0,
            finished: false,
            buffer_empty: true,
            only_loads: true,
            next: Footprint::default(),
            future: reach.all,
            children: reach.children,
        }
    }
}

/// One thing a thread state can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    /// The cell it accesses; `NOTHING` for none.
    pub cell: u32,
    /// Whether the outcome depends on the cell's value.
    pub reads: bool,
    /// The thread state it belongs to.
    local: LocalId,
    /// What it is.
    pub action: Action,
    /// Where its outcomes are.
    table: u32,
}

impl Move {
    /// The cell as a set.
    pub fn cells(&self) -> Cells {
        if self.cell == NOTHING { 0 } else { only(CellId(self.cell)) }
    }
}

/// Where a move may lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub local: LocalId,
    /// The code of the value written to the move's cell; `NOTHING` for none.
    pub write: u32,
    /// A thread that was started.
    pub child: LocalId,
    /// Whether properties see a change.
    pub visible: bool,
}

/// Something the tables do not hold yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Need {
    /// The moves of a thread state.
    Moves(LocalId),
    /// The outcomes of a move for a value code.
    Outcome(u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
}

const UNKNOWN: Span = Span { start: 0, len: NOTHING };

/// Thread states and moves found so far.
pub(crate) struct Automaton<'a> {
    pub machine: ThreadMachine<'a>,
    pub observer: Observer,
    pub codes: Codes,
    footprints: Footprints,
    /// Whether local steps are collapsed.
    collapse: bool,
    /// Roles whose threads leave no trace when they finish.
    vanishing: Vec<bool>,
    locals: Vec<Local>,
    index: HashTable<u32>,
    /// Thread states that are stuck for ever: the numbers that stand for them, with what is seen of them, and all that were met.
    stuck: Vec<(RoleId, View, LocalId)>,
    known_stuck: FxHashMap<Local, LocalId>,
    infos: Vec<Info>,
    moves: Vec<Move>,
    tables: Vec<Vec<Span>>,
    targets: Vec<Target>,
    /// Whether some thread wanted a longer buffer than allowed.
    pub bound_hit: bool,
    /// Whether some thread called deeper than allowed.
    pub too_deep: bool,
    bytes: u64,
}

impl<'a> Automaton<'a> {
    pub fn new(machine: ThreadMachine<'a>, collapse: bool) -> Automaton<'a> {
        let system = machine.machine.system;
        let observer = Observer::new(system);
        let started = |role: RoleId| system.instances.iter().any(|instance| instance.role == role);
        let vanishing = system.roles.ids().map(|role| collapse && !started(role) && !observer.looks_at(role));
        let mut automaton = Automaton {
            vanishing: vanishing.collect(),
            footprints: Footprints::new(system),
            codes: Codes::new(system),
            observer,
            machine,
            collapse,
            locals: Vec::new(),
            index: HashTable::new(),
            stuck: Vec::new(),
            known_stuck: FxHashMap::default(),
            infos: Vec::new(),
            moves: Vec::new(),
            tables: Vec::new(),
            targets: Vec::new(),
            bound_hit: false,
            too_deep: false,
            bytes: 0,
        };
        // Number 0: any thread state will do, since it is never looked at.
        automaton.locals.push(automaton.machine.start(RoleId(0)));
        automaton.infos.push(Info { moves: 0, finished: true, ..Info::unknown(Reach::default()) });
        automaton
    }

    /// The thread states in which a thread of a role can wait at first.
    pub fn starts(&mut self, role: RoleId) -> Vec<LocalId> {
        let local = self.machine.start(role);
        let stops = self.settle(None, After { local, write: None, child: None });
        stops.into_iter().map(|stop| self.number_stop(stop, 0)).collect()
    }

    /// How many thread states there are.
    pub fn len(&self) -> usize {
        self.locals.len()
    }

    /// Roughly how much memory the tables take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn local(&self, id: LocalId) -> &Local {
        &self.locals[id.0 as usize]
    }

    pub fn info(&self, id: LocalId) -> &Info {
        &self.infos[id.0 as usize]
    }

    /// The moves of a thread state with their numbers, if known.
    pub fn moves(&self, info: &Info) -> Option<(u32, &[Move])> {
        let first = info.first_move as usize;
        (info.moves != NOTHING).then(|| (info.first_move, &self.moves[first..first + info.moves as usize]))
    }

    /// Where a move leads for the code of the value it reads (0 if it reads none), if known.
    pub fn outcome(&self, mv: &Move, code: u32) -> Option<&[Target]> {
        let span = *self.tables[mv.table as usize].get(code as usize)?;
        (span.len != NOTHING).then(|| &self.targets[span.start as usize..(span.start + span.len) as usize])
    }

    /// Works out something the search asked for.
    pub fn supply(&mut self, need: Need) {
        match need {
            Need::Moves(id) => self.supply_moves(id),
            Need::Outcome(mv, code) => self.supply_outcome(mv, code),
        }
    }

    fn supply_moves(&mut self, id: LocalId) {
        if self.infos[id.0 as usize].moves != NOTHING {
            return;
        }
        let local = self.locals[id.0 as usize].clone();
        let first = self.moves.len() as u32;
        for position in 0..local.thread.buffer.len() {
            let action = Action::Update { position };
            if let Some(after) = self.machine.step(&local, action, None) {
                let cell = after.write.expect("an update writes").0;
                let number = self.add_move(id, action, Kind::Writes(cell));
                self.fill(number, 0, after);
            }
        }
        let updates = self.moves.len() as u32 - first;
        let mut only_loads = true;
        let mut next = Footprint::default();
        // A thread that called too deep after it had changed something is there for what it changed: its pending stores reach memory, and it does nothing else.
        let too_deep = local.thread.frames.len() > MOST_FRAMES;
        for edge in self.machine.edges(&local).filter(|_| !too_deep) {
            let kind = self.machine.kind(&local, edge);
            let loads = self.machine.is_load(&local, edge);
            only_loads &= loads;
            match kind {
                Kind::BufferFull => {
                    self.bound_hit = true;
                    continue;
                }
                Kind::Reads(cell) => {
                    next.reads |= only(cell);
                    next.writes |= if loads { 0 } else { only(cell) };
                }
                Kind::ReadsOwn(cell) => next.reads |= only(cell),
                Kind::Writes(cell) => next.writes |= only(cell),
                Kind::Local | Kind::Spawns | Kind::Fences | Kind::StoreFences => {}
            }
            for action in self.machine.actions(&local, edge) {
                if matches!(kind, Kind::Reads(_)) {
                    self.add_move(id, action, kind);
                } else if let Some(after) = self.machine.step(&local, action, None) {
                    let number = self.add_move(id, action, kind);
                    self.fill(number, 0, after);
                }
            }
        }
        let moves = self.moves.len() as u32 - first;
        let info = &mut self.infos[id.0 as usize];
        *info = Info { first_move: first, moves, updates, only_loads, next, ..*info };
    }

    fn add_move(&mut self, local: LocalId, action: Action, kind: Kind) -> u32 {
        let (cell, reads) = match kind {
            Kind::Reads(cell) => (cell.0, true),
            Kind::Writes(cell) => (cell.0, false),
            _ => (NOTHING, false),
        };
        self.moves.push(Move { cell, reads, local, action, table: self.tables.len() as u32 });
        self.tables.push(Vec::new());
        self.bytes += (size_of::<Move>() + size_of::<Vec<Span>>()) as u64;
        self.moves.len() as u32 - 1
    }

    fn supply_outcome(&mut self, number: u32, code: u32) {
        let mv = self.moves[number as usize];
        if self.outcome(&mv, code).is_some() {
            return;
        }
        let cell = CellId(mv.cell);
        let value = self.codes.value(cell, code);
        let local = self.locals[mv.local.0 as usize].clone();
        match self.machine.step(&local, mv.action, Some((cell, value))) {
            Some(after) => self.fill(number, code, after),
            None => self.set_outcome(number, code, &[]),
        }
    }

    /// Fills in the outcome of a move.
    fn fill(&mut self, number: u32, code: u32, after: After) {
        let source = self.locals[self.moves[number as usize].local.0 as usize].clone();
        let write = after.write.map_or(NOTHING, |(cell, value)| self.codes.code(cell, value));
        let children = match after.child.clone() {
            None => vec![LocalId::NONE],
            // Inside an atomic section nobody else runs, not even locally.
            Some(child) if matches!(after.local.hold, Hold::Entered(_)) => vec![self.number(child)],
            Some(child) => self.starts(child.thread.role),
        };
        let writes_seen = after.write.is_some_and(|(cell, _)| self.observer.cells.contains(&cell));
        let view = self.observer.view(&source);
        let cuts = self.infos[self.moves[number as usize].local.0 as usize].cuts;
        let stops = self.settle(Some(&source), after);
        let mut targets = Vec::new();
        for stop in stops {
            let visible = writes_seen || self.observer.view(&stop.local) != view;
            let local = self.number_stop(stop, cuts);
            targets.extend(children.iter().map(|&child| Target { local, write, child, visible }));
        }
        self.set_outcome(number, code, &targets);
    }

    fn set_outcome(&mut self, number: u32, code: u32, targets: &[Target]) {
        let span = Span { start: self.targets.len() as u32, len: targets.len() as u32 };
        self.targets.extend_from_slice(targets);
        let table = &mut self.tables[self.moves[number as usize].table as usize];
        if table.len() <= code as usize {
            table.resize(code as usize + 1, UNKNOWN);
        }
        table[code as usize] = span;
        self.bytes += (size_of_val(targets) + size_of::<Span>()) as u64;
    }

    /// Runs a thread on to where it waits.
    fn settle(&mut self, source: Option<&Local>, after: After) -> Vec<Stop> {
        if !self.collapse {
            let too_deep = after.local.thread.frames.len() > MOST_FRAMES;
            self.too_deep |= too_deep;
            let stop = Stop { local: after.local, steps: Vec::new(), armed: 0, cut: false };
            return if too_deep { Vec::new() } else { vec![stop] };
        }
        let Runs { stops, too_deep } = run_on(&self.machine, &self.observer, source, after);
        self.too_deep |= too_deep;
        stops
    }

    /// The local steps with which a thread of a role runs on from its start to a target, for witnesses.
    pub fn steps_from_start(&mut self, role: RoleId, target: LocalId) -> Stop {
        let after = After { local: self.machine.start(role), write: None, child: None };
        self.steps_to(None, after, target)
    }

    /// The local steps with which a thread runs on from an action to a target, for witnesses.
    pub fn steps_after(
        &mut self,
        source: LocalId,
        action: Action,
        read: Option<(CellId, Value)>,
        target: LocalId,
    ) -> Stop {
        let source = self.local(source).clone();
        let after =
            self.machine.step(&source, action, read).expect("the move was possible during the search");
        self.steps_to(Some(&source), after, target)
    }

    fn steps_to(&mut self, source: Option<&Local>, after: After, target: LocalId) -> Stop {
        let stops = self.settle(source, after);
        let found = stops.into_iter().find(|stop| self.number(stop.local.clone()) == target);
        found.expect("the target was reached during the search")
    }

    /// The number of a thread state where a thread stops, after its local steps were cut off so many times in a row.
    fn number_stop(&mut self, stop: Stop, cuts: u32) -> LocalId {
        let known = self.locals.len();
        let id = self.number(stop.local);
        if self.locals.len() > known {
            self.infos[id.0 as usize].cuts = if stop.cut { cuts + 1 } else { 0 };
        }
        id
    }

    /// The number of a thread state.
    fn number(&mut self, local: Local) -> LocalId {
        limits::go_on();
        let system = self.machine.machine.system;
        let finished =
            local.fault.is_none() && local.thread.buffer.is_empty() && local.thread.has_ended(system);
        if finished && self.vanishing[local.thread.role.index()] {
            return LocalId::NONE;
        }
        let hash = FxBuildHasher.hash_one(&local);
        let locals = &self.locals;
        if let Some(&id) = self.index.find(hash, |&id| locals[id as usize] == local) {
            return LocalId(id);
        }
        let stuck = self.collapse && !finished && self.is_stuck(&local);
        if stuck && let Some(alike) = self.stuck_like(&local) {
            return alike;
        }
        let reach = if stuck { Reach::default() } else { self.footprints.of(&local.thread) };
        let id = self.locals.len() as u32;
        let looked_at = self.observer.looks_at(local.thread.role);
        self.infos.push(Info {
            entered: matches!(local.hold, Hold::Entered(_)),
            holds: local.hold != Hold::Outside,
            unjudged: looked_at && matches!(local.hold, Hold::Armed(_)),
            at_seen: self.observer.is_at_seen_location(&local),
            faulted: local.fault.is_some(),
            finished,
            buffer_empty: local.thread.buffer.is_empty(),
            ..Info::unknown(reach)
        });
        self.bytes += size_in_memory(&local) + size_of::<Info>() as u64 + 8;
        self.locals.push(local);
        let locals = &self.locals;
        self.index.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(&locals[id as usize]));
        LocalId(id)
    }

    /// Whether a thread that has not come to its end can never take a step again.
    fn is_stuck(&self, local: &Local) -> bool {
        if local.fault.is_some() || local.hold != Hold::Outside || !local.thread.buffer.is_empty() {
            return false;
        }
        let machine = &self.machine;
        machine.edges(local).all(|edge| {
            let blocked =
                |read| machine.actions(local, edge).all(|action| machine.step(local, action, read).is_none());
            match machine.kind(local, edge) {
                Kind::Local => blocked(None),
                Kind::Reads(cell) if !machine.is_load(local, edge) => {
                    let bounds = machine.machine.system.cells[cell].ty.domain.bounds();
                    let few = bounds.filter(|(lo, hi)| hi.abs_diff(*lo) < MOST_VALUES);
                    few.is_some_and(|(lo, hi)| (lo..=hi).all(|value| blocked(Some((cell, value)))))
                }
                _ => false,
            }
        })
    }

    /// The number of a stuck thread state that looks the same, if there is one; else the next number will stand for it.
    fn stuck_like(&mut self, local: &Local) -> Option<LocalId> {
        if let Some(&known) = self.known_stuck.get(local) {
            return Some(known);
        }
        let (role, view) = (local.thread.role, self.observer.view(local));
        let alike = self.stuck.iter().find(|(r, v, _)| *r == role && *v == view).map(|&(_, _, id)| id);
        match alike {
            Some(alike) => _ = self.known_stuck.insert(local.clone(), alike),
            None => self.stuck.push((role, view, LocalId(self.locals.len() as u32))),
        }
        alike
    }

    /// The register that holds the most different values, and how many, for the message when thread states do not stop coming.
    pub fn most_varied_register(&self) -> Option<(String, usize)> {
        let system = self.machine.machine.system;
        let mut values: FxHashMap<_, rustc_hash::FxHashSet<Value>> = Default::default();
        for local in &self.locals {
            for frame in &local.thread.frames {
                for (register, &value) in frame.registers.iter().enumerate() {
                    values.entry((frame.code, register)).or_default().insert(value);
                }
            }
        }
        let ((code, register), values) =
            values.into_iter().max_by_key(|(key, values)| (values.len(), std::cmp::Reverse(*key)))?;
        let code = &system.codes[code];
        Some((format!("{}.{}", code.name, code.registers.as_slice()[register].name), values.len()))
    }
}

fn size_in_memory(local: &Local) -> u64 {
    let frames = local.thread.frames.iter();
    let frames: usize = frames.map(|frame| size_of_val(frame) + 8 * frame.registers.len() + 16).sum();
    (size_of::<Local>() + frames + 24 * local.thread.buffer.len() + 32) as u64
}
