//! Dekker's algorithm.
//!
//! *Source.* Dijkstra, "Cooperating sequential processes", 1965, which names Dekker as its author.

use super::{pal_threads, promela_section, promela_threads};

pub(super) fn pal() -> String {
    pal_threads("shared flag[2]: bool;\nshared turn: 0..1;", 2, |i| {
        let j = 1 - i;
        format!(
            "flag[{i}] = true;
while flag[{j}] {{
    if turn != {i} {{
        flag[{i}] = false;
        await turn == {i};
        flag[{i}] = true;
    }}
}}
cs: skip;
turn = {j};
flag[{i}] = false;"
        )
    })
}

pub(super) fn promela() -> String {
    promela_threads("bit flag[2];\nbit turn;", "", 2, |i| {
        let j = 1 - i;
        format!(
            "flag[{i}] = 1;
wait:
if
:: flag[{j}] == 0
:: else ->
    if :: turn != {i} -> flag[{i}] = 0; turn == {i}; flag[{i}] = 1 :: else fi;
    goto wait
fi;
{}
flag[{i}] = 0;",
            promela_section(&format!("turn = {j}"))
        )
    })
}
