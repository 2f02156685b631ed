// Chase and Lev's work-stealing deque: the owner works at the bottom, thieves take from the top.
// Source: D. Chase, Y. Lev, "Dynamic circular work-stealing deque", SPAA 2005; fences as in N. M. Lê,
// A. Pop, A. Cohen, F. Zappa Nardelli, "Correct and efficient work-stealing for weak memory models",
// PPoPP 2013.
// BROKEN_1: there is no fence between the owner's store to bottom and its load of top.
// BROKEN_2: push stores bottom without ordering it after the task.
// BROKEN_3: the owner takes the last task by a store instead of an exchange.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TASKS 2

static atomic_int tasks[TASKS];
static atomic_int top, bottom;
static atomic_int done[TASKS + 1];

static void run(int task)
{
    assert(task > 0);
    assert(!atomic_exchange(&done[task], 1));
}

static bool advance(int from)
{
    return atomic_compare_exchange_strong_explicit(&top, &from, from + 1, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

static void push(int task)
{
    int b = atomic_load_explicit(&bottom, memory_order_relaxed);
    atomic_store_explicit(&tasks[b % TASKS], task, memory_order_relaxed);
#ifndef BROKEN_2
    atomic_thread_fence(memory_order_release);
#endif
    atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
}

static void take(void)
{
    int b = atomic_load_explicit(&bottom, memory_order_relaxed) - 1;
    atomic_store_explicit(&bottom, b, memory_order_relaxed);
#ifndef BROKEN_1
    atomic_thread_fence(memory_order_seq_cst);
#endif
    int t = atomic_load_explicit(&top, memory_order_relaxed);
    if (t > b) {
        atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
        return;
    }
    int task = atomic_load_explicit(&tasks[b % TASKS], memory_order_relaxed);
    if (t == b) {
#ifdef BROKEN_3
        atomic_store_explicit(&top, t + 1, memory_order_release);
#else
        if (!advance(t)) {
            task = 0;
        }
#endif
        atomic_store_explicit(&bottom, b + 1, memory_order_relaxed);
    }
    if (task) {
        run(task);
    }
}

static void steal(void)
{
    int t = atomic_load_explicit(&top, memory_order_acquire);
    atomic_thread_fence(memory_order_seq_cst);
    if (t < atomic_load_explicit(&bottom, memory_order_acquire)) {
        int task = atomic_load_explicit(&tasks[t % TASKS], memory_order_relaxed);
        if (advance(t)) {
            run(task);
        }
    }
}

static void *owner(void *unused)
{
    push(1);
    push(2);
    take();
    take();
    return unused;
}

static void *thief(void *unused)
{
    steal();
    steal();
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, owner, 0);
    pthread_create(&threads[1], 0, thief, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(atomic_load(&done[1]) && atomic_load(&done[2]));
    return 0;
}
