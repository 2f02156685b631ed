/* Programs whose memory changes, or whose code runs, without anything that the compiler has announced. The
 * first argument says how. While it happens there is another thread. */

#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };
static atomic_int go, shared;
static int plain, late;
static const char *how;
static void *page;
static int memory_file, segment;

static int is(const char *text)
{
    return !strcmp(how, text);
}

static int file(void)
{
    int fd = memfd_create("memory", 0);
    if (ftruncate(fd, 2 * PAGE)) {
        exit(1);
    }
    return fd;
}

static void *map(int protection, int flags, int fd)
{
    return mmap(NULL, PAGE, protection, flags, fd, 0);
}

/* movl $1, (%rdi); ret */
static const unsigned char code[] = {0xc7, 0x07, 1, 0, 0, 0, 0xc3};

static void write_through(int fd)
{
    int one = 1;
    if (fd < 0 || pwrite(fd, &one, sizeof one, (off_t)&shared) != sizeof one) {
        exit(1);
    }
}

static void acts(void)
{
    if (is("code")) {
        unsigned char *made = map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        memcpy(made, code, sizeof code);
        ((void (*)(atomic_int *))made)(&shared);
    } else if (is("protect")) {
        unsigned char *made = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        memcpy(made, code, sizeof code);
        mprotect(made, PAGE, PROT_READ | PROT_EXEC);
        ((void (*)(atomic_int *))made)(&shared);
    } else if (is("raw-protect")) {
        syscall(SYS_mprotect, page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    } else if (is("persona")) {
        personality(READ_IMPLIES_EXEC);
    } else if (is("twice")) {
        int *one = map(PROT_READ | PROT_WRITE, MAP_SHARED, memory_file);
        int *other = map(PROT_READ | PROT_WRITE, MAP_SHARED, memory_file);
        *one = 1;
        plain = *other;
    } else if (is("raw-map")) {
        syscall(SYS_mmap, NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file, 0);
    } else if (is("again")) {
        void *first = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
        mremap(first, 0, PAGE, MREMAP_MAYMOVE);
    } else if (is("shm")) {
        shmat(segment, NULL, 0);
    } else if (is("replace")) {
        mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    } else if (is("discard")) {
        madvise(page, PAGE, MADV_DONTNEED);
    } else if (is("process")) {
        write_through(open("/proc/self/mem", O_RDWR));
    } else if (is("thread")) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/task/%d/mem", getpid(), getpid());
        write_through(open(path, O_WRONLY));
    } else if (is("folder")) {
        int folder = open("/proc/self", O_PATH | O_DIRECTORY);
        write_through(openat(folder, "mem", O_RDWR));
    } else if (is("stream")) {
        FILE *memory = fopen("/proc/self/mem", "r+");
        write_through(fileno(memory));
    } else if (is("raw-open")) {
        write_through((int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR, 0));
    } else if (is("reads-itself")) {
        int value = 0, fd = open("/proc/self/mem", O_RDONLY);
        if (lseek(fd, (off_t)&page, SEEK_SET) < 0 || read(fd, &value, sizeof value) != sizeof value) {
            exit(1);
        }
    } else if (is("reads-file")) {
        int fd = open("/proc/self/exe", O_RDONLY);
        plain = *(int *)map(PROT_READ, MAP_SHARED, fd);
        plain = *(int *)map(PROT_READ, MAP_PRIVATE, fd);
    } else if (is("anonymous")) {
        *(int *)map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1) = 1;
        *(int *)map(PROT_READ | PROT_WRITE, MAP_PRIVATE, memory_file) = 1;
        mprotect(page, PAGE, PROT_READ);
        madvise(page, PAGE, MADV_WILLNEED);
        personality(0xffffffff);
    } else if (is("writes-file")) {
        FILE *output = fopen("/dev/null", "w");
        fputs("text", output);
        fclose(output);
        close(open("/dev/null", O_RDWR));
    }
}

static void *other(void *argument)
{
    atomic_fetch_add(&go, 1);
    return argument;
}

static void *writes_late(void *argument)
{
    late = 1;
    return argument;
}

/* Runs after all handlers of `atexit`. */
__attribute__((destructor)) static void at_end(void)
{
    if (how && is("destructor")) {
        plain = late;
    }
}

/* Runs before the first execution begins, or is the first thing in it. */
__attribute__((constructor(101))) static void at_start(int count, char **arguments)
{
    if (count > 1 && !strcmp(arguments[1], "constructor")) {
        map(PROT_READ | PROT_WRITE, MAP_SHARED, file());
    }
}

int main(int count, char **arguments)
{
    how = count > 1 ? arguments[1] : "";
    page = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    memory_file = file();
    segment = is("shm") ? shmget(IPC_PRIVATE, PAGE, 0600) : -1;
    pthread_t thread;
    if (is("destructor")) {
        pthread_create(&thread, NULL, writes_late, NULL);
        pthread_detach(thread);
        return 0;
    }
    if (is("asynchronous")) {
        static char buffer[16];
        struct aiocb request = {.aio_fildes = open("/dev/zero", O_RDONLY), .aio_buf = buffer, .aio_nbytes = 16};
        aio_read(&request);
        const struct aiocb *all[] = {&request};
        aio_suspend(all, 1, NULL);
        aio_return(&request);
    }
    pthread_create(&thread, NULL, other, NULL);
    acts();
    pthread_join(thread, NULL);
    if (is("shm")) {
        shmctl(segment, IPC_RMID, NULL);
    }
    return 0;
}
