//! Control flow: dominators against their definition, and the order of definitions and uses.

use crate::common::{body, describe, function_with, read, try_read};
use palisade_base::{Id, Source};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_llvm::flow::Flow;
use palisade_llvm::module::{BlockId, Body};

/// Whether the last block can be reached from the first without passing a third one.
fn reaches(body: &Body, to: BlockId, without: Option<BlockId>) -> bool {
    let mut seen = vec![false; body.blocks.len()];
    let mut open = vec![BlockId(0)];
    while let Some(block) = open.pop() {
        if Some(block) == without || std::mem::replace(&mut seen[block.index()], true) {
            continue;
        }
        let last = body.blocks[block].instructions.last().expect("blocks are not empty");
        last.op.for_each_successor(|to| open.push(to));
    }
    seen[to.index()]
}

/// A function with random branches.
fn random_function(random: &mut Random) -> String {
    let blocks = random.between(1, 12);
    let mut text = "define void @f(i32 %x) {\n".to_owned();
    for block in 0..blocks {
        let mut target = || random.between(1, blocks.max(2) - 1);
        let (first, second, third) = (target(), target(), target());
        text += &format!("b{block}:\n");
        text += &match random.below(if blocks == 1 { 1 } else { 6 }) {
            0 => "  ret void\n".to_owned(),
            1 | 2 => format!("  br label %b{first}\n"),
            3 => format!(
                "  switch i32 %x, label %b{first} [\n    i32 1, label %b{second}\n    i32 2, label %b{third}\n  ]\n"
            ),
            _ => format!("  br i1 true, label %b{first}, label %b{second}\n"),
        };
    }
    text + "}\n"
}

#[test]
fn oracle_dominators_are_on_all_ways() {
    for seed in seeds(400) {
        let text = random_function(&mut Random::new(seed));
        let module = read(&text);
        let (_, body) = body(&module, "f");
        let flow = Flow::new(body);
        for block in body.blocks.ids() {
            let reachable = reaches(body, block, None);
            assert_eq!(flow.is_reachable(block), reachable, "seed {seed}\n{text}");
            if !reachable {
                continue;
            }
            let dominators: Vec<BlockId> = body
                .blocks
                .ids()
                .filter(|&other| !reaches(body, block, Some(other)))
                .filter(|&other| reaches(body, other, None))
                .collect();
            for other in body.blocks.ids() {
                let expected = dominators.contains(&other);
                assert_eq!(
                    flow.dominates(other, block),
                    expected,
                    "seed {seed}: {other:?} {block:?}\n{text}"
                );
            }
            // The immediate one is dominated by all others.
            if let Some(immediate) = flow.immediate_dominator(block) {
                assert!(immediate != block && dominators.contains(&immediate), "seed {seed}\n{text}");
                let others = dominators.iter().filter(|&&other| other != block);
                assert!(
                    others.into_iter().all(|&other| flow.dominates(other, immediate)),
                    "seed {seed}\n{text}"
                );
            } else {
                assert_eq!(block, BlockId(0), "seed {seed}\n{text}");
            }
        }
        let order = flow.reachable();
        assert!(order.iter().enumerate().all(|(at, &block)| {
            flow.immediate_dominator(block).is_none_or(|above| order[..at].contains(&above))
        }));
    }
}

#[test]
fn long_functions_are_walked_without_recursion() {
    const BLOCKS: usize = 50_000;
    let chain: String = (0..BLOCKS)
        .map(|at| format!("b{at}:\n  br i1 true, label %b{}, label %b{BLOCKS}\n", at + 1))
        .collect();
    let module = read(&format!("define void @f() {{\n{chain}b{BLOCKS}:\n  ret void\n}}\n"));
    let (_, body) = body(&module, "f");
    let flow = Flow::new(body);
    let last = BlockId::from_index(BLOCKS);
    assert_eq!(flow.immediate_dominator(last), Some(BlockId(0)));
    assert!(flow.dominates(BlockId(7), BlockId::from_index(BLOCKS - 1)));
}

/// The errors for a function with these lines.
#[track_caller]
fn check(lines: &str, expected: &str) {
    let text = function_with(lines);
    let errors = try_read(&text).err().unwrap_or_default();
    assert_eq!(describe(&Source::new("test.ll", text.as_str()), &errors).trim_end(), expected, "{lines}");
}

#[test]
fn values_are_defined_on_all_ways_to_their_uses() {
    let late = |line: u32, name: &str| {
        format!("{line}:1 ir-order: `%{name}` is used here, but not defined on every path to this point")
    };
    check("%a = add i32 %b, 1\n%b = add i32 %x, 1\nret void", &late(5, "b"));
    check("%a = add i32 %a, 1\nret void", &late(5, "a"));
    check(
        "br i1 %c, label %l, label %r\nl:\n%a = add i32 %x, 1\nbr label %r\nr:\n%b = add i32 %a, 1\nret void",
        &late(10, "a"),
    );
    check(
        "br i1 %c, label %l, label %r\nl:\n%a = add i32 %x, 1\nbr label %r\nr:\n%b = phi i32 [ %a, %l ], [ 0, %entry ]\nret void",
        "",
    );
    check(
        "br i1 %c, label %l, label %r\nl:\n%a = add i32 %x, 1\nbr label %r\nr:\n%b = phi i32 [ 0, %l ], [ %a, %entry ]\nret void",
        &late(10, "a"),
    );
    // A loop: the phi takes a value that is defined later in the text.
    check(
        "br label %l\nl:\n%i = phi i32 [ 0, %entry ], [ %j, %l ]\n%j = add i32 %i, 1\nbr i1 %c, label %l, label %r\nr:\nret void",
        "",
    );
    // What cannot be reached may use anything.
    check("ret void\nl:\n%a = add i32 %b, 1\nret void\nr:\n%b = add i32 %x, 1\nret void", "");
    // The result of an invoke exists where the call returned.
    let invoke = |fine: &str, pad: &str| {
        format!(
            "%r = invoke i32 @h(i32 1)\nto label %fine unwind label %pad\nfine:\n{fine}ret void\npad:\n\
             %l = landingpad {{ ptr, i32 }} cleanup\n{pad}ret void"
        )
        .replace("i32 @h", "i32 (i32, ...) @h")
    };
    check(&invoke("%u = add i32 %r, 1\n", ""), "");
    check(&invoke("", "%u = add i32 %r, 1\n"), &late(11, "r"));
}

#[test]
fn phis_have_a_value_for_each_way() {
    let wrong = "this `phi` does not have one value for each predecessor of its block";
    let with = |phi: &str| format!("br i1 %c, label %l, label %r\nl:\nbr label %r\nr:\n{phi}\nret void");
    check(&with("%b = phi i32 [ 1, %l ], [ 0, %entry ]"), "");
    check(&with("%b = phi i32 [ 1, %l ]"), &format!("9:1 ir-order: {wrong}"));
    check(&with("%b = phi i32 [ 1, %l ], [ 0, %entry ], [ 2, %r ]"), &format!("9:1 ir-order: {wrong}"));
    check(
        &with("%a = add i32 %x, 1\n%b = phi i32 [ 1, %l ], [ 0, %entry ]"),
        "10:1 ir-order: a `phi` comes after other instructions",
    );
    // Two ways from one block count twice.
    check("br i1 %c, label %l, label %l\nl:\n%b = phi i32 [ 1, %entry ], [ 1, %entry ]\nret void", "");
    check("br label %entry", "4:1 ir-order: the first block cannot be branched to");
}
