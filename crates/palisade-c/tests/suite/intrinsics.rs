//! Arithmetic intrinsics give what Rust's own operations give.

use crate::common::{body_of, module};

/// Numbers at and near the edges of all widths, and some others.
fn numbers(width: u32) -> Vec<i64> {
    let edges = [8, 16, 32, 64].map(|width: u32| i64::MIN >> (64 - width));
    let near = edges.iter().flat_map(|&edge| [edge, edge.wrapping_sub(1), edge.wrapping_add(1), !edge]);
    let others = [0, 1, 2, 3, 5, 100, 1_000_003, 0x0123_4567_89ab_cdef, -1, -2, -7];
    let mut all: Vec<i64> = near.chain(others).map(|n| cut(n, width)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The lowest bits of a number, with their sign.
fn cut(n: i64, width: u32) -> i64 {
    n << (64 - width) >> (64 - width)
}

/// The exact result, and whether it leaves the range.
fn expected(signed: bool, operation: &str, width: u32, a: i64, b: i64) -> (i64, bool) {
    let wide = |n: i64| if signed { i128::from(n) } else { i128::from(n) & ((1 << width) - 1) };
    let exact = match operation {
        "add" => wide(a) + wide(b),
        "sub" => wide(a) - wide(b),
        _ => wide(a).wrapping_mul(wide(b)),
    };
    let value = cut(exact as i64, width);
    (value, wide(value) != exact)
}

/// What a program stores that stores these two values, one call after the other.
fn stored(declarations: &str, calls: &[String]) -> Vec<String> {
    let text = format!("{declarations}\n{}", module(&format!("{}\n  ret void", calls.join("\n"))));
    body_of(&text).lines().filter(|line| *line != "return;").map(str::to_owned).collect()
}

#[test]
fn checked_operations() {
    for width in [8, 16, 32, 64] {
        for (sign, operation) in
            [("s", "add"), ("s", "sub"), ("s", "mul"), ("u", "add"), ("u", "sub"), ("u", "mul")]
        {
            if (sign, operation, width) == ("s", "mul", 64) {
                continue;
            }
            let name = format!("llvm.{sign}{operation}.with.overflow.i{width}");
            let ty = format!("i{width}");
            let (mut calls, mut lines) = (Vec::new(), Vec::new());
            let pairs =
                numbers(width).into_iter().flat_map(|a| numbers(width).into_iter().map(move |b| (a, b)));
            // What depends on the address of a function is not simplified, and these numbers may be addresses.
            let functions = (1 << 46)..(1 << 46) + (1 << 32);
            let pairs = pairs.filter(|(a, b)| !functions.contains(&a.wrapping_mul(*b)));
            for (index, (a, b)) in pairs.enumerate() {
                let wide = if width == 64 {
                    format!("  %w{index} = add i64 %v{index}, 0")
                } else {
                    format!("  %w{index} = sext {ty} %v{index} to i64")
                };
                calls.push(format!(
                    "  %r{index} = call {{ {ty}, i1 }} @{name}({ty} {a}, {ty} {b})\n  \
                     %v{index} = extractvalue {{ {ty}, i1 }} %r{index}, 0\n{wide}\n  \
                     store volatile i64 %w{index}, ptr @y\n  \
                     %o{index} = extractvalue {{ {ty}, i1 }} %r{index}, 1\n  \
                     %z{index} = zext i1 %o{index} to i32\n  store volatile i32 %z{index}, ptr @x"
                ));
                let (value, left) = expected(sign == "s", operation, width, a, b);
                lines.push(format!("y = {value};"));
                lines.push(format!("x = {};", i32::from(left)));
            }
            let found = stored(&format!("declare {{ {ty}, i1 }} @{name}({ty}, {ty})"), &calls);
            let first = found.iter().zip(&lines).find(|(found, line)| found != line);
            assert_eq!((first, found.len()), (None, lines.len()), "{name}");
        }
    }
}

#[test]
fn minima_sums_and_bits() {
    type Operation = fn(i32, i32) -> i32;
    let operations: [(&str, Operation); 6] = [
        ("smin", i32::min),
        ("smax", i32::max),
        ("umin", |a, b| (a as u32).min(b as u32) as i32),
        ("umax", |a, b| (a as u32).max(b as u32) as i32),
        ("usub.sat", |a, b| (a as u32).saturating_sub(b as u32) as i32),
        ("uadd.sat", |a, b| (a as u32).saturating_add(b as u32) as i32),
    ];
    for (name, operation) in operations {
        let (mut calls, mut lines) = (Vec::new(), Vec::new());
        let pairs = numbers(32).into_iter().flat_map(|a| numbers(32).into_iter().map(move |b| (a, b)));
        for (index, (a, b)) in pairs.enumerate() {
            calls.push(format!(
                "  %r{index} = call i32 @llvm.{name}.i32(i32 {a}, i32 {b})\n  store volatile i32 %r{index}, ptr @x"
            ));
            lines.push(format!("x = {};", operation(a as i32, b as i32)));
        }
        assert_eq!(stored(&format!("declare i32 @llvm.{name}.i32(i32, i32)"), &calls), lines, "{name}");
    }
    let each = numbers(64).into_iter().enumerate();
    let calls: Vec<String> = each
        .map(|(index, n)| {
            format!("  %r{index} = call i64 @llvm.ctpop.i64(i64 {n})\n  store volatile i64 %r{index}, ptr @y")
        })
        .collect();
    let lines: Vec<String> = numbers(64).iter().map(|n| format!("y = {};", n.count_ones())).collect();
    assert_eq!(stored("declare i64 @llvm.ctpop.i64(i64)", &calls), lines);
}

#[test]
fn zeros_and_bytes() {
    for width in [8u32, 16, 32, 64] {
        let ty = format!("i{width}");
        let wide = |index: usize| match width {
            64 => format!("  %w{index} = add i64 %r{index}, 0"),
            _ => format!("  %w{index} = sext {ty} %r{index} to i64"),
        };
        let unsigned = |n: i64| n as u64 & (u64::MAX >> (64 - width));
        type Operation = fn(u64, u32) -> i64;
        let operations: [(&str, &str, Operation); 5] = [
            ("cttz", ", i1 false", |n, width| i64::from(n.trailing_zeros().min(width))),
            ("cttz", ", i1 true", |n, width| i64::from(n.trailing_zeros().min(width))),
            ("ctlz", ", i1 false", |n, width| i64::from(n.leading_zeros() + width - 64)),
            ("ctlz", ", i1 true", |n, width| i64::from(n.leading_zeros() + width - 64)),
            ("bswap", "", |n, width| cut((n.swap_bytes() >> (64 - width)) as i64, width)),
        ];
        for (name, second, operation) in operations {
            // Bytes have no order, and the count for 0 may be left open.
            let (open, bytes) = (second.ends_with("true"), name == "bswap");
            if bytes && width == 8 {
                continue;
            }
            let all: Vec<i64> = numbers(width).into_iter().filter(|n| !open || *n != 0).collect();
            let calls = all.iter().enumerate().map(|(index, n)| {
                let call = format!("  %r{index} = call {ty} @llvm.{name}.{ty}({ty} {n}{second})");
                format!("{call}\n{}\n  store volatile i64 %w{index}, ptr @y", wide(index))
            });
            let lines: Vec<String> =
                all.iter().map(|n| format!("y = {};", operation(unsigned(*n), width))).collect();
            let flag = if bytes { "" } else { ", i1" };
            let declaration = format!("declare {ty} @llvm.{name}.{ty}({ty}{flag})");
            assert_eq!(stored(&declaration, &calls.collect::<Vec<_>>()), lines, "{name} {ty}");
        }
    }
}
