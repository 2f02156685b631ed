//! Peterson's algorithm; for more than two threads, the filter lock of the same paper.
//!
//! *Source.* Peterson, "Myths about the mutual exclusion problem", Information Processing Letters 12(3),
//! 1981.

use super::{each, joined, others, pal_threads, promela_section, promela_threads};

pub(super) fn pal(n: usize) -> String {
    if n == 2 {
        return pal_threads("shared flag[2]: bool;\nshared turn: 0..1;", 2, |i| {
            let j = 1 - i;
            format!(
                "flag[{i}] = true;
turn = {j};
while flag[{j}] && turn == {j} {{}}
cs: skip;
flag[{i}] = false;"
            )
        });
    }
    let most = n - 1;
    pal_threads(&format!("shared level[{n}]: 0..{most};\nshared victim[{n}]: 0..{most};"), n, |i| {
        let floors = each(1..n, |floor| {
            let ahead = joined("||", others(i, n), |k| format!("level[{k}] >= {floor}"));
            format!(
                "level[{i}] = {floor};
victim[{floor}] = {i};
while victim[{floor}] == {i} && ({ahead}) {{}}"
            )
        });
        format!("{floors}\ncs: skip;\nlevel[{i}] = 0;")
    })
}

pub(super) fn promela(n: usize) -> String {
    if n == 2 {
        return promela_threads("bit flag[2];\nbit turn;", "", 2, |i| {
            let j = 1 - i;
            let section = promela_section(&format!("flag[{i}] = 0"));
            format!(
                "flag[{i}] = 1;
turn = {j};
wait:
if :: flag[{j}] == 0 :: else -> if :: turn == {j} -> goto wait :: else fi fi;
{section}"
            )
        });
    }
    promela_threads(&format!("byte level[{n}];\nbyte victim[{n}];"), "", n, |i| {
        let floors = each(1..n, |floor| {
            // The guards are nested, because a jump past all of them would lead into a d_step.
            let ahead = others(i, n).map(|k| format!("level[{k}] >= {floor} -> goto wait{floor}"));
            let guards = std::iter::once(format!("victim[{floor}] != {i}")).chain(ahead);
            let scan = guards.collect::<Vec<_>>().join(" :: else -> if :: ");
            let ends = " fi".repeat(n);
            format!(
                "level[{i}] = {floor};
victim[{floor}] = {i};
wait{floor}:
if :: {scan} :: else{ends};"
            )
        });
        format!("{floors}\n{}", promela_section(&format!("level[{i}] = 0")))
    })
}
