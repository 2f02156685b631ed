/* A function and a macro of the program itself. */
static inline void set(int *to, int value)
{
    *to = value;
}

#define SET(to, value) (*(to) = (value))
