//! What it would take to share the exact search out over several processes ([`palisade_wqo::Sharing`]).
//!
//! Only the exact search is looked at: attempts at shorter proofs are searches of the same kind, and smaller.

use super::element::{Element, Processes};
use super::setup::Setup;
use crate::bad::bad_combinations;
use crate::start;
use crate::symbol::Symbol;
use crate::values::{MAX_SETS, SetId, ValueSets};
use palisade_base::IdVec;
use palisade_engine::{Analysis, Limits};
use palisade_wqo::{Search, SearchEnd, Sharing};
use rustc_hash::FxHashSet;
use std::time::{Duration, Instant};

/// A search, as one process and as several would run it.
#[derive(Clone, Debug)]
pub struct SharedSearch {
    /// The time of the search as it is, and the elements that it generates.
    pub alone: (Duration, u64),
    /// The elements that it generates in rounds.
    pub in_rounds: u64,
    /// Elements that were kept.
    pub kept: u64,
    /// Bytes of the elements that were generated, if they are sent: for each process its state and word, and all known
    /// cells.
    pub bytes: u64,
    /// What was counted.
    pub sharing: Sharing,
}

/// Counts what it would take to share the search for the bad states of a program with a fixed number of threads. `None` if
/// the program has no such search, or the search ran into its limits, which are those of each time it is run.
pub fn shared_search(
    analysis: &Analysis<'_>,
    limits: &dyn Fn() -> Limits,
    processes: &[usize],
) -> Option<SharedSearch> {
    let prepared = start::prepared(analysis, &limits()).ok()?;
    let start::Prepared { merged, .. } = &prepared;
    let values = merged.automata.values.iter().map(IdVec::len);
    let sets = ValueSets::with_at_most(values, MAX_SETS);
    let apart = FxHashSet::default();
    let setup = Setup::with_sets(merged, analysis.task.model, prepared.starts.into(), apart, sets);
    let combinations = bad_combinations(&analysis.system(1), &merged.automata).ok()?;
    let search = || {
        let mut search = Search::new(&setup);
        for combination in &combinations {
            setup.bad_elements(combination, &mut |element, _| search.add(element));
        }
        search
    };
    let may_continue = || {
        let limits = limits();
        move |search: &Search<'_, Setup>| limits.check(search.bytes()).is_ok()
    };
    let (start, mut alone) = (Instant::now(), search());
    let ended = alone.run(may_continue())?;
    let alone = (start.elapsed(), alone.generated());
    // Timed without counting, and then counted.
    let mut timed = Sharing::new(&[]);
    search().run_in_rounds(&mut timed, may_continue())?;
    let (mut counted, mut sharing) = (search(), Sharing::new(processes));
    let again = counted.run_in_rounds(&mut sharing, may_continue())?;
    assert_eq!(matches!(ended, SearchEnd::Closed), matches!(again, SearchEnd::Closed), "the order is free");
    (sharing.expanding, sharing.looking_up) = (timed.expanding, timed.looking_up);
    let elements = counted.all_elements();
    let (kept, bytes) =
        elements.fold((0, 0), |(kept, bytes), element| (kept + 1, bytes + bytes_of(&element)));
    let in_rounds = counted.generated();
    // Those that were not kept are like those that were.
    let bytes = bytes * in_rounds / kept.max(1);
    Some(SharedSearch { alone, in_rounds, kept, bytes, sharing })
}

/// The bytes of an element on the wire.
fn bytes_of(element: &Element) -> u64 {
    let Element { memory, processes } = element;
    let known = memory.iter().filter(|&&set| set != SetId::ALL).count();
    let of_processes = |processes: &Processes| -> usize {
        let word = |letters: usize| size_of::<u64>() + letters * size_of::<Symbol>();
        processes.iter().map(|process| word(process.word.len())).sum()
    };
    (of_processes(processes) + known * size_of::<u32>()) as u64
}
