/* Leaves a detached thread running, or, with an argument, joins it. */
#include <pthread.h>

extern int late;

static void *writes(void *argument)
{
    late = 1;
    return argument;
}

int main(int count, char **arguments)
{
    (void)arguments;
    pthread_t thread;
    pthread_create(&thread, 0, writes, 0);
    return count > 1 ? pthread_join(thread, 0) : pthread_detach(thread);
}
