//! The programs of "Counter-example guided fence insertion under weak memory models" (Abdulla, Atig, Chen,
//! Leonardsson and Rezine, TACAS 2012) that exist in several sizes.

use crate::Fences;
use crate::template::fill;

/// Which version of producer and consumer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Produces {
    /// Figure 18: one item at a time. This is wrong even under sequential consistency.
    One,
    /// Figure 19: two items at a time, consumed one by one.
    Two,
}

/// A producer that can overtake its consumer, and an arena of some cells.
pub fn producer_consumer(produces: Produces, cells: u32) -> String {
    let one = r#"
// A producer that can overtake its consumer in an arena of $N cells, version 1. It is wrong even under
// sequential consistency: the consumer can remove what the producer has just stored.
// Source: Abdulla et al., "Counter-example guided fence insertion under weak memory models", TACAS 2012,
// Fig. 18.
const N = $N;
shared arena[N]: 0..1;
shared head: 0..N - 1;

process Producer {
    let h: 0..N - 1;
    loop {
        arena[h] = 1;
        h = (h + 1) % N;
        head = h;
    }
}

process Consumer {
    let t: 0..N - 1;
    let item: 0..1;
    loop {
        if head != t {
            item = arena[t];
            assert(item == 1);
            arena[t] = 0;
            t = (t + 1) % N;
        }
    }
}
"#;
    let two = r#"
// A producer that can overtake its consumer in an arena of $N cells, version 2: it puts two items into a cell.
// Source: Abdulla et al., "Counter-example guided fence insertion under weak memory models", TACAS 2012,
// Fig. 19.
const N = $N;
shared arena[N]: 0..2;
shared head: 0..N - 1;

process Producer {
    let h: 0..N - 1;
    loop {
        arena[h] = 2;
        h = (h + 1) % N;
        head = h;
    }
}

process Consumer {
    let t: 0..N - 1;
    let items: 0..2;
    loop {
        if head != t {
            items = arena[t];
            assert(items != 0);
            assume(cas(arena[t], items, items - 1));
            t = (t + 1) % N;
        }
    }
}
"#;
    let template = match produces {
        Produces::One => one,
        Produces::Two => two,
    };
    fill(template, Fences::None, &[("N", cells.to_string())])
}

/// Figure 21: a server that stores increasing numbers, and a client that reads twice.
pub fn increasing_sequence(last: u32) -> String {
    let template = r#"
// A server stores numbers that never decrease, each any number of times. A client reads twice.
// Source: Abdulla et al., "Counter-example guided fence insertion under weak memory models", TACAS 2012,
// Fig. 21 (numbers up to 20).
// There is one variable, so PSO allows no more than TSO.
const LAST = $LAST;
shared message: 0..LAST;

process Server {
    let i: 0..LAST = 1;
again:
    choose {
        message = i;
        goto again;
    } or {
        if i < LAST {
            i = i + 1;
            goto again;
        }
    }
}

process Client {
    message = 0;
    let first: 0..LAST = message;
    let second: 0..LAST = message;
    assert(first <= second);
}
"#;
    fill(template, Fences::None, &[("LAST", last.to_string())])
}
