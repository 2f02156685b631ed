//! Mistakes with functions of the C library, each beside a correct twin.

use super::c_mistakes::check;
use crate::common::Scratch;

const PRINT: &str = "#include <stdio.h>\n#include <unistd.h>\n#include <time.h>\n";

/// A program that uses what it is given in `main`.
fn main_of(code: &str) -> String {
    format!("{PRINT}int main(void) {{ {code} return 0; }}")
}

#[test]
fn what_is_printed_is_read() {
    let scratch = Scratch::new("c_printed");
    let check = |name: &str, code: &str, expected: &str| check(&scratch, name, &main_of(code), expected);
    check(
        "freed.c",
        "char *p = malloc(2); p[0] = 'a'; p[1] = 0; IF(free(p);,) puts(p); IF(,free(p);)",
        "use after free: `heap#1+0` (allocated at line 15) in main at line 15: ",
    );
    check(
        "null.c",
        "char *p = IF(0, \"a\"); printf(\"%d %s\\n\", 1, p);",
        "null pointer dereferenced in main",
    );
    check(
        "unwritten.c",
        "char p[2]; p[0] = IF('a', 0); fputs(p, stdout);",
        "use of an uninitialised value: `p[1]`",
    );
    check(
        "unterminated.c",
        "char p[2] = { 'a', IF('b', 0) }; fprintf(stderr, \"%-8s|\", p);",
        "access out of bounds, just past the end of `p` (2 bytes) in main",
    );
    // A precision ends the string.
    check(
        "precision.c",
        "char p[2] = { 'a', 'b' }; printf(\"%.*s %.1s\", IF(3, 2), p, p);",
        "access out of bounds, just past the end of `p` (2 bytes) in main",
    );
    check("stream.c", "FILE *f = IF(0, stdout); fprintf(f, \"x\");", "null pointer dereferenced in main");
    check(
        "bytes.c",
        "char p[3] = \"ab\"; write(1, p, IF(4, 3));",
        "access out of bounds, just past the end of `p`",
    );
    check(
        "scalars.c",
        "struct { int a; long b; } s; s.a = 1; IF(, s.b = 2;) fwrite(&s, sizeof s, 1, stdout);",
        "use of an uninitialised value",
    );
    check(
        "sleep.c",
        "struct timespec t; t.tv_sec = 0; IF(, t.tv_nsec = 5;) nanosleep(&t, 0);",
        "use of an uninitialised value",
    );
}

#[test]
fn what_printing_stores_and_returns() {
    let scratch = Scratch::new("c_counted");
    check(
        &scratch,
        "count.c",
        &main_of(
            "int n = 7, k = printf(\"a%sc%c%%%n\\n\", \"bb\", 'x', &n); assert(n == IF(7, 6) && k == 7);",
        ),
        "assertion failed in main",
    );
    check(
        &scratch,
        "constant.c",
        &format!(
            "{PRINT}static const int n = 1;\nstatic int m;\nint main(void) {{ printf(\"a%n\", (int *)IF(&n, &m)); return 0; }}"
        ),
        "write to a constant in main",
    );
    check(
        &scratch,
        "race.c",
        &format!(
            "{PRINT}static char s[] = \"ab\";\nstatic void *work(void *none) {{ s[0] = 'x'; return none; }}\n\
             int main(void) {{ pthread_t t; pthread_create(&t, 0, work, 0); IF(, pthread_join(t, 0);)\n    \
             printf(\"%s\\n\", s); IF(pthread_join(t, 0);,) return 0; }}"
        ),
        "data race on s[0]",
    );
    // A text that is not a literal, and a parameter that is one.
    check(
        &scratch,
        "format.c",
        &format!(
            "{PRINT}static int n;\nstatic void say(const char *text) {{ printf(text); }}\n\
             static void number(const char *format) {{ printf(format, 1); }}\n\
             int main(void) {{ char p[2] = {{ 'a', IF('b', 0) }}; say(p); say(\"50%%\"); number(\"%d\"); printf(n ? \"a\" : \"b\"); return 0; }}"
        ),
        "access out of bounds, just past the end of `p`",
    );
}

#[test]
fn functions_that_end_without_return() {
    let scratch = Scratch::new("c_returns");
    let run = |name: &str, code: &str| {
        let expected = "use of the value of a function that ended without `return` in ";
        check(&scratch, name, &format!("static int n;\n{code}"), expected);
    };
    run(
        "some.c",
        "static int f(int x) { if (x) return 1; IF(, return 0;) }\nint main(void) { f(n); int r = f(n); return r; }",
    );
    // Nobody uses the value.
    run(
        "unused.c",
        "static int f(int x) { if (x) return 1; }\nint main(void) { f(n); int r = IF(f(n), 0); return r; }",
    );
    run(
        "truth.c",
        "static _Bool f(int x) { if (x) return 1; IF(, return 0;) }\nint main(void) { return f(n) ? 1 : 0; }",
    );
    run(
        "pointer.c",
        "static int f(void) { IF(, return 0;) }\nstatic int (*volatile p)(void) = f;\nint main(void) { return p(); }",
    );
    run(
        "thread.c",
        "static void *work(void *p) { if (p) return p; IF(, return 0;) }\n\
         int main(void) { pthread_t t; void *r; pthread_create(&t, 0, work, 0); pthread_join(t, &r); assert(!r); return 0; }",
    );
    run(
        "not_joined_for_it.c",
        "static void *work(void *p) { if (p) return p; }\n\
         int main(void) { pthread_t t; void *r = 0; pthread_create(&t, 0, work, 0); pthread_join(t, IF(&r, 0)); assert(!r); return 0; }",
    );
}

#[test]
fn objects_of_the_thread_library_that_are_not_there() {
    let scratch = Scratch::new("c_destroyed");
    let run = |name: &str, code: &str, expected: &str| {
        let code = format!("#include <semaphore.h>\n{code}");
        check(&scratch, name, &code, expected);
    };
    let main =
        |declarations: &str, code: &str| format!("{declarations}\nint main(void) {{ {code} return 0; }}");
    let destroyed = "use of a synchronisation object that was destroyed in main";
    run(
        "semaphore.c",
        &main(
            "static sem_t s;",
            "sem_init(&s, 0, 2); sem_wait(&s); IF(sem_destroy(&s);,) sem_post(&s); IF(, sem_destroy(&s);)",
        ),
        destroyed,
    );
    run(
        "semaphore_wait.c",
        &main(
            "static sem_t s;",
            "sem_init(&s, 0, 2); sem_destroy(&s); IF(, sem_init(&s, 0, 1);) sem_wait(&s);",
        ),
        destroyed,
    );
    run(
        "semaphore_none.c",
        &main("static sem_t s;", "IF(, sem_init(&s, 0, 1);) sem_post(&s);"),
        "use of an uninitialised",
    );
    run(
        "condition.c",
        &main(
            "static pthread_cond_t c = PTHREAD_COND_INITIALIZER;",
            "pthread_cond_destroy(&c); IF(, pthread_cond_init(&c, 0);) pthread_cond_signal(&c);",
        ),
        destroyed,
    );
    run(
        "rwlock.c",
        &main(
            "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;",
            "pthread_rwlock_destroy(&l); IF(, pthread_rwlock_init(&l, 0);) pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l);",
        ),
        destroyed,
    );
    run(
        "barrier.c",
        &main(
            "static pthread_barrier_t b;",
            "pthread_barrier_init(&b, 0, 1); IF(pthread_barrier_destroy(&b);,) pthread_barrier_wait(&b); IF(, pthread_barrier_destroy(&b);)",
        ),
        destroyed,
    );
    run(
        "barrier_none.c",
        &main(
            "static pthread_barrier_t b;",
            "IF(, pthread_barrier_init(&b, 0, 1);) pthread_barrier_wait(&b);",
        ),
        "use of an uninitialised",
    );
    run(
        "mtx_none.c",
        &main("static mtx_t m;", "IF(, mtx_init(&m, mtx_plain);) mtx_lock(&m); mtx_unlock(&m);"),
        "use of an uninitialised",
    );
    run(
        "spin_none.c",
        &main(
            "static pthread_spinlock_t s;",
            "IF(, pthread_spin_init(&s, 0);) pthread_spin_lock(&s); pthread_spin_unlock(&s);",
        ),
        "use of an uninitialised",
    );
    let used = "a synchronisation object is destroyed or initialised while it is in use in main";
    run(
        "held.c",
        &main(
            "static pthread_mutex_t m;",
            "pthread_mutex_lock(&m); IF(, pthread_mutex_unlock(&m);) pthread_mutex_init(&m, 0);",
        ),
        used,
    );
    run(
        "read.c",
        &main(
            "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;",
            "pthread_rwlock_rdlock(&l); IF(, pthread_rwlock_unlock(&l);) pthread_rwlock_destroy(&l);",
        ),
        used,
    );
    // The thread that posts is done with the semaphore before the other one destroys it.
    run(
        "last.c",
        "static sem_t s;\nstatic void *work(void *none) { sem_post(&s); return none; }\n\
         int main(void) { pthread_t t; sem_init(&s, 0, IF(1, 0)); pthread_create(&t, 0, work, 0); sem_wait(&s); sem_destroy(&s); pthread_join(t, 0); return 0; }",
        "use of a synchronisation object that was destroyed in work",
    );
    // Threads that were released leave a barrier that is destroyed meanwhile.
    run(
        "leave.c",
        "static pthread_barrier_t b;\nstatic void *work(void *none) { pthread_barrier_wait(&b); return none; }\n\
         int main(void) { pthread_t t; pthread_barrier_init(&b, 0, IF(1, 2)); pthread_create(&t, 0, work, 0); pthread_barrier_wait(&b); pthread_barrier_destroy(&b); pthread_join(t, 0); return 0; }",
        "use of a synchronisation object that was destroyed in work",
    );
}

#[test]
fn locks_that_others_hold() {
    let scratch = Scratch::new("c_others");
    let message = "unlock of a lock that the thread does not hold in work";
    check(
        &scratch,
        "read.c",
        "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;\n\
         static void *work(void *none) { IF(, pthread_rwlock_rdlock(&l); pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l);) pthread_rwlock_unlock(&l); return none; }\n\
         int main(void) { pthread_t t; pthread_rwlock_rdlock(&l); pthread_create(&t, 0, work, 0); pthread_join(t, 0); pthread_rwlock_unlock(&l); return 0; }",
        message,
    );
    check(
        &scratch,
        "other.c",
        "static pthread_rwlock_t l[2] = { PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER };\n\
         static void *work(void *none) { pthread_rwlock_tryrdlock(&l[0]); pthread_rwlock_unlock(&l[IF(1, 0)]); return none; }\n\
         int main(void) { pthread_t t; pthread_rwlock_rdlock(&l[1]); pthread_create(&t, 0, work, 0); pthread_join(t, 0); return 0; }",
        message,
    );
    // A mutex that checks for errors returns them.
    check(
        &scratch,
        "checked.c",
        "static pthread_mutex_t m;\nstatic void *work(void *none) { assert(pthread_mutex_unlock(&m) == 1); return none; }\n\
         int main(void) { pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a, IF(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK)); pthread_mutex_init(&m, &a);\n    \
         pthread_t t; assert(!pthread_mutex_lock(&m)); IF(, assert(pthread_mutex_lock(&m) == 35 && pthread_mutex_trylock(&m) == 16);)\n    \
         pthread_create(&t, 0, work, 0); pthread_join(t, 0); assert(!pthread_mutex_unlock(&m)); return 0; }",
        message,
    );
}
