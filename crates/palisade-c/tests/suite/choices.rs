//! Values that may be anything of their type.

use crate::common::{refused, threads, translated};

/// A thread that chooses a number and does something with it.
fn text(choice: &str, rest: &str) -> String {
    format!(
        "target datalayout = \"e-m:e-i64:64-f80:128-n8:16:32:64-S128\"\n@x = global i32 0\n\
         declare i32 @__VERIFIER_nondet_int()\ndeclare i32 @__VERIFIER_nondet_uint()\n\
         declare i64 @__VERIFIER_nondet_long()\ndeclare void @__VERIFIER_assume(i32)\n\
         define void @f() {{\n  %l = alloca i32\n  {choice}\n{rest}\n}}\n\
         define void @other() {{\n  store volatile i32 1, ptr @x\n  ret void\n}}\n"
    )
}

const INT: &str = "%n = call i32 @__VERIFIER_nondet_int()\n  store i32 %n, ptr %l";
const UINT: &str = "%n = call i32 @__VERIFIER_nondet_uint()\n  store i32 %n, ptr %l";
const STORED: &str = "  store volatile i32 %n, ptr @x\n  ret void";

/// `assume(least <= n && n <= most)` as clang writes it.
fn between(least: &str, most: &str) -> String {
    format!(
        "  %a = load i32, ptr %l\n  %b = icmp {least}\n  br i1 %b, label %c, label %d\nc:\n  \
         %e = load i32, ptr %l\n  %g = icmp {most}\n  br label %d\nd:\n  \
         %h = phi i1 [ false, %0 ], [ %g, %c ]\n  %i = zext i1 %h to i32\n  \
         call void @__VERIFIER_assume(i32 %i)\n{STORED}"
    )
}

#[track_caller]
fn check(choice: &str, rest: &str, expected: &str) {
    let translation = translated(&text(choice, rest), &threads(&["f", "other"]));
    let printed = palisade_program::print::print(&translation.program);
    assert!(printed.contains(expected), "{printed}");
}

#[test]
fn assumptions_say_which_values_are_meant() {
    check(INT, &between("sge i32 %a, 0", "slt i32 %e, 4"), "= any(0..3)");
    check(INT, &between("sgt i32 %a, -3", "sle i32 %e, 4"), "= any(-2..4)");
    check(INT, &between("sge i32 %a, 7", "sle i32 %e, 7"), "7");
    let once = |condition: &str| {
        format!(
            "  %b = icmp {condition}\n  %i = zext i1 %b to i32\n  call void @__VERIFIER_assume(i32 %i)\n{STORED}"
        )
    };
    check(UINT, &once("ult i32 %n, 4"), "= any(0..3)");
    check(UINT, &once("ule i32 %n, 4"), "= any(0..4)");
    check(INT, &once("eq i32 %n, 5"), "5");
}

#[test]
fn values_without_such_an_assumption_are_refused() {
    let options = threads(&["f", "other"]);
    let message = refused(&text(INT, STORED), &options);
    assert!(message.contains("`__VERIFIER_nondet_int`: too many values to try"), "{message}");
    // What comes before the assumption may be noticed.
    let late = format!(
        "  store volatile i32 %n, ptr @x\n  %b = icmp eq i32 %n, 5\n  %i = zext i1 %b to i32\n  \
         call void @__VERIFIER_assume(i32 %i)\n{STORED}"
    );
    assert!(refused(&text(INT, &late), &options).contains("too many values to try"));
    let half =
        "  %b = icmp sge i32 %n, 0\n  %i = zext i1 %b to i32\n  call void @__VERIFIER_assume(i32 %i)\n";
    assert!(refused(&text(INT, &format!("{half}{STORED}")), &options).contains("too many values to try"));
    // A value that is not used does not count.
    translated(&text(INT, "  ret void"), &options);
}
