/* Two threads do things whose order matters, although few of them access memory. The argument says what. The second
 * thread comes late, so that the first execution shows only one of the orders. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t prefers_writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static mtx_t c11;
static sem_t semaphore;
static const char *what;
static volatile int pad;
static char *memory;
static struct timespec first_time, second_time;
static int ends[2], mask, written, order;

static int is(const char *name)
{
    return !strcmp(what, name);
}

static void handler_of_first(void)
{
    order = order * 10 + 1;
}

static void handler_of_second(void)
{
    order = order * 10 + 2;
    if (order == 12) {
        _exit(9);
    }
}

static void *first(void *nothing)
{
    if (is("mutex")) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    } else if (is("reader") || is("writer")) {
        pthread_rwlock_wrlock(&lock);
        pthread_rwlock_unlock(&lock);
    } else if (is("semaphore")) {
        sem_post(&semaphore);
    } else if (is("c11")) {
        mtx_lock(&c11);
        mtx_unlock(&c11);
    } else if (is("condition")) {
        pthread_mutex_lock(&mutex);
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    } else if (is("unmap") || is("protect")) {
        memory[0] = 5;
    } else if (is("prefers-writers")) {
        pthread_rwlock_wrlock(&prefers_writers);
        pthread_rwlock_unlock(&prefers_writers);
    } else if (is("prefers-readers")) {
        pthread_rwlock_wrlock(&lock);
        pthread_rwlock_unlock(&lock);
    } else if (is("clock")) {
        clock_gettime(CLOCK_MONOTONIC, &first_time);
    } else if (is("pipe")) {
        assert(write(ends[1], "a", 1) == 1);
    } else if (is("close")) {
        close(ends[0]);
    } else if (is("mask")) {
        umask(077);
    } else if (is("exit")) {
        atexit(handler_of_first);
    }
    return nothing;
}

static void read_twice(pthread_rwlock_t *which)
{
    pthread_rwlock_rdlock(which);
    pthread_rwlock_rdlock(which);
    pthread_rwlock_unlock(which);
    pthread_rwlock_unlock(which);
}

static void *second(void *nothing)
{
    struct timespec time = {0, 0};
    for (int i = 0; i < 12; i++) {
        (void)pad;
    }
    if (is("mutex") && !pthread_mutex_timedlock(&mutex, &time)) {
        pthread_mutex_unlock(&mutex);
    } else if (is("reader") && !pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &time)) {
        pthread_rwlock_unlock(&lock);
    } else if (is("writer") && !pthread_rwlock_timedwrlock(&lock, &time)) {
        pthread_rwlock_unlock(&lock);
    } else if (is("semaphore")) {
        sem_timedwait(&semaphore, &time);
    } else if (is("c11") && mtx_timedlock(&c11, &time) == thrd_success) {
        mtx_unlock(&c11);
    } else if (is("condition")) {
        pthread_mutex_lock(&mutex);
        pthread_cond_timedwait(&condition, &mutex, &time);
        pthread_mutex_unlock(&mutex);
    } else if (is("unmap")) {
        munmap(memory, PAGE);
    } else if (is("protect")) {
        mprotect(memory, PAGE, PROT_NONE);
    } else if (is("prefers-writers")) {
        read_twice(&prefers_writers);
    } else if (is("prefers-readers")) {
        read_twice(&lock);
    } else if (is("clock")) {
        clock_gettime(CLOCK_MONOTONIC, &second_time);
    } else if (is("pipe")) {
        assert(write(ends[1], "b", 1) == 1);
    } else if (is("close")) {
        written = (int)write(ends[1], "b", 1);
    } else if (is("mask")) {
        mask = (int)umask(077);
    } else if (is("exit")) {
        atexit(handler_of_second);
    }
    return nothing;
}

int main(int count, char **arguments)
{
    what = count > 1 ? arguments[1] : "";
    assert(!pipe(ends));
    umask(0);
    signal(SIGPIPE, SIG_IGN);
    mtx_init(&c11, mtx_timed);
    memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (is("clock")) {
        assert(first_time.tv_sec < second_time.tv_sec || first_time.tv_nsec <= second_time.tv_nsec);
    } else if (is("pipe")) {
        char byte;
        assert(read(ends[0], &byte, 1) == 1 && byte == 'a');
    } else if (is("close")) {
        assert(written == -1);
    } else if (is("mask")) {
        assert(mask == 077);
    } else if (is("nothing")) {
        munmap(memory, PAGE);
    }
    volatile char *block = malloc(4);
    if (is("overflow")) {
        block[4] = 1;
    }
    free((char *)block);
    if (is("after-free")) {
        block[0] = 1;
    }
    return 0;
}
