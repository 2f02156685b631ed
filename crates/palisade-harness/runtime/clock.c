/* Time advances by a microsecond per step, and further when all threads sleep. So the schedule determines
 * what the clocks show, and sleeping takes no time.
 *
 * In a search, what a thread reads must not depend on steps of others that do not conflict with its own. So it is the
 * number of its own steps, or more if another thread has already read a later time. */

#include "palisade.h"
#include <errno.h>
#include <sys/time.h>
#include <unistd.h>

enum { SECOND = 1000000000 };
/* When executions begin: on 1 January 2000 for clocks that show the date, and some time after booting for the
 * others. */
#define EPOCH 946684800ull
#define UPTIME 1000ull

static uint64_t offset_of(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return EPOCH * SECOND;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
        return 0;
    default:
        return UPTIME * SECOND;
    }
}

/* The end of a wait until a time of some clock, by our own clock. Never 0, which means that there is no
 * end. */
uint64_t pal_deadline(clockid_t clock, const struct timespec *time)
{
    if (!time) {
        return 0;
    }
    int64_t until = (int64_t)time->tv_sec * SECOND + time->tv_nsec - (int64_t)offset_of(clock);
    return until > 0 ? (uint64_t)until : 1;
}

static int is_time(struct thread *self)
{
    return self->timed_out;
}

void pal_sleep(uint64_t nanoseconds, uint64_t place)
{
    struct thread *self = pal.self;
    if (pal.quiet) {
        return;
    }
    if (!nanoseconds || pal.command.flags & EXPLORE) {
        /* In a search, a sleeping thread may wake up at any time. */
        pal_yield();
        pal_event(0, HEAD(K_PAUSE, O_PLAIN, 0), place);
        return;
    }
    self->timed_out = 0;
    self->deadline = pal_now() + nanoseconds;
    pal_await(self, is_time, HEAD(K_PAUSE, O_PLAIN, 0), place);
    pal_log(HEAD(K_PAUSE, O_PLAIN, 0), pal_at(place) | F_CHOSEN);
}

static uint64_t length_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec;
}

EXPORT unsigned sleep(unsigned seconds)
{
    pal_sleep((uint64_t)seconds * SECOND, CALLER);
    return 0;
}

EXPORT int usleep(useconds_t microseconds)
{
    pal_sleep((uint64_t)microseconds * 1000, CALLER);
    return 0;
}

EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (left) {
        pal_accesses(left, sizeof *left, 1, CALLER);
        *left = (struct timespec){0, 0};
    }
    pal_sleep(length_of(time), CALLER);
    return 0;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    if (left) {
        pal_accesses(left, sizeof *left, 1, CALLER);
        *left = (struct timespec){0, 0};
    }
    uint64_t nanoseconds = length_of(time);
    if (flags & TIMER_ABSTIME) {
        uint64_t until = pal_deadline(clock, time), now = pal_now();
        nanoseconds = until > now ? until - now : 0;
    }
    pal_sleep(nanoseconds, CALLER);
    return 0;
}

static uint64_t read_clock(uint64_t place)
{
    static uint64_t latest;
    pal_in_order(ORDERED_CLOCK, place);
    uint64_t now = pal_now();
    if (pal.command.flags & EXPLORE && !pal.quiet) {
        enum { LATER = 1000 };
        now = now > latest ? now : latest + LATER;
        latest = now;
    }
    return now;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
    uint64_t now = read_clock(CALLER) + offset_of(clock);
    pal_accesses(time, sizeof *time, 1, CALLER);
    time->tv_sec = (time_t)(now / SECOND);
    time->tv_nsec = (long)(now % SECOND);
    return 0;
}

EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    (void)zone;
    uint64_t now = read_clock(CALLER) + EPOCH * SECOND;
    pal_accesses(time, sizeof *time, 1, CALLER);
    time->tv_sec = (time_t)(now / SECOND);
    time->tv_usec = (suseconds_t)(now % SECOND / 1000);
    return 0;
}

EXPORT time_t time(time_t *to)
{
    time_t now = (time_t)((read_clock(CALLER) + EPOCH * SECOND) / SECOND);
    if (to) {
        pal_accesses(to, sizeof *to, 1, CALLER);
        *to = now;
    }
    return now;
}

EXPORT int timespec_get(struct timespec *time, int base)
{
    uint64_t now = read_clock(CALLER) + offset_of(CLOCK_REALTIME);
    pal_accesses(time, sizeof *time, 1, CALLER);
    time->tv_sec = (time_t)(now / SECOND);
    time->tv_nsec = (long)(now % SECOND);
    return base;
}

EXPORT clock_t clock(void)
{
    return (clock_t)(read_clock(CALLER) / 1000);
}
