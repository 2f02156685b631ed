// C11 threads: a mutex, call_once and the results of thrd_join.
// Source: ISO C 2011, section 7.26.
// BROKEN_1: the counter is changed without the mutex.
// BROKEN_2: the table is filled without call_once.
#include <assert.h>
#include <threads.h>

#ifndef BROKEN_2
static once_flag once = ONCE_FLAG_INIT;
#endif
static mtx_t mutex;
static int filled, table, counter;

static void fill(void)
{
    filled++;
    table = 5;
}

static int work(void *unused)
{
    (void)unused;
#ifdef BROKEN_2
    if (!filled) {
        fill();
    }
#else
    call_once(&once, fill);
#endif
    int mine = table;
#ifndef BROKEN_1
    mtx_lock(&mutex);
#endif
    counter += mine;
#ifndef BROKEN_1
    mtx_unlock(&mutex);
#endif
    return mine;
}

int main(void)
{
    thrd_t threads[2];
    int result[2];
    mtx_init(&mutex, mtx_plain);
    for (int i = 0; i < 2; i++) {
        thrd_create(&threads[i], work, 0);
    }
    for (int i = 0; i < 2; i++) {
        thrd_join(threads[i], &result[i]);
        assert(result[i] == 5);
    }
    assert(filled == 1 && counter == 10);
    mtx_destroy(&mutex);
    return 0;
}
