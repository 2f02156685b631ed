//! What is refused, with the line of the source.

use crate::common::{Lines, messages, module, read, refused, threads};
use palisade_c::{Options, translate};

#[track_caller]
fn check(lines: &str, expected: &str) {
    assert_eq!(refused(&module(lines), &threads(&["f"])), format!("not supported: {expected}, in `f`\n"));
}

#[test]
fn what_is_not_understood_is_named() {
    check("  %r = call i32 @h()\n  ret void", "the function `h`");
    check("  %r = fadd double 1.0, 2.0\n  ret void", "floating-point numbers");
    check("  call void asm sideeffect \"cpuid\", \"~{memory}\"()\n  ret void", "the inline assembly `cpuid`");
    check("  %r = load i128, ptr @y\n  ret void", "accesses of type `i128`");
    check("  store i32 1, ptr @x, !nontemporal !{i32 1}\n  ret void", "a non-temporal store");
}

#[test]
fn library_functions_are_not_called_through_pointers() {
    check(
        "  store volatile ptr @h, ptr @p\n  %f = load volatile ptr, ptr @p\n  %r = call i32 %f()\n  ret void",
        "a call of `h` through a pointer",
    );
}

#[test]
fn what_control_cannot_reach_does_not_matter() {
    let text =
        module("  br i1 false, label %a, label %b\na:\n  %r = call i32 @h()\n  ret void\nb:\n  ret void");
    assert!(translate(&[read(&text)], &Lines, &threads(&["f"])).is_ok());
}

#[test]
fn places_of_refusals_are_those_of_the_source() {
    let text = include_str!("texts/stack.ll").replace("@free(", "@release(");
    assert_eq!(refused(&text, &threads(&["push", "pop"])), "28: not supported: the function `release`\n");
}

#[test]
fn roots_must_exist() {
    let text = module("  ret void");
    assert_eq!(refused(&text, &Options::default()), "there is no function `main`\n");
    assert_eq!(refused(&text, &threads(&["g"])), "there is no function `g`\n");
    assert_eq!(refused(&text, &threads(&[])), "no function was named to run as a thread\n");
}

#[test]
fn modules_are_linked_by_name() {
    let first = read(
        "define void @f() {\n  call void @g()\n  ret void\n}\ndeclare void @g()\n@v = external global i32\n",
    );
    let second =
        read("@v = global i32 0\ndefine void @g() {\n  store volatile i32 1, ptr @v\n  ret void\n}\n");
    let linked = translate(&[first.clone(), second.clone()], &Lines, &threads(&["f", "g"]));
    let printed = palisade_program::print::print(&linked.expect("both are there").program);
    assert_eq!(printed.matches("v = 1;").count(), 2, "{printed}");
    let twice = translate(&[second.clone(), second], &Lines, &threads(&["g"])).expect_err("defined twice");
    assert!(messages(&twice).contains("`g` is defined in two translation units"));
    let alone = translate(&[first], &Lines, &threads(&["f"])).expect_err("one is missing");
    assert_eq!(messages(&alone), "not supported: the function `g`, in `f`\n");
}

#[test]
fn recursion_is_followed_only_if_constants_bound_it() {
    let text = |bound: &str| {
        format!(
            "@v = global i32 0\ndefine i32 @r(i32 %n) {{\n  %c = icmp sle i32 %n, 0\n  br i1 %c, label %a, label %b\n\
             a:\n  ret i32 0\nb:\n  %m = sub i32 %n, 1\n  %k = call i32 @r(i32 %m)\n  %s = add i32 %k, %n\n  \
             ret i32 %s\n}}\ndefine void @f() {{\n  %x = load volatile i32, ptr @v\n  %s = call i32 @r(i32 {bound})\n  \
             store volatile i32 %s, ptr @v\n  ret void\n}}\ndefine void @g() {{\n  \
             store volatile i32 1, ptr @v\n  ret void\n}}\n"
        )
    };
    let options = threads(&["f", "g"]);
    let known = translate(&[read(&text("3"))], &Lines, &options).expect("it ends");
    assert!(palisade_program::print::print(&known.program).contains("v = 6;"));
    let unknown = translate(&[read(&text("%x"))], &Lines, &options).expect_err("it may not end");
    assert!(messages(&unknown).contains("recursion of `r`"));
}
