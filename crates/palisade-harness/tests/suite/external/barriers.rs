//! Barriers: the order in which threads arrive does not matter if they ignore who was last.

use crate::common::{compile_with, failures, random, start};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Options;
use palisade_memory::Model;
use std::collections::{BTreeSet, HashSet};

/// An operation of tests/programs/barriers.c: its letter, word and number.
type Op = (char, usize, u32);

const WORDS: usize = 2;

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Thread {
    at: usize,
    /// The round for whose end it waits, and whether it looks at the result.
    waits: Option<(u32, bool)>,
    seen: u32,
    /// Its pending stores, oldest first.
    pending: Vec<(usize, u32)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: [u32; WORDS],
    threads: Vec<Thread>,
    arrived: u32,
    round: u32,
}

impl State {
    fn step(&self, thread: usize, code: &[Op], count: u32, model: Model) -> Option<State> {
        let mut next = self.clone();
        let me = &mut next.threads[thread];
        if let Some((round, is_used)) = me.waits {
            me.waits = None;
            me.seen = if is_used { me.seen.wrapping_mul(3) } else { me.seen };
            return (round != self.round).then_some(next);
        }
        let &(what, word, number) = code.get(me.at)?;
        me.at += 1;
        match what {
            'S' if model == Model::Sc => next.memory[word] = number,
            'S' => me.pending.push((word, number)),
            'L' => {
                let own = me.pending.iter().rev().find(|(of, _)| *of == word);
                let read = own.map_or(self.memory[word], |(_, number)| *number);
                me.seen = me.seen.wrapping_mul(3).wrapping_add(read);
            }
            _ if !me.pending.is_empty() => return None,
            _ if self.arrived + 1 == count => {
                me.seen = if what == 'U' { me.seen.wrapping_mul(3).wrapping_add(1) } else { me.seen };
                (next.arrived, next.round) = (0, self.round + 1);
            }
            _ => {
                me.waits = Some((self.round, what == 'U'));
                next.arrived += 1;
            }
        }
        Some(next)
    }

    /// The stores of a thread that may reach memory next, by their positions.
    fn updates(&self, thread: usize, model: Model) -> Vec<usize> {
        let pending = &self.threads[thread].pending;
        let is_first = |at: &usize| !pending[..*at].iter().any(|(word, _)| *word == pending[*at].0);
        let most = if model == Model::Pso { pending.len() } else { pending.len().min(1) };
        (0..most).filter(is_first).collect()
    }

    /// The exit code.
    fn outcome(&self) -> u32 {
        let seen = self.threads.iter().map(|thread| thread.seen);
        let all = seen.chain(self.memory).fold(0u32, |all, part| all.wrapping_mul(31).wrapping_add(part));
        1 + all % 200
    }
}

/// The exit codes, and whether threads may wait forever.
fn by_brute_force(codes: &[Vec<Op>], count: u32, model: Model) -> (BTreeSet<u32>, bool) {
    let (mut outcomes, mut is_stuck) = (BTreeSet::new(), false);
    let threads = vec![Thread::default(); codes.len()];
    let first = State { memory: [0; WORDS], threads, arrived: 0, round: 0 };
    let mut known = HashSet::from([first.clone()]);
    let mut left = vec![first];
    while let Some(state) = left.pop() {
        let mut next = Vec::new();
        for (thread, code) in codes.iter().enumerate() {
            for position in state.updates(thread, model) {
                let mut after = state.clone();
                let (word, number) = after.threads[thread].pending.remove(position);
                after.memory[word] = number;
                next.push(after);
            }
            next.extend(state.step(thread, code, count, model));
        }
        if next.is_empty() {
            if state.threads.iter().any(|thread| thread.waits.is_some()) {
                is_stuck = true;
            } else {
                outcomes.insert(state.outcome());
            }
        }
        left.extend(next.into_iter().filter(|state| known.insert(state.clone())));
    }
    (outcomes, is_stuck)
}

#[test]
fn differential_barriers() {
    for seed in seeds(30) {
        let compiler = ["gcc", "clang"][seed as usize % 2];
        let path = compile_with(compiler, "barriers.c", &[]).display().to_string();
        let random_options = random(1);
        let mut random = Random::new(seed);
        let (threads, count) = (2 + random.below(2), 2 + random.below(2) as u32);
        let letters = if random.percent(50) { ['S', 'L', 'B', 'B'] } else { ['S', 'L', 'B', 'U'] };
        let codes: Vec<Vec<Op>> = (0..threads)
            .map(|_| {
                let length = 1 + random.below(if threads == 2 { 4 } else { 3 });
                let op = |random: &mut Random| {
                    (letters[random.below(4)], random.below(WORDS), random.below(3) as u32)
                };
                (0..length).map(|_| op(&mut random)).collect()
            })
            .collect();
        let text = |code: &Vec<Op>| -> String {
            code.iter().map(|(what, word, number)| format!("{what}{word}{number}")).collect()
        };
        let command: Vec<String> =
            [path, count.to_string()].into_iter().chain(codes.iter().map(text)).collect();
        for model in Model::ALL {
            let what = format!("{model:?}, seed {seed}: {command:?}");
            let program = Program { command: command.clone(), scheduling: Scheduling::Best };
            let mut session = start(&program, &Options { model, ..random_options.clone() });
            let searched = session.explore(None, 20_000, |_| true);
            assert!(searched.complete, "{what}: {searched:?} {:?}", session.findings.divergence);
            let code =
                |message: &str| message.strip_prefix("the program ended with exit code ")?.parse().ok();
            let outcomes: BTreeSet<u32> =
                session.findings.failures.iter().filter_map(|found| code(&found.what.message)).collect();
            let is_stuck = failures(&session.findings).contains(&"deadlock");
            assert_eq!((outcomes, is_stuck), by_brute_force(&codes, count, model), "{what}");
        }
    }
}

/// How many executions there are.
#[test]
fn arrivals_are_not_ordered() {
    for compiler in ["gcc", "clang"] {
        for flags in [&["-O0"], &["-O2"]] {
            let path = compile_with(compiler, "barriers.c", flags).display().to_string();
            let check = |arguments: &[&str], expected: u64| {
                for model in Model::ALL {
                    let mut command = vec![path.clone()];
                    command.extend(arguments.iter().map(|&word| word.to_owned()));
                    let program = Program { command, scheduling: Scheduling::Best };
                    let mut session = start(&program, &Options { model, ..random(1) });
                    let searched = session.explore(None, 1_000, |_| true);
                    let what = format!("{compiler} {flags:?} {model:?} {arguments:?} {searched:?}");
                    assert_eq!((searched.complete, searched.executions), (true, expected), "{what}");
                }
            };
            check(&["2", "B00", "B00"], 1);
            check(&["3", "B00B00B00", "B00B00B00", "B00B00B00"], 1);
            // Who is last is seen in each of the two rounds.
            check(&["2", "U00U00", "U00U00"], 4);
            // It is seen by one of them.
            check(&["2", "U00", "B00"], 2);
            // Any two of the three meet.
            check(&["2", "B00", "B00", "B00"], 12);
            check(&["2", "S01B00L00", "S02B00L00"], 2);
        }
    }
}
