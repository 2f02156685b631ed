//! Random programs for the small machine.

use super::{Expr, Instr, Machine};
use palisade_conformance::random::Random;

/// What random programs may contain in addition to loads and stores.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shape {
    Plain,
    Choices,
    Locks,
    Readers,
    Spawns,
}

/// A random program.
pub fn random_program(shape: Shape, random: &mut Random) -> Machine {
    let addresses: [Expr; 4] = [|_| 0, |_| 1, |_| 2, |r| (r[0] & 1) + (r[1] & 1)];
    let values: [Expr; 3] = [|_| 1, |r| r[0] + 1, |r| r[1] ^ 1];
    let processes = 2 + random.below(2).max(usize::from(shape == Shape::Readers));
    let spawned = usize::from(shape == Shape::Spawns) * (1 + random.below(2));
    let mut codes = Vec::new();
    for index in 0..processes + spawned {
        let mut code = Vec::new();
        let length = if processes + spawned == 2 { 2 + random.below(3) } else { 1 + random.below(2) };
        for _ in 0..length {
            let address = addresses[random.below(4)];
            let value = values[random.below(3)];
            let access = match random.below(9) {
                0..4 => Instr::Load(random.below(2), address),
                4..8 => Instr::Store(address, value),
                _ => Instr::Cas(1, address, |_| 0, value),
            };
            code.push(access);
            match (shape, random.below(4)) {
                (_, 0) => {
                    // Skips the next step, depending on what was read.
                    let to = code.len() + 2;
                    code.push(match to {
                        _ if random.below(2) == 0 => Instr::Jump(|r| r[0], to),
                        _ => Instr::Jump(|r| r[1], to),
                    });
                }
                (Shape::Choices, 1) => code.push(Instr::Choose(random.below(2), 2)),
                _ => {}
            }
        }
        if matches!(shape, Shape::Locks | Shape::Readers) && random.below(3) > 0 {
            let lock: Expr = if random.below(2) == 0 { |_| 0 } else { |_| 1 };
            let at = random.below(code.len());
            let jumps = |instr: &Instr| matches!(instr, Instr::Jump(..));
            if !code.iter().any(jumps) {
                if shape == Shape::Readers && random.below(2) == 0 {
                    code.insert(at, Instr::Share(lock));
                    code.push(Instr::Unshare(lock));
                    codes.push(code);
                    continue;
                }
                code.insert(at, Instr::Lock(lock));
                if random.below(3) == 0 && code.len() < 6 {
                    code.insert(at + 1, Instr::Lock(if random.below(2) == 0 { |_| 0 } else { |_| 1 }));
                }
                code.push(Instr::Unlock(lock));
            }
        }
        if index < spawned && !code.iter().any(|instr| matches!(instr, Instr::Jump(..))) {
            let at = 1 + random.below(code.len());
            code.insert(at, Instr::Spawn(processes + index));
        }
        codes.push(code);
    }
    Machine::new(codes, processes, 4, 2)
}

/// One test for each shape of random programs. Each calls the same check.
macro_rules! test_each_shape {
    ($check:ident) => {
        test_each_shape! {
            $check:
            differential_plain Plain, differential_choices Choices, differential_locks Locks,
            differential_readers Readers, differential_spawns Spawns
        }
    };
    ($check:ident: $($test:ident $shape:ident),*) => {
        $(#[test]
        fn $test() {
            $check(Shape::$shape);
        })*
    };
}
pub(crate) use test_each_shape;
