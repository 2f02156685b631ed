//! How threads run in this engine: the policy of the thread automaton, and the notes that the search keeps on
//! threads.
//!
//! Threads have store buffers up to a bound. Local steps are collapsed by [`run_on`], which has the argument.
//!
//! *Invariant*: the moves of a thread state begin with its updates (a `debug_assert!` where moves are
//! listed).
//!
//! *Stuck threads.* Some threads can never take a step again, whatever memory holds. Two such threads differ
//! only in what properties see of them. All stuck threads that look the same share one number. In programs
//! translated from TSO to SC, these are the processes that have no rounds left.

use crate::flags::Flags;
use crate::footprint::{Footprint, Footprints, Reach};
use crate::symmetry::{Permutation, Shape, Symmetry};
use palisade_automata::on_demand::{
    self, Access, Arrival, Birth, Identity, LocalId, Offer, OneWay, Policy, Reached, ThreadAutomaton, Values,
};
use palisade_automata::{After, Coverage, Hold, Local, MAX_FRAMES, Observer, Runs, StepKind, Stop, Stuck};
use palisade_automata::{ThreadMachine, View, most_varied_register, run_on};
use palisade_base::Id;
use palisade_memory::{Action, NextAccess};
use palisade_program::running::{CellId, RoleId};

/// How many values of a cell are tried to find out whether a thread is stuck.
const MAX_VALUES: u64 = 16;

/// Thread states and moves found so far.
pub(crate) type Automaton<'a> = ThreadAutomaton<'a, Exploring>;
pub(crate) type Move = on_demand::Move<Access>;
pub(crate) type Target = on_demand::Target<Look>;

/// What the tables lack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Need {
    /// An entry of the automaton.
    Entry(on_demand::Need<OneWay>),
    /// The number of the image of a thread state.
    Image(LocalId, Permutation),
}

/// Whether properties see a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    Same,
    Changed,
}

/// Facts about a thread state that the search needs immediately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    /// How many of its moves are updates, once the moves are known.
    pub updates: u32,
    pub flags: Flags,
    /// Whether it is armed for a section, or in one.
    pub holds: bool,
    /// The accesses that data races are possible on, of which it is, or was in its last local steps, about to make one.
    pub racing: Footprint,
    /// How many times in a row the local steps of the thread had been cut off when this state was first
    /// reached. 0 means that the thread waits for something here.
    pub cuts: u32,
    /// Whether all its next instructions are loads, once the moves are known.
    pub only_loads: bool,
    /// Whether it may wait for good ([`Machine::waits_for_good`]) or has finished, as far as that can be seen
    /// without looking at memory. Worked out only for questions about what stays possible.
    ///
    /// [`Machine::waits_for_good`]: palisade_memory::Machine::waits_for_good
    pub may_wait: bool,
    /// Whether it wants a longer buffer than allowed.
    pub cut_off: bool,
    /// Its shape, if threads with different data are interchangeable.
    pub shape: Shape,
    /// What its next instructions access, once the moves are known.
    pub next: Footprint,
    /// What the thread, and the threads it starts, may ever access, and what it was about to access in its last local
    /// steps.
    pub future: Footprint,
    /// What the threads it starts may ever access.
    pub children: Footprint,
}

impl Info {
    /// The note for "no thread".
    const NO_THREAD: Info = Info {
        updates: 0,
        flags: Flags::NONE,
        holds: false,
        racing: Footprint::NONE,
        cuts: 0,
        only_loads: true,
        may_wait: true,
        cut_off: false,
        shape: Shape::NONE,
        next: Footprint::NONE,
        future: Footprint::NONE,
        children: Footprint::NONE,
    };
}

/// How threads run.
pub(crate) struct Exploring {
    pub observer: Observer,
    pub footprints: Footprints,
    /// How threads run on.
    steps: Steps,
    /// Roles whose threads leave no trace when they finish.
    vanishing: Vec<bool>,
    /// The numbers that represent stuck threads, with the view that properties have of each, and what data races
    /// depend on.
    stuck: Vec<(RoleId, View, Vec<NextAccess>, LocalId)>,
    /// Whether some thread wanted a longer buffer than allowed.
    pub bound_hit: bool,
    /// Whether some thread called deeper than allowed.
    pub too_deep: bool,
    /// The steps taken so far.
    pub coverage: Coverage,
    /// Whether some thread caused a fault.
    pub fault_seen: bool,
    /// Which threads with different data are interchangeable.
    pub symmetry: Option<Symmetry>,
}

/// How threads run on after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Steps {
    /// Not at all: each step is one of the machine.
    Single,
    /// Local steps are collapsed, as suits questions about states.
    Collapsed,
    /// Local steps are collapsed, as suits questions about what stays possible.
    Settled,
}

/// The automaton of a program, without any thread states yet. `symmetric` says whether threads with different data
/// may be exchanged.
pub(crate) fn automaton(mut machine: ThreadMachine<'_>, steps: Steps, symmetric: bool) -> Automaton<'_> {
    let system = machine.machine.system;
    let observer = match steps {
        Steps::Single | Steps::Collapsed => Observer::new(system),
        Steps::Settled => Observer::of_goals(system),
    };
    if steps == Steps::Settled {
        machine.stuck = Stuck::Kept;
    }
    let collapse = steps != Steps::Single;
    let started = |role: RoleId| system.instances.iter().any(|instance| instance.role == role);
    let vanishing = system.roles.ids().map(|role| collapse && !started(role) && !observer.looks_at(role));
    let policy = Exploring {
        vanishing: vanishing.collect(),
        footprints: Footprints::new(system),
        observer,
        steps,
        stuck: Vec::new(),
        bound_hit: false,
        too_deep: false,
        coverage: Coverage::new(system),
        fault_seen: false,
        symmetry: if symmetric { Symmetry::find(&machine) } else { None },
    };
    let twins = policy.symmetry.as_ref().map(Symmetry::twins);
    let mut automaton = ThreadAutomaton::new(machine, policy, &[Info::NO_THREAD]);
    if let Some(twins) = twins {
        automaton.values = Values::with_twins(system, twins);
    }
    automaton
}

/// Supplies what the tables lack.
pub(crate) fn supply(automaton: &mut Automaton<'_>, need: Need) {
    let (id, g) = match need {
        Need::Entry(entry) => return automaton.supply(entry),
        Need::Image(id, g) => (id, g),
    };
    let info = *automaton.note(id);
    let symmetry = automaton.policy.symmetry.as_ref().expect("images are wanted of symmetric threads");
    let image = symmetry.local(&automaton.machine, &g, automaton.local(id));
    // Its local steps are cut off where those of the thread state are.
    let from = info.cuts.checked_sub(1).map(|cuts| Info { cuts, ..info });
    let number = automaton.add(image, Reached { from, cut: info.cuts > 0 });
    let symmetry = automaton.policy.symmetry.as_mut().expect("it was there before");
    symmetry.note_image(&g, info.shape, number);
}

/// Notes steps of one thread as steps of all threads with the same text, because each of them takes these steps in
/// some run.
pub(crate) fn share_steps(automaton: &Automaton<'_>, coverage: &mut Coverage) {
    for codes in automaton.policy.symmetry.iter().flat_map(Symmetry::texts) {
        coverage.share(codes);
    }
}

/// The register that holds the most different values, and how many it holds. Used in the message for a number
/// of thread states that keeps growing.
pub(crate) fn varied_register(automaton: &Automaton<'_>) -> Option<(String, usize)> {
    let frames = automaton.locals().iter().flat_map(|local| &local.thread.frames);
    let (code, register, values) = most_varied_register(frames)?;
    let code = &automaton.system().codes[code];
    Some((format!("{}.{}", code.name, code.registers[register].name), values))
}

impl Policy for Exploring {
    type Way = OneWay;
    type Letter = Access;
    type Note = Info;
    type Mark = Look;

    fn reads(access: Access) -> Option<CellId> {
        access.reads()
    }

    fn offers(
        &mut self,
        machine: &ThreadMachine<'_>,
        local: &Local,
        OneWay: OneWay,
        info: &mut Info,
    ) -> Vec<Offer<Access>> {
        let mut offers = Vec::new();
        for position in 0..local.thread.buffer.len() {
            let action = Action::Update { position };
            if let Some(after) = machine.step(local, action, None) {
                let cell = after.write.expect("an update writes").0;
                offers.push(Offer {
                    action,
                    letter: Access::new(StepKind::Writes(cell)),
                    after: Some(after),
                });
            }
        }
        info.flags = info.flags.without(Flags::UNKNOWN);
        info.updates = offers.len() as u32;
        // A thread that called too deep after it had changed something is kept for that change: its pending
        // stores reach memory, and it does nothing else.
        let too_deep = local.thread.frames.len() > MAX_FRAMES;
        for edge in machine.edges(local).filter(|_| !too_deep) {
            let kind = machine.kind(local, edge);
            let loads = machine.is_load(local, edge);
            info.only_loads &= loads;
            match kind {
                StepKind::BufferFull => {
                    self.bound_hit = true;
                    info.cut_off = true;
                    continue;
                }
                StepKind::Reads(cell) => {
                    info.next.reads |= self.footprints.only(cell);
                    info.next.writes |= if loads { 0 } else { self.footprints.only(cell) };
                }
                StepKind::ReadsOwn(cell) => info.next.reads |= self.footprints.only(cell),
                StepKind::Writes(cell) => info.next.writes |= self.footprints.only(cell),
                StepKind::Local | StepKind::Spawns | StepKind::Fences | StepKind::StoreFences => {}
            }
            for action in machine.actions(local, edge) {
                let letter = Access::new(kind);
                if letter.reads().is_some() {
                    offers.push(Offer { action, letter, after: None });
                } else if let Some(after) = machine.step(local, action, None) {
                    offers.push(Offer { action, letter, after: Some(after) });
                }
            }
        }
        let is_update = |offer: &Offer<Access>| matches!(offer.action, Action::Update { .. });
        debug_assert!(
            offers.iter().skip(info.updates as usize).all(|offer| !is_update(offer)),
            "the moves begin with the updates"
        );
        offers
    }

    fn run_on(
        &mut self,
        machine: &ThreadMachine<'_>,
        source: Option<&Local>,
        after: After,
        OneWay: OneWay,
    ) -> Vec<Arrival<Look>> {
        let writes_seen = after.write.is_some_and(|(cell, _)| self.observer.cells.contains(&cell));
        let view = source.map(|source| self.observer.view(source));
        let stops = if self.steps != Steps::Single {
            let Runs { stops, too_deep } = run_on(machine, &self.observer, source, after, &mut self.coverage);
            self.too_deep |= too_deep;
            stops
        } else if after.local.thread.frames.len() > MAX_FRAMES {
            self.too_deep = true;
            Vec::new()
        } else {
            vec![Stop { local: after.local, steps: Vec::new(), armed: 0, cut: false }]
        };
        let arrive = |stop: Stop| {
            let changed = view.as_ref().is_some_and(|view| self.observer.view(&stop.local) != *view);
            let look = if writes_seen || changed { Look::Changed } else { Look::Same };
            Arrival::of_stop(stop, look)
        };
        stops.into_iter().map(arrive).collect()
    }

    fn takes(&mut self, machine: &ThreadMachine<'_>, source: &Local, action: Action, after: &After) {
        self.coverage.step(machine.machine.system, &source.thread, action, &after.local.thread);
        after.child.iter().for_each(|child| self.coverage.start(child.thread.role));
    }

    fn birth(&self, parent: &Local) -> Birth {
        match parent.hold {
            // Inside an atomic section no other thread runs, not even locally.
            Hold::Entered(_) => Birth::Asleep,
            Hold::Outside | Hold::Armed(_) => Birth::RunsOn,
        }
    }

    fn identify(
        &mut self,
        machine: &ThreadMachine<'_>,
        local: &Local,
        next: LocalId,
        reached: Reached<Info>,
    ) -> Identity<Info> {
        self.fault_seen |= local.fault.is_some();
        let buffer_empty = local.thread.buffer.is_empty();
        let finished =
            local.fault.is_none() && buffer_empty && local.thread.has_ended(machine.machine.system);
        let role = local.thread.role;
        if finished && self.vanishing[role.index()] {
            return Identity::SameAs(LocalId::NONE);
        }
        let accesses = self.observer.last_accesses(machine.machine.model, local);
        let stuck = self.steps == Steps::Collapsed && !finished && is_stuck(machine, local);
        if stuck {
            let view = self.observer.view(local);
            match self.stuck.iter().find(|(r, v, a, _)| *r == role && *v == view && *a == accesses) {
                Some(&(_, _, _, alike)) => {
                    if let Some(symmetry) = &mut self.symmetry {
                        symmetry.shape(machine, local, alike);
                    }
                    return Identity::SameAs(alike);
                }
                None => self.stuck.push((role, view, accesses.clone(), next)),
            }
        }
        let shape = self.symmetry.as_mut().map(|symmetry| symmetry.shape(machine, local, next));
        let reach = if stuck { Reach::default() } else { self.footprints.of(&local.thread) };
        let armed = matches!(local.hold, Hold::Armed(_));
        let flags = Flags::UNKNOWN
            | Flags::ENTERED.when(matches!(local.hold, Hold::Entered(_)))
            | Flags::UNJUDGED.when(armed && self.observer.looks_at(role))
            | Flags::AT_SEEN.when(self.observer.is_at_seen_location(local))
            | Flags::FAULTED.when(local.fault.is_some())
            | Flags::MAY_RACE.when(!accesses.is_empty())
            | Flags::PENDING.when(!buffer_empty)
            | Flags::UNFINISHED.when(!finished);
        let racing = self.footprints.of_accesses(&accesses);
        Identity::New(Info {
            flags,
            holds: local.hold != Hold::Outside,
            racing,
            cuts: if reached.cut { reached.from.map_or(0, |from| from.cuts) + 1 } else { 0 },
            may_wait: self.steps != Steps::Collapsed
                && (finished || buffer_empty && may_wait(machine, local)),
            shape: shape.unwrap_or(Shape::NONE),
            future: reach.all.union(racing),
            children: reach.children,
            ..Info::NO_THREAD
        })
    }
}

/// Whether a thread with an empty buffer has no step that ends its wait whatever memory holds.
fn may_wait(machine: &ThreadMachine<'_>, local: &Local) -> bool {
    let code = &machine.machine.system.codes[local.thread.top().code];
    machine.edges(local).all(|edge| {
        code.attempts.binary_search(&edge).is_ok()
            || match machine.kind(local, edge) {
                StepKind::Reads(_) => true,
                _ => machine.actions(local, edge).all(|action| machine.step(local, action, None).is_none()),
            }
    })
}

/// Whether a thread that has not finished can never take a step again.
fn is_stuck(machine: &ThreadMachine<'_>, local: &Local) -> bool {
    if local.fault.is_some() || local.hold != Hold::Outside || !local.thread.buffer.is_empty() {
        return false;
    }
    machine.edges(local).all(|edge| {
        let blocked =
            |read| machine.actions(local, edge).all(|action| machine.step(local, action, read).is_none());
        match machine.kind(local, edge) {
            StepKind::Local => blocked(None),
            StepKind::Reads(cell) if !machine.is_load(local, edge) => {
                let bounds = machine.machine.system.cells[cell].ty.domain.bounds();
                let few = bounds.filter(|(lo, hi)| hi.abs_diff(*lo) < MAX_VALUES);
                few.is_some_and(|(lo, hi)| (lo..=hi).all(|value| blocked(Some((cell, value)))))
            }
            _ => false,
        }
    })
}
