//! Programs that the tests of `palisade run` share, and how they are compiled.

use crate::common::Scratch;

/// Store buffering without an assertion.
pub const BUFFERING: &str = "\
#include <pthread.h>
volatile int x, y, r[2];
static void *p(void *a) { x = 1; r[0] = y; return a; }
static void *q(void *a) { y = 1; r[1] = x; return a; }
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, p, 0);
    pthread_create(&t[1], 0, q, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    return 0;
}
";

/// Two plain stores that nothing orders.
pub const RACE: &str = "\
#include <pthread.h>
static int x;
static void *run(void *nothing) { x = 1; return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    x = 2;
    pthread_join(thread, 0);
    return 0;
}
";

/// A wait that no thread ends.
pub const ENDLESS: &str = "\
#include <pthread.h>
volatile int never;
static void *run(void *nothing) { while (!never) {} return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
    return 0;
}
";

/// A folder with a compiled program.
pub fn compiled(name: &str, source: &str) -> Scratch {
    compiled_as("t.c", name, source)
}

/// The same, with a name for the source file.
pub fn compiled_as(file: &str, name: &str, source: &str) -> Scratch {
    let scratch = Scratch::new(name).file(file, source);
    let compiled = scratch.run(&["cc", "-o", "t", file]);
    assert_eq!(compiled.code, Some(0), "gcc is needed (`./test` installs it): {}", compiled.stderr);
    scratch
}

/// Store buffering with an assertion that only store buffers break.
pub const BUFFERING_ASSERTED: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y;
static int r[2];
static void *p(void *a)
{
    atomic_store_explicit(&x, 1, memory_order_release);
    r[0] = atomic_load_explicit(&y, memory_order_acquire);
    return a;
}
static void *q(void *a)
{
    atomic_store_explicit(&y, 1, memory_order_release);
    r[1] = atomic_load_explicit(&x, memory_order_acquire);
    return a;
}
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, p, 0);
    pthread_create(&t[1], 0, q, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    assert(r[0] || r[1]);
    return 0;
}
";
