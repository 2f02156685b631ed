/* Two threads write to the same variable, by a function that is somewhere else. */
#include <pthread.h>

int shared;
void write_shared(void);

static void *other(void *nothing)
{
    write_shared();
    return nothing;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    write_shared();
    pthread_join(thread, NULL);
    return 0;
}
