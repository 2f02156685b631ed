//! The suite that every engine for robustness must pass.
//!
//! For each random program and model:
//! 1. the answer is that of brute force ([`crate::robust`]), if brute force has one;
//! 2. the run that comes with `not-robust` replays, and its happens-before has a cycle;
//! 3. one job and two jobs give the same answer and the same run;
//! 4. what is not robust under TSO is not robust under PSO;
//! 5. adding a fence does not make a robust program not robust; renaming, and reordering the processes,
//!    change nothing;
//! 6. a robust program that is safe under SC is safe (Lemma 5 of "Lazy TSO reachability").
//!
//! A failure is shrunk and printed as `.pal` with its seed. `PALISADE_SEEDS` and `PALISADE_SEED` work as for
//! [`crate::suite`].

use crate::brute::{self, Scope};
use crate::generate::{Profile, generate};
use crate::random::Random;
use crate::robust::{self, Answer};
use crate::shrink::shrink;
use crate::suite::{SuiteConfig, compact, seeds};
use crate::transform;
use palisade_engine::{Engine, Limits, Options, Question, Robustness, Suitability, Task, Threads, Verdict};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};
use palisade_trace::violating;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How to test an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// The profiles of the programs.
    pub profiles: Vec<Profile>,
    /// The number of programs per profile.
    pub programs: usize,
    /// The first seed; the others follow it.
    pub first_seed: u64,
    /// The models and kinds of locked instructions.
    pub machines: Vec<(Model, Interlocked)>,
    /// Whether the engine may answer `unknown` where brute force has an answer.
    pub unknown: bool,
    /// The maximum number of pairs of state and trace that brute force examines.
    pub most: usize,
    /// Options for the engine.
    pub options: Options,
    /// How long the engine may take for one program before it should answer `unknown`.
    pub timeout: Duration,
}

impl Default for Config {
    /// All profiles, TSO and both kinds of PSO, sixteen programs each, exact answers.
    fn default() -> Self {
        Config {
            profiles: Profile::ALL.to_vec(),
            programs: 16,
            first_seed: 1,
            machines: vec![
                (Model::Tso, Interlocked::WholeBuffer),
                (Model::Pso, Interlocked::WholeBuffer),
                (Model::Pso, Interlocked::OwnAddress),
            ],
            unknown: false,
            most: 4_000,
            options: Options::default(),
            timeout: Duration::from_secs(60),
        }
    }
}

/// Tests an engine with random programs.
///
/// # Panics
/// If the engine fails, with a small program that shows it.
pub fn check_robustness(engine: &dyn Engine<Robustness>, config: &Config) {
    let seeds = seeds(&SuiteConfig {
        programs: config.programs,
        first_seed: config.first_seed,
        ..SuiteConfig::default()
    });
    for &profile in &config.profiles {
        let mut tally = Tally::default();
        for seed in seeds.clone() {
            let program = generate(profile, seed);
            let subject = Subject { engine, config, seed };
            if let Err(problem) = subject.examine(&program, &mut tally) {
                let small = shrink(program, &|program| {
                    fails_with(&subject, program).is_some_and(|p| p.law == problem.law)
                });
                let last = fails_with(&subject, &small);
                panic!(
                    "engine {} fails on a {profile:?} program, seed {seed}\nwhole program: {}\nsmall program: {}\n\n{}\n\
                     PALISADE_SEED={seed} repeats it.",
                    engine.name(),
                    problem.text,
                    last.map_or("(does not fail again)".to_owned(), |problem| problem.text),
                    print::print(&small),
                );
            }
        }
        eprintln!("{} on {profile:?} programs, seeds {seeds:?}: {tally:?}", engine.name());
    }
}

fn fails_with(subject: &Subject<'_>, program: &Program) -> Option<Problem> {
    subject.examine(program, &mut Tally::default()).err()
}

/// How many answers of each kind there were, and for how many of them brute force had an answer.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    robust: usize,
    not_robust: usize,
    unknown: usize,
    compared: usize,
}

/// A law that an engine broke.
struct Problem {
    law: Law,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Law {
    NoPanic,
    Decides,
    FindsCycles,
    NoFalseAlarm,
    RunHasCycle,
    SameForAllJobs,
    SameForAllNames,
    WeakerModelsBreakMore,
    FencesOnlyHelp,
    RobustAndSafeIsSafe,
}

impl Law {
    fn broken<T>(self, text: String) -> Result<T, Problem> {
        Err(Problem { law: self, text })
    }
}

#[derive(Clone, Copy)]
struct Subject<'a> {
    engine: &'a dyn Engine<Robustness>,
    config: &'a Config,
    seed: u64,
}

impl Subject<'_> {
    fn examine(&self, program: &Program, tally: &mut Tally) -> Result<(), Problem> {
        let mut random = Random::new(self.seed);
        let fenced = transform::with_fence(program, &mut random);
        let renamed = transform::renamed(program);
        let reordered = transform::reordered(program, &mut random);
        let mut under_tso = None;
        for &(model, interlocked) in &self.config.machines {
            let place = format!("{} ({interlocked:?})", model.name());
            let at = |problem: Problem| Problem { text: format!("{place}: {}", problem.text), ..problem };
            let task = |program| self.task(program, model, interlocked);
            if self.engine.suits(&task(program).analysis()) == Suitability::No {
                continue;
            }
            let ask = |program: &Program, jobs| self.ask(&self.task(program, model, interlocked), jobs);
            let answer = ask(program, 1)?;
            match answer {
                Verdict::Holds => tally.robust += 1,
                Verdict::Violated(_) => tally.not_robust += 1,
                Verdict::Unknown(_) => tally.unknown += 1,
            }
            self.agree(program, model, interlocked, &answer, tally).map_err(at)?;
            if answer == Verdict::Holds && matches!(under_tso, Some(Verdict::Violated(_))) {
                return Law::WeakerModelsBreakMore.broken(format!("{place}: robust, but not under TSO"));
            }
            let again = ask(program, 2)?;
            let known = |answer: &Verdict| !matches!(answer, Verdict::Unknown(_));
            if again != answer && known(&again) && known(&answer) {
                return Law::SameForAllJobs.broken(format!(
                    "{place}: {} with one job, {} (or another run) with two",
                    Robustness::word(&answer),
                    Robustness::word(&again)
                ));
            }
            for (changed, how) in [(&renamed, "renamed"), (&reordered, "in another order")] {
                let other = ask(changed, 1)?;
                if Robustness::word(&other) != Robustness::word(&answer) && known(&other) && known(&answer) {
                    let text = format!(
                        "{place}: {}, but {how} {}",
                        Robustness::word(&answer),
                        Robustness::word(&other)
                    );
                    return Law::SameForAllNames.broken(text);
                }
            }
            if answer == Verdict::Holds && matches!(ask(&fenced, 1)?, Verdict::Violated(_)) {
                let text =
                    format!("{place}: robust, but not with an additional fence:\n{}", print::print(&fenced));
                return Law::FencesOnlyHelp.broken(text);
            }
            if model == Model::Tso {
                under_tso = Some(answer);
            }
        }
        Ok(())
    }

    /// Compares with brute force, and checks the run and Lemma 5.
    fn agree(
        &self,
        program: &Program,
        model: Model,
        interlocked: Interlocked,
        answer: &Verdict,
        tally: &mut Tally,
    ) -> Result<(), Problem> {
        let system = lower(program, Instantiation { any: 2, every: None });
        let machine = Machine { system: &system, model, interlocked };
        let judged = robust::check(machine, self.config.most);
        tally.compared += usize::from(judged != Answer::Inconclusive);
        match (answer, &judged) {
            (Verdict::Unknown(reason), Answer::Robust | Answer::NotRobust(_)) if !self.config.unknown => {
                return Law::Decides.broken(format!("unknown ({reason}), but {}", judged.word()));
            }
            (Verdict::Holds, Answer::NotRobust(run)) => {
                return Law::FindsCycles.broken(format!("robust, but there is a run {}", compact(run)));
            }
            (Verdict::Violated(_), Answer::Robust) => {
                return Law::NoFalseAlarm.broken("not-robust, but brute force finds nothing".to_owned());
            }
            _ => {}
        }
        if let Verdict::Violated(witness) = answer {
            let system = lower(program, witness.instantiation);
            if let Err(why) = violating(Machine { system: &system, ..machine }, &witness.run) {
                let text = format!("the run shows nothing: {why}: {}", compact(&witness.run));
                return Law::RunHasCycle.broken(text);
            }
        }
        if *answer == Verdict::Holds {
            let limits = Scope { states: self.config.most, buffer: Some(4) };
            let under = |model| brute::check(Machine { model, ..machine }, limits);
            if under(Model::Sc) == brute::Answer::Safe
                && let brute::Answer::Unsafe(run) = under(model)
            {
                let text = format!("robust and safe under SC, but not safe: {}", compact(&run));
                return Law::RobustAndSafeIsSafe.broken(text);
            }
        }
        Ok(())
    }

    fn task<'p>(&self, program: &'p Program, model: Model, interlocked: Interlocked) -> Task<'p> {
        Task { program, threads: Threads::Declared, model, interlocked, options: self.config.options.clone() }
    }

    /// The engine's answer, with its panics caught.
    fn ask(&self, task: &Task<'_>, jobs: usize) -> Result<Verdict, Problem> {
        let limits = Limits::unlimited(jobs).with_timeout(self.config.timeout);
        let answer = catch_unwind(AssertUnwindSafe(|| self.engine.check(&task.analysis(), &limits).verdict));
        answer.or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Law::NoPanic.broken(format!("{}: the engine panicked: {text}", task.model.name()))
        })
    }
}
