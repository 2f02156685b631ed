// Locks: test-and-set, ticket, MCS with pthreads and assertions.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct waiter {
    _Atomic(struct waiter *) next;
    atomic_bool locked;
};

static atomic_flag flag = ATOMIC_FLAG_INIT;
static atomic_uint ticket, serving;
static _Atomic(struct waiter *) tail;
static int counter;
volatile int observed;

static void flag_lock(void) {
    while (atomic_flag_test_and_set_explicit(&flag, memory_order_acquire)) {
    }
}

static void ticket_lock(void) {
    unsigned mine = atomic_fetch_add_explicit(&ticket, 1, memory_order_relaxed);
    while (atomic_load_explicit(&serving, memory_order_acquire) != mine) {
    }
}

static void queue_lock(struct waiter *me) {
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->locked, true, memory_order_relaxed);
    struct waiter *before = atomic_exchange(&tail, me);
    if (before) {
        atomic_store(&before->next, me);
        while (atomic_load(&me->locked)) {
        }
    }
}

static void queue_unlock(struct waiter *me) {
    struct waiter *next = atomic_load(&me->next);
    if (!next) {
        struct waiter *expected = me;
        if (atomic_compare_exchange_strong(&tail, &expected, NULL))
            return;
        while (!(next = atomic_load(&me->next))) {
        }
    }
    atomic_store(&next->locked, false);
}

static void *worker(void *argument) {
    int times = *(int *)argument;
    for (int i = 0; i < times; i++) {
        struct waiter me;
        flag_lock();
        ticket_lock();
        queue_lock(&me);
        int before = counter;
        counter = before + 1;
        assert(counter == before + 1);
        observed = counter;
        queue_unlock(&me);
        atomic_fetch_add_explicit(&serving, 1, memory_order_release);
        atomic_flag_clear_explicit(&flag, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        atomic_signal_fence(memory_order_acq_rel);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int times = 2;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, worker, &times))
            abort();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(counter == 6);
    return 0;
}
