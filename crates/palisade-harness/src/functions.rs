//! Functions of the libraries of C and C++ that programs call.
//!
//! - The runtime follows some by defining them itself; the linker never asks the libraries for those.
//! - Some are [replaced](REPLACED) by functions of the runtime, but only where the program calls them.
//! - Some are [harmless](is_harmless): they touch no memory of the program, or only memory that belongs to
//!   the library, such as streams, the environment, exceptions and the library's own state. Functions by which a
//!   program sees that such state has changed, such as `getc`, are not among them: a loop that calls one changes
//!   something.
//! - Calls of all others go through a wrapper. The runtime knows what some of them touch
//!   (`runtime/library.c`); the rest is reported when it is called while there are other threads.

use std::path::Path;

/// Whether a file is a library of C or C++, or belongs to the system, by its name. `runtime/library.c` knows
/// the same names.
pub fn is_system_library(file: &Path) -> bool {
    let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    name.split_once(".so").is_some_and(|(stem, _)| SYSTEM.contains(&stem))
}

const SYSTEM: &[&str] = &[
    "libc",
    "libm",
    "libmvec",
    "libpthread",
    "libdl",
    "librt",
    "libutil",
    "libresolv",
    "libanl",
    "ld-linux-x86-64",
    "linux-vdso",
    "libstdc++",
    "libgcc_s",
    "libatomic",
    "libc++",
    "libc++abi",
    "libunwind",
];

/// Functions that the runtime replaces where the program calls them. Libraries call them as well, with memory
/// of their own.
pub const REPLACED: &[&str] = &["read", "__read_chk", "recv"];

/// Whether a call of this function needs no wrapper.
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_math(name)
}

/// Functions of numbers alone, in their variants for `float` and `long double`.
fn is_math(name: &str) -> bool {
    let name = name.strip_prefix("__").map_or(name, |name| name.trim_end_matches("_finite"));
    let stems = [Some(name), name.strip_suffix('f'), name.strip_suffix('l')];
    stems.into_iter().flatten().any(|stem| MATH.contains(&stem))
}

const MATH: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "hypot",
    "ilogb",
    "ldexp",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "nearbyint",
    "nextafter",
    "nexttoward",
    "pow",
    "remainder",
    "rint",
    "round",
    "roundeven",
    "scalbln",
    "scalbn",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "fpclassify",
    "isinf",
    "isnan",
    "finite",
    "signbit",
];

/// Functions by their names.
const HARMLESS: &[&str] = &[
    // Ends, and where nothing is touched.
    "exit",
    "quick_exit",
    "atexit",
    "on_exit",
    "abs",
    "labs",
    "llabs",
    "div",
    "ldiv",
    "lldiv",
    "ffs",
    "ffsl",
    "ffsll",
    "__errno_location",
    "__stack_chk_fail",
    "__chk_fail",
    "__tls_get_addr",
    "__libc_start_main",
    "__cxa_finalize",
    "_dl_find_object",
    "dl_iterate_phdr",
    "__gmon_start__",
    "__sched_cpualloc",
    "__sched_cpufree",
    "__sched_cpucount",
    "dlclose",
    "dlerror",
    // Characters.
    "isalnum",
    "isalpha",
    "isascii",
    "isblank",
    "iscntrl",
    "isdigit",
    "isgraph",
    "islower",
    "isprint",
    "ispunct",
    "isspace",
    "isupper",
    "isxdigit",
    "tolower",
    "toupper",
    "__ctype_b_loc",
    "__ctype_tolower_loc",
    "__ctype_toupper_loc",
    "__ctype_get_mb_cur_max",
    // Streams, one character at a time or as a whole: a stream and its buffer belong to the library.
    "putc",
    "putchar",
    "fputc",
    "_IO_putc",
    "putc_unlocked",
    "putchar_unlocked",
    "fflush",
    "fclose",
    "fileno",
    "setbuf",
    "setvbuf",
    "setlinebuf",
    "flockfile",
    "funlockfile",
    "ftrylockfile",
    "tmpfile",
    "fdopen",
    "__overflow",
    "pclose",
    // Descriptors and processes.
    "fsync",
    "fdatasync",
    "isatty",
    "socket",
    "listen",
    "epoll_create",
    "epoll_create1",
    "getpid",
    "getppid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getpagesize",
    "sysconf",
    "get_nprocs",
    "get_nprocs_conf",
    "sched_getcpu",
    "nice",
    "alarm",
    "pause",
    "getpgrp",
    "setsid",
    "gnu_get_libc_version",
    "strsignal",
    "strerror",
    "strerrorname_np",
    "strerrordesc_np",
    "setpgid",
    "getpgid",
    "getsid",
    "setuid",
    "setgid",
    "shm_unlink",
    "inotify_init",
    "timerfd_create",
    "posix_fadvise",
    "sync",
    // Mappings: a new mapping belongs to no object.
    "munmap",
    "msync",
    "mlock",
    "munlock",
    // Threads.
    "pthread_self",
    "pthread_equal",
    "pthread_getspecific",
    "pthread_setcancelstate",
    "pthread_setcanceltype",
    "pthread_testcancel",
    "pthread_setconcurrency",
    "pthread_getconcurrency",
    "pthread_atfork",
    "__register_atfork",
    "thrd_current",
    "thrd_equal",
    "tss_get",
    "__sched_yield",
    "pthread_getcpuclockid",
    "sched_get_priority_max",
    "sched_get_priority_min",
    // The library's own state.
    "feclearexcept",
    "feraiseexcept",
    "fetestexcept",
    "fegetround",
    "fesetround",
    "feenableexcept",
    "fedisableexcept",
    "fegetexcept",
    "tzset",
    "localeconv",
    "difftime",
    "mallopt",
    "malloc_trim",
    "mcheck",
    // Vectors of arguments and allocation that the runtime does not define.
    "cfree",
    "__libc_malloc",
    "__libc_free",
    "alloca",
    // Unwinding.
    "__gcc_personality_v0",
    "__gxx_personality_v0",
];

/// Functions of C++ by the beginnings of their names.
const PREFIXES: &[&str] = &[
    // `operator new` and `operator delete` call `malloc` and `free`.
    "_Znw",
    "_Zna",
    "_Zdl",
    "_Zda",
    // Allocators of characters have no state.
    "_ZNSaI",
    "_ZNKSaI",
    // Exceptions and the run-time support of the language.
    "__cxa_",
    "_Unwind_",
    "__dynamic_cast",
    "_ZSt9terminatev",
    "_ZSt10unexpectedv",
    "_ZSt17current_exceptionv",
    "_ZSt17rethrow_exception",
    "_ZSt18uncaught_exception",
    "_ZSt19uncaught_exceptions",
    "_ZSt15get_new_handlerv",
    "_ZSt7nothrow",
    "_ZNSt15__exception_ptr",
    "_ZNKSt15__exception_ptr",
    "_ZNSt9exception",
    "_ZNKSt9exception",
    "_ZNSt9bad_alloc",
    "_ZNSt8bad_cast",
    "_ZNSt10bad_typeid",
    "_ZNSt17bad_function_call",
    "_ZNSt13runtime_error",
    "_ZNKSt13runtime_error",
    "_ZNSt11logic_error",
    "_ZNKSt11logic_error",
    "_ZNSt11range_error",
    "_ZNSt12domain_error",
    "_ZNSt12length_error",
    "_ZNSt12out_of_range",
    "_ZNSt12system_error",
    "_ZNSt12future_error",
    "_ZNKSt12future_error",
    "_ZNSt14overflow_error",
    "_ZNSt15underflow_error",
    "_ZNSt16invalid_argument",
    "_ZNSt20bad_array_new_length",
    "_ZSt15future_categoryv",
    "_ZNSt3_V2",
    "_ZNKSt3_V2",
    // Threads, condition variables, futures, clocks: they call what the runtime defines.
    "_ZNSt6thread",
    "_ZNKSt6thread",
    "_ZNSt18condition_variable",
    "_ZNSt22condition_variable_any",
    "_ZNSt13__future_base",
    "_ZNSt6chrono",
    "_ZSt25notify_all_at_thread_exit",
    "_ZSt11__once_call",
    "_ZSt15__once_callable",
    "__once_proxy",
    "_ZNSt28__atomic_futex_unsigned_base",
    "_ZNSt11this_thread",
    // Streams and what belongs to them.
    "_ZNSo",
    "_ZNSi",
    "_ZNSd",
    "_ZStls",
    "_ZSt4endl",
    "_ZSt4ends",
    "_ZSt5flush",
    "_ZSt16__ostream_insert",
    "_ZNSt8ios_base",
    "_ZNKSt8ios_base",
    "_ZNSt9basic_ios",
    "_ZNKSt9basic_ios",
    "_ZNSt6locale",
    "_ZNKSt6locale",
    "_ZNKSt5ctype",
    "_ZNSt14basic_ofstream",
    "_ZNSt14basic_ifstream",
    "_ZNSt13basic_fstream",
    "_ZNSt13basic_filebuf",
    "_ZNSt15basic_streambuf",
    "_ZNSt7__cxx1115basic_stringbuf",
    "_ZNSt7__cxx1118basic_stringstream",
    "_ZNSt7__cxx1119basic_ostringstream",
    "_ZNSt7__cxx1119basic_istringstream",
    // Errors that are thrown.
    "_ZSt16__throw_bad_cast",
    "_ZSt17__throw_bad_alloc",
    "_ZSt19__throw_logic_error",
    "_ZSt20__throw_length_error",
    "_ZSt20__throw_out_of_range",
    "_ZSt20__throw_system_error",
    "_ZSt20__throw_future_error",
    "_ZSt21__throw_runtime_error",
    "_ZSt24__throw_invalid_argument",
    "_ZSt24__throw_out_of_range_fmt",
    "_ZSt25__throw_bad_function_call",
    "_ZSt28__throw_bad_array_new_length",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let check = |name: &str, expected: bool| assert_eq!(is_harmless(name), expected, "{name}");
        for name in
            ["sinf", "sqrtl", "pow", "exit", "_Znwm", "_ZNSolsEi", "__cxa_throw", "pthread_self", "__isnan"]
        {
            check(name, true);
        }
        for name in [
            "sscanf",
            "frexp",
            "modf",
            "strftime",
            "read",
            "getline",
            "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn libraries() {
        let check =
            |file: &str, expected: bool| assert_eq!(is_system_library(Path::new(file)), expected, "{file}");
        check("/lib/x86_64-linux-gnu/libc.so.6", true);
        check("/usr/lib/libstdc++.so.6.0.30", true);
        check("./libcustom.so", false);
        check("libc.a", false);
    }

    /// The runtime and this file agree about libraries.
    #[test]
    fn the_runtime_knows_the_same_libraries() {
        let source = include_str!("../runtime/library.c");
        let list = source.split("system_libraries[] = {").nth(1).and_then(|rest| rest.split("};").next());
        let mut known: Vec<&str> = list.expect("a list").split('"').skip(1).step_by(2).collect();
        let mut ours = SYSTEM.to_vec();
        known.sort_unstable();
        ours.sort_unstable();
        assert_eq!(known, ours);
    }
}
