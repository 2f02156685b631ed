/* Loads a library while it runs. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

int shared;
static void (*write_shared)(void);

static void *other(void *nothing)
{
    write_shared();
    return nothing;
}

int main(int count, char **arguments)
{
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    if (!library) {
        return 1;
    }
    write_shared = (void (*)(void))dlsym(library, "write_shared");
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    write_shared();
    pthread_join(thread, NULL);
    return 0;
}
