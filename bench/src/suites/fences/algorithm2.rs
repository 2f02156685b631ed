//! Algorithm 2 as printed, to count its queries.
//!
//! *Source.* Abdulla, Atig, Chen, Leonardsson and Rezine, "Counter-example guided fence insertion under weak
//! memory models" (TACAS 2012), section 6. Candidates grow fence by fence. A run that breaks a candidate
//! extends it by every place between a store and a load that overtakes it (`Barrier`). The set of open
//! candidates is a queue, so the first set found is a smallest one. The runs are the same shortened ones that
//! our algorithm gets.

use super::TimedOracle;
use palisade_engine::Limits;
use palisade_engine::Verdict;
use palisade_fences::{FenceKind, Fencing, Oracle, PlaceId, Places, passings};
use palisade_memory::Effect;
use palisade_program::lower;
use palisade_trace::{links, take};
use std::collections::{BTreeSet, VecDeque};

/// The number of queries.
#[derive(Clone, Copy, Debug)]
pub struct Queries {
    /// Until the first set was found.
    pub one: usize,
    /// Until all sets were found.
    pub all: usize,
    /// How many sets there are.
    pub sets: usize,
}

type Set = BTreeSet<PlaceId>;

/// Runs the algorithm. `None` if the engine cannot answer a query, or there are more queries than this.
pub fn run(places: &Places, oracle: &TimedOracle, most: usize) -> Option<Queries> {
    let mut open: VecDeque<Set> = VecDeque::from([Set::new()]);
    let mut complete: Vec<Set> = Vec::new();
    let mut queries = Queries { one: 0, all: 0, sets: 0 };
    while let Some(set) = open.pop_front() {
        queries.all += 1;
        if queries.all > most {
            return None;
        }
        let mut fencing = places.no_fences();
        set.iter().for_each(|&place| fencing[place] = Some(FenceKind::Full));
        match barrier(places, oracle, &fencing)? {
            None => {
                complete.push(set);
                queries.sets += 1;
                if queries.sets == 1 {
                    queries.one = queries.all;
                }
            }
            Some(needed) if needed.is_empty() => {
                queries.one = queries.all;
                queries.sets = 0;
                return Some(queries);
            }
            Some(needed) => {
                for place in needed {
                    let mut larger = set.clone();
                    larger.insert(place);
                    if !complete.iter().chain(&open).any(|smaller| smaller.is_subset(&larger)) {
                        open.push_back(larger);
                    }
                }
            }
        }
    }
    Some(queries)
}

/// The places demanded by the run that breaks the program with these fences; none if there is no such run.
fn barrier(places: &Places, oracle: &TimedOracle, fencing: &Fencing) -> Option<Option<Set>> {
    let program = places.marked(fencing);
    let judged = oracle.judge(&program, &Limits::unlimited(1)).ok()?;
    let witness = match judged.verdict {
        Verdict::Holds => return Some(None),
        Verdict::Unknown(_) => return None,
        Verdict::Violated(witness) => witness,
    };
    let system = lower(&program, witness.instantiation);
    let machine = oracle.machine(&system);
    let replay = take(machine, &witness.run).ok()?;
    let links = links(&witness.run, &replay);
    let passings = passings(&places.marks(&system), &witness.run, &replay);
    let mut found = Set::new();
    for (load, overtaken) in links.overtakes.iter().enumerate() {
        if !matches!(replay.effects[load], Effect::ReadMemory(..)) {
            continue;
        }
        let thread = witness.run.steps[load].thread;
        for &store in overtaken {
            let between = |step: usize| store < step && step < load;
            let passed = passings.iter().filter(|passing| passing.thread == thread && between(passing.step));
            found.extend(passed.map(|passing| passing.place).filter(|&place| fencing[place].is_none()));
        }
    }
    Some(Some(found))
}
