#include <assert.h>
#include <stdbool.h>
extern _Bool __VERIFIER_nondet_bool(void);
extern unsigned char __VERIFIER_nondet_uchar(void);
extern void __VERIFIER_assume(int);

static int table[3] = { 4, 5, 6 };
static volatile bool ready;

static int choose(int index)
{
    switch (index) {
    case 0: return table[2];
    case 1: return -table[1];
    default: return index > 5 ? index / 2 : index << 2;
    }
}

void compute(void)
{
    int x;
    if (__VERIFIER_nondet_bool())
        x = 3;
    unsigned char c = __VERIFIER_nondet_uchar();
    __VERIFIER_assume(c < 10);
    ready = choose(c) != x;
    table[c] = 1;
}

void observe(void)
{
    assert(!ready || table[0] == 4);
}
