/* Robust mutexes (PTHREAD_MUTEX_ROBUST). If a thread ends while it holds one, the kernel releases it. The thread that
 * takes it next gets EOWNERDEAD, and has to call `pthread_mutex_consistent` before it unlocks it. Otherwise nobody can
 * take it any more: ENOTRECOVERABLE.
 *
 * Each thread has a list of those that it holds, as in the C library. */

#include "palisade.h"
#include <errno.h>

/* A bit of the kind of a mutex, as in the C library. */
enum { ROBUST = 16 };

int pal_is_robust(const struct mutex *mutex)
{
    return mutex->kind != MUTEX_DESTROYED && mutex->kind & ROBUST;
}

/* A mutex is free, and the thread takes it. Returns an error if that is not possible any more, or if its owner died. */
int pal_takes(struct mutex *mutex)
{
    struct thread *self = pal.self;
    int is_robust = pal_is_robust(mutex);
    if (is_robust && mutex->protects == P_LOST) {
        return ENOTRECOVERABLE;
    }
    mutex->locked = 1;
    mutex->owner = self->number + 1;
    mutex->count = 0;
    if (!is_robust) {
        return 0;
    }
    mutex->next = self->robust;
    self->robust = mutex;
    return mutex->protects == P_INCONSISTENT ? EOWNERDEAD : 0;
}

/* The thread gives up a robust mutex. */
void pal_gives_up_robust(struct mutex *mutex)
{
    for (struct mutex **at = &pal.self->robust; *at; at = &(*at)->next) {
        if (*at == mutex) {
            *at = mutex->next;
            break;
        }
    }
    if (mutex->protects == P_INCONSISTENT) {
        mutex->protects = P_LOST;
    }
}

/* The thread ends. */
void pal_dies_holding(uint64_t place)
{
    struct thread *self = pal.self;
    while (self->robust) {
        struct mutex *mutex = self->robust;
        pal_event((uint64_t)mutex, HEAD(K_LOCKED, O_RELEASE, 4), place);
        self->robust = mutex->next;
        mutex->protects = P_INCONSISTENT;
        mutex->locked = 0;
        mutex->owner = 0;
        mutex->count = 0;
        pal_changed(mutex);
    }
}

EXPORT int pthread_mutex_consistent(pthread_mutex_t *handle)
{
    struct mutex *mutex = (struct mutex *)handle;
    if (!pal_is_robust(mutex) || mutex->protects != P_INCONSISTENT) {
        return EINVAL;
    }
    mutex->protects = P_CONSISTENT;
    return 0;
}
