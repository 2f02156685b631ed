//! An oracle that tries everything, and programs with places in them.

use palisade_base::Source;
use palisade_conformance::brute::{self, Scope};
use palisade_conformance::robust;
use palisade_engine::{Limits, Reason, Stats, Verdict, Witness};
use palisade_fences::{
    Change, Fencing, Findings, Goal, Judgement, Oracle, Per, Placement, Places, Shown, Stronger, Wanted,
    Which, find,
};
use palisade_memory::{Machine, Model};
use palisade_program::running::System;
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower};
use palisade_syntax::edit::FenceKind;
use palisade_syntax::{Language, parse};
use palisade_trace::Run;
use std::cell::Cell;
use std::collections::BTreeSet;

pub fn pal(text: &str) -> Program {
    read(Language::Pal, text)
}

pub fn read(language: Language, text: &str) -> Program {
    let source = Source::new("test", text);
    parse(language, &source).unwrap_or_else(|errors| panic!("{errors:#?}\nin\n{text}")).program
}

/// The places of a program in whose text a fence may be written anywhere.
pub fn places(program: &Program, placement: Placement, per: Per, model: Model) -> Places {
    let wanted = Wanted {
        placement,
        per,
        store_fences: model == Model::Pso,
        can_write: &|_| true,
        stronger: &|_| None,
        allows: &|_| true,
    };
    Places::new(program, &wanted)
}

/// The places of a program in which every store can be made stronger, too: a release store, or a `seq_cst` one.
pub fn places_and_accesses(program: &Program, placement: Placement, model: Model) -> Places {
    let stronger = Stronger { full: Change::SeqCst, weak: Some(Change::Release) };
    let wanted = Wanted {
        placement,
        per: Per::Source,
        store_fences: model == Model::Pso,
        can_write: &|fence| fence.span.start % 3 != 0,
        stronger: &|access| Some(stronger).filter(|_| access.span.start % 3 != 1),
        allows: &|_| true,
    };
    Places::new(program, &wanted)
}

/// The answer of brute force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BruteAnswer {
    Right,
    Wrong(Run),
    TooManyStates,
}

/// The brute-force interpreter as an oracle.
pub struct Brute {
    pub goal: Goal,
    pub model: Model,
    pub states: usize,
    pub calls: Cell<usize>,
}

impl Brute {
    pub fn new(goal: Goal, model: Model, states: usize) -> Brute {
        Brute { goal, model, states, calls: Cell::new(0) }
    }

    pub fn answer(&self, program: &Program) -> BruteAnswer {
        self.answer_within(program, self.states)
    }

    fn answer_within(&self, program: &Program, states: usize) -> BruteAnswer {
        let system = lower(program, Instantiation::declared(2));
        let machine = Machine::new(&system, self.model);
        match self.goal {
            Goal::Safety => match brute::check(machine, Scope::states(states)) {
                brute::Answer::Safe => BruteAnswer::Right,
                brute::Answer::Unsafe(run) => BruteAnswer::Wrong(run),
                brute::Answer::Inconclusive => BruteAnswer::TooManyStates,
            },
            Goal::Robustness => match robust::check(machine, states) {
                robust::Answer::Robust => BruteAnswer::Right,
                robust::Answer::NotRobust(run) => BruteAnswer::Wrong(run),
                robust::Answer::Inconclusive => BruteAnswer::TooManyStates,
            },
        }
    }
}

impl Oracle for Brute {
    type Error = std::convert::Infallible;

    fn judge(&self, program: &Program, _: &Limits) -> Result<Judgement, Self::Error> {
        self.calls.set(self.calls.get() + 1);
        // Marked programs have more states.
        let verdict = match self.answer_within(program, 50 * self.states) {
            BruteAnswer::Right => Verdict::Holds,
            BruteAnswer::Wrong(run) => {
                Verdict::Violated(Witness { instantiation: Instantiation::declared(2), run })
            }
            BruteAnswer::TooManyStates => Verdict::Unknown(Reason::Unsupported("too many states".to_owned())),
        };
        Ok(Judgement { verdict, engine: "brute", stats: Stats::new(), shown: Shown::Missed })
    }

    fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        Machine::new(system, self.model)
    }

    fn goal(&self) -> Goal {
        self.goal
    }
}

pub fn search(places: &Places, which: Which, oracle: &Brute) -> Findings {
    match find(places, which, &|_, _| 1, oracle, &Limits::unlimited(1)) {
        Ok(findings) => findings,
        Err(never) => match never {},
    }
}

/// All fencings of the places.
pub fn fencings(places: &Places) -> Vec<Fencing> {
    let mut all = vec![Fencing::new()];
    for place in places.places().iter() {
        let choices: Vec<Option<FenceKind>> =
            std::iter::once(None).chain(place.kinds().iter().copied().map(Some)).collect();
        all = all
            .into_iter()
            .flat_map(|fencing| {
                choices.iter().map(move |&choice| {
                    let mut longer = fencing.clone();
                    longer.push(choice);
                    longer
                })
            })
            .collect();
    }
    all
}

pub fn as_set(fencing: &Fencing) -> Vec<Option<FenceKind>> {
    fencing.iter().copied().collect()
}

/// The minimal fencings that make the program correct, found by trying all of them on the program as it would
/// be written. `None` if that takes too long.
pub fn by_trying_all(places: &Places, oracle: &Brute) -> Option<BTreeSet<Vec<Option<FenceKind>>>> {
    let mut right = Vec::new();
    for fencing in fencings(places) {
        match oracle.answer(&places.fenced(&fencing)) {
            BruteAnswer::Right => right.push(as_set(&fencing)),
            BruteAnswer::Wrong(_) => {}
            BruteAnswer::TooManyStates => return None,
        }
    }
    let below =
        |a: &[Option<FenceKind>], b: &[Option<FenceKind>]| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
    let minimal = right.iter().filter(|set| !right.iter().any(|other| below(other, set)));
    Some(minimal.cloned().collect())
}
