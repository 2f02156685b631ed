//! What properties see of a thread, and judging sets of states.
//!
//! A property sees where a process body is and what its registers hold. It sees nothing of procedures. So
//! only the bottoms of a set of stacks matter. States are judged by the trusted machine: from each thread's
//! set, one stack is taken for every view it offers, and [`Machine::violation`] judges each
//! combination.

use crate::language::Language;
use crate::rules::{Rules, SymbolId};
use palisade_base::{Id, IdVec, Interner, define_id, limits};
use palisade_memory::{Machine, State, Thread};
use palisade_program::Value;
use palisade_program::running::{Condition, Location, PropertyKind, RegId, RoleId, System};
use rustc_hash::FxHashSet;
use std::sync::Arc;

define_id!(
    /// The views that properties have of a set of stacks.
    ViewSetId
);

/// The parts of states that properties look at.
pub(crate) struct Views {
    roles: IdVec<RoleId, Seen>,
    sets: Interner<ViewSetId, (RoleId, Vec<View>)>,
    /// Whether there is any property.
    pub any: bool,
    /// Where a thread always waits, by code: at its start, and at the targets of edges that close a loop
    /// (every endless loop passes one).
    pub stops: Vec<FxHashSet<Location>>,
}

#[derive(Clone, Default)]
struct Seen {
    locations: Vec<Location>,
    registers: Vec<RegId>,
}

/// What is seen of a thread: its location, if properties look at it and the thread is in no procedure, and
/// those of its registers that properties look at.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct View {
    at: Option<Location>,
    registers: Vec<Value>,
}

/// A stack of a set, as a representative of all stacks with the same view.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub bottom: SymbolId,
    /// Whether the bottom is the whole stack.
    pub alone: bool,
    /// The thread as far as properties see it.
    thread: Thread,
}

impl Views {
    /// Collects what the properties of a program look at.
    pub fn new(system: &System) -> Views {
        let mut views = Views {
            roles: system.roles.iter().map(|_| Seen::default()).collect(),
            sets: Interner::new(),
            any: !system.properties.is_empty(),
            stops: system.codes.iter().map(loop_heads).collect(),
        };
        for role in system.roles.iter() {
            views.stops[role.code.index()].insert(system.codes[role.code].entry);
        }
        for property in &system.properties {
            views.look(system, &property.bad);
            if property.kind == PropertyKind::Final {
                for (role, seen) in views.roles.iter_mut().enumerate() {
                    seen.locations.push(system.role_code(RoleId::from_index(role)).exit);
                }
            }
        }
        views
    }

    fn look(&mut self, system: &System, condition: &Condition) {
        match condition {
            Condition::Const(_) | Condition::Cell(_) => {}
            Condition::Register(thread, register) => {
                self.roles[system.instances[*thread].role].registers.push(*register);
            }
            Condition::At(thread, location) => {
                self.roles[system.instances[*thread].role].locations.push(*location);
            }
            Condition::Count(places) => {
                places.iter().for_each(|&(role, location)| self.roles[role].locations.push(location));
            }
            Condition::Unary(_, a) => self.look(system, a),
            Condition::Binary(_, a, b) => {
                self.look(system, a);
                self.look(system, b);
            }
        }
    }

    fn view(&self, role: RoleId, rules: &Rules<'_>, bottom: SymbolId, alone: bool) -> View {
        let seen = &self.roles[role];
        let frame = &rules.symbol(bottom).frame;
        View {
            at: (alone && seen.locations.contains(&frame.location)).then_some(frame.location),
            registers: seen.registers.iter().map(|register| frame.registers[register.index()]).collect(),
        }
    }

    /// A number for what is seen of a set of stacks. If the numbers of two sets are equal, no property can
    /// distinguish the sets.
    pub fn view_set(&mut self, role: RoleId, rules: &Rules<'_>, stacks: &Language) -> ViewSetId {
        let bottoms = stacks.bottoms().into_iter();
        let mut views: Vec<View> =
            bottoms.map(|(bottom, above)| self.view(role, rules, bottom, above.is_none())).collect();
        views.sort_unstable();
        views.dedup();
        self.sets.id((role, views))
    }

    /// One stack for every view that a set of stacks offers.
    pub fn samples(&self, role: RoleId, rules: &Rules<'_>, stacks: &Language) -> Vec<Sample> {
        let mut known: FxHashSet<View> = FxHashSet::default();
        let mut samples = Vec::new();
        for (bottom, above) in stacks.bottoms() {
            limits::checkpoint();
            if known.insert(self.view(role, rules, bottom, above.is_none())) {
                let frames = [Some(bottom), above].into_iter().flatten();
                let frames = frames.map(|symbol| rules.symbol(symbol).frame.clone()).collect();
                let thread = Thread { role, frames, buffer: Vec::new() };
                samples.push(Sample { bottom, alone: above.is_none(), thread });
            }
        }
        samples
    }

    /// Whether a thread with this frame on top may be left out. This is so if it can take only local steps
    /// that properties cannot see, and only finitely many of them. The state after these steps is found as
    /// well, with the same memory and the same view.
    pub fn passes_through(&self, rules: &mut Rules<'_>, symbol: SymbolId) -> bool {
        let (code, location) = {
            let frame = &rules.symbol(symbol).frame;
            (frame.code, frame.location)
        };
        if self.stops[code.index()].contains(&location) {
            return false;
        }
        let Some(reached) = rules.local_steps(symbol) else { return false };
        let role =
            rules.system().roles.iter_enumerated().find(|(_, role)| role.code == code).map(|(id, _)| id);
        // Without a role it is the frame of a procedure, which no property sees.
        !reached.is_empty()
            && role.is_none_or(|role| {
                let view = self.view(role, rules, symbol, true);
                reached.iter().all(|&next| self.view(role, rules, next, true) == view)
            })
    }
}

/// The targets of edges that lead back in a depth-first walk.
pub(crate) fn loop_heads(code: &palisade_program::running::Code) -> FxHashSet<Location> {
    #[derive(Clone, Copy, PartialEq)]
    enum Colour {
        New,
        OnPath,
        Done,
    }
    let mut colour = vec![Colour::New; code.location_count()];
    let mut heads = FxHashSet::default();
    let mut path = vec![(code.entry, code.edges_from(code.entry))];
    colour[code.entry.index()] = Colour::OnPath;
    while let Some((location, edges)) = path.last_mut() {
        let Some(edge) = edges.next() else {
            colour[location.index()] = Colour::Done;
            path.pop();
            continue;
        };
        let target = code.edges().as_slice()[edge as usize].target;
        match colour[target.index()] {
            Colour::New => {
                colour[target.index()] = Colour::OnPath;
                path.push((target, code.edges_from(target)));
            }
            Colour::OnPath => {
                heads.insert(target);
            }
            Colour::Done => {}
        }
    }
    heads
}

/// A combination of samples, one per thread, that makes a bad state with this memory.
pub(crate) fn bad_combination(
    machine: Machine<'_>,
    memory: &[Value],
    threads: &[Vec<Sample>],
) -> Option<Vec<usize>> {
    let mut chosen = vec![0; threads.len()];
    let mut state = State {
        memory: memory.to_vec().into(),
        threads: threads.iter().map(|samples| Arc::new(samples[0].thread.clone())).collect(),
        section: None,
        fault: None,
    };
    loop {
        if machine.violation(&state).is_some() {
            return Some(chosen);
        }
        let mut next = 0;
        loop {
            let samples = threads.get(next)?;
            chosen[next] = (chosen[next] + 1) % samples.len();
            let thread = palisade_program::running::ThreadId::from_index(next);
            state.threads[thread] = Arc::new(samples[chosen[next]].thread.clone());
            if chosen[next] > 0 {
                break;
            }
            next += 1;
        }
    }
}
