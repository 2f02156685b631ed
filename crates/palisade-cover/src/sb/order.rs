//! The order on elements: `a` is below `b` if every configuration of `b` is one of `a`.
//!
//! Letters of `a` map to letters of `b`, or to the end of the buffer. Older letters must not map to positions
//! after those of newer ones (several may map to the same position). The position must satisfy what the
//! letter requires of the buffer. Neither the pointer of the letter's process nor that process's newest store
//! to the letter's cell may be after it. All of these only require a position that is new enough, so the
//! oldest possible position is the best one. An own letter maps to the same own letter.
//!
//! With a word for each process under TSO, only subwords are compared. That is the order of load-buffer
//! proofs.
//!
//! This order contains the subword order on the words of a fixed number of processes. Where letters of
//! different processes are not ordered, it contains the subword order on multisets of words. Both are
//! well-quasi-orders by Higman's lemma, so this order is one too.

use super::element::{Element, End, Process, Queue};
use super::setup::{Setup, Sharing};
use crate::symbol::Symbol;
use crate::values::SetId;
use palisade_base::Id;
use palisade_memory::Model;
use palisade_program::running::CellId;
use palisade_wqo::{Signature, embeds, injects};

impl Setup {
    /// Whether `a` is below `b`.
    pub fn below(&self, a: &Element, b: &Element) -> bool {
        let cells = a.memory.iter().zip(&b.memory).enumerate();
        let memory_below = cells.into_iter().all(|(index, (of_a, of_b))| {
            let cell = CellId::from_index(index);
            of_a == of_b
                || of_a.set() == SetId::ALL
                || (of_b.is_settled() || !of_a.is_settled())
                    && self
                        .values(&b.memory, &b.processes, cell)
                        .is_none_or(|held| self.sets.is_subset(cell, held, of_a.set()))
        });
        memory_below
            && match self.sharing {
                Sharing::PerProcess => injects(a.processes.len(), b.processes.len(), |of_a, of_b| {
                    let goes = |process: usize| (process == of_a).then_some(of_b);
                    self.process_below(&a.processes[of_a], b, of_b)
                        && match self.model {
                            Model::Pso => self.letters_below(a, b, Some((of_a, of_b)), &goes),
                            Model::Sc | Model::Tso => {
                                let (of_a, of_b) = (&a.processes[of_a].word, &b.processes[of_b].word);
                                embeds(of_a, of_b, |letter: Symbol, above| letter.is_below(above, &self.sets))
                            }
                        }
                }),
                Sharing::One => self.assign(a, b, &mut Vec::new()),
            }
    }

    /// Bits for the values that memory and letters must not have. An element below another has no other bits.
    pub fn bits(&self, element: &Element) -> Signature {
        let (mut required, mut provided) = (0, 0);
        for (index, content) in element.memory.iter().enumerate() {
            let cell = CellId::from_index(index);
            let possible = self.possible(&element.processes, cell).unwrap_or(SetId::ALL);
            required |= self.sets.filter(cell, content.set());
            provided |= self.sets.filter(cell, content.set()) | self.sets.filter(cell, possible);
        }
        let (mut letters, mut above) = (0, 0);
        for process in &element.processes {
            for symbol in &process.word {
                letters |= self.sets.filter(symbol.cell(), symbol.set());
                above |= self.sets.filter(symbol.cell(), self.effective(process, *symbol));
            }
        }
        // Letters may be at the end of the buffer.
        Signature { required: [required, letters], provided: [provided, letters | above | provided] }
    }

    /// The values that a letter can really have.
    pub fn effective(&self, process: &Process, symbol: Symbol) -> SetId {
        let state = process.state.filter(|_| symbol.is_own());
        let own = state.and_then(|state| self.kinds[process.kind as usize].own(state, symbol.cell()));
        own.and_then(|own| self.sets.meet(symbol.cell(), symbol.set(), own)).unwrap_or(symbol.set())
    }

    /// Tries all ways to map the processes of `a` to processes of `b`.
    fn assign(&self, a: &Element, b: &Element, chosen: &mut Vec<usize>) -> bool {
        let Some(process) = a.processes.get(chosen.len()) else {
            return self.letters_below(a, b, None, &|process| chosen.get(process).copied());
        };
        (0..b.processes.len()).any(|place| {
            !chosen.contains(&place) && self.process_below(process, b, place) && {
                chosen.push(place);
                let below = self.assign(a, b, chosen);
                chosen.pop();
                below
            }
        })
    }

    /// Whether a process of `b` is at the state of a process of `a` and meets all requirements on its queues.
    fn process_below(&self, process: &Process, b: &Element, place: usize) -> bool {
        let of_b = &b.processes[place];
        process.kind == of_b.kind
            && (process.state.is_none() || process.state == of_b.state)
            && process.queues.iter().all(|queue| self.queue_below(queue, b, of_b))
    }

    fn queue_below(&self, queue: &Queue, b: &Element, of_b: &Process) -> bool {
        if queue.is_empty() {
            return self.is_empty(b, of_b, queue.cell);
        }
        let Some(other) = of_b.queue(queue.cell) else { return false };
        // The entries with the values that they can really have.
        let kind = &self.kinds[of_b.kind as usize];
        let effective = |place: usize| {
            let set = other.values[place];
            let possible = of_b.state.and_then(|state| self.entry(kind, state, other, place));
            possible.and_then(|possible| self.sets.meet(queue.cell, set, possible)).unwrap_or(set)
        };
        let entries: Vec<SetId> = (0..other.values.len()).map(effective).collect();
        let covers = |wanted: SetId, entry: SetId| self.sets.is_subset(queue.cell, entry, wanted);
        let newest = match queue.end {
            End::Open => true,
            End::Closed => {
                let last = queue.values.last().zip(entries.last());
                other.end == End::Closed && last.is_some_and(|(&wanted, &entry)| covers(wanted, entry))
            }
        };
        newest && embeds(&queue.values, &entries, covers)
    }

    /// Whether the element implies that nothing is pending in a queue.
    pub fn is_empty(&self, element: &Element, process: &Process, cell: CellId) -> bool {
        process.has_letter(cell)
            || element.content(cell).is_settled()
            || !self.kinds[process.kind as usize].may_have_queue(process.state, cell)
            || process.queue(cell).is_some_and(Queue::is_empty)
    }

    /// Whether the letters of `a` (of one process, or all) have positions in `b`, given the mapping of
    /// processes.
    fn letters_below(
        &self,
        a: &Element,
        b: &Element,
        only: Option<(usize, usize)>,
        goes: &dyn Fn(usize) -> Option<usize>,
    ) -> bool {
        let of_a = a.letters(only.map(|(of_a, _)| of_a));
        let of_b = b.letters(only.map(|(_, of_b)| of_b));
        let end = of_b.len();
        let mut place = 0;
        for (index, &(process, symbol)) in of_a.iter().enumerate() {
            let cell = symbol.cell();
            let target = goes(process).expect("every process goes somewhere");
            if symbol.is_own() {
                let own = of_b[place..]
                    .iter()
                    .position(|&(process, other)| process == target && symbol.is_below(other, &self.sets));
                match own {
                    Some(offset) => place += offset,
                    None => return false,
                }
                continue;
            }
            let first = |test: &dyn Fn(Symbol) -> bool| {
                let found = of_b.iter().position(|&(process, symbol)| process == target && test(symbol));
                found.unwrap_or(end)
            };
            let is_first = |test: &dyn Fn(Symbol) -> bool| {
                !of_a[..index].iter().any(|&(other, symbol)| other == process && test(symbol))
            };
            if is_first(&|_| true) {
                place = place.max(first(&|_| true));
            }
            let kind = &self.kinds[a.processes[process].kind as usize];
            if kind.stored[cell].is_some() && is_first(&|symbol| symbol.cell() == cell) {
                place = place.max(first(&|symbol| symbol.cell() == cell));
            }
            let there = of_b[place..].iter().position(|&(process, other)| {
                let of = &b.processes[process];
                other.cell() == cell && self.sets.is_subset(cell, self.effective(of, other), symbol.set())
            });
            match there {
                Some(offset) => place += offset,
                None => {
                    let held = self.values(&b.memory, &b.processes, cell);
                    let held = held.is_none_or(|held| self.sets.is_subset(cell, held, symbol.set()));
                    if !held || !self.is_empty(b, &b.processes[target], cell) {
                        return false;
                    }
                    place = end;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bad::bad_combinations;
    use crate::sb::setup::Machine;
    use crate::spawns::Spawning;
    use crate::values::ValueSets;
    use palisade_automata::{Automata, Population};
    use palisade_base::IdVec;
    use palisade_conformance::{Profile, generate};
    use palisade_memory::Interlocked;
    use palisade_program::{Instantiation, lower};
    use palisade_wqo::{Backward, is_subword};
    use rustc_hash::FxHashSet;

    /// Elements that a search encounters, whether or not others are below them.
    fn elements(setup: &Setup, bad: &[crate::bad::Bad], most: usize) -> Vec<Element> {
        let mut met: Vec<Element> = Vec::new();
        for combination in bad {
            setup.bad_elements(combination, &mut |element, _| met.push(element));
        }
        let mut next = 0;
        while next < met.len() && met.len() < most {
            let mut found = Vec::new();
            setup.predecessors(&met[next], &mut |element, _| found.push(element));
            met.extend(found);
            next += 1;
        }
        met.truncate(most);
        met
    }

    #[test]
    fn the_order_is_reflexive_and_transitive_and_respects_keys() {
        let mut related = 0;
        for seed in 1..=60 {
            let program = generate(Profile::Simple, seed);
            let system = lower(&program, Instantiation { any: 1, every: None });
            let automata = Automata::build(&system, |_| Population::Fixed(2), || true);
            let Ok(automata) = automata else { continue };
            let merged = automata.merged(&system);
            let Ok(bad) = bad_combinations(&system, &merged.automata) else { continue };
            for model in Model::ALL {
                for sharing in [Sharing::One, Sharing::PerProcess] {
                    let (interlocked, spawning) = (Interlocked::WholeBuffer, Spawning::Anytime);
                    let machine = Machine { model, interlocked, sharing, spawning };
                    let sets = ValueSets::new(merged.automata.values.iter().map(IdVec::len));
                    let setup = Setup::new(&merged, machine, FxHashSet::default(), sets);
                    let met = elements(&setup, &bad, 40);
                    let below: Vec<Vec<bool>> =
                        met.iter().map(|a| met.iter().map(|b| setup.below(a, b)).collect()).collect();
                    for (a, of_a) in below.iter().enumerate() {
                        assert!(of_a[a], "{:?} is below itself", met[a]);
                        for b in (0..met.len()).filter(|&b| of_a[b] && a != b) {
                            related += 1;
                            let (fewer, more) = (setup.keys(&met[a]), setup.keys(&met[b]));
                            assert!(is_subword(&fewer, &more), "keys of {:?} and {:?}", met[a], met[b]);
                            let initial = setup.is_initial(&met[a]) || !setup.is_initial(&met[b]);
                            assert!(initial, "{:?} is initial, and {:?} below it", met[b], met[a]);
                            for c in (0..met.len()).filter(|&c| below[b][c]) {
                                assert!(of_a[c], "{:?}\n{:?}\n{:?}", met[a], met[b], met[c]);
                            }
                        }
                    }
                }
            }
        }
        assert!(related > 1_000, "only {related} pairs of different elements are related");
    }
}
