//! The search against a plain breadth-first search, with any number of jobs.

use palisade_engine::{Exhausted, Limits};
use palisade_search::{
    Counters, Effort, End, Expand, Expansion, Finds, Search, Shards, StateId, Successors, Visited, Wanted,
    pool,
};
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::ops::AddAssign;

/// How many numbers there are.
const NUMBERS: u64 = 50_000;
/// Steps from numbers with the same remainder need the same entry of the tables.
const ENTRIES: u64 = 97;

/// A number leads to a few others. With `parts`, some numbers offer one of these first.
struct Numbers {
    known: BTreeSet<u64>,
    parts: bool,
    goal: Option<u64>,
    counted: u64,
    weight: u64,
}

/// The state of a number: the number and its square.
fn state(number: u64) -> [u64; 2] {
    [number, number * number]
}

fn nexts(number: u64) -> [u64; 3] {
    [(number + 7) % NUMBERS, number * 3 % NUMBERS, number / 2]
}

#[derive(Default)]
struct Expanded(u64);

impl AddAssign for Expanded {
    fn add_assign(&mut self, other: Expanded) {
        self.0 += other.0;
    }
}

/// The search looks for states, or for steps from them.
struct Looking<const STEPS: bool>(Numbers);

impl<const STEPS: bool> Expand for Looking<STEPS> {
    type Need = u64;
    type Halt = u64;
    type Tally = Expanded;

    const FINDS: Finds = if STEPS { Finds::Steps } else { Finds::States };

    fn expand(
        &self,
        words: &[u64],
        wanted: Wanted,
        successors: &mut Successors<Expanded>,
        needs: &mut Vec<u64>,
    ) -> Result<Expansion, u64> {
        let number = words[0];
        assert_eq!(words, state(number), "only states of numbers are expanded");
        if !self.0.known.contains(&(number % ENTRIES)) {
            successors.words.extend(state(0));
            needs.push(number % ENTRIES);
            return Ok(Expansion::Missing);
        }
        successors.tally += Expanded(1);
        successors.found = STEPS && self.0.goal.is_some_and(|goal| nexts(number).contains(&goal));
        if wanted == Wanted::Part && number % 3 == 1 {
            successors.words.extend(state(nexts(number)[0]));
            return Ok(Expansion::Part);
        }
        for next in nexts(number) {
            successors.words.extend(state(next));
            successors.weights.push(2);
        }
        Ok(Expansion::All)
    }

    fn wants_parts(&self) -> bool {
        self.0.parts
    }

    fn is_goal(&self, words: &[u64]) -> bool {
        !STEPS && self.0.goal == Some(words[0])
    }

    fn count(&mut self, tally: Expanded, weight: u64) {
        self.0.counted += tally.0;
        self.0.weight += weight;
    }

    fn report(&self, counters: &Counters) {
        assert!(counters.states > 0 && counters.bytes > 0);
    }

    fn supply(&mut self, need: u64) {
        assert!(self.0.known.insert(need), "a need is supplied once");
    }

    fn check(&self) -> Result<(), u64> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        8 * self.0.known.len() as u64
    }
}

/// The depth of all numbers that are reachable from 1.
fn depths() -> HashMap<u64, usize> {
    let mut depths = HashMap::from([(1, 0)]);
    let mut level = vec![1];
    for depth in 1.. {
        let mut next = Vec::new();
        for number in level.iter().flat_map(|&number| nexts(number)) {
            depths.entry(number).or_insert_with(|| {
                next.push(number);
                depth
            });
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    depths
}

fn numbers(parts: bool, goal: Option<u64>) -> Numbers {
    Numbers { known: BTreeSet::new(), parts, goal, counted: 0, weight: 0 }
}

/// Searches from 1. `choose` selects the wanted findings. Returns the end, the visited set and the counters.
fn search<const STEPS: bool>(
    numbers: Numbers,
    shards: Shards,
    limits: &Limits,
    choose: &mut dyn FnMut(&Visited, Vec<StateId>) -> Vec<StateId>,
) -> (End<u64>, Visited, Numbers) {
    let pool = pool(limits);
    let effort = Effort { limits, pool: pool.as_ref(), batch: 1 << 12 };
    let mut search = Search::new(Visited::new(2, shards), effort);
    let mut looking = Looking::<STEPS>(numbers);
    let end = match search.begin(&looking, &state(1)) {
        Ok(()) => search.run(&mut looking, &mut |_, visited, found| choose(visited, found)),
        Err(end) => end,
    };
    let counters = search.counters(&looking);
    assert_eq!(counters.states, search.visited().len());
    (end, search.into_visited(), looking.0)
}

fn all(_: &Visited, found: Vec<StateId>) -> Vec<StateId> {
    found
}

#[test]
fn all_states_are_visited_at_their_least_depth() {
    let depths = depths();
    for shards in [Shards::One, Shards::Many] {
        for jobs in [1, 4] {
            let limits = Limits::unlimited(jobs);
            let (end, visited, counted) = search::<false>(numbers(false, None), shards, &limits, &mut all);
            assert!(matches!(end, End::Clean));
            let met: BTreeSet<u64> = visited.iter().map(|words| words[0]).collect();
            assert_eq!(met, depths.keys().copied().collect::<BTreeSet<u64>>());
            assert_eq!(visited.len(), depths.len() as u64, "each once");
            assert_eq!(counted.counted, visited.len(), "each is expanded once");
            assert_eq!(counted.weight, 2 * (visited.len() - 1), "each but the first is new once");
        }
    }
}

#[test]
fn findings_do_not_depend_on_the_number_of_jobs() {
    let depths = depths();
    let deepest = *depths.iter().max_by_key(|&(number, depth)| (depth, number)).expect("1 is reachable").0;
    for goal in [1, 5, deepest] {
        for parts in [false, true] {
            let mut paths = BTreeSet::new();
            for jobs in [1, 2, 4] {
                let limits = Limits::unlimited(jobs);
                let numbers = numbers(parts, Some(goal));
                let (end, visited, _) = search::<false>(numbers, Shards::Many, &limits, &mut all);
                let End::Found(found) = end else { panic!("{goal} is reachable") };
                let path = visited.path_to(found[0]);
                let path: Vec<u64> = path.into_iter().map(|id| visited.state(id)[0]).collect();
                assert_eq!((path[0], path[path.len() - 1]), (1, goal));
                assert!(path.windows(2).all(|pair| nexts(pair[0]).contains(&pair[1])));
                assert!(parts || path.len() == depths[&goal] + 1, "the least depth");
                paths.insert((path, visited.len()));
            }
            assert_eq!(paths.len(), 1, "{goal}");
        }
    }
}

#[test]
fn steps_that_are_not_wanted_are_skipped() {
    let depths = depths();
    let goal = 4_321;
    let before: BTreeSet<u64> =
        depths.keys().copied().filter(|&number| nexts(number).contains(&goal)).collect();
    for jobs in [1, 4] {
        let offered = Cell::new(0);
        let mut seen = BTreeSet::new();
        let mut none = |visited: &Visited, found: Vec<StateId>| {
            offered.set(offered.get() + found.len());
            seen.extend(found.iter().map(|&id| visited.state(id)[0]));
            Vec::new()
        };
        let numbers = numbers(false, Some(goal));
        let (end, visited, _) = search::<true>(numbers, Shards::One, &Limits::unlimited(jobs), &mut none);
        assert!(matches!(end, End::Clean));
        assert_eq!(visited.len(), depths.len() as u64);
        assert_eq!(seen, before);
        assert_eq!(offered.get(), before.len(), "each is offered once");
    }
}

#[test]
fn the_limits_end_a_search() {
    let limits = Limits::unlimited(2).with_work(1_000);
    let (end, visited, _) = search::<false>(numbers(false, None), Shards::Many, &limits, &mut all);
    assert!(matches!(end, End::Exhausted(Exhausted::Work(1_000))));
    assert!(visited.len() > 1_000);
}
