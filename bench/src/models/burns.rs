//! Burns's algorithm with one bit per thread.
//!
//! *Source.* Burns and Lynch, "Bounds on shared memory for mutual exclusion", Information and Computation
//! 107(2), 1993.

use super::{each, pal_threads, promela_section, promela_threads};

pub(super) fn pal(n: usize) -> String {
    pal_threads(&format!("shared flag[{n}]: bool;"), n, |i| {
        let lower_want = each(0..i, |j| format!("if flag[{j}] {{ continue; }}"));
        let higher_wait = each(i + 1..n, |j| format!("await !flag[{j}];"));
        format!(
            "flag[{i}] = false;
{lower_want}
flag[{i}] = true;
{lower_want}
{higher_wait}
cs: skip;
flag[{i}] = false;"
        )
    })
}

pub(super) fn promela(n: usize) -> String {
    promela_threads(&format!("bit flag[{n}];"), "", n, |i| {
        let lower_want = each(0..i, |j| format!("if :: flag[{j}] != 0 -> goto start :: else fi;"));
        let higher_wait = each(i + 1..n, |j| format!("flag[{j}] == 0;"));
        format!(
            "flag[{i}] = 0;
{lower_want}
flag[{i}] = 1;
{lower_want}
{higher_wait}
{}",
            promela_section(&format!("flag[{i}] = 0"))
        )
    })
}
