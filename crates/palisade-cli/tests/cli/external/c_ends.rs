//! Objects at the end of their life, and at their limits: declarations that are reached again, what is destroyed while
//! threads leave it, stores that come too late, the largest semaphore, and lines that are not there.

use super::c_mistakes::check;
use crate::common::Scratch;

#[test]
fn declarations_that_are_reached_again() {
    let scratch = Scratch::new("c_goto");
    check(
        &scratch,
        "again.c",
        "int n;\nint main(void) {\nagain:;\n    int x; IF(if (n == 0), ) x = 7;\n    assert(x == 7);\n    if (++n < 2) goto again;\n    return 0; }",
        "use of an uninitialised value",
    );
    // The variable still exists before its declaration is reached, and so does a pointer to it.
    check(
        &scratch,
        "before.c",
        "static int n, *p;\nint main(void) {\nagain:\n    if (n) { assert(*p == 7); *p = 8; }\n    int x; if (!n) x = 7; p = &x;\n    \
         IF(if (n) assert(*p == 8);, ) if (++n < 2) goto again;\n    return 0; }",
        "use of an uninitialised value: `x`",
    );
    check(
        &scratch,
        "array.c",
        "static int n, k;\nint main(void) {\n    { retry:; int a[2] = { IF(n, 1) }; k = a[n];\n    if (n++ < 1) goto retry; }\n    assert(k == 0 && n == 2);\n    \
         { int m = 0; more:; int b[2]; b[IF(m, 0)] = 1; if (m++ < 1) goto more; return b[0] - 1; } }",
        "use of an uninitialised value",
    );
}

#[test]
fn what_is_destroyed_while_threads_leave() {
    let scratch = Scratch::new("c_leaving");
    let wait = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic pthread_cond_t *c;\nstatic int done;\n\
        static void *work(void *none) { pthread_mutex_lock(&m); while (!done) pthread_cond_wait(c, &m); pthread_mutex_unlock(&m); return none; }\n\
        int main(void) { c = malloc(sizeof *c); pthread_cond_init(c, 0);\n    \
        pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);\n    \
        pthread_mutex_lock(&m); done = 1; IF(pthread_cond_signal(c), pthread_cond_broadcast(c)); pthread_cond_destroy(c); free(c);\n    \
        long *other = malloc(sizeof *c); *other = -1; free(other); pthread_mutex_unlock(&m);\n    \
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0); return 0; }";
    let in_use = "a synchronisation object is destroyed or initialised while it is in use in main";
    check(&scratch, "condition.c", wait, in_use);
    check(
        &scratch,
        "barrier.c",
        "static pthread_barrier_t *b;\n\
         static void *work(void *none) { if (pthread_barrier_wait(b) == PTHREAD_BARRIER_SERIAL_THREAD) { pthread_barrier_destroy(b); free(b); IF(pthread_barrier_wait(b);, ) } return none; }\n\
         int main(void) { b = malloc(sizeof *b); pthread_barrier_init(b, 0, 2);\n    \
         pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);\n    \
         for (int i = 0; i < 2; i++) pthread_join(t[i], 0); return 0; }",
        "use after free",
    );
    // The last one that is done with an object destroys it, while the other one may still be in the unlocking function.
    check(
        &scratch,
        "mutex.c",
        "static struct object { pthread_mutex_t m; int users; } *o;\n\
         static void *work(void *none) { pthread_mutex_lock(&o->m); int last = --o->users == 0; pthread_mutex_unlock(&o->m); IF(last |= o->users == 0;, )\n    \
         if (last) { pthread_mutex_destroy(&o->m); free(o); } return none; }\n\
         int main(void) { o = malloc(sizeof *o); pthread_mutex_init(&o->m, 0); o->users = 2;\n    \
         pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);\n    \
         for (int i = 0; i < 2; i++) pthread_join(t[i], 0); return 0; }",
        "a synchronisation object is destroyed or initialised while it is in use in work",
    );
    check(
        &scratch,
        "semaphore.c",
        "#include <semaphore.h>\nstatic sem_t *s;\nstatic void *work(void *none) { sem_post(s); IF(sem_post(s);, ) return none; }\n\
         int main(void) { s = malloc(sizeof *s); sem_init(s, 0, 0); pthread_t t; pthread_create(&t, 0, work, 0);\n    \
         sem_wait(s); sem_destroy(s); free(s); pthread_join(t, 0); return 0; }",
        "use of a synchronisation object that was destroyed in work",
    );
}

/// A thread is released and then stays behind for many rounds of others.
#[test]
fn a_barrier_that_goes_on_without_a_thread() {
    let scratch = Scratch::new("c_rounds");
    check(
        &scratch,
        "late.c",
        "static pthread_barrier_t b;\nstatic atomic_int first;\n\
         static void *late(void *none) { pthread_barrier_wait(&b); return none; }\n\
         static void *one(void *none) { pthread_barrier_wait(&b); first = 1; for (int i = 0; i < 4; i++) pthread_barrier_wait(&b); return none; }\n\
         static void *two(void *none) { while (!first); for (int i = 0; i < IF(5, 4); i++) pthread_barrier_wait(&b); return none; }\n\
         int main(void) { pthread_barrier_init(&b, 0, 2); pthread_t t[3]; pthread_create(&t[0], 0, late, 0); pthread_create(&t[1], 0, one, 0);\n    \
         pthread_create(&t[2], 0, two, 0); for (int i = 0; i < 3; i++) pthread_join(t[i], 0); return 0; }",
        "deadlock: main waits",
    );
}

#[test]
fn locks_that_report_errors() {
    let scratch = Scratch::new("c_eperm");
    let start = "#include <errno.h>\nstatic pthread_mutex_t m;\nstatic pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n\
        static void init(int kind) { pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a, kind); pthread_mutex_init(&m, &a); }\n";
    let not_held = "unlock of a lock that the thread does not hold in main";
    check(
        &scratch,
        "recursive.c",
        &format!(
            "{start}static void *work(void *none) {{ assert(pthread_mutex_unlock(&m) == EPERM); return none; }}\n\
             int main(void) {{ init(PTHREAD_MUTEX_RECURSIVE); assert(pthread_mutex_unlock(&m) == IF(0, EPERM)); pthread_mutex_lock(&m); pthread_mutex_lock(&m);\n    \
             pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0);\n    \
             assert(!pthread_mutex_unlock(&m) && !pthread_mutex_unlock(&m) && pthread_mutex_unlock(&m) == EPERM); return 0; }}"
        ),
        "assertion failed in main",
    );
    check(
        &scratch,
        "kinds.c",
        &format!(
            "{start}int main(void) {{ init(IF(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK)); assert(pthread_mutex_unlock(&m) == EPERM); return 0; }}"
        ),
        not_held,
    );
    check(
        &scratch,
        "wait.c",
        &format!(
            "{start}int main(void) {{ init(IF(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK)); assert(pthread_cond_wait(&c, &m) == EPERM); return 0; }}"
        ),
        not_held,
    );
    // Next to the mutex is a union, which clang fills up with bytes.
    check(
        &scratch,
        "initialised.c",
        "static struct { union { char c; long l; } u; pthread_mutex_t m; } g =\n    \
         { { .c = 1 }, { .__data = { .__kind = IF(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE) } } };\n\
         int main(void) { pthread_mutex_lock(&g.m); pthread_mutex_lock(&g.m); pthread_mutex_unlock(&g.m); pthread_mutex_unlock(&g.m); return 0; }",
        "deadlock: main waits",
    );
    // C11 leaves it undefined for all mutexes.
    check(
        &scratch,
        "mtx.c",
        "static mtx_t m;\nint main(void) { mtx_init(&m, mtx_plain | mtx_recursive); mtx_lock(&m); mtx_unlock(&m); IF(mtx_unlock(&m);, ) return 0; }",
        not_held,
    );
}

#[test]
fn the_largest_semaphore() {
    let scratch = Scratch::new("c_sem_max");
    check(
        &scratch,
        "most.c",
        "#include <limits.h>\n#include <semaphore.h>\nstatic sem_t s;\nint main(void) { int v; assert(!sem_init(&s, 0, SEM_VALUE_MAX - 1)); assert(!sem_post(&s));\n    \
         assert(sem_post(&s) == IF(0, -1)); sem_getvalue(&s, &v); assert(v == SEM_VALUE_MAX); sem_wait(&s); assert(!sem_post(&s));\n    \
         assert(sem_init(&s, 0, SEM_VALUE_MAX + 1u) == -1); return 0; }",
        "assertion failed in main at line 16: ",
    );
}

/// A store that is still pending when its object ends reaches memory that may belong to something else. Under TSO it
/// cannot be overtaken by the store that allows the other thread to end the object.
#[test]
fn stores_that_come_too_late() {
    let scratch = Scratch::new("c_late");
    let headers = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n";
    let heap = "struct node { atomic_int value, other; };\nstatic struct node *n;\nstatic atomic_int done;\n\
        static void *work(void *none) { atomic_store_explicit(&n->value, 5, memory_order_relaxed); atomic_store_explicit(&done, 1, ORDER); return none; }\n\
        int main(void) { n = malloc(sizeof *n); pthread_t t; pthread_create(&t, 0, work, 0);\n    \
        while (!atomic_load_explicit(&done, memory_order_acquire));\n    free(n); pthread_join(t, 0); return 0; }\n";
    let stack = "static atomic_int *_Atomic place, done;\n\
        static void *work(void *none) { atomic_int *p; while (!(p = atomic_load_explicit(&place, memory_order_acquire)));\n    \
        atomic_store_explicit(p, 5, memory_order_relaxed); atomic_store_explicit(&done, 1, ORDER); return none; }\n\
        static void ask(void) { atomic_int answer = 0; atomic_store(&place, &answer); while (!atomic_load_explicit(&done, memory_order_acquire)); }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); ask(); pthread_join(t, 0); return 0; }\n"
        .replace("place, done", "place;\nstatic atomic_int done");
    for (name, code, cell) in [("heap.c", heap, "node#1.value"), ("stack.c", &stack, "answer")] {
        std::fs::write(scratch.path(name), format!("{headers}{code}")).expect("a file can be written");
        let run = |model: &str, order: &str| {
            let order = format!("-DORDER=memory_order_{order}");
            scratch.run(&["check", "-q", name, "--model", model, "--", &order])
        };
        for (model, order) in [("sc", "relaxed"), ("tso", "relaxed"), ("pso", "release")] {
            let ran = run(model, order);
            assert!(ran.stdout.starts_with("safe"), "{name} {model} {order}: {}{}", ran.stdout, ran.stderr);
        }
        let late = run("pso", "relaxed");
        let start = format!("unsafe  {name}: data race on {cell}: work (line ");
        assert!(late.stdout.starts_with(&start), "{}{}", late.stdout, late.stderr);
        assert!(late.stdout.contains(" has stored to it, and main (line "));
    }
}

#[test]
fn lines_whose_text_is_not_there() {
    let scratch = Scratch::new("c_line");
    let code = "#include <assert.h>\n#include <pthread.h>\nstatic int x;\n#line 300 \"gone.y\"\n\
        static void *work(void *none) { x = 1; return none; }\n#line 4000 \"t.c\"\nint main(void) {\n    pthread_t t;\n    \
        pthread_create(&t, 0, work, 0);\n    pthread_join(t, 0);\n#line 2147483000 \"far.y\"\n    assert(x == 0);\n    return 0;\n}\n";
    std::fs::write(scratch.path("t.c"), code).expect("a file can be written");
    let ran = scratch.run(&["check", "t.c", "--witness", "w.json", "--html", "w.html"]);
    assert!(
        ran.stdout.starts_with("unsafe  t.c: assertion failed in main at line 2147483000 of far.y"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    for place in ["gone.y:300", "t.c (by #line):4002", "far.y:2147483000"] {
        assert!(ran.stdout.contains(place), "{place}: {}", ran.stdout);
    }
    let again = scratch.run(&["replay", "w.json"]);
    assert!(again.stdout.contains("far.y"), "{}{}", again.stdout, again.stderr);
}
