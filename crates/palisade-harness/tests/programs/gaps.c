/* Store buffering whose stores or loads are of kinds for which compilers make no call. The first argument
 * says which kind. With `-` before it, every thread has a fence between its two accesses. */

#define _GNU_SOURCE
#include <assert.h>
#include <emmintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

struct large {
    long words[4];
};

struct small {
    int one, two, three;
};

typedef int vector __attribute__((vector_size(32)));

union cell {
    struct large large;
    struct small small;
    struct {
        unsigned one : 3, two : 5;
    } bits;
    long double real;
    vector vector;
    int numbers[8];
    char text[64];
    __m128i wide;
};

static union cell x __attribute__((aligned(64))), y __attribute__((aligned(64)));
static struct large ones = {{1, 1, 1, 1}};
static const char *volatile source = "abcdefgh";
static long double number = 1.5L;
static int seen[2];

#define APART __attribute__((noinline))

static APART struct large make_large(long value)
{
    struct large made = {{value, value, value, value}};
    return made;
}

static APART struct small make_small(int value)
{
    struct small made = {value, value, value};
    return made;
}

static APART int take_large(struct large taken)
{
    return (int)taken.words[0];
}

static APART int take_small(struct small taken)
{
    return taken.one;
}

/* Stores. */
static void store(union cell *to) { to->numbers[0] = 1; }
static void return_large(union cell *to) { to->large = make_large(1); }
static void return_small(union cell *to) { to->small = make_small(1); }
static void assembly_output(union cell *to) { __asm__ volatile("movl $1, %0" : "=r"(to->numbers[0])); }
static void builtin_copy(union cell *to) { __builtin_memcpy(to, source, 4); }
static void builtin_move(union cell *to) { __builtin_memmove(to, source, 8); }
static void builtin_set(union cell *to) { __builtin_memset(to, 1, 24); }
static void long_double(union cell *to) { to->real = number; }
static void wide_vector(union cell *to) { to->vector = (vector){1, 1, 1, 1, 1, 1, 1, 1}; }
static void intrinsic(union cell *to) { _mm_storeu_si128(&to->wide, _mm_set1_epi32(1)); }
static void struct_copy(union cell *to) { to->large = ones; }
static void zero_bytes(union cell *to) { bzero(to, 4); }
static void string_copy(union cell *to) { strcpy(to->text, source); }
static void string_copy_end(union cell *to) { (void)stpcpy(to->text, source); }
static void string_copy_some(union cell *to) { strncpy(to->text, source, 4); }
static void string_copy_constant(union cell *to) { strcpy(to->text, "abc"); }
static void string_append(union cell *to) { strcat(to->text, source); }
static void set_bits(union cell *to) { to->bits.two = 1; }

/* Loads. */
static int load(union cell *from) { return from->numbers[0]; }
static int pass_large(union cell *from) { return take_large(from->large); }
static int pass_small(union cell *from) { return take_small(from->small); }
static int read_long_double(union cell *from) { return (int)from->real; }
static int read_vector(union cell *from) { return (from->vector + from->vector)[0]; }
static int read_intrinsic(union cell *from) { return _mm_cvtsi128_si32(_mm_loadu_si128(&from->wide)); }
static int length(union cell *from) { return (int)strlen(from->text); }
static int compare(union cell *from) { return memcmp(from, &ones, 24); }
static int compare_few(union cell *from) { return !memcmp(from, source, 2); }
static int compare_strings(union cell *from) { return strcmp(from->text, source); }
static int compare_some(union cell *from) { return strncmp(from->text, source, 4); }
static int find_char(union cell *from) { return !strchr(from->text, 'z'); }
static int find_byte(union cell *from) { return !memchr(from, 'z', 8); }
static int find_string(union cell *from) { return !strstr(from->text, source); }
static int builtin_copy_from(union cell *from)
{
    int copy;
    __builtin_memcpy(&copy, from, 4);
    return copy;
}

static const struct {
    const char *name;
    void (*write)(union cell *);
    int (*read)(union cell *);
} gaps[] = {
    {"none", store, load},
    {"return_large", return_large, load},
    {"return_small", return_small, load},
    {"assembly_output", assembly_output, load},
    {"builtin_copy", builtin_copy, load},
    {"builtin_move", builtin_move, load},
    {"builtin_set", builtin_set, load},
    {"long_double", long_double, load},
    {"wide_vector", wide_vector, load},
    {"intrinsic", intrinsic, load},
    {"struct_copy", struct_copy, load},
    {"zero_bytes", zero_bytes, load},
    {"string_copy", string_copy, load},
    {"string_copy_end", string_copy_end, load},
    {"string_copy_some", string_copy_some, load},
    {"string_copy_constant", string_copy_constant, load},
    {"string_append", string_append, load},
    {"set_bits", set_bits, load},
    {"pass_large", store, pass_large},
    {"pass_small", store, pass_small},
    {"read_long_double", store, read_long_double},
    {"read_vector", store, read_vector},
    {"read_intrinsic", store, read_intrinsic},
    {"length", store, length},
    {"compare", store, compare},
    {"compare_few", store, compare_few},
    {"compare_strings", store, compare_strings},
    {"compare_some", store, compare_some},
    {"find_char", store, find_char},
    {"find_byte", store, find_byte},
    {"find_string", store, find_string},
    {"builtin_copy_from", store, builtin_copy_from},
};

static void (*volatile write)(union cell *);
static int (*volatile read)(union cell *);
static volatile int is_fenced;

static void *one(void *nothing)
{
    write(&x);
    if (is_fenced) {
        atomic_thread_fence(memory_order_seq_cst);
    }
    seen[0] = read(&y);
    return nothing;
}

static void *two(void *nothing)
{
    write(&y);
    if (is_fenced) {
        atomic_thread_fence(memory_order_seq_cst);
    }
    seen[1] = read(&x);
    return nothing;
}

int main(int count, char **arguments)
{
    assert(count == 2);
    is_fenced = arguments[1][0] == '-';
    for (unsigned i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        if (!strcmp(arguments[1] + is_fenced, gaps[i].name)) {
            write = gaps[i].write;
            read = gaps[i].read;
        }
    }
    assert(write);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, two, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
