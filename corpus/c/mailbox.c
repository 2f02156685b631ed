// A mailbox for one message, with the __atomic builtins: the sender fills it when it is empty.
// Source: folklore; message passing as in J. Alglave, L. Maranget, M. Tautschnig, "Herding cats",
// TOPLAS 2014.
// BROKEN_1: the mark that the box is full is stored relaxed.
// BROKEN_2: the sender does not wait until the box is empty.
// BROKEN_3: the receiver empties the box before it has read the message.
#include <assert.h>
#include <pthread.h>

#define MESSAGES 2

#ifdef BROKEN_1
#define FILL __ATOMIC_RELAXED
#else
#define FILL __ATOMIC_RELEASE
#endif

struct box {
    int full;
    volatile int subject, body;
};

static struct box box;

static void *sender(void *unused)
{
    for (int i = 1; i <= MESSAGES; i++) {
#ifndef BROKEN_2
        while (__atomic_load_n(&box.full, __ATOMIC_ACQUIRE)) {
        }
#endif
        box.subject = i;
        box.body = 10 * i;
        __atomic_store_n(&box.full, 1, FILL);
    }
    return unused;
}

static void *receiver(void *unused)
{
    for (int i = 1; i <= MESSAGES; i++) {
        while (!__atomic_load_n(&box.full, __ATOMIC_ACQUIRE)) {
        }
#ifdef BROKEN_3
        __atomic_store_n(&box.full, 0, __ATOMIC_RELEASE);
#endif
        int subject = box.subject, body = box.body;
#ifndef BROKEN_3
        __atomic_store_n(&box.full, 0, __ATOMIC_RELEASE);
#endif
        assert(subject == i && body == 10 * i);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, sender, 0);
    pthread_create(&threads[1], 0, receiver, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
