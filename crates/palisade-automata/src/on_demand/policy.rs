//! What differs between engines: where a thread waits, what it can do there, and what is worth remembering.

use super::{Access, LocalId};
use crate::collapse::Stop;
use crate::local::{After, Local, ThreadMachine};
use palisade_memory::Action;
use palisade_program::running::{CellId, RoleId};
use std::fmt::Debug;
use std::hash::Hash;

/// The ways in which a thread can run.
pub trait Way: Copy + Ord + Hash + Debug {
    /// How many ways there are.
    const COUNT: usize;
    /// The way in which threads start.
    const FIRST: Self;

    /// Its number, below `COUNT`.
    fn index(self) -> usize;
}

/// The only way, for policies in which all threads run alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OneWay;

impl Way for OneWay {
    const COUNT: usize = 1;
    const FIRST: OneWay = OneWay;

    fn index(self) -> usize {
        0
    }
}

/// How an engine wants threads to run.
pub trait Policy: Sized {
    /// The ways in which a thread can run.
    type Way: Way;
    /// The effect of a move, as far as the search needs to know.
    type Letter: Copy + Debug;
    /// The note kept on a thread state.
    type Note: Copy + Debug;
    /// The mark kept on a target.
    type Mark: Copy + PartialEq + Debug;

    /// The cell whose value a move depends on.
    fn reads(letter: Self::Letter) -> Option<CellId>;

    /// What a thread state can do, in order. The policy may complete the note.
    fn offers(
        &mut self,
        machine: &ThreadMachine<'_>,
        local: &Local,
        way: Self::Way,
        note: &mut Self::Note,
    ) -> Vec<Offer<Self::Letter>>;

    /// Where a thread waits after a step of `source` (`None` at its start). Each place occurs once.
    fn run_on(
        &mut self,
        machine: &ThreadMachine<'_>,
        source: Option<&Local>,
        after: After,
        way: Self::Way,
    ) -> Vec<Arrival<Self::Mark>>;

    /// Where a thread of a role first waits.
    fn start(&mut self, machine: &ThreadMachine<'_>, role: RoleId) -> Vec<Arrival<Self::Mark>> {
        let after = After { local: machine.start(role), write: None, child: None };
        self.run_on(machine, None, after, Self::Way::FIRST)
    }

    /// A thread takes the first step of a move. The tables are filled in once, so this is called once for each
    /// value read.
    fn takes(&mut self, _machine: &ThreadMachine<'_>, _source: &Local, _action: Action, _after: &After) {}

    /// What happens to a thread that is started by a step to `parent`.
    fn birth(&self, parent: &Local) -> Birth;

    /// Identifies a thread state that was not seen before. If it is new, its number will be `next`.
    fn identify(
        &mut self,
        machine: &ThreadMachine<'_>,
        local: &Local,
        next: LocalId,
        reached: Reached<Self::Note>,
    ) -> Identity<Self::Note>;
}

/// Something a thread state can do.
pub struct Offer<L> {
    /// Its first step.
    pub action: Action,
    /// Its effect.
    pub letter: L,
    /// The result of the step in the way the thread runs, if it is already known. Always `None` for a step
    /// that reads.
    pub after: Option<After>,
}

impl Offer<Access> {
    /// All steps of a thread state, named by their access.
    pub fn all(machine: &ThreadMachine<'_>, local: &Local) -> Vec<Offer<Access>> {
        let offers = machine.edges(local).flat_map(|edge| {
            let letter = Access::new(machine.kind(local, edge));
            machine.actions(local, edge).map(move |action| Offer { action, letter, after: None })
        });
        offers.collect()
    }
}

/// A place where a thread waits, and how it gets there.
#[derive(Clone, Debug)]
pub struct Arrival<M> {
    /// The place.
    pub place: Resting,
    /// The local steps after the first step.
    pub steps: Vec<Action>,
    /// How many of the last steps belong to an atomic section that is not entered yet; see [`Stop::armed`].
    pub armed: usize,
    /// Whether the local steps were cut off here; see [`Stop::cut`].
    pub cut: bool,
    /// The mark of the target.
    pub mark: M,
}

impl<M> Arrival<M> {
    /// A thread state, after some local steps.
    pub fn at(local: Local, steps: Vec<Action>, mark: M) -> Arrival<M> {
        Arrival { place: Resting::State(local), steps, armed: 0, cut: false, mark }
    }

    /// One of the reserved numbers, after some local steps.
    pub fn reserved(id: LocalId, steps: Vec<Action>, mark: M) -> Arrival<M> {
        Arrival { place: Resting::Reserved(id), steps, armed: 0, cut: false, mark }
    }

    /// Where a collapsed step stops.
    pub fn of_stop(stop: Stop, mark: M) -> Arrival<M> {
        let Stop { local, steps, armed, cut } = stop;
        Arrival { place: Resting::State(local), steps, armed, cut, mark }
    }
}

/// A place where a thread waits.
#[derive(Clone, Debug)]
pub enum Resting {
    /// In a thread state.
    State(Local),
    /// A reserved number, which needs no thread state of its own.
    Reserved(LocalId),
}

/// The treatment of a thread that is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Birth {
    /// It runs on to where it first waits.
    RunsOn,
    /// It stays at its start.
    Asleep,
    /// The marks of the targets record it. The automaton gives it no number.
    InMark,
}

/// How a thread state was reached for the first time.
#[derive(Clone, Copy, Debug)]
pub struct Reached<N> {
    /// The note on the thread state before, or `None` at a thread's start.
    pub from: Option<N>,
    /// Whether local steps were cut off here.
    pub cut: bool,
}

/// The identity of a thread state.
pub enum Identity<N> {
    /// A new thread state with its own number.
    New(N),
    /// Indistinguishable from this one.
    SameAs(LocalId),
}
