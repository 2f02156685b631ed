//! Inline assembly, and the functions of verifiers that stand for instructions.

use crate::common::{body, module, refused, threads};

#[track_caller]
fn check(lines: &str, expected: &str) {
    let found = body(&format!("{lines}\n  ret void"));
    let found = found.strip_suffix("\nreturn;").unwrap_or(&found);
    assert_eq!(found, expected, "\n{found}");
}

/// The result is stored, so that it is needed.
#[track_caller]
fn check_value(lines: &str, expected: &str) {
    check(&format!("{lines}\n  store volatile i32 %r, ptr @a"), expected);
}

#[test]
fn barriers_and_hints() {
    let asm = |template: &str| format!("  call void asm sideeffect \"{template}\", \"~{{memory}}\"()");
    for nothing in ["", "pause", "rep; nop", "lfence", "nop\\0A\\09nop"] {
        check(&asm(nothing), "return;");
    }
    check(&asm("mfence"), "fence;");
    check(&asm("sfence"), "sfence;");
    check(&asm("lock; addl $$0,0(%rsp)"), "fence;");
    check(&asm("lock orq $$0, (%rsp)"), "fence;");
}

#[test]
fn locked_instructions() {
    let memory = "\"=*m,*m,~{memory}\"(ptr elementtype(i32) @x, ptr elementtype(i32) @x)";
    check(&format!("  call void asm sideeffect \"lock incl $0\", {memory}"), "fetch_add(x, 1);");
    check(&format!("  call void asm sideeffect \"lock; decl $0\", {memory}"), "fetch_sub(x, 1);");
    check(&format!("  call void asm sideeffect \"lock andl $$4, $0\", {memory}"), "fetch_and(x, 4);");
    // Without the prefix it is a load and a store.
    check(&format!("  call void asm sideeffect \"incl $0\", {memory}"), "t1 = x;\nx = t1 +% 1;");
    let address = "\"r,~{memory}\"(ptr @x)";
    check(&format!("  call void asm sideeffect \"lock notl ($0)\", {address}"), "fetch_xor(x, -1);");
    let exchange = "\"=*m,=r,*m,1\"(ptr elementtype(i32) @x, ptr elementtype(i32) @x, i32 2)";
    for template in ["xchgl $0, $1", "xchg ${1:k}, $0", "lock; xchgl $1, $0"] {
        check_value(
            &format!("  %r = call i32 asm sideeffect \"{template}\", {exchange}"),
            "t1 = xchg(x, 2);\n`a+0` = t1;",
        );
    }
    check_value(
        &format!("  %r = call i32 asm sideeffect \"lock xaddl $1, $0\", {exchange}"),
        "t1 = fetch_add(x, 2);\n`a+0` = t1;",
    );
}

#[test]
fn moves() {
    check("  call void asm sideeffect \"movl $1, $0\", \"=*m,ri\"(ptr elementtype(i32) @x, i32 3)", "x = 3;");
    check_value(
        "  %r = call i32 asm sideeffect \"movl $1, $0\", \"=r,*m\"(ptr elementtype(i32) @x)",
        "t1 = x;\n`a+0` = t1;",
    );
}

/// The flag that says whether the exchange happened comes as an output, or is stored by an instruction.
#[test]
fn compare_and_exchange() {
    let expected = "t1 = cas(x, 4, 5);\n`a+0` = t1;";
    let flag = "\"=*m,={@ccz},={ax},r,*m,2\"(ptr elementtype(i32) @x, i32 5, ptr elementtype(i32) @x, i32 4)";
    check_value(
        &format!(
            "  %c = call {{ i8, i32 }} asm sideeffect \"lock cmpxchgl $3, $0\", {flag}\n  \
             %b = extractvalue {{ i8, i32 }} %c, 0\n  %r = zext i8 %b to i32"
        ),
        expected,
    );
    // The accumulator is named twice.
    let named = flag.replace("*m,2", "*m,{ax}");
    check_value(
        &format!(
            "  %c = call {{ i8, i32 }} asm sideeffect \"lock cmpxchgl $3, $0\", {named}\n  \
             %b = extractvalue {{ i8, i32 }} %c, 0\n  %r = zext i8 %b to i32"
        ),
        expected,
    );
    let byte = flag.replace("{@ccz}", "q");
    check_value(
        &format!(
            "  %c = call {{ i8, i32 }} asm sideeffect \"lock cmpxchgl $3, $0; sete $1\", {byte}\n  \
             %b = extractvalue {{ i8, i32 }} %c, 0\n  %r = zext i8 %b to i32"
        ),
        expected,
    );
}

#[test]
fn values_can_be_hidden_from_the_compiler() {
    check(
        "  %v = load volatile i32, ptr @x\n  %r = call i32 asm sideeffect \"\", \"=r,0\"(i32 %v)\n  \
         store volatile i32 %r, ptr @x",
        "t1 = x;\nx = t1;",
    );
}

#[test]
fn other_instructions_are_refused() {
    let refuses = |template: &str, rest: &str| {
        let text = module(&format!("  call void asm sideeffect \"{template}\", {rest}\n  ret void"));
        let expected = format!("not supported: the inline assembly `{template}`, in `f`\n");
        assert_eq!(refused(&text, &threads(&["f"])), expected);
    };
    let memory = "\"=*m,*m\"(ptr elementtype(i32) @x, ptr elementtype(i32) @x)";
    // Not atomic, and so on: what is not known is not guessed.
    refuses("cmpxchgl %ecx, $0", memory);
    refuses("lock movl $0, $0", memory);
    refuses("lock btsl $$1, $0", memory);
    refuses("movntil $1, $0", memory);
    refuses("lock addl $$0, %gs:0", "\"\"()");
    refuses("incl ($0)", "\"r\"(i32 1)");
    // The accumulator is changed, but is only an input.
    refuses("lock cmpxchgl $1, ($0)", "\"r,r,{ax}\"(ptr @x, i32 1, i32 0)");
    refuses("lock xaddq $0, $1", "\"=*m,*m\"(ptr elementtype(i32) @x, ptr elementtype(i32) @x)");
}

#[test]
fn operations_of_the_linux_kernel() {
    let lkmm = |declaration: &str, line: &str| {
        let text = module(&format!("{line}\n  ret void"));
        let text = format!("{text}{declaration}\n");
        let found = crate::common::body_of(&text);
        found.strip_suffix("\nreturn;").unwrap_or(&found).to_owned()
    };
    let load = "declare i32 @__LKMM_LOAD(ptr, i32)";
    let store = "declare void @__LKMM_STORE(ptr, i32, i32)";
    let fence = "declare void @__LKMM_FENCE(i32)";
    let fetch = "declare i32 @__LKMM_ATOMIC_FETCH_OP(ptr, i32, i32, i32)";
    let found = lkmm(load, "  %r = call i32 @__LKMM_LOAD(ptr @x, i32 1)\n  store volatile i32 %r, ptr @x");
    assert_eq!(found, "t1 = x;\nx = t1;");
    assert_eq!(lkmm(store, "  call void @__LKMM_STORE(ptr @x, i32 2, i32 1)"), "x = 2;");
    assert_eq!(lkmm(store, "  call void @__LKMM_STORE(ptr @x, i32 2, i32 3)"), "sfence;\nx = 2;");
    assert_eq!(lkmm(fence, "  call void @__LKMM_FENCE(i32 4)"), "fence;");
    assert_eq!(lkmm(fence, "  call void @__LKMM_FENCE(i32 5)"), "sfence;");
    assert_eq!(lkmm(fence, "  call void @__LKMM_FENCE(i32 6)"), "return;");
    let or = "  %r = call i32 @__LKMM_ATOMIC_FETCH_OP(ptr @x, i32 2, i32 0, i32 3)";
    assert_eq!(lkmm(fetch, or), "fetch_or(x, 2);");
    let rcu = format!("{}{fence}\n", module("  call void @__LKMM_FENCE(i32 7)\n  ret void"));
    assert_eq!(refused(&rcu, &threads(&["f"])), "not supported: read-copy-update, in `f`\n");
}
