//! Proofs with guesses about values that cells never have together.
//!
//! *Problem.* Where a program follows pointers, nothing says what they point to until the search has undone the stores that
//! set them. So it undoes steps through structures that no run builds. In barnes2 of SPLASH-2, which inserts nodes into
//! a tree, two thirds of the elements require a memory that no run has, although runs have only 63 memories.
//!
//! *Idea.* Programs like this have few states, even if their closed sets are large. All of them are visited on the machine. Two
//! values of two cells that no memory has together are a guess, and so is a value that a cell never has ([`Guessing`]).
//! What is above a guess is not expanded.
//!
//! *Guesses are not trusted.* The closed set proves them, and its checker knows nothing of them. So it does not matter that
//! longer buffers than [`MAX_BUFFER`] are not visited.

use super::element::{Element, Memory, Processes};
use super::guessing::Guessing;
use super::setup::Setup;
use crate::values::SetId;
use palisade_automata::{Automata, Population, ValueId};
use palisade_base::{Id, IdVec, limits};
use palisade_memory::{Machine, State};
use palisade_program::Value;
use palisade_program::running::CellId;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// With more states than this, nothing is guessed.
const MAX_STATES: usize = 1 << 14;

/// With more pending stores of one thread than this, nothing is guessed.
const MAX_BUFFER: usize = 6;

/// With more values of all cells together than this, nothing is guessed: there are as many pairs as its square.
const MAX_VALUES: usize = 256;

/// The search with these guesses. `None` if there are none, or if too much would have to be visited.
pub(crate) fn guessing<'s>(
    exact: &'s Setup,
    bad: &[Element],
    automata: &Automata,
    machine: Machine<'_>,
) -> Option<Guessing<'s>> {
    let fixed = exact.kinds.iter().all(|kind| matches!(kind.population, Population::Fixed(_)));
    let values: usize = automata.values.iter().map(IdVec::len).sum();
    if exact.spawns() || !exact.exact || !fixed || values > MAX_VALUES {
        return None;
    }
    let guesses = guesses(exact, automata, &memories(machine)?);
    (!guesses.is_empty()).then(|| Guessing::new(exact, bad, guesses, u64::MAX))
}

/// All memories of all runs, if there are few states.
fn memories(machine: Machine<'_>) -> Option<FxHashSet<Vec<Value>>> {
    let mut seen: FxHashSet<State> = FxHashSet::default();
    let mut work: VecDeque<State> = machine.initial_states().take(MAX_STATES).collect();
    let mut memories = FxHashSet::default();
    while let Some(state) = work.pop_front() {
        limits::checkpoint();
        if seen.contains(&state) {
            continue;
        }
        let is_long = state.threads.iter().any(|thread| thread.buffer.len() > MAX_BUFFER);
        if is_long || seen.len() == MAX_STATES {
            return None;
        }
        memories.insert(state.memory.as_slice().to_vec());
        work.extend(machine.successors(&state).into_iter().map(|successor| successor.state));
        seen.insert(state);
    }
    Some(memories)
}

/// A value of a cell, by its number in the automata.
type Held = (CellId, ValueId);

/// The values that no memory has, alone and in pairs.
fn guesses(exact: &Setup, automata: &Automata, memories: &FxHashSet<Vec<Value>>) -> Vec<Element> {
    let number = |(cell, value): (CellId, &Value)| -> Option<Held> {
        let of_cell = &automata.values[cell];
        Some((cell, of_cell.ids().find(|&number| of_cell[number] == *value)?))
    };
    let mut had: FxHashSet<[Held; 2]> = FxHashSet::default();
    for memory in memories {
        limits::checkpoint();
        let held = memory.iter().enumerate().map(|(cell, value)| (CellId::from_index(cell), value));
        let held: Vec<Held> = held.filter_map(number).collect();
        had.extend(held.iter().flat_map(|&a| held.iter().map(move |&b| [a, b])));
    }
    let cells = automata.values.ids();
    let all: Vec<Held> =
        cells.flat_map(|cell| automata.values[cell].ids().map(move |value| (cell, value))).collect();
    let is_had = |held: &Held| had.contains(&[*held; 2]);
    let (sometimes, never): (Vec<Held>, Vec<Held>) = all.into_iter().partition(is_had);
    let mut guesses: Vec<Element> = never.iter().map(|&held| element(exact, automata, &[held])).collect();
    for (index, &a) in sometimes.iter().enumerate() {
        let others = sometimes[..index].iter().filter(|b| a.0 != b.0 && !had.contains(&[a, **b]));
        guesses.extend(others.map(|&b| element(exact, automata, &[a, b])));
    }
    guesses
}

fn element(exact: &Setup, automata: &Automata, values: &[Held]) -> Element {
    let mut memory: Memory = automata.values.iter().map(|_| SetId::ALL).collect();
    for &(cell, value) in values {
        memory[cell.index()] = exact.sets.single(cell, value);
    }
    Element::new(memory, Processes::new())
}

#[cfg(test)]
mod tests {
    use super::super::proof;
    use super::super::tracked::Attempt;
    use super::super::witness::Program;
    use super::*;
    use crate::bad::bad_combinations;
    use crate::start;
    use palisade_base::Source;
    use palisade_conformance::{Profile, generate, seeds};
    use palisade_engine::{Limits, Task};
    use palisade_memory::Model;
    use palisade_program::written;
    use palisade_syntax::{Language, parse};
    use palisade_wqo::{Search, SearchEnd};

    /// What this attempt says with these guesses instead of its own, if any are given, and what the exact search says.
    fn compare(
        program: &written::Program,
        model: Model,
        guess: impl Fn(&Setup, Element) -> Vec<Element>,
        what: &str,
    ) -> Option<Attempt> {
        let task = Task::new(program, model);
        let (analysis, limits) = (task.analysis(), Limits::unlimited(1));
        let system = analysis.system(1);
        let start::Prepared { automata, merged, .. } = start::prepared(&analysis, &limits).ok()?;
        let setup = Setup::new(&merged, model);
        let combinations = bad_combinations(&system, &merged.automata).ok()?;
        let mut bad = Vec::new();
        for combination in &combinations {
            setup.bad_elements(combination, &mut |element, _| bad.push(element));
        }
        let memories = memories(analysis.machine(&system))?;
        let own = guesses(&setup, &merged.automata, &memories);
        let guesses = own.into_iter().flat_map(|element| guess(&setup, element));
        let mut guessing = Guessing::new(&setup, &bad, guesses, u64::MAX);
        let searched = Program { automata: &automata, merged: &merged, setup: &setup, model };
        let mut reachable = false;
        let attempt =
            guessing.attempt(&searched, 20_000, &mut |_, _| Ok(()), &mut |_, _, _| reachable = true);
        let mut search = Search::new(&setup);
        bad.iter().for_each(|element| search.add(element.clone()));
        let found = search.run(|search| search.generated() < 20_000);
        if reachable {
            assert!(matches!(found, None | Some(SearchEnd::Initial(_))), "{what}: it is safe");
        } else if let Attempt::Proved = attempt {
            assert!(matches!(found, None | Some(SearchEnd::Closed)), "{what}: it is not safe");
            let mut closed = guessing.closed();
            closed.keep_needed(bad.iter().cloned());
            let mut parts = proof::Writer::new(&setup);
            parts.add(None, &closed.into_elements());
            let verified = palisade_certificate::verify(&task, &parts.proof(&merged), &limits);
            verified.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
        }
        Some(attempt)
    }

    /// On random programs: what is proved is safe, and the checker accepts the proof. With wrong guesses as well: each
    /// guess, and what is left of it without one of its cells.
    #[test]
    fn differential_guesses_prove_only_what_is_safe() {
        let seeds = seeds(40).starting_at(1);
        let (mut right, mut wrong) = (0, 0);
        let weaker = |_: &Setup, element: Element| {
            let known: Vec<usize> =
                (0..element.memory.len()).filter(|&cell| element.memory[cell] != SetId::ALL).collect();
            let without = |&cell: &usize| {
                let mut memory = element.memory.clone();
                memory[cell] = SetId::ALL;
                Element::new(memory, Processes::new())
            };
            let fewer: Vec<Element> = known.iter().filter(|_| known.len() > 1).map(without).collect();
            fewer.into_iter().chain([element.clone()]).collect()
        };
        for seed in &seeds {
            for profile in Profile::ALL {
                let program = generate(profile, seed);
                for model in [Model::Sc, Model::Tso] {
                    let what = format!("seed {seed}, {profile:?}, {}", model.name());
                    let proved = |attempt| usize::from(matches!(attempt, Some(Attempt::Proved)));
                    right += proved(compare(&program, model, |_, element| vec![element], &what));
                    wrong += proved(compare(&program, model, weaker, &what));
                }
            }
        }
        println!("{right} proved with true guesses, {wrong} with wrong ones among them");
        assert!(right > 0 && wrong > 0 || !seeds.suffice());
    }

    #[test]
    fn values_that_are_never_together() {
        let text = "shared x, y: 0..1; process P { x = 1; fence; y = 1; }";
        let program = parse(Language::Pal, &Source::new("p", text)).expect("it is well formed").program;
        let task = Task::new(&program, Model::Tso);
        let (analysis, limits) = (task.analysis(), Limits::unlimited(1));
        let system = analysis.system(1);
        let Ok(prepared) = start::prepared(&analysis, &limits) else { panic!("it is small") };
        let setup = Setup::new(&prepared.merged, Model::Tso);
        let automata = &prepared.merged.automata;
        let memories = memories(analysis.machine(&system)).expect("there are few states");
        assert_eq!(memories, [vec![0, 0], vec![1, 0], vec![1, 1]].into_iter().collect());
        let values = |element: &Element| -> Vec<Vec<Value>> {
            let cells = automata.values.ids();
            let of = |cell: CellId| {
                let numbers = setup.sets.values(cell, element.memory[cell.index()]);
                numbers.iter().map(|&number| automata.values[cell][number]).collect()
            };
            cells.map(of).collect()
        };
        let found: Vec<_> = guesses(&setup, automata, &memories).iter().map(values).collect();
        assert_eq!(found, [[[0], [1]]]);
    }
}
