//! Tests with engines whose answers are fixed.

use super::*;
use palisade_engine::{Options, Proof, Safety, Task, Threads};
use palisade_memory::Interlocked;
use palisade_program::written::Program;
use std::collections::BTreeSet;

/// Holds `bytes` bytes, and answers `safe` after `work` units of work. Without `work` it answers `unknown` at
/// once.
struct Worker {
    name: &'static str,
    suits: Suitability,
    work: Option<u64>,
    bytes: u64,
    proofs: Proofs,
}

impl Worker {
    fn new(name: &'static str, work: Option<u64>, bytes: u64) -> Worker {
        Worker { name, suits: Suitability::Tries, work, bytes, proofs: Proofs::None }
    }

    fn proves(self, proofs: Proofs) -> Worker {
        Worker { proofs, ..self }
    }

    fn reluctant(self) -> Worker {
        Worker { suits: Suitability::Reluctant, ..self }
    }
}

impl Engine for Worker {
    fn name(&self) -> &'static str {
        self.name
    }
    fn suits(&self, _: &Analysis<'_>) -> Suitability {
        self.suits
    }
    fn check(&self, _: &Analysis<'_>, limits: &Limits) -> Outcome {
        let go_on = |done| limits.check(self.bytes).and(limits.check_work(done));
        let verdict = match self.work {
            None => Verdict::Unknown(Reason::Unsupported(self.name.to_owned())),
            Some(work) => {
                let ran_out = (0..=work).find_map(|done| go_on(done).err());
                ran_out.map_or(Verdict::Holds, |what| Verdict::Unknown(Reason::Exhausted(what)))
            }
        };
        Outcome::new(self.name, verdict, Stats::new())
    }
    fn proofs(&self) -> Proofs {
        self.proofs
    }
    fn prove(&self, analysis: &Analysis<'_>, limits: &Limits) -> (Outcome, Option<Proof>) {
        let outcome = self.check(analysis, limits);
        let proves = self.proofs > Proofs::None && outcome.verdict == Verdict::Holds;
        (outcome, proves.then_some(Proof::AllStates))
    }
}

fn ask_workers(workers: &[Worker], limits: &Limits) -> Heard<Safety> {
    ask_for(workers, limits, Wanted::Answer)
}

fn ask_for(workers: &[Worker], limits: &Limits, wanted: Wanted) -> Heard<Safety> {
    let program = Program::default();
    let task = Task {
        program: &program,
        threads: Threads::Declared,
        model: Model::Sc,
        interlocked: Interlocked::default(),
        options: Options::default(),
    };
    let engines: Vec<&dyn Engine> = workers.iter().map(|worker| worker as &dyn Engine).collect();
    ask_all(&|_| engines.clone(), &task.analysis(), limits, wanted).expect("nothing to replay")
}

const LITTLE: Option<u64> = Some(PROBE.0);
const MUCH: Option<u64> = Some(PROBE.0 + 1);
const FOREVER: Option<u64> = Some(u64::MAX);

#[test]
fn nobody_waits_for_an_engine_that_takes_long() {
    let check = |work: [Option<u64>; 2], engine: &str, verdict: &str| {
        for jobs in 1..=3 {
            let workers = [Worker::new("a", work[0], 0), Worker::new("b", work[1], 0)];
            let outcome = ask_workers(&workers, &Limits::unlimited(jobs)).said.outcome;
            assert_eq!((outcome.engine, outcome.word()), (engine, verdict), "{work:?}");
        }
    };
    check([LITTLE, LITTLE], "a", "safe");
    check([MUCH, LITTLE], "b", "safe");
    check([None, MUCH], "b", "safe");
    check([FOREVER, MUCH], "b", "safe");
    check([MUCH, FOREVER], "a", "safe");
    check([None, None], "a", "unknown");
}

#[test]
fn reluctant_engines_are_asked_when_the_others_do_not_know_at_once() {
    let check = |eager: Option<u64>, reluctant: Option<u64>, engine: &str| {
        let workers = [Worker::new("a", eager, 0), Worker::new("b", reluctant, 0).reluctant()];
        let outcome = ask_workers(&workers, &Limits::unlimited(1)).said.outcome;
        assert_eq!(outcome.engine, engine, "{eager:?} {reluctant:?}");
    };
    check(MUCH, LITTLE, "a");
    check(None, LITTLE, "b");
    check(FOREVER, MUCH, "b");
}

#[test]
fn where_a_proof_is_wanted_safe_is_no_answer_without() {
    use Proofs::{Argued, ByVisitingAll, None as Nothing};
    let check = |workers: [(Option<u64>, Proofs); 2], engine: &str, proved: bool| {
        let named = ["a", "b"].into_iter().zip(workers);
        let workers: Vec<Worker> =
            named.map(|(name, (work, proofs))| Worker::new(name, work, 0).proves(proofs)).collect();
        let said = ask_for(&workers, &Limits::unlimited(1), Wanted::Proof).said;
        assert_eq!((said.outcome.engine, said.proof.is_some()), (engine, proved));
    };
    check([(LITTLE, Nothing), (LITTLE, Argued)], "b", true);
    check([(LITTLE, Nothing), (MUCH, ByVisitingAll)], "b", true);
    check([(LITTLE, Nothing), (MUCH, Nothing)], "a", false);
    check([(LITTLE, ByVisitingAll), (LITTLE, Argued)], "a", true);
    check([(Some(ALL_STATES_PROBE.0 + 1), ByVisitingAll), (LITTLE, Argued)], "b", true);
    check([(Some(ALL_STATES_PROBE.0 + 1), ByVisitingAll), (None, Argued)], "a", true);
}

#[test]
fn an_engine_that_has_ended_is_at_work_no_more() {
    /// Which engines are at work, by lane, and which ever were.
    #[derive(Default)]
    struct Working {
        now: Mutex<Vec<(usize, String)>>,
        ever: Mutex<BTreeSet<String>>,
    }
    impl Progress for Working {
        fn report(&self, _: &str, _: &Stats) {
            unreachable!("engines report with their index")
        }
        fn report_lane(&self, lane: usize, engine: &str, _: &str, _: &Stats) {
            self.now.lock().expect("no panic").push((lane, engine.to_owned()));
            self.ever.lock().expect("no panic").insert(engine.to_owned());
        }
        fn ended(&self, lane: usize) {
            self.now.lock().expect("no panic").retain(|(other, _)| *other != lane);
        }
    }
    for workers in [
        vec![Worker::new("a", MUCH, 0)],
        vec![Worker::new("a", None, 0), Worker::new("b", MUCH, 0), Worker::new("c", FOREVER, 0)],
    ] {
        let working = Arc::new(Working::default());
        let names: Vec<&str> = workers.iter().map(|worker| worker.name).collect();
        ask_workers(&workers, &Limits::unlimited(1).with_progress(working.clone()));
        assert_eq!(*working.now.lock().expect("no panic"), []);
        assert!(working.ever.lock().expect("no panic").iter().eq(&names));
    }
}

#[test]
fn the_others_are_stopped_and_say_so() {
    let workers = [Worker::new("a", FOREVER, 0), Worker::new("b", MUCH, 0), Worker::new("c", None, 0)];
    let said = ask_workers(&workers, &Limits::unlimited(1));
    assert_eq!(said.said.outcome.engine, "b");
    let others: Vec<_> = said.others.iter().map(|other| (other.engine, other.verdict.clone())).collect();
    let unsupported = Reason::Unsupported("c".to_owned());
    let stopped = Reason::Exhausted(Exhausted::Stopped);
    assert_eq!(others, [("a", Verdict::Unknown(stopped)), ("c", Verdict::Unknown(unsupported))]);
}

#[test]
fn who_makes_room_tries_again_with_all_the_memory() {
    // The limit is 100 bytes, and together the two engines exceed it. An engine that needs no more than that
    // on its own still finishes.
    let check = |bytes: [u64; 2], verdict: &str| {
        let workers = [Worker::new("a", Some(PROBE.0 * 4), bytes[0]), Worker::new("b", MUCH, bytes[1])];
        let limits = Limits::unlimited(2).with_memory(100);
        assert_eq!(ask_workers(&workers, &limits).said.outcome.word(), verdict, "{bytes:?}");
    };
    check([60, 60], "safe");
    check([200, 60], "safe");
    check([60, 200], "safe");
    check([200, 200], "unknown");
}

#[test]
fn time_is_for_all_of_them_together() {
    let workers = [Worker::new("a", None, 0), Worker::new("b", FOREVER, 0), Worker::new("c", FOREVER, 0)];
    let limits = Limits::unlimited(1).with_timeout(Duration::from_millis(300));
    let outcome = ask_workers(&workers, &limits).said.outcome;
    let Verdict::Unknown(reason) = &outcome.verdict else { panic!("nobody can know") };
    assert!(matches!(reason.what_ran_out(), Some(Exhausted::Time(_))), "{reason}");
    assert_eq!(outcome.engine, "b", "who would have gone on says why there is no answer");
}

#[test]
fn what_is_stopped_while_it_tastes_was_stopped() {
    let workers = [Worker::new("a", FOREVER, 0), Worker::new("b", FOREVER, 0)];
    let limits = Limits::unlimited(1);
    limits.stop();
    let Verdict::Unknown(reason) = ask_workers(&workers, &limits).said.outcome.verdict else {
        panic!("nobody can know")
    };
    assert_eq!(reason.what_ran_out(), Some(Exhausted::Stopped));
    let limits = Limits::unlimited(1).with_timeout(Duration::from_millis(1));
    let Verdict::Unknown(reason) = ask_workers(&workers, &limits).said.outcome.verdict else {
        panic!("nobody can know")
    };
    assert_eq!(reason.what_ran_out(), Some(Exhausted::Time(Duration::from_millis(1))));
}

/// Never ends under TSO. Knows the answer under SC.
struct OnlySc(Outcome);

impl Engine for OnlySc {
    fn name(&self) -> &'static str {
        "sc"
    }
    fn suits(&self, _: &Analysis<'_>) -> Suitability {
        Suitability::Tries
    }
    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        if analysis.task.model == Model::Sc {
            return self.0.clone();
        }
        let mut done = 0;
        loop {
            done += 1;
            if let Err(what) = limits.check(0).and(limits.check_work(done)) {
                let verdict = Verdict::Unknown(Reason::Exhausted(what));
                return Outcome::new("sc", verdict, Stats::new());
            }
        }
    }
}

#[test]
fn a_program_that_is_robust_is_searched_under_sc() {
    let text =
        "shared x, y: 0..1; process P { x = 1; fence; y = 1; } process Q { let r = y; assert(r == 0); }";
    let source = palisade_base::Source::new("p", text);
    let program =
        palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("it is valid").program;
    let task = |model| Task {
        program: &program,
        threads: Threads::Declared,
        model,
        interlocked: Interlocked::default(),
        options: Options::default(),
    };
    let found = palisade_explore::Explicit.check(&task(Model::Sc).analysis(), &Limits::unlimited(1));
    let under_sc: Outcome = Outcome::new("sc", found.verdict, found.stats);
    for model in [Model::Tso, Model::Pso] {
        for jobs in 1..=2 {
            let engine = OnlySc(under_sc.clone());
            let (task, limits) = (task(model), Limits::unlimited(jobs));
            let said =
                ask_all(&|_| vec![&engine, &crate::scout::Scout], &task.analysis(), &limits, Wanted::Answer);
            let said = said.expect("the run replays under the memory model");
            let Verdict::Violated(witness) = &said.said.outcome.verdict else { panic!("{said:?}") };
            let updates = witness
                .run
                .steps
                .iter()
                .filter(|step| matches!(step.action, palisade_memory::Action::Update { .. }));
            assert_eq!(updates.count(), 2, "stores go through the buffer");
            let others: Vec<_> = said.others.iter().map(|other| other.verdict.clone()).collect();
            assert_eq!(others, [Verdict::Unknown(Reason::Robust)]);
        }
    }
    // Proofs are about the memory model.
    let limits = Limits::unlimited(1).with_timeout(Duration::from_millis(300));
    let engine = OnlySc(Outcome::new("sc", Verdict::Holds, under_sc.stats));
    let under_tso = task(Model::Tso);
    let engines = |_: &Analysis<'_>| vec![&engine as &dyn Engine, &crate::scout::Scout];
    let said = ask_all(&engines, &under_tso.analysis(), &limits, Wanted::Proof);
    assert!(matches!(said.expect("no run").said.outcome.verdict, Verdict::Unknown(_)));
}

/// How an engine is broken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Broken {
    /// It found a bad state, but no run that reaches it.
    NoRun,
    /// The same, noticed after the budget ran out.
    NoRunInTime,
    Panics,
    /// Its run is not a run of the program.
    FalseRun,
    /// It answers `safe`, and its proof proves nothing.
    FalseProof,
    /// It answers `safe`, whatever the program.
    FalseSafe,
    /// It knows that the program can break, but cannot show a run.
    Unshown,
}

/// An engine whose defect shows once it has been given this much work.
pub(crate) struct BrokenEngine {
    pub(crate) how: Broken,
    pub(crate) after: u64,
}

impl Engine for BrokenEngine {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn suits(&self, _: &Analysis<'_>) -> Suitability {
        Suitability::Tries
    }
    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        let bug = || Reason::Bug("a bad state was found, but no run to it".to_owned());
        let verdict = match (limits.check_work(self.after), self.how) {
            (Err(what), _) => Verdict::Unknown(Reason::Exhausted(what)),
            (_, Broken::NoRun) => Verdict::Unknown(bug()),
            (_, Broken::NoRunInTime) => Verdict::Unknown(Reason::exhausted(Exhausted::Stopped, Some(bug()))),
            (_, Broken::Panics) => panic!("on purpose"),
            (_, Broken::FalseRun) => Verdict::Violated(palisade_engine::Witness {
                instantiation: analysis.instantiation(1),
                run: palisade_trace::Run { memory: vec![0], steps: Vec::new() },
            }),
            (_, Broken::FalseProof | Broken::FalseSafe) => Verdict::Holds,
            (_, Broken::Unshown) => Verdict::Unknown(Reason::Unshown("it can break".to_owned())),
        };
        Outcome::new("broken", verdict, Stats::new())
    }
    fn proofs(&self) -> Proofs {
        if self.how == Broken::FalseProof { Proofs::ByVisitingAll } else { Proofs::None }
    }
    fn prove(&self, analysis: &Analysis<'_>, limits: &Limits) -> (Outcome, Option<Proof>) {
        let outcome = self.check(analysis, limits);
        let proves = self.how == Broken::FalseProof && outcome.verdict == Verdict::Holds;
        (outcome, proves.then_some(Proof::AllStates))
    }
}

/// Answers only after the others have: it waits until it is stopped, and then answers anyway.
struct Late(Outcome);

impl Engine for Late {
    fn name(&self) -> &'static str {
        "late"
    }
    fn suits(&self, _: &Analysis<'_>) -> Suitability {
        Suitability::Tries
    }
    fn check(&self, _: &Analysis<'_>, limits: &Limits) -> Outcome {
        let mut done = 0;
        loop {
            done += 1;
            match limits.check(0).and(limits.check_work(done)) {
                Ok(()) => {}
                Err(Exhausted::Stopped) => return self.0.clone(),
                Err(what) => {
                    let verdict = Verdict::Unknown(Reason::Exhausted(what));
                    return Outcome::new("late", verdict, Stats::new());
                }
            }
        }
    }
}

/// A program that breaks under every model.
const BREAKS: &str = "shared x: 0..1; process P { x = 1; assert(x == 0); }";

fn read(text: &str) -> Program {
    let source = palisade_base::Source::new("p", text);
    palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("it is valid").program
}

fn task_of(program: &Program) -> Task<'_> {
    let (threads, interlocked) = (Threads::Declared, Interlocked::default());
    Task { program, threads, model: Model::Sc, interlocked, options: Options::default() }
}

#[test]
fn a_bug_in_an_engine_is_reported_whatever_the_others_say() {
    let program = read(BREAKS);
    let task = task_of(&program);
    let check = |how: Broken, wanted: Wanted, part: &str| {
        // The defect shows at once, or when engines run side by side. The other engine never ends, never
        // knows, or answers `safe`.
        for after in [PROBE.0, ALL_STATES_PROBE.0 + 1] {
            let broken = BrokenEngine { how, after };
            for other in [FOREVER, None, MUCH].map(|work| Worker::new("a", work, 0)) {
                for engines in [vec![&broken as &dyn Engine, &other], vec![&other, &broken]] {
                    let said = ask_all(&|_| engines.clone(), &task.analysis(), &Limits::unlimited(2), wanted);
                    let error = said.expect_err("a bug is no verdict").to_string();
                    assert!(error.contains(part), "{how:?}: {error}");
                    assert!(error.contains("This is a bug in Palisade"), "{error}");
                }
            }
        }
    };
    check(Broken::NoRun, Wanted::Answer, "engine `broken` contradicts itself: a bad state was found");
    check(Broken::NoRunInTime, Wanted::Answer, "engine `broken` contradicts itself: a bad state was found");
    check(Broken::Panics, Wanted::Answer, "engine `broken` failed: on purpose");
    check(Broken::FalseRun, Wanted::Answer, "does not replay");
    check(Broken::FalseProof, Wanted::Checked, "its proof does not convince");
}

#[test]
fn engines_that_disagree_are_reported() {
    let program = read(BREAKS);
    let task = task_of(&program);
    let found = palisade_explore::Explicit.check(&task.analysis(), &Limits::unlimited(1));
    let check = |engines: [&dyn Engine; 2], expected: (&'static str, &'static str)| {
        for engines in [vec![engines[0], engines[1]], vec![engines[1], engines[0]]] {
            let said = ask_all(&|_| engines.clone(), &task.analysis(), &Limits::unlimited(2), Wanted::Answer);
            let (holds, other) = expected;
            assert_eq!(said.expect_err("there is no verdict"), disagreement::<Safety>(holds, other));
        }
    };
    let says_safe = BrokenEngine { how: Broken::FalseSafe, after: ALL_STATES_PROBE.0 };
    check([&says_safe, &Late(Outcome::new("late", found.verdict, found.stats))], ("broken", "late"));
    let knows = BrokenEngine { how: Broken::Unshown, after: 0 };
    check([&knows, &Worker::new("a", MUCH, 0)], ("a", "broken"));
}

#[test]
fn what_holds_within_rounds_under_sc_is_not_said_of_another_model() {
    let told = |reason: Reason| {
        let mut outcome: Outcome = Outcome::new("sc", Verdict::Unknown(reason), Stats::new());
        outcome_of_robust(&mut outcome);
        match outcome.verdict {
            Verdict::Unknown(reason) => (reason.to_string(), reason.is_bound()),
            verdict => panic!("{verdict:?}"),
        }
    };
    let rounds = "robust, and under SC: safe up to 2 rounds";
    assert_eq!(told(Reason::Rounds(2)), (rounds.to_owned(), false));
    let partly = Reason::exhausted(Exhausted::Stopped, Some(Reason::Rounds(2)));
    assert_eq!(told(partly), (format!("stopped; {rounds}"), false));
    let spawned = "no bad state in runs that start up to 2 processes";
    assert_eq!(told(Reason::Spawned(2)), (spawned.to_owned(), true));
}
