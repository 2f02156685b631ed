// Requests in a ring between a frontend and a backend: the backend is notified only if it asked for it.
// Source: tianocore/edk2 pull request 3101 (2022): xen_mb() of OvmfPkg/XenPvBlkDxe was only a compiler
// barrier; the macros of Xen's io/ring.h.
// BROKEN_1: the frontend's full barrier is missing, as in edk2; both sides can wait.
// BROKEN_2: the backend's full barrier is missing.
// BROKEN_3: the frontend's barrier between request and index is missing.
// BROKEN_4: the backend does not look again after it has asked to be notified.
// BOUNDED: instead of waiting, the backend gives up; at the end it must have been notified.
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#define REQUESTS 2

static volatile int ring[REQUESTS];
static volatile int produced, notify_at = 1;
static int event;
static bool gave_up;

static void *frontend(void *unused)
{
    for (int i = 0; i < REQUESTS; i++) {
        ring[i] = i + 1;
#ifndef BROKEN_3
        __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
        produced = i + 1;
#ifndef BROKEN_1
        __sync_synchronize();
#endif
        if (notify_at == i + 1) {
            __atomic_exchange_n(&event, 1, __ATOMIC_SEQ_CST);
        }
    }
    return unused;
}

static void *backend(void *unused)
{
    int consumed = 0;
    for (;;) {
        while (consumed != produced) {
            assert(ring[consumed] == consumed + 1);
            consumed++;
        }
        if (consumed == REQUESTS) {
            return unused;
        }
        notify_at = consumed + 1;
#ifndef BROKEN_2
        __sync_synchronize();
#endif
#ifndef BROKEN_4
        if (consumed != produced) {
            continue;
        }
#endif
        while (!__atomic_exchange_n(&event, 0, __ATOMIC_SEQ_CST)) {
#ifdef BOUNDED
            gave_up = true;
            return unused;
#endif
        }
    }
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, frontend, 0);
    pthread_create(&threads[1], 0, backend, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(!gave_up || event);
    return 0;
}
