//! Fences for programs with any number of processes, or that start processes without bound, against trying all sets of
//! fences with brute force on small numbers of processes.
//!
//! - A run that brute force finds with some fences shows that these fences are not enough: no set that was found is among
//!   them.
//! - Where brute force sees all runs of a program that starts processes, and no run is bad, the fences are enough: some set
//!   that was found is among them.

use crate::common::{as_set, fencings, places};
use palisade_base::Source;
use palisade_conformance::brute::{self, Scope};
use palisade_conformance::generate::{generate_parameterized, generate_spawning};
use palisade_conformance::{robust, seeds};
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Outcome, Question, Stats, Task, Verdict};
use palisade_fences::{End, Fencing, Goal, Judgement, Oracle, Per, Placement, Shown, Which, find};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::print::print;
use palisade_program::running::System;
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower};
use palisade_robust::Attacks;
use palisade_syntax::{Language, parse};

/// The engines that decide such programs.
struct Engines {
    goal: Goal,
    model: Model,
}

impl Oracle for Engines {
    type Error = std::convert::Infallible;

    fn judge(&self, program: &Program, limits: &Limits) -> Result<Judgement, Self::Error> {
        let task = Task::new(program, self.model);
        let limits = limits.clone().with_work(20_000);
        let (verdict, engine, stats) = match (self.goal, self.model) {
            (Goal::Robustness, _) => parts(Attacks.check(&task.analysis(), &limits)),
            (Goal::Safety, Model::Pso) => parts(Sb.check(&task.analysis(), &limits)),
            (Goal::Safety, _) => parts(Dual.check(&task.analysis(), &limits)),
        };
        Ok(Judgement { verdict, engine, stats, shown: Shown::Missed })
    }

    fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        Machine { system, model: self.model, interlocked: Interlocked::default() }
    }

    fn goal(&self) -> Goal {
        self.goal
    }
}

fn parts<Q: Question>(outcome: Outcome<Q>) -> (Verdict, &'static str, Stats) {
    (outcome.verdict, outcome.engine, outcome.stats)
}

/// What brute force knows about a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Right,
    Wrong,
    Nothing,
}

fn brute_force(program: &Program, goal: Goal, model: Model, any: u32) -> Known {
    let system = lower(program, Instantiation { any, every: None });
    let machine = Machine::new(&system, model);
    match goal {
        Goal::Safety => match brute::check(machine, Scope { states: 2_000, buffer: Some(4) }) {
            brute::Answer::Safe => Known::Right,
            brute::Answer::Unsafe(_) => Known::Wrong,
            brute::Answer::Inconclusive => Known::Nothing,
        },
        Goal::Robustness => match robust::check(machine, 1_000) {
            robust::Answer::Robust => Known::Right,
            robust::Answer::NotRobust(_) => Known::Wrong,
            robust::Answer::Inconclusive => Known::Nothing,
        },
    }
}

/// How many answers of each kind there were, and how many fencings brute force knew something about.
#[derive(Default, Debug)]
struct Counts {
    none_needed: usize,
    repairable: usize,
    hopeless: usize,
    unknown: usize,
    wrong_fencings: usize,
    right_fencings: usize,
}

/// Compares the answer for one program. `numbers` are the numbers of instances of templates with any number. The answer of
/// brute force for one of them is not known to be that for all, unless `all_runs`.
fn compare(program: &Program, numbers: &[u32], all_runs: bool, seed: u64, counts: &mut Counts) {
    let source = Source::new("random", print(program));
    let program = &parse(Language::Pal, &source).expect("a printed program can be read").program;
    for (goal, model) in [
        (Goal::Safety, Model::Tso),
        (Goal::Safety, Model::Pso),
        (Goal::Robustness, Model::Tso),
        (Goal::Robustness, Model::Pso),
    ] {
        let what = || format!("seed {seed}, {goal:?}, {}\n{}", model.name(), print(program));
        let places = places(program, Placement::AfterWrites, Per::Source, model);
        let all: f64 = places.places().iter().map(|place| place.kinds().len() as f64 + 1.0).product();
        if all > 32.0 {
            continue;
        }
        let oracle = Engines { goal, model };
        let Ok(findings) = find(&places, Which::All, &|_, _| 1, &oracle, &Limits::unlimited(1));
        let found: Vec<_> = findings.sets.iter().map(|set| as_set(&set.fencing)).collect();
        let is_enough = |fencing: &Fencing| {
            found.iter().any(|set| set.iter().zip(fencing.iter()).all(|(least, fence)| least <= fence))
        };
        let complete = match &findings.end {
            End::Complete if found.iter().any(|set| set.iter().all(Option::is_none)) => {
                &mut counts.none_needed
            }
            End::Complete => &mut counts.repairable,
            End::Hopeless(_) => &mut counts.hopeless,
            End::Unknown(_) => &mut counts.unknown,
        };
        *complete += 1;
        let is_complete = !matches!(findings.end, End::Unknown(_));
        for fencing in &fencings(&places) {
            let fenced = places.fenced(fencing);
            let known = numbers.iter().map(|&any| brute_force(&fenced, goal, model, any));
            let known: Vec<Known> = known.collect();
            if known.contains(&Known::Wrong) {
                assert!(!is_enough(fencing), "{fencing:?} is not enough: {}", what());
                counts.wrong_fencings += 1;
            } else if all_runs && known == [Known::Right] {
                assert!(!is_complete || is_enough(fencing), "{fencing:?} is enough: {}", what());
                counts.right_fencings += 1;
            }
        }
    }
}

#[test]
fn differential_started_processes() {
    let seeds = seeds(12).starting_at(1);
    let mut counts = Counts::default();
    for seed in &seeds {
        compare(&generate_spawning(seed), &[1], true, seed, &mut counts);
    }
    println!("started processes: {counts:?}");
    let Counts { none_needed, repairable, wrong_fencings, right_fencings, .. } = counts;
    let covered = none_needed > 0 && repairable > 0 && wrong_fencings > 0 && right_fencings > 0;
    assert!(covered || !seeds.suffice(), "{counts:?}");
}

#[test]
fn differential_any_number_of_processes() {
    let seeds = seeds(10).starting_at(1);
    let mut counts = Counts::default();
    for seed in &seeds {
        compare(&generate_parameterized(seed), &[1, 2], false, seed, &mut counts);
    }
    println!("any number: {counts:?}");
    let covered = counts.none_needed > 0 && counts.repairable > 0 && counts.wrong_fencings > 0;
    assert!(covered || !seeds.suffice(), "{counts:?}");
}
