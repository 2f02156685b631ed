//! Building explicit automata: a fixpoint over thread states and the values of cells.
//!
//! A load may return any value its cell may hold so far. When a cell gets a new value, all thread states that
//! read the cell are visited again. Domains need not be declared as long as the fixpoint is finite.
//!
//! Values of cells without a declared domain are added in rounds: values written in one round are read in the
//! next. In a run the n-th store depends on at most n - 1 others, so its value is present after n rounds. If
//! no run has more than n stores ([`most_stores`]), the rounds end there, because values that later rounds
//! would write are never written.

use crate::collapse::{Stop, run_on};
use crate::coverage::Coverage;
use crate::explicit::{Automata, Automaton, Edge, Letter, Population, StateId, ValueId};
use crate::local::{After, Fences, Hold, Local, StepKind, ThreadMachine};
use crate::observe::Observer;
use crate::stores::most_stores;
use palisade_base::{IdVec, limits};
use palisade_memory::{Action, Machine, Model};
use palisade_program::Value;
use palisade_program::running::{CellId, Liveness, RoleId, System};
use palisade_program::written::Outside;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A cell without a declared domain, or a machine word, that takes more values than this counts as growing without
/// bound.
pub const MAX_VALUES: usize = 1 << 7;
/// More values than this are too many even for a declared domain, because users of the automata store value
/// codes in fifteen bits.
pub const MAX_DECLARED: usize = 1 << 14;
/// A role with more thread states than this counts as growing without bound.
pub const MAX_STATES: usize = 1 << 18;

/// Why there are no explicit automata for a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Threads are started in atomic sections.
    Spawn,
    /// A thread may call deeper than this.
    CallDepth(usize),
    /// The number of values of a cell keeps growing, or its domain is too large.
    Values(CellId),
    /// The number of thread states of a role keeps growing.
    States(RoleId),
    /// The caller asked to stop.
    Stopped,
}

impl Automata {
    /// The automata of a program, with the population of each role. `may_continue` is called from time to
    /// time.
    pub fn build(
        system: &System,
        population: impl Fn(RoleId) -> Population,
        may_continue: impl FnMut() -> bool,
    ) -> Result<Automata, Trouble> {
        Automata::build_with(system, Arc::new(Liveness::new(system)), population, may_continue)
    }

    /// The same, for a program whose liveness is already known.
    pub fn build_with(
        system: &System,
        liveness: Arc<Liveness>,
        population: impl Fn(RoleId) -> Population,
        may_continue: impl FnMut() -> bool,
    ) -> Result<Automata, Trouble> {
        let rounds = most_stores(system, |role| population(role) == Population::Any);
        Automata::in_rounds(system, liveness, population, rounds, may_continue)
    }

    /// The automata of a program that stands for those with any number of further processes of the same kinds. Runs of
    /// these have more stores than any number, so nothing bounds the rounds.
    pub fn build_for_all_sizes(
        system: &System,
        liveness: Arc<Liveness>,
        population: impl Fn(RoleId) -> Population,
        may_continue: impl FnMut() -> bool,
    ) -> Result<Automata, Trouble> {
        Automata::in_rounds(system, liveness, population, None, may_continue)
    }

    fn in_rounds(
        system: &System,
        liveness: Arc<Liveness>,
        population: impl Fn(RoleId) -> Population,
        mut rounds: Option<usize>,
        mut may_continue: impl FnMut() -> bool,
    ) -> Result<Automata, Trouble> {
        let machine = Machine::new(system, Model::Sc);
        let mut machine = ThreadMachine::new(machine, liveness, usize::MAX, true);
        machine.fences = Fences::Letters;
        let mut builder = Builder {
            observer: Observer::new(system),
            values: system.cells.iter().map(|_| Known::default()).collect(),
            roles: Vec::new(),
            readers: system.cells.iter().map(|_| FxHashSet::default()).collect(),
            work: VecDeque::new(),
            put_off: BTreeSet::new(),
            coverage: Coverage::new(system),
            spawned: Vec::new(),
            machine,
        };
        builder.initial_values(system)?;
        let initial = builder.values.iter().map(|known| known.list.len()).collect();
        let mut started: Vec<RoleId> = system.instances.iter().map(|instance| instance.role).collect();
        started.dedup();
        for role in started {
            builder.start(role, population(role))?;
        }
        loop {
            while let Some((role, state)) = builder.work.pop_front() {
                builder.roles[role].waiting.remove(&state);
                builder.expand(role, state)?;
                if !may_continue() {
                    return Err(Trouble::Stopped);
                }
            }
            if rounds == Some(0) || builder.put_off.is_empty() {
                break;
            }
            rounds = rounds.map(|rounds| rounds - 1);
            builder.next_round()?;
        }
        let values = builder.values.into_iter().map(|known| known.list.clone()).collect();
        let automata: Vec<Automaton> = builder.roles.into_iter().map(|role| role.automaton).collect();
        let spawned = builder.spawned;
        let mut coverage = builder.coverage;
        coverage.ends = automata.iter().all(|automaton| {
            automaton.population == Population::Any
                || automaton.states.iter().any(|local| local.thread.has_ended(system))
        });
        Ok(Automata { values, initial, automata, spawned, coverage })
    }
}

/// The values of a cell so far.
#[derive(Clone, Default)]
struct Known {
    list: IdVec<ValueId, Value>,
    ids: FxHashMap<Value, ValueId>,
}

/// The automaton of a role so far.
struct Growing {
    automaton: Automaton,
    ids: FxHashMap<Local, StateId>,
    edges: FxHashSet<(StateId, Letter, StateId)>,
    waiting: FxHashSet<StateId>,
}

struct Builder<'a> {
    machine: ThreadMachine<'a>,
    observer: Observer,
    values: IdVec<CellId, Known>,
    roles: Vec<Growing>,
    /// The thread states to visit again when a cell gets a new value.
    readers: IdVec<CellId, FxHashSet<(usize, StateId)>>,
    work: VecDeque<(usize, StateId)>,
    /// Values that may be read only from the next round on, and the thread states that write them.
    put_off: BTreeSet<(CellId, Value, usize, StateId)>,
    coverage: Coverage,
    /// The roles that are started at run time.
    spawned: Vec<RoleId>,
}

/// A locked instruction or atomic section in progress: what it has read and written so far.
#[derive(Clone)]
struct Transaction {
    local: Local,
    guard: BTreeMap<CellId, Value>,
    memory: BTreeMap<CellId, Value>,
    written: BTreeMap<CellId, Value>,
    steps: Vec<Action>,
    armed: usize,
}

impl Builder<'_> {
    fn initial_values(&mut self, system: &System) -> Result<(), Trouble> {
        for (id, cell) in system.cells.iter_enumerated() {
            match (cell.init, cell.ty.domain.bounds()) {
                (Some(value), _) => _ = self.value(id, value)?,
                (None, Some((lo, hi))) => {
                    for value in lo..=hi {
                        self.value(id, value)?;
                    }
                }
                (None, None) => unreachable!("validation: a cell with arbitrary initial value has a domain"),
            }
        }
        Ok(())
    }

    /// Whether the domain of a cell says which values it takes. That of a machine word does not.
    fn is_declared(&self, cell: CellId) -> bool {
        let ty = self.machine.machine.system.cells[cell].ty;
        let is_word =
            |(lo, hi): (Value, Value)| ty.outside == Outside::Wrap && hi.abs_diff(lo) >= MAX_DECLARED as u64;
        ty.domain.bounds().is_some_and(|bounds| !is_word(bounds))
    }

    /// The id of a value that a thread state writes. `None` if the value is added in the next round.
    fn written(
        &mut self,
        cell: CellId,
        value: Value,
        role: usize,
        state: StateId,
    ) -> Result<Option<ValueId>, Trouble> {
        let declared = self.is_declared(cell);
        if declared || self.values[cell].ids.contains_key(&value) {
            return self.value(cell, value).map(Some);
        }
        self.put_off.insert((cell, value, role, state));
        Ok(None)
    }

    fn next_round(&mut self) -> Result<(), Trouble> {
        for (cell, value, role, state) in std::mem::take(&mut self.put_off) {
            self.value(cell, value)?;
            self.look_at(role, state);
        }
        Ok(())
    }

    fn value(&mut self, cell: CellId, value: Value) -> Result<ValueId, Trouble> {
        limits::checkpoint();
        let declared = self.is_declared(cell);
        let known = &mut self.values[cell];
        if let Some(&id) = known.ids.get(&value) {
            return Ok(id);
        }
        let id = known.list.push(value);
        known.ids.insert(value, id);
        if known.list.len() > if declared { MAX_DECLARED } else { MAX_VALUES } {
            return Err(Trouble::Values(cell));
        }
        let mut readers: Vec<_> = self.readers[cell].iter().copied().collect();
        readers.sort_unstable();
        for (role, state) in readers {
            self.look_at(role, state);
        }
        Ok(id)
    }

    fn look_at(&mut self, role: usize, state: StateId) {
        if self.roles[role].waiting.insert(state) {
            self.work.push_back((role, state));
        }
    }

    fn start(&mut self, role: RoleId, population: Population) -> Result<(), Trouble> {
        let index = self.roles.len();
        self.roles.push(Growing {
            automaton: Automaton {
                role,
                population,
                initially: population,
                states: IdVec::new(),
                starts: Vec::new(),
                edges: Vec::new(),
            },
            ids: FxHashMap::default(),
            edges: FxHashSet::default(),
            waiting: FxHashSet::default(),
        });
        let after = After { local: self.machine.start(role), write: None, child: None };
        for stop in self.settle(None, after)? {
            let state = self.state(index, stop.local)?;
            self.roles[index].automaton.starts.push((state, stop.steps, stop.armed));
        }
        Ok(())
    }

    /// Any number of threads may run a role that is started at run time. Returns the index of its automaton.
    fn spawned(&mut self, role: RoleId) -> Result<u32, Trouble> {
        self.coverage.start(role);
        if !self.spawned.contains(&role) {
            self.spawned.push(role);
        }
        let known = self.roles.iter().position(|growing| growing.automaton.role == role);
        let index = known.unwrap_or(self.roles.len());
        if known.is_none() {
            self.start(role, Population::Fixed(0))?;
        }
        self.roles[index].automaton.population = Population::Any;
        Ok(index as u32)
    }

    /// Notes a step.
    fn takes(&mut self, source: &Local, action: Action, after: &After) {
        let system = self.machine.machine.system;
        self.coverage.step(system, &source.thread, action, &after.local.thread);
    }

    fn settle(&mut self, source: Option<&Local>, after: After) -> Result<Vec<Stop>, Trouble> {
        let runs = run_on(&self.machine, &self.observer, source, after, &mut self.coverage);
        if runs.too_deep { Err(Trouble::CallDepth(crate::MAX_CALLS)) } else { Ok(runs.stops) }
    }

    fn state(&mut self, role: usize, local: Local) -> Result<StateId, Trouble> {
        limits::checkpoint();
        if let Some(&id) = self.roles[role].ids.get(&local) {
            return Ok(id);
        }
        let growing = &mut self.roles[role];
        let id = growing.automaton.states.push(local.clone());
        growing.ids.insert(local, id);
        if growing.automaton.states.len() > MAX_STATES {
            return Err(Trouble::States(growing.automaton.role));
        }
        self.look_at(role, id);
        Ok(id)
    }

    /// Adds the edges of a thread state for all values known now.
    fn expand(&mut self, role: usize, state: StateId) -> Result<(), Trouble> {
        let local = self.roles[role].automaton.states[state].clone();
        for edge in self.machine.edges(&local) {
            let kind = self.machine.kind(&local, edge);
            for action in self.machine.actions(&local, edge) {
                match kind {
                    StepKind::Spawns if local.hold != Hold::Outside => return Err(Trouble::Spawn),
                    StepKind::Spawns => {
                        let after = self.machine.step(&local, action, None);
                        let letter = match after.as_ref().and_then(|after| after.child.as_ref()) {
                            Some(child) => Letter::Spawn(self.spawned(child.thread.role)?),
                            None => Letter::Silent,
                        };
                        self.finish(role, state, after, action, |_| letter.clone())?;
                    }
                    StepKind::BufferFull | StepKind::ReadsOwn(_) => {
                        unreachable!("under SC there are no buffers")
                    }
                    StepKind::Reads(cell) if self.is_plain(&local, edge) => {
                        self.readers[cell].insert((role, state));
                        for (value, read) in self.known(cell) {
                            let step = self.machine.step(&local, action, Some((cell, read)));
                            self.finish(role, state, step, action, |_| Letter::Read(cell, value))?;
                        }
                    }
                    StepKind::Writes(cell) if local.hold == Hold::Outside => {
                        if let Some(after) = self.machine.step(&local, action, None) {
                            self.takes(&local, action, &after);
                            let letter = match after.write {
                                Some((_, written)) => match self.written(cell, written, role, state)? {
                                    Some(value) => Letter::Write(cell, value),
                                    None => continue,
                                },
                                None => Letter::Silent,
                            };
                            self.finish(role, state, Some(after), action, |_| letter.clone())?;
                        }
                    }
                    StepKind::Reads(_) | StepKind::Writes(_) => self.transact(role, state, &local, action)?,
                    StepKind::Local | StepKind::Fences | StepKind::StoreFences => {
                        let letter = match kind {
                            // Inside a section the buffer is empty anyway.
                            StepKind::Fences if local.hold == Hold::Outside => Letter::Fence,
                            StepKind::StoreFences if local.hold == Hold::Outside => Letter::StoreFence,
                            _ => Letter::Silent,
                        };
                        let step = self.machine.step(&local, action, None);
                        self.finish(role, state, step, action, |_| letter.clone())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_plain(&self, local: &Local, edge: palisade_program::running::EdgeId) -> bool {
        local.hold == Hold::Outside && self.machine.is_load(local, edge)
    }

    fn known(&self, cell: CellId) -> Vec<(ValueId, Value)> {
        self.values[cell].list.iter_enumerated().map(|(id, &value)| (id, value)).collect()
    }

    /// Adds the edges for one step.
    fn finish(
        &mut self,
        role: usize,
        state: StateId,
        after: Option<After>,
        action: Action,
        letter: impl Fn(&Local) -> Letter,
    ) -> Result<(), Trouble> {
        let Some(after) = after else { return Ok(()) };
        let source = self.roles[role].automaton.states[state].clone();
        self.takes(&source, action, &after);
        for stop in self.settle(Some(&source), after)? {
            let letter = letter(&stop.local);
            let steps = std::iter::once(action).chain(stop.steps).collect();
            self.add_edge(role, state, letter, stop.local, steps, stop.armed)?;
        }
        Ok(())
    }

    fn add_edge(
        &mut self,
        role: usize,
        source: StateId,
        letter: Letter,
        local: Local,
        steps: Vec<Action>,
        armed: usize,
    ) -> Result<(), Trouble> {
        let target = self.state(role, local)?;
        let silent_loop = letter == Letter::Silent && source == target;
        if !silent_loop && self.roles[role].edges.insert((source, letter.clone(), target)) {
            self.roles[role].automaton.edges.push(Edge { source, target, letter, steps, armed });
        }
        Ok(())
    }

    /// Runs a locked instruction, or an atomic section to its end.
    fn transact(
        &mut self,
        role: usize,
        state: StateId,
        source: &Local,
        first: Action,
    ) -> Result<(), Trouble> {
        let start = Transaction {
            local: source.clone(),
            guard: BTreeMap::new(),
            memory: BTreeMap::new(),
            written: BTreeMap::new(),
            steps: Vec::new(),
            armed: 0,
        };
        let mut seen = FxHashSet::default();
        let mut open = self.access(role, state, source, start, first)?;
        while let Some(transaction) = open.pop() {
            limits::checkpoint();
            if !matches!(transaction.local.hold, Hold::Entered(_)) || transaction.local.fault.is_some() {
                self.close(role, state, transaction)?;
                continue;
            }
            let key = (transaction.local.clone(), transaction.guard.clone(), transaction.memory.clone());
            if !seen.insert(key) {
                continue;
            }
            for edge in self.machine.edges(&transaction.local) {
                let actions: Vec<_> = self.machine.actions(&transaction.local, edge).collect();
                for action in actions {
                    open.extend(self.access(role, state, source, transaction.clone(), action)?);
                }
            }
        }
        Ok(())
    }

    /// Takes one step of a transaction, for every value it may read.
    fn access(
        &mut self,
        role: usize,
        state: StateId,
        source: &Local,
        transaction: Transaction,
        action: Action,
    ) -> Result<Vec<Transaction>, Trouble> {
        let Action::Execute { edge, .. } = action else {
            unreachable!("a thread without buffer has no updates")
        };
        let reads = match self.machine.kind(&transaction.local, edge) {
            StepKind::Spawns => return Err(Trouble::Spawn),
            StepKind::Reads(cell) => match transaction.memory.get(&cell) {
                Some(&value) => vec![Some((cell, value))],
                None => {
                    self.readers[cell].insert((role, state));
                    self.known(cell).into_iter().map(|(_, value)| Some((cell, value))).collect()
                }
            },
            _ => vec![None],
        };
        let mut open = Vec::new();
        for read in reads {
            let Some(after) = self.machine.step(&transaction.local, action, read) else { continue };
            self.takes(&transaction.local, action, &after);
            let mut next = transaction.clone();
            if let Some((cell, value)) = read
                && !next.memory.contains_key(&cell)
            {
                next.guard.insert(cell, value);
                next.memory.insert(cell, value);
            }
            if let Some((cell, value)) = after.write {
                if self.written(cell, value, role, state)?.is_none() {
                    continue;
                }
                next.memory.insert(cell, value);
                next.written.insert(cell, value);
            }
            next.steps.push(action);
            // What the section has written so far must not be forgotten with a stuck thread, so the step
            // counts as a change. A stuck section would then become a state. No other thread can run in it,
            // so it is left out below.
            for stop in self.settle(Some(source), after)? {
                limits::checkpoint();
                let steps = next.steps.iter().copied().chain(stop.steps).collect();
                open.push(Transaction { local: stop.local, steps, armed: stop.armed, ..next.clone() });
            }
        }
        Ok(open)
    }

    /// Adds the edge of a finished transaction.
    fn close(&mut self, role: usize, state: StateId, transaction: Transaction) -> Result<(), Trouble> {
        let ids = |cells: &BTreeMap<CellId, Value>| {
            cells.iter().map(|(&cell, value)| (cell, self.values[cell].ids[value])).collect()
        };
        let letter = Letter::Locked { guard: ids(&transaction.guard), effect: ids(&transaction.written) };
        self.add_edge(role, state, letter, transaction.local, transaction.steps, transaction.armed)
    }
}
