//! Following only the processes that matter.
//!
//! *Problem.* A proof that follows all processes grows with their number, although most proofs need few of them.
//!
//! *Idea.* Take the bad combinations that name the same processes; follow only these. A process that is not followed may write any value it ever writes, at
//! any time: a *free* value. That only adds runs, so `safe` is right. If an initial element is met, one more process is followed, one whose free values were used; with
//! all of them followed the search would be the exact one, so that nothing is gained and the matter is left to it.
//!
//! *Rules.* Going backward, a free write makes a known free value unknown, and a free letter can be dropped as soon as it is the newest one and its cell is
//! unknown: both make the element smaller, so they are part of the normal form. A free letter behind other plain ones can be dropped together with them, which fixes their
//! cells: a predecessor of its own ([`Setup::undo_free_writes`]). Since that step is there, the propagations which are undone together with an instruction need not contain free letters; for the
//! others the argument of [`super`] holds as it is.

use super::element::{Content, Element};
use super::setup::{Setup, writes};
use crate::symbol::Symbol;
use palisade_automata::Population;
use palisade_base::Id;
use palisade_engine::Exhausted;
use palisade_program::running::CellId;
use palisade_wqo::{NodeId, Search, SearchEnd};
use std::collections::BTreeMap;

/// More than this many additional processes of a kind with any number of them are not tried.
const MAX_MORE: u32 = 2;

/// What an attempt came to.
pub(crate) enum Attempt {
    /// All bad combinations are unreachable: for each group the setup and the closed set.
    Proved,
    /// Not within the work it was given.
    Unfinished,
    /// Too many processes matter.
    Hopeless,
    /// The limits ran out.
    Exhausted(Exhausted),
}

/// Bad elements that name the same kinds of processes, and what is known about them.
struct Group {
    bad: Vec<Element>,
    /// How many processes of each kind are followed.
    tracked: Vec<u32>,
    proved: bool,
}

/// The attempt to prove a program safe by following few processes.
pub(crate) struct Tracked<'s> {
    exact: &'s Setup,
    groups: Vec<Group>,
    /// What all attempts together have generated.
    pub generated: u64,
}

impl<'s> Tracked<'s> {
    /// Nothing is proved yet.
    pub fn new(exact: &'s Setup, bad: Vec<Element>) -> Tracked<'s> {
        let mut groups: BTreeMap<Vec<u32>, Vec<Element>> = BTreeMap::new();
        for element in bad {
            let mut named = vec![0; exact.kinds.len()];
            element.processes.iter().for_each(|process| named[process.kind as usize] += 1);
            groups.entry(named).or_default().push(element);
        }
        let group = |(tracked, bad)| Group { bad, tracked, proved: false };
        Tracked { exact, groups: groups.into_iter().map(group).collect(), generated: 0 }
    }

    /// Tries to prove all groups with this much work each in all. `check` is told how much was generated and how much memory is taken, now and then; `keep` gets each closed
    /// set, if somebody wants to know.
    pub fn attempt(
        &mut self,
        work: u64,
        check: &mut dyn FnMut(u64, u64) -> Result<(), Exhausted>,
        keep: &mut dyn FnMut(&[u32], Vec<&Element>),
    ) -> Attempt {
        let most = self.generated + work;
        for number in 0..self.groups.len() {
            while !self.groups[number].proved {
                let Group { bad, tracked, .. } = &self.groups[number];
                if !self.leaves_something_out(tracked) {
                    return Attempt::Hopeless;
                }
                let setup = self.exact.following(tracked);
                let mut search = Search::new(&setup);
                bad.iter().for_each(|element| search.add(setup.simplified(element)));
                let before = self.generated;
                let mut exhausted = None;
                let mut expanded = 0u64;
                let found = search.run(|search| {
                    expanded += 1;
                    if expanded.is_multiple_of(256) {
                        exhausted = check(before + search.generated(), search.bytes()).err();
                    }
                    exhausted.is_none() && before + search.generated() < most
                });
                self.generated = before + search.generated();
                match (found, exhausted) {
                    (_, Some(exhausted)) => return Attempt::Exhausted(exhausted),
                    (None, None) => return Attempt::Unfinished,
                    (Some(SearchEnd::Closed), None) => {
                        let needed = search.needed(bad.iter().map(|element| setup.simplified(element)));
                        keep(tracked, needed);
                        self.groups[number].proved = true;
                    }
                    (Some(SearchEnd::Initial(node)), None) => {
                        let Some(more) = self.to_follow(&setup, &search, node, tracked) else {
                            return Attempt::Hopeless;
                        };
                        self.groups[number].tracked[more] += 1;
                    }
                }
            }
        }
        Attempt::Proved
    }

    fn leaves_something_out(&self, tracked: &[u32]) -> bool {
        let few = |(kind, &tracked): (usize, &u32)| match self.exact.kinds[kind].population {
            Population::Fixed(all) => tracked < all,
            Population::Any => true,
        };
        tracked.iter().enumerate().any(few)
    }

    /// A kind of which one more process should be followed: one that is not followed and writes what the abstract run may have used.
    fn to_follow(
        &self,
        setup: &Setup,
        search: &Search<'_, Setup>,
        initial: NodeId,
        tracked: &[u32],
    ) -> Option<usize> {
        let mut asked: Vec<(CellId, palisade_automata::ValueId)> = Vec::new();
        let mut node = initial;
        while let Some((successor, ())) = search.successor(node) {
            // Undoing a step asks for what the reads on the way into the element have seen.
            for process in &search.element(successor).processes {
                let kind = &setup.kinds[process.kind as usize];
                for &edge in &kind.incoming[process.state] {
                    match &kind.edges[edge].letter {
                        palisade_automata::Letter::Read(cell, value) => asked.push((*cell, *value)),
                        palisade_automata::Letter::Locked { guard, .. } => asked.extend(guard),
                        _ => {}
                    }
                }
            }
            node = successor;
        }
        asked.retain(|&(cell, value)| setup.is_free(cell, value));
        let writes_some = |kind: usize| {
            let edges = &self.exact.kinds[kind].edges;
            edges
                .iter()
                .flat_map(|edge| writes(&edge.letter))
                .filter(|written| asked.contains(written))
                .count()
        };
        let room = |kind: &usize| match self.exact.kinds[*kind].population {
            Population::Fixed(all) => tracked[*kind] < all,
            Population::Any => {
                let group = self.groups.iter().find(|group| group.tracked == tracked);
                let named = group.map_or(0, |group| {
                    let of_kind = |element: &Element| {
                        element.processes.iter().filter(|process| process.kind as usize == *kind).count()
                    };
                    group.bad.iter().map(of_kind).max().unwrap_or(0)
                });
                tracked[*kind] < named as u32 + MAX_MORE
            }
        };
        let candidates = (0..tracked.len()).filter(room);
        candidates.max_by_key(|&kind| {
            (writes_some(kind).min(1), std::cmp::Reverse(tracked[kind]), std::cmp::Reverse(kind))
        })
    }
}

impl Setup {
    /// The same program with only so many processes of each kind followed.
    pub fn following(&self, tracked: &[u32]) -> Setup {
        let mut setup = self.clone();
        for (kind, &tracked) in setup.kinds.iter_mut().zip(tracked) {
            let all = match kind.population {
                Population::Fixed(all) => all <= tracked,
                Population::Any => false,
            };
            if !all {
                kind.population = Population::Fixed(tracked);
                setup.free.extend(kind.edges.iter().flat_map(|edge| writes(&edge.letter)));
            }
        }
        setup
    }

    /// Whether initial memory, free writes and propagations lead into the element.
    pub fn is_initial_with_free_writes(&self, element: &Element) -> bool {
        let starts = element.processes.iter().all(|process| {
            self.kinds[process.kind as usize].is_start[process.state]
                && process.word.iter().all(|symbol| !symbol.is_own())
        });
        if !starts {
            return false;
        }
        let is_free = |symbol: Symbol| self.is_free(symbol.cell(), symbol.value());
        let mut memory = element.memory.clone();
        // Letters still to be dropped, newest first.
        let mut words: Vec<&[Symbol]> = element.processes.iter().map(|process| &process.word[..]).collect();
        loop {
            words.retain(|word| !word.is_empty());
            let droppable = |word: &&[Symbol]| match memory[word[0].cell().index()].value() {
                Some(held) => held == word[0].value(),
                None => is_free(word[0]),
            };
            if let Some(index) = words.iter().position(droppable) {
                words[index] = &words[index][1..];
                continue;
            }
            // A value that holds from the start on must not be asked for after a free write: free letters of the cell are dropped first.
            let free_later =
                |cell: CellId| words.iter().any(|word| word.iter().any(|&s| s.cell() == cell && is_free(s)));
            let unknown = |cell: CellId| memory[cell.index()] == Content::ANY;
            let fixed = words.iter().map(|word| word[0]).find(|s| unknown(s.cell()) && !free_later(s.cell()));
            match fixed {
                Some(symbol) => memory[symbol.cell().index()] = Content::known(symbol.value()),
                None => break,
            }
        }
        words.is_empty()
            && memory.iter().enumerate().all(|(index, content)| {
                let cell = CellId::from_index(index);
                let initial = |value: palisade_automata::ValueId| value.index() < self.initial[cell];
                content.value().is_none_or(|value| initial(value) || self.is_free(cell, value))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bad::bad_combinations;
    use crate::dual::proof;
    use palisade_conformance::{Profile, generate, seeds};
    use palisade_engine::{Analysis, Limits, Options, Task, Threads};
    use palisade_memory::{Interlocked, Model};

    /// On random programs: what few processes prove safe is safe when all are followed, and the proofs convince the checker.
    #[test]
    fn differential_few_processes_prove_only_what_is_safe() {
        let seeds = seeds(150).starting_at(1);
        let (mut proved, mut safe) = (0, 0);
        for seed in &seeds {
            for profile in Profile::ALL {
                let program = generate(profile, seed);
                for (model, threads) in [
                    (Model::Tso, Threads::Declared),
                    (Model::Sc, Threads::Declared),
                    (Model::Tso, Threads::Each(2)),
                ] {
                    let task = Task {
                        program: &program,
                        threads,
                        model,
                        interlocked: Interlocked::default(),
                        options: Options::default(),
                    };
                    let analysis = Analysis::new(task.clone());
                    let system = analysis.system(1);
                    let Ok(merged) = analysis.merged(&Limits::unlimited(1)) else { continue };
                    let setup = Setup::new(&merged.automata, model);
                    let Ok(bad) = bad_combinations(&system, &merged.automata) else { continue };
                    let mut elements = Vec::new();
                    for combination in &bad {
                        setup.bad_elements(combination, &mut |element, _| elements.push(element));
                    }
                    let mut parts = Vec::new();
                    let mut tracked = Tracked::new(&setup, elements.clone());
                    let attempt = tracked.attempt(5_000, &mut |_, _| Ok(()), &mut |tracked, elements| {
                        parts.push(proof::part(Some(tracked.to_vec()), elements));
                    });
                    let mut search = Search::new(&setup);
                    elements.into_iter().for_each(|element| search.add(element));
                    let found = search.run(|search| search.generated() < 20_000);
                    safe += usize::from(found == Some(SearchEnd::Closed));
                    if !matches!(attempt, Attempt::Proved) {
                        continue;
                    }
                    let what = format!("seed {seed}, {profile:?}, {}, {threads:?}", model.name());
                    assert!(
                        matches!(found, None | Some(SearchEnd::Closed)),
                        "{what}: not all processes were followed"
                    );
                    let proof = proof::proof(&setup, &merged, parts);
                    if let Err(refusal) = palisade_certificate::verify(&task, &proof, &Limits::unlimited(1)) {
                        panic!("{what}: {refusal}");
                    }
                    proved += 1;
                }
            }
        }
        println!("{safe} safe programs, {proved} proved by following few processes");
        assert!(proved > 0 || !seeds.suffice());
    }
}
