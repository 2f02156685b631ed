//! Instructions and what they become.

use crate::common::body;

#[track_caller]
fn check(lines: &str, expected: &str) {
    let found = body(&format!("{lines}\n  ret void"));
    let found = found.strip_suffix("\nreturn;").unwrap_or(&found);
    assert_eq!(found, expected, "\n{found}");
}

#[test]
fn accesses_follow_the_mapping() {
    let store = |how: &str, order: &str| format!("  store {how} i32 1, ptr @x {order}, align 4");
    check(&store("volatile", ""), "x = 1;");
    check(&store("atomic", "monotonic"), "x = 1;");
    check(&store("atomic", "release"), "sfence;\nx = 1;");
    check(&store("atomic", "seq_cst"), "sfence;\nx = 1;\nfence;");
    check("  fence seq_cst", "fence;");
    check("  fence release", "sfence;");
    check("  fence acq_rel", "sfence;");
    check("  fence acquire", "return;");
    check("  fence syncscope(\"singlethread\") seq_cst", "return;");
    check("  %r = atomicrmw add ptr @x, i32 2 monotonic, align 4", "fetch_add(x, 2);");
    check("  %r = atomicrmw xchg ptr @x, i32 2 monotonic, align 4", "xchg(x, 2);");
    check("  %r = cmpxchg ptr @x, i32 0, i32 1 monotonic monotonic, align 4", "cas(x, 0, 1);");
    check(
        "  call void asm sideeffect \"\", \"~{memory}\"()\n  call void asm sideeffect \"mfence\", \"\"()",
        "fence;",
    );
}

/// The old value is needed only where it is used.
#[test]
fn compare_and_exchange_returns_the_old_value() {
    check(
        "  %r = cmpxchg ptr @x, i32 0, i32 1 seq_cst seq_cst, align 4\n  %o = extractvalue { i32, i1 } %r, 0\n  \
         store volatile i32 %o, ptr @a",
        "atomic {\n    t1 = x;\n    if t1 == 0 {\n        x = 1;\n    }\n}\n`a+0` = t1;",
    );
}

#[test]
fn arithmetic_wraps_or_is_checked() {
    let unary = |operation: &str| {
        format!("  %v = load volatile i32, ptr @x\n  %r = {operation}\n  store volatile i32 %r, ptr @x")
    };
    check(&unary("add i32 %v, 1"), "t1 = x;\nx = t1 +% 1;");
    check(&unary("add nsw i32 %v, 1"), "t1 = x;\nassert(t1 <= 2147483646) else overflow;\nx = t1 +% 1;");
    check(&unary("sub nsw i32 0, %v"), "t1 = x;\nassert(0 -% t1 <= 2147483647) else overflow;\nx = 0 -% t1;");
    check(&unary("lshr i32 %v, 3"), "t1 = x;\nx = (t1 & 4294967295) >>% 3;");
    check(&unary("udiv i32 %v, 3"), "t1 = x;\nx = (t1 & 4294967295) /% 3;");
    check(&unary("shl i32 1, %v"), "t1 = x;\nassert(t1 <% 32) else shift;\nx = 1 <<% t1;");
    check(&unary("xor i32 %v, -1"), "t1 = x;\nx = t1 ^ -1;");
}

#[test]
fn pointers_are_bytes() {
    check(
        "  %p = load ptr, ptr @p\n  %q = getelementptr i32, ptr %p, i64 2\n  store volatile i32 7, ptr %q",
        "t1 = p;\n*((t1 +% 8) *% 8 +% 2) = 7;",
    );
    check("  store volatile i32 7, ptr null", "*2 = 7;");
}

#[test]
fn loops_that_only_wait_become_waits() {
    check(
        "  br label %l\nl:\n  %v = load atomic i32, ptr @x acquire, align 4\n  %c = icmp eq i32 %v, 0\n  \
         br i1 %c, label %l, label %e\ne:",
        "await x != 0;",
    );
    check(
        "  br label %l\nl:\n  %v = atomicrmw xchg ptr @x, i32 1 acquire, align 4\n  %c = icmp eq i32 %v, 0\n  \
         br i1 %c, label %e, label %l\ne:",
        "await xchg(x, 1) == 0;",
    );
}

#[test]
fn uninitialised_locals_are_checked_where_they_may_be() {
    check(
        "  %l = alloca i32\n  store i32 3, ptr %l\n  %v = load i32, ptr %l\n  store volatile i32 %v, ptr @x",
        "x = 3;",
    );
    check(
        "  %l = alloca i32\n  %c = call i32 @__VERIFIER_nondet_bool()\n  %b = icmp ne i32 %c, 0\n  \
         br i1 %b, label %s, label %e\ns:\n  store i32 3, ptr %l\n  br label %e\ne:\n  %v = load i32, ptr %l\n  \
         store volatile i32 %v, ptr @x",
        "t1 = any(0..1);\nt2 = -8381779389105455391;\nif t1 {\n    t2 = 3;\n}\n\
         assert(t2 != -8381779389105455391) else initialised;\nx = t2;",
    );
}

/// Parts of a local and wholes of it, of any sizes, agree with memory.
#[test]
fn parts_of_locals_are_bits_of_registers() {
    check(
        "  %l = alloca { i32, i32 }\n  store i64 8589934593, ptr %l\n  %h = getelementptr i8, ptr %l, i64 4\n  \
         %v = load i32, ptr %h\n  store volatile i32 %v, ptr @x\n  store i8 5, ptr %h\n  %w = load i64, ptr %l\n  \
         store volatile i64 %w, ptr @y",
        "x = 2;\ny = 21474836481;",
    );
}

#[test]
fn assertions_and_assumptions() {
    check(
        "  %v = load volatile i32, ptr @x\n  call void @__VERIFIER_assume(i32 %v)\n  %c = icmp eq i32 %v, 3\n  \
         br i1 %c, label %e, label %a\na:\n  call void @abort()\n  unreachable\ne:",
        "t1 = x;\nassume(t1 != 0);\nassert(t1 == 3) else no_abort;",
    );
}

/// A local whose address is kept is marked when its function returns, also that of a thread, and later accesses
/// check the mark: loads and stores.
#[test]
fn locals_end_with_their_function() {
    let kept = "  %l = alloca i32\n  store i32 1, ptr %l\n  store volatile ptr %l, ptr @p";
    let found = body(&format!("{kept}\n  ret void"));
    assert!(found.contains(&format!("temporary = {};", palisade_c::FREED)), "{found}");
    let store = "  %q = load volatile ptr, ptr @p\n  store volatile i32 2, ptr %q";
    let found = body(&format!("{kept}\n{store}\n  ret void"));
    let check = format!("!= {}) else not_freed;", palisade_c::FREED);
    assert!(found.contains(&check), "{found}");
}
