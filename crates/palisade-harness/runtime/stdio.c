/* Functions of the C library that print, read, convert and sort. Their accesses to the program's memory
 * are followed.
 *
 * Memory that a function only reads is announced before the call: no other thread runs in between. A
 * function that writes gets a copy to write to, since the size is known only afterwards. The copy then
 * goes piece by piece to where the program wants it. Streams and their buffers belong to the library. */

#include "palisade.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wchar.h>

/* Whether no other thread can see single accesses of the calling thread there. */
static int is_private(const void *at)
{
    return pal.quiet || pal_is_alone() || pal_is_on_stack(pal.self, (uint64_t)at);
}

/* A string is read up to its end, or at most this far. Other threads may run before that, and the string
 * may be longer then. */
void pal_reads_text(const char *text, size_t most, uint64_t place)
{
    if (pal.quiet || pal_is_alone() || !text) {
        return;
    }
    for (size_t done = 0;;) {
        size_t size = 0;
        while (size < most && text[size]) {
            size++;
        }
        size += size < most;
        if (size <= done) {
            return;
        }
        pal_accesses(text + done, size - done, 0, place);
        done = size;
    }
}

/* Writes to the program's memory, piece by piece. */
static void put(char *to, const char *from, size_t size, uint64_t place)
{
    enum { WORD = 8, LINE = 64, SHORT = 256 };
    size_t unit = size <= SHORT ? WORD : LINE;
    for (size_t at = 0; at < size;) {
        size_t bytes = unit - (uint64_t)(to + at) % unit;
        bytes = bytes < size - at ? bytes : size - at;
        pal_accesses(to + at, bytes, 1, place);
        pal_copy(to + at, from + at, bytes);
        at += bytes;
    }
}

/* What a format makes printf read and write. Whether all of it is understood. */
static int follow_format(const char *format, va_list list, uint64_t place)
{
    pal_reads_text(format, SIZE_MAX, place);
    for (; *format; format++) {
        if (*format != '%') {
            continue;
        }
        format++;
        while (*format && (*format == '-' || *format == '+' || *format == ' ' || *format == '#' || *format == '0' || *format == '\'' || *format == 'I')) {
            format++;
        }
        size_t precision = SIZE_MAX;
        for (int part = 0; part < 2; part++) {
            if (part == 1) {
                if (*format != '.') {
                    break;
                }
                format++;
                precision = 0;
            }
            if (*format == '*') {
                int value = va_arg(list, int);
                if (part == 1) {
                    precision = value < 0 ? SIZE_MAX : (size_t)value;
                }
                format++;
            }
            for (; *format >= '0' && *format <= '9'; format++) {
                if (part == 1) {
                    precision = precision * 10 + (size_t)(*format - '0');
                }
            }
        }
        int longs = 0, is_long_double = 0, size = sizeof(int);
        for (;; format++) {
            if (*format == 'l' || *format == 'q') {
                longs += *format == 'q' ? 2 : 1;
                size = 8;
            } else if (*format == 'h') {
                size = size == 2 ? 1 : 2;
            } else if (*format == 'j' || *format == 'z' || *format == 't' || *format == 'Z') {
                longs = 1;
                size = 8;
            } else if (*format == 'L') {
                is_long_double = 1;
                longs = 2;
                size = 8;
            } else {
                break;
            }
        }
        switch (*format) {
        case 'd':
        case 'i':
        case 'o':
        case 'u':
        case 'x':
        case 'X':
        case 'b':
        case 'B':
            longs ? (void)va_arg(list, long) : (void)va_arg(list, int);
            break;
        case 'c':
        case 'C':
            (void)va_arg(list, int);
            break;
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            if (is_long_double) {
                (void)va_arg(list, long double);
            } else {
                (void)va_arg(list, double);
            }
            break;
        case 'p':
            (void)va_arg(list, void *);
            break;
        case 's': {
            const char *text = va_arg(list, const char *);
            if (longs) {
                /* Wide characters. */
                return 0;
            }
            pal_reads_text(text, precision, place);
            break;
        }
        case 'n':
            pal_accesses(va_arg(list, void *), (size_t)size, 1, place);
            break;
        case 'm':
        case '%':
            break;
        default:
            /* Numbered arguments, or what a program has registered itself. */
            return 0;
        }
    }
    return 1;
}

static void follow_printf(const char *format, va_list list, uint64_t place)
{
    if (pal.quiet || pal_is_alone()) {
        return;
    }
    va_list copy;
    va_copy(copy, list);
    if (!follow_format(format, copy, place)) {
        pal_note_about(N_CALL, 0, place);
    }
    va_end(copy);
}

static int print(FILE *stream, const char *format, va_list list, uint64_t place)
{
    follow_printf(format, list, place);
    return NEXT(vfprintf)(stream, format, list);
}

/* `most` is the size of the target. */
static int print_to(char *to, size_t most, const char *format, va_list list, uint64_t place)
{
    follow_printf(format, list, place);
    if (is_private(to)) {
        va_list copy;
        va_copy(copy, list);
        int length = NEXT(vsnprintf)(to, most, format, copy);
        va_end(copy);
        size_t size = length < 0 ? 0 : (size_t)length + 1;
        pal_accesses(to, size < most ? size : most, 1, place);
        return length;
    }
    char small[512], *text = small;
    va_list copy;
    va_copy(copy, list);
    int length = NEXT(vsnprintf)(small, sizeof small, format, copy);
    va_end(copy);
    if (length < 0) {
        return length;
    }
    size_t size = (size_t)length + 1;
    if (size > sizeof small) {
        text = pal_allocate(size, 0);
        if (!text) {
            errno = ENOMEM;
            return -1;
        }
        length = NEXT(vsnprintf)(text, size, format, list);
    }
    if (most) {
        if (size > most) {
            size = most;
            text[size - 1] = 0;
        }
        put(to, text, size, place);
    }
    if (text != small) {
        pal_release(text);
    }
    return length;
}

#define LISTED(last, call) ({ \
    va_list list; \
    va_start(list, last); \
    int result = call; \
    va_end(list); \
    result; \
})

EXPORT int printf(const char *format, ...) { return LISTED(format, print(stdout, format, list, CALLER)); }
EXPORT int fprintf(FILE *stream, const char *format, ...) { return LISTED(format, print(stream, format, list, CALLER)); }
EXPORT int vprintf(const char *format, va_list list) { return print(stdout, format, list, CALLER); }
EXPORT int vfprintf(FILE *stream, const char *format, va_list list) { return print(stream, format, list, CALLER); }
EXPORT int sprintf(char *to, const char *format, ...) { return LISTED(format, print_to(to, INT32_MAX, format, list, CALLER)); }
EXPORT int vsprintf(char *to, const char *format, va_list list) { return print_to(to, INT32_MAX, format, list, CALLER); }
EXPORT int snprintf(char *to, size_t size, const char *format, ...) { return LISTED(format, print_to(to, size, format, list, CALLER)); }
EXPORT int vsnprintf(char *to, size_t size, const char *format, va_list list) { return print_to(to, size, format, list, CALLER); }

static int print_fd(int fd, const char *format, va_list list, uint64_t place)
{
    follow_printf(format, list, place);
    return NEXT(vdprintf)(fd, format, list);
}

EXPORT int dprintf(int fd, const char *format, ...) { return LISTED(format, print_fd(fd, format, list, CALLER)); }
EXPORT int vdprintf(int fd, const char *format, va_list list) { return print_fd(fd, format, list, CALLER); }

/* As `_FORTIFY_SOURCE` calls them. */
__attribute__((noreturn)) void __chk_fail(void);

static int print_within(char *to, size_t most, size_t room, const char *format, va_list list, uint64_t place)
{
    if (most != SIZE_MAX && most > room) {
        __chk_fail();
    }
    int length = print_to(to, most < room ? most : room, format, list, place);
    if (most == SIZE_MAX && length >= 0 && (size_t)length >= room) {
        __chk_fail();
    }
    return length;
}

EXPORT int __printf_chk(int flag, const char *format, ...) { return (void)flag, LISTED(format, print(stdout, format, list, CALLER)); }
EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...) { return (void)flag, LISTED(format, print(stream, format, list, CALLER)); }
EXPORT int __vprintf_chk(int flag, const char *format, va_list list) { return (void)flag, print(stdout, format, list, CALLER); }
EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list list) { return (void)flag, print(stream, format, list, CALLER); }
EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...) { return (void)flag, LISTED(format, print_fd(fd, format, list, CALLER)); }
EXPORT int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...) { return (void)flag, LISTED(format, print_within(to, SIZE_MAX, room, format, list, CALLER)); }
EXPORT int __vsprintf_chk(char *to, int flag, size_t room, const char *format, va_list list) { return (void)flag, print_within(to, SIZE_MAX, room, format, list, CALLER); }
EXPORT int __snprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, ...) { return (void)flag, LISTED(format, print_within(to, size, room, format, list, CALLER)); }
EXPORT int __vsnprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, va_list list) { return (void)flag, print_within(to, size, room, format, list, CALLER); }

/* Texts and blocks that are written to files. */

EXPORT int puts(const char *text)
{
    pal_reads_text(text, SIZE_MAX, CALLER);
    return NEXT(puts)(text);
}

EXPORT int fputs(const char *text, FILE *stream)
{
    pal_reads_text(text, SIZE_MAX, CALLER);
    return NEXT(fputs)(text, stream);
}

EXPORT size_t fwrite(const void *from, size_t size, size_t count, FILE *stream)
{
    size_t bytes;
    if (!__builtin_mul_overflow(size, count, &bytes)) {
        pal_accesses(from, bytes, 0, CALLER);
    }
    return NEXT(fwrite)(from, size, count, stream);
}

/* What is read goes to a copy first. */

#define THROUGH_COPY(type, to, room, call, written) ({ \
    char *copy = is_private(to) ? NULL : pal_allocate(room, 0); \
    char *into = copy ? copy : (char *)(to); \
    type result = call; \
    size_t bytes_written = written; \
    pal_changes_outside(); \
    if (copy) { \
        put((char *)(to), copy, bytes_written, CALLER); \
        pal_release(copy); \
    } else { \
        pal_accesses(to, bytes_written, 1, CALLER); \
    } \
    result; \
})

/* Libraries also call these functions, with memory of their own. Only calls of the program come here, through
 * wrappers of src/link.rs. */

EXPORT ssize_t palisade_read(int fd, void *to, size_t room)
{
    pal_in_order(ORDERED_SYSTEM, CALLER);
    return THROUGH_COPY(ssize_t, to, room, NEXT(read)(fd, into, room), result < 0 ? 0 : (size_t)result);
}

EXPORT ssize_t palisade___read_chk(int fd, void *to, size_t size, size_t room)
{
    if (size > room) {
        __chk_fail();
    }
    return palisade_read(fd, to, size);
}

EXPORT ssize_t palisade_recv(int fd, void *to, size_t room, int flags)
{
    pal_in_order(ORDERED_SYSTEM, CALLER);
    return THROUGH_COPY(ssize_t, to, room, NEXT(recv)(fd, into, room, flags), result < 0 ? 0 : (size_t)result);
}

EXPORT size_t fread(void *to, size_t size, size_t count, FILE *stream)
{
    size_t room;
    if (__builtin_mul_overflow(size, count, &room)) {
        return NEXT(fread)(to, size, count, stream);
    }
    /* The last element may be there in part. */
    return THROUGH_COPY(size_t, to, room, NEXT(fread)(into, size, count, stream), result * size);
}

static size_t length_of(const char *text)
{
    return text ? pal_length(text) + 1 : 0;
}

EXPORT char *fgets(char *to, int room, FILE *stream)
{
    size_t size = room > 0 ? (size_t)room : 0;
    char *line = THROUGH_COPY(char *, to, size, NEXT(fgets)(into, room, stream), length_of(result));
    return line ? to : NULL;
}

/* Numbers as text. What can be part of a number is read, and what ends it. */

static void reads_number(const char *text, uint64_t place)
{
    size_t size = 0;
    for (;; size++) {
        char c = text[size];
        int is_part = c == ' ' || (c >= '\t' && c <= '\r') || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.';
        if (!is_part) {
            break;
        }
    }
    pal_accesses(text, size + 1, 0, place);
}

static void put_end(char **to, char *end, uint64_t place)
{
    if (to) {
        pal_accesses(to, sizeof *to, 1, place);
        *to = end;
    }
}

#define INTEGER(type, name) \
    extern type name(const char *text, char **end, int base); \
    EXPORT type name(const char *text, char **end, int base) \
    { \
        char *stop = (char *)text; \
        reads_number(text, CALLER); \
        type result = NEXT(name)(text, &stop, base); \
        put_end(end, stop, CALLER); \
        return result; \
    }
#define FLOATING(type, name) \
    extern type name(const char *text, char **end); \
    EXPORT type name(const char *text, char **end) \
    { \
        char *stop = (char *)text; \
        reads_number(text, CALLER); \
        type result = NEXT(name)(text, &stop); \
        put_end(end, stop, CALLER); \
        return result; \
    }
#define WHOLE(type, name) \
    EXPORT type name(const char *text) \
    { \
        reads_number(text, CALLER); \
        return NEXT(name)(text); \
    }
INTEGER(long, strtol)
INTEGER(unsigned long, strtoul)
INTEGER(long long, strtoll)
INTEGER(unsigned long long, strtoull)
INTEGER(intmax_t, strtoimax)
INTEGER(uintmax_t, strtoumax)
INTEGER(long, __isoc23_strtol)
INTEGER(unsigned long, __isoc23_strtoul)
INTEGER(long long, __isoc23_strtoll)
INTEGER(unsigned long long, __isoc23_strtoull)
FLOATING(double, strtod)
FLOATING(float, strtof)
FLOATING(long double, strtold)
WHOLE(int, atoi)
WHOLE(long, atol)
WHOLE(long long, atoll)
WHOLE(double, atof)

/* Sorting: elements are read, sorted in a copy, and written back. The program's own function compares
 * elements of the copy. Equal elements keep their order. */

typedef int compare_fn(const void *, const void *, void *);

static void merge_sort(char *items, char *spare, size_t count, size_t size, compare_fn *compare, void *argument)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t from = 0; from < count; from += 2 * width) {
            size_t middle = from + width < count ? from + width : count, end = from + 2 * width < count ? from + 2 * width : count;
            for (size_t left = from, right = middle, to = from; to < end; to++) {
                int takes_left = right >= end || (left < middle && compare(items + left * size, items + right * size, argument) <= 0);
                size_t taken = takes_left ? left++ : right++;
                pal_copy(spare + to * size, items + taken * size, size);
            }
        }
        pal_copy(items, spare, count * size);
    }
}

static int sort_copy(void *base, size_t count, size_t size, compare_fn *compare, void *argument, uint64_t place)
{
    size_t bytes;
    char *items = __builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4 ? NULL : pal_allocate(2 * bytes + 1, 0);
    if (!items) {
        return 0;
    }
    pal_accesses(base, bytes, 0, place);
    pal_copy(items, base, bytes);
    merge_sort(items, items + bytes, count, size, compare, argument);
    if (is_private(base)) {
        pal_accesses(base, bytes, 1, place);
        pal_copy(base, items, bytes);
    } else {
        put(base, items, bytes, place);
    }
    pal_release(items);
    return 1;
}

static int without_argument(const void *a, const void *b, void *compare)
{
    return (*(int (**)(const void *, const void *))compare)(a, b);
}

EXPORT void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    if (!sort_copy(base, count, size, without_argument, &compare, CALLER)) {
        pal_note_about(N_CALL, 0, CALLER);
        NEXT(qsort)(base, count, size, compare);
    }
}

EXPORT void qsort_r(void *base, size_t count, size_t size, compare_fn *compare, void *argument)
{
    if (!sort_copy(base, count, size, compare, argument, CALLER)) {
        pal_note_about(N_CALL, 0, CALLER);
        NEXT(qsort_r)(base, count, size, compare, argument);
    }
}

EXPORT void *bsearch(const void *key, const void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    for (size_t low = 0, high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        const char *item = (const char *)base + middle * size;
        int order = compare(key, item);
        if (!order) {
            return (void *)item;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}
