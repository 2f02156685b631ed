/* Functions of the C library that read and write memory for the program. Their accesses are events, as if the
 * program itself had made them.
 *
 * The functions are redefined here with simple loops. Each piece is announced before it is accessed, because
 * what is accessed may depend on what others have written meanwhile. */

#include "palisade.h"
#include <stdlib.h>
#include <wchar.h>

/* The event before a byte, or a piece of a few bytes, is read or written. */
static void reads(const void *at, size_t size, uint64_t place)
{
    pal_event((uint64_t)at, HEAD(K_LOAD, O_PLAIN, size), place);
}

static void writes(void *at, size_t size, uint64_t place)
{
    pal_event((uint64_t)at, HEAD(K_STORE, O_PLAIN, size), place);
}

enum { WORD = 8 };

/* Reads a string word by word. `*left` bytes at `at` may be read without another event. */
static unsigned char byte_at(const char *at, size_t *left, size_t most, uint64_t place)
{
    if (!*left) {
        size_t size = WORD - (uint64_t)at % WORD;
        /* Not beyond the end of the string, because the bytes after it may belong to something else. */
        size_t end = 0;
        while (end < size && end < most && at[end]) {
            end++;
        }
        size = end < size && end < most ? end + 1 : end;
        reads(at, size, place);
        /* Other threads may have run, so the end may have moved. */
        end = 0;
        while (end < size && at[end]) {
            end++;
        }
        *left = end < size ? end + 1 : size;
    }
    --*left;
    return *(const volatile unsigned char *)at;
}

static size_t length(const char *text, size_t most, uint64_t place)
{
    size_t at = 0, left = 0;
    while (at < most && byte_at(text + at, &left, most - at, place)) {
        at++;
    }
    return at;
}

/* Copies a string and its terminator, word by word. `most` includes the terminator. Returns where the
 * terminator was written, or one past what was written. */
static char *copy_string(char *to, const char *from, size_t most, uint64_t place)
{
    for (size_t at = 0; at < most;) {
        size_t piece = WORD - (uint64_t)(to + at) % WORD, end = 0;
        piece = piece < most - at ? piece : most - at;
        while (end < piece && from[at + end]) {
            end++;
        }
        piece = end < piece ? end + 1 : piece;
        reads(from + at, piece, place);
        char seen[WORD];
        pal_copy(seen, from + at, piece);
        /* Other threads may have run, so the end may have moved closer. If it is no longer there, the rest is
         * read next. */
        for (end = 0; end < piece && seen[end]; end++) {
        }
        int is_end = end < piece;
        piece = is_end ? end + 1 : piece;
        writes(to + at, piece, place);
        pal_copy(to + at, seen, piece);
        if (is_end) {
            return to + at + end;
        }
        at += piece;
    }
    return to + most;
}

static int compare_strings(const char *a, const char *b, size_t most, int (*change)(int), uint64_t place)
{
    size_t left_a = 0, left_b = 0;
    for (size_t at = 0; at < most; at++) {
        int first = byte_at(a + at, &left_a, most - at, place), second = byte_at(b + at, &left_b, most - at, place);
        if (change) {
            first = change(first);
            second = change(second);
        }
        if (first != second || !first) {
            return first - second;
        }
    }
    return 0;
}

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

static int compare_bytes(const unsigned char *a, const unsigned char *b, size_t size, uint64_t place)
{
    for (size_t at = 0; at < size;) {
        size_t piece = WORD - (uint64_t)(a + at) % WORD;
        piece = piece < size - at ? piece : size - at;
        reads(a + at, piece, place);
        unsigned char seen[WORD];
        pal_copy(seen, a + at, piece);
        reads(b + at, piece, place);
        for (size_t i = 0; i < piece; i++, at++) {
            if (seen[i] != b[at]) {
                return seen[i] - b[at];
            }
        }
    }
    return 0;
}

EXPORT size_t strlen(const char *text)
{
    return length(text, SIZE_MAX, CALLER);
}

EXPORT size_t strnlen(const char *text, size_t most)
{
    return length(text, most, CALLER);
}

EXPORT char *strcpy(char *to, const char *from)
{
    copy_string(to, from, SIZE_MAX, CALLER);
    return to;
}

EXPORT char *stpcpy(char *to, const char *from)
{
    return copy_string(to, from, SIZE_MAX, CALLER);
}

static char *copy_some(char *to, const char *from, size_t size, uint64_t place)
{
    char *end = copy_string(to, from, size, place);
    for (char *at = end; at < to + size; at++) {
        if (at != end) {
            writes(at, 1, place);
            *(volatile char *)at = 0;
        }
    }
    return end;
}

EXPORT char *strncpy(char *to, const char *from, size_t size)
{
    copy_some(to, from, size, CALLER);
    return to;
}

EXPORT char *stpncpy(char *to, const char *from, size_t size)
{
    return copy_some(to, from, size, CALLER);
}

EXPORT char *strcat(char *to, const char *from)
{
    copy_string(to + length(to, SIZE_MAX, CALLER), from, SIZE_MAX, CALLER);
    return to;
}

EXPORT char *strncat(char *to, const char *from, size_t most)
{
    char *at = to + length(to, SIZE_MAX, CALLER);
    char *end = copy_string(at, from, most, CALLER);
    if (end == at + most) {
        writes(end, 1, CALLER);
        *(volatile char *)end = 0;
    }
    return to;
}

EXPORT int strcmp(const char *a, const char *b)
{
    return compare_strings(a, b, SIZE_MAX, NULL, CALLER);
}

EXPORT int strncmp(const char *a, const char *b, size_t most)
{
    return compare_strings(a, b, most, NULL, CALLER);
}

EXPORT int strcasecmp(const char *a, const char *b)
{
    return compare_strings(a, b, SIZE_MAX, lower, CALLER);
}

EXPORT int strncasecmp(const char *a, const char *b, size_t most)
{
    return compare_strings(a, b, most, lower, CALLER);
}

EXPORT int memcmp(const void *a, const void *b, size_t size)
{
    return compare_bytes(a, b, size, CALLER);
}

EXPORT int bcmp(const void *a, const void *b, size_t size)
{
    return compare_bytes(a, b, size, CALLER);
}

static char *find(const char *text, int c, uint64_t place)
{
    size_t left = 0;
    for (;; text++) {
        char byte = (char)byte_at(text, &left, SIZE_MAX, place);
        if (byte == (char)c) {
            return (char *)text;
        }
        if (!byte) {
            return NULL;
        }
    }
}

EXPORT char *strchr(const char *text, int c)
{
    return find(text, c, CALLER);
}

EXPORT char *index(const char *text, int c)
{
    return find(text, c, CALLER);
}

EXPORT char *strchrnul(const char *text, int c)
{
    size_t left = 0;
    for (;; text++) {
        char byte = (char)byte_at(text, &left, SIZE_MAX, CALLER);
        if (!byte || byte == (char)c) {
            return (char *)text;
        }
    }
}

static char *find_last(const char *text, int c, uint64_t place)
{
    size_t left = 0;
    const char *found = NULL;
    for (;; text++) {
        char byte = (char)byte_at(text, &left, SIZE_MAX, place);
        found = byte == (char)c ? text : found;
        if (!byte) {
            return (char *)found;
        }
    }
}

EXPORT char *strrchr(const char *text, int c)
{
    return find_last(text, c, CALLER);
}

EXPORT char *rindex(const char *text, int c)
{
    return find_last(text, c, CALLER);
}

static void *find_byte(const unsigned char *from, int c, size_t size, uint64_t place)
{
    for (size_t at = 0; at < size;) {
        size_t piece = WORD - (uint64_t)(from + at) % WORD;
        piece = piece < size - at ? piece : size - at;
        /* Not beyond the first match, because the program may pass a size larger than the memory. */
        size_t end = 0;
        while (end < piece && from[at + end] != (unsigned char)c) {
            end++;
        }
        piece = end < piece ? end + 1 : piece;
        reads(from + at, piece, place);
        for (size_t i = 0; i < piece; i++, at++) {
            if (((const volatile unsigned char *)from)[at] == (unsigned char)c) {
                return (void *)(from + at);
            }
        }
    }
    return NULL;
}

EXPORT void *memchr(const void *from, int c, size_t size)
{
    return find_byte(from, c, size, CALLER);
}

EXPORT void *memrchr(const void *from, int c, size_t size)
{
    const unsigned char *bytes = from;
    while (size--) {
        reads(bytes + size, 1, CALLER);
        if (bytes[size] == (unsigned char)c) {
            return (void *)(bytes + size);
        }
    }
    return NULL;
}

static int is_among(char byte, const char *set, uint64_t place)
{
    size_t left = 0;
    for (;; set++) {
        char member = (char)byte_at(set, &left, SIZE_MAX, place);
        if (!member) {
            return 0;
        }
        if (member == byte) {
            return 1;
        }
    }
}

static size_t span(const char *text, const char *set, int among, uint64_t place)
{
    size_t at = 0, left = 0;
    for (;; at++) {
        char byte = (char)byte_at(text + at, &left, SIZE_MAX, place);
        if (!byte || is_among(byte, set, place) != among) {
            return at;
        }
    }
}

EXPORT size_t strspn(const char *text, const char *set)
{
    return span(text, set, 1, CALLER);
}

EXPORT size_t strcspn(const char *text, const char *set)
{
    return span(text, set, 0, CALLER);
}

EXPORT char *strpbrk(const char *text, const char *set)
{
    const char *at = text + span(text, set, 0, CALLER);
    return *at ? (char *)at : NULL;
}

static char *find_string(const char *text, const char *part, int (*change)(int), uint64_t place)
{
    size_t size = length(part, SIZE_MAX, place), left = 0;
    for (;; text++) {
        if (!compare_strings(text, part, size, change, place)) {
            return (char *)text;
        }
        if (!byte_at(text, &left, SIZE_MAX, place)) {
            return NULL;
        }
    }
}

EXPORT char *strstr(const char *text, const char *part)
{
    return find_string(text, part, NULL, CALLER);
}

EXPORT char *strcasestr(const char *text, const char *part)
{
    return find_string(text, part, lower, CALLER);
}

static char *token(char *text, const char *set, char **rest, uint64_t place)
{
    text = text ? text : *rest;
    text += span(text, set, 1, place);
    if (!*text) {
        *rest = text;
        return NULL;
    }
    char *end = text + span(text, set, 0, place);
    *rest = end;
    if (*end) {
        writes(end, 1, place);
        *(volatile char *)end = 0;
        *rest = end + 1;
    }
    return text;
}

EXPORT char *strtok_r(char *text, const char *set, char **rest)
{
    return token(text, set, rest, CALLER);
}

EXPORT char *strdup(const char *text)
{
    size_t size = length(text, SIZE_MAX, CALLER) + 1;
    char *made = pal_allocate(size, CALLER);
    return made ? (copy_string(made, text, size, CALLER), made[size - 1] = 0, made) : NULL;
}

EXPORT char *strndup(const char *text, size_t most)
{
    size_t size = length(text, most, CALLER);
    char *made = pal_allocate(size + 1, CALLER);
    if (made) {
        copy_string(made, text, size, CALLER);
        made[size] = 0;
    }
    return made;
}

EXPORT void bzero(void *to, size_t size)
{
    pal_fill_for(to, 0, size, CALLER);
}

EXPORT void explicit_bzero(void *to, size_t size)
{
    pal_fill_for(to, 0, size, CALLER);
}

EXPORT void bcopy(const void *from, void *to, size_t size)
{
    pal_move_for(to, from, size, CALLER);
}

EXPORT void *mempcpy(void *to, const void *from, size_t size)
{
    pal_copy_for(to, from, size, CALLER);
    return (char *)to + size;
}

EXPORT void *memccpy(void *to, const void *from, int c, size_t size)
{
    const char *end = find_byte(from, c, size, CALLER);
    size_t bytes = end ? (size_t)(end - (const char *)from) + 1 : size;
    pal_copy_for(to, from, bytes, CALLER);
    return end ? (char *)to + bytes : NULL;
}

/* For wide characters, only the functions that copy, set and compare. */
EXPORT wchar_t *wmemcpy(wchar_t *to, const wchar_t *from, size_t count)
{
    pal_copy_for(to, from, count * sizeof *to, CALLER);
    return to;
}

EXPORT wchar_t *wmemmove(wchar_t *to, const wchar_t *from, size_t count)
{
    pal_move_for(to, from, count * sizeof *to, CALLER);
    return to;
}

/* The variants with the size of the target, which `_FORTIFY_SOURCE` uses. */
__attribute__((noreturn)) void __chk_fail(void);

static void fits(size_t needed, size_t size)
{
    if (needed > size) {
        __chk_fail();
    }
}

EXPORT void *__memcpy_chk(void *to, const void *from, size_t size, size_t room)
{
    fits(size, room);
    pal_copy_for(to, from, size, CALLER);
    return to;
}

EXPORT void *__memmove_chk(void *to, const void *from, size_t size, size_t room)
{
    fits(size, room);
    pal_move_for(to, from, size, CALLER);
    return to;
}

EXPORT void *__memset_chk(void *to, int byte, size_t size, size_t room)
{
    fits(size, room);
    pal_fill_for(to, byte, size, CALLER);
    return to;
}

EXPORT void *__mempcpy_chk(void *to, const void *from, size_t size, size_t room)
{
    fits(size, room);
    pal_copy_for(to, from, size, CALLER);
    return (char *)to + size;
}

/* The text may grow while it is copied, but must not exceed its room. */
EXPORT char *__strcpy_chk(char *to, const char *from, size_t room)
{
    fits(copy_string(to, from, room, CALLER) == to + room, 0);
    return to;
}

EXPORT char *__stpcpy_chk(char *to, const char *from, size_t room)
{
    char *end = copy_string(to, from, room, CALLER);
    fits(end == to + room, 0);
    return end;
}

EXPORT char *__strncpy_chk(char *to, const char *from, size_t size, size_t room)
{
    fits(size, room);
    copy_some(to, from, size, CALLER);
    return to;
}

EXPORT char *__strcat_chk(char *to, const char *from, size_t room)
{
    size_t at = length(to, room, CALLER);
    fits(copy_string(to + at, from, room - at, CALLER) == to + room, 0);
    return to;
}

EXPORT char *__strncat_chk(char *to, const char *from, size_t most, size_t room)
{
    size_t at = length(to, room, CALLER);
    char *end = copy_string(to + at, from, most < room - at ? most : room - at, CALLER);
    fits(end == to + room, 0);
    if (end == to + at + most) {
        writes(end, 1, CALLER);
        *(volatile char *)end = 0;
    }
    return to;
}
