/* Two threads work on overlapping parts of a string. The result depends on the order of the pieces. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char text[40] = "abcdefghijklmnopqrstuvwxyz";

static void *up(void *argument)
{
    (void)argument;
    memmove(text + 8, text, 16);
    return NULL;
}

static void *end(void *argument)
{
    (void)argument;
    memset(text + 8, '.', 8);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, up, NULL);
    pthread_create(&threads[1], NULL, end, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    /* The other thread has filled the middle before it was moved, afterwards, or in between. */
    return text[16] == '.' ? 1 : text[8] == '.' ? 2 : 0;
}
