/* Code that is written as data: movl $1, (%rdi); ret */
#ifdef WRITABLE
#define PLACE ".mine,\"awx\",@progbits#"
#else
#define PLACE ".text"
#endif
__attribute__((section(PLACE))) const unsigned char bytes[] = {0xc7, 0x07, 1, 0, 0, 0, 0xc3};

int main(void)
{
    int value = 0;
    ((void (*)(int *))bytes)(&value);
    return value != 1;
}
