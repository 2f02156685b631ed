//! Minimal ways to meet all demands: minimal hitting sets, where some demands need a strong fence at a place
//! and for others a weak one is enough.
//!
//! *Problem.* A demand names places, each with the weakest fence there that meets it. A fencing assigns to
//! every place no fence, a weak one or a strong one. The task is to find the fencings that meet all demands
//! and in which no fence can be removed or weakened.
//!
//! *Method.* Take a demand that is not met and try its places one after the other. Later tries use only
//! weaker fences at the places of earlier ones, so that no fencing is found twice. A branch is given up if
//! one of its fences is no longer needed for any demand and cannot become stronger: with more fences it is
//! needed even less.
//!
//! *Source.* The search follows K. Murakami and T. Uno, "Efficient algorithms for dualizing large-scale
//! hypergraphs" (DAM 170, 2014), which keeps for every chosen element the sets that only it hits. The levels
//! of fences are our addition.
//!
//! *Cost.* Exponential time; the number of results is exponential too. There are tens of places and demands
//! here, and a query to an engine takes longer by orders of magnitude.

use crate::demand::Demand;
use crate::places::{Fencing, PlaceId};
use palisade_base::limits;
use palisade_syntax::edit::FenceKind;
use std::ops::ControlFlow;

/// The cost of a fence at a place. A stronger fence never costs less than a weaker one at the same place.
pub(crate) type Costs<'a> = &'a dyn Fn(PlaceId, FenceKind) -> u64;

/// The total cost of fences: their weights and, if these are equal, the number of full fences.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cost {
    /// The sum of the weights of the places.
    pub weight: u64,
    /// The number of full fences.
    pub full: u64,
}

/// The cost of a fencing.
pub(crate) fn cost(fencing: &Fencing, costs: Costs<'_>) -> Cost {
    let mut total = Cost::default();
    for (place, kind) in fencing.iter_enumerated() {
        if let Some(kind) = kind {
            total.weight = total.weight.saturating_add(costs(place, *kind));
            total.full += u64::from(*kind == FenceKind::Full);
        }
    }
    total
}

/// Whether a fencing meets a demand.
pub(crate) fn meets(fencing: &Fencing, demand: &Demand) -> bool {
    demand.iter().any(|&(place, kind)| fencing[place] >= Some(kind))
}

/// Calls `visit` for every minimal fencing that meets the demands, until it breaks.
pub(crate) fn minimal(
    none: &Fencing,
    demands: &[Demand],
    visit: &mut dyn FnMut(&Fencing) -> ControlFlow<()>,
) {
    let strongest = none.iter().map(|_| Some(FenceKind::Full)).collect();
    let mut search = Search { demands, fencing: none.clone(), strongest, bound: None, visit };
    let _ = search.extend();
}

/// A cheapest fencing that meets the demands and is accepted. It is minimal if every place has a
/// positive weight.
pub(crate) fn cheapest(
    none: &Fencing,
    demands: &[Demand],
    costs: Costs<'_>,
    accepts: &dyn Fn(&Fencing) -> bool,
) -> Option<Fencing> {
    let mut best: Option<(Cost, Fencing)> = None;
    // The search restarts with every better result as the bound. This is simpler than changing the bound
    // during a search.
    loop {
        let mut found = None;
        let mut visit = |fencing: &Fencing| {
            if !accepts(fencing) {
                return ControlFlow::Continue(());
            }
            found = Some((cost(fencing, costs), fencing.clone()));
            ControlFlow::Break(())
        };
        let strongest = none.iter().map(|_| Some(FenceKind::Full)).collect();
        let bound = best.as_ref().map(|(cost, _)| (*cost, costs));
        let mut search = Search { demands, fencing: none.clone(), strongest, bound, visit: &mut visit };
        let _ = search.extend();
        match found {
            Some(better) => best = Some(better),
            None => return best.map(|(_, fencing)| fencing),
        }
    }
}

struct Search<'a> {
    demands: &'a [Demand],
    fencing: Fencing,
    /// The strongest fence that may be tried at each place.
    strongest: Fencing,
    /// Only fencings that cost less than this are searched.
    bound: Option<(Cost, Costs<'a>)>,
    visit: &'a mut dyn FnMut(&Fencing) -> ControlFlow<()>,
}

impl Search<'_> {
    fn extend(&mut self) -> ControlFlow<()> {
        limits::checkpoint();
        if self.bound.is_some_and(|(bound, costs)| cost(&self.fencing, costs) >= bound) {
            return ControlFlow::Continue(());
        }
        // The unmet demand with the fewest ways left to meet it.
        let open = self.demands.iter().filter(|demand| !meets(&self.fencing, demand));
        let ways = |demand: &&Demand| {
            demand.iter().filter(|&&(place, kind)| Some(kind) <= self.strongest[place]).count()
        };
        let Some(demand) = open.min_by_key(ways) else {
            return if self.is_minimal() { (self.visit)(&self.fencing) } else { ControlFlow::Continue(()) };
        };
        let mut restored = Vec::new();
        let mut flow = ControlFlow::Continue(());
        for &(place, kind) in demand {
            limits::checkpoint();
            if Some(kind) > self.strongest[place] {
                continue;
            }
            let before = self.fencing[place].replace(kind);
            if self.all_may_be_needed() {
                flow = self.extend();
            }
            self.fencing[place] = before;
            restored.push((place, self.strongest[place]));
            self.strongest[place] = weaker(kind);
            if flow.is_break() {
                break;
            }
        }
        for (place, strongest) in restored.into_iter().rev() {
            self.strongest[place] = strongest;
        }
        flow
    }

    /// Whether no fence can be removed or weakened.
    fn is_minimal(&self) -> bool {
        self.fencing
            .iter_enumerated()
            .all(|(place, kind)| kind.is_none_or(|kind| self.is_needed(place, kind)))
    }

    /// Whether every fence is needed, or may become needed when it gets stronger.
    fn all_may_be_needed(&self) -> bool {
        self.fencing.iter_enumerated().all(|(place, kind)| {
            kind.is_none_or(|kind| Some(kind) < self.strongest[place] || self.is_needed(place, kind))
        })
    }

    /// Whether some demand is met by this fence, but by no other fence and not by a weaker one at this place.
    fn is_needed(&self, place: PlaceId, kind: FenceKind) -> bool {
        self.demands.iter().any(|demand| {
            let others =
                demand.iter().any(|&(other, least)| other != place && self.fencing[other] >= Some(least));
            !others && demand.contains(&(place, kind))
        })
    }
}

/// The next weaker fence.
pub(crate) fn weaker(kind: FenceKind) -> Option<FenceKind> {
    match kind {
        FenceKind::Full => Some(FenceKind::StoreStore),
        FenceKind::StoreStore => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FenceKind::{Full, StoreStore};
    use palisade_base::Id;
    use std::collections::BTreeSet;

    fn all(places: usize, demands: &[Demand]) -> Vec<Vec<Option<FenceKind>>> {
        let none: Fencing = (0..places).map(|_| None).collect();
        let mut found = Vec::new();
        minimal(&none, demands, &mut |fencing| {
            found.push(fencing.iter().copied().collect());
            ControlFlow::Continue(())
        });
        found
    }

    /// The same by trying everything.
    fn by_hand(places: usize, demands: &[Demand]) -> BTreeSet<Vec<Option<FenceKind>>> {
        let levels = [None, Some(StoreStore), Some(Full)];
        let mut fencings: Vec<Fencing> = vec![IdVecOf::new()];
        for _ in 0..places {
            fencings = fencings
                .into_iter()
                .flat_map(|fencing| {
                    levels.map(|level| {
                        let mut longer = fencing.clone();
                        longer.push(level);
                        longer
                    })
                })
                .collect();
        }
        let fine = |fencing: &Fencing| demands.iter().all(|demand| meets(fencing, demand));
        let below = |a: &Fencing, b: &Fencing| a != b && a.iter().zip(b.iter()).all(|(a, b)| a <= b);
        let fine: Vec<Fencing> = fencings.into_iter().filter(|fencing| fine(fencing)).collect();
        let minimal = fine.iter().filter(|fencing| !fine.iter().any(|other| below(other, fencing)));
        minimal.map(|fencing| fencing.iter().copied().collect()).collect()
    }

    type IdVecOf = palisade_base::IdVec<PlaceId, Option<FenceKind>>;

    #[test]
    fn differential_minimal_fencings_are_those_found_by_trying_everything() {
        let mut random = palisade_conformance::random::Random::new(5);
        for _ in 0..300 {
            let places = random.between(1, 5);
            let demands: Vec<Demand> = (0..random.between(0, 5))
                .map(|_| {
                    let mut demand: Demand = Vec::new();
                    for place in 0..places {
                        if random.percent(50) {
                            let kind = if random.percent(50) { Full } else { StoreStore };
                            demand.push((PlaceId::from_index(place), kind));
                        }
                    }
                    demand
                })
                .collect();
            let found = all(places, &demands);
            let set: BTreeSet<_> = found.iter().cloned().collect();
            assert_eq!(found.len(), set.len(), "none is found twice: {demands:?}");
            assert_eq!(set, by_hand(places, &demands), "{demands:?}");

            let dear = random.percent(50);
            let weights: Vec<u64> = (0..places).map(|_| random.between(1, 4) as u64).collect();
            let costs = |place: PlaceId, kind| weights[place.index()] + u64::from(kind == Full && dear);
            let none: Fencing = (0..places).map(|_| None).collect();
            let best = cheapest(&none, &demands, &costs, &|_| true);
            let least = set.iter().map(|fencing| cost(&fencing.clone().into(), &costs)).min();
            assert_eq!(best.as_ref().map(|fencing| cost(fencing, &costs)), least, "{demands:?}");
        }
    }
}
