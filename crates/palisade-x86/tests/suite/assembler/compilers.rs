//! What compilers write.

use super::{Depth, Folder, check};
use crate::common::run;
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use std::path::{Path, PathBuf};
use std::process::Command;

const BUILDS: [&str; 11] = [
    "gcc -O0",
    "clang -O2",
    "gcc -O2 -fPIC -g",
    "clang -O0 -g",
    "gcc -O3 -fno-pic",
    "clang -O1 -fPIC",
    "gcc -Os -g -fcf-protection=full",
    "clang -O3 -fno-pic -g",
    "gcc -O1 -fcommon -ffunction-sections -fdata-sections",
    "clang -Os -ffunction-sections -fdata-sections",
    "gcc -O2",
];

/// What a compiler writes.
#[track_caller]
fn compiled(folder: &Folder, build: &str, source: &Path) -> String {
    let mut words = build.split_whitespace();
    let mut command = Command::new(words.next().expect("a compiler"));
    command.args(words).args(["-w", "-pthread", "-S", "-o"]).arg(folder.at("compiled.s")).arg(source);
    run(&mut command);
    std::fs::read_to_string(folder.at("compiled.s")).expect("the compiler has written it")
}

#[test]
fn what_c_compilers_write() {
    let folder = Folder::new();
    std::fs::write(folder.at("forms.c"), FORMS).expect("the text can be written");
    for build in BUILDS {
        check(&folder, build, &compiled(&folder, build, &folder.at("forms.c")), Depth::Program);
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/c");
    let mut sources: Vec<PathBuf> = std::fs::read_dir(corpus)
        .expect("the corpus is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    for seed in seeds(8) {
        let mut random = Random::new(seed);
        let source = &sources[random.below(sources.len())];
        let build = BUILDS[random.below(BUILDS.len())];
        let what = format!("seed {seed}: {} by {build}", source.display());
        check(&folder, &what, &compiled(&folder, build, source), Depth::Program);
    }
}

/// Everything that has a form of its own in assembly: tables of jumps, thread-local variables, strings, aliases.
const FORMS: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
static atomic_int x, y;
int initialised = 5, tentative;
static int array[10], *middle = array + 3;
static const char *names[] = { "a", "b\n\"\t\001", "hello; # /* no comment */" };
static const unsigned char bytes[] = { 0, 255, 34, 92, 10 };
_Thread_local int own = 3;
static _Thread_local long own_zero;
extern _Thread_local int own_elsewhere;
extern int elsewhere, elsewhere_function(int, ...);
__attribute__((weak)) int weak(void) { return 1; }
int alias(void) __attribute__((alias("weak")));
static int hidden(int a, int b) { return a * b + weak(); }
__attribute__((constructor)) static void begin(void) { tentative++; }
int choose(int a) {
    switch (a) {
        case 0: return 5;
        case 1: return initialised;
        case 2: puts("two"); return 7;
        case 3: return x;
        case 4: return array[a] + *middle;
        case 5: return elsewhere_function(a, names[2], 1L << a) + elsewhere + own_elsewhere;
        case 6: initialised = 9; return bytes[a];
        default: return -1;
    }
}
static void *run(void *argument) {
    for (int i = 0; i < 10; i++) {
        atomic_fetch_add(&x, i);
        while (atomic_load(&y) < 5) __builtin_ia32_pause();
        array[i] += own++;
        own_zero += i;
        __asm__ volatile("lock; addl $0, (%%rsp)\n1: cmpl %0, %1\n\tjne 1b" :: "r"(i), "m"(x) : "memory");
    }
    return (void *)names[initialised % 3];
}
unsigned long mixed(unsigned char c, short s, unsigned u, long l, int (*f)(int)) {
    unsigned long r = (c * s) + (u / 7) - (l % 13) + (s >> 3) + (u << c) + (l > u);
    r ^= (signed char)l | (unsigned short)u;
    if (__builtin_mul_overflow(u, (unsigned)s, &u)) r = -r;
    return r + f(c) + (l ? __builtin_ctzl(l) + __builtin_clzl(l) : 0) + __builtin_bswap32(u);
}
struct big { long a[5]; int b; };
struct big copy(const struct big *from) { struct big to = *from; to.a[2] = 0; memset(&to.a[3], 0, 12); return to; }
double real(double a, float b) { return a * b + 1.5; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
    int expected = 3;
    atomic_compare_exchange_strong(&y, &expected, 4);
    atomic_store(&x, 3);
    atomic_thread_fence(memory_order_seq_cst);
    assert(choose(x) == hidden(x, y));
    return mixed(1, 2, 3, 4, choose);
}
"#;

#[test]
fn what_rustc_writes() {
    let folder = Folder::new();
    let source = r#"
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};
static A: AtomicU32 = AtomicU32::new(0);
static B: AtomicU64 = AtomicU64::new(7);
static NAMES: [&str; 3] = ["a", "$LT$", "\u{e9}"];
#[unsafe(no_mangle)]
pub extern "C" fn first(n: u32) -> u64 {
    A.store(n, Relaxed);
    fence(SeqCst);
    B.fetch_add(u64::from(n), AcqRel) + A.compare_exchange(1, n / 3, SeqCst, Relaxed).unwrap_or(9) as u64
}
#[unsafe(no_mangle)]
pub extern "C" fn second(n: usize) -> usize {
    let mut total = 0;
    for name in NAMES.iter().take(n) { total += name.len().wrapping_mul(n); }
    match n { 0 => 3, 1 => total, 2 => total + 9, 3 => total / n, 4 => B.load(Relaxed) as usize, 5 => n << 3, _ => NAMES[n].len() }
}
pub fn third(b: Box<dyn Fn(u8) -> i16 + Send>) -> Vec<i16> { (0..9).map(|i| b(i)).collect() }
"#;
    std::fs::write(folder.at("a.rs"), source).expect("the text can be written");
    for (options, depth) in
        [(&["-Copt-level=0", "-g"][..], Depth::File), (&["-Copt-level=3"], Depth::Program)]
    {
        let mut command = Command::new("rustc");
        command.args(["--edition=2024", "--crate-type=lib", "--emit=asm", "-Ccodegen-units=1"]).args(options);
        run(command.arg("-o").arg(folder.at("a.s")).arg(folder.at("a.rs")));
        let text = std::fs::read_to_string(folder.at("a.s")).expect("rustc has written it");
        check(&folder, &format!("rustc {options:?}"), &text, depth);
    }
}
