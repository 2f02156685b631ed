/* Detects how memory can change without an access by the program, and how code can run that was not
 * compiled. None of it is in the log, so each case is reported where it begins:
 * - memory becomes executable, so code can be generated at run time (N_CODE);
 * - memory is mapped so that it can change through another address, another process or a file, or is
 *   replaced or discarded while there are other threads (N_MAPPING). Unmapping memory and changing what may be done
 *   with it are steps instead;
 * - `/proc/self/mem` or the like is opened for writing (N_MEMORY_FILE);
 * - code runs after the last handler of `exit` that can be followed (N_AFTER_EXIT).
 *
 * Libraries load code and map files with calls of their own, which do not come here. */

#include "palisade.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* What constructors did before the first execution began. */
enum { MAX_EARLY = 64 };
static struct {
    enum note note;
    uint64_t place;
} early[MAX_EARLY];
static int early_count;

static void hidden(enum note note, uint64_t place)
{
    if (pal.self && (pal.is_forked || pal.in_handler || pal.shared->exited)) {
        /* The process, the handler, or what runs after `exit` is reported itself. */
        return;
    }
    if (!pal.quiet) {
        pal_note(note, place);
        return;
    }
    for (int i = 0; i < early_count; i++) {
        if (early[i].note == note && early[i].place == place) {
            return;
        }
    }
    if (early_count < MAX_EARLY) {
        early[early_count].note = note;
        early[early_count++].place = place;
    }
}

void pal_report_early(void)
{
    for (int i = 0; i < early_count; i++) {
        pal_note(early[i].note, early[i].place);
    }
}

/* An access after `exit`, when the log of the program is complete. Nobody sees it if there are no other
 * threads. */
void pal_after_exit(uint64_t place)
{
    static int is_reported;
    if (!is_reported && !pal.is_forked && !pal.in_handler && !pal_is_alone()) {
        is_reported = 1;
        pal_note(N_AFTER_EXIT, place);
    }
}

/* Mappings. */

void pal_maps(long protection, long flags, int fd, uint64_t place)
{
    if (protection & PROT_EXEC) {
        hidden(N_CODE, place);
    }
    int kind = (int)flags & MAP_TYPE;
    if ((kind == MAP_SHARED || kind == MAP_SHARED_VALIDATE) && !(flags & MAP_ANONYMOUS)) {
        /* What was opened only for reading can never be written through this mapping. */
        long how = pal_syscall(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
        if (how < 0 || (how & O_ACCMODE) != O_RDONLY) {
            hidden(N_MAPPING, place);
        }
    }
    if (flags & MAP_FIXED) {
        pal_replaces(place);
    }
}

void pal_replaces(uint64_t place)
{
    if (pal.self && !pal.quiet && !pal_is_alone()) {
        hidden(N_MAPPING, place);
    }
}

void pal_maps_twice(uint64_t place)
{
    hidden(N_MAPPING, place);
}

/* Memory is about to become accessible or inaccessible: a step that conflicts with all accesses to it, like `free`. The
 * kernel sees to it that stores of the calling thread have reached memory by then. */
static void about_to_protect(const void *at, size_t size, uint64_t place)
{
    if (!pal.self || pal.quiet || pal_is_alone() || !size) {
        return;
    }
    enum { PAGE = 4096 };
    uint64_t address = (uint64_t)at & ADDRESS_BITS, second = pal_at(place) | F_CHOSEN;
    uint64_t first = address | HEAD(K_FREE, O_PLAIN, 0);
    pal_event(0, HEAD(K_FENCE, O_SEQ_CST, 0), place);
    pal_add_range(address, (size + PAGE - 1) / PAGE * PAGE, K_FREE);
    pal_decide(first, second);
    pal_log(first, second);
}

EXPORT int munmap(void *address, size_t size)
{
    about_to_protect(address, size, CALLER);
    if (pal.self && size) {
        pal_also((uint64_t)address, HEAD(K_FREE, O_PLAIN, 0), size);
    }
    return NEXT(munmap)(address, size);
}

EXPORT int shmdt(const void *address)
{
    pal_replaces(CALLER);
    return NEXT(shmdt)(address);
}

EXPORT int mprotect(void *address, size_t size, int protection)
{
    if (protection & PROT_EXEC) {
        hidden(N_CODE, CALLER);
    }
    about_to_protect(address, size, CALLER);
    return NEXT(mprotect)(address, size, protection);
}

EXPORT int pkey_mprotect(void *address, size_t size, int protection, int key)
{
    if (protection & PROT_EXEC) {
        hidden(N_CODE, CALLER);
    }
    about_to_protect(address, size, CALLER);
    return NEXT(pkey_mprotect)(address, size, protection, key);
}

/* Whether everything that can be read becomes executable. */
static int makes_executable(unsigned long persona)
{
    return persona != 0xffffffff && persona & READ_IMPLIES_EXEC;
}

EXPORT int personality(unsigned long persona)
{
    if (makes_executable(persona)) {
        hidden(N_CODE, CALLER);
    }
    return NEXT(personality)(persona);
}

EXPORT int madvise(void *address, size_t size, int advice)
{
    enum { DONTNEED_LOCKED = 24 };
    if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE || advice == DONTNEED_LOCKED) {
        pal_replaces(CALLER);
    }
    return NEXT(madvise)(address, size, advice);
}

EXPORT void *shmat(int id, const void *address, int flags)
{
    if (!(flags & SHM_RDONLY)) {
        hidden(N_MAPPING, CALLER);
    }
    return NEXT(shmat)(id, address, flags);
}

EXPORT int remap_file_pages(void *address, size_t size, int protection, size_t page, int flags)
{
    hidden(N_MAPPING, CALLER);
    return NEXT(remap_file_pages)(address, size, protection, page, flags);
}

/* Memory as a file. Whatever path led to it, the kernel knows the file by its name in its own file system. */

static void opened(long fd, uint64_t place)
{
    enum { IS_PROC = 0x9fa0 };
    struct statfs system;
    char link[64], name[256];
    if (fd < 0 || (pal_syscall(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0) & O_ACCMODE) == O_RDONLY) {
        return;
    }
    if (pal_syscall(SYS_fstatfs, fd, (long)&system, 0, 0, 0, 0) || system.f_type != IS_PROC) {
        return;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
    long length = pal_syscall(SYS_readlink, (long)link, (long)name, sizeof name - 1, 0, 0, 0);
    name[length > 0 ? length : 0] = 0;
    const char *last = pal_last(name, '/');
    if (length <= 0 || (last && pal_is_text(last, "/mem"))) {
        hidden(N_MEMORY_FILE, place);
    }
}

/* The program opens a file: it reads the path, and the file may be its memory. */
#define OPENED(path, call) ({ \
    pal_in_order(ORDERED_SYSTEM, CALLER); \
    pal_reads_text(path, SIZE_MAX, CALLER); \
    int saved = errno, fd = (call); \
    saved = fd < 0 ? errno : saved; \
    opened(fd, CALLER); \
    errno = saved; \
    fd; \
})

#define MODE(flags) ({ \
    va_list list; \
    va_start(list, flags); \
    mode_t mode = va_arg(list, mode_t); \
    va_end(list); \
    mode; \
})

EXPORT int open(const char *path, int flags, ...)
{
    mode_t mode = MODE(flags);
    return OPENED(path, NEXT(open)(path, flags, mode));
}

EXPORT int open64(const char *path, int flags, ...)
{
    mode_t mode = MODE(flags);
    return OPENED(path, NEXT(open64)(path, flags, mode));
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
    mode_t mode = MODE(flags);
    return OPENED(path, NEXT(openat)(folder, path, flags, mode));
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
    mode_t mode = MODE(flags);
    return OPENED(path, NEXT(openat64)(folder, path, flags, mode));
}

EXPORT int creat(const char *path, mode_t mode)
{
    return OPENED(path, NEXT(creat)(path, mode));
}

EXPORT int creat64(const char *path, mode_t mode)
{
    return OPENED(path, NEXT(creat64)(path, mode));
}

/* What `_FORTIFY_SOURCE` calls. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
    return OPENED(path, NEXT(__open_2)(path, flags));
}

EXPORT int __open64_2(const char *path, int flags)
{
    return OPENED(path, NEXT(__open64_2)(path, flags));
}

EXPORT int __openat_2(int folder, const char *path, int flags)
{
    return OPENED(path, NEXT(__openat_2)(folder, path, flags));
}

EXPORT int __openat64_2(int folder, const char *path, int flags)
{
    return OPENED(path, NEXT(__openat64_2)(folder, path, flags));
}

#define STREAM(path, mode, call) ({ \
    pal_reads_text(path, SIZE_MAX, CALLER); \
    pal_reads_text(mode, SIZE_MAX, CALLER); \
    FILE *stream = (call); \
    int saved = errno; \
    opened(stream ? fileno(stream) : -1, CALLER); \
    errno = saved; \
    stream; \
})

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    return STREAM(path, mode, NEXT(fopen)(path, mode));
}

EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    return STREAM(path, mode, NEXT(fopen64)(path, mode));
}

EXPORT FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict old)
{
    return STREAM(path, mode, NEXT(freopen)(path, mode, old));
}

EXPORT FILE *freopen64(const char *restrict path, const char *restrict mode, FILE *restrict old)
{
    return STREAM(path, mode, NEXT(freopen64)(path, mode, old));
}

/* The same by system calls of the program's own. Returns whether the call has been made. */
int pal_hidden_syscall(long number, const long *arguments, uint64_t place, long *result)
{
    switch (number) {
    case SYS_mmap:
        pal_maps(arguments[2], arguments[3], (int)arguments[4], place);
        return 0;
    case SYS_mprotect:
    case SYS_pkey_mprotect:
        if (arguments[2] & PROT_EXEC) {
            hidden(N_CODE, place);
        }
        return 0;
    case SYS_personality:
        if (makes_executable((unsigned long)arguments[0])) {
            hidden(N_CODE, place);
        }
        return 0;
    case SYS_mremap:
    case SYS_remap_file_pages:
    case SYS_shmat:
        hidden(N_MAPPING, place);
        return 0;
    case SYS_open:
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat:
    case SYS_open_by_handle_at:
        *result = pal_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
        opened(*result, place);
        return 1;
    case SYS_io_uring_setup:
    case SYS_io_setup:
    case SYS_userfaultfd:
        /* The kernel or another thread can change memory from now on. */
        hidden(N_MAPPING, place);
        return 0;
    default:
        return 0;
    }
}
