//! The suite that every engine must pass.
//!
//! An engine's tests call [`check_engine`] and [`check_classics`]. For each random program and model:
//! 1. the verdict is that of the brute-force interpreter, if it has one;
//! 2. the witness replays and is not much longer than a shortest one;
//! 3. one job and two jobs give the same verdict and the same witness;
//! 4. what SC breaks TSO breaks, and what TSO breaks PSO breaks;
//! 5. adding a fence does not break a program; renaming, and reordering the processes, change nothing.
//!
//! Programs that are too large for the interpreter are compared by 2 to 5 only. There the engine stops after
//! [`WORK_FACTOR`] times the work of the interpreter.
//!
//! A failure is shrunk and printed as `.pal` with its seed. `PALISADE_SEEDS=1000` sets the number of programs
//! per profile; `PALISADE_SEED=7` tries only that one.

use crate::brute::{self, Answer, Scope};
use crate::classics::{self, Classic};
use crate::generate::{Profile, generate};
use crate::random::Random;
use crate::shrink::shrink;
use crate::transform;
use palisade_engine::{Engine, Limits, Options, Question, Safety, Suitability, Task, Threads, Verdict};
use palisade_memory::{Action, Interlocked, Machine, Model, Step};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower, print};
use palisade_trace::{Run, replay};
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How much more than the brute-force interpreter an engine works on a program that is too large for it.
const WORK_FACTOR: u64 = 3;

/// How to test an engine.
#[derive(Clone, Debug)]
pub struct SuiteConfig {
    /// The profiles of the programs.
    pub profiles: Vec<Profile>,
    /// The number of programs per profile.
    pub programs: usize,
    /// The first seed; the others follow it.
    pub first_seed: u64,
    /// The models.
    pub models: Vec<Model>,
    /// Where the engine may answer `unknown`.
    pub unknown: Unknown,
    /// The maximum length of a witness, as a multiple of a shortest one; `None` for any length.
    pub witness_factor: Option<f64>,
    /// The limits of the brute-force interpreter. The limit on buffers applies only to programs with loops.
    pub limits: Scope,
    /// Options for the engine.
    pub options: Options,
    /// How long the engine may take for one program before it should answer `unknown`.
    pub timeout: Duration,
}

/// Where an engine may answer `unknown` although the brute-force interpreter has an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// Nowhere.
    Never,
    /// For programs with loops or recursion.
    IfCyclic,
    /// Everywhere.
    Always,
}

impl Default for SuiteConfig {
    /// All profiles and models, a hundred programs each, exact answers, witnesses of any length.
    fn default() -> Self {
        SuiteConfig {
            profiles: Profile::ALL.to_vec(),
            programs: 100,
            first_seed: 1,
            models: Model::ALL.to_vec(),
            unknown: Unknown::Never,
            witness_factor: None,
            limits: Scope { states: 12_000, buffer: Some(4) },
            options: Options::default(),
            timeout: Duration::from_secs(60),
        }
    }
}

/// Tests an engine with random programs.
///
/// # Panics
/// If the engine fails, with a small program that shows it.
pub fn check_engine(engine: &dyn Engine, config: SuiteConfig) {
    let seeds = seeds(&config);
    for &profile in &config.profiles {
        let mut tally = Tally::default();
        for seed in seeds.clone() {
            let program = generate(profile, seed);
            let subject = Subject { engine, config: &config, profile, seed };
            if let Err(problem) = subject.examine(&program, &mut tally) {
                let problem_of = |program: &Program| subject.examine(program, &mut Tally::default()).err();
                subject.report(&format!("a {profile:?} program"), program, &problem, &problem_of);
            }
        }
        eprintln!("{} on {profile:?} programs, seeds {seeds:?}: {tally}", engine.name());
    }
}

/// The seeds to try.
pub(crate) fn seeds(config: &SuiteConfig) -> Range<u64> {
    crate::seeds(config.programs as u64).starting_at(config.first_seed).range()
}

/// Tests an engine with the classics.
///
/// # Panics
/// If a verdict is wrong.
pub fn check_classics(engine: &dyn Engine, config: SuiteConfig) {
    let mut wrong = String::new();
    for classic in classics::all() {
        for &model in &config.models {
            let subject = Subject { engine, config: &config, profile: classic.profile(), seed: 0 };
            if let Err(problem) = subject.examine_classic(&classic, model) {
                writeln!(wrong, "{}: {}", classic.name, problem.text).expect("writing to a string succeeds");
            }
        }
    }
    assert!(wrong.is_empty(), "{} is wrong on classics:\n{wrong}", engine.name());
}

/// Whether a program is small enough for the brute-force interpreter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Size {
    Small,
    Large,
}

/// How many verdicts of each kind there were.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    safe: usize,
    broken: usize,
    unknown: usize,
    /// For how many of all these the brute-force interpreter had an answer.
    compared: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { safe, broken, unknown, compared } = self;
        write!(f, "{safe} safe, {broken} unsafe, {unknown} unknown; {compared} compared with brute force")
    }
}

/// A law that an engine broke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub law: Law,
    pub text: String,
}

/// The laws. Shrinking preserves the law that was broken first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Law {
    NoPanic,
    NoBug,
    ClaimsHold,
    Decides,
    FindsBugs,
    NoFalseAlarm,
    WitnessReplays,
    WitnessIsShort,
    SameForAllJobs,
    SameForAllNames,
    WeakerModelsBreakMore,
    FencesOnlyHelp,
    Classic,
}

impl Law {
    pub fn broken<T>(self, text: String) -> Result<T, Problem> {
        Err(Problem { law: self, text })
    }
}

/// An engine, and how it is tested.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub engine: &'a dyn Engine,
    pub config: &'a SuiteConfig,
    pub profile: Profile,
    pub seed: u64,
}

impl Subject<'_> {
    /// All laws for one program. `Err` says which one is broken.
    fn examine(&self, program: &Program, tally: &mut Tally) -> Result<(), Problem> {
        let mut random = Random::new(self.seed);
        let fenced = transform::with_fence(program, &mut random);
        let renamed = transform::renamed(program);
        let reordered = transform::reordered(program, &mut random);
        let mut stronger: Option<(Model, Verdict)> = None;
        for &model in &self.config.models {
            let Some((verdict, size)) = self.compare(program, model, Interlocked::WholeBuffer, tally)? else {
                continue;
            };
            let word = Safety::word(&verdict);
            if let Some((strong, Verdict::Violated(_))) = stronger
                && verdict == Verdict::Holds
            {
                let text = format!("{word} under {}, but unsafe under {}", model.name(), strong.name());
                return Law::WeakerModelsBreakMore.broken(text);
            }
            if model == Model::Pso {
                self.compare(program, model, Interlocked::OwnAddress, tally)?;
            }
            let ask =
                |program: &Program, jobs| self.ask(program, model, Interlocked::WholeBuffer, size, jobs);
            let again = ask(program, 2)?;
            if again != verdict && !is_unknown(&again) && !is_unknown(&verdict) {
                let what =
                    if Safety::word(&again) == word { "another witness" } else { Safety::word(&again) };
                let text = format!("{}: {word} with one job, {what} with two", model.name());
                return Law::SameForAllJobs.broken(text);
            }
            for (changed, how) in [(&renamed, "renamed"), (&reordered, "in another order")] {
                let other = ask(changed, 1)?;
                if Safety::word(&other) != word && !is_unknown(&other) && !is_unknown(&verdict) {
                    let text = format!("{}: {word}, but {how} {}", model.name(), Safety::word(&other));
                    return Law::SameForAllNames.broken(text);
                }
            }
            if verdict == Verdict::Holds && matches!(ask(&fenced, 1)?, Verdict::Violated(_)) {
                let with_fence = print::print(&fenced);
                let text =
                    format!("{}: safe, but unsafe with an additional fence:\n{with_fence}", model.name());
                return Law::FencesOnlyHelp.broken(text);
            }
            stronger = Some((model, verdict));
        }
        Ok(())
    }

    /// Compares with brute force and checks the witness. Returns the verdict and the size of the program, or `None`
    /// if the engine does not support such programs.
    fn compare(
        &self,
        program: &Program,
        model: Model,
        interlocked: Interlocked,
        tally: &mut Tally,
    ) -> Result<Option<(Verdict, Size)>, Problem> {
        if self.engine.suits(&self.task(program, model, interlocked).analysis()) == Suitability::No {
            return Ok(None);
        }
        let system = lower(program, Instantiation { any: 2, every: None });
        let mut limits = self.config.limits;
        if self.profile.is_acyclic() {
            limits.buffer = None;
        }
        let answer = brute::check(Machine { system: &system, model, interlocked }, limits);
        let size = if answer == Answer::Inconclusive { Size::Large } else { Size::Small };
        let verdict = self.ask(program, model, interlocked, size, 1)?;
        match verdict {
            Verdict::Holds => tally.safe += 1,
            Verdict::Violated(_) => tally.broken += 1,
            Verdict::Unknown(_) => tally.unknown += 1,
        }
        tally.compared += usize::from(answer != Answer::Inconclusive);
        let place = match interlocked {
            Interlocked::WholeBuffer => model.name().to_owned(),
            Interlocked::OwnAddress => format!("{} with interlocked own-address", model.name()),
        };
        self.agree(program, model, interlocked, &verdict, &answer)
            .map_err(|problem| Problem { text: format!("{place}: {}", problem.text), ..problem })?;
        Ok(Some((verdict, size)))
    }

    fn agree(
        &self,
        program: &Program,
        model: Model,
        interlocked: Interlocked,
        verdict: &Verdict,
        answer: &Answer,
    ) -> Result<(), Problem> {
        match (verdict, answer) {
            (Verdict::Unknown(_), Answer::Inconclusive) => {}
            (Verdict::Unknown(reason), _) => {
                let allowed = match self.config.unknown {
                    Unknown::Never => false,
                    Unknown::IfCyclic => !self.profile.is_acyclic(),
                    Unknown::Always => true,
                };
                if !allowed {
                    return Law::Decides.broken(format!("unknown ({reason}), but {}", answer.word()));
                }
            }
            (Verdict::Holds, Answer::Unsafe(run)) => {
                return Law::FindsBugs.broken(format!("safe, but there is a run {}", compact(run)));
            }
            (Verdict::Violated(_), Answer::Safe) => {
                return Law::NoFalseAlarm.broken("unsafe, but brute force finds nothing".to_owned());
            }
            _ => {}
        }
        let Verdict::Violated(witness) = verdict else { return Ok(()) };
        let system = lower(program, witness.instantiation);
        if let Err(error) = replay(Machine { system: &system, model, interlocked }, &witness.run) {
            return Law::WitnessReplays.broken(format!("the witness does not replay: {error}"));
        }
        if let (Some(factor), Answer::Unsafe(shortest)) = (self.config.witness_factor, answer) {
            let (found, least) = (witness.run.steps.len(), shortest.steps.len());
            if found as f64 > factor * least as f64 {
                let text = format!("the witness has {found} steps, a shortest one {least}");
                return Law::WitnessIsShort.broken(text);
            }
        }
        Ok(())
    }

    fn examine_classic(&self, classic: &Classic, model: Model) -> Result<(), Problem> {
        let expected = classic.expected(model);
        if self.engine.suits(&self.task(&classic.program, model, Interlocked::WholeBuffer).analysis())
            == Suitability::No
        {
            return Ok(());
        }
        match self.compare(&classic.program, model, Interlocked::WholeBuffer, &mut Tally::default())? {
            Some((verdict, _)) if Safety::word(&verdict) != expected && !is_unknown(&verdict) => {
                let text = format!("{}: {}, expected {expected}", model.name(), Safety::word(&verdict));
                Law::Classic.broken(text)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn task<'p>(&self, program: &'p Program, model: Model, interlocked: Interlocked) -> Task<'p> {
        Task { program, threads: Threads::Declared, model, interlocked, options: self.config.options.clone() }
    }

    /// Runs the engine on a program as declared.
    fn ask(
        &self,
        program: &Program,
        model: Model,
        interlocked: Interlocked,
        size: Size,
        jobs: usize,
    ) -> Result<Verdict, Problem> {
        let limits = Limits::unlimited(jobs).with_timeout(self.config.timeout);
        let limits = match size {
            Size::Small => limits,
            Size::Large => limits.with_work(WORK_FACTOR * self.config.limits.states as u64),
        };
        self.answer_within(&self.task(program, model, interlocked), &limits)
    }

    /// The engine's answer within limits, with its panics caught.
    pub(crate) fn answer_within(&self, task: &Task<'_>, limits: &Limits) -> Result<Verdict, Problem> {
        let answer = catch_unwind(AssertUnwindSafe(|| self.engine.check(&task.analysis(), limits).verdict));
        match answer {
            Ok(Verdict::Unknown(reason)) if reason.bug().is_some() => {
                Law::NoBug.broken(format!("{}: the engine contradicts itself: {reason}", task.model.name()))
            }
            Ok(verdict) => Ok(verdict),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                Law::NoPanic.broken(format!("{}: the engine panicked: {text}", task.model.name()))
            }
        }
    }

    /// Shrinks the program, as long as the same law is broken, and panics.
    pub(crate) fn report(
        &self,
        kind: &str,
        program: Program,
        problem: &Problem,
        problem_of: &dyn Fn(&Program) -> Option<Problem>,
    ) -> ! {
        let small =
            shrink(program, &|program| problem_of(program).is_some_and(|other| other.law == problem.law));
        let last = problem_of(&small);
        panic!(
            "engine {} fails on {kind}, seed {}\nwhole program: {}\nsmall program: {}\n\n{}\n\
             PALISADE_SEED={} repeats it.",
            self.engine.name(),
            self.seed,
            problem.text,
            last.as_ref().map_or("(does not fail again)", |problem| &problem.text),
            print::print(&small),
            self.seed,
        )
    }
}

/// `from [0, 0]: 0:e1 1:e0 0:u0`: which thread takes which edge, or which pending store of which thread
/// reaches memory.
pub(crate) fn compact(run: &Run) -> String {
    let step = |step: &Step| {
        let thread = step.thread.0;
        match step.action {
            Action::Execute { edge, choice: None } => format!("{thread}:e{}", edge.0),
            Action::Execute { edge, choice: Some(value) } => format!("{thread}:e{}={value}", edge.0),
            Action::Update { position } => format!("{thread}:u{position}"),
        }
    };
    let steps: Vec<String> = run.steps.iter().map(step).collect();
    format!("from {:?}: {}", run.memory, steps.join(" "))
}

fn is_unknown(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(_))
}
