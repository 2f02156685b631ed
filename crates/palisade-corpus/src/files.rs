//! The members of families that are kept as files.

use crate::Fences;
use crate::data_structures::{Produces, increasing_sequence, producer_consumer};
use crate::figures::{delayed_loop, diamond};
use crate::litmus::{Copies, SHAPES, litmus};
use crate::mutex::{burns, lamport_fast, lamport_fast_1, szymanski, ticket};

/// The generated files of the corpus: path relative to `corpus/`, and text.
pub fn generated() -> Vec<(String, String)> {
    let file = |path: &str, text: String| (format!("{path}.pal"), text);
    let mut files = vec![
        file("mutex/lamport_fast", lamport_fast(2, Fences::None)),
        file("mutex/lamport_fast.fenced", lamport_fast(2, Fences::Tso)),
        file("mutex/lamport_fast_3", lamport_fast(3, Fences::None)),
        file("mutex/lamport_fast_1_3", lamport_fast_1(3)),
        file("mutex/burns_4", burns(4, Fences::None)),
        file("mutex/burns_4.fenced", burns(4, Fences::Tso)),
        file("mutex/szymanski", szymanski(2, Fences::None)),
        file("mutex/szymanski.fenced", szymanski(2, Fences::Tso)),
        file("locks/ticket_3", ticket(3)),
        file("figures/lazy_fig8_diamond_3", diamond(3)),
        file("figures/lazy_fig9_loop_3", delayed_loop(3)),
        file("data-structures/producer_consumer_1_2", producer_consumer(Produces::One, 2)),
        file("data-structures/producer_consumer_1_3", producer_consumer(Produces::One, 3)),
        file("data-structures/producer_consumer_2_2", producer_consumer(Produces::Two, 2)),
        file("data-structures/producer_consumer_2_3", producer_consumer(Produces::Two, 3)),
        file("protocols/increasing_sequence_20", increasing_sequence(20)),
    ];
    for shape in &SHAPES {
        let one_each = vec![1; shape.threads.len()];
        files.push(file(&format!("litmus/{}", shape.name), litmus(shape, Copies::Fixed(&one_each))));
        files.push(file(&format!("litmus/{}.any", shape.name), litmus(shape, Copies::Any)));
    }
    files
}
