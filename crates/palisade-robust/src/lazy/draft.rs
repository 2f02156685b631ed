//! A running form under modification, and what its instructions mean in the program it came from.
//!
//! Every edge carries a [`Tag`]: what a run of the original program on a store-buffer machine does when the
//! changed program takes this edge under SC. So a run of the changed program can be translated into a run of
//! the original ([`Draft::back`]).
//!
//! *Invariants*
//! 1. Locations and registers of the original keep their ids, and new ones come after them. So properties
//!    stay valid, and the exit stays the exit (a `debug_assert!` in [`Draft::build`]).
//! 2. The stores of a thread that the changed program keeps in registers are those in its buffer in the
//!    original, in the same order. So both have the same memory ([`Draft::back`] checks this).
//! 3. Every location with such stores is an [own](DraftCode::own) location ([`Draft::back`] checks this,
//!    too). A property that reads memory is not judged there, as the original does not judge it with pending
//!    stores.

use palisade_base::{Id, IdVec, limits};
use palisade_memory::{Action, Effect, Machine, Step};
use palisade_program::running::{
    BinaryOp, Code, CodeId, Condition, Edge, EdgeId, Instr, Location, PropertyKind, RegId, Register, System,
    Type, UnaryOp,
};
use palisade_trace::Run;
use std::fmt::Display;

/// The steps of the original when an edge is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    /// It takes this edge.
    pub execute: Option<EdgeId>,
    /// Then the oldest pending store of the thread reaches memory, if it went to the buffer.
    pub updates: bool,
    /// Whether all of this happens only if the step ends in a fault.
    pub only_if_faulting: bool,
}

impl Tag {
    /// Nothing.
    pub const NOTHING: Tag = Tag { execute: None, updates: false, only_if_faulting: false };
    /// The oldest pending store reaches memory.
    pub const UPDATE: Tag = Tag { execute: None, updates: true, only_if_faulting: false };
}

/// A running form under construction.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    system: System,
    codes: IdVec<CodeId, DraftCode>,
}

/// A code under construction.
#[derive(Clone, Debug)]
pub(crate) struct DraftCode {
    pub locations: usize,
    pub registers: IdVec<RegId, Register>,
    /// The edges by number. Removed edges are `None`.
    pub edges: Vec<Option<(Edge, Tag)>>,
    /// Locations at which the original may have pending stores.
    pub own: Vec<Location>,
}

/// A draft as a running form.
pub(crate) struct Built {
    pub system: System,
    /// For each edge of a code, its number in the draft.
    pub numbers: IdVec<CodeId, Vec<usize>>,
}

impl Draft {
    /// An unchanged running form.
    pub fn new(system: &System) -> Draft {
        let codes = system.codes.iter().map(|code| {
            let edges = code.edges().iter_enumerated().map(|(id, edge)| {
                let updates = matches!(edge.instr, Instr::Store(..));
                Some((edge.clone(), Tag { execute: Some(id), updates, only_if_faulting: false }))
            });
            DraftCode {
                locations: code.location_count(),
                registers: code.registers.clone(),
                edges: edges.collect(),
                own: Vec::new(),
            }
        });
        let codes = codes.collect();
        Draft { system: system.clone(), codes }
    }

    pub fn code(&self, code: CodeId) -> &DraftCode {
        &self.codes[code]
    }

    pub fn code_mut(&mut self, code: CodeId) -> &mut DraftCode {
        &mut self.codes[code]
    }

    /// The memory cells and other parts that never change.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The properties, for modification.
    pub fn system_mut(&mut self) -> &mut System {
        &mut self.system
    }

    /// The running form.
    pub fn build(&self) -> Built {
        let mut system = self.system.clone();
        let mut numbers = IdVec::new();
        for (id, draft) in self.codes.iter_enumerated() {
            let kept =
                draft.edges.iter().enumerate().filter_map(|(number, edge)| Some((number, edge.as_ref()?)));
            let mut kept: Vec<(usize, &Edge)> = kept.map(|(number, (edge, _))| (number, edge)).collect();
            kept.sort_by_key(|(_, edge)| edge.source);
            let edges = kept.iter().map(|(_, edge)| (*edge).clone()).collect();
            let old = &self.system.codes[id];
            debug_assert!(
                draft.locations >= old.location_count()
                    && draft.registers.as_slice().starts_with(old.registers.as_slice()),
                "invariant 1: the original's locations and registers come first"
            );
            let mut code = Code::new(old.name.clone(), old.entry, old.exit, draft.locations, edges);
            code.registers = draft.registers.clone();
            (code.params, code.result, code.labels) = (old.params, old.result, old.labels.clone());
            system.codes[id] = code;
            numbers.push(kept.into_iter().map(|(number, _)| number).collect());
        }
        let own: Vec<_> = system
            .roles
            .iter_enumerated()
            .flat_map(|(id, role)| self.codes[role.code].own.iter().map(move |&location| (id, location)))
            .collect();
        for property in &mut system.properties {
            if property.kind == PropertyKind::Forbid && property.reads_memory && !own.is_empty() {
                let no_thread = Condition::Unary(UnaryOp::Not, Box::new(Condition::Count(own.clone())));
                let bad = std::mem::replace(&mut property.bad, Condition::Const(0));
                property.bad = Condition::Binary(BinaryOp::And, Box::new(no_thread), Box::new(bad));
            }
        }
        Built { system, numbers }
    }

    /// The run of the original that corresponds to a run of the changed program under SC. `None` if there is
    /// no such run, which would be a bug in the modification.
    pub fn back(&self, built: &Built, run: &Run, original: Machine<'_>) -> Option<Run> {
        let changed = Machine { system: &built.system, model: palisade_memory::Model::Sc, ..original };
        let mut from = changed.initial_state(&run.memory)?;
        let mut to = original.initial_state(&run.memory)?;
        let mut steps = Vec::new();
        for step in &run.steps {
            limits::checkpoint();
            let (next, effect) = changed.step(&from, *step).ok()?;
            let Action::Execute { edge, choice } = step.action else { return None };
            let code = from.threads[step.thread].top().code;
            let (_, tag) = self.codes[code].edges[built.numbers[code][edge.index()]].as_ref()?;
            from = next;
            if tag.only_if_faulting && !matches!(effect, Effect::Faulted(_)) {
                continue;
            }
            let mut take = |action| {
                let step = Step { thread: step.thread, action };
                let (next, effect) = original.step(&to, step).ok()?;
                to = next;
                steps.push(step);
                Some(effect)
            };
            let stored = match tag.execute {
                Some(edge) => matches!(take(Action::Execute { edge, choice })?, Effect::Buffered(..)),
                None => true,
            };
            if tag.updates && stored {
                take(Action::Update { position: 0 })?;
            }
            if from.fault.is_none() && to.fault.is_none() {
                debug_assert_eq!(from.memory, to.memory, "invariant 2: both have the same memory");
                let at = from.threads[step.thread].top();
                debug_assert!(
                    to.threads[step.thread].buffer.is_empty()
                        || self.codes[at.code].own.contains(&at.location),
                    "invariant 3: a location with pending stores is an own location"
                );
            }
        }
        Some(Run { memory: run.memory.clone(), steps })
    }
}

impl DraftCode {
    pub fn location(&mut self) -> Location {
        self.locations += 1;
        Location::from_index(self.locations - 1)
    }

    /// A location at which the original may have pending stores.
    pub fn own_location(&mut self) -> Location {
        let location = self.location();
        self.own.push(location);
        location
    }

    /// A new temporary. The suffix becomes part of its name.
    pub fn temporary(&mut self, suffix: impl Display) -> RegId {
        self.registers.push(Register::temporary(suffix, Type::INT))
    }

    pub fn add(&mut self, edge: Edge, tag: Tag) {
        self.edges.push(Some((edge, tag)));
    }

    pub fn edge(&self, number: usize) -> &(Edge, Tag) {
        self.edges[number].as_ref().expect("removed edges are not used")
    }
}
