//! How threads run in this engine: the policy of the thread automaton, and the parts that are specific to
//! robustness.
//!
//! A thread runs in one of two [ways](Way):
//! - as under SC, where fences are local steps;
//! - as the attacker, whose stores are held back, so that no step that waits for an empty buffer is possible.
//!
//! Local steps are collapsed: a thread runs on until its next step that concerns memory or the buffer. Unlike
//! for reachability, a load after which the thread is stuck counts, because it is an event of the run. All
//! threads that can do nothing more are represented by [`DEAD`].
//!
//! Whole atomic sections are also moves. Their effect depends on all of memory; see [`crate::sections`].

use crate::sections::{Passage, Sections};
use palisade_automata::on_demand::{
    self, Arrival, Birth, Identity, LocalId, Offer, Policy, Reached, ThreadAutomaton,
};
use palisade_automata::{After, Local, MAX_FRAMES, ThreadMachine};
use palisade_base::limits;
use palisade_memory::{Action, Interlocked, Machine, Model};
use palisade_program::Value;
use palisade_program::running::{CellId, Instr, Liveness, RoleId, System};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A thread that can do nothing more.
pub(crate) const DEAD: LocalId = LocalId(1);

/// How a thread runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Way {
    /// Its stores reach memory at once.
    Plain = 0,
    /// It is the attacker: the store that started the attack is held back.
    Attacking = 1,
}

impl on_demand::Way for Way {
    const COUNT: usize = 2;
    const FIRST: Way = Way::Plain;

    fn index(self) -> usize {
        self as usize
    }
}

/// The effect of a step.
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

/// How a step ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The thread waits for something, or is dead.
    Waits,
    /// The program ends with a fault. The step counts, but nothing comes after it.
    Faults,
}

impl Ending {
    pub fn faults(self) -> bool {
        self == Ending::Faults
    }
}

pub(crate) type Move = on_demand::Move<Letter>;
pub(crate) type Target = on_demand::Target<Ending>;

/// An entry that the tables do not have yet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Need {
    Thread(on_demand::Need<Way>),
    /// The passages of a section, by the number of its move, for the codes of all cells.
    Passages(u32, Box<[u32]>),
}

/// Why a search cannot be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// The number of values of a cell keeps growing.
    Values(CellId),
    /// The calls of a thread nest too deep.
    Calls,
    /// An atomic section is too long.
    Section,
}

/// A cell without a declared domain that takes more values than this counts as growing without bound.
const MAX_VALUES: u64 = 4096;
/// Codes are below this.
pub(crate) const CODES: u32 = (1 << 15) - 1;
/// Collapsing stops after this many thread states at the latest. Stopping early is always correct.
const MAX_COLLAPSED: usize = 1 << 12;

/// Thread states, moves and sections found so far.
pub(crate) struct Threads<'a> {
    pub automaton: ThreadAutomaton<'a, ByEvents>,
    sections: Sections,
}

impl<'a> Threads<'a> {
    /// Tables without thread states. `model` and `interlocked` determine what the attacker can do. All other
    /// threads run as under SC.
    pub fn new(system: &'a System, model: Model, interlocked: Interlocked) -> Threads<'a> {
        let machine = ThreadMachine::new(
            Machine::new(system, Model::Sc),
            Arc::new(Liveness::new(system)),
            usize::MAX,
            false,
        );
        let policy = ByEvents { model, interlocked, too_deep: false };
        // Two numbers are reserved: "no thread" and a dead thread.
        Threads { automaton: ThreadAutomaton::new(machine, policy, &[(), ()]), sections: Sections::default() }
    }

    pub fn value(&self, cell: CellId, code: u32) -> Value {
        self.automaton.values.value(cell, code)
    }

    pub fn local(&self, id: LocalId) -> &Local {
        self.automaton.local(id)
    }

    /// Roughly how much memory the tables take.
    pub fn bytes(&self) -> u64 {
        self.automaton.bytes() + self.sections.bytes()
    }

    /// Why a search with these tables is not exact, if it is not.
    pub fn trouble(&self) -> Option<Trouble> {
        let values = &self.automaton.values;
        let cell = values.with_more_than(u64::from(CODES)).or_else(|| values.most_varied(MAX_VALUES + 1));
        let calls = self.automaton.policy.too_deep.then_some(Trouble::Calls);
        let section = self.sections.too_long.then_some(Trouble::Section);
        cell.map(Trouble::Values).or(calls).or(section)
    }

    /// The moves of a thread state, if known.
    pub fn moves(&self, id: LocalId, way: Way) -> Result<&[Move], Need> {
        self.automaton.moves(id, way).ok_or(Need::Thread(on_demand::Need::Moves(id, way)))
    }

    /// Where a move leads, if known. `code` is the code of the value it reads (0 if it reads none), and `way`
    /// is the way in which the thread continues.
    pub fn targets(&self, mv: &Move, code: u32, way: Way) -> Result<&[Target], Need> {
        let need = || Need::Thread(on_demand::Need::Outcome(mv.number(), code, way));
        self.automaton.outcome(mv, code, way).ok_or_else(need)
    }

    /// The possible effects of a section with this memory, if known.
    pub fn passages(&self, mv: &Move, memory: &[u32]) -> Result<&[Passage], Need> {
        self.sections.passages(mv, memory)
    }

    /// Where a thread of a role first waits.
    pub fn start(&mut self, role: RoleId) -> LocalId {
        self.automaton.starts(role)[0]
    }

    /// Computes an entry that the search asked for.
    pub fn supply(&mut self, need: Need) {
        match need {
            Need::Thread(need) => self.automaton.supply(need),
            Need::Passages(number, memory) => self.sections.supply(&mut self.automaton, number, memory),
        }
    }

    /// The steps by which a thread runs on from a thread state to a target, for witnesses.
    pub fn steps_after(&mut self, mv: &Move, code: u32, way: Way, target: Target) -> Vec<Action> {
        self.automaton.steps_after(mv, code, way, &target).steps
    }

    /// The steps by which a new thread runs on to where it waits, for witnesses.
    pub fn steps_from_start(&mut self, role: RoleId) -> Vec<Action> {
        let target = self.start(role);
        self.automaton.steps_from_start(role, target).steps
    }
}

/// The policy: threads wait at steps that may be events of the run.
pub(crate) struct ByEvents {
    model: Model,
    interlocked: Interlocked,
    /// Whether some thread called deeper than allowed.
    too_deep: bool,
}

impl ByEvents {
    /// What an edge does for a thread that runs in a way. `None` if it is not possible.
    fn letter(&self, threads: &ThreadMachine<'_>, local: &Local, action: Action, way: Way) -> Option<Letter> {
        let Action::Execute { edge, .. } = action else { unreachable!("there are no buffers here") };
        let machine = threads.machine;
        let top = local.thread.top();
        let resolve = |address| machine.resolve(address, &top.registers).ok();
        let attacks = way == Way::Attacking;
        match &machine.system.codes[top.code].edges()[edge].instr {
            Instr::Load(_, address) => Some(resolve(address).map_or(Letter::Local, Letter::Load)),
            // A store whose value or address is an error ends there.
            Instr::Store(address, _) => {
                let stored = threads.step(local, action, None)?.write.is_some();
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
                let started = threads.step(local, action, None)?.child.is_some();
                Some(if started { Letter::Spawn } else { Letter::Local })
            }
            _ => Some(Letter::Local),
        }
    }

    /// The actions of a thread state, with what they do.
    fn actions(&self, machine: &ThreadMachine<'_>, local: &Local, way: Way) -> Vec<(Action, Letter)> {
        let actions = machine.edges(local).flat_map(|edge| machine.actions(local, edge));
        actions.filter_map(|action| Some((action, self.letter(machine, local, action, way)?))).collect()
    }

    /// Where a thread can get to by local steps.
    fn collapse(&mut self, machine: &ThreadMachine<'_>, local: Local, way: Way) -> Vec<Arrival<Ending>> {
        let mut arrivals = Vec::new();
        // Whether the arrivals already include a dead thread. One path to it is enough.
        let mut dies = false;
        let mut seen = FxHashSet::default();
        let mut open = vec![(local, Vec::new())];
        while let Some((local, steps)) = open.pop() {
            limits::checkpoint();
            if !seen.insert(local.clone()) {
                continue;
            }
            if local.thread.frames.len() > MAX_FRAMES {
                self.too_deep = true;
                continue;
            }
            if local.fault.is_some() {
                // A thread that would fault by a local step can also stop before that step, while the others
                // continue.
                match steps.split_last() {
                    None => arrivals.push(Arrival::reserved(DEAD, Vec::new(), Ending::Faults)),
                    Some((_, before)) if !dies => {
                        arrivals.push(Arrival::reserved(DEAD, before.to_vec(), Ending::Waits));
                        dies = true;
                    }
                    Some(_) => {}
                }
                continue;
            }
            let actions = self.actions(machine, &local, way);
            let waits = actions.iter().any(|(_, letter)| *letter != Letter::Local);
            if waits || seen.len() > MAX_COLLAPSED {
                arrivals.push(Arrival::at(local, steps, Ending::Waits));
                continue;
            }
            let before = open.len();
            for (action, _) in actions {
                if let Some(after) = machine.step(&local, action, None) {
                    open.push((after.local, steps.iter().copied().chain([action]).collect()));
                }
            }
            if open.len() == before && !dies {
                arrivals.push(Arrival::reserved(DEAD, steps, Ending::Waits));
                dies = true;
            }
        }
        // A thread that only runs in circles counts as dead.
        if arrivals.is_empty() {
            arrivals.push(Arrival::reserved(DEAD, Vec::new(), Ending::Waits));
        }
        arrivals
    }
}

impl Policy for ByEvents {
    type Way = Way;
    type Letter = Letter;
    type Note = ();
    type Mark = Ending;

    fn reads(letter: Letter) -> Option<CellId> {
        match letter {
            Letter::Load(cell) | Letter::Locked(cell) => Some(cell),
            _ => None,
        }
    }

    fn offers(
        &mut self,
        machine: &ThreadMachine<'_>,
        local: &Local,
        way: Way,
        (): &mut (),
    ) -> Vec<Offer<Letter>> {
        let actions = self.actions(machine, local, way).into_iter();
        actions.map(|(action, letter)| Offer { action, letter, after: None }).collect()
    }

    fn run_on(
        &mut self,
        machine: &ThreadMachine<'_>,
        _: Option<&Local>,
        after: After,
        way: Way,
    ) -> Vec<Arrival<Ending>> {
        self.collapse(machine, after.local, way)
    }

    /// There is always one place. If there are several, the start itself represents them, and its moves are
    /// the choices between them.
    fn start(&mut self, machine: &ThreadMachine<'_>, role: RoleId) -> Vec<Arrival<Ending>> {
        let local = machine.start(role);
        let mut arrivals = self.collapse(machine, local.clone(), Way::Plain);
        if arrivals.len() != 1 || arrivals[0].mark.faults() {
            arrivals = vec![Arrival::at(local, Vec::new(), Ending::Waits)];
        }
        arrivals
    }

    fn birth(&self, _: &Local) -> Birth {
        Birth::RunsOn
    }

    fn identify(&mut self, _: &ThreadMachine<'_>, _: &Local, _: LocalId, _: Reached<()>) -> Identity<()> {
        Identity::New(())
    }
}
