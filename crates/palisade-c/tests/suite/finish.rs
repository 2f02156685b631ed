//! What it means that a program finishes, read off its text.

use crate::common::{threads, translated};
use palisade_c::{Aim, Finish, Options};
use palisade_program::written::ProgressKind;

/// A program of `main` and a thread, by their instructions.
fn program(main: &str, thread: &str) -> String {
    format!(
        "target datalayout = \"e-m:e-i64:64-f80:128-n8:16:32:64-S128\"\n\
         @x = global i32 0\n\
         declare i32 @pthread_create(ptr, ptr, ptr, ptr)\ndeclare i32 @pthread_join(i64, ptr)\n\
         declare void @pthread_exit(ptr)\ndeclare void @exit(i32)\ndeclare void @abort()\n\
         declare void @__VERIFIER_assume(i32)\n\
         define ptr @work(ptr %p) {{\n{thread}\n}}\n\
         define i32 @main() {{\n  %t = alloca i64\n  \
         %c = call i32 @pthread_create(ptr %t, ptr null, ptr @work, ptr null)\n{main}\n}}\n"
    )
}

const JOIN: &str = "  %h = load i64, ptr %t\n  %j = call i32 @pthread_join(i64 %h, ptr null)\n";
const RETURN: &str = "  ret i32 0";
const ENDS: &str = "  ret ptr null";
/// Waits for another value of `x`, and looks again and again.
const POLLS: &str = "  br label %a\na:\n  %v = load volatile i32, ptr @x\n  %b = icmp eq i32 %v, 0\n  \
                     br i1 %b, label %a, label %e\ne:\n  ret ptr null";
const FOREVER: &str = "  br label %a\na:\n  store volatile i32 1, ptr @x\n  br label %a";

#[track_caller]
fn check(main: &str, thread: &str, expected: &Finish) {
    let text = program(main, thread);
    let options = Options { aim: Aim::Progress, races: false, ..Options::default() };
    let translation = translated(&text, &options);
    assert_eq!(translation.finish, *expected, "{text}");
    let states = translation.program.progress.iter().any(|progress| progress.kind.is_goal());
    assert_eq!(states, *expected == Finish::Over);
    // The question about bad states needs none of this.
    let plain = translated(&text, &Options { aim: Aim::Safety, ..options });
    let printed = palisade_program::print::print(&plain.program);
    assert!(plain.program.progress.is_empty() && !printed.contains("program.over"), "{printed}");
}

#[test]
fn programs_that_are_meant_to_end() {
    let joined = format!("{JOIN}{RETURN}");
    check(&joined, ENDS, &Finish::Over);
    check(RETURN, FOREVER, &Finish::Over);
    // Whether the loop ends is what is asked.
    check(&joined, POLLS, &Finish::Over);
    check("  call void @pthread_exit(ptr null)\n  unreachable", ENDS, &Finish::Over);
    check("  call void @exit(i32 0)\n  unreachable", FOREVER, &Finish::Over);
    check(FOREVER, "  call void @exit(i32 0)\n  unreachable", &Finish::Over);
}

#[test]
fn programs_that_are_not_meant_to_end() {
    let joined = format!("{JOIN}{RETURN}");
    check(FOREVER, ENDS, &Finish::Never);
    check(&joined, FOREVER, &Finish::Never);
    check("  call void @pthread_exit(ptr null)\n  unreachable", FOREVER, &Finish::Never);
    // A failure is no end.
    check(&joined, "  call void @abort()\n  unreachable", &Finish::Never);
}

#[test]
fn a_failed_assumption_is_not_judged() {
    let assumes = "  %v = load volatile i32, ptr @x\n  call void @__VERIFIER_assume(i32 %v)\n  ret ptr null";
    let text = program(RETURN, assumes);
    let options = Options { aim: Aim::Progress, races: false, ..Options::default() };
    let translation = translated(&text, &options);
    let printed = palisade_program::print::print(&translation.program);
    assert!(!printed.contains("assume("), "{printed}");
    assert!(printed.contains("count(main@`program.over`) + count(work@`program.over`) > 0"), "{printed}");
    assert!(translation.notes.iter().any(|note| note.0.contains("counts as finished")));
}

#[test]
fn libraries_end_with_all_their_threads() {
    let text = program(RETURN, ENDS).replace("(ptr %p)", "()");
    let options = Options { aim: Aim::Progress, ..threads(&["work", "work"]) };
    let translation = translated(&text, &options);
    assert_eq!(translation.finish, Finish::AllEnded);
    assert_eq!(translation.program.progress[0].kind, ProgressKind::LiveEnd);
    let starts = translated(&text, &Options { aim: Aim::Progress, ..threads(&["main"]) });
    assert!(matches!(starts.finish, Finish::NotFollowed(_)));
}
