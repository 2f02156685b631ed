/* Accesses through a macro and through a function of a header of the program. */
#include <pthread.h>
#include "sites.h"

int x, y;

static void *run(void *nothing)
{
    SET(&x, 1);
    set(&y, 1);
    return nothing;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    SET(&x, 2);
    set(&y, 2);
    pthread_join(thread, 0);
    return 0;
}
