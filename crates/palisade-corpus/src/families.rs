//! All families in one list.

use crate::data_structures::{Produces, increasing_sequence, producer_consumer};
use crate::expected::Safety::{Safe, Unsafe};
use crate::figures::{delayed_loop, diamond};
use crate::litmus::{Copies, SHAPES, litmus, store_buffering_ring};
use crate::mutex::{bakery, burns, filter_lock, lamport_fast, lamport_fast_1, szymanski, ticket};
use crate::{Fences, Safety, Verdicts};
use std::ops::RangeInclusive;

/// Programs that differ only in size.
pub struct Family {
    /// The name of the family.
    pub name: String,
    /// Sizes small enough for tests.
    pub small: RangeInclusive<u32>,
    /// The program of a size, as `.pal`.
    pub program: Box<dyn Fn(u32) -> String>,
    /// The expected verdicts, for every size.
    pub verdicts: Verdicts,
}

/// All families.
pub fn families() -> Vec<Family> {
    let mut families = vec![
        family(
            "lamport_fast",
            2..=3,
            |n| lamport_fast(n, Fences::None),
            [Some(Safe), Some(Unsafe), Some(Unsafe)],
        ),
        family(
            "lamport_fast.fenced",
            2..=2,
            |n| lamport_fast(n, Fences::Tso),
            [Some(Safe), Some(Safe), Some(Unsafe)],
        ),
        family("lamport_fast_1", 2..=3, lamport_fast_1, [Some(Safe), Some(Unsafe), Some(Unsafe)]),
        family("burns", 2..=3, |n| burns(n, Fences::None), [Some(Safe), Some(Unsafe), Some(Unsafe)]),
        family("burns.fenced", 2..=3, |n| burns(n, Fences::Tso), [Some(Safe), Some(Safe), Some(Safe)]),
        family("szymanski", 2..=3, |n| szymanski(n, Fences::None), [Some(Safe), Some(Unsafe), Some(Unsafe)]),
        family(
            "szymanski.fenced",
            2..=2,
            |n| szymanski(n, Fences::Tso),
            [Some(Safe), Some(Safe), Some(Safe)],
        ),
        family(
            "filter_lock",
            2..=3,
            |n| filter_lock(n, Fences::None),
            [Some(Safe), Some(Unsafe), Some(Unsafe)],
        ),
        family(
            "filter_lock.fenced",
            2..=2,
            |n| filter_lock(n, Fences::Tso),
            [Some(Safe), Some(Safe), Some(Unsafe)],
        ),
        family("bakery", 2..=3, |m| bakery(2, m, Fences::None), [Some(Safe), Some(Unsafe), Some(Unsafe)]),
        family("bakery.fenced", 2..=3, |m| bakery(2, m, Fences::Tso), [Some(Safe), Some(Safe), Some(Safe)]),
        family("ticket", 2..=3, ticket, [Some(Safe), Some(Safe), Some(Safe)]),
        family("diamond", 2..=6, diamond, [Some(Safe), Some(Unsafe), Some(Unsafe)]),
        family("delayed_loop", 2..=4, delayed_loop, [Some(Safe), Some(Unsafe), Some(Unsafe)]),
        family("producer_consumer_1", 2..=3, |n| producer_consumer(Produces::One, n), [Some(Unsafe); 3]),
        family(
            "producer_consumer_2",
            2..=3,
            |n| producer_consumer(Produces::Two, n),
            [Some(Safe), Some(Safe), Some(Unsafe)],
        ),
        family("increasing_sequence", 2..=4, increasing_sequence, [Some(Safe); 3]),
        family("store_buffering_ring", 2..=4, store_buffering_ring, [Some(Safe), Some(Unsafe), Some(Unsafe)]),
    ];
    families.extend(SHAPES.iter().map(|shape| Family {
        name: shape.name.to_owned(),
        small: 1..=2,
        program: Box::new(|n| litmus(shape, Copies::Fixed(&vec![n; shape.threads.len()]))),
        verdicts: shape.verdicts,
    }));
    families
}

fn family(
    name: &str,
    small: RangeInclusive<u32>,
    program: impl Fn(u32) -> String + 'static,
    [sc, tso, pso]: [Option<Safety>; 3],
) -> Family {
    Family { name: name.to_owned(), small, program: Box::new(program), verdicts: Verdicts { sc, tso, pso } }
}
