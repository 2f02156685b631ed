//! What brute force sees a pointer point to, the analysis knows.

use palisade_automata::Pointers;
use palisade_base::Id;
use palisade_conformance::brute::{self, Scope};
use palisade_conformance::build::{self, stmt};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds, transform};
use palisade_memory::{Action, Machine, Model};
use palisade_program::running::{Address, CellId, Expr, Instr, RegId};
use palisade_program::written::{Block, Count, InitValue, Program, Rmw, Start, StmtKind, Type};
use palisade_program::{Instantiation, Value, lower, print};

#[test]
fn differential_cells_are_among_those_of_the_analysis() {
    let (mut seen, mut narrow) = (0, 0);
    let seeds = seeds(150).starting_at(1);
    for seed in &seeds {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let mut program = generate(profile, seed);
        if seed % 2 == 0 {
            program = transform::in_words(&program, &mut Random::new(seed));
        }
        let system = lower(&program, Instantiation { any: 1, every: None });
        let pointers = Pointers::new(&system);
        let machine = Machine::new(&system, Model::Pso);
        for state in &brute::reachable(machine, Scope { states: 2_000, buffer: Some(2) }).states {
            for successor in machine.successors(state) {
                let Action::Execute { edge, .. } = successor.step.action else { continue };
                let frame = state.threads[successor.step.thread].top();
                let instr = &system.codes[frame.code].edges()[edge].instr;
                let (Instr::Load(_, address) | Instr::Store(address, _) | Instr::Locked { address, .. }) =
                    instr
                else {
                    continue;
                };
                let Ok(cell) = machine.resolve(address, &frame.registers) else { continue };
                if let Some(cells) = pointers.cells(&system, frame.code, address) {
                    let text = || print::print(&program);
                    assert!(cells.contains(&cell), "seed {seed}: {cell:?} {cells:?}\n{}", text());
                    narrow += usize::from(matches!(address, Address::Pointer(_)));
                }
                seen += usize::from(matches!(address, Address::Pointer(_)));
            }
        }
    }
    println!("{narrow} of {seen} accesses through pointers are narrowed down");
    assert!(narrow > 100 || !seeds.suffice());
}

#[test]
fn differential_values_are_among_those_of_the_analysis() {
    let (mut seen, mut narrow) = (0, 0);
    let seeds = seeds(200).starting_at(1);
    for seed in &seeds {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let program = generate(profile, seed);
        let system = lower(&program, Instantiation { any: 1, every: None });
        let pointers = Pointers::of_all(&system);
        let machine = Machine::new(&system, Model::Pso);
        for state in &brute::reachable(machine, Scope { states: 1_000, buffer: Some(2) }).states {
            let text = || format!("seed {seed}\n{}", print::print(&program));
            for (cell, value) in state.memory.iter_enumerated() {
                seen += 1;
                if let Some(values) = pointers.held(cell) {
                    assert!(values.contains(value), "{cell:?} {value} {values:?} {}", text());
                    narrow += 1;
                }
            }
            for frame in state.threads.iter().flat_map(|thread| &thread.frames) {
                for (register, value) in frame.registers.iter().enumerate() {
                    let register = RegId::from_index(register);
                    if let Some(values) = pointers.values(frame.code, &Expr::Reg(register)) {
                        assert!(values.contains(value), "{register:?} {value} {values:?} {}", text());
                    }
                }
            }
        }
    }
    println!("{narrow} of {seen} values of cells are narrowed down");
    assert!(narrow > 1000 || !seeds.suffice());
}

/// The values that `x` may hold if it is 1 at the start and two threads run this body.
fn counted(body: Block) -> Option<Vec<Value>> {
    let template = build::template("w", Vec::new(), Count::Fixed(2), Start::Initially, body);
    let shared = vec![build::shared("x", None, Type::INT, InitValue::Const(build::int(1)))];
    let program = Program { shared, templates: vec![template], ..Program::default() };
    let system = lower(&program, Instantiation { any: 1, every: None });
    Pointers::of_all(&system).held(CellId(0)).map(<[Value]>::to_vec)
}

#[test]
fn cells_that_only_count_hold_few_values() {
    let add =
        |rmw, value| stmt(StmtKind::Eval(build::locked(rmw, build::named("x"), vec![build::int(value)])));
    assert_eq!(counted(vec![add(Rmw::FetchAdd, 1)]), Some(vec![1, 2, 3]));
    let both = vec![add(Rmw::FetchAdd, 3), add(Rmw::FetchSub, 1)];
    assert_eq!(counted(both), Some(vec![-1, 0, 1, 2, 3, 4, 5, 6, 7]));
    // In a loop, or with another store, nothing is known about the number of additions.
    let looped = stmt(StmtKind::Loop(vec![add(Rmw::FetchAdd, 1)]));
    assert_eq!(counted(vec![looped]), None);
    let store = build::assign(build::named("x"), build::int(5));
    assert_eq!(counted(vec![add(Rmw::FetchAdd, 1), store]), None);
}
