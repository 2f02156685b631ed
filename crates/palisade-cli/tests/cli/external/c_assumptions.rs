//! What an answer about a C program rests on, and only those answers that do.

use crate::common::Scratch;

const LAYOUT: &str = "assuming: one layout of memory: what the program does depends on the bits or the order of \
                      addresses at line 4\n";

/// Whether the answer about a program, which is `safe`, rests on one layout of memory.
fn check(scratch: &Scratch, name: &str, code: &str, expected: bool) {
    let headers = "#include <assert.h>\n#include <stdint.h>\n#include <stdlib.h>\n";
    std::fs::write(scratch.path(name), format!("{headers}{code}\n")).expect("a file can be written");
    let ran = scratch.run(&["check", name]).exits(0);
    assert!(ran.stdout.starts_with("safe"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout.contains("one layout of memory"), expected, "{name}: {}", ran.stdout);
    assert_eq!(ran.stdout.contains(LAYOUT), expected, "{name}: {}", ran.stdout);
}

#[test]
fn what_addresses_are_as_numbers() {
    let scratch = Scratch::new("c_layout");
    let node = "struct node { struct node *next; long value; }; ";
    let run = |name: &str, code: &str, expected| check(&scratch, name, code, expected);
    run("bits.c", "int x; int main(void) { assert(((uintptr_t)&x & 0xff0) != 0x40); return 0; }", true);
    run("order.c", "int x, y; int main(void) { int *p = &x, *q = &y; assert(p < q); return 0; }", true);
    run("hash.c", "int x, t[8]; int main(void) { t[((uintptr_t)&x >> 4) % 8] = 1; return 0; }", true);
    run(
        "narrow.c",
        "int x; int main(void) { unsigned n = (unsigned)(uintptr_t)&x; assert(n * 3 != 5); return 0; }",
        true,
    );
    run(
        "function.c",
        "static void f(void) {} int main(void) { assert(((uintptr_t)f & 0x70) == 0); return 0; }",
        true,
    );
    run(
        "kept.c",
        &format!(
            "{node}static uintptr_t kept; int main(void) {{ struct node *p = malloc(sizeof *p); kept = (uintptr_t)p; free(p); int t[7]; t[kept % 7] = 1; assert(t[kept % 7] == 1); return 0; }}"
        ),
        true,
    );
    // What is the same wherever objects lie.
    run(
        "equal.c",
        "int x, y; int *p = &x; int main(void) { assert(p != &y && p == &x && p); return 0; }",
        false,
    );
    run(
        "inside.c",
        "int a[4]; int main(void) { int s = 0; for (int *p = a, *end = a + 4; p < end; p++) s += (int)(end - p); assert(s == 10); return 0; }",
        false,
    );
    run(
        "tags.c",
        &format!(
            "{node}static _Atomic(uintptr_t) top; int main(void) {{ struct node *p = malloc(sizeof *p); p->value = 3; p->next = 0; top = (uintptr_t)p | 1; uintptr_t t = top; assert(t & 1); struct node *q = (struct node *)(t & ~(uintptr_t)1); assert(q->value * 2 == 6 && q->value < 4); free(q); return 0; }}"
        ),
        false,
    );
    run(
        "upper.c",
        &format!(
            "{node}int main(void) {{ struct node *p = malloc(sizeof *p); uint64_t w = (uint64_t)7 << 48 | (uint64_t)p; struct node *q = (struct node *)(w << 16 >> 16); q->value = 1; assert(p->value == 1 && w >> 48 == 7); free(p); return 0; }}"
        ),
        false,
    );
    run(
        "numbers.c",
        "int main(void) { void *p = (void *)(intptr_t)5; int n = (int)(intptr_t)p; assert(n * 3 == 15 && n < 6); return 0; }",
        false,
    );
    run(
        "aligned.c",
        "_Alignas(4096) char page[4096]; int main(void) { char *p = page + 9; assert(((uintptr_t)p & 4095) == 9); return 0; }",
        false,
    );
}

#[test]
fn what_the_program_is_started_with() {
    let code = "#include <assert.h>\nint main(int argc, char **argv) { assert(argc LESS 2 && argv[0][0] && !argv[1]); return 0; }\n";
    let scratch = Scratch::new("c_arguments").file("main.c", code);
    let note = "assuming: `main` gets no arguments but the name of the program (`argc` is 1)\n";
    let compiled = |what: &str| format!("assuming: the program is compiled with `-DLESS={what}`\n");
    let safe = scratch.run(&["check", "main.c", "--", "-DLESS=<"]).exits(0);
    assert!(safe.stdout.contains(note) && safe.stdout.contains(&compiled("<")), "{}", safe.stdout);
    let violated = scratch.run(&["check", "main.c", "--", "-DLESS=>"]).exits(1);
    assert!(
        violated.stdout.contains(note) && violated.stdout.contains(&compiled(">")),
        "{}",
        violated.stdout
    );
    let json = scratch.run(&["check", "--format", "json", "main.c", "--", "-DLESS=>"]).exits(1);
    assert!(json.stdout.contains("`argc` is 1"), "{}", json.stdout);
}

#[test]
fn assertions_that_are_true_or_turned_off() {
    let check = |name: &str, code: &str, options: &[&str], expected: Option<&str>| {
        let scratch = Scratch::new(name).file("main.c", format!("#include <assert.h>\n{code}\n"));
        let ran = scratch.run(&[&["check", "main.c", "--"], options].concat()).exits(0);
        match expected {
            Some(text) => assert!(ran.stderr.contains(text), "{}", ran.stderr),
            None => assert!(!ran.stderr.contains("no-property"), "{}", ran.stderr),
        }
    };
    let gone = Some("no assertion is left in the program after compilation");
    check("c_folded", "int main(void) { assert(sizeof(int) == 4); return 0; }", &[], gone);
    let known = "static int f(int x) { return 2 * x; }\nint main(void) { assert(f(2) == 4); return 0; }";
    check("c_known", known, &[], None);
    check("c_disabled", known, &["-DNDEBUG"], gone);
    check("c_nothing", "int main(void) { return 0; }", &[], Some("the program states no property"));
}

#[test]
fn blocks_that_thread_locals_lead_to_are_not_leaked() {
    let code =
        "#include <stdlib.h>\nLOCAL int *p;\nint main(void) { p = malloc(4); *p = 1; p = KEPT; return 0; }\n";
    let scratch = Scratch::new("c_local_leaks").file("main.c", code);
    let leaks = |local: &str, kept: &str| {
        let ran =
            scratch.run(&["check", "main.c", "--", &format!("-DLOCAL={local}"), &format!("-DKEPT={kept}")]);
        ran.exits(0).stderr.contains("warning[leak]")
    };
    assert!(!leaks("static _Thread_local", "p"));
    assert!(leaks("static _Thread_local", "0"));
    assert!(!leaks("static", "p"));
    assert!(leaks("static", "0"));
}

#[test]
fn variables_that_are_made_again() {
    let scratch = Scratch::new("c_again");
    let check = |name: &str, code: &str, expected: Option<&str>| {
        std::fs::write(scratch.path(name), format!("{code}\n")).expect("a file can be written");
        let ran = scratch.run(&["check", name]).exits(0);
        let note =
            ran.stdout.lines().find(|line| line.contains(" is kept from") || line.contains("literals"));
        assert_eq!(note, expected, "{name}: {}{}", ran.stdout, ran.stderr);
    };
    let turn = "assuming: no pointer to `x` is kept from one iteration of a loop, or one call, to the next";
    let volatile = "volatile int n = 3;\n";
    check(
        "turn.c",
        &format!(
            "{volatile}int main(void) {{ int *p = 0; for (int i = 0; i < n; i++) {{ int x = i; if (p) *p = 7; p = &x; }} return 0; }}"
        ),
        Some(turn),
    );
    check(
        "call.c",
        &format!(
            "{volatile}int *p;\nstatic void f(void) {{ int x = 1; if (p) *p = 7; p = &x; }}\nint main(void) {{ for (int i = 0; i < n; i++) f(); return 0; }}"
        ),
        Some(turn),
    );
    check(
        "used.c",
        &format!(
            "{volatile}int main(void) {{ int s = 0; for (int i = 0; i < n; i++) {{ int x = i; int *p = &x; s = *p; }} return s; }}"
        ),
        None,
    );
    let literal = "assuming: compound literals are not used after their block has ended";
    let program = |body: &str| {
        format!(
            "struct s {{ int a; }};\nstatic int f(struct s *p) {{ return p->a; }}\nint main(void) {{ {body} return 0; }}"
        )
    };
    check("literal.c", &program("struct s *p; { p = &(struct s){ 3 }; } p->a = 4;"), Some(literal));
    check("value.c", &program("struct s x; { x = (struct s){ 3 }; } x.a = f(&(struct s){ 4 });"), None);
}
