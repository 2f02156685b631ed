//! Proofs that a program is free of deadlocks and that its goals stay reachable: found, checked and forged.

use palisade_certificate::{Certificate, CertificateError, Refusal, verify_ranking};
use palisade_conformance::brute::{Answer, Scope};
use palisade_conformance::generate::generate_waiting;
use palisade_conformance::progress::Graph;
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_engine::proof::{Proof, Ranking};
use palisade_engine::{Limits, Task, Threads};
use palisade_explore::ranking;
use palisade_memory::{Interlocked, Machine, Model, State};
use palisade_program::running::System;
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower_retrying};
use std::collections::HashMap;

const SCOPE: Scope = Scope { states: 2_000, buffer: None };

/// The graph of all states by brute force, whose states have the same numbers.
struct Judge<'a> {
    machine: Machine<'a>,
    graph: Graph<'a>,
    after: Vec<Vec<usize>>,
    moves: Vec<bool>,
}

impl<'a> Judge<'a> {
    fn new(system: &'a System, model: Model) -> Option<Judge<'a>> {
        let machine = Machine::new(system, model);
        let graph = Graph::new(machine, SCOPE)?;
        let numbers: HashMap<&State, usize> = graph.states().iter().zip(0..).collect();
        let mut after = Vec::new();
        let mut moves = Vec::new();
        for state in graph.states() {
            let successors = machine.successors(state);
            after.push(successors.iter().map(|successor| numbers[&successor.state]).collect());
            // A state that is not stuck and has no step to a state that is not stuck moves.
            let waits = |successor: &palisade_memory::Successor| {
                let palisade_memory::Action::Execute { edge, .. } = successor.step.action else {
                    return false;
                };
                let code = &system.codes[state.threads[successor.step.thread].top().code];
                code.attempts.contains(&edge) && successor.state.memory == state.memory
            };
            moves.push(!successors.iter().all(waits));
        }
        Some(Judge { machine, graph, after, moves })
    }

    /// Whether ranks lead each state to one that is there.
    fn leads(&self, ranks: &[u32], is_there: impl Fn(usize, &State) -> bool) -> bool {
        let states = self.graph.states();
        ranks.len() == states.len()
            && states.iter().enumerate().all(|(index, state)| match ranks[index] {
                rank if state.fault.is_some() => rank == Ranking::NOT_JUDGED,
                0 => is_there(index, state),
                rank => self.after[index].iter().any(|&next| ranks[next] < rank),
            })
    }

    /// Whether a ranking proves what it should.
    fn accepts(&self, ranking: &Ranking) -> bool {
        let system = self.machine.system;
        let ended = |state: &State| state.threads.iter().all(|thread| thread.has_ended(system));
        let moves = |index: usize, state: &State| self.moves[index] || ended(state);
        let mut goals = system.goals.iter().zip(&ranking.goals);
        ranking.deadlock.as_ref().is_some_and(|ranks| self.leads(ranks, moves))
            && ranking.goals.len() == system.goals.len()
            && goals.all(|(goal, ranks)| self.leads(ranks, |_, state| self.machine.satisfies(state, goal)))
    }

    fn is_fine(&self) -> bool {
        self.graph.deadlock() == Answer::Safe
            && self.machine.system.goals.iter().all(|goal| self.graph.live(goal) == Answer::Safe)
    }
}

fn verdict(task: &Task<'_>, ranking: &Ranking) -> bool {
    match verify_ranking(task, true, ranking, &Limits::unlimited(1)) {
        Ok(_) => true,
        Err(Refusal::Exhausted(what)) => panic!("there are no limits: {what}"),
        Err(_) => false,
    }
}

/// Changes a ranking in one place.
fn forged(honest: &Ranking, random: &mut Random) -> Ranking {
    let mut ranking = honest.clone();
    let lists = 1 + ranking.goals.len();
    let list = match random.below(lists) {
        0 => ranking.deadlock.as_mut().expect("it is about deadlocks"),
        goal => &mut ranking.goals[goal - 1],
    };
    let at = random.below(list.len());
    match random.below(6) {
        0 => list[at] = 0,
        1 => list[at] = list[at].saturating_sub(1),
        2 => list[at] = list[at].wrapping_add(1),
        3 => _ = list.remove(at),
        4 => list.push(0),
        _ => {
            let other = random.below(list.len());
            list.swap(at, other);
        }
    }
    if random.below(4) == 0 && ranking.goals.len() > 1 {
        ranking.goals.swap(0, 1);
    }
    ranking
}

#[test]
fn differential_random_programs() {
    let (mut proved, mut refused, mut refuted) = (0, 0, 0);
    let seeds = seeds(40);
    for seed in &seeds {
        let mut program = generate_waiting(seed);
        if seed % 4 == 0 {
            // A process that may end with a fault.
            let fails = parsed("shared x: 0..2; process P { assert(x == 0); }");
            program.templates[0].body.insert(0, fails.templates[0].body[0].clone());
        }
        for model in Model::ALL {
            let system = lower_retrying(&program, Instantiation::declared(1));
            let Some(judge) = Judge::new(&system, model) else { continue };
            let task = Task::new(&program, model);
            let found = ranking(&task, true, &Limits::unlimited(1)).expect("there are no limits");
            assert_eq!(found.is_some(), judge.is_fine(), "seed {seed}, {}", model.name());
            let mut random = Random::new(seed);
            match found {
                Some(honest) => {
                    proved += 1;
                    assert!(verdict(&task, &honest) && judge.accepts(&honest), "seed {seed}");
                    for _ in 0..20 {
                        let forged = forged(&honest, &mut random);
                        let accepted = judge.accepts(&forged);
                        refused += u32::from(!accepted);
                        assert_eq!(verdict(&task, &forged), accepted, "seed {seed}, {}", model.name());
                    }
                }
                None => {
                    // No ranks can make it right.
                    refuted += 1;
                    let states = judge.graph.states().len();
                    let mut ranks = || (0..states).map(|_| random.below(4) as u32).collect::<Vec<_>>();
                    for _ in 0..5 {
                        let goals = system.goals.iter().map(|_| ranks()).collect();
                        let forged = Ranking { deadlock: Some(ranks()), goals };
                        assert!(!verdict(&task, &forged), "seed {seed}, {}", model.name());
                    }
                }
            }
        }
    }
    let enough = proved > 5 && refused > 50 && refuted > 5;
    assert!(enough || !seeds.suffice(), "{proved} {refused} {refuted}");
}

fn parsed(text: &str) -> Program {
    let source = palisade::Source::new("p.pal", text);
    palisade_syntax::parse(palisade_syntax::Language::Pal, &source).expect("the program is valid").program
}

const HANDSHAKE: &str = "shared x, y: 0..1; \
    process P { x = 1; await y == 1; here: skip; } process Q { await x == 1; y = 1; } \
    deadlock-free; live P@here; live end;";

#[test]
fn a_ranking_is_about_its_question() {
    let program = parsed(HANDSHAKE);
    let limits = Limits::unlimited(1);
    let task = Task::new(&program, Model::Tso);
    // P cannot come back to `here`.
    assert_eq!(ranking(&task, true, &limits), Ok(None));
    let program = parsed(&HANDSHAKE.replace("live P@here;", "live x == 1;"));
    let task = Task::new(&program, Model::Tso);
    let honest = ranking(&task, true, &limits).expect("no limits").expect("it holds");
    let check = |changed: &dyn Fn(&mut Ranking), deadlocks: bool, expected: &str| {
        let mut ranking = honest.clone();
        changed(&mut ranking);
        let found = verify_ranking(&task, deadlocks, &ranking, &limits);
        let found = found.map_or_else(|refusal| refusal.to_string(), |_| "valid".to_owned());
        assert!(found.contains(expected), "{found}");
    };
    check(&|_| (), true, "valid");
    check(&|_| (), false, "the question is not about deadlocks");
    check(&|ranking| ranking.deadlock = None, true, "no ranking for deadlocks");
    check(&|ranking| ranking.deadlock = None, false, "valid");
    check(&|ranking| _ = ranking.goals.pop(), true, "it ranks 1 goals, but the program has 2");
    check(&|ranking| ranking.goals.reverse(), true, "has rank 0");
    check(&|ranking| ranking.goals[1].fill(0), true, "state 0 has rank 0");
    check(&|ranking| _ = ranking.goals[1].pop(), true, "different length");
    let shorter = |ranking: &mut Ranking| {
        ranking.goals.iter_mut().chain(&mut ranking.deadlock).for_each(|ranks| _ = ranks.pop());
    };
    check(&shorter, true, "states, but there are more");
    let longer = |ranking: &mut Ranking| {
        ranking.goals.iter_mut().chain(&mut ranking.deadlock).for_each(|ranks| ranks.push(0));
    };
    check(&longer, true, "states, but there are");
}

#[test]
fn rankings_are_kept_in_files() {
    let program = parsed(&HANDSHAKE.replace("live P@here;", ""));
    let task = Task::new(&program, Model::Pso);
    let limits = Limits::unlimited(1);
    let ranking = ranking(&task, true, &limits).expect("no limits");
    let certificate = Certificate {
        file: "p.pal".into(),
        language: "pal".into(),
        hash: "h".into(),
        build: None,
        model: Model::Pso,
        interlocked: Interlocked::default(),
        threads: Threads::Declared,
        int_range: None,
        constants: Default::default(),
        engine: "explicit".into(),
        deadlocks: true,
        proof: Proof::AllStates,
        finish: None,
        domains: Vec::new(),
        modulus: None,
        ranking,
    };
    let text = certificate.to_json();
    assert_eq!(Certificate::from_json(&text).expect("it was just written"), certificate);
    assert!(palisade::certify(&program, &certificate, &limits).is_ok());
    let edited = text.replace("\"deadlock_free\":true,", "");
    assert!(matches!(Certificate::from_json(&edited), Err(CertificateError::Changed)));
    // Without a ranking, all states are searched.
    let bare = Certificate { ranking: None, ..certificate.clone() };
    assert!(palisade::certify(&program, &bare, &limits).is_ok());
    // A program about which nothing of the kind is asked needs no ranking.
    let plain = parsed("shared x: 0..1; process P { x = 1; }");
    let none = Certificate { deadlocks: false, ..certificate };
    assert!(matches!(palisade::certify(&plain, &none, &limits), Err(Refusal::Unfit(_))));
}
