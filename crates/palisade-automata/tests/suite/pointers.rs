//! What brute force sees a pointer point to, the analysis knows.

use palisade_automata::Pointers;
use palisade_conformance::brute::{self, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds, transform};
use palisade_memory::{Action, Machine, Model};
use palisade_program::running::{Address, Instr};
use palisade_program::{Instantiation, lower, print};

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
