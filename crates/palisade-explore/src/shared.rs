//! The search of packed states, shared by several processes ([`palisade_cluster`]).
//!
//! *Why packed states mean the same in all processes.* A packed state consists of numbers of thread states and codes of
//! values. Both are given out when table entries are added. All processes start with the same program, add the same
//! entries in the same order, and widen their fields at the same time. So do they with the images of thread states under
//! permutations.
//!
//! Bad states and deadlocks are looked for in this way. For what stays reachable and for fair runs, the steps between the
//! states are needed as well, so each process searches alone.

use crate::automaton::Need;
use crate::chain::Payoff;
use crate::search::{Counters, End, Goal, Halt, Search, Tally};
use crate::symmetry::Permutation;
use palisade_automata::on_demand::{self, LocalId, OneWay};
use palisade_base::Id;
use palisade_cluster::{Found, Part, Spread, Stop};
use palisade_engine::Stats;
use palisade_program::running::CellId;
use rustc_hash::FxHasher;
use std::fmt::Write;
use std::hash::Hasher;
use std::time::Instant;

impl Search<'_, '_> {
    /// Searches together with the other processes, if there are others and the goal is one that they can look for.
    pub fn run_shared(&mut self) -> Option<(End, Counters, Vec<Part>)> {
        if self.ends.is_some() || !matches!(self.goal, Goal::Bad | Goal::Stuck) {
            return None;
        }
        let (words, limits) = (self.layout.words, self.limits);
        let Found { end, counters, parts } = palisade_cluster::with_seat(|seat| {
            palisade_cluster::search(seat, self, words, limits, |own, add| {
                let added = own.begin(&mut |_, state| {
                    add(state);
                    Ok(())
                });
                added.map_err(|end| match end {
                    palisade_search::End::Halted(halt) => Stop::Halted(halt),
                    palisade_search::End::Exhausted(what) => Stop::Exhausted(what),
                    palisade_search::End::Clean | palisade_search::End::Found(_) => {
                        unreachable!("the search has not begun")
                    }
                })
            })
        })?;
        let end = match end {
            palisade_cluster::End::Clean => End::Clean { left_out: self.tally.left_out },
            palisade_cluster::End::Found(path) => self.bad_path(path.iter().map(Vec::as_slice)),
            palisade_cluster::End::Halted(halt) => halt.into(),
            palisade_cluster::End::Exhausted(what) => End::Exhausted(what),
            palisade_cluster::End::Lost(lost) => End::Lost(lost),
        };
        Some((end, self.counters(&counters), parts))
    }
}

/// The counters of one process.
pub(crate) fn stats_of(part: &Part, began: Instant) -> Stats {
    let mut stats = Stats::new();
    stats.set("states", part.states);
    stats.set("states_per_second", (part.states as f64 / began.elapsed().as_secs_f64().max(1e-3)) as u64);
    stats.set("table_bytes", part.table_bytes);
    stats.set("peak_memory_bytes", part.peak_memory_bytes);
    stats.set("sent_bytes", part.sent_bytes);
    stats.set("received_bytes", part.received_bytes);
    stats.set("waited_ms", part.waited_micros / 1000);
    stats
}

const MOVES: u64 = 0;
const OUTCOME: u64 = 1;
const IMAGE: u64 = 2;

impl Spread for Search<'_, '_> {
    const NEED_WORDS: usize = 4;
    const TALLY_WORDS: usize = 5;

    fn put_need(need: &Need) -> Vec<u64> {
        match *need {
            Need::Entry(on_demand::Need::Moves(local, OneWay)) => vec![MOVES, local.0.into(), 0, 0],
            Need::Entry(on_demand::Need::Outcome(number, code, OneWay)) => {
                vec![OUTCOME, number.into(), code.into(), 0]
            }
            Need::Image(local, g) => {
                let [low, high] = g.words();
                vec![IMAGE, local.0.into(), low, high]
            }
        }
    }

    fn get_need(words: &[u64]) -> Option<Need> {
        Some(match *words {
            [MOVES, local, 0, 0] => Need::Entry(on_demand::Need::Moves(LocalId(local as u32), OneWay)),
            [OUTCOME, number, code, 0] => {
                Need::Entry(on_demand::Need::Outcome(number as u32, code as u32, OneWay))
            }
            [IMAGE, local, low, high] => {
                Need::Image(LocalId(local as u32), Permutation::of_words([low, high]))
            }
            _ => return None,
        })
    }

    fn put_tally(tally: &Tally) -> Vec<u64> {
        let payoff = tally.payoff.words();
        std::iter::once(u64::from(tally.left_out)).chain(payoff).collect()
    }

    fn get_tally(words: &[u64]) -> Tally {
        let payoff = words[1..].try_into().expect("the counters have five words");
        Tally { left_out: words[0] != 0, payoff: Payoff::of_words(payoff) }
    }

    fn put_halt(halt: &Halt) -> [u64; 2] {
        match halt {
            Halt::Outgrown => [0, 0],
            Halt::TooManyThreads => [1, 0],
            Halt::CellGrows(cell) => [2, cell.index() as u64],
            Halt::ThreadStatesGrow => [3, 0],
            Halt::Enough => [4, 0],
        }
    }

    fn get_halt(words: [u64; 2]) -> Option<Halt> {
        Some(match words {
            [0, _] => Halt::Outgrown,
            [1, _] => Halt::TooManyThreads,
            [2, cell] => Halt::CellGrows(CellId::from_index(cell as usize)),
            [3, _] => Halt::ThreadStatesGrow,
            [4, _] => Halt::Enough,
            _ => return None,
        })
    }

    fn observed(&self) -> u64 {
        self.judge.has_seen_end().into()
    }

    fn observe(&mut self, seen: u64) {
        if seen != 0 {
            self.judge.note_end();
        }
    }

    fn leads_to(&self, from: &[u64], to: &[u64]) -> bool {
        let between = self.expander().find_between(from, to);
        between.is_some_and(|between| self.follows_chains() || between.is_empty())
    }

    fn report_parts(&self, counters: &palisade_search::Counters, parts: &[Part]) {
        (self.report)(&self.counters(counters), parts);
    }

    fn question(&self) -> u64 {
        let machine = &self.automaton.machine;
        let mut text = Hashed::default();
        let Search { goal, reduce, crowd, layout, .. } = self;
        let asked = (machine.machine.model.name(), machine.bound, goal, reduce, crowd, layout);
        write!(text, "{:?} {asked:?} {:?}", machine.machine.system, machine.machine.interlocked)
            .expect("writing to a hash does not fail");
        text.0.finish()
    }
}

/// A hash of text, which is not kept.
#[derive(Default)]
struct Hashed(FxHasher);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_survive_the_way() {
        let mut g = Permutation::identity();
        g.set(3, 9);
        g.set(12, 1);
        let moves = on_demand::Need::Moves(LocalId(7), OneWay);
        let outcome = on_demand::Need::Outcome(u32::MAX - 1, 5, OneWay);
        for need in [Need::Entry(moves), Need::Entry(outcome), Need::Image(LocalId(3), g)] {
            assert_eq!(Search::get_need(&Search::put_need(&need)), Some(need));
        }
        assert_eq!(Search::get_need(&[9, 0, 0, 0]), None);
    }
}
