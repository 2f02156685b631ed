//! Mutual exclusion for N threads. Every program forbids that two threads are at `cs`.

use crate::Fences;
use crate::template::{describe, fill};

/// Lamport's fast mutex (his second algorithm, which makes no assumption about time).
pub fn lamport_fast(threads: u32, fences: Fences) -> String {
    let template = r#"
// Lamport's fast mutex for $N threads, $FENCES.
// Source: L. Lamport, "A fast mutual exclusion algorithm", TOCS 5(1), 1987, algorithm 2; Abdulla et al.,
// "Counter-example guided fence insertion under weak memory models", TACAS 2012, Fig. 11.
const N = $N;
shared trying[N]: bool;
shared x, y: 0..N;              // 0: no thread

process P(i: 1..N) {
    let j: 0..N;
    loop {
        trying[i - 1] = true;
        x = i;
        @fence
        if y != 0 {
            trying[i - 1] = false;
            while y != 0 {}
            continue;
        }
        y = i;
        @fence
        if x != i {
            trying[i - 1] = false;
            j = 0;
            while j < N {
                while trying[j] {}
                j = j + 1;
            }
            if y != i {
                while y != 0 {}
                continue;
            }
        }
    cs: skip;
        y = 0;
        trying[i - 1] = false;
    }
}

forbid count(P@cs) >= 2;
"#;
    fill(template, fences, &[("N", threads.to_string()), ("FENCES", describe(fences))])
}

/// Lamport's first fast algorithm, as in figure 7 of "Lazy TSO reachability". A thread that was overtaken but
/// still owns `y` would have to wait for the others for some time. Here it is stuck instead.
pub fn lamport_fast_1(threads: u32) -> String {
    let template = r#"
// Lamport's first fast mutex algorithm for $N threads.
// Source: L. Lamport, "A fast mutual exclusion algorithm", TOCS 5(1), 1987, algorithm 1; Bouajjani et al.,
// "Lazy TSO reachability", FASE 2015, Fig. 7. Where the algorithm waits for a fixed time and then enters, the
// thread here is stuck.
const N = $N;
shared x, y: 0..N;              // 0: no thread

process P(i: 1..N) {
    loop {
        x = i;
        if y != 0 {
            continue;
        }
        y = i;
        if x != i {
            assume(y != i);
            continue;
        }
    cs: skip;
        y = 0;
    }
}

forbid count(P@cs) >= 2;
"#;
    fill(template, Fences::None, &[("N", threads.to_string())])
}

/// The algorithm of Burns and Lynch, with one bit per thread.
pub fn burns(threads: u32, fences: Fences) -> String {
    let template = r#"
// Burns' algorithm for $N threads, $FENCES.
// Source: J. Burns and N. Lynch, "Mutual exclusion using indivisible reads and writes", Allerton 1980;
// Abdulla et al., "A load-buffer semantics for total store ordering", LMCS 2018, Table 1 (four threads).
// Each thread stores to one variable only, so PSO allows no more than TSO.
const N = $N;
shared flag[N]: bool;

process P(i: 0..N - 1) {
    let j: 0..N;
    loop {
    again:
        flag[i] = false;
        j = 0;
        while j < i {
            if flag[j] {
                goto again;
            }
            j = j + 1;
        }
        flag[i] = true;
        @fence
        j = 0;
        while j < i {
            if flag[j] {
                goto again;
            }
            j = j + 1;
        }
        j = i + 1;
        while j < N {
            while flag[j] {}
            j = j + 1;
        }
    cs: skip;
        flag[i] = false;
    }
}

forbid count(P@cs) >= 2;
"#;
    fill(template, fences, &[("N", threads.to_string()), ("FENCES", describe(fences))])
}

/// Szymanski's algorithm, with a waiting room and a door.
pub fn szymanski(threads: u32, fences: Fences) -> String {
    let template = r#"
// Szymanski's algorithm for $N threads, $FENCES.
// Source: B. Szymanski, "A simple solution to Lamport's concurrent programming problem with linear wait", ICS
// 1988; Atig, Bouajjani and Parlato, "Getting rid of store-buffers in TSO analysis", CAV 2011, Table 1;
// Abdulla et al., "A load-buffer semantics for total store ordering", LMCS 2018, Table 1.
// Each thread stores to one variable only, so PSO allows no more than TSO.
const N = $N;
shared flag[N]: 0..4;

process P(i: 0..N - 1) {
    let j: 0..N;
    let seen: 0..4;
    let found: bool;
    loop {
        flag[i] = 1;                    // outside the waiting room
        @fence
        j = 0;
        while j < N {
            while flag[j] > 2 {}        // wait for the open door
            j = j + 1;
        }
        flag[i] = 3;                    // in the doorway
        @fence
        j = 0;
        found = false;
        while j < N {
            if flag[j] == 1 {
                found = true;
            }
            j = j + 1;
        }
        if found {
            flag[i] = 2;                // let the others in
            @fence
            found = false;
            while !found {
                j = 0;
                while j < N {
                    if flag[j] == 4 {
                        found = true;
                    }
                    j = j + 1;
                }
            }
        }
        flag[i] = 4;                    // the door is closed
        @fence
        j = 0;
        while j < i {
            while flag[j] > 1 {}        // those before me leave first
            j = j + 1;
        }
    cs: skip;
        j = i + 1;
        while j < N {
            seen = flag[j];
            while seen == 2 || seen == 3 {
                seen = flag[j];         // everyone in the waiting room knows that the door is closed
            }
            j = j + 1;
        }
        flag[i] = 0;
    }
}

forbid count(P@cs) >= 2;
"#;
    fill(template, fences, &[("N", threads.to_string()), ("FENCES", describe(fences))])
}

/// Peterson's algorithm for N threads, which pass N - 1 floors.
pub fn filter_lock(threads: u32, fences: Fences) -> String {
    let template = r#"
// Peterson's algorithm for $N threads (the filter lock), $FENCES. Source: G. Peterson, "Myths about the
// mutual exclusion problem", Information Processing Letters 12(3), 1981.
const N = $N;
shared level[N]: 0..N - 1;
shared victim[N]: 0..N - 1;

process P(i: 0..N - 1) {
    let floor: 0..N;
    let k: 0..N;
    loop {
        floor = 1;
        while floor < N {
            level[i] = floor;
            victim[floor] = i;
            @fence
            k = 0;
            while k < N {
                if k != i {
                    while level[k] >= floor && victim[floor] == i {}
                }
                k = k + 1;
            }
            floor = floor + 1;
        }
    cs: skip;
        level[i] = 0;
    }
}

forbid count(P@cs) >= 2;
"#;
    fill(template, fences, &[("N", threads.to_string()), ("FENCES", describe(fences))])
}

/// Lamport's bakery for N threads, with numbers up to a bound. A thread that finds no free number starts
/// again.
pub fn bakery(threads: u32, numbers: u32, fences: Fences) -> String {
    let template = r#"
// Lamport's bakery for $N threads and numbers up to $M, $FENCES.
// Source: L. Lamport, "A new solution of Dijkstra's concurrent programming problem", CACM 17(8), 1974.
const N = $N;
const M = $M;
shared choosing[N]: bool;
shared number[N]: 0..M;

process P(i: 0..N - 1) {
    let mine: 0..M;
    let other: 0..M;
    let j: 0..N;
    loop {
        choosing[i] = true;
        @fence
        mine = 0;
        j = 0;
        while j < N {
            if j != i {
                other = number[j];
                if other > mine {
                    mine = other;
                }
            }
            j = j + 1;
        }
        if mine == M {
            choosing[i] = false;
            continue;
        }
        mine = mine + 1;
        number[i] = mine;
        @fence
        choosing[i] = false;
        j = 0;
        while j < N {
            if j != i {
                while choosing[j] {}
                other = number[j];
                while other != 0 && (other < mine || other == mine && j < i) {
                    other = number[j];
                }
            }
            j = j + 1;
        }
    cs: skip;
        number[i] = 0;
    }
}

forbid count(P@cs) >= 2;
"#;
    let sizes = [("N", threads.to_string()), ("M", numbers.to_string()), ("FENCES", describe(fences))];
    fill(template, fences, &sizes)
}

/// The ticket lock of the Linux kernel, with tickets that wrap around.
pub fn ticket(threads: u32) -> String {
    let template = r#"
// A ticket lock for $N threads, with tickets that wrap around. It is released by a plain store.
// Source: the spin lock of the Linux kernel; Abdulla et al., "A load-buffer semantics for total store
// ordering", LMCS 2018, Table 1 (three threads).
// The cas drains the buffer, and `serving` is the only other variable stored, so PSO allows no more than TSO.
const N = $N;
shared next, serving: 0..N;

process P[N] {
    let mine: 0..N;
    loop {
        mine = next;
        while !cas(next, mine, (mine + 1) % (N + 1)) {
            mine = next;
        }
        while serving != mine {}
    cs: skip;
        serving = (mine + 1) % (N + 1);
    }
}

forbid count(P@cs) >= 2;
"#;
    fill(template, Fences::None, &[("N", threads.to_string())])
}
