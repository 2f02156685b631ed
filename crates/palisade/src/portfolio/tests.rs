//! Tests with engines whose answers are fixed.

use super::*;
use palisade_conformance::TestEngine;
use palisade_engine::{Safety, Task};
use palisade_program::written::Program;
use std::collections::BTreeSet;

/// Holds `bytes` bytes, and answers `safe` after `work` units of work. Without `work` it answers `unknown` at
/// once.
fn worker(name: &'static str, work: Option<u64>, bytes: u64) -> TestEngine {
    TestEngine::new(name, move |_, limits| {
        let may_continue = |done| limits.check(bytes).and(limits.check_work(done));
        match work {
            None => Verdict::Unknown(Reason::Unsupported(name.to_owned())),
            Some(work) => {
                let ran_out = (0..=work).find_map(|done| may_continue(done).err());
                ran_out.map_or(Verdict::Holds, |what| Verdict::Unknown(Reason::Exhausted(what)))
            }
        }
    })
}

/// Works without end, and returns what ran out.
fn run_out(limits: &Limits) -> Exhausted {
    (1..).find_map(|done| limits.check(0).and(limits.check_work(done)).err()).expect("the limits end it")
}

fn ask_workers(workers: &[TestEngine], limits: &Limits) -> PortfolioAnswer<Safety> {
    ask_for(workers, limits, Wanted::Answer)
}

fn ask_for(workers: &[TestEngine], limits: &Limits, wanted: Wanted) -> PortfolioAnswer<Safety> {
    let program = Program::default();
    let task = Task::new(&program, Model::Sc);
    let engines: Vec<&dyn Engine> = workers.iter().map(|worker| worker as &dyn Engine).collect();
    ask_all(&|_| engines.clone(), &task.analysis(), limits, wanted).expect("nothing to replay")
}

const LITTLE: Option<u64> = Some(PROBE.0);
const MUCH: Option<u64> = Some(PROBE.0 + 1);
const FOREVER: Option<u64> = Some(u64::MAX);

#[test]
fn the_answer_does_not_wait_for_a_slow_engine() {
    let check = |work: [Option<u64>; 2], engine: &str, verdict: &str| {
        for jobs in 1..=3 {
            let workers = [worker("a", work[0], 0), worker("b", work[1], 0)];
            let outcome = ask_workers(&workers, &Limits::unlimited(jobs)).answer.outcome;
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
fn reluctant_engines_run_if_the_others_have_no_quick_answer() {
    let check = |eager: Option<u64>, reluctant: Option<u64>, engine: &str| {
        let workers = [worker("a", eager, 0), worker("b", reluctant, 0).suiting(Suitability::Reluctant)];
        let outcome = ask_workers(&workers, &Limits::unlimited(1)).answer.outcome;
        assert_eq!(outcome.engine, engine, "{eager:?} {reluctant:?}");
    };
    check(MUCH, LITTLE, "a");
    check(None, LITTLE, "b");
    check(FOREVER, MUCH, "b");
}

#[test]
fn if_a_proof_is_wanted_safe_without_one_is_not_an_answer() {
    use Proofs::{Argued, ByVisitingAll, None as Nothing};
    let check = |workers: [(Option<u64>, Proofs); 2], engine: &str, proved: bool| {
        let named = ["a", "b"].into_iter().zip(workers);
        let workers: Vec<TestEngine> =
            named.map(|(name, (work, proofs))| worker(name, work, 0).proving(proofs)).collect();
        let found = ask_for(&workers, &Limits::unlimited(1), Wanted::Proof).answer;
        assert_eq!((found.outcome.engine, found.proof.is_some()), (engine, proved));
    };
    check([(LITTLE, Nothing), (LITTLE, Argued)], "b", true);
    check([(LITTLE, Nothing), (MUCH, ByVisitingAll)], "b", true);
    check([(LITTLE, Nothing), (MUCH, Nothing)], "a", false);
    check([(LITTLE, ByVisitingAll), (LITTLE, Argued)], "a", true);
    check([(Some(ALL_STATES_PROBE.0 + 1), ByVisitingAll), (LITTLE, Argued)], "b", true);
    check([(Some(ALL_STATES_PROBE.0 + 1), ByVisitingAll), (None, Argued)], "a", true);
}

#[test]
fn an_engine_that_has_ended_is_no_longer_at_work() {
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
        vec![worker("a", MUCH, 0)],
        vec![worker("a", None, 0), worker("b", MUCH, 0), worker("c", FOREVER, 0)],
    ] {
        let working = Arc::new(Working::default());
        let names: Vec<&str> = workers.iter().map(|worker| worker.name()).collect();
        ask_workers(&workers, &Limits::unlimited(1).with_progress(working.clone()));
        assert_eq!(*working.now.lock().expect("no panic"), []);
        assert!(working.ever.lock().expect("no panic").iter().eq(&names));
    }
}

#[test]
fn the_other_engines_are_stopped_and_report_it() {
    let workers = [worker("a", FOREVER, 0), worker("b", MUCH, 0), worker("c", None, 0)];
    let found = ask_workers(&workers, &Limits::unlimited(1));
    assert_eq!(found.answer.outcome.engine, "b");
    let others: Vec<_> = found.others.iter().map(|other| (other.engine, other.verdict.clone())).collect();
    let unsupported = Reason::Unsupported("c".to_owned());
    let stopped = Reason::Exhausted(Exhausted::Stopped);
    assert_eq!(others, [("a", Verdict::Unknown(stopped)), ("c", Verdict::Unknown(unsupported))]);
}

#[test]
fn an_engine_that_gave_up_its_memory_tries_again_with_all_of_it() {
    // The limit is 100 bytes, and together the two engines exceed it. An engine that needs no more than that
    // on its own still finishes.
    let check = |bytes: [u64; 2], verdict: &str| {
        let workers = [worker("a", Some(PROBE.0 * 4), bytes[0]), worker("b", MUCH, bytes[1])];
        let limits = Limits::unlimited(2).with_memory(100);
        assert_eq!(ask_workers(&workers, &limits).answer.outcome.word(), verdict, "{bytes:?}");
    };
    check([60, 60], "safe");
    check([200, 60], "safe");
    check([60, 200], "safe");
    check([200, 200], "unknown");
}

#[test]
fn the_time_limit_applies_to_all_engines_together() {
    let workers = [worker("a", None, 0), worker("b", FOREVER, 0), worker("c", FOREVER, 0)];
    let limits = Limits::unlimited(1).with_timeout(Duration::from_millis(300));
    let outcome = ask_workers(&workers, &limits).answer.outcome;
    let Verdict::Unknown(reason) = &outcome.verdict else { panic!("no engine can know") };
    assert!(matches!(reason.what_ran_out(), Some(Exhausted::Time(_))), "{reason}");
    assert_eq!(outcome.engine, "b", "the engine that would have continued gives the reason");
}

#[test]
fn an_engine_that_is_stopped_while_probing_is_reported_as_stopped() {
    let workers = [worker("a", FOREVER, 0), worker("b", FOREVER, 0)];
    let limits = Limits::unlimited(1);
    limits.stop();
    let Verdict::Unknown(reason) = ask_workers(&workers, &limits).answer.outcome.verdict else {
        panic!("no engine can know")
    };
    assert_eq!(reason.what_ran_out(), Some(Exhausted::Stopped));
    let limits = Limits::unlimited(1).with_timeout(Duration::from_millis(1));
    let Verdict::Unknown(reason) = ask_workers(&workers, &limits).answer.outcome.verdict else {
        panic!("no engine can know")
    };
    assert_eq!(reason.what_ran_out(), Some(Exhausted::Time(Duration::from_millis(1))));
}

/// Never ends under TSO. Knows the answer under SC.
fn only_sc(answer: Verdict) -> TestEngine {
    TestEngine::new("sc", move |analysis, limits| match analysis.task.model {
        Model::Sc => answer.clone(),
        _ => Verdict::Unknown(Reason::Exhausted(run_out(limits))),
    })
}

#[test]
fn a_robust_program_is_searched_under_sc() {
    let text =
        "shared x, y: 0..1; process P { x = 1; fence; y = 1; } process Q { let r = y; assert(r == 0); }";
    let source = palisade_base::Source::new("p", text);
    let program =
        palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("it is valid").program;
    let task = |model| Task::new(&program, model);
    let found = palisade_explore::Explicit.check(&task(Model::Sc).analysis(), &Limits::unlimited(1));
    for model in [Model::Tso, Model::Pso] {
        for jobs in 1..=2 {
            let engine = only_sc(found.verdict.clone());
            let (task, limits) = (task(model), Limits::unlimited(jobs));
            let found =
                ask_all(&|_| vec![&engine, &crate::scout::Scout], &task.analysis(), &limits, Wanted::Answer);
            let found = found.expect("the run replays under the memory model");
            let Verdict::Violated(witness) = &found.answer.outcome.verdict else { panic!("{found:?}") };
            let updates = witness
                .run
                .steps
                .iter()
                .filter(|step| matches!(step.action, palisade_memory::Action::Update { .. }));
            assert_eq!(updates.count(), 2, "stores go through the buffer");
            let others: Vec<_> = found.others.iter().map(|other| other.verdict.clone()).collect();
            assert_eq!(others, [Verdict::Unknown(Reason::Robust)]);
        }
    }
    // Proofs are about the memory model.
    let limits = Limits::unlimited(1).with_timeout(Duration::from_millis(300));
    let engine = only_sc(Verdict::Holds);
    let under_tso = task(Model::Tso);
    let engines = |_: &Analysis<'_>| vec![&engine as &dyn Engine, &crate::scout::Scout];
    let found = ask_all(&engines, &under_tso.analysis(), &limits, Wanted::Proof);
    assert!(matches!(found.expect("no run").answer.outcome.verdict, Verdict::Unknown(_)));
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
pub(crate) fn broken(how: Broken, after: u64) -> TestEngine {
    let bug = || Reason::Bug("a bad state was found, but no run to it".to_owned());
    let engine = TestEngine::new("broken", move |analysis, limits| match (limits.check_work(after), how) {
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
    });
    if how == Broken::FalseProof { engine.proving(Proofs::ByVisitingAll) } else { engine }
}

/// Answers only after the others have: it waits until it is stopped, and then answers anyway.
fn late(answer: Verdict) -> TestEngine {
    TestEngine::new("late", move |_, limits| match run_out(limits) {
        Exhausted::Stopped => answer.clone(),
        what => Verdict::Unknown(Reason::Exhausted(what)),
    })
}

/// A program that breaks under every model.
const BREAKS: &str = "shared x: 0..1; process P { x = 1; assert(x == 0); }";

fn read(text: &str) -> Program {
    let source = palisade_base::Source::new("p", text);
    palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("it is valid").program
}

fn task_of(program: &Program) -> Task<'_> {
    Task::new(program, Model::Sc)
}

#[test]
fn a_bug_in_an_engine_is_reported_whatever_the_others_say() {
    let program = read(BREAKS);
    let task = task_of(&program);
    let check = |how: Broken, wanted: Wanted, part: &str| {
        // The defect shows at once, or when engines run side by side. The other engine never ends, never
        // knows, or answers `safe`.
        for after in [PROBE.0, ALL_STATES_PROBE.0 + 1] {
            let broken = broken(how, after);
            for other in [FOREVER, None, MUCH].map(|work| worker("a", work, 0)) {
                for engines in [vec![&broken as &dyn Engine, &other], vec![&other, &broken]] {
                    let found =
                        ask_all(&|_| engines.clone(), &task.analysis(), &Limits::unlimited(2), wanted);
                    let error = found.expect_err("a bug is not a verdict").to_string();
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
    check(Broken::FalseProof, Wanted::Checked, "the checker does not accept its proof");
}

#[test]
fn engines_that_disagree_are_reported() {
    let program = read(BREAKS);
    let task = task_of(&program);
    let found = palisade_explore::Explicit.check(&task.analysis(), &Limits::unlimited(1));
    let check = |engines: [&dyn Engine; 2], expected: (&'static str, &'static str)| {
        for engines in [vec![engines[0], engines[1]], vec![engines[1], engines[0]]] {
            let found =
                ask_all(&|_| engines.clone(), &task.analysis(), &Limits::unlimited(2), Wanted::Answer);
            let (holds, other) = expected;
            assert_eq!(found.expect_err("there is no verdict"), disagreement::<Safety>(holds, other));
        }
    };
    let says_safe = broken(Broken::FalseSafe, ALL_STATES_PROBE.0);
    check([&says_safe, &late(found.verdict)], ("broken", "late"));
    let knows = broken(Broken::Unshown, 0);
    check([&knows, &worker("a", MUCH, 0)], ("a", "broken"));
}

#[test]
fn what_holds_within_rounds_under_sc_is_not_claimed_for_another_model() {
    let about_tso = |reason: Reason| {
        let mut outcome: Outcome = Outcome::new("sc", Verdict::Unknown(reason), Stats::new());
        outcome_of_robust(&mut outcome);
        match outcome.verdict {
            Verdict::Unknown(reason) => (reason.to_string(), reason.is_bound()),
            verdict => panic!("{verdict:?}"),
        }
    };
    let rounds = "robust, and under SC: safe up to 2 rounds";
    assert_eq!(about_tso(Reason::Rounds(2)), (rounds.to_owned(), false));
    let partly = Reason::exhausted(Exhausted::Stopped, Some(Reason::Rounds(2)));
    assert_eq!(about_tso(partly), (format!("stopped; {rounds}"), false));
    let spawned = "no bad state in runs that start up to 2 processes";
    assert_eq!(about_tso(Reason::Spawned(2)), (spawned.to_owned(), true));
}

#[test]
fn of_two_runs_the_shorter_one_is_shown() {
    use palisade_engine::Witness;
    use palisade_memory::{Action, Step};
    use palisade_program::Instantiation;
    use palisade_program::running::ThreadId;
    use palisade_trace::Run;
    let answer_with = |verdict| EngineAnswer::<Safety> {
        outcome: Outcome::new("engine", verdict, Stats::new()),
        confirmed: None,
        proof: None,
        certified: None,
    };
    let run = |steps: usize| {
        let step = Step { thread: ThreadId(0), action: Action::Update { position: 0 } };
        let run = Run { memory: Vec::new(), steps: vec![step; steps] };
        answer_with(Verdict::Violated(Witness { instantiation: Instantiation { any: 1, every: None }, run }))
    };
    let unknown = || answer_with(Verdict::Unknown(Reason::Rounds(1)));
    let check =
        |answer: EngineAnswer<Safety>, others: Vec<Option<EngineAnswer<Safety>>>, expected: Option<usize>| {
            assert_eq!(with_shorter_run(&answer, &others), expected);
        };
    check(run(3), vec![None, Some(unknown()), Some(run(3))], None);
    check(run(3), vec![Some(run(4)), None, Some(run(2)), Some(run(1))], Some(3));
    check(run(3), vec![Some(run(2)), None, Some(run(2))], Some(0));
    check(answer_with(Verdict::Holds), vec![Some(run(1))], None);
    check(unknown(), vec![None], None);
}
