//! The thread automaton: numbered thread states and their moves, computed on demand.
//!
//! *Problem.* A search over global states repeatedly asks the same questions about single threads. What can a
//! thread in this state do? Where does that lead if it reads this value? Here each question is answered once
//! per thread state, when it is first asked. After that the search looks up the answer by number and
//! evaluates nothing.
//!
//! *How it is used.* A search reads the tables from any number of host threads. It collects missing entries
//! as [`Need`]s. Between two batches of states it [supplies](ThreadAutomaton::supply) them in a fixed order,
//! so that numbers do not depend on the host's threads.
//!
//! *Policies.* Engines differ in where a thread waits, what it can do there and what is remembered about it.
//! So each engine implements [`Policy`]. A policy may run threads in several [ways](Way). Moves and outcomes
//! are kept per way.
//!
//! *Guarantee.* Exactly the steps of the [`ThreadMachine`] are taken. The policy must argue why leaving out
//! the places between two arrivals changes no answer.
//!
//! *Invariants* (1 is checked by `debug_assert!` where tables are filled, the others by
//! [`ThreadAutomaton::check_invariants`])
//! 1. Numbers and tables only grow, so results of lookups stay valid.
//! 2. Different numbers denote different thread states. A thread state that the policy identifies with
//!    another one has that one's number.
//! 3. Reserved numbers come first, denote no thread state and have no moves. Number 0 is "no thread".
//! 4. A move is listed once, with the thread state it belongs to. Its targets are numbers that exist.

mod access;
mod moves;
mod policy;
mod states;
mod values;

pub use access::Access;
pub use moves::{Move, Target};
pub use policy::{Arrival, Birth, Identity, Offer, OneWay, Policy, Reached, Resting, Way};
pub use values::Values;

use crate::local::{After, Local, ThreadMachine};
use moves::Moves;
use palisade_base::{Id, IdVec, define_id, limits};
use palisade_program::Value;
use palisade_program::running::{CellId, RoleId, System};
use states::States;

define_id!(
    /// A thread state by number.
    LocalId
);

impl LocalId {
    /// No thread.
    pub const NONE: LocalId = LocalId(0);
}

/// An entry that the tables do not have yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Need<W> {
    /// The moves of a thread state.
    Moves(LocalId, W),
    /// The outcome of a move, by its number, for the code of the value read.
    Outcome(u32, u32, W),
}

/// The moves of a policy.
pub type MoveOf<P> = Move<<P as Policy>::Letter>;
/// The targets of a policy.
pub type TargetOf<P> = Target<<P as Policy>::Mark>;

/// Thread states and moves found so far.
pub struct ThreadAutomaton<'a, P: Policy> {
    /// How single threads run.
    pub machine: ThreadMachine<'a>,
    /// The engine-specific part.
    pub policy: P,
    /// The codes of the values of cells.
    pub values: Values,
    states: States<P::Note>,
    moves: Moves<P::Letter, P::Mark, P::Way>,
    /// Where threads first wait, by role.
    starts: IdVec<RoleId, Option<Box<[LocalId]>>>,
}

impl<'a, P: Policy> ThreadAutomaton<'a, P> {
    /// An automaton without thread states. One number is reserved for each of these notes; the first is the
    /// number of "no thread".
    pub fn new(machine: ThreadMachine<'a>, policy: P, reserved: &[P::Note]) -> ThreadAutomaton<'a, P> {
        assert!(!reserved.is_empty(), "there is a number for no thread");
        let states = States::new(reserved);
        let mut moves = Moves::new();
        reserved.iter().for_each(|_| moves.add_motionless());
        let values = Values::new(machine.machine.system);
        let starts = machine.machine.system.roles.iter().map(|_| None).collect();
        ThreadAutomaton { machine, policy, values, states, moves, starts }
    }

    /// The program.
    pub fn system(&self) -> &'a System {
        self.machine.machine.system
    }

    /// How many thread states were found.
    pub fn len(&self) -> usize {
        self.states.locals().len()
    }

    /// Whether no thread state was found yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many numbers there are, including the reserved ones.
    pub fn numbers(&self) -> usize {
        self.states.numbers()
    }

    /// Roughly how much memory the tables take.
    pub fn bytes(&self) -> u64 {
        self.states.bytes() + self.moves.bytes()
    }

    /// The thread state of a number.
    #[inline]
    pub fn local(&self, id: LocalId) -> &Local {
        self.states.local(id)
    }

    /// All thread states that were found.
    pub fn locals(&self) -> &[Local] {
        self.states.locals()
    }

    /// The note on a thread state.
    #[inline]
    pub fn note(&self, id: LocalId) -> &P::Note {
        self.states.note(id)
    }

    /// The moves of a thread state, if known.
    #[inline]
    pub fn moves(&self, id: LocalId, way: P::Way) -> Option<&[MoveOf<P>]> {
        self.moves.of(id, way)
    }

    /// Where a move leads for the code of the value it reads (0 if it reads none), if known.
    #[inline]
    pub fn outcome(&self, mv: &MoveOf<P>, code: u32, way: P::Way) -> Option<&[TargetOf<P>]> {
        self.moves.outcome(mv, code, way)
    }

    /// A move by its number.
    pub fn numbered(&self, number: u32) -> MoveOf<P> {
        self.moves.numbered(number)
    }

    /// Computes an entry that a search asked for.
    pub fn supply(&mut self, need: Need<P::Way>) {
        match need {
            Need::Moves(id, way) => self.supply_moves(id, way),
            Need::Outcome(number, code, way) => self.supply_outcome(number, code, way),
        }
    }

    /// The moves of a thread state, computed now if necessary.
    pub fn work_out_moves(&mut self, id: LocalId, way: P::Way) -> &[MoveOf<P>] {
        self.supply_moves(id, way);
        self.moves(id, way).expect("they were worked out")
    }

    /// Where a move leads, computed now if necessary.
    pub fn work_out(&mut self, mv: &MoveOf<P>, code: u32, way: P::Way) -> &[TargetOf<P>] {
        self.supply_outcome(mv.number(), code, way);
        self.outcome(mv, code, way).expect("it was worked out")
    }

    /// The thread states in which a thread of a role can first wait.
    pub fn starts(&mut self, role: RoleId) -> &[LocalId] {
        if self.starts[role].is_none() {
            let arrivals = self.policy.start(&self.machine, role).into_iter();
            let starts = arrivals.map(|arrival| self.arrive(arrival.place, None, arrival.cut)).collect();
            self.starts[role] = Some(starts);
        }
        self.starts[role].as_deref().expect("they were worked out")
    }

    /// The number of a thread state that the search gets from elsewhere than a step.
    pub fn add(&mut self, local: Local, reached: Reached<P::Note>) -> LocalId {
        self.number(local, reached)
    }

    /// A thread of a role that has not taken a step.
    pub fn asleep(&mut self, role: RoleId) -> LocalId {
        let local = self.machine.start(role);
        self.number(local, Reached { from: None, cut: false })
    }

    /// How a thread of a role gets from its start to where it first waits, for witnesses.
    pub fn steps_from_start(&mut self, role: RoleId, target: LocalId) -> Arrival<P::Mark> {
        let arrivals = self.policy.start(&self.machine, role);
        self.to(arrivals, |id, _| id == target)
    }

    /// How a thread gets from a move to a target, for witnesses.
    pub fn steps_after(
        &mut self,
        mv: &MoveOf<P>,
        code: u32,
        way: P::Way,
        target: &TargetOf<P>,
    ) -> Arrival<P::Mark> {
        let source = self.local(mv.local).clone();
        let after = self.machine.step(&source, mv.action, self.read(mv, code));
        let after = after.expect("the move was possible during the search");
        let arrivals = self.policy.run_on(&self.machine, Some(&source), after, way);
        self.to(arrivals, |id, mark| id == target.local && mark == target.mark)
    }

    /// Where a thread waits after leaving a state that is not in the tables.
    pub fn run_on(&mut self, after: After, way: P::Way) -> Vec<(LocalId, Arrival<P::Mark>)> {
        let arrivals = self.policy.run_on(&self.machine, None, after, way);
        let number =
            |arrival: Arrival<P::Mark>| (self.arrive(arrival.place.clone(), None, arrival.cut), arrival);
        arrivals.into_iter().map(number).collect()
    }

    /// Checks the numbered invariants of this file's header.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check_invariants(&self) {
        self.states.check_invariants();
        self.moves.check_invariants(self.numbers());
        for id in (0..self.states.reserved()).map(LocalId::from_index) {
            assert!(self.moves(id, P::Way::FIRST).is_some_and(<[_]>::is_empty), "{id:?} is reserved");
        }
    }

    /// The arrival that the search used.
    fn to(
        &mut self,
        arrivals: Vec<Arrival<P::Mark>>,
        wanted: impl Fn(LocalId, P::Mark) -> bool,
    ) -> Arrival<P::Mark> {
        let mut arrivals = arrivals.into_iter();
        let found = arrivals.find(|arrival| {
            let id = self.arrive(arrival.place.clone(), None, arrival.cut);
            wanted(id, arrival.mark)
        });
        found.expect("the target was reached during the search")
    }

    /// The cell that a move reads, and the value with this code.
    fn read(&self, mv: &MoveOf<P>, code: u32) -> Option<(CellId, Value)> {
        P::reads(mv.letter).map(|cell| (cell, self.values.value(cell, code)))
    }

    fn supply_moves(&mut self, id: LocalId, way: P::Way) {
        if self.moves(id, way).is_some() {
            return;
        }
        let local = self.states.local(id).clone();
        let offers = self.policy.offers(&self.machine, &local, way, self.states.note_mut(id));
        let first = self.moves.set(id, way, offers.iter().map(|offer| (offer.action, offer.letter)));
        for (number, offer) in (first..).zip(offers) {
            if let Some(after) = offer.after {
                debug_assert!(P::reads(offer.letter).is_none(), "what is read decides where a move leads");
                self.fill(number, 0, way, &local, after);
            }
        }
    }

    fn supply_outcome(&mut self, number: u32, code: u32, way: P::Way) {
        let mv = self.moves.numbered(number);
        if self.outcome(&mv, code, way).is_some() {
            return;
        }
        let source = self.states.local(mv.local).clone();
        match self.machine.step(&source, mv.action, self.read(&mv, code)) {
            Some(after) => self.fill(number, code, way, &source, after),
            None => self.moves.set_outcome(number, code, way, []),
        }
    }

    /// Fills in the outcome of a move of `source`.
    fn fill(&mut self, number: u32, code: u32, way: P::Way, source: &Local, after: After) {
        let mv = self.moves.numbered(number);
        self.policy.takes(&self.machine, source, mv.action, &after);
        let from = *self.states.note(mv.local);
        let write = after.write.map(|(cell, value)| self.values.code(cell, value));
        let birth = self.policy.birth(&after.local);
        let children = match &after.child {
            Some(child) if birth == Birth::RunsOn => self.starts(child.thread.role).to_vec(),
            Some(child) if birth == Birth::Asleep => vec![self.asleep(child.thread.role)],
            _ => vec![LocalId::NONE],
        };
        let mut targets = Vec::new();
        for arrival in self.policy.run_on(&self.machine, Some(source), after, way) {
            let local = self.arrive(arrival.place, Some(from), arrival.cut);
            targets.extend(children.iter().map(|&child| Target::new(local, write, child, arrival.mark)));
        }
        self.moves.set_outcome(number, code, way, targets);
    }

    /// The number of a place.
    fn arrive(&mut self, place: Resting, from: Option<P::Note>, cut: bool) -> LocalId {
        match place {
            Resting::State(local) => self.number(local, Reached { from, cut }),
            Resting::Reserved(id) => {
                debug_assert!(id.index() < self.states.reserved(), "{id:?} is reserved");
                id
            }
        }
    }

    /// The number of a thread state.
    fn number(&mut self, local: Local, reached: Reached<P::Note>) -> LocalId {
        limits::checkpoint();
        let unmet = match self.states.find(&local) {
            Ok(id) => return id,
            Err(unmet) => unmet,
        };
        let next = LocalId::from_index(self.states.numbers());
        match self.policy.identify(&self.machine, &local, next, reached) {
            Identity::SameAs(id) => {
                self.states.alias(local, id);
                id
            }
            Identity::New(note) => {
                self.moves.add_state();
                self.states.add(unmet, local, note)
            }
        }
    }
}
