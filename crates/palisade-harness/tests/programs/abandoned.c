/* One-time initialisation whose function ends the thread before it is done. With an argument, a handler runs first. */
#include <assert.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int calls, done, is_handled;

static void initialise(void)
{
    if (calls++ == 0) {
        pthread_exit(NULL);
    }
    done = 1;
}

static void handle(void *nothing)
{
    is_handled++;
}

static void *part(void *has_handler)
{
    if (has_handler) {
        pthread_cleanup_push(handle, NULL);
        pthread_once(&once, initialise);
        pthread_cleanup_pop(0);
    } else {
        pthread_once(&once, initialise);
    }
    assert(done);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, part, count > 1 ? &calls : NULL);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert(calls == 2 && done && is_handled == (count > 1));
    return 0;
}
