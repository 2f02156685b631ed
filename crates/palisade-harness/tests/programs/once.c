/* Fails only in the first execution that comes here: the second argument is a file that it makes. */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int x;
static int plain;

static void *sets(void *nothing)
{
    atomic_store(&x, 1);
    plain++;
    return NULL;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    pthread_t thread;
    pthread_create(&thread, NULL, sets, NULL);
    int is_first = open(count > 2 ? arguments[2] : "/", O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0;
    if (is_first && !strcmp(how, "race")) {
        plain++;
    }
    pthread_join(thread, NULL);
    assert(!is_first || strcmp(how, "assertion"));
    return is_first && !strcmp(how, "exit-code");
}
