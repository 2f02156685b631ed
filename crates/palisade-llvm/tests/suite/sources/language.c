// What C has: structs, unions, bit-fields, switch, variadic functions, thread-local variables, inline assembly,
// function pointers, computed gotos, variable-length arrays, floats.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inner {
    char tag;
    union {
        uint64_t whole;
        uint16_t parts[4];
    };
};
struct outer {
    unsigned low : 3, high : 29;
    struct inner items[2][3];
    struct outer *self;
    int (*method)(struct outer *, int);
};
struct __attribute__((packed)) tight {
    char c;
    int32_t i;
};
struct big {
    long words[8];
};
typedef struct outer outer_t;
enum color { RED, GREEN = 7, BLUE };

_Thread_local int per_thread = 4;
static __thread struct inner per_thread_struct;
extern int defined_elsewhere;
int tentative[5];
const char *const names[] = {"one", "t\"w\\o", "\xff\n"};
static struct tight tights[] = {{'a', -1}, {'b', 2}};
__int128 wide = -5;
double ratio = 2.5;
float _Complex imaginary;
int weak_one(void) __attribute__((weak));

static int method(outer_t *o, int n) { return (int)o->low + n; }
static outer_t object = {1, 2, {{{'x', {3}}}}, &object, method};
int *inside = (int *)&object.items[1][2].parts[1];

static int sum(int count, ...) {
    va_list list;
    va_start(list, count);
    int total = 0;
    while (count-- > 0)
        total += va_arg(list, int);
    va_end(list);
    return total;
}

static struct big by_value(struct big b, struct tight t) {
    b.words[0] += t.i;
    return b;
}

static int choose(enum color c) {
    switch (c) {
    case RED: return 1;
    case GREEN: return -2;
    case BLUE: break;
    default: __builtin_unreachable();
    }
    return c > 3 ? 5 : 6;
}

static int add_locked(int *where, int by) {
    int old = by;
    __asm__ volatile("lock; xaddl %0, %1" : "+r"(old), "+m"(*where) : : "memory", "cc");
    __asm__ volatile("mfence" : : : "memory");
    __asm__ volatile("" : : : "memory");
    __asm__("pause");
    return old;
}

static int jumps(int n) {
    static void *targets[] = {&&first, &&second};
    goto *targets[n & 1];
first:
    return 1;
second:
    return 2;
}

int main(int argc, char **argv) {
    int array[argc + 1];
    memset(array, 0, sizeof array);
    array[0] = sum(3, 1, 2, argc);
    object.high = 5;
    object.items[1][0].parts[3] = 9;
    per_thread += choose(argc) + add_locked(array, 2) + jumps(argc);
    per_thread_struct.whole = (uint64_t)ratio;
    struct big b = by_value((struct big){{1}}, tights[1]);
    outer_t copy = object;
    char *text = malloc(10);
    memcpy(text, argv[0], 3);
    printf("%s %d %f %ld\n", text, copy.method(&copy, 3), ratio * 2, b.words[0]);
    free(text);
    unsigned char shifts = (unsigned char)(array[0] << 3 | array[0] >> 1);
    long product = (long)array[0] * -3 % 7 / 2;
    return weak_one ? weak_one() : (int)(product ^ shifts) + defined_elsewhere + (int)wide;
}
