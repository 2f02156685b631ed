/* A correct program with many accesses for which compilers make no call. None of them may be reported as not
 * followed, and all values must be correct. */

#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct item {
    long double weight;
    long words[9];
    char name[24];
    unsigned low : 3, high : 11;
};

struct job {
    struct item item;
    int result, number;
};

typedef int vector __attribute__((vector_size(32)));

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct item shared_item;
static vector shared_vector;
static long double total;
static __thread struct item own;
static __thread int own_number;
static const int squares[8] = {0, 1, 4, 9, 16, 25, 36, 49};

static __attribute__((noinline)) struct item make(int number)
{
    struct item made = {.weight = number};
    for (int i = 0; i < 9; i++) {
        made.words[i] = squares[i % 8] + number;
    }
    made.low = (unsigned)number;
    made.high = 1024;
    strcpy(made.name, "item ");
    strncat(made.name, &"0123456789"[number % 10], 1);
    return made;
}

static __attribute__((noinline)) long sum(struct item item, ...)
{
    long result = (long)item.weight + item.high;
    for (int i = 0; i < 9; i++) {
        result += item.words[i];
    }
    va_list list;
    va_start(list, item);
    for (int more = va_arg(list, int); more; more = va_arg(list, int)) {
        result += more;
    }
    va_end(list);
    return result;
}

static __attribute__((noinline)) int depth(int levels, int *outer)
{
    int here[4] = {levels, *outer, 1, 2};
    return levels ? depth(levels - 1, &here[0]) + here[levels % 4] - here[levels % 4] : here[1];
}

static int by_size(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void *work(void *argument)
{
    struct job *job = argument;
    struct item local = job->item;
    own = local;
    own_number = job->number;
    int numbers[5] = {5, 3, 4, 1, own_number};
    qsort(numbers, 5, sizeof *numbers, by_size);
    assert(numbers[0] <= numbers[1]);
    assert(depth(6, &numbers[1]) >= 0);
    jmp_buf back;
    volatile int rounds = 0;
    if (setjmp(back) < 2) {
        rounds++;
        longjmp(back, rounds);
    }
    char text[64];
    snprintf(text, sizeof text, "%s of %d", local.name, job->number);
    assert(strstr(text, "of") && strlen(text) < sizeof text && !strcmp(local.name, own.name));
    assert(!strncmp(text, "item", 4) && strchr(text, 'o') && !memcmp(text, "it", 2));
    vector *copy = malloc(sizeof *copy + 64);
    copy = (vector *)(((unsigned long)copy + 31) & ~31ul);
    pthread_mutex_lock(&mutex);
    shared_item = make(job->number);
    shared_vector += (vector){1, 1, 1, 1, 1, 1, 1, 1};
    *copy = shared_vector;
    total += own.weight;
    job->result = (int)sum(shared_item, 1, 2, 0);
    pthread_mutex_unlock(&mutex);
    assert((*copy)[3] >= 1);
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    struct job jobs[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = (struct job){.item = make(i), .number = i};
        pthread_create(&threads[i], NULL, work, &jobs[i]);
    }
    int results = 0;
    for (int i = 0; i < 3; i++) {
        void *job;
        pthread_join(threads[i], &job);
        results += ((struct job *)job)->result;
    }
    assert(total == 3 && shared_vector[7] == 3);
    assert(results == 3 * (140 + 1024 + 3) + 10 * 3);
    return 0;
}
