//! Single threads: thread states by number, and what each can do next, worked out on demand.
//!
//! A thread runs in one of two [ways](Way): as under SC, where fences are local steps, or as the attacker, whose stores are held back, so that nothing that waits for
//! the empty buffer is possible. Local steps are collapsed: a thread runs on until its next step that concerns memory or the buffer. Unlike for
//! reachability, a load after which the thread is stuck counts: it is an event of the run. Threads that can do nothing more are all the same.
//!
//! Steps are taken by the trusted machine of `palisade-memory` on one thread alone; nothing here defines what a step does.
//!
//! *Invariant*: numbers and tables only grow, so what was looked up stays valid.

use hashbrown::HashTable;
use palisade_automata::{After, Hold, Local, MOST_FRAMES, ThreadMachine};
use palisade_base::{Id, IdVec, limits};
use palisade_memory::{Action, Interlocked, Machine, Model};
use palisade_program::Value;
use palisade_program::running::{CellId, Instr, Liveness, RoleId, System};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

/// A thread state by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Node(pub u32);

impl Node {
    /// No thread.
    pub const NONE: Node = Node(0);
    /// A thread that can do nothing more.
    pub const DEAD: Node = Node(1);
}

/// How a thread runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Way {
    /// Its stores reach memory at once.
    Plain = 0,
    /// Its first store since is held back.
    Attacking = 1,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Letter {
    /// A choice between local steps and others.
    Local,
    /// A load.
    Load(CellId),
    /// A store.
    Store(CellId),
    /// A locked instruction.
    Locked(CellId),
    /// A whole atomic section.
    Section,
    /// A store-store fence of an attacker under PSO.
    StoreFence,
    /// Starts a thread.
    Spawn,
}

/// One thing a thread can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub letter: Letter,
    /// Its first step.
    pub action: Action,
    /// The thread state it belongs to.
    pub node: Node,
    number: u32,
}

/// Where a step leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    /// The thread state.
    pub node: Node,
    /// The code of the value written, if one is.
    pub write: Option<u32>,
    /// The thread that is started, if one is.
    pub child: Option<Node>,
    /// Whether the program ends there with a fault: the step counts, but nothing comes after it.
    pub faults: bool,
}

/// What an atomic section does as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    /// The thread state after it; none if it never closes.
    pub node: Option<Node>,
    /// The cells it reads before it writes them.
    pub reads: Vec<CellId>,
    /// The cells it writes, with the codes of the last values.
    pub writes: Vec<(CellId, u32)>,
    /// The threads it starts.
    pub children: Vec<Node>,
    /// All its steps.
    pub steps: Vec<Action>,
}

/// Something the tables do not hold yet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Need {
    Moves(Node, Way),
    /// The targets of a move, by its number, for the code of the value read, going on in a way.
    Targets(u32, u32, Way),
    /// The passages of a section for the codes of all cells.
    Passages(u32, Box<[u32]>),
}

/// More values than this in a cell without a declared domain count as growth without bound.
pub(crate) const MOST_VALUES: usize = 4096;
/// Codes are below this.
pub(crate) const CODES: u32 = (1 << 15) - 1;
/// Collapsing stops at the latest after so many thread states. Stopping early is always right.
const MOST_COLLAPSED: usize = 1 << 12;
/// A section is given up after so many steps.
const MOST_IN_SECTION: usize = 1 << 14;

/// A section by the number of its move, and what memory holds.
type Entry = (u32, Box<[u32]>);

type Table = Vec<Option<Box<[Target]>>>;

/// Thread states and moves found so far.
pub(crate) struct Threads<'a> {
    pub machine: ThreadMachine<'a>,
    model: Model,
    interlocked: Interlocked,
    locals: Vec<Local>,
    index: HashTable<u32>,
    moves: [Vec<Option<Box<[Move]>>>; 2],
    numbered: Vec<Move>,
    tables: [Vec<Table>; 2],
    passages: FxHashMap<Entry, Box<[Passage]>>,
    codes: IdVec<CellId, Codes>,
    /// Why the search is not exact, if it is not.
    pub trouble: Option<Trouble>,
    bytes: u64,
}

/// What cannot be searched to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// A cell takes more and more values.
    Values(CellId),
    /// A thread calls too deep.
    Calls,
    /// An atomic section goes on for too long.
    Section,
}

/// The values of a cell.
#[derive(Default)]
struct Codes {
    values: Vec<Value>,
    codes: FxHashMap<Value, u32>,
}

impl<'a> Threads<'a> {
    /// No thread states yet. `model` and `interlocked` say what the attacker can do; everybody else runs as under SC.
    pub fn new(system: &'a System, model: Model, interlocked: Interlocked) -> Threads<'a> {
        let machine = ThreadMachine::new(
            Machine::new(system, Model::Sc),
            Arc::new(Liveness::new(system)),
            usize::MAX,
            false,
        );
        // Numbers 0 and 1: any thread state will do, since they are never looked at.
        let nobody = machine.start(RoleId(0));
        Threads {
            machine,
            model,
            interlocked,
            locals: vec![nobody.clone(), nobody],
            index: HashTable::new(),
            moves: [0, 1].map(|_| vec![Some(Box::default()), Some(Box::default())]),
            numbered: Vec::new(),
            tables: [Vec::new(), Vec::new()],
            passages: FxHashMap::default(),
            codes: system.cells.iter().map(|_| Codes::default()).collect(),
            trouble: None,
            bytes: 0,
        }
    }

    /// The code of a value, numbering it if it is new.
    pub fn code(&mut self, cell: CellId, value: Value) -> u32 {
        let codes = &mut self.codes[cell];
        if let Some(&code) = codes.codes.get(&value) {
            return code;
        }
        let declared = self.machine.machine.system.cells[cell].ty.domain.bounds().is_some();
        if codes.values.len() >= if declared { CODES as usize } else { MOST_VALUES } {
            self.trouble = Some(Trouble::Values(cell));
            return 0;
        }
        let code = codes.values.len() as u32;
        codes.values.push(value);
        codes.codes.insert(value, code);
        code
    }

    pub fn value(&self, cell: CellId, code: u32) -> Value {
        self.codes[cell].values[code as usize]
    }

    /// How many values of a cell were met.
    pub fn values_of(&self, cell: CellId) -> usize {
        self.codes[cell].values.len()
    }

    pub fn local(&self, node: Node) -> &Local {
        &self.locals[node.0 as usize]
    }

    /// How many thread states there are.
    pub fn len(&self) -> usize {
        self.locals.len()
    }

    /// Roughly how much memory the tables take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The moves of a thread state, if known.
    pub fn moves(&self, node: Node, way: Way) -> Result<&[Move], Need> {
        match self.moves[way as usize].get(node.0 as usize) {
            Some(Some(moves)) => Ok(moves),
            _ => Err(Need::Moves(node, way)),
        }
    }

    /// Where a move leads for the code of the value it reads (0 if it reads none), going on in a way, if known.
    pub fn targets(&self, mv: &Move, code: u32, way: Way) -> Result<&[Target], Need> {
        match self.tables[way as usize][mv.number as usize].get(code as usize) {
            Some(Some(targets)) => Ok(targets),
            _ => Err(Need::Targets(mv.number, code, way)),
        }
    }

    /// What a section can do with this memory, if known.
    pub fn passages(&self, mv: &Move, memory: &[u32]) -> Result<&[Passage], Need> {
        let key = (mv.number, Box::from(memory));
        self.passages.get(&key).map(|passages| &**passages).ok_or(Need::Passages(key.0, key.1))
    }

    /// Where a thread of a role waits first. Several places are told by one state whose moves are the choices between them.
    pub fn start(&mut self, role: RoleId) -> Node {
        let local = self.machine.start(role);
        match self.collapse(local.clone(), Way::Plain).as_slice() {
            [(End::Waits(only), _)] => self.number(only.clone()),
            [(End::Dead, _)] => Node::DEAD,
            _ => self.number(local),
        }
    }

    /// Works out something the search asked for.
    pub fn supply(&mut self, need: Need) {
        match need {
            Need::Moves(node, way) => self.supply_moves(node, way),
            Need::Targets(mv, code, way) => self.supply_targets(mv, code, way),
            Need::Passages(mv, memory) => {
                if !self.passages.contains_key(&(mv, memory.clone())) {
                    let found = self.pass(mv, &memory);
                    self.bytes += 128 * (1 + found.len() as u64);
                    self.passages.insert((mv, memory), found.into());
                }
            }
        }
    }

    /// What an edge does for a thread that runs in a way; `None` if it is not possible.
    fn letter(&self, local: &Local, action: Action, way: Way) -> Option<Letter> {
        let Action::Execute { edge, .. } = action else { unreachable!("there are no buffers here") };
        let machine = self.machine.machine;
        let top = local.thread.top();
        let resolve = |address| machine.resolve(address, &top.registers).ok();
        let attacks = way == Way::Attacking;
        match &machine.system.codes[top.code].edges()[edge].instr {
            Instr::Load(_, address) => Some(resolve(address).map_or(Letter::Local, Letter::Load)),
            // A store whose value or address is an error ends there.
            Instr::Store(address, _) => {
                let stored = self.machine.step(local, action, None)?.write.is_some();
                Some(resolve(address).filter(|_| stored).map_or(Letter::Local, Letter::Store))
            }
            Instr::Locked { address, .. } => match (resolve(address), self.model, self.interlocked) {
                (None, ..) => Some(Letter::Local),
                (Some(cell), Model::Pso, Interlocked::OwnAddress) => Some(Letter::Locked(cell)),
                (Some(_), ..) if attacks => None,
                (Some(cell), ..) => Some(Letter::Locked(cell)),
            },
            Instr::Fence if attacks => None,
            Instr::StoreFence if attacks && self.model == Model::Pso => Some(Letter::StoreFence),
            Instr::AtomicBegin if attacks => None,
            Instr::AtomicBegin => Some(Letter::Section),
            Instr::Spawn(..) => {
                let started = self.machine.step(local, action, None)?.child.is_some();
                Some(if started { Letter::Spawn } else { Letter::Local })
            }
            _ => Some(Letter::Local),
        }
    }

    /// The actions of a thread state with what they do.
    fn actions(&self, local: &Local, way: Way) -> Vec<(Action, Letter)> {
        let edges: Vec<_> = self.machine.edges(local).collect();
        let actions = edges.into_iter().flat_map(|edge| self.machine.actions(local, edge));
        actions.filter_map(|action| Some((action, self.letter(local, action, way)?))).collect()
    }

    /// Where a thread can get to by local steps, with these steps.
    fn collapse(&mut self, local: Local, way: Way) -> Vec<(End, Vec<Action>)> {
        let has_dead = |ends: &[(End, Vec<Action>)]| ends.iter().any(|(end, _)| *end == End::Dead);
        let mut ends = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![(local, Vec::new())];
        while let Some((local, steps)) = open.pop() {
            limits::go_on();
            if !seen.insert(local.clone()) {
                continue;
            }
            if local.thread.frames.len() > MOST_FRAMES {
                self.trouble = Some(Trouble::Calls);
                continue;
            }
            if local.fault.is_some() {
                // A thread that would run into an error by a local step may as well stop in front of it: the others can go on.
                match steps.split_last() {
                    None => ends.push((End::Faults, Vec::new())),
                    Some((_, before)) if !has_dead(&ends) => ends.push((End::Dead, before.to_vec())),
                    Some(_) => {}
                }
                continue;
            }
            let actions = self.actions(&local, way);
            let waits = actions.iter().any(|(_, letter)| *letter != Letter::Local);
            if waits || seen.len() > MOST_COLLAPSED {
                ends.push((End::Waits(local), steps));
                continue;
            }
            let before = open.len();
            for (action, _) in actions {
                if let Some(after) = self.machine.step(&local, action, None) {
                    open.push((after.local, steps.iter().copied().chain([action]).collect()));
                }
            }
            if open.len() == before && !has_dead(&ends) {
                ends.push((End::Dead, steps));
            }
        }
        // A thread that only runs in circles is as good as dead.
        if ends.is_empty() {
            ends.push((End::Dead, Vec::new()));
        }
        ends
    }

    /// The number of where a thread got to, and whether it ended with a fault.
    fn node(&mut self, end: End) -> (Node, bool) {
        match end {
            End::Waits(local) => (self.number(local), false),
            End::Dead => (Node::DEAD, false),
            End::Faults => (Node::DEAD, true),
        }
    }

    /// The number of a thread state.
    fn number(&mut self, local: Local) -> Node {
        let hash = FxBuildHasher.hash_one(&local);
        let locals = &self.locals;
        if let Some(&id) = self.index.find(hash, |&id| locals[id as usize] == local) {
            return Node(id);
        }
        let id = self.locals.len() as u32;
        let registers: usize = local.thread.frames.iter().map(|frame| frame.registers.len()).sum();
        self.bytes += 160 + 8 * registers as u64;
        self.locals.push(local);
        let locals = &self.locals;
        self.index.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(&locals[id as usize]));
        Node(id)
    }

    fn supply_moves(&mut self, node: Node, way: Way) {
        if self.moves(node, way).is_ok() {
            return;
        }
        let local = self.local(node).clone();
        let mut moves = Vec::new();
        for (action, letter) in self.actions(&local, way) {
            let number = self.numbered.len() as u32;
            let mv = Move { letter, action, node, number };
            self.numbered.push(mv);
            self.tables.iter_mut().for_each(|tables| tables.push(Table::new()));
            moves.push(mv);
        }
        self.bytes += 80 * moves.len() as u64;
        let known = &mut self.moves[way as usize];
        if known.len() <= node.0 as usize {
            known.resize(node.0 as usize + 1, None);
        }
        known[node.0 as usize] = Some(moves.into());
    }

    fn supply_targets(&mut self, number: u32, code: u32, way: Way) {
        let mv = self.numbered[number as usize];
        if self.targets(&mv, code, way).is_ok() {
            return;
        }
        let read = match mv.letter {
            Letter::Load(cell) | Letter::Locked(cell) => Some((cell, self.value(cell, code))),
            _ => None,
        };
        let local = self.local(mv.node).clone();
        let mut targets = Vec::new();
        if let Some(After { local, write, child }) = self.machine.step(&local, mv.action, read) {
            let write = write.map(|(cell, value)| self.code(cell, value));
            let child = child.map(|child| self.start(child.thread.role));
            for (end, _) in self.collapse(local, way) {
                let (node, faults) = self.node(end);
                let target = Target { node, write, child, faults };
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        self.bytes += 32 * targets.len() as u64 + 32;
        let table = &mut self.tables[way as usize][number as usize];
        if table.len() <= code as usize {
            table.resize(code as usize + 1, None);
        }
        table[code as usize] = Some(targets.into());
    }

    /// The steps with which a thread runs on from a thread state to a target, for witnesses.
    pub fn steps_after(&mut self, mv: &Move, code: u32, way: Way, target: Target) -> Vec<Action> {
        let read = match mv.letter {
            Letter::Load(cell) | Letter::Locked(cell) => Some((cell, self.value(cell, code))),
            _ => None,
        };
        let local = self.local(mv.node).clone();
        let after = self.machine.step(&local, mv.action, read).expect("the move was possible");
        self.steps_to(after.local, way, target)
    }

    /// The steps with which a thread that starts runs on to where it waits, for witnesses.
    pub fn steps_from_start(&mut self, role: RoleId) -> Vec<Action> {
        let local = self.machine.start(role);
        match self.collapse(local, Way::Plain).as_slice() {
            [(End::Waits(_) | End::Dead, steps)] => steps.clone(),
            _ => Vec::new(),
        }
    }

    fn steps_to(&mut self, local: Local, way: Way, target: Target) -> Vec<Action> {
        for (end, steps) in self.collapse(local, way) {
            let (node, faults) = self.node(end);
            if (node, faults) == (target.node, target.faults) {
                return steps;
            }
        }
        panic!("the target was reached during the search");
    }

    /// All ways through the section that a move opens, with this memory.
    fn pass(&mut self, number: u32, memory: &[u32]) -> Vec<Passage> {
        let mv = self.numbered[number as usize];
        let source = self.local(mv.node).clone();
        let mut passages = Vec::new();
        let mut seen = FxHashSet::default();
        let start = Inside { local: source, reads: Vec::new(), writes: Vec::new(), roles: Vec::new() };
        let mut open = Vec::new();
        self.inside(&start, &[], mv.action, memory, &mut open);
        while let Some((at, steps)) = open.pop() {
            limits::go_on();
            let closed = at.local.hold == Hold::Outside && at.local.fault.is_none();
            if closed {
                self.close(at, steps, &mut passages);
                continue;
            }
            if !seen.insert(at.clone()) {
                continue;
            }
            if seen.len() > MOST_IN_SECTION || at.local.thread.frames.len() > MOST_FRAMES {
                self.trouble = Some(Trouble::Section);
                return passages;
            }
            if at.local.fault.is_none() {
                let edges = self.machine.edges(&at.local);
                let actions: Vec<_> = edges.flat_map(|edge| self.machine.actions(&at.local, edge)).collect();
                for action in actions {
                    self.inside(&at, &steps, action, memory, &mut open);
                }
            }
            // The section may stop here for ever; what it has accessed by then counts.
            let told = |other: &Passage| {
                let cells =
                    |writes: &[(CellId, u32)]| writes.iter().map(|&(cell, _)| cell).collect::<Vec<_>>();
                other.reads == at.reads && cells(&other.writes) == cells(&at.writes)
            };
            if !passages.iter().any(|other| other.node.is_none() && told(other)) {
                let Inside { reads, writes, .. } = at;
                passages.push(Passage { node: None, reads, writes, children: Vec::new(), steps });
            }
        }
        passages
    }

    /// Takes one step inside a section.
    fn inside(
        &mut self,
        at: &Inside,
        steps: &[Action],
        action: Action,
        memory: &[u32],
        open: &mut Vec<(Inside, Vec<Action>)>,
    ) {
        let Action::Execute { edge, .. } = action else { unreachable!("there are no buffers here") };
        let machine = self.machine.machine;
        let top = at.local.thread.top();
        let read = match &machine.system.codes[top.code].edges()[edge].instr {
            Instr::Load(_, address) | Instr::Locked { address, .. } => {
                machine.resolve(address, &top.registers).ok()
            }
            _ => None,
        };
        let held = |cell: CellId| at.writes.iter().find(|(other, _)| *other == cell).map(|&(_, code)| code);
        let value = read.map(|cell| {
            let code = held(cell).unwrap_or(memory[cell.index()]);
            (cell, self.value(cell, code))
        });
        let Some(after) = self.machine.step(&at.local, action, value) else { return };
        let mut next = Inside { local: after.local, ..at.clone() };
        if let Some(cell) = read.filter(|&cell| held(cell).is_none())
            && let Err(place) = next.reads.binary_search(&cell)
        {
            next.reads.insert(place, cell);
        }
        if let Some((cell, value)) = after.write {
            let code = self.code(cell, value);
            match next.writes.binary_search_by_key(&cell, |&(other, _)| other) {
                Ok(place) => next.writes[place].1 = code,
                Err(place) => next.writes.insert(place, (cell, code)),
            }
        }
        next.roles.extend(after.child.map(|child| child.thread.role));
        open.push((next, steps.iter().copied().chain([action]).collect()));
    }

    fn close(&mut self, at: Inside, steps: Vec<Action>, passages: &mut Vec<Passage>) {
        let children: Vec<Node> = at.roles.iter().map(|&role| self.start(role)).collect();
        for (end, more) in self.collapse(at.local.clone(), Way::Plain) {
            let (node, faults) = self.node(end);
            let node = (!faults).then_some(node);
            passages.push(Passage {
                node,
                reads: at.reads.clone(),
                writes: at.writes.clone(),
                children: children.clone(),
                steps: steps.iter().copied().chain(more).collect(),
            });
        }
    }
}

/// Where a thread got to by local steps.
#[derive(Clone, PartialEq, Eq)]
enum End {
    /// It waits for something that concerns memory or the buffer.
    Waits(Local),
    /// It can do nothing more.
    Dead,
    /// The program ends with a fault.
    Faults,
}

/// Somewhere inside a section.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Inside {
    local: Local,
    reads: Vec<CellId>,
    writes: Vec<(CellId, u32)>,
    roles: Vec<RoleId>,
}
