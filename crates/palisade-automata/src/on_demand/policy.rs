//! What differs from engine to engine: where a thread waits, what it can do there, and what is worth remembering.

use super::LocalId;
use crate::collapse::Stop;
use crate::local::{After, Local, ThreadMachine};
use palisade_memory::Action;
use palisade_program::running::{CellId, RoleId};
use std::fmt::Debug;
use std::hash::Hash;

/// The ways in which a thread can run.
pub trait Way: Copy + Ord + Hash + Debug {
    /// How many there are.
    const COUNT: usize;
    /// The way in which threads start.
    const FIRST: Self;

    /// Its number, below `COUNT`.
    fn index(self) -> usize;
}

/// All threads run alike.
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
    /// What a move does, as far as the search needs to know.
    type Letter: Copy + Debug;
    /// What is remembered of a thread state.
    type Note: Copy + Debug;
    /// What is remembered of a target.
    type Mark: Copy + PartialEq + Debug;

    /// The cell whose value a move depends on.
    fn reads(letter: Self::Letter) -> Option<CellId>;

    /// What a thread state can do, in order. The note may be completed.
    fn offers(
        &mut self,
        machine: &ThreadMachine<'_>,
        local: &Local,
        way: Self::Way,
        note: &mut Self::Note,
    ) -> Vec<Offer<Self::Letter>>;

    /// Where a thread waits after a step of `source` (`None` at its start), each place once.
    fn run_on(
        &mut self,
        machine: &ThreadMachine<'_>,
        source: Option<&Local>,
        after: After,
        way: Self::Way,
    ) -> Vec<Arrival<Self::Mark>>;

    /// Where a thread of a role waits first.
    fn start(&mut self, machine: &ThreadMachine<'_>, role: RoleId) -> Vec<Arrival<Self::Mark>> {
        let after = After { local: machine.start(role), write: None, child: None };
        self.run_on(machine, None, after, Self::Way::FIRST)
    }

    /// What becomes of a thread that is started by a step to `parent`.
    fn birth(&self, parent: &Local) -> Birth;

    /// What a thread state that was not met before is. If it is new, its number will be `next`.
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
    /// What it does.
    pub letter: L,
    /// What the step leads to in the way the thread runs, if that is known already. Never for a step that reads.
    pub after: Option<After>,
}

/// A place where a thread waits, and how it gets there.
#[derive(Clone, Debug)]
pub struct Arrival<M> {
    /// Where.
    pub place: Place,
    /// The local steps after the first step.
    pub steps: Vec<Action>,
    /// How many of the last steps belong to an atomic section that is not entered yet; see [`Stop::armed`].
    pub armed: usize,
    /// Whether the local steps were cut off here; see [`Stop::cut`].
    pub cut: bool,
    /// What is remembered of the target.
    pub mark: M,
}

impl<M> Arrival<M> {
    /// A thread state, after some local steps.
    pub fn at(local: Local, steps: Vec<Action>, mark: M) -> Arrival<M> {
        Arrival { place: Place::State(local), steps, armed: 0, cut: false, mark }
    }

    /// One of the reserved numbers, after some local steps.
    pub fn reserved(id: LocalId, steps: Vec<Action>, mark: M) -> Arrival<M> {
        Arrival { place: Place::Reserved(id), steps, armed: 0, cut: false, mark }
    }

    /// Where a collapsed step stops.
    pub fn of_stop(stop: Stop, mark: M) -> Arrival<M> {
        let Stop { local, steps, armed, cut } = stop;
        Arrival { place: Place::State(local), steps, armed, cut, mark }
    }
}

/// Where a thread waits.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a thread state.
    State(Local),
    /// Somewhere that needs no thread state of its own.
    Reserved(LocalId),
}

/// What becomes of a thread that is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Birth {
    /// It runs on to where it waits first.
    RunsOn,
    /// It stays at its start.
    Asleep,
    /// The marks of the targets say so; the automaton gives it no number.
    InMark,
}

/// How a thread state was reached when it was met first.
#[derive(Clone, Copy, Debug)]
pub struct Reached<N> {
    /// What is known of the thread state before; nothing at a thread's start.
    pub from: Option<N>,
    /// Whether local steps were cut off here.
    pub cut: bool,
}

/// What a thread state is.
pub enum Identity<N> {
    /// One of its own.
    New(N),
    /// Nobody can tell it from this one.
    SameAs(LocalId),
}
