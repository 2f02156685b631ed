//! Szymanski's algorithm. A thread's flag is 0 outside, 1 at the door, 2 waiting inside, 3 in the doorway, 4
//! with the door closed.
//!
//! *Source.* Szymanski, "A simple solution to Lamport's concurrent programming problem with linear wait",
//! International Conference on Supercomputing, 1988.

use super::{each, joined, others, pal_threads, promela_section, promela_threads};

pub(super) fn pal(n: usize) -> String {
    pal_threads(&format!("shared flag[{n}]: 0..4;"), n, |i| {
        let door_open = each(others(i, n), |j| format!("await flag[{j}] < 3;"));
        let someone_outside = joined("||", others(i, n), |j| format!("flag[{j}] == 1"));
        let door_not_closed = joined("&&", others(i, n), |j| format!("flag[{j}] != 4"));
        let lower_left = each(0..i, |j| format!("await flag[{j}] < 2;"));
        let higher_know = each(i + 1..n, |j| {
            format!("loop {{ let f{j} = flag[{j}]; if f{j} < 2 || f{j} == 4 {{ break; }} }}")
        });
        format!(
            "flag[{i}] = 1;
{door_open}
flag[{i}] = 3;
if {someone_outside} {{
    flag[{i}] = 2;
    while {door_not_closed} {{}}
}}
flag[{i}] = 4;
{lower_left}
cs: skip;
{higher_know}
flag[{i}] = 0;"
        )
    })
}

pub(super) fn promela(n: usize) -> String {
    promela_threads(&format!("byte flag[{n}];"), "", n, |i| {
        let door_open = each(others(i, n), |j| format!("flag[{j}] < 3;"));
        let someone_outside =
            each(others(i, n), |j| format!("if :: flag[{j}] == 1 -> goto wait :: else fi;"));
        let door_closed = each(others(i, n), |j| format!("if :: flag[{j}] == 4 -> goto close :: else fi;"));
        let lower_left = each(0..i, |j| format!("flag[{j}] < 2;"));
        // Leaving the critical section is one step with the first store after it, or with the first load if
        // that comes first.
        let mut higher_know = (i + 1..n).map(|j| format!("flag[{j}] < 2 || flag[{j}] == 4"));
        let section = match higher_know.next() {
            None => promela_section(&format!("flag[{i}] = 0")),
            Some(guard) => {
                let rest: String = higher_know.map(|guard| format!("\n{guard};")).collect();
                format!(
                    "d_step {{ inside++; assert(inside == 1) }};
d_step {{ {guard} -> inside-- }};{rest}
flag[{i}] = 0;"
                )
            }
        };
        format!(
            "flag[{i}] = 1;
{door_open}
flag[{i}] = 3;
{someone_outside}
goto close;
wait:
flag[{i}] = 2;
scan:
{door_closed}
goto scan;
close:
flag[{i}] = 4;
{lower_left}
{section}"
        )
    })
}
