//! What the functions of the C library take and return: those that programs are checked with.
//!
//! Everything else is called without arguments, and refused by its name if control reaches it.

/// What a function takes and returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Signature {
    /// The widths of its arguments.
    pub(crate) arguments: &'static str,
    /// The width of its result: `i` for 32 bits, `l` for 64, `v` for none.
    pub(crate) result: char,
    /// Whether more arguments follow.
    pub(crate) variadic: bool,
}

/// Names with their arguments and results: `i` is an `int`, `l` a pointer or a `long`, `.` means that more follow.
const TABLE: &[(&str, &str)] = &[
    ("i llll", "pthread_create"),
    ("i ll", "pthread_join pthread_equal pthread_detach pthread_mutex_init pthread_mutexattr_gettype"),
    ("l ", "pthread_self"),
    ("v l", "pthread_exit"),
    ("i l", "pthread_mutex_lock pthread_mutex_unlock pthread_mutex_trylock pthread_mutex_destroy"),
    ("i li", "pthread_mutexattr_settype pthread_attr_setdetachstate pthread_spin_init"),
    ("i l", "pthread_mutexattr_init pthread_mutexattr_destroy pthread_attr_init pthread_attr_destroy"),
    ("i l", "pthread_spin_lock pthread_spin_unlock pthread_spin_trylock pthread_spin_destroy"),
    ("i ll", "pthread_rwlock_init pthread_cond_init pthread_cond_wait pthread_attr_setstacksize"),
    ("i l", "pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock"),
    ("i l", "pthread_rwlock_unlock pthread_rwlock_destroy pthread_cond_signal pthread_cond_broadcast"),
    ("i l", "pthread_cond_destroy pthread_barrier_wait pthread_barrier_destroy"),
    ("i lll", "pthread_cond_timedwait"),
    ("i lli", "pthread_barrier_init"),
    ("i ll", "pthread_once"),
    ("i lii", "sem_init"),
    ("i l", "sem_wait sem_trywait sem_post sem_destroy"),
    ("i ll", "sem_getvalue"),
    ("i lll", "thrd_create"),
    ("i ll", "thrd_join cnd_wait"),
    ("i l", "thrd_detach mtx_lock mtx_unlock mtx_trylock cnd_init cnd_signal cnd_broadcast"),
    ("i li", "mtx_init"),
    ("v l", "mtx_destroy cnd_destroy"),
    ("v i", "thrd_exit exit _exit _Exit quick_exit"),
    ("v ", "thrd_yield abort __stack_chk_fail __VERIFIER_error reach_error __VERIFIER_atomic_begin"),
    ("v ", "__VERIFIER_atomic_end __assert_fail __assert"),
    ("v i", "__VERIFIER_assume __VERIFIER_assert"),
    ("i ", "__VERIFIER_nondet_int __VERIFIER_nondet_bool __VERIFIER_nondet_uint sched_yield"),
    ("l l", "malloc"),
    ("l ll", "calloc realloc aligned_alloc memalign"),
    ("i lll", "posix_memalign"),
    ("v l", "free"),
    ("l lll", "memcpy memmove"),
    ("l lil", "memset"),
    ("l l", "strlen"),
    ("i ll", "strcmp"),
    ("i lll", "strncmp memcmp"),
    ("l ll", "strcpy"),
    ("l lll", "strncpy"),
    ("i i", "putchar sleep usleep abs"),
    ("i l", "puts"),
    ("v l", "perror"),
    ("i ll", "fputs nanosleep"),
    ("i l.", "printf"),
    ("i ll.", "fprintf"),
    ("i il.", "dprintf"),
    ("l llll", "fwrite"),
    ("l ill", "write"),
    ("i l", "fflush"),
];

/// Parts of the names of functions of Rust's library that panic, as both ways of mangling write them: everything in
/// `core::panicking`, and what `unwrap` and `expect` call.
const PANICS: [&str; 4] = [
    "4core9panicking",
    "4core6option13unwrap_failed",
    "4core6option13expect_failed",
    "4core6result13unwrap_failed",
];

/// Whether a function is one of Rust's library that panics.
pub(crate) fn panics(name: &str) -> bool {
    (name.starts_with("_R") || name.starts_with("_ZN")) && PANICS.iter().any(|part| name.contains(part))
}

/// The allocator of Rust, by the ends of its mangled names, with arguments and results as in [`TABLE`].
const ALLOCATOR: [(&str, &str); 5] = [
    ("l ll", "12___rust_alloc"),
    ("l ll", "19___rust_alloc_zeroed"),
    ("v lll", "14___rust_dealloc"),
    ("l llll", "14___rust_realloc"),
    ("v ", "35___rust_no_alloc_shim_is_unstable_v2"),
];

/// What a function takes and returns.
pub(crate) fn signature(name: &str) -> Option<Signature> {
    if panics(name) {
        return Some(Signature { arguments: "", result: 'v', variadic: false });
    }
    if let Some((types, _)) = ALLOCATOR.iter().find(|(_, end)| name.starts_with("_R") && name.ends_with(end))
    {
        let (result, arguments) = types.split_once(' ')?;
        return Some(Signature { arguments, result: result.chars().next()?, variadic: false });
    }
    let (types, _) = TABLE.iter().find(|(_, names)| names.split(' ').any(|known| known == name))?;
    let (result, arguments) = types.split_once(' ')?;
    Some(Signature {
        arguments: arguments.trim_end_matches('.'),
        result: result.chars().next()?,
        variadic: arguments.ends_with('.'),
    })
}
