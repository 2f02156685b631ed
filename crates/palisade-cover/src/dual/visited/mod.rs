//! Proofs with guesses from a visit.
//!
//! *Problem.* A backward search undoes steps through configurations that no run has: nothing says where a pointer leads
//! before the search has undone the store that set it, or that so many threads are never in these places together before it
//! has undone all their steps. So programs with few configurations can have large closed sets.
//!
//! *Idea.* All configurations are [visited](visit), and some more. An element that is about to be expanded is replaced by a
//! more general one: requirements are left out, and values added, one by one, as long as no visited configuration is in the
//! element. What is left says in few words why the element is unreachable, and covers many others.
//!
//! *Source.* Guesses from a forward visit: S. Conchon, A. Goel, S. Krstić, A. Mebsout and F. Zaïdi, "Invariants for finite
//! instances and beyond" (FMCAD 2013). There they come from a visit of a smaller instance without delayed stores, and may be
//! wrong. Generalising as far as reachable states allow: A. Bradley, "SAT-based model checking without unrolling" (VMCAI 2011).
//!
//! *Guesses are not trusted.* They are right, because the visit leaves out nothing. But the search proves them along
//! ([`Guessing`](super::guessing::Guessing)), and the checker of its proof knows nothing of a visit.
//!
//! *Limits.* Messages are visited without their order. Where it matters in which order a thread sees what others have stored,
//! as in Szymanski's algorithm, the visit covers configurations in the bad elements themselves, and nothing is guessed.
//!
//! *Cost.* The visit, and a test of some ten to fifty elements for each guess, each of which reads as many bits for every
//! requirement of the element as there are configurations.

mod visit;

use super::element::{Element, Memory, View};
use super::setup::Setup;
use crate::values::SetId;
use palisade_automata::{StateId, ValueId};
use palisade_base::{Id, limits};
use palisade_program::running::CellId;
use palisade_wqo::Backward;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use visit::{HasRoom, Visit};

pub(crate) use visit::NoVisit;

/// Values are added only to sets of cells with at most this many values. Those of larger cells could need more sets than
/// there are numbers for.
const MAX_WIDENED: usize = 12;

/// With more bits than this for all facts together, nothing is guessed.
const MAX_BITS: usize = 1 << 29;

/// What can be required of a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Fact {
    /// More than this many processes of a kind are in a state.
    At { kind: u32, state: StateId, others: u32 },
    /// The buffer of a process may hold a message.
    Pending { kind: u32, own: bool, cell: CellId, value: ValueId },
    /// Memory holds a value.
    Holds { cell: CellId, value: ValueId },
}

/// The configurations that were visited: for each fact, a bit for each of them.
pub(crate) struct Visited {
    facts: FxHashMap<Fact, Vec<u64>>,
    count: usize,
}

impl Visited {
    /// Visits a program, if it has at most so many configurations and there is room. A visit is useless if it cannot keep
    /// the search from any bad element.
    pub fn new(
        setup: &Setup,
        bad: &[Element],
        most: usize,
        has_room: &HasRoom<'_>,
    ) -> Result<Visited, NoVisit> {
        if setup.spawns() || !setup.exact {
            return Err(NoVisit::Useless);
        }
        let visit = Visit::new(setup, bad, most, has_room)?;
        let mut visited = Visited { facts: FxHashMap::default(), count: 0 };
        for number in 0..visit.len() {
            limits::checkpoint();
            visited.count += 1;
            let processes = visit.kinds.iter().enumerate();
            let places = processes.flat_map(|(process, &kind)| {
                visit.states(number, process).into_iter().map(move |state| (kind, state))
            });
            visited.are_at(places.collect());
            for (cell, value) in visit.memory(number) {
                visited.add(Fact::Holds { cell, value });
            }
            for message in visit.messages(number) {
                let kind = visit.kinds[message.process];
                visited.add(Fact::Pending {
                    kind,
                    own: message.own,
                    cell: message.cell,
                    value: message.value,
                });
            }
            if visited.facts.len() * visited.count > MAX_BITS
                || number.is_multiple_of(1024) && !has_room(visit.bytes() + visited.bytes())
            {
                return Err(NoVisit::TooLarge);
            }
        }
        let words = visited.words();
        visited.facts.values_mut().for_each(|bits| bits.resize(words, 0));
        Ok(visited)
    }

    /// The number of words that hold the bits of a fact.
    fn words(&self) -> usize {
        self.count.div_ceil(64)
    }

    /// The memory in use, approximately.
    pub fn bytes(&self) -> u64 {
        (self.facts.len() * self.count / 8) as u64
    }

    /// Sets a fact for the last configuration.
    fn add(&mut self, fact: Fact) {
        let bits = self.facts.entry(fact).or_default();
        let last = self.count - 1;
        bits.resize(last / 64 + 1, 0);
        bits[last / 64] |= 1 << (last % 64);
    }

    fn are_at(&mut self, mut places: Vec<(u32, StateId)>) {
        places.sort_unstable();
        for same in places.chunk_by(|a, b| a == b) {
            let (kind, state) = same[0];
            (0..same.len() as u32).for_each(|others| self.add(Fact::At { kind, state, others }));
        }
    }

    /// Whether a configuration that was visited may be in the element. What is pending is looked at without its order, and
    /// among processes of one kind without whose it is.
    fn meets(&self, setup: &Setup, element: &Element) -> bool {
        let bits = |fact| self.facts.get(&fact).map(Vec::as_slice);
        let mut required: Vec<SmallVec<[&[u64]; 4]>> = Vec::new();
        for (index, process) in element.processes.iter().enumerate() {
            let (kind, state) = (process.kind, process.state);
            let earlier = element.processes[..index].iter().filter(|other| other.key() == process.key());
            required
                .push(bits(Fact::At { kind, state, others: earlier.count() as u32 }).into_iter().collect());
            for letter in &process.word {
                let (own, cell) = (letter.is_own(), letter.cell());
                let values = setup.sets.values(cell, letter.set()).into_iter();
                let any = values.filter_map(|value| bits(Fact::Pending { kind, own, cell, value }));
                required.push(any.collect());
            }
        }
        for (cell, set) in element.known() {
            let values = setup.sets.values(cell, set).into_iter();
            required.push(values.filter_map(|value| bits(Fact::Holds { cell, value })).collect());
        }
        have_common_bit(&required, self.words())
    }

    /// An element below this one, as general as possible without a configuration that was visited. `None` if there is
    /// nothing more general than the element.
    pub fn generalise(&self, setup: &Setup, element: &Element) -> Option<Element> {
        let may_be_reachable = |element: &Element| setup.is_initial(element) || self.meets(setup, element);
        if may_be_reachable(element) {
            return None;
        }
        let mut general = element.clone();
        loop {
            limits::checkpoint();
            let mut found = None;
            let mut give = |candidate: Element| {
                let is_better = candidate != general && !may_be_reachable(&candidate);
                if is_better {
                    found = Some(candidate);
                }
                is_better
            };
            setup.with_one_less(&general, &mut give);
            if found.is_none() {
                with_one_more_value(setup, &general, &mut |candidate| {
                    let is_better = candidate != general
                        && setup.is_below(&candidate, &general)
                        && !may_be_reachable(&candidate);
                    if is_better {
                        found = Some(candidate);
                    }
                    is_better
                });
            }
            match found {
                Some(better) => general = better,
                None => break,
            }
        }
        (general != *element).then_some(general)
    }
}

/// Whether there is a bit that every requirement has in one of its lists, which all have this many words. If nothing is
/// required, every bit will do.
fn have_common_bit(required: &[SmallVec<[&[u64]; 4]>], words: usize) -> bool {
    // Words that fit into a processor's registers are handled together.
    const CHUNK: usize = 16;
    (0..words).step_by(CHUNK).any(|start| {
        let end = words.min(start + CHUNK);
        let mut all = [u64::MAX; CHUNK];
        for lists in required {
            let mut any = [0; CHUNK];
            for list in lists {
                any.iter_mut().zip(&list[start..end]).for_each(|(any, bits)| *any |= bits);
            }
            all.iter_mut().zip(any).for_each(|(all, any)| *all &= any);
            if all.iter().fold(0, |any, bits| any | bits) == 0 {
                return false;
            }
        }
        true
    })
}

/// The element with one more value allowed for a cell, in normal form. Stops when `give` returns true.
fn with_one_more_value(setup: &Setup, element: &Element, give: &mut dyn FnMut(Element) -> bool) {
    for (cell, set) in element.known() {
        let all = setup.sets.values(cell, SetId::ALL);
        if all.len() > MAX_WIDENED || setup.apart.contains(&cell) {
            continue;
        }
        for &value in all.iter().filter(|&&value| !setup.sets.contains(cell, set, value)) {
            let values = setup.sets.values(cell, set).into_iter().chain([value]);
            let mut memory: Memory = element.memory.clone();
            memory[cell.index()] = setup.sets.of(cell, values).expect("a set with a value is not empty");
            if give(setup.simplified(&Element::new(memory, element.processes.clone()))) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guessing::Guessing;
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

    impl Visited {
        /// Only one in three configurations.
        fn thinned(mut self) -> Visited {
            let third = 0x9249_2492_4924_9249;
            self.facts.values_mut().flatten().for_each(|bits| *bits &= third);
            self
        }
    }

    #[derive(PartialEq, Debug)]
    enum Said {
        Proved,
        Violated,
        /// A guess was wrong.
        Wrong,
        Unknown,
    }

    /// What this attempt says, with a visit as `prepare` leaves it, compared with what the exact search says.
    fn compare(
        program: &written::Program,
        model: Model,
        prepare: impl Fn(Visited) -> Visited,
        what: &str,
    ) -> Option<Said> {
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
        let visited = prepare(Visited::new(&setup, &bad, 1 << 12, &|_| true).ok()?);
        let mut guessing = Guessing::from_visit(&setup, &bad, visited);
        let searched = Program { automata: &automata, merged: &merged, setup: &setup, model };
        let mut reachable = false;
        let attempt =
            guessing.attempt(&searched, 20_000, &mut |_, _| Ok(()), &mut |_, _, _| reachable = true);
        let mut search = Search::new(&setup);
        bad.iter().for_each(|element| search.add(element.clone()));
        let found = search.run(|search| search.generated() < 20_000);
        if reachable {
            assert!(matches!(found, None | Some(SearchEnd::Initial(_))), "{what}: it is safe");
            return Some(Said::Violated);
        }
        if let Attempt::Proved = attempt {
            assert!(matches!(found, None | Some(SearchEnd::Closed)), "{what}: it is not safe");
            let mut closed = guessing.closed();
            closed.keep_needed(bad.iter().cloned());
            let mut parts = proof::Writer::new(&setup);
            parts.add(None, &closed.into_elements());
            let verified = palisade_certificate::verify(&task, &parts.proof(&merged), &limits);
            verified.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
        }
        Some(match attempt {
            Attempt::Proved => Said::Proved,
            Attempt::Hopeless => Said::Wrong,
            Attempt::Unfinished | Attempt::Exhausted(_) => Said::Unknown,
        })
    }

    /// On random programs: what is proved is safe, and the checker accepts the proof, also if configurations are missing in
    /// the visit. If none are missing, no guess is wrong.
    #[test]
    fn differential_guesses_prove_only_what_is_safe() {
        let seeds = seeds(40).starting_at(1);
        let (mut proved, mut thinned, mut wrong) = (0, 0, 0);
        for seed in &seeds {
            for profile in Profile::ALL {
                let program = generate(profile, seed);
                for model in [Model::Sc, Model::Tso] {
                    let what = format!("seed {seed}, {profile:?}, {}", model.name());
                    let whole = compare(&program, model, |visited| visited, &what);
                    assert_ne!(whole, Some(Said::Wrong), "{what}: all configurations are visited");
                    proved += usize::from(whole == Some(Said::Proved));
                    let third = compare(&program, model, Visited::thinned, &what);
                    thinned += usize::from(third == Some(Said::Proved));
                    wrong += usize::from(third == Some(Said::Wrong));
                }
            }
        }
        println!("{proved} proved; with a third of the configurations {thinned}, and {wrong} wrong guesses");
        assert!(proved > 0 && thinned > 0 && wrong > 0 || !seeds.suffice());
    }

    fn with_setup(text: &str, model: Model, look: impl FnOnce(&Setup)) {
        let program = parse(Language::Pal, &Source::new("p", text)).expect("it is well formed").program;
        let task = Task::new(&program, model);
        let Ok(prepared) = start::prepared(&task.analysis(), &Limits::unlimited(1)) else {
            panic!("it is small")
        };
        look(&Setup::new(&prepared.merged, model));
    }

    /// Stores stay pending until a fence, and values that a cell had stay readable until the next read.
    #[test]
    fn what_buffers_may_hold() {
        let text = "
            shared x, y: 0..2;
            process P { x = 1; x = 2; fence; }
            process Q { let a = x; y = 1; let b = y; assert(a == b); }
            ";
        with_setup(text, Model::Tso, |setup| {
            let visited = Visited::new(setup, &[], 1000, &|_| true).expect("it is small");
            let pending = |kind, own, cell, value| {
                let fact = Fact::Pending { kind, own, cell: CellId(cell), value: ValueId(value) };
                visited.facts.get(&fact).is_some_and(|bits| bits.iter().any(|&bits| bits != 0))
            };
            assert!(pending(0, true, 0, 1) && pending(0, true, 0, 2) && !pending(0, true, 1, 1));
            assert!((0..3).all(|value| pending(1, false, 0, value)));
            assert!(pending(1, true, 1, 1) && !pending(1, true, 0, 1));
            // P has the value that it stored, and no older one, once it has stored.
            let both = |a, b| {
                let [a, b] = [a, b].map(|fact| visited.facts.get(&fact).map_or(&[][..], Vec::as_slice));
                a.iter().zip(b).any(|(a, b)| a & b != 0)
            };
            let plain = |value| Fact::Pending { kind: 0, own: false, cell: CellId(0), value: ValueId(value) };
            let holds = |value| Fact::Holds { cell: CellId(0), value: ValueId(value) };
            assert!(both(plain(2), holds(2)) && !both(plain(0), holds(2)) && !both(plain(1), holds(2)));
        });
    }

    #[test]
    fn programs_that_are_not_visited() {
        let why = |setup: &Setup, bad: &[Element], most: usize, room: bool| {
            Visited::new(setup, bad, most, &|_| room).err()
        };
        let any = "shared x: 0..1; process P[*] { x = 1; }";
        with_setup(any, Model::Tso, |setup| assert_eq!(why(setup, &[], 1000, true), Some(NoVisit::Useless)));
        let three = "shared x: 0..1; process P[3] { x = 1; }";
        with_setup(three, Model::Tso, |setup| {
            let count = Visited::new(setup, &[], 1000, &|_| true).expect("it is small").count;
            assert_eq!(why(setup, &[], count, true), None);
            assert_eq!(why(setup, &[], count - 1, true), Some(NoVisit::TooLarge));
            assert_eq!(why(setup, &[], 1000, false), Some(NoVisit::TooLarge));
            // Memory can hold either value, but not both.
            let with = |value| {
                let mut memory: Memory = vec![SetId::ALL; setup.cells].into();
                memory[0] = setup.sets.single(CellId(0), ValueId(value));
                Element::new(memory, Default::default())
            };
            assert_eq!(why(setup, &[with(0), with(1)], 1000, true), Some(NoVisit::Useless));
        });
    }

    /// Two threads with one place each, of which only one is ever passed: what is guessed mentions the places alone.
    #[test]
    fn guesses_say_no_more_than_they_must() {
        let text = "
            shared lock, z: 0..1;
            process P[2] { await cas(lock, 0, 1); z = 1; cs: z = 0; fence; lock = 0; }
            forbid count(P@cs) >= 2;
            ";
        with_setup(text, Model::Tso, |setup| {
            let visited = Visited::new(setup, &[], 1000, &|_| true).expect("it is small");
            let at = |state: StateId| super::super::process::Requirement {
                kind: 0,
                state,
                word: Default::default(),
            };
            let kept = |state| setup.processes.keep(&at(state), &setup.sets);
            let all: Memory = vec![SetId::ALL; setup.cells].into();
            let inside = |&state: &StateId| {
                let twice = Element::new(all.clone(), [kept(state), kept(state)].into_iter().collect());
                !visited.meets(setup, &twice)
            };
            let places: Vec<StateId> = setup.kinds[0].is_start.ids().filter(inside).collect();
            assert!(!places.is_empty(), "the lock excludes");
            let mut known = all.clone();
            known.iter_mut().enumerate().for_each(|(cell, set)| {
                *set = setup.sets.single(CellId::from_index(cell), ValueId(0));
            });
            let element = Element::new(known, [kept(places[0]), kept(places[0])].into_iter().collect());
            let general = visited.generalise(setup, &element).expect("memory is not needed");
            assert!(setup.is_below(&general, &element));
            assert!(general.known().count() + general.processes.len() < 4, "{general:?}");
        });
    }
}
