/* Prints where the heap of the program begins. */

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    void *first = malloc(16);
    printf("%p\n", first);
    free(first);
    return 0;
}
