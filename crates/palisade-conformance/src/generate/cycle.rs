//! Critical cycles: the shapes in which weak memory becomes visible.
//!
//! *Source.* Shasha and Snir ("Efficient and correct execution of parallel programs that share memory",
//! TOPLAS 1988). A run is not sequentially consistent exactly if program order and conflicts form a cycle. It
//! is enough to consider cycles with one or two accesses per thread, two to different variables. Walking such
//! a cycle at random gives all classical litmus tests: store buffering, message passing, load buffering, R,
//! S, 2+2W, WRC, RWC, ISA2, IRIW, and their relatives with up to four threads.
//!
//! *Construction.* Threads form a ring. The last access of each thread and the first access of the next are
//! to the same variable, and at least one of them writes. A thread with one access passes the variable on.
//! The accesses to a variable form a chain in ring order. Its writes write 1, 2, … in that order. A read
//! expects the value of the write before it, or the initial value. All expectations together describe an
//! outcome that SC forbids.

use crate::random::Random;
use palisade_program::Value;

/// What the threads do, and an outcome of interest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skeleton {
    /// The accesses of each thread, in order.
    pub threads: Vec<Vec<Access>>,
    /// The number of variables.
    pub variables: usize,
    /// Variables, with the value that they hold at the end in the outcome of interest.
    pub last: Vec<(usize, Value)>,
}

/// An access to a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The variable, from 0.
    pub variable: usize,
    /// The kind of access.
    pub kind: AccessKind,
}

/// Kinds of accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// A load, which returns this value in the outcome of interest.
    Read(Value),
    /// A store of this value.
    Write(Value),
}

/// A random critical cycle of 2 to `most` threads.
pub fn critical_cycle(random: &mut Random, most: usize) -> Skeleton {
    let threads = random.between(2, most);
    // How many accesses each thread makes. At least two threads make two, otherwise there is no cycle.
    let mut accesses: Vec<usize> = (0..threads).map(|_| if random.percent(70) { 2 } else { 1 }).collect();
    accesses[0] = 2;
    let other = random.between(1, threads - 1);
    accesses[other] = 2;
    // The ring of accesses: the thread of each access, and whether it writes.
    let ring: Vec<usize> = (0..threads).flat_map(|thread| vec![thread; accesses[thread]]).collect();
    let mut writes: Vec<bool> = ring.iter().map(|_| random.percent(50)).collect();
    let next = |at: usize| (at + 1) % ring.len();
    for at in 0..ring.len() {
        let (from, to) = (at, next(at));
        if ring[from] != ring[to] && !writes[from] && !writes[to] {
            let flipped = if random.percent(50) { from } else { to };
            writes[flipped] = true;
        }
    }
    // A chain starts with the second access of a thread with two.
    let starts: Vec<usize> = (1..ring.len()).filter(|&at| ring[at] == ring[at - 1]).collect();
    let mut plan: Vec<Option<Access>> = vec![None; ring.len()];
    let mut last = Vec::new();
    for (variable, &start) in starts.iter().enumerate() {
        let mut at = start;
        let mut written = 0;
        loop {
            let kind = if writes[at] {
                written += 1;
                AccessKind::Write(written)
            } else {
                AccessKind::Read(written)
            };
            plan[at] = Some(Access { variable, kind });
            at = next(at);
            if starts.contains(&at) {
                break;
            }
        }
        if written > 1 {
            last.push((variable, written));
        }
    }
    let mut skeleton = Skeleton { threads: vec![Vec::new(); threads], variables: starts.len(), last };
    for (at, access) in plan.into_iter().enumerate() {
        let access = access.expect("every access of the ring lies on the chain that starts before it");
        skeleton.threads[ring[at]].push(access);
    }
    skeleton
}

/// A few random accesses per thread.
pub fn random_accesses(random: &mut Random, most: usize) -> Skeleton {
    let variables = random.between(1, 3);
    let threads = random.between(2, most);
    let access = |random: &mut Random| {
        let value = random.value(1, 2);
        let kind = if random.percent(55) { AccessKind::Write(value) } else { AccessKind::Read(value - 1) };
        Access { variable: random.below(variables), kind }
    };
    let thread = |random: &mut Random| {
        let length = random.between(1, if threads == 2 { 4 } else { 2 });
        (0..length).map(|_| access(random)).collect()
    };
    Skeleton { threads: (0..threads).map(|_| thread(random)).collect(), variables, last: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// `Wx1 Ry0 | Wy1 Rx0`
    fn show(skeleton: &Skeleton) -> String {
        let access = |access: &Access| {
            let variable = ["x", "y", "z", "w"][access.variable];
            match access.kind {
                AccessKind::Read(value) => format!("R{variable}{value}"),
                AccessKind::Write(value) => format!("W{variable}{value}"),
            }
        };
        let thread = |thread: &Vec<Access>| thread.iter().map(access).collect::<Vec<_>>().join(" ");
        skeleton.threads.iter().map(thread).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn the_classical_shapes_are_among_the_cycles() {
        let mut random = Random::new(1);
        let shapes: BTreeSet<String> = (0..20_000).map(|_| show(&critical_cycle(&mut random, 4))).collect();
        for (name, shape) in [
            ("store buffering", "Wy1 Rx0 | Wx1 Ry0"),
            ("message passing", "Wy1 Wx1 | Rx1 Ry0"),
            ("load buffering", "Ry1 Wx1 | Rx1 Wy1"),
            ("R", "Wy1 Wx1 | Wx2 Ry0"),
            ("S", "Wy2 Wx1 | Rx1 Wy1"),
            ("2+2W", "Wy2 Wx1 | Wx2 Wy1"),
            ("WRC", "Ry1 Rx0 | Wx1 | Rx1 Wy1"),
            ("RWC", "Rx1 Ry0 | Wy1 Rx0 | Wx1"),
            ("ISA2", "Wx1 Wy1 | Ry1 Wz1 | Rz1 Rx0"),
            ("IRIW", "Ry1 Rx0 | Wx1 | Rx1 Ry0 | Wy1"),
        ] {
            // Rotating the ring and swapping names gives the same test, so compare up to that.
            let normal = |shape: &str| {
                let threads: Vec<&str> = shape.split(" | ").collect();
                let rotations = (0..threads.len()).map(|by| {
                    let mut turned = threads.clone();
                    turned.rotate_left(by);
                    let mut names: Vec<char> = Vec::new();
                    let rename = |c: char| match c {
                        'x' | 'y' | 'z' | 'w' => {
                            let index = names.iter().position(|&n| n == c).unwrap_or_else(|| {
                                names.push(c);
                                names.len() - 1
                            });
                            ['x', 'y', 'z', 'w'][index]
                        }
                        c => c,
                    };
                    turned.join(" | ").chars().map(rename).collect::<String>()
                });
                rotations.min()
            };
            let found = shapes.iter().any(|other| normal(other) == normal(shape));
            assert!(found, "{name}: {shape} is not among {} shapes", shapes.len());
        }
    }

    #[test]
    fn neighbours_conflict_and_a_thread_uses_two_variables() {
        let mut random = Random::new(2);
        for _ in 0..1000 {
            let skeleton = critical_cycle(&mut random, 4);
            let threads = &skeleton.threads;
            for (at, thread) in threads.iter().enumerate() {
                let (last, first) = (thread[thread.len() - 1], threads[(at + 1) % threads.len()][0]);
                let writes = |access: Access| matches!(access.kind, AccessKind::Write(_));
                assert_eq!(last.variable, first.variable, "{}", show(&skeleton));
                assert!(writes(last) || writes(first), "{}", show(&skeleton));
                assert!(thread.len() == 1 || thread[0].variable != thread[1].variable, "{}", show(&skeleton));
            }
        }
    }
}
