//! Random C programs that hand heap objects around, and which of them are leaked.
//!
//! Two threads, and `main` after them, allocate nodes, swap them with global variables, chain them, free them or forget
//! them. A node belongs to whoever got it out of a variable, so there are no races and nothing is used after it was
//! freed. All exchanges are locked, so the programs have the same final states under SC, TSO and PSO.
//!
//! *Judge.* All interleavings of the operations, over a state that is a few numbers. It shares nothing with the
//! translation of C.

use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// What a thread does with its local variable `p`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    /// `p` is a new node without a successor.
    New,
    /// Exchanges `p` with a global variable.
    Swap(usize),
    /// Takes what is in a global variable as the successor of `p`, if there is a `p`.
    Chain(usize),
    /// Frees `p`.
    Free,
    /// Forgets `p`.
    Forget,
}

const GLOBALS: usize = 2;

/// A program.
#[derive(Clone, Debug)]
pub struct LeakTest {
    /// The last list is that of `main`, after the others.
    bodies: Vec<Vec<Operation>>,
}

/// A node is known by the body and the operation that allocate it.
type Node = (usize, usize);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    /// For each body, the next operation.
    next: Vec<usize>,
    locals: Vec<Option<Node>>,
    globals: Vec<Option<Node>>,
    /// The successor of every node that exists.
    nodes: BTreeMap<Node, Option<Node>>,
}

/// A random program.
pub fn generate(seed: u64) -> LeakTest {
    let mut random = Random::new(seed);
    let mut bodies = Vec::new();
    for most in [4, 4, 3] {
        let length = random.between(1, most);
        let operation = |random: &mut Random| match random.below(10) {
            0..3 => Operation::New,
            3..6 => Operation::Swap(random.below(GLOBALS)),
            6 | 7 => Operation::Chain(random.below(GLOBALS)),
            8 => Operation::Free,
            _ => Operation::Forget,
        };
        bodies.push((0..length).map(|_| operation(&mut random)).collect());
    }
    LeakTest { bodies }
}

/// The lines before the first operation of the first body, and those between bodies.
const HEADER: [&str; 4] = [
    "#include <pthread.h>",
    "#include <stdatomic.h>",
    "#include <stdlib.h>",
    "struct node { struct node *next; };",
];

impl LeakTest {
    /// The program, one operation per line.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = HEADER.map(str::to_owned).to_vec();
        lines.push(format!("static _Atomic(struct node *) g[{GLOBALS}];"));
        for (index, body) in self.bodies.iter().enumerate() {
            lines.push(format!("static void *body{index}(void *none) {{ struct node *p = 0;"));
            for operation in body {
                lines.push(match operation {
                    Operation::New => "    p = malloc(sizeof *p); p->next = 0;".to_owned(),
                    Operation::Swap(global) => format!("    p = atomic_exchange(&g[{global}], p);"),
                    Operation::Chain(global) => {
                        format!("    if (p) p->next = atomic_exchange(&g[{global}], (struct node *)0);")
                    }
                    Operation::Free => "    free(p); p = 0;".to_owned(),
                    Operation::Forget => "    p = 0;".to_owned(),
                });
            }
            lines.push("    (void)p; return none; }".to_owned());
        }
        lines.push("int main(void) { pthread_t t[2];".to_owned());
        for thread in 0..2 {
            lines.push(format!("    pthread_create(&t[{thread}], 0, body{thread}, 0);"));
        }
        lines.push("    pthread_join(t[0], 0); pthread_join(t[1], 0);".to_owned());
        lines.push("    body2(0); return 0; }".to_owned());
        lines.join("\n") + "\n"
    }

    /// The line of the operation that allocates a node, from 1.
    fn line(&self, (body, operation): Node) -> u64 {
        let before: usize = self.bodies[..body].iter().map(|body| body.len() + 2).sum();
        (HEADER.len() + 1 + before + 1 + operation + 1) as u64
    }

    /// The lines that allocate what is leaked in some final state, and whether that is so in all of them.
    pub fn leaks(&self) -> BTreeMap<u64, bool> {
        let finals = self.finals();
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for state in &finals {
            let lines: BTreeSet<u64> = state.lost().into_iter().map(|node| self.line(node)).collect();
            lines.into_iter().for_each(|line| *counts.entry(line).or_default() += 1);
        }
        counts.into_iter().map(|(line, count)| (line, count == finals.len())).collect()
    }

    /// All final states.
    fn finals(&self) -> BTreeSet<State> {
        let first = State {
            next: vec![0; self.bodies.len()],
            locals: vec![None; self.bodies.len()],
            globals: vec![None; GLOBALS],
            nodes: BTreeMap::new(),
        };
        let (mut seen, mut open, mut finals) =
            (BTreeSet::from([first.clone()]), vec![first], BTreeSet::new());
        while let Some(state) = open.pop() {
            let runs = |body: usize| state.next[body] < self.bodies[body].len();
            let able: Vec<usize> = match (runs(0), runs(1), runs(2)) {
                (false, false, false) => {
                    finals.insert(state.clone());
                    continue;
                }
                (false, false, true) => vec![2],
                _ => (0..2).filter(|&body| runs(body)).collect(),
            };
            for body in able {
                let mut after = state.clone();
                after.step(body, self.bodies[body][state.next[body]]);
                if seen.insert(after.clone()) {
                    open.push(after);
                }
            }
        }
        finals
    }
}

impl State {
    fn step(&mut self, body: usize, operation: Operation) {
        match operation {
            Operation::New => {
                let node = (body, self.next[body]);
                self.nodes.insert(node, None);
                self.locals[body] = Some(node);
            }
            Operation::Swap(global) => std::mem::swap(&mut self.locals[body], &mut self.globals[global]),
            Operation::Chain(global) => {
                if let Some(node) = self.locals[body] {
                    let taken = self.globals[global].take();
                    self.nodes.insert(node, taken);
                }
            }
            Operation::Free => {
                if let Some(node) = self.locals[body].take() {
                    self.nodes.remove(&node);
                }
            }
            Operation::Forget => self.locals[body] = None,
        }
        self.next[body] += 1;
    }

    /// The nodes that no global variable leads to.
    fn lost(&self) -> BTreeSet<Node> {
        let mut lost: BTreeSet<Node> = self.nodes.keys().copied().collect();
        let mut open: Vec<Node> = self.globals.iter().flatten().copied().collect();
        while let Some(node) = open.pop() {
            if lost.remove(&node) {
                open.extend(self.nodes[&node]);
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_text() {
        for seed in 0..50 {
            let test = generate(seed);
            let text = test.text();
            let lines: Vec<&str> = text.lines().collect();
            for (body, operations) in test.bodies.iter().enumerate() {
                for (index, operation) in operations.iter().enumerate() {
                    let line = lines[test.line((body, index)) as usize - 1];
                    assert_eq!(line.contains("malloc"), *operation == Operation::New, "{line}");
                }
            }
        }
    }

    #[test]
    fn what_is_lost() {
        use Operation::{Chain, Forget, Free, New, Swap};
        let leaks =
            |bodies: [&[Operation]; 3]| LeakTest { bodies: bodies.map(<[_]>::to_vec).to_vec() }.leaks();
        assert_eq!(leaks([&[New], &[], &[]]), BTreeMap::from([(7, true)]));
        assert_eq!(leaks([&[New, Free], &[], &[]]), BTreeMap::new());
        assert_eq!(leaks([&[New, Swap(0)], &[], &[]]), BTreeMap::new());
        assert_eq!(leaks([&[New, Swap(0)], &[Swap(0)], &[]]), BTreeMap::from([(7, false)]));
        // A chain that stays in a variable, and one whose head is freed.
        let chain = [New, Swap(0), New, Chain(0), Swap(1)];
        assert_eq!(leaks([&chain, &[], &[]]), BTreeMap::new());
        assert_eq!(leaks([&chain, &[], &[Swap(1), Free]]), BTreeMap::from([(7, true)]));
        assert_eq!(leaks([&[New, Forget], &[], &[]]), BTreeMap::from([(7, true)]));
    }
}
