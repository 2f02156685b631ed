/* `quick_exit`, after all threads have ended, or in one of them. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static int handled;

static void second(void)
{
    assert(handled == 1);
}

static void first(void)
{
    handled = 1;
}

static void *part(void *exits)
{
    if (exits) {
        quick_exit(0);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    /* They run in reverse order. */
    at_quick_exit(second);
    at_quick_exit(first);
    pthread_create(&thread, NULL, part, count > 1 ? &handled : NULL);
    pthread_join(thread, NULL);
    quick_exit(0);
}
