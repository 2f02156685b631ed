/* Steps whose order matters, although they touch no memory of the program: reading a clock, calls that concern files,
 * descriptors and the process, and registering what `exit` calls. What a thread gets depends on what others have done
 * before. So each kind is an address of its own, and such a step is taken as if it freed that address: it conflicts
 * with the others of its kind, and does not wait until the buffer is empty. Order between threads that other accesses
 * could rely on does not come from it. */

#include "palisade.h"
#include <stdlib.h>

static char objects[ORDERED_KINDS];

void pal_in_order(enum ordered kind, uint64_t place)
{
    if (!pal.self || pal.quiet || pal_is_alone()) {
        return;
    }
    uint64_t address = (uint64_t)&objects[kind] & ADDRESS_BITS;
    uint64_t first = address | HEAD(K_FREE, O_PLAIN, ORDERED), second = pal_at(place) | F_CHOSEN;
    pal_add_range(address, 1, K_FREE);
    pal_decide(first, second);
    pal_log(first, second);
}

/* What `exit` calls. The C library keeps the list under a lock. C++ registers destructors of static objects here. */
extern void *__dso_handle __attribute__((visibility("hidden")));
int __cxa_atexit(void (*call)(void *), void *argument, void *library);

EXPORT int __cxa_atexit(void (*call)(void *), void *argument, void *library)
{
    pal_in_order(ORDERED_AT_EXIT, CALLER);
    return NEXT(__cxa_atexit)(call, argument, library);
}

/* The C library's own is part of the program, and would be the place at which the step is reported. */
EXPORT int atexit(void (*call)(void))
{
    pal_in_order(ORDERED_AT_EXIT, CALLER);
    return NEXT(__cxa_atexit)((void (*)(void *))call, NULL, __dso_handle);
}

EXPORT int on_exit(void (*call)(int, void *), void *argument)
{
    pal_in_order(ORDERED_AT_EXIT, CALLER);
    return NEXT(on_exit)(call, argument);
}
