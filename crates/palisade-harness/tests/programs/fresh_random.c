/* Carries out what the first argument says, so that one program can be many. Cells are ints: `a` to `h` on the heap, `i` to
 * `p` in a frame. An operation is a letter with its cells:
 *   w.  writes             r.  reads            l.  reads atomically
 *   z.  sets two cells     c..  copies two cells as a struct
 *   m..  by `memcpy`       b..  byte by byte    s.  writes in the C library
 *   f.  writes a bit-field of three bits        x  moves the heap to a larger block
 *   |  the rest is done by another thread, up to the next `|` */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 8 };

struct pair {
    int first, second;
};

struct bits {
    unsigned a : 3, b : 29;
};

static int *heap, *frame;
static const char *next;
static int found;

static int *cell(char name)
{
    return name < 'a' + CELLS ? &heap[name - 'a'] : &frame[name - 'a' - CELLS];
}

/* The first of two cells. */
static int *two(char name)
{
    return cell((char)(name - (name - 'a') % 2));
}

static void *carry_out(void *nothing)
{
    while (*next && *next != '|') {
        char what = *next++;
        if (what == 'x') {
            heap = realloc(heap, 4 * CELLS * sizeof *heap);
            continue;
        }
        char name = *next++;
        int *at = cell(name);
        if (what == 'w') {
            *at = 5;
        } else if (what == 'r') {
            if (*at == 12345) {
                found++;
            }
        } else if (what == 'l') {
            if (atomic_load_explicit((atomic_int *)at, memory_order_relaxed) == 12345) {
                found++;
            }
        } else if (what == 'z') {
            memset(two(name), 1, sizeof(struct pair));
        } else if (what == 's') {
            sscanf("77", "%d", at);
        } else if (what == 'f') {
            ((struct bits *)at)->a = 1;
        } else {
            int *to = two(*next++), *from = two(name);
            if (what == 'c') {
                *(struct pair *)to = *(struct pair *)from;
            } else if (what == 'm') {
                memmove(to, from, sizeof(struct pair));
            } else {
                for (size_t i = 0; i < sizeof(struct pair); i++) {
                    ((char *)to)[i] = ((char *)from)[i];
                }
            }
        }
    }
    return nothing;
}

int main(int count, char **arguments)
{
    int cells[CELLS];
    (void)count;
    frame = cells;
    heap = malloc(CELLS * sizeof *heap);
    next = arguments[1];
    carry_out(NULL);
    while (*next) {
        pthread_t thread;
        next++;
        pthread_create(&thread, NULL, carry_out, NULL);
        pthread_join(thread, NULL);
    }
    free(heap);
    return found;
}
