/* Executions that leave traces. The first argument says where. If the next execution saw any of them, an assertion
 * would fail. */

#include <assert.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *how;
static atomic_int x, y;
static char large[1 << 16];
static __thread int local;
static int *heap;
static atomic_uint seen;

static int is(const char *what)
{
    return !strcmp(how, what);
}

/* Leaves something on the stack, far down. */
static __attribute__((noinline)) int deep(int depth)
{
    volatile char room[2048];
    int sum = 0;
    memset((char *)room, depth, sizeof room);
    sum = depth ? deep(depth - 1) : 0;
    return sum + room[depth];
}

static void *work(void *argument)
{
    int number = *(int *)argument;
    atomic_store_explicit(number ? &x : &y, 1, memory_order_relaxed);
    int other = atomic_load_explicit(number ? &y : &x, memory_order_relaxed);
    if (is("globals")) {
        for (size_t i = 0; i < sizeof large; i += 4096) {
            if (number) {
                assert(!large[i]);
                large[i] = 1;
            }
        }
    } else if (is("heap")) {
        int *mine = malloc(sizeof *mine * 1000);
        mine[0] = mine[999] = number;
        assert(mine[999] == number);
        if (number) {
            free(mine);
        } else {
            heap = mine;
        }
    } else if (is("stack")) {
        deep(4 + number * 4);
    } else if (is("locals")) {
        assert(local++ == 0);
    } else if (is("float")) {
        assert(fegetround() == FE_TONEAREST);
        fesetround(number ? FE_UPWARD : FE_DOWNWARD);
    } else if (is("print")) {
        printf("%d sees %d\n", number, other);
    }
    atomic_fetch_or(&seen, 1u << (2 * number + other));
    return NULL;
}

/* One of more threads than are usually prepared. */
static void *work_more(void *argument)
{
    int *mine = malloc(sizeof *mine);
    assert(local++ == 0);
    *mine = *(int *)argument;
    int sum = atomic_fetch_add(&x, *mine);
    free(mine);
    return sum < 100 ? NULL : argument;
}

static void start_more(void)
{
    enum { COUNT = 7 };
    pthread_t threads[COUNT];
    int *numbers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = malloc(sizeof *numbers[i]);
        *numbers[i] = i;
        pthread_create(&threads[i], NULL, work_more, numbers[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert(!result);
        free(numbers[i]);
    }
}

static int before(void)
{
    static int times;
    return times++;
}

int main(int count, char **arguments)
{
    int numbers[] = {0, 1};
    pthread_t threads[2];
    how = count > 1 ? arguments[1] : "";
    assert(before() == 0);
    if (is("file")) {
        char name[] = "/tmp/palisade-restored-XXXXXX";
        int fd = mkstemp(name);
        assert(fd >= 0 && write(fd, "x", 1) == 1 && lseek(fd, 0, SEEK_CUR) == 1);
        unlink(name);
    } else if (is("mask")) {
        sigset_t all, old;
        sigfillset(&all);
        assert(!sigprocmask(SIG_BLOCK, &all, &old) && !sigismember(&old, SIGUSR1));
    } else if (is("map")) {
        char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert(memory != MAP_FAILED && !memory[0]);
        memory[0] = 1;
    } else if (is("protect")) {
        static char page[8192];
        char *at = (char *)(((unsigned long)page + 4095) & ~4095ul);
        at[0] = 1;
        assert(!mprotect(at, 4096, PROT_READ));
    } else if (is("raise")) {
        assert(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
        raise(SIGUSR1);
    } else if (is("read")) {
        char byte;
        assert(read(0, &byte, 1) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    if (is("long")) {
        for (int i = 0; i < 80000; i++) {
            atomic_fetch_add(&x, 1);
        }
    } else if (is("talks")) {
        for (int i = 0; i < 5000; i++) {
            printf("%d: there is much to say\n", i);
        }
    } else if (is("threads")) {
        start_more();
    } else if (is("many")) {
        for (int i = 0; i < 50; i++) {
            memset(malloc(10000), i, 10000);
        }
    }
    free(heap);
    return (seen & 5) == 5 && is("float") ? 1 : 0;
}
