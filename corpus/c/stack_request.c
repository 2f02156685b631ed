// A thread puts a request on its own stack, posts its address, and waits for the answer before it returns.
// Source: flat combining, D. Hendler et al., SPAA 2010, with one request.
// BROKEN_1: the caller does not wait, so the server may answer into a stack frame that is gone.
// BROKEN_2: the server says that it is done before it has answered.
// BROKEN_3: the request is a local of the thread's own function, which ends; the server only stores.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

struct request {
    int question;
    int answer;
    atomic_int done;
};

static _Atomic(struct request *) posted;

#ifndef BROKEN_3
static int ask(int question)
{
    struct request request = {question, 0, 0};
    atomic_store_explicit(&posted, &request, memory_order_release);
#ifdef BROKEN_1
    return question + 1;
#else
    while (!atomic_load_explicit(&request.done, memory_order_acquire)) {
    }
    return request.answer;
#endif
}
#endif

static void *client(void *argument)
{
    (void)argument;
#ifdef BROKEN_3
    struct request request = {41, 0, 0};
    atomic_store_explicit(&posted, &request, memory_order_release);
#else
    int answer = ask(41);
    assert(answer == 42);
#endif
    return 0;
}

static void *server(void *argument)
{
    (void)argument;
    struct request *request;
    while (!(request = atomic_load_explicit(&posted, memory_order_acquire))) {
    }
#if defined BROKEN_3
    atomic_store_explicit(&request->done, 1, memory_order_release);
#elif defined BROKEN_2
    atomic_store_explicit(&request->done, 1, memory_order_release);
    request->answer = request->question + 1;
#else
    request->answer = request->question + 1;
    atomic_store_explicit(&request->done, 1, memory_order_release);
#endif
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, client, 0);
    pthread_create(&threads[1], 0, server, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
