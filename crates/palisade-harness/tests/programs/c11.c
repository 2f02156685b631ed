/* C11 threads, used correctly. */

#include <assert.h>
#include <stdatomic.h>
#include <threads.h>

static mtx_t mutex;
static cnd_t cond;
static once_flag flag = ONCE_FLAG_INIT;
static tss_t key;
static int turns, made, destroyed;
static atomic_int total;

static void make(void) { made = 1; }
static void destroy(void *value) { *(int *)value = 1; }

static int plays(void *argument)
{
    int me = (int)(long)argument;
    call_once(&flag, make);
    assert(made);
    tss_set(key, &destroyed);
    for (int i = 0; i < 2; i++) {
        mtx_lock(&mutex);
        while (turns % 2 != me) {
            cnd_wait(&cond, &mutex);
        }
        turns++;
        cnd_signal(&cond);
        mtx_unlock(&mutex);
    }
    atomic_fetch_add(&total, me + 1);
    thrd_yield();
    return 10 + me;
}

int main(void)
{
    thrd_t threads[2];
    mtx_init(&mutex, mtx_plain);
    cnd_init(&cond);
    tss_create(&key, NULL);
    for (long i = 0; i < 2; i++) {
        assert(thrd_create(&threads[i], plays, (void *)i) == thrd_success);
    }
    for (int i = 0; i < 2; i++) {
        int result;
        assert(thrd_join(threads[i], &result) == thrd_success && result == 10 + i);
    }
    assert(turns == 4 && total == 3);
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    time.tv_sec += 5;
    mtx_lock(&mutex);
    assert(cnd_timedwait(&cond, &mutex, &time) == thrd_timedout);
    assert(mtx_trylock(&mutex) == thrd_busy);
    mtx_unlock(&mutex);
    (void)destroy;
    return 0;
}
