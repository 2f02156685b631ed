/* Functions of the C library that access the program's memory. Every case is run by two threads at once, on memory that they share or on their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What the functions work on: as text, as numbers, as anything else. */
struct data {
    char text[600], line[64];
    int numbers[16], number;
    double floating;
    char *end;
    time_t time;
    struct timespec precise;
    struct tm parts;
    pthread_mutex_t mutex;
};
static struct data shared;

static int compare(const void *a, const void *b)
{
    int first = *(const int *)a, second = *(const int *)b;
    return (first > second) - (first < second);
}

static int list(char *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to, sizeof shared.text, format, arguments);
    va_end(arguments);
    return length;
}

static void check(int holds)
{
    if (!holds) {
        abort();
    }
}

static FILE *with_text(void)
{
    FILE *file = tmpfile();
    check(file && fputs("17 lines\n", file) >= 0);
    rewind(file);
    return file;
}

static void call(const char *name, struct data *data)
{
#define IS(what) (!strcmp(name, what))
    if (IS("qsort")) {
        qsort(data->numbers, 16, sizeof(int), compare);
    } else if (IS("fread")) {
        FILE *file = with_text();
        check(fread(data->line, 1, sizeof data->line, file) == 9);
        fclose(file);
    } else if (IS("fgets")) {
        FILE *file = with_text();
        check(fgets(data->line, sizeof data->line, file) == data->line);
        fclose(file);
    } else if (IS("read")) {
        int fd = open("/dev/zero", O_RDONLY);
        check(read(fd, data->line, 20) == 20);
        close(fd);
    } else if (IS("snprintf")) {
        check(snprintf(data->line, 5, "%d %s %.1f", 12, "abc", 1.5) == 10);
    } else if (IS("sprintf")) {
        check(sprintf(data->text, "%*d %0550d %c", 4, 12, 7, 'x') > 512);
    } else if (IS("vsnprintf")) {
        check(list(data->text, "%ld %Lf %5.2e %p", 12L, 1.0L, 2.0, (void *)data) > 10);
    } else if (IS("%n")) {
        printf("abc%n\n", &data->number);
    } else if (IS("strtol")) {
        strtol("12 ", &data->end, 10);
    } else if (IS("strtod")) {
        strtod("1.5e3x", &data->end);
    } else if (IS("time")) {
        time(&data->time);
    } else if (IS("clock_gettime")) {
        clock_gettime(CLOCK_MONOTONIC, &data->precise);
    } else if (IS("gmtime_r")) {
        time_t zero = 0;
        gmtime_r(&zero, &data->parts);
    } else if (IS("frexp")) {
        check(frexp(8.0, &data->number) == 0.5);
    } else if (IS("modf")) {
        modf(8.5, &data->floating);
    } else if (IS("pthread_mutex_init")) {
        pthread_mutex_init(&data->mutex, NULL);
    }
}

/* What reads `data`, while the other thread writes to it. */
static void look(const char *name, struct data *data)
{
    if (IS("%s")) {
        printf("%s\n", data->text);
    } else if (IS("%.3s")) {
        fprintf(stderr, "%-10.*s|\n", 3, data->text);
    } else if (IS("puts")) {
        puts(data->text);
    } else if (IS("fwrite")) {
        fwrite(data->text, 1, 4, stdout);
    } else if (IS("write")) {
        check(write(2, data->text, 4) == 4);
    } else if (IS("atoi")) {
        check(atoi(data->text) > 0);
    } else if (IS("getenv")) {
        check(!getenv(data->text));
    }
}

/* It is not known what these touch. */
static void other(const char *name, struct data *data)
{
    if (IS("sscanf")) {
        sscanf("12", "%d", &data->number);
    } else if (IS("strftime")) {
        struct tm parts = {.tm_mday = 1};
        strftime(data->text, sizeof data->text, "%Y", &parts);
    } else if (IS("numbered")) {
        printf("%2$s %1$d\n", 1, data->text);
    } else if (IS("getcwd by number")) {
        syscall(SYS_getcwd, data->text, sizeof data->text);
    } else if (IS("getpid by number")) {
        syscall(SYS_getpid);
    } else if (IS("dlsym")) {
        dlsym(RTLD_DEFAULT, "strfry");
    }
}

static const char *name, *how;

static void *run(void *first)
{
    struct data *own = calloc(1, sizeof *own), *data = IS("") || strcmp(how, "own") == 0 ? own : &shared;
    strcpy(own->text, "17 pieces of text");
    for (int i = 0; i < 16; i++) {
        own->numbers[i] = i * 7 % 16;
    }
    call(name, data);
    other(name, data);
    if (first && data == &shared) {
        shared.text[1] = '8';
    } else {
        look(name, data);
    }
    for (int i = 0; i < 16 && IS("qsort") && data == own; i++) {
        check(own->numbers[i] == i);
    }
    if (IS("snprintf") && data == own) {
        check(!strcmp(own->line, "12 a"));
    }
    if (IS("fread") && data == own) {
        check(!memcmp(own->line, "17 lines\n", 10));
    }
    printf("only numbers: %d, and a fixed text\n", 5);
    free(own);
    return NULL;
}

int main(int count, char **arguments)
{
    name = count > 1 ? arguments[1] : "";
    how = count > 2 ? arguments[2] : "own";
    strcpy(shared.text, "17 pieces of text");
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    run(&shared);
    pthread_join(thread, NULL);
    return 0;
}
