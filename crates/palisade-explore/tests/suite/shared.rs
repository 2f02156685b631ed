//! A search that several processes share gives the same answer as one process: the same verdict, the same number of
//! states, the same run. Here the processes are threads, connected over the loopback interface.
//!
//! `PALISADE_SEEDS=3000` tries more programs.

use palisade_cluster::{Leaving, Place, take_part};
use palisade_conformance::{Profile, generate, seeds};
use palisade_engine::{
    Analysis, DeadlockFreedom, Engine, Limits, Options, Outcome, Question, Reduction, Task, Verdict,
};
use palisade_explore::{Explicit, Progress};
use palisade_memory::Model;
use palisade_program::written::Program;
use std::sync::Arc;
use std::time::Duration;

/// The outcomes of all processes.
fn shared<Q: Question>(
    processes: usize,
    engine: &dyn Engine<Q>,
    ask: impl Fn(&dyn Fn(&Analysis<'_>) -> Outcome<Q>) -> Outcome<Q> + Sync,
    limits: &Limits,
) -> Vec<Outcome<Q>> {
    let places = Place::group(processes).expect("there are ports");
    let run = |place: Place| {
        let check = |analysis: &Analysis<'_>| engine.check(analysis, limits);
        let (outcome, seat) = take_part(place.sit_down(), || ask(&check));
        seat.leave(Leaving::default(), &Arc::default(), Duration::from_secs(10));
        outcome
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = places.into_iter().map(|place| scope.spawn(|| run(place))).collect();
        runs.into_iter().map(|run| run.join().expect("no process panics")).collect()
    })
}

/// What must not depend on the number of processes.
fn essence<Q: Question>(outcome: &Outcome<Q>) -> (Verdict, Vec<Option<u64>>) {
    let counters = ["states", "transitions", "depth", "chain_steps", "thread_states"];
    (outcome.verdict.clone(), counters.map(|name| outcome.stats.get(name)).to_vec())
}

/// Checks one program with up to four processes. Returns the outcome of one process without the others.
fn check<Q: Question>(
    program: &Program,
    model: Model,
    reduction: Reduction,
    engine: &dyn Engine<Q>,
    processes: &[usize],
    what: &str,
) -> Outcome<Q> {
    let options = Options { reduction, max_buffer: 2, ..Options::default() };
    let task = Task { options, ..Task::new(program, model) };
    let limits = Limits::unlimited(1).with_work(20_000);
    let alone = engine.check(&task.analysis(), &limits);
    let ask = |check: &dyn Fn(&Analysis<'_>) -> Outcome<Q>| check(&task.analysis());
    let one = shared(1, engine, ask, &limits).remove(0);
    for &processes in processes {
        for (process, outcome) in shared(processes, engine, ask, &limits).iter().enumerate() {
            assert_eq!(
                essence(outcome),
                essence(&one),
                "process {process} of {processes}, {what}, {}, {reduction:?}",
                model.name()
            );
            let parts = outcome.stats.processes();
            let states: u64 = parts.iter().filter_map(|part| part.get("states")).sum();
            assert_eq!((parts.len(), Some(states)), (processes, outcome.stats.get("states")), "{what}");
        }
    }
    // Small searches visit the same states without timely, too. Which of several runs is found may differ.
    let word = |outcome: &Outcome<Q>| std::mem::discriminant(&outcome.verdict);
    assert_eq!(word(&one), word(&alone), "{what}, {}", model.name());
    if alone.verdict == Verdict::Holds {
        assert_eq!(essence(&one), essence(&alone), "{what}, {}, {reduction:?}", model.name());
    }
    alone
}

#[test]
fn differential_random_programs_by_any_number_of_processes() {
    let seeds = seeds(300);
    let (mut holds, mut violated) = (0, 0);
    for seed in seeds.clone() {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let program = generate(profile, seed);
        let model = Model::ALL[(seed / 7 % 3) as usize];
        let reduction =
            [Reduction::Full, Reduction::Full, Reduction::Local, Reduction::None][(seed / 4 % 4) as usize];
        let processes = [2 + seed as usize % 3];
        let what = format!("seed {seed}, {profile:?}");
        match check(&program, model, reduction, &Explicit, &processes, &what).verdict {
            Verdict::Holds => holds += 1,
            Verdict::Violated(_) => violated += 1,
            Verdict::Unknown(_) => {}
        }
    }
    if seeds.suffice() {
        assert!(holds > 60 && violated > 60, "{holds} programs are safe, {violated} are not");
    }
}

#[test]
fn differential_deadlocks_by_any_number_of_processes() {
    for seed in seeds(40) {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let program = generate(profile, seed + 5000);
        let model = Model::ALL[seed as usize % 3];
        let what = format!("seed {}, {profile:?}", seed + 5000);
        let engine: &dyn Engine<DeadlockFreedom> = &Progress;
        check(&program, model, Reduction::Full, engine, &[3], &what);
    }
}
