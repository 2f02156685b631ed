/* A library whose destructor accesses memory that a detached thread writes. */
int late;
static int seen;

__attribute__((destructor)) static void at_end(void)
{
    seen = late;
}
