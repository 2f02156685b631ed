//! What changes cost.

use palisade_fences::Change;
use palisade_memory::Model;
use std::str::FromStr;

/// The cost of each kind of change. A kind that is not given costs what it costs by default: 1 in languages that only
/// have fences, and about what it costs on the machine in C.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    given: Vec<(Change, u64)>,
}

/// Roughly this many cycles, on x86 and on SPARC. Under TSO, a release store or a store-store fence is no instruction.
const TSO: [(Change, u64); 5] = [
    (Change::Fence, 20),
    (Change::SeqCst, 15),
    (Change::Exchange, 15),
    (Change::StoreFence, 1),
    (Change::Release, 1),
];
const PSO: [(Change, u64); 5] = [
    (Change::Fence, 20),
    (Change::SeqCst, 22),
    (Change::Exchange, 25),
    (Change::StoreFence, 5),
    (Change::Release, 5),
];

impl Costs {
    /// What a change in a C program costs, or in another one.
    pub(super) fn of(&self, change: Change, model: Model, in_c: bool) -> u64 {
        // One instruction becomes the other.
        let change = if change == Change::StrongerFence { Change::Fence } else { change };
        let find = |costs: &[(Change, u64)]| {
            costs.iter().rev().find(|(known, _)| *known == change).map(|(_, cost)| *cost)
        };
        let by_default = match (in_c, model) {
            (false, _) => 1,
            (true, Model::Pso) => find(&PSO).unwrap_or(1),
            (true, Model::Sc | Model::Tso) => find(&TSO).unwrap_or(1),
        };
        find(&self.given).unwrap_or(by_default)
    }
}

const NAMES: [Change; 5] =
    [Change::Fence, Change::StoreFence, Change::SeqCst, Change::Release, Change::Exchange];

/// The most that a change can cost.
const MAX: u64 = 1_000_000;

impl FromStr for Costs {
    type Err = String;

    /// `fence=20,seq_cst=15`
    fn from_str(text: &str) -> Result<Costs, String> {
        let mut given = Vec::new();
        for part in text.split(',') {
            let (name, cost) = part.split_once('=').ok_or("a cost is written KIND=COST, e.g. fence=20")?;
            let change = NAMES.into_iter().find(|change| change.name() == name.trim()).ok_or_else(|| {
                let names: Vec<&str> = NAMES.iter().map(|change| change.name()).collect();
                format!("`{name}` is not a kind of change; these are {}", names.join(", "))
            })?;
            let cost = cost.trim().parse().ok().filter(|cost| (1..=MAX).contains(cost));
            given.push((change, cost.ok_or_else(|| format!("a cost is a number from 1 to {MAX}"))?));
        }
        Ok(Costs { given })
    }
}

impl Costs {
    /// These costs, and others that count more.
    #[must_use]
    pub fn and(mut self, others: &Costs) -> Costs {
        self.given.extend(&others.given);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs() {
        let costs: Costs = "fence=3, exchange=7,fence=4".parse().expect("these are costs");
        let cost = |change, in_c| costs.of(change, Model::Tso, in_c);
        assert_eq!((cost(Change::Fence, true), cost(Change::Exchange, true)), (4, 7));
        assert_eq!((cost(Change::StrongerFence, true), cost(Change::SeqCst, true)), (4, 15));
        assert_eq!((cost(Change::SeqCst, false), cost(Change::Fence, false)), (1, 4));
        for (text, part) in [("fence", "KIND=COST"), ("x=1", "fence, sfence, seq_cst"), ("fence=0", "from 1")]
        {
            let error = text.parse::<Costs>().expect_err("these are not");
            assert!(error.contains(part), "{error}");
        }
    }
}
