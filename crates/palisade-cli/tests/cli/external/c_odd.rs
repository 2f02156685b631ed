//! Odd C programs: what is understood is judged, and everything else is refused by name and line.

use crate::common::Scratch;

/// What all programs include.
const HEADERS: [&str; 14] = [
    "assert",
    "errno",
    "pthread",
    "setjmp",
    "signal",
    "stdarg",
    "stdatomic",
    "stdint",
    "stdio",
    "stdlib",
    "string",
    "sys/select",
    "time",
    "unistd",
];

/// Writes programs, and checks them all at once.
fn run(scratch: &Scratch, programs: &[(&str, &str, &str)]) -> crate::common::Ran {
    let headers: String = HEADERS.iter().map(|name| format!("#include <{name}.h>\n")).collect();
    let mut arguments = vec!["check".to_owned(), "-q".to_owned()];
    for (name, code, _) in programs {
        let name = format!("{name}.c");
        std::fs::write(scratch.path(&name), format!("{headers}{code}\n")).expect("a file can be written");
        arguments.push(name);
    }
    scratch.run(&arguments.iter().map(String::as_str).collect::<Vec<&str>>())
}

/// What programs of one verdict do.
fn check(scratch: &Scratch, verdict: &str, programs: &[(&str, &str, &str)]) {
    let ran = run(scratch, programs);
    for (name, _, expected) in programs {
        let line = format!("{verdict}  {name}.c: {expected}");
        assert!(
            ran.stdout.lines().any(|found| found.starts_with(&line)),
            "{line}\n{}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn what_is_understood() {
    let finishes = "free of deadlocks, `main` can always finish";
    let programs: Vec<(&str, &str, &str)> =
        UNDERSTOOD.iter().map(|(name, code)| (*name, *code, finishes)).collect();
    check(&Scratch::new("c_understood"), "safe", &programs);
}

#[test]
fn what_is_wrong() {
    check(&Scratch::new("c_wrong"), "unsafe", WRONG);
}

#[test]
fn what_is_refused_by_name_and_line() {
    let ran = run(&Scratch::new("c_odd_refused"), REFUSED).exits(2);
    assert_eq!(ran.stdout, "");
    for (name, _, expected) in REFUSED {
        let found = ran.stderr.split("error[c-unsupported]: ").any(|message| {
            message.starts_with(&format!("not supported: {expected}"))
                && message.contains(&format!("--> {name}.c:"))
        });
        assert!(found, "{name}: {expected}\n{}", ran.stderr);
    }
}

const UNDERSTOOD: &[(&str, &str)] = &[
    (
        "bitfield",
        "struct s { unsigned a:3, b:5; int c:4; } g;\nint main(void) { g.a = 7; g.b = 17; g.c = -3; assert(g.a == 7 && g.b == 17 && g.c == -3); g.a++; assert(g.a == 0 && g.b == 17); return 0; }",
    ),
    (
        "union",
        "union u { int i; unsigned char c[4]; } g;\nint main(void) { g.i = 0x01020304; assert(g.c[0] == 4); return 0; }",
    ),
    (
        "union2",
        "union u { long l; int *p; }; int x;\nint main(void) { union u v; v.p = &x; assert(v.l != 0); *(v.p) = 1; return 0; }",
    ),
    (
        "switch",
        "int n = 2;\nint main(void) { int r = 0; switch (n) { case 1: r = 1; break; case 2: r = 2; case 3: r += 3; break; default: r = 9; } assert(r == 5); return 0; }",
    ),
    (
        "switchrange",
        "unsigned n = 250;\nint main(void) { int r = 0; switch ((unsigned char)n) { case 200 ... 255: r = 1; break; default: r = 2; } assert(r == 1); return 0; }",
    ),
    (
        "byvalue",
        "struct s { int a[5]; long b; }; struct s f(struct s x) { x.a[1]++; x.b = 7; return x; }\nint main(void) { struct s v = {{1,2,3,4,5},6}; struct s w = f(v); assert(w.a[1] == 3 && v.a[1] == 2 && w.b == 7); return 0; }",
    ),
    (
        "small_byvalue",
        "struct s { int a, b; }; struct s f(struct s x) { x.a++; return x; }\nint main(void) { struct s v = {1,2}; struct s w = f(v); assert(w.a == 2 && w.b == 2); return 0; }",
    ),
    (
        "fptable",
        "int add(int a, int b) { return a+b; } int sub(int a, int b) { return a-b; } int (*ops[2])(int,int) = { add, sub };\nint n = 1;\nint main(void) { assert(ops[n](5,3) == 2 && ops[1-n](5,3) == 8); return 0; }",
    ),
    (
        "static_local",
        "int f(void) { static int n; return ++n; }\nint main(void) { f(); assert(f() == 2); return 0; }",
    ),
    (
        "generic",
        "#define K(x) _Generic((x), int: 1, long: 2, default: 3)\nint main(void) { assert(K(1L) == 2 && K('a') == 1); return 0; }",
    ),
    (
        "flex",
        "struct s { int n; char d[]; };\nint main(void) { struct s *p = malloc(sizeof *p + 4); p->n = 4; p->d[3] = 1; assert(p->d[3] == 1); free(p); return 0; }",
    ),
    (
        "atomic_struct",
        "struct s { int a, b; }; _Atomic struct s g;\nint main(void) { struct s v = {1,2}; atomic_store(&g, v); struct s w = atomic_load(&g); assert(w.a == 1 && w.b == 2); return 0; }",
    ),
    (
        "weakdef",
        "__attribute__((weak)) int f(void) { return 3; }\nint main(void) { assert(f() == 3); return 0; }",
    ),
    (
        "alias",
        "int f(void) { return 3; } int g(void) __attribute__((alias(\"f\")));\nint main(void) { assert(g() == 3); return 0; }",
    ),
    (
        "alias_var",
        "int x = 3; extern int y __attribute__((alias(\"x\")));\nint main(void) { y = 4; assert(x == 4); return 0; }",
    ),
    (
        "cleanup",
        "int n; void c(int *p) { n += *p; }\nint main(void) { { __attribute__((cleanup(c))) int x = 3; x++; } assert(n == 4); return 0; }",
    ),
    (
        "sigfence",
        "int x;\nint main(void) { x = 1; atomic_signal_fence(memory_order_seq_cst); assert(x == 1); return 0; }",
    ),
    (
        "comma",
        "int main(void) { int a = (1, 2), b = a ? a : 3; a = b = 4; assert(a == 4 && (a || b)); return 0; }",
    ),
    (
        "ptrcmp",
        "int a[3];\nint main(void) { int *p = &a[0], *q = &a[2]; assert(q > p && q - p == 2); return 0; }",
    ),
    ("enum", "enum e { A, B = 5, C }; enum e g = C;\nint main(void) { assert(g == 6); return 0; }"),
    (
        "const",
        "static const struct { int a; const char *s; } t[] = { {1, \"x\"}, {2, \"yz\"} }; int n = 1;\nint main(void) { assert(t[n].a == 2 && t[n].s[1] == 'z'); return 0; }",
    ),
    ("volatile", "volatile int v;\nint main(void) { v = 3; int x = v; assert(x == 3); return 0; }"),
    (
        "casts",
        "int n = -1;\nint main(void) { unsigned char c = n; short s = (short)70000; unsigned u = n; long l = n; unsigned long ul = u; assert(c == 255 && s == 4464 && l == -1 && ul == 4294967295UL); return 0; }",
    ),
    (
        "atomic_flag",
        "atomic_flag f = ATOMIC_FLAG_INIT;\nint main(void) { assert(!atomic_flag_test_and_set(&f)); assert(atomic_flag_test_and_set(&f)); atomic_flag_clear(&f); return 0; }",
    ),
    ("atomic_bool", "atomic_bool b;\nint main(void) { b = 5; assert(b == 1); return 0; }"),
    (
        "atomic_ptr",
        "int a[3]; _Atomic(int*) p = a;\nint main(void) { atomic_fetch_add(&p, 1); assert(p == a + 1); return 0; }",
    ),
    ("stmtexpr", "int main(void) { int x = ({ int y = 3; y + 1; }); assert(x == 4); return 0; }"),
    (
        "nested",
        "struct a { struct { int x, y; } p[2]; union { int i; float f; } u; } g;\nint main(void) { g.p[1].y = 3; g.u.i = 1; assert(g.p[1].y == 3); return 0; }",
    ),
    (
        "packed",
        "struct __attribute__((packed)) s { char a; int b; } g;\nint main(void) { g.b = 7; assert(g.b == 7); return 0; }",
    ),
    (
        "recursion",
        "int n = 3; int f(int k) { return k ? k * f(k-1) : 1; }\nint main(void) { assert(f(n) == 6); return 0; }",
    ),
    (
        "thread_ret",
        "void *w(void *p) { return (void*)42; }\nint main(void) { pthread_t t; void *r; pthread_create(&t,0,w,0); pthread_join(t,&r); assert((long)r == 42); return 0; }",
    ),
    (
        "exit_thread",
        "void *w(void *p) { exit(0); }\nint main(void) { pthread_t t; pthread_create(&t,0,w,0); pthread_join(t,0); assert(0); }",
    ),
    (
        "once_twice",
        "int n; pthread_once_t o = PTHREAD_ONCE_INIT; void f(void) { n++; }\nint main(void) { pthread_once(&o, f); pthread_once(&o, f); assert(n == 1); return 0; }",
    ),
    (
        "wchar",
        "#include <wchar.h>\nint main(void) { wchar_t s[] = L\"ab\"; assert(s[1] == L'b'); return 0; }",
    ),
    (
        "gotoloop",
        "int main(void) { int i = 0; again: i++; if (i < 5) goto again; assert(i == 5); return 0; }",
    ),
    ("inline", "static inline int f(int x) { return x*2; }\nint main(void) { assert(f(2) == 4); return 0; }"),
    ("calloc0", "int main(void) { int *p = calloc(2, 4); assert(p[1] == 0); free(p); return 0; }"),
    ("usleep", "int main(void) { usleep(10); struct timespec t = {0, 5}; nanosleep(&t, 0); return 0; }"),
];

const WRONG: &[(&str, &str, &str)] = &[
    (
        "bitfield_race",
        "struct s { unsigned a:3, b:5; } g;\nvoid *w(void *p) { g.a = 1; return p; }\nint main(void) { pthread_t t; pthread_create(&t,0,w,0); g.b = 2; pthread_join(t,0); return 0; }",
        "data race on g.a/b",
    ),
    ("fpnull", "int (*f)(void);\nint main(void) { return f(); }", "null pointer dereferenced"),
    (
        "fpwrong",
        "int g(int x) { return x; }\nint main(void) { int (*f)(void) = (int(*)(void))g; return f(); }",
        "the code of function `g` accessed as data",
    ),
    (
        "uninit_arg",
        "int f(int x) { return 0; }\nint main(void) { int x; return f(x); }",
        "use of an uninitialised value",
    ),
    ("overflow", "int n = 2147483647;\nint main(void) { n++; return 0; }", "signed integer overflow"),
    ("abs", "int n = -2147483647 - 1;\nint main(void) { return abs(n) < 0; }", "signed integer overflow"),
    ("freestack", "int main(void) { int x; free(&x); return 0; }", "double or invalid free"),
    ("freemid", "int main(void) { int *p = malloc(8); free(p+1); return 0; }", "double or invalid free"),
    (
        "past_the_end",
        "void f(int n) { int a[4]; for (int i = 0; i <= n; i++) a[i] = i; }\nint main(void) { f(4); return 0; }",
        "array index out of bounds",
    ),
    (
        "nanosleep_bad",
        "int main(void) { struct timespec t; t.tv_sec = 0; nanosleep(&t, 0); return 0; }",
        "use of an uninitialised value",
    ),
];

const REFUSED: &[(&str, &str, &str)] = &[
    (
        "cache_line",
        "static struct __attribute__((packed)) { char pad[60]; volatile long word; } l;\nstatic void *t(void *a) { l.word = -1; return a; }\nint main(void) { pthread_t p; pthread_create(&p, 0, t, 0); long seen = l.word; pthread_join(p, 0); assert(seen == 0 || seen == -1); return 0; }",
        "an access to 8 bytes of `l` that may cross the end of a cache line",
    ),
    (
        "vla",
        "int n = 3;\nint main(void) { int a[n]; a[0] = 1; return a[0] - 1; }",
        "a local array, or `alloca`, whose size is not a constant",
    ),
    (
        "vararg",
        "int sum(int n, ...) { va_list a; va_start(a, n); int s = va_arg(a, int); va_end(a); return s; }\nint main(void) { assert(sum(1, 5) == 5); return 0; }",
        "the variadic function `sum`",
    ),
    (
        "setjmp",
        "jmp_buf b;\nint main(void) { if (setjmp(b) == 0) longjmp(b, 1); return 0; }",
        "the function `_setjmp`",
    ),
    (
        "signal",
        "volatile sig_atomic_t x; void h(int s) { x = 1; }\nint main(void) { signal(SIGINT, h); raise(SIGINT); assert(x == 1); return 0; }",
        "the function `signal`",
    ),
    (
        "cgoto",
        "int main(void) { void *t[] = { &&a, &&b }; goto *t[1]; a: return 1; b: return 0; }",
        "addresses of labels",
    ),
    (
        "atomic_struct16",
        "struct s { long a, b; }; _Atomic struct s g;\nint main(void) { struct s v = {1,2}; atomic_store(&g, v); struct s w = atomic_load(&g); assert(w.a == 1 && w.b == 2); return 0; }",
        "the function `__atomic_store`",
    ),
    (
        "longdouble",
        "long double x = 1.0L;\nint main(void) { x += 1; assert(x == 2); return 0; }",
        "floating-point numbers",
    ),
    ("float", "float x;\nint main(void) { x = 1.5f; assert(x > 1); return 0; }", "floating-point numbers"),
    ("float_copy", "double x = 1.5, y;\nint main(void) { y = x; return 0; }", "floating-point numbers"),
    (
        "weak",
        "__attribute__((weak)) int f(void);\nint main(void) { if (f) return f(); return 0; }",
        "the function `f`",
    ),
    (
        "atexit",
        "void f(void) { assert(0); }\nint main(void) { atexit(f); return 0; }",
        "the function `atexit`",
    ),
    (
        "cancel",
        "void *w(void *p) { for(;;) pthread_testcancel(); return 0; }\nint main(void) { pthread_t t; pthread_create(&t,0,w,0); pthread_cancel(t); pthread_join(t,0); return 0; }",
        "the function `pthread_cancel`",
    ),
    (
        "key",
        "pthread_key_t k;\nint main(void) { pthread_key_create(&k, 0); pthread_setspecific(k, &k); assert(pthread_getspecific(k) == &k); return 0; }",
        "the function `pthread_key_create`",
    ),
    (
        "select",
        "int main(void) { struct timeval tv = {0, 1}; select(0,0,0,0,&tv); return 0; }",
        "the function `select`",
    ),
    (
        "clock",
        "int main(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec < 0; }",
        "the function `clock_gettime`",
    ),
    ("rand", "int main(void) { srand(1); int r = rand(); assert(r >= 0); return 0; }", "the function `rand`"),
    ("getenv", "int main(void) { char *p = getenv(\"HOME\"); return p == 0; }", "the function `getenv`"),
    (
        "qsort",
        "int cmp(const void *a, const void *b) { return *(int*)a - *(int*)b; }\nint main(void) { int a[3] = {3,1,2}; qsort(a,3,4,cmp); assert(a[0] == 1); return 0; }",
        "the function `qsort`",
    ),
    (
        "strtol",
        "int main(void) { long v = strtol(\"12\", 0, 10); assert(v == 12); return 0; }",
        "the function `strtol`",
    ),
    (
        "snprintf",
        "int main(void) { char b[8]; snprintf(b, 8, \"%d\", 3); return b[0] != '3'; }",
        "the function `snprintf`",
    ),
    (
        "errno",
        "int main(void) { errno = 3; assert(errno == 3); return 0; }",
        "the function `__errno_location`",
    ),
    (
        "int128",
        "__int128 x = 1;\nint main(void) { x *= 3; return x != 3; }",
        "an integer of more than 64 bits",
    ),
    (
        "vector",
        "typedef int v4 __attribute__((vector_size(16))); v4 x;\nint main(void) { x += 1; return 0; }",
        "a variable of type `<4 x i32>`",
    ),
    ("complex", "_Complex double z;\nint main(void) { z = 1; return 0; }", "floating-point numbers"),
    (
        "asmreg",
        "int main(void) { unsigned a, b, c, d; __asm__ volatile(\"cpuid\" : \"=a\"(a), \"=b\"(b), \"=c\"(c), \"=d\"(d) : \"a\"(0)); return 0; }",
        "the inline assembly `cpuid`",
    ),
    ("malloc0", "int main(void) { void *p = malloc(0); free(p); return 0; }", "an allocation of no bytes"),
    ("read", "int main(void) { char c; read(0, &c, 1); return c; }", "the function `read`"),
    ("fopen", "int main(void) { FILE *f = fopen(\"x\", \"r\"); return f == 0; }", "the function `fopen`"),
];
