extern int shared;

void write_shared(void)
{
    shared = 1;
}
