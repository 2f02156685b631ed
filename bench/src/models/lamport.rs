//! Lamport's fast mutual exclusion algorithm (the second one in the paper). Threads are numbered from 1,
//! because 0 means no thread.
//!
//! *Source.* Lamport, "A fast mutual exclusion algorithm", ACM Transactions on Computer Systems 5(1), 1987.

use super::{each, pal_threads, promela_section, promela_threads};

pub(super) fn pal(n: usize) -> String {
    pal_threads(&format!("shared x, y: 0..{n};\nshared b[{n}]: bool;"), n, |i| {
        let me = i + 1;
        let idle = each(0..n, |j| format!("    await !b[{j}];"));
        format!(
            "b[{i}] = true;
x = {me};
if y != 0 {{
    b[{i}] = false;
    await y == 0;
    continue;
}}
y = {me};
if x != {me} {{
    b[{i}] = false;
{idle}
    if y != {me} {{
        await y == 0;
        continue;
    }}
}}
cs: skip;
y = 0;
b[{i}] = false;"
        )
    })
}

pub(super) fn promela(n: usize) -> String {
    promela_threads(&format!("byte x, y;\nbit b[{n}];"), "", n, |i| {
        let me = i + 1;
        let idle = each(0..n, |j| format!("    b[{j}] == 0;"));
        format!(
            "b[{i}] = 1;
x = {me};
if :: y != 0 -> b[{i}] = 0; y == 0; goto start :: else fi;
y = {me};
if
:: x != {me} ->
    b[{i}] = 0;
{idle}
    if :: y != {me} -> y == 0; goto start :: else fi
:: else
fi;
{}
b[{i}] = 0;",
            promela_section("y = 0")
        )
    })
}
