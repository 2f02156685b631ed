//! Asking an engine, and believing no run that the trusted machine does not take.

use crate::Input;
use crate::auto::{self, Said};
use crate::engines::{self, engines};
use crate::prove;
use palisade_base::{Source, limits};
use palisade_certificate::{Certificate, Refusal};
use palisade_engine::{
    Budget, Engine, Exhausted, Options, Outcome, Progress, Proof, Reason, Silent, Stats, Task, Threads,
    Verdict, Witness, peak_memory_bytes,
};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::running::System;
use palisade_program::written::{Count, Program, Start};
use palisade_program::{Instantiation, lower};
use palisade_report::{Certified, Evidence};
use palisade_trace::{Origin, Replay, ReplayError, WitnessFile, replay, shorten, text_hash, undelayed};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// What is asked of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckOptions {
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// How often the templates are instantiated.
    pub threads: Threads,
    /// Which engine.
    pub engine: EngineChoice,
    /// Options of single engines.
    pub options: Options,
    /// Whether `safe` is to come with a proof, if some engine can give one.
    pub prove: bool,
    /// Whether the proof is to be checked at once: then there is no `safe` without a proof that convinces.
    pub certify: bool,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions {
            model: Model::Tso,
            interlocked: Interlocked::default(),
            threads: Threads::default(),
            engine: EngineChoice::default(),
            options: Options::default(),
            prove: false,
            certify: false,
        }
    }
}

/// Which engine to ask.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum EngineChoice {
    /// All that suit the program, side by side; the first who knows answers.
    #[default]
    Auto,
    /// This one and no other: if it does not suit the program, the answer is unknown.
    Named(String),
}

/// An answer, with the run that goes with `unsafe`.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The verdict, who gave it and what was counted.
    pub outcome: Outcome,
    /// What the other engines had found out by then.
    pub others: Vec<Outcome>,
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// Time taken.
    pub seconds: f64,
    /// The most memory this process ever used, if the host tells.
    pub peak_memory_bytes: Option<u64>,
    /// The proof that goes with `safe`, if one was asked for and found.
    pub proof: Option<Proved>,
    /// How the proof was checked, if that was asked for.
    pub certified: Option<Certified>,
    /// How often the templates were instantiated.
    pub threads: Threads,
    /// The run, taken on the trusted machine; present if and only if the verdict is `unsafe`.
    replayed: Option<Replayed>,
}

/// A proof of `safe`.
#[derive(Clone, Debug)]
pub struct Proved {
    /// Who gave it: the engine that answered, or another one, if that gives no proofs.
    pub engine: &'static str,
    /// The proof.
    pub proof: Proof,
}

/// A run with the running form of the program that has it.
#[derive(Clone, Debug)]
pub(crate) struct Replayed {
    system: System,
    replay: Replay,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CheckError {
    /// There is no engine with that name.
    #[error("there is no engine `{name}`; the engines are: {}", known.join(", "))]
    NoSuchEngine {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// An engine's run is not one.
    #[error(
        "engine `{engine}` says `unsafe`, but its run does not replay: {error}. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    ReplayFailed {
        /// The engine.
        engine: &'static str,
        /// What is wrong with the run.
        error: ReplayError,
    },
    /// An engine contradicted itself.
    #[error(
        "engine `{engine}` contradicts itself: {what}. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    EngineBug {
        /// The engine.
        engine: &'static str,
        /// What is wrong.
        what: String,
    },
    /// An engine panicked.
    #[error(
        "engine `{engine}` failed: {what}. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    EnginePanicked {
        /// The engine.
        engine: &'static str,
        /// What the panic said.
        what: String,
    },
    /// An engine says `safe`, and another one has a run, or knows that there is one.
    #[error(
        "engine `{safe}` says `safe`, but engine `{other}` says that the program can break. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    Disagreement {
        /// Who says `safe`.
        safe: &'static str,
        /// Who says `unsafe`.
        other: &'static str,
    },
    /// An engine's proof does not convince.
    #[error(
        "engine `{engine}` says `safe`, but its proof does not convince: {refusal}. \
         This is a bug in Palisade, and there is no verdict; please report it with the program"
    )]
    ProofRefused {
        /// The engine.
        engine: &'static str,
        /// What is wrong with the proof.
        refusal: Box<Refusal>,
    },
}

/// Checks a program within a budget.
///
/// A run that breaks the program is shortened and taken on the trusted machine before it is handed out.
pub fn check(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Answer, CheckError> {
    let start = Instant::now();
    let task = Task {
        program,
        threads: options.threads,
        model: options.model,
        interlocked: options.interlocked,
        options: options.options.clone(),
    };
    let wanted = match (options.certify, options.prove) {
        (true, _) => Wanted::Checked,
        (false, true) => Wanted::Proof,
        (false, false) => Wanted::Answer,
    };
    let named = match &options.engine {
        EngineChoice::Auto => None,
        EngineChoice::Named(name) => Some(engines::named(name).ok_or_else(|| CheckError::NoSuchEngine {
            name: name.clone(),
            known: engines().iter().map(|engine| engine.name()).collect(),
        })?),
    };
    let suited = |task: &Task<'_>| named.map_or_else(|| engines::suited(task, wanted), |engine| vec![engine]);
    let Said { asked: Asked { mut outcome, replayed, proof, mut certified }, others } =
        auto::ask_all(&suited, &task, budget, progress, wanted)?;
    let mut proof = proof.map(|proof| Proved { engine: outcome.engine, proof });
    if wanted > Wanted::Answer && outcome.verdict == Verdict::Safe && proof.is_none() {
        (proof, certified) = prove::by_another(&task, &mut outcome, options, budget, progress, wanted)?;
    }
    Ok(Answer {
        outcome,
        others,
        certified,
        model: options.model,
        interlocked: options.interlocked,
        seconds: start.elapsed().as_secs_f64(),
        peak_memory_bytes: peak_memory_bytes(),
        proof,
        threads: options.threads,
        replayed,
    })
}

/// [`check()`] with every core, no limit, and nobody watching.
///
/// # Panics
/// If there is no engine of that name, or an engine's run does not replay.
pub fn check_simply(program: &Program, options: CheckOptions) -> Answer {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    check(program, &options, &Budget::unlimited(jobs), &Silent).unwrap_or_else(|error| panic!("{error}"))
}

/// What an engine said, with the run that goes with `unsafe`, the proof that goes with `safe`, and how it was checked, if it was.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) outcome: Outcome,
    pub(crate) replayed: Option<Replayed>,
    pub(crate) proof: Option<Proof>,
    pub(crate) certified: Option<Certified>,
}

/// What is asked of engines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Wanted {
    /// An answer.
    Answer,
    /// An answer; `safe` with a proof.
    Proof,
    /// An answer; `safe` with a proof that was checked.
    Checked,
}

/// Asks one engine, and believes no run that the trusted machine does not take. A proof that is to be checked is, and if the budget runs out meanwhile, there is no answer.
///
/// The run is replayed within the budget of the whole question, which may be more than the engine was given.
pub(crate) fn ask(
    engine: &dyn Engine,
    task: &Task<'_>,
    budget: &Budget,
    whole: &Budget,
    progress: &dyn Progress,
    wanted: Wanted,
) -> Result<Asked, CheckError> {
    // Inside out: running out is not a panic.
    let answered = unless_it_panics(|| {
        budget.within(|| match wanted {
            Wanted::Answer => (engine.check(task, budget, progress), None),
            Wanted::Proof | Wanted::Checked => engine.prove(task, budget, progress),
        })
    });
    let ran_out = |what| Outcome {
        verdict: Verdict::Unknown(Reason::Exhausted(what)),
        engine: engine.name(),
        stats: Stats::new(),
    };
    let answered = answered.map_err(|what| CheckError::EnginePanicked { engine: engine.name(), what })?;
    let (mut outcome, mut proof) = answered.unwrap_or_else(|what| (ran_out(what), None));
    if let Verdict::Unknown(reason) = &outcome.verdict
        && let Some(what) = reason.bug()
    {
        return Err(CheckError::EngineBug { engine: outcome.engine, what: what.to_owned() });
    }
    let replayed = replayed(task, &mut outcome, whole)?;
    let mut certified = None;
    if let Some(found) = proof.take_if(|_| wanted == Wanted::Checked) {
        certified = prove::checked(task, &mut outcome, &found, budget, progress)?;
        proof = certified.is_some().then_some(found);
    }
    Ok(Asked { outcome, replayed, proof, certified })
}

/// What an engine answers, or what its panic says. An engine that panicked is not asked again, so that it does not matter what it left behind.
pub(crate) fn unless_it_panics<T>(answer: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(answer)).map_err(|panic| {
        let panic = limits::unless_leaving(panic);
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
    })
}

/// What was found out under SC, as said about a memory model under which the program is robust. Runs then do the same under SC, but not in the same rounds.
pub(crate) fn outcome_of_robust(outcome: &mut Outcome) {
    if let Verdict::Unknown(reason) = &mut outcome.verdict {
        let by_rounds = |bound: &Reason| {
            !matches!(bound, Reason::InstanceBound(_) | Reason::CallDepth(_) | Reason::Spawned(_))
        };
        if reason.bounds().iter().any(by_rounds) {
            *reason = reason.clone().about("robust, and under SC");
        }
    }
}

impl Asked {
    /// What was said about the program under SC, as said about a memory model under which it is robust.
    pub(crate) fn of_robust(mut self, task: &Task<'_>, budget: &Budget) -> Result<Asked, CheckError> {
        outcome_of_robust(&mut self.outcome);
        if let Verdict::Unsafe(witness) = &mut self.outcome.verdict {
            let undelayed = budget.within(|| {
                let system = lower(task.program, witness.instantiation);
                let run = undelayed(task.machine(&system), &witness.run);
                run.expect("a run under SC is one with stores that do not wait")
            });
            match undelayed {
                Ok(run) => witness.run = run,
                Err(what) => self.outcome.verdict = not_replayed(self.outcome.engine, what),
            }
            self.replayed = replayed(task, &mut self.outcome, budget)?;
        }
        Ok(self)
    }
}

/// The run that goes with `unsafe`, taken on the trusted machine. If the budget runs out before that is done, the answer becomes unknown.
fn replayed(task: &Task<'_>, outcome: &mut Outcome, budget: &Budget) -> Result<Option<Replayed>, CheckError> {
    let engine = outcome.engine;
    let Verdict::Unsafe(witness) = &mut outcome.verdict else { return Ok(None) };
    match believe(task, witness, budget) {
        Ok(believed) => Ok(Some(believed.map_err(|error| CheckError::ReplayFailed { engine, error })?)),
        Err(what) => {
            outcome.verdict = not_replayed(engine, what);
            Ok(None)
        }
    }
}

fn not_replayed(engine: &str, what: Exhausted) -> Verdict {
    let found =
        format!("engine `{engine}` has a run that breaks the program, but it was not replayed to its end");
    Verdict::Unknown(Reason::exhausted(what, Some(Reason::Unsupported(found))))
}

/// Shortens a run and takes it on the trusted machine. If the budget runs out meanwhile, it stays as long as it is.
fn believe(
    task: &Task<'_>,
    witness: &mut Witness,
    budget: &Budget,
) -> Result<Result<Replayed, ReplayError>, Exhausted> {
    // A run that was found in the last moment is worth some more.
    let budget = budget.clone().with_grace();
    let (system, replayed) = budget.within(|| {
        let system = lower(task.program, witness.instantiation);
        let replayed = replay(task.machine(&system), &witness.run);
        (system, replayed)
    })?;
    let mut believed = match replayed {
        Ok(replay) => replay,
        Err(error) => return Ok(Err(error)),
    };
    let machine = task.machine(&system);
    let shorter = budget.within(|| {
        let run = shorten(machine, witness.run.clone());
        replay(machine, &run).map(|replay| (run, replay))
    });
    match shorter {
        Ok(Ok((run, replay))) => (witness.run, believed) = (run, replay),
        Ok(Err(error)) => return Ok(Err(error)),
        Err(_) => {}
    }
    Ok(Ok(Replayed { system, replay: believed }))
}

impl Answer {
    /// The run that breaks the program, ready to be told.
    pub fn evidence<'a>(&'a self, source: &'a Source) -> Option<Evidence<'a>> {
        let (replayed, witness) = (self.replayed.as_ref()?, self.witness()?);
        let machine = Machine { system: &replayed.system, model: self.model, interlocked: self.interlocked };
        Some(Evidence { source, machine, run: &witness.run, replay: &replayed.replay })
    }

    /// The run that breaks the program, as it is kept in files.
    pub fn witness_file(&self, input: &Input) -> Option<WitnessFile> {
        let (evidence, witness) = (self.evidence(&input.source)?, self.witness()?);
        let origin = Origin {
            source: &input.source,
            language: input.language.name(),
            instantiation: witness.instantiation,
            int_range: input.int_range.map(|range| (range.lo, range.hi)),
        };
        Some(WitnessFile::new(evidence.machine, origin, evidence.run, evidence.replay))
    }

    /// How many threads take part in the run that breaks the program, if there may be any number of them.
    pub fn threads_of_any(&self, program: &Program) -> Option<usize> {
        let starts = program.templates.iter().filter(|template| template.start == Start::Initially);
        let any = match self.threads {
            Threads::Any => true,
            Threads::Declared => starts.into_iter().any(|template| template.count == Count::Any),
            Threads::Each(_) => false,
        };
        let run = &self.witness().filter(|_| any)?.run;
        let threads = run.steps.iter().map(|step| step.thread).collect::<BTreeSet<_>>().len();
        // If the initial state is bad, no thread has to do anything.
        Some(threads).filter(|&threads| threads > 0)
    }

    /// The proof of `safe`, as it is kept in files.
    pub fn certificate(&self, input: &Input) -> Option<Certificate> {
        let Proved { engine, proof } = self.proof.clone()?;
        Some(Certificate {
            file: input.source.name().to_owned(),
            language: input.language.name().to_owned(),
            hash: text_hash(input.source.text()),
            model: self.model,
            interlocked: self.interlocked,
            threads: self.threads,
            int_range: input.int_range.map(|range| (range.lo, range.hi)),
            engine: engine.to_owned(),
            proof,
        })
    }

    /// The instance counts of the program that has the run.
    pub fn instantiation(&self) -> Option<Instantiation> {
        Some(self.witness()?.instantiation)
    }

    fn witness(&self) -> Option<&Witness> {
        match &self.outcome.verdict {
            Verdict::Unsafe(witness) => Some(witness),
            Verdict::Safe | Verdict::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_engine::Suitability;
    use palisade_memory::{Action, Step};
    use palisade_program::running::{EdgeId, ThreadId};
    use palisade_syntax::{Language, parse};
    use palisade_trace::Run;

    /// Says `unsafe` with this run, whatever the program.
    struct Liar(Run);

    impl Engine for Liar {
        fn name(&self) -> &'static str {
            "liar"
        }
        fn suits(&self, _: &Task<'_>) -> Suitability {
            Suitability::Decides
        }
        fn check(&self, _: &Task<'_>, _: &Budget, _: &dyn Progress) -> Outcome {
            let witness =
                Witness { instantiation: Instantiation { any: 1, every: None }, run: self.0.clone() };
            Outcome { verdict: Verdict::Unsafe(witness), engine: "liar", stats: Stats::new() }
        }
    }

    #[test]
    fn a_run_that_does_not_replay_is_an_error_and_no_verdict() {
        let source = Source::new("p", "shared x: 0..1; process P { x = 1; assert(x == 0); }");
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        let task = Task {
            program: &program,
            threads: Threads::Declared,
            model: Model::Sc,
            interlocked: Interlocked::default(),
            options: Options::default(),
        };
        let step =
            |edge| Step { thread: ThreadId(0), action: Action::Execute { edge: EdgeId(edge), choice: None } };
        let budget = Budget::unlimited(1);
        let check = |memory: i64, steps: &[Step], expected: Result<usize, &str>| {
            let liar = Liar(Run { memory: vec![memory], steps: steps.to_vec() });
            match (ask(&liar, &task, &budget, &budget, &Silent, Wanted::Answer), expected) {
                (Ok(Asked { replayed: Some(replayed), .. }), Ok(steps)) => {
                    assert_eq!(replayed.replay.effects.len(), steps)
                }
                (Err(error), Err(part)) => {
                    let error = error.to_string();
                    assert!(error.contains(part) && error.contains("This is a bug in Palisade"), "{error}");
                }
                (found, _) => panic!("{steps:?}: {:?}", found.map(|asked| asked.outcome)),
            }
        };
        check(0, &[step(0), step(1), step(2)], Ok(3));
        check(1, &[step(0), step(1), step(2)], Err("does not start in an initial state"));
        check(0, &[step(1)], Err("step 1 is not possible"));
        check(0, &[step(0), step(1)], Err("nothing is wrong"));
        check(0, &[], Err("nothing is wrong"));
    }

    #[test]
    fn engines_are_taken_by_their_name_or_not_at_all() {
        let source = Source::new("p", "process P { skip; }");
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        let options = |name: &str| CheckOptions {
            engine: EngineChoice::Named(name.to_owned()),
            ..CheckOptions::default()
        };
        let budget = Budget::unlimited(1);
        let error = check(&program, &options("magic"), &budget, &Silent).expect_err("there is no magic");
        assert!(error.to_string().contains("explicit"), "{error}");
        let answer = check(&program, &options("explicit"), &budget, &Silent).expect("there is this one");
        assert_eq!((answer.outcome.verdict, answer.outcome.engine), (Verdict::Safe, "explicit"));
    }
}
