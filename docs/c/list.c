// A list of which only the first node is freed.
#include <stdlib.h>

struct node {
    struct node *next;
};

int main(void)
{
    struct node *first = 0;
    for (int i = 0; i < 3; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = first;
        first = node;
    }
    free(first);
    return 0;
}
