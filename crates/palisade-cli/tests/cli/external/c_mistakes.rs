//! Mistakes that a C programmer makes, each beside a correct twin.

use crate::common::Scratch;

/// Checks a program with `-DWRONG`, which is `unsafe` with this message, and without, which is `safe`.
pub(super) fn check(scratch: &Scratch, name: &str, code: &str, expected: &str) {
    let headers = ["assert", "pthread", "stdatomic", "stdlib", "string", "threads"];
    let headers: String = headers.iter().map(|name| format!("#include <{name}.h>\n")).collect();
    let start =
        "#ifdef WRONG\n#define IF(wrong, right) wrong\n#else\n#define IF(wrong, right) right\n#endif\n";
    std::fs::write(scratch.path(name), format!("{headers}{start}{code}\n")).expect("a file can be written");
    let wrong = scratch.run(&["check", "-q", name, "--", "-DWRONG"]);
    let message = wrong.stdout.strip_prefix(&format!("unsafe  {name}: "));
    assert!(message.is_some_and(|message| message.starts_with(expected)), "{}{}", wrong.stdout, wrong.stderr);
    let right = scratch.run(&["check", "-q", name]);
    assert!(
        right.stdout.starts_with(&format!("safe  {name}: free of deadlocks")),
        "{}{}",
        right.stdout,
        right.stderr
    );
}

#[test]
fn variables_that_no_longer_exist() {
    let scratch = Scratch::new("c_lifetimes");
    check(
        &scratch,
        "block.c",
        "int main(void) { int *p, y = 2; { int x = 1; p = IF(&x, &y); } return *p; }",
        "use of the local variable `x` after its block has ended in main",
    );
    // In every iteration of a loop the variable is a new one, without a value.
    check(
        &scratch,
        "turns.c",
        "int n = 2;\nint main(void) { int s = 0;\n    for (int i = 0; i < n; i++) { int x; if (i IF(== 0, >= 0)) x = 1; s += x; }\n    return s; }",
        "use of an uninitialised value",
    );
    check(
        &scratch,
        "jumps.c",
        "int n = 3;\nstatic int f(void) { int s = 0, *p = &s;\n    for (int i = 0; i < n; i++) { int x = i; p = &x; if (x == 1) continue; if (x == 2) break; s += *p; }\n    \
         IF(, p = &s;) return *p; }\nint main(void) { assert(f() == 0); return 0; }",
        "use of the local variable `x` after its block has ended",
    );
    check(
        &scratch,
        "given.c",
        "static void *work(void *p) { *(int *)p = 1; return 0; }\n\
         int main(void) { pthread_t t; { int x = 0; pthread_create(&t, 0, work, &x); IF(, pthread_join(t, 0);) }\n    \
         IF(pthread_join(t, 0);, ) return 0; }",
        "use of the local variable `x` after its block has ended in work",
    );
    check(
        &scratch,
        "thread_local.c",
        "static _Thread_local int x;\nstatic int y;\nstatic int *_Atomic found;\n\
         static void *work(void *none) { x = 1; found = IF(&x, &y); return none; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); int *p = found; return *p; }",
        "use of the thread-local variable `x` after its thread has ended in main",
    );
}

#[test]
fn indices_and_writes_where_they_must_not_be() {
    let scratch = Scratch::new("c_places");
    check(
        &scratch,
        "member.c",
        "struct s { int a[2]; int b; } g;\nint n = IF(2, 1);\nint main(void) { g.b = 5; return g.a[n]; }",
        "array index out of bounds in main",
    );
    check(
        &scratch,
        "row.c",
        "int a[2][3];\nint n = IF(3, 2);\nint main(void) { return a[0][n]; }",
        "array index out of bounds in main",
    );
    check(
        &scratch,
        "negative.c",
        "int a[2][3];\nint n = IF(-1, 0);\nint main(void) { return a[1][n]; }",
        "array index out of bounds in main",
    );
    // One past the end is an address, but no place.
    check(
        &scratch,
        "end.c",
        "struct s { int a[2]; int b; } g;\nint main(void) { int *end = &g.a[2], s = 0;\n    \
         for (int *p = g.a; p IF(<=, <) end; p++) s += *p;\n    return IF(g.a[2], s); }",
        "array index out of bounds in main",
    );
    // Arrays of open length have as many elements as there is room for.
    check(
        &scratch,
        "open.c",
        "struct s { int n, a[]; };\nstruct old { int n, a[1]; };\n\
         int main(void) { struct s *p = malloc(sizeof *p + 8); struct old *q = malloc(sizeof *q + 4);\n    \
         p->a[IF(2, 1)] = 1; q->a[1] = 1; free(p); free(q); return 0; }",
        "access out of bounds",
    );
    check(
        &scratch,
        "constant.c",
        "IF(const,) int c = 1;\nint main(void) { *(int *)&c = 2; return 0; }",
        "write to a constant",
    );
    check(
        &scratch,
        "literal.c",
        "char s[] = \"abc\";\nint main(void) { char *p = IF(\"abc\", s); p[0] = 'x'; return 0; }",
        "write to a constant in main",
    );
    check(
        &scratch,
        "table.c",
        "static const int table[2] = { 1, 2 };\nstatic int copy[2];\nstatic int n = 1;\n\
         static void set(int *p, int v) { atomic_thread_fence(memory_order_seq_cst); p[n] = v; }\n\
         static void *work(void *p) { set(p, 3); return 0; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, work, IF((void *)table, copy)); pthread_join(t, 0); return table[0] - 1; }",
        "write to a constant in work",
    );
    check(
        &scratch,
        "overlap.c",
        "int a[4] = { 1, 2, 3, 4 };\nint main(void) { IF(memcpy, memmove)(&a[1], &a[0], 12); return 0; }",
        "memory that is copied overlaps its copy in main",
    );
    check(
        &scratch,
        "overlap_struct.c",
        "struct s { int a[2]; } g[3];\nint n = 1;\n\
         int main(void) { struct s *p = &g[0]; *p = *p; memcpy(&g[n], &g[n - 1], sizeof *p);\n    \
         memcpy((int *)&g[n] + IF(1, 2), &g[n], sizeof *p); return 0; }",
        "memory that is copied overlaps its copy in main",
    );
}

#[test]
fn strings_and_bytes() {
    let scratch = Scratch::new("c_strings");
    check(
        &scratch,
        "length.c",
        "char s[] = \"hello\";\nint main(void) { IF(s[5] = 'x';,) assert(strlen(s) == 5 && strchr(s, 'l') == s + 2 && !strchr(s, 'x')); return 0; }",
        "access out of bounds, just past the end of `s` (6 bytes) in main",
    );
    check(
        &scratch,
        "copy.c",
        "char b[IF(3, 4)];\nint main(void) { strcpy(b, \"abc\"); assert(strcmp(b, \"abc\") == 0 && strcmp(b, \"abd\") < 0); return 0; }",
        "access out of bounds, just past the end of `b` (3 bytes) in main",
    );
    check(
        &scratch,
        "compare.c",
        "char a[] = \"abcd\", b[] = \"abxd\";\nint main(void) { assert(memcmp(a, b, IF(3, 2)) == 0 && strncmp(a, b, 2) == 0 && abs(-3) == 3); return 0; }",
        "assertion failed in main",
    );
    check(
        &scratch,
        "race.c",
        "char s[] = \"ab\";\nstatic void *work(void *none) { s[0] = 'x'; return none; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); IF(, pthread_join(t, 0);)\n    \
         unsigned long n = strlen(s); IF(pthread_join(t, 0);, ) return n != 2; }",
        "data race on s[0]",
    );
    // What is allocated has the type of the variable that gets it.
    check(
        &scratch,
        "bytes.c",
        "int main(void) { char *p = malloc(4); p[0] = 1; p[IF(4, 3)] = 2; assert(p[0] == 1); free(p); return 0; }",
        "access out of bounds",
    );
    check(
        &scratch,
        "grow.c",
        "int main(void) { int *p = malloc(2 * sizeof *p); p[0] = 3; p[1] = 4;\n    \
         int *q = realloc(p, 3 * sizeof *q); assert(q[0] == 3 && q[1] == 4); q[2] = IF(*p, 5); free(q);\n    \
         q = realloc(0, sizeof *q); *q = 1; q = realloc(q, 2 * sizeof *q); free(q); return 0; }",
        "use after free: `heap#1+0` (allocated at line 12) in main",
    );
    check(
        &scratch,
        "grown.c",
        "int main(void) { int *p = malloc(sizeof *p); *p = 3; p = realloc(p, 2 * sizeof *p); IF(, p[1] = 1;)\n    \
         int s = p[0] + p[1]; free(p); return s; }",
        "use of an uninitialised value",
    );
    // A program's own function takes precedence.
    check(
        &scratch,
        "own.c",
        "char s[] = \"abc\";\nunsigned long strlen(const char *p) { return p != 0; }\nint main(void) { assert(strlen(s) IF(== 3, == 1)); return 0; }",
        "assertion failed in main",
    );
}

#[test]
fn handles_and_detached_threads() {
    let scratch = Scratch::new("c_handles");
    let work = "static void *work(void *none) { return none; }\n";
    let main = |body: &str| {
        format!("{work}int main(void) {{ pthread_t t; pthread_create(&t, 0, work, 0); {body} return 0; }}")
    };
    let message = "join or detach of a thread that was not started, or was joined or detached before in main";
    check(&scratch, "join.c", &main("IF(pthread_detach(t);,) pthread_join(t, 0);"), message);
    check(&scratch, "detach.c", &main("pthread_join(t, 0); IF(pthread_detach(t);,)"), message);
    check(&scratch, "twice.c", &main("pthread_detach(t); IF(pthread_detach(t);,)"), message);
    // Threads that are created as detached ones.
    let attribute = |state: &str, init: &str| {
        format!(
            "{work}int main(void) {{ pthread_t t; pthread_attr_t a; {init} pthread_attr_setdetachstate(&a, {state});\n    \
             pthread_create(&t, &a, work, 0); pthread_join(t, 0); pthread_attr_destroy(&a); return 0; }}"
        )
    };
    let states = "IF(PTHREAD_CREATE_DETACHED, PTHREAD_CREATE_JOINABLE)";
    check(&scratch, "attribute.c", &attribute(states, "pthread_attr_init(&a);"), message);
    let init = "IF(, pthread_attr_init(&a);)";
    check(
        &scratch,
        "no_attribute.c",
        &attribute("PTHREAD_CREATE_JOINABLE", init),
        "use of an uninitialised value",
    );
    // POSIX does not say that the handle is stored before the thread runs. C11 does.
    check(
        &scratch,
        "own.c",
        "static pthread_t t;\nstatic void *work(void *none) { pthread_t me = IF(t, pthread_self()); (void)me; return none; }\n\
         int main(void) { pthread_create(&t, 0, work, 0); pthread_join(t, 0); return 0; }",
        "data race on t: main (line 1",
    );
    check(
        &scratch,
        "own11.c",
        "static thrd_t t;\nstatic int x;\nstatic int work(void *none) { thrd_t me = t; (void)me; IF(x++;,) return 0; }\n\
         int main(void) { thrd_create(&t, work, 0); IF(x++;,) thrd_join(t, 0); return 0; }",
        "data race on x",
    );
}

/// The number of threads that were started before depends on a variable, so a thread may be started at several places,
/// each with a function and an argument of its own.
#[test]
fn threads_that_are_started_at_several_places() {
    let scratch = Scratch::new("c_started");
    check(
        &scratch,
        "argument.c",
        "int n = 1;\nstatic void *work(void *p) { assert(p != (void *)3); return 0; }\n\
         int main(void) { pthread_t t[1], u;\n    for (int i = 0; i < n; i++) pthread_create(&t[i], 0, work, (void *)1);\n    \
         pthread_create(&u, 0, work, (void *)IF(3, 2)); pthread_join(u, 0); return 0; }",
        "assertion failed in work",
    );
    check(
        &scratch,
        "function.c",
        "int n = 1;\nstatic void *work(void *p) { return p; }\nstatic void *other(void *p) { assert(IF(0, 1)); return p; }\n\
         int main(void) { pthread_t t[1], u;\n    for (int i = 0; i < n; i++) pthread_create(&t[i], 0, work, 0);\n    \
         pthread_create(&u, 0, other, 0); pthread_join(u, 0); return 0; }",
        "assertion failed in work|other",
    );
    check(
        &scratch,
        "condition.c",
        "int go = 0, a, b;\nstatic void *f(void *p) { a = 1; return p; }\nstatic void *g(void *p) { b = 1; return p; }\n\
         int main(void) { pthread_t u, v;\n    if (go) pthread_create(&u, 0, f, 0);\n    pthread_create(&v, 0, g, 0);\n    \
         pthread_join(v, 0); assert(b == IF(0, 1)); return 0; }",
        "assertion failed in main",
    );
    check(
        &scratch,
        "result.c",
        "int n = 1;\nstatic void *work(void *p) { return p; }\n\
         int main(void) { pthread_t t[1], u; void *r;\n    \
         for (int i = 0; i < n; i++) pthread_create(&t[i], 0, work, (void *)1);\n    \
         pthread_create(&u, 0, work, (void *)2); pthread_join(u, &r); assert(r == (void *)IF(1, 2)); return 0; }",
        "assertion failed in main",
    );
}

/// Sizes that are known once functions are inlined, and structs that are only partly written.
#[test]
fn copies_of_other_sizes() {
    let scratch = Scratch::new("c_copies");
    check(
        &scratch,
        "size.c",
        "static void copy(void *to, const void *from, size_t n) { memcpy(to, from, n); }\nint x[2], y[2] = {1, 2};\n\
         int main(void) { copy(x, y, IF(4, 8)); assert(x[1] == 2); return 0; }",
        "assertion failed in main",
    );
    check(
        &scratch,
        "partly.c",
        "struct node { int k; struct node *next; };\n\
         int main(void) { struct node *a = malloc(sizeof *a), *b = malloc(sizeof *b);\n    a->k = 1; IF(, a->next = 0;) *b = *a;\n    \
         assert(b->k == 1); if (b->next) b->k = 2; free(a); free(b); return 0; }",
        "use of an uninitialised value: `node#2.next` in main",
    );
}

/// Functions of threads that are read from memory: a null pointer, and one without parameters.
#[test]
fn functions_of_threads_that_are_computed() {
    let scratch = Scratch::new("c_computed");
    check(
        &scratch,
        "null.c",
        "typedef void *(*function)(void *);\nstatic void *work(void *p);\nstatic _Atomic(function) f IF(, = work);\n\
         static void *work(void *p) { atomic_store(&f, work); return p; }\n\
         int main(void) { pthread_t t, u; pthread_create(&u, 0, work, 0); pthread_create(&t, 0, atomic_load(&f), 0);\n    \
         pthread_join(t, 0); pthread_join(u, 0); return 0; }",
        "null pointer dereferenced in work",
    );
    check(
        &scratch,
        "parameters.c",
        "static int hit, k;\nstatic void *a(void *p) { k = 1; return p; }\nstatic void *b() { hit = 1; return 0; }\n\
         static void *(*functions[2])() = { a, b };\n\
         int main(void) { pthread_t t;\n    \
         for (int i = 0; i < 2; i++) { pthread_create(&t, 0, functions[k], 0); pthread_join(t, 0); }\n    \
         assert(hit == IF(0, 1)); return 0; }",
        "assertion failed in main",
    );
}

/// Threads that the first function of a library starts, and the threads of the library, have thread-local variables of
/// their own.
#[test]
fn threads_of_libraries_are_told_apart() {
    let scratch = Scratch::new("c_numbers");
    let code = "#include <assert.h>\n#include <pthread.h>\nstatic _Thread_local int own; static int y;\n\
        static void *leaf(void *p) { own = 5; return p; }\n\
        static void *work(void *p) { if (p == (void *)8) { pthread_t t; pthread_create(&t, 0, leaf, p); pthread_join(t, 0); } return p; }\n\
        void setup(void) { for (long i = 0; i < 9; i++) { pthread_t t; pthread_create(&t, 0, work, (void *)i); pthread_join(t, 0); } }\n\
        void one(void) { int *p = &own; *p += 1; y = *p; }\nvoid last(void) { assert(y == WANT); }\n";
    std::fs::write(scratch.path("library.c"), code).expect("a file can be written");
    for (wanted, verdict) in [("-DWANT=1", "safe"), ("-DWANT=6", "unsafe")] {
        let ran = scratch.run(&[
            "check",
            "-q",
            "library.c",
            "--init",
            "setup",
            "--thread",
            "one",
            "--final",
            "last",
            "--",
            wanted,
        ]);
        assert!(ran.stdout.starts_with(&format!("{verdict}  library.c: ")), "{}{}", ran.stdout, ran.stderr);
    }
}
