//! Lamport's bakery algorithm with tickets up to a bound: a thread that would draw a higher ticket waits
//! forever.
//!
//! *Source.* Lamport, "A new solution of Dijkstra's concurrent programming problem", Communications of the
//! ACM 17(8), 1974.

use super::{each, others, pal_threads, promela_section, promela_threads};

/// The highest ticket.
const MAX_TICKET: usize = 5;

pub(super) fn pal(n: usize) -> String {
    let shared = format!("shared choosing[{n}]: bool;\nshared number[{n}]: 0..{MAX_TICKET};");
    pal_threads(&shared, n, |i| {
        let mut others_numbers = others(i, n);
        let first = others_numbers.next().expect("there are two threads");
        let highest = each(others_numbers, |j| {
            format!("{{ let n{j} = number[{j}]; if n{j} > most {{ most = n{j}; }} }}")
        });
        let turns = each(others(i, n), |j| {
            let later = if j < i { ">" } else { ">=" };
            format!(
                "await !choosing[{j}];
loop {{ let t{j} = number[{j}]; if t{j} == 0 || t{j} {later} most + 1 {{ break; }} }}"
            )
        });
        format!(
            "choosing[{i}] = true;
let most: 0..{MAX_TICKET} = number[{first}];
{highest}
assume(most < {MAX_TICKET});
number[{i}] = most + 1;
choosing[{i}] = false;
{turns}
cs: skip;
number[{i}] = 0;"
        )
    })
}

pub(super) fn promela(n: usize) -> String {
    promela_threads(&format!("bit choosing[{n}];\nbyte number[{n}];"), " byte most;", n, |i| {
        let mut others_numbers = others(i, n);
        let first = others_numbers.next().expect("there are two threads");
        let highest = each(others_numbers, |j| format!("most = (number[{j}] > most -> number[{j}] : most);"));
        let turns = each(others(i, n), |j| {
            let later = if j < i { ">" } else { ">=" };
            format!("choosing[{j}] == 0;\n(number[{j}] == 0 || number[{j}] {later} most + 1);")
        });
        // The ticket is reset after its last use. Keeping it would only multiply states.
        let section = promela_section(&format!("number[{i}] = 0"));
        let section = section.replace("assert(inside == 1)", "assert(inside == 1); most = 0");
        format!(
            "choosing[{i}] = 1;
most = number[{first}];
{highest}
d_step {{ most < {MAX_TICKET} -> number[{i}] = most + 1 }};
choosing[{i}] = 0;
{turns}
{section}"
        )
    })
}
