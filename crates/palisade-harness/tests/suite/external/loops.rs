//! Random programs with loops in which threads wait, compared with all states of a small machine: the exhaustive search
//! shows the same outcomes, and says that a program may never end exactly if it may.

use crate::common::{compile, random, start};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Options;
use palisade_memory::Model;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// An operation of tests/programs/loops.c: its letter, word and number.
type Op = (char, usize, u32);

const WORDS: usize = 2;

fn random_program(random: &mut Random) -> Vec<Vec<Op>> {
    let threads = 2 + random.below(2);
    let code = |random: &mut Random| {
        let length = if threads == 2 { 2 + random.below(2) } else { 1 + random.below(2) };
        let op = |random: &mut Random| {
            let what = ['S', 'S', 'S', 'L', 'L', 'X', 'F', 'A', 'E', 'D', 'C', 'C', 'T'][random.below(13)];
            (what, random.below(WORDS), random.below(3) as u32)
        };
        (0..length).map(|_| op(random)).collect()
    };
    (0..threads).map(|_| code(random)).collect()
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Thread {
    at: usize,
    /// What it has read in the first of two words, if it reads the second one next.
    first: Option<u32>,
    seen: u32,
    /// Its pending stores, oldest first.
    pending: Vec<(usize, u32)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: [u32; WORDS],
    threads: Vec<Thread>,
}

impl State {
    fn read(&self, thread: usize, word: usize) -> u32 {
        let own = self.threads[thread].pending.iter().rev().find(|(of, _)| *of == word);
        own.map_or(self.memory[word], |(_, number)| *number)
    }

    /// The stores of a thread that may reach memory next, by their positions.
    fn updates(&self, thread: usize, model: Model) -> Vec<usize> {
        let pending = &self.threads[thread].pending;
        let is_first = |at: &usize| !pending[..*at].iter().any(|(word, _)| *word == pending[*at].0);
        let most = if model == Model::Pso { pending.len() } else { pending.len().min(1) };
        (0..most).filter(is_first).collect()
    }

    /// What a thread can do next. Iterations that change nothing are left out.
    fn step(&self, thread: usize, op: Op, model: Model) -> Option<State> {
        let (what, word, number) = op;
        let mut next = self.clone();
        let me = &mut next.threads[thread];
        me.at += 1;
        let drains = matches!(what, 'X' | 'F' | 'C' | 'T');
        if drains && !me.pending.is_empty() {
            return None;
        }
        match what {
            'S' if model == Model::Sc => next.memory[word] = number,
            'S' => me.pending.push((word, number)),
            'L' => me.seen = me.seen.wrapping_mul(3).wrapping_add(self.read(thread, word)),
            'X' => {
                me.seen = me.seen.wrapping_mul(3).wrapping_add(self.memory[word]);
                next.memory[word] = number;
            }
            'A' if self.read(thread, word) != number => return None,
            'D' | 'E' => match me.first.take() {
                None => {
                    let read = self.read(thread, 0);
                    let is_done = what == 'E' && read == number;
                    if !is_done {
                        me.first = Some(read);
                        me.at -= 1;
                    }
                }
                Some(first) => {
                    let is_done = first == number || self.read(thread, 1) == number;
                    me.at -= usize::from(!is_done);
                }
            },
            'C' if self.memory[word] != number => return None,
            'C' => next.memory[word] = (number + 1) % 3,
            'T' if self.memory[word] == 1 => return None,
            'T' => {
                // It sets the word whatever it finds there.
                me.at -= usize::from(self.memory[word] != 0);
                next.memory[word] = 1;
            }
            _ => {}
        }
        Some(next)
    }

    /// Whether a thread that has not ended waits for something that others would have to change.
    fn waits(&self, thread: usize, (what, word, number): Op) -> bool {
        match what {
            'A' => self.read(thread, word) != number,
            'D' | 'E' => (0..WORDS).all(|word| self.read(thread, word) != number),
            'C' => self.memory[word] != number,
            'T' => self.memory[word] == 1,
            _ => false,
        }
    }

    /// The exit code.
    fn outcome(&self) -> u32 {
        let seen = self.threads.iter().map(|thread| thread.seen);
        let all = seen.chain(self.memory).fold(0u32, |all, part| all.wrapping_mul(31).wrapping_add(part));
        1 + all % 200
    }
}

/// The loops in which threads are, each by its thread and letter.
type Loops = Vec<(usize, char)>;

/// The exit codes, and how the program may never end.
fn by_brute_force(codes: &[Vec<Op>], model: Model) -> (BTreeSet<u32>, BTreeSet<Loops>) {
    let (mut outcomes, mut endless) = (BTreeSet::new(), BTreeSet::new());
    let first = State { memory: [0; WORDS], threads: vec![Thread::default(); codes.len()] };
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
            let op = code.get(state.threads[thread].at);
            next.extend(op.and_then(|&op| state.step(thread, op, model)));
        }
        let ops =
            || codes.iter().enumerate().map(|(thread, code)| (thread, code.get(state.threads[thread].at)));
        let is_written = state.threads.iter().all(|thread| thread.pending.is_empty());
        if is_written && ops().all(|(_, op)| op.is_none()) {
            outcomes.insert(state.outcome());
        } else if is_written && ops().all(|(thread, op)| op.is_none_or(|&op| state.waits(thread, op))) {
            endless.insert(ops().filter_map(|(thread, op)| Some((thread, op?.0))).collect());
        }
        left.extend(next.into_iter().filter(|state| known.insert(state.clone())));
    }
    (outcomes, endless)
}

#[test]
fn differential_loops() {
    let path = compile("loops.c", &["-O0"]).display().to_string();
    let mut kinds = BTreeMap::<&str, u32>::new();
    for seed in seeds(25) {
        let codes = random_program(&mut Random::new(seed));
        let text = |code: &Vec<Op>| -> String {
            code.iter().map(|(what, word, number)| format!("{what}{word}{number}")).collect()
        };
        let arguments: Vec<String> = codes.iter().map(text).collect();
        for model in Model::ALL {
            let what = format!("{model:?}, seed {seed}: {}", arguments.join(" "));
            let command = [vec![path.clone()], arguments.clone()].concat();
            let program = Program { command, scheduling: Scheduling::Best };
            let mut session = start(&program, &Options { model, steps: 5_000, ..random(1) });
            let searched = session.explore(None, 20_000, |_| true);
            assert!(searched.complete, "{what}: {searched:?} {:?}", session.findings.divergence);
            let code =
                |message: &str| message.strip_prefix("the program ended with exit code ")?.parse().ok();
            let (mut outcomes, mut endless) = (BTreeSet::new(), Vec::new());
            for found in &session.findings.failures {
                match code(&found.what.message) {
                    Some(code) => _ = outcomes.insert(code),
                    None => endless.push(&found.what),
                }
            }
            let (expected, loops) = by_brute_force(&codes, model);
            assert_eq!(outcomes, expected, "{what}");
            assert!(endless.iter().all(|found| found.name == "deadlock"), "{what}: {endless:?}");
            assert_eq!(endless.len(), loops.len(), "{what}: {loops:?} {endless:#?}");
            *kinds.entry(if loops.is_empty() { "ends" } else { "may not end" }).or_default() += 1;
        }
    }
    println!("{kinds:?}");
}
