//! Names that are taken in the exported file, and functions for arithmetic that does not wrap around.

use crate::uses::Guard;

/// Names of `runtime.c` and of this exporter.
pub(super) const RUNTIME: &str = "\
    value choose start run load check argument instance choice result old_value argc argv run_threads run_started \
    run_mutex run_turn_passed run_seed run_steps run_turn run_alive run_left run_self run_random run_pass run_tick \
    run_begin run_end run_leave run_stuck run_process can_add can_sub can_mul can_div can_shl wrap";

/// Names of the library that the headers declare or that compilers know.
pub(super) const LIBRARY: &str = "\
    aligned_alloc asctime at_quick_exit atexit atof atoi atol atoll bsearch calloc ctime difftime free getenv \
    gmtime labs ldiv llabs lldiv localtime malloc mblen mbstowcs mbtowc mktime qsort quick_exit realloc \
    sched_yield sched_priority srand strftime strtod strtof strtol strtold strtoll strtoul strtoull system \
    timespec_get tm timespec wcstombs wctomb static_assert acos acosh asin asinh atan atan2 atanh cabs cacos carg \
    casin catan cbrt ccos ceil cexp cimag clog conj copysign cos cosh cpow cproj creal csin csqrt ctan erf erfc \
    exp exp2 expm1 fabs fdim floor fma fmax fmin fmod fprintf fputc fputs frexp fscanf fwrite hypot ilogb imaxabs \
    isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit ldexp lgamma \
    llrint llround log log10 log1p log2 logb lrint lround memchr memcmp memcpy memmove memset modf nan nearbyint \
    nextafter nexttoward pow printf putc putchar puts remainder remquo rint round scalbln scalbn scanf sin sinh \
    snprintf sprintf sqrt sscanf strcat strchr strcmp strcpy strcspn strlen strncat strncmp strncpy strpbrk \
    strrchr strspn strstr tan tanh tgamma tolower toupper trunc vfprintf vfscanf vprintf vscanf vsnprintf vsprintf \
    vsscanf";

/// The function for values that wrap around.
pub(super) const WRAP: &str = "\
static value wrap(value x, value lo, value hi)
{
    value size = hi - lo + 1;
    value above = (x % size - lo % size) % size;
    return above < 0 ? lo + above + size : lo + above;
}";

/// The functions for guards.
pub(super) const GUARDS: &[(Guard, &str)] = &[
    (
        Guard::Add,
        "static int can_add(value a, value b)\n{\n    return b >= 0 ? a <= MAX - b : a >= MIN - b;\n}",
    ),
    (
        Guard::Sub,
        "static int can_sub(value a, value b)\n{\n    return b >= 0 ? a >= MIN + b : a <= MAX + b;\n}",
    ),
    (
        Guard::Mul,
        "static int can_mul(value a, value b)\n{\n    if (b == 0)\n        return 1;\n    if (b == -1)\n        return a > MIN;\n    \
         return b > 0 ? a <= MAX / b && a >= MIN / b : a >= MAX / b && a <= MIN / b;\n}",
    ),
    (Guard::Div, "static int can_div(value a, value b)\n{\n    return a > MIN || b != -1;\n}"),
    (
        Guard::Shl,
        "static int can_shl(value a, value b)\n{\n    return b >= 0 && b < (value)sizeof(value) * 8 - 1 && a <= (MAX >> b) && \
         a >= (MIN >> b);\n}",
    ),
];
