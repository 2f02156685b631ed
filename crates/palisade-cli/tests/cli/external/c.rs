//! Transcripts of commands on C programs.

use super::programs::compiled;
use crate::common;

use common::Scratch;
use snapbox::str;

/// Store buffering: both threads can read 0 with store buffers. The loads are in [`LOAD`].
pub(super) const MAIN: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
int load(atomic_int *);
static atomic_int x, y;
static int r1, r2;
static void *p(void *nothing)
{
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    r1 = load(&y);
    return nothing;
}
static void *q(void *nothing)
{
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    r2 = load(&x);
    return nothing;
}
int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, p, 0);
    pthread_create(&threads[1], 0, q, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(r1 == 1 || r2 == 1);
    return 0;
}
";

/// The other file of [`MAIN`].
pub(super) const LOAD: &str = "\
#include <stdatomic.h>
int load(atomic_int *from)
{
#ifdef BROKEN
    return atomic_laod(from);
#endif
    return atomic_load_explicit(from, memory_order_relaxed);
}
";

/// A program with an error in each of its files.
const BROKEN: &str = "#include \"list.h\"\nint main(void)\n{\n    retrun 0;\n}\n";

#[test]
fn what_the_compiler_says_about_broken_c() {
    let scratch =
        Scratch::new("c_broken").file("broken.c", BROKEN).file("list.h", "int next(void)\nint x;\n");
    scratch.run(&["check", "broken.c"]).exits(2).prints("").complains(str![[r#"
error[c-error]: expected ';' after top level declarator
 --> list.h:1:15
  |
1 | int next(void)
  |               ^

error[c-error]: use of undeclared identifier 'retrun'
 --> broken.c:4:5
  |
4 |     retrun 0;
  |     ^^^^^^

broken.c: 2 errors

"#]]);
}

#[test]
fn compilers_that_are_not_there() {
    let scratch =
        Scratch::new("c_no_clang").file("main.c", "int main(void) { return 0; }\n").file("bin/cc", "");
    let mut command = scratch.command(&["check", "main.c"]);
    command.env("PATH", scratch.path("bin")).env_remove("CC");
    let ran = common::Ran::new(command.output().expect("the command can be started"));
    ran.exits(2).prints("").complains(str![[r#"
error[no-clang]: main.c: clang is not installed, but it is needed to read C programs
 |
 = help: install clang 14 or later (`apt install clang`, `dnf install clang`, `brew install llvm`), or name one in CC


"#]]);
}

#[test]
fn other_languages_and_options_are_refused() {
    let scratch = Scratch::new("c_refused")
        .file("main.c", "int main(void) { return 0; }\n")
        .file("main.cpp", "int main() {}\n")
        .file("sb.pal", common::STORE_BUFFERING);
    let check = |args: &[&str], id: &str, part: &str| {
        let ran = scratch.run(args).exits(2);
        assert!(ran.stderr.contains(&format!("error[{id}]")), "{}", ran.stderr);
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    };
    check(&["check", "main.cpp"], "c-plus-plus", "this command reads only C");
    check(&["check", "main.c", "--", "queue.cpp"], "c-plus-plus", "this command reads only C");
    check(&["check", "main.c", "--", "queue.o"], "compiler-argument", "neither an option");
    check(&["check", "main.c", "--", "-o", "x"], "compiler-argument", "`-o`");
    check(&["check", "main.c", "--", "-foo"], "c-error", "unknown argument: '-foo'");
    check(&["check", "main.c", "--int-range", "0..3"], "c-option", "--int-range");
    check(&["check", "sb.pal", "--heap", "3"], "c-option", "--heap");
    check(&["check", "sb.pal", "--", "-DN=3"], "c-option", "`--`");
}

#[test]
fn runs_pass_through_several_files() {
    let scratch = Scratch::new("c_files").file("main.c", MAIN).file("load.c", LOAD);
    scratch.run(&["check", "main.c", "--", "load.c"]).exits(1).complains("").prints(str![[r#"
unsafe  main.c: assertion failed in main at line 26: assert(r1 == 1 || r2 == 1)

step   process      line  instruction [..]
   0                      (start) [..]
   1   main           2[..]  pthread_create(&threads[[..]], 0, [..], 0); [..]
...
[..]load.c:7  return atomic_load_explicit(from, memory_order_relaxed);  read [..] = 0 [..]
...
[..]   main           26  assert(r1 == 1 || r2 == 1); [..]assertion failed
...
it breaks only with store buffers
TSO, engine [..]
assuming: the program is compiled with `load.c`

"#]]);
    scratch.run(&["check", "-q", "main.c", "--model", "sc", "--", "load.c"]).exits(0);
    let json = scratch.run(&["check", "--format", "json", "main.c", "--", "load.c"]).exits(1).stdout;
    let record: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let steps = record["witness"]["steps"].as_array().expect("a run has steps");
    let files: Vec<_> = steps.iter().map(|step| (step["file"].as_str(), step["line"].as_u64())).collect();
    assert!(files.contains(&(Some("load.c"), Some(7))) && files.contains(&(None, Some(9))), "{files:?}");
    scratch
        .run(&["check", "-q", "main.c", "--sarif", "s.sarif", "--html", "p.html", "--", "load.c"])
        .exits(1);
    let sarif = scratch.read("s.sarif");
    assert!(sarif.contains("\"uri\": \"load.c\"") && sarif.contains("\"uri\": \"main.c\""), "{sarif}");
    let page = scratch.read("p.html");
    assert!(page.contains("<li class=\"file\">load.c</li>") && page.contains("line load.c:7: "), "{page}");
}

/// Locals end with their function, whoever has their address, and come back with the next call. What was never
/// written stays so in a copy.
#[test]
fn what_is_gone_and_what_was_never_written() {
    let scratch = Scratch::new("c_gone");
    let check = |name: &str, code: &str, expected: &str| {
        let text = format!(
            "#include <assert.h>\n#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n{code}\n"
        );
        std::fs::write(scratch.path(name), text).expect("a file can be written");
        for model in ["sc", "tso", "pso"] {
            let ran = scratch.run(&["check", "-q", name, "--model", model]);
            assert!(ran.stdout.starts_with(expected), "{model}: {}{}", ran.stdout, ran.stderr);
        }
    };
    let start = "static pthread_t t;\nstatic void *work(void *p) { *(int *)p += 1; return 0; }\n\
                 static void start(void) { int x = 0; pthread_create(&t, 0, work, &x); JOIN assert(x <= 1); }\n";
    let left = start.replace("JOIN", "");
    check(
        "left.c",
        &format!("{left}int main(void) {{ start(); pthread_join(t, 0); return 0; }}"),
        "unsafe  left.c: use of the local variable `x` after its function has returned in work",
    );
    let joined = start.replace("JOIN", "pthread_join(t, 0);");
    check(
        "joined.c",
        &format!("{joined}int main(void) {{ for (int k = 0; k < 2; k++) start(); return 0; }}"),
        "safe  joined.c",
    );
    let pair = "struct pair { int a, b; };\nstatic struct pair g;\n\
                int main(void) { struct pair *p = malloc(sizeof *p); p->a = 1;";
    let never = "unsafe  copy.c: use of an uninitialised value";
    check("copy.c", &format!("{pair} g = *p; return g.b == 7; }}"), never);
    check("copy.c", &format!("{pair} struct pair l = *p; return l.b == 7; }}"), never);
    check("copy.c", &format!("{pair} int x = 0; memcpy(&x, &p->b, sizeof x); return x == 7; }}"), never);
    check("copy.c", &format!("{pair} struct pair l = *p; assert(l.a == 1); return 0; }}"), "safe  copy.c");
}

#[test]
fn faults_are_reported_in_the_words_of_c() {
    let scratch = Scratch::new("c_faults");
    let check = |name: &str, code: &str, expected: &str| {
        let text = format!("#include <stdlib.h>\n#include <limits.h>\nint a[4], n = 4, *p;\n{code}\n");
        std::fs::write(scratch.path(name), text).expect("a file can be written");
        let ran = scratch.run(&["check", "-q", name]);
        assert_eq!(ran.stdout.trim_end(), format!("{expected}"), "{}", ran.stderr);
    };
    check(
        "null.c",
        "int main(void) {\n    return *p;\n}",
        "unsafe  null.c: null pointer dereferenced in main at line 5: return *p",
    );
    check(
        "bounds.c",
        "int main(void) {\n    p = a;\n    return p[n];\n}",
        "unsafe  bounds.c: access out of bounds, just past the end of `a` (16 bytes) in main at line 6: return p[n]",
    );
    check(
        "index.c",
        "int main(void) {\n    return a[n];\n}",
        "unsafe  index.c: array index out of bounds in main at line 5: return a[n]",
    );
    check(
        "indices.c",
        "#include <pthread.h>\nstatic void *f(void *q) { n++; return q; }\nint main(void) {\n    \
         pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0);\n    return a[n];\n}",
        "unsafe  indices.c: array index 5 is out of bounds (4 elements) in main at line 8: return a[n]",
    );
    // Far enough to reach other objects, if these were close.
    check(
        "far.c",
        "int b[8], *q = a;\nint main(void) {\n    p = &b[n];\n    n = (int)(p - q);\n    return q[n] + b[4];\n}",
        "unsafe  far.c: access out of bounds, 112 bytes before the start of `a` (16 bytes) in main at line 8: return q[n] + b[4]",
    );
    check(
        "before.c",
        "int main(void) {\n    p = a;\n    return p[n - 5];\n}",
        "unsafe  before.c: access out of bounds, 4 bytes before the start of `a` (16 bytes) in main at line 6: return p[n - 5]",
    );
    check(
        "copy.c",
        "#include <string.h>\nint main(void) {\n    memset(&a[2], 0, 16);\n    return 0;\n}",
        "unsafe  copy.c: access out of bounds, just past the end of `a` (16 bytes) in main at line 6: memset(&a[2], 0, 16)",
    );
    check(
        "divide.c",
        "int main(void) {\n    return n / a[1];\n}",
        "unsafe  divide.c: division by zero in main at line 5: return n / a[1]",
    );
    check(
        "long.c",
        "long big = LONG_MAX;\nint main(void) {\n    return big * n > 0;\n}",
        "unsafe  long.c: signed integer overflow in main at line 6: return big * n > 0",
    );
    check(
        "freed.c",
        "int main(void) {\n    p = malloc(4);\n    *p = 1;\n    free(p);\n    return *p;\n}",
        "unsafe  freed.c: use after free: `heap#1` (allocated at line 5) in main at line 8: return *p",
    );
    check(
        "twice.c",
        "int main(void) {\n    p = malloc(4);\n    free(p);\n    free(p);\n    return 0;\n}",
        "unsafe  twice.c: double or invalid free in main at line 7: free(p)",
    );
    check(
        "unset.c",
        "int main(void) {\n    p = malloc(4);\n    return *p;\n}",
        "unsafe  unset.c: use of an uninitialised value: `heap#1` in main at line 6: return *p",
    );
    check(
        "overflow.c",
        "int main(void) {\n    n = INT_MAX;\n    return n + 1;\n}",
        "unsafe  overflow.c: signed integer overflow in main at line 6: return n + 1",
    );
    check(
        "shift.c",
        "int main(void) {\n    return n << 31;\n}",
        "safe  shift.c: free of deadlocks, `main` can always finish",
    );
    let marked = ["check", "-q", "shift.c", "--", "-fsanitize=shift-base", "-fsanitize-trap=shift-base"];
    let marked = scratch.run(&marked).exits(1).stdout;
    assert!(marked.starts_with("unsafe  shift.c: signed integer overflow"), "{marked}");
    check(
        "local.c",
        "static int *f(void) {\n    int x = 1;\n    p = &x;\n    return p;\n}\n\
         int main(void) {\n    f();\n    return *p;\n}",
        "unsafe  local.c: use of the local variable `x` after its function has returned in main at line 11: return *p",
    );
    check(
        "part.c",
        "int main(void) {\n    char *c = (char *)&n;\n    return c[1];\n}",
        "unknown  part.c: 1 byte of the 4-byte `n` is read at line 6: return c[1], which is not followed; access each \
         variable with its own type",
    );
    check(
        "several.c",
        "#include <pthread.h>\nstatic void *f(void *q) { a[2] = 1; return q; }\nint main(void) {\n    \
         pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0);\n    *(long *)&a[1] = 0;\n    return 0;\n}",
        "unknown  several.c: `a[1]` and `a[2]` are written at once at line 8: *(long *)&a[1] = 0, which is not \
         followed; access each variable with its own type",
    );
}

#[test]
fn threads_that_use_what_is_gone() {
    const LOCAL: &str = "\
#include <pthread.h>
#include <stdatomic.h>
static _Atomic(atomic_int *) found;
static void *look(void *nothing)
{
    atomic_int *mine = found;
    int value = mine ? *mine : 0;
    (void)value;
    return nothing;
}
static void show(pthread_t thread)
{
    atomic_int x = 1;
    found = &x;
#ifdef JOINED
    pthread_join(thread, 0);
#endif
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, look, 0);
    show(thread);
    return 0;
}
";
    const MUTEX: &str = "\
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *lock(void *nothing)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return nothing;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, lock, 0);
#ifdef JOINED
    pthread_join(thread, 0);
#endif
    pthread_mutex_destroy(&m);
    return 0;
}
";
    let scratch = Scratch::new("c_used_when_gone").file("local.c", LOCAL).file("mutex.c", MUTEX);
    let check = |name: &str, expected: &str| {
        let ran = scratch.run(&["check", "-q", name]).exits(1);
        assert!(ran.stdout.contains(expected), "{}", ran.stdout);
        scratch.run(&["check", "-q", name, "--", "-DJOINED"]).exits(0);
    };
    check(
        "local.c",
        "unsafe  local.c: use of the local variable `x` after its function has returned in look at line 7",
    );
    check("mutex.c", "unsafe  mutex.c: use of a synchronisation object that was destroyed in ");
}

#[test]
fn unsigned_numbers_are_shown_as_they_are() {
    const LARGE: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\
        static atomic_uint x;\nstatic void *f(void *p) { x = -1; return p; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); assert(x == 0); return 0; }\n";
    let scratch = Scratch::new("c_unsigned").file("large.c", LARGE);
    let ran = scratch.run(&["check", "large.c"]).exits(1);
    assert!(ran.stdout.contains("x = 4294967295") && !ran.stdout.contains("x = -1 "), "{}", ran.stdout);
    // Outcomes are those of the variables of the program.
    let ran = scratch.run(&["outcomes", "large.c"]);
    assert!(!ran.stdout.contains("started"), "{}", ran.stdout);
}

#[test]
fn room_grows_and_its_end_is_unknown() {
    const LIST: &str = "\
#include <assert.h>
#include <stdlib.h>
struct node { struct node *next; };
static struct node *top;
int main(void)
{
    for (int i = 0; i < COUNT; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = top;
        top = node;
    }
    int count = 0;
    for (; top; top = top->next)
        count++;
    assert(count == EXPECTED);
    return 0;
}
";
    let scratch = Scratch::new("c_room").file("list.c", LIST);
    let check = |args: &[&str], code: i32, expected: &str| {
        let ran = scratch.run(&[&["check", "-q", "list.c"], args].concat()).exits(code);
        assert_eq!(ran.stdout.trim_end(), expected);
    };
    check(
        &["--", "-DCOUNT=6", "-DEXPECTED=6"],
        0,
        "safe  list.c: free of deadlocks, `main` can always finish",
    );
    check(
        &["--heap", "3", "--", "-DCOUNT=6", "-DEXPECTED=6"],
        3,
        "unknown  list.c: a thread can allocate more than 3 objects at line 8: struct node *node = malloc(sizeof \
         *node); allow more with --heap N (no run within this limit breaks the program)",
    );
    check(
        &["--", "-DCOUNT=6", "-DEXPECTED=5"],
        1,
        "unsafe  list.c: assertion failed in main at line 15: assert(count == EXPECTED)",
    );
}

/// A witness may come from anyone. It must not make the compiler run code or write files.
#[test]
fn a_file_that_is_judged_does_not_choose_what_the_compiler_does() {
    let scratch = Scratch::new("c_harmful")
        .file("main.c", "#include <assert.h>\nint main(void) { assert(0); return 0; }\n");
    scratch.run(&["check", "-q", "main.c", "--witness", "run.json"]).exits(1);
    let witness: serde_json::Value = serde_json::from_str(&scratch.read("run.json")).expect("JSON");
    for option in ["-fplugin=./evil.so", "-MMD", "-save-temps", "-Wp,-MD,written"] {
        let mut forged = witness.clone();
        let build = forged["program"]["build"].as_object_mut().or(None);
        match build {
            Some(build) => _ = build.insert("arguments".into(), serde_json::json!([option])),
            None => forged["build"]["arguments"] = serde_json::json!([option]),
        }
        std::fs::write(scratch.path("forged.json"), forged.to_string()).expect("a file can be written");
        let ran = scratch.run(&["replay", "forged.json"]).exits(2);
        assert!(ran.stderr.contains("error[compiler-argument]"), "{option}: {}", ran.stderr);
    }
    assert!(
        !scratch.path("written").exists()
            && !scratch.path("main.d").exists()
            && !scratch.path("main.i").exists()
    );
}

/// They would run before `main`, unseen.
#[test]
fn constructors_are_refused() {
    let source = "#include <assert.h>\nint g;\n__attribute__((constructor)) void f(void) { g = 1; }\nint main(void) { assert(g == 0); return 0; }\n";
    let ran = Scratch::new("c_constructors").file("main.c", source).run(&["check", "main.c"]).exits(2);
    assert!(ran.stderr.contains("which run before and after `main`: `"), "{}", ran.stderr);
}

#[test]
fn certificates_and_witnesses_record_the_compiler() {
    let scratch = Scratch::new("c_recorded").file("main.c", MAIN).file("load.c", LOAD);
    let args = ["check", "-q", "main.c", "--model", "sc", "--certificate", "proof.json", "--", "load.c"];
    scratch.run(&args).exits(0);
    scratch.run(&["certify", "proof.json"]).exits(0).complains("").prints(str![[r#"
valid  proof.json: main.c is safe, free of deadlocks and able to finish under SC with the threads it starts, compiled with `load.c`, apart from data races, by [..]

"#]]);
    scratch.run(&["check", "-q", "main.c", "--witness", "run.json", "--", "load.c"]).exits(1);
    scratch.run(&["replay", "-q", "run.json"]).exits(0).complains("");
    // Another version of the compiler, or of a header of the system.
    let run = scratch.read("run.json");
    let (start, digest) = run.split_once("\"digest\": \"").expect("a witness of C has a digest");
    let (_, end) = digest.split_once('"').expect("a text ends");
    let (first, compiler) = start.split_once("\"compiler\": \"").expect("the compiler is named");
    let (_, rest) = compiler.split_once('"').expect("a text ends");
    let other = format!("{first}\"compiler\": \"clang 99\"{rest}\"digest\": \"fnv1a64:0\"{end}");
    let scratch = scratch.file("other.json", other);
    scratch.run(&["replay", "-q", "other.json"]).exits(0).complains(str![[r#"
warning[another-translation]: other.json: [..]clang[..] translates main.c differently than clang 99 did when the witness was found
 |
 = help: set CC to the same compiler, and keep the included files unchanged

"#]]);
    // The text has changed.
    let scratch = scratch.file("load.c", LOAD.replace("return", "return  "));
    let ran = scratch.run(&["certify", "proof.json"]).exits(0);
    assert!(ran.stderr.contains("warning[program-changed]"), "{}", ran.stderr);
}

#[test]
fn other_ways_to_give_a_program() {
    let scratch = Scratch::new("c_ways")
        .file("main.c", MAIN)
        .file("load.c", LOAD)
        .file(
            "library.c",
            MAIN.replace("int main", "void verify(void) { assert(r1 == 1 || r2 == 1); }\nint notmain"),
        )
        .file("programs/ok.c", "int main(void) { return 0; }\n")
        .file("programs/part.c", "int part(void) { return 0; }\n");
    let words = |args: &[&str]| scratch.run(args).stdout.lines().next().unwrap_or_default().to_owned();
    let library =
        ["check", "-q", "library.c", "--thread", "p", "--thread", "q", "--final", "verify", "--", "load.c"];
    assert_eq!(
        words(&library),
        "unsafe  library.c: assertion failed in verify at line 19: assert(r1 == 1 || r2 == 1)"
    );
    // LLVM IR, and C from standard input.
    let clang = std::process::Command::new("clang")
        .args(["-S", "-emit-llvm", "-O0", "-g", "main.c", "load.c"])
        .current_dir(scratch.path(""))
        .status();
    assert!(clang.expect("clang can be started").success());
    assert_eq!(
        words(&["check", "-q", "main.ll", "--", "load.ll"]),
        "unsafe  main.ll: assertion failed in main at line 26 of main.c: assert(r1 == 1 || r2 == 1)"
    );
    let mut command = scratch.command(&["check", "-q", "--input", "c", "-", "--", "load.c"]);
    let input = std::fs::File::open(scratch.path("main.c")).expect("the file exists");
    let ran = common::Ran::new(command.stdin(input).output().expect("the command can be started")).exits(1);
    assert_eq!(
        ran.stdout.trim_end(),
        "unsafe  -: assertion failed in main at line 26: assert(r1 == 1 || r2 == 1)"
    );
    // In folders, only files with `main` are programs.
    let ran = scratch.run(&["check", "programs"]).exits(0);
    assert!(ran.stdout.contains("programs/ok.c") && !ran.stdout.contains("part.c"), "{}", ran.stdout);
    let fences = ["fences", "main.c", "--write", "fenced.c", "--", "load.c"];
    scratch.run(&fences).exits(0);
    scratch.run(&["check", "-q", "fenced.c", "--", "load.c"]).exits(0);
    let ran = scratch.run(&["fences", "main.ll", "--write", "fenced.ll", "--", "load.c"]).exits(2);
    assert!(ran.stderr.contains("error[compiled-language]"), "{}", ran.stderr);
    let threads = scratch.run(&["check", "main.c", "--threads", "3", "--", "load.c"]).exits(2);
    assert!(threads.stderr.contains("error[c-option]"), "{}", threads.stderr);
}

/// Counters are machine words, whose values `dual` and `sb` cannot list without a guess. Their proofs show that the guess
/// holds, and a broken twin stays broken.
#[test]
fn engines_that_list_values_take_part() {
    const TICKET: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_uint next, serving;
static int count;
static void *work(void *nothing)
{
#ifdef BROKEN
    unsigned mine = atomic_load(&next);
    atomic_store(&next, mine + 1);
#else
    unsigned mine = atomic_fetch_add(&next, 1);
#endif
    while (atomic_load(&serving) != mine)
        ;
    int now = count;
    count = now + 1;
    atomic_store_explicit(&serving, mine + 1, memory_order_release);
    return nothing;
}
int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    assert(count == 2);
    return 0;
}
";
    let scratch = Scratch::new("c_guess").file("ticket.c", TICKET);
    for (engine, model, kind) in
        [("dual", "tso", "load-buffers"), ("sb", "pso", "single-buffer"), ("dual", "sc", "load-buffers")]
    {
        let asked =
            ["check", "-q", "ticket.c", "--engine", engine, "--model", model, "--no-races", "--no-deadlock"];
        scratch.run(&[&asked[..], &["--certificate", "proof.json"]].concat()).exits(0);
        let valid = scratch.run(&["certify", "proof.json"]).exits(0).complains("").stdout;
        assert!(valid.contains("apart from data races, deadlocks and whether it can finish"), "{valid}");
        let proof: serde_json::Value = serde_json::from_str(&scratch.read("proof.json")).expect("it is JSON");
        assert_eq!(proof["kind"], kind);
        let domains = proof["domains"].as_array().expect("there are domains");
        assert!(domains.iter().any(|domain| *domain == serde_json::json!(["count", 0, 2])), "{domains:?}");
        let broken = scratch.run(&[&asked[..], &["--", "-DBROKEN"]].concat());
        assert!(!broken.stdout.starts_with("safe"), "{}", broken.stdout);
    }
}

/// On x86, a `sem_trywait` that fails, and a signal that no thread waits for, only load. Both commands know that.
#[test]
fn looking_is_not_a_fence() {
    let source = "#include <assert.h>\n#include <pthread.h>\n#include <semaphore.h>\n#include <stdatomic.h>\n\
        #define R memory_order_relaxed\natomic_int x, y;\nint a, b;\nsem_t s;\npthread_cond_t c = PTHREAD_COND_INITIALIZER;\n\
        static void *p(void *_) { atomic_store_explicit(&x, 1, R); LOOK; a = atomic_load_explicit(&y, R); return _; }\n\
        static void *q(void *_) { atomic_store_explicit(&y, 1, R); LOOK; b = atomic_load_explicit(&x, R); return _; }\n\
        int main(void)\n{\n    pthread_t t[2];\n    sem_init(&s, 0, VALUE);\n    pthread_create(&t[0], 0, p, 0);\n    \
        pthread_create(&t[1], 0, q, 0);\n    pthread_join(t[0], 0);\n    pthread_join(t[1], 0);\n    assert(a || b);\n    return 0;\n}\n";
    let check = |look: &str, value: u32, can_fail: bool| {
        let source = source.replace("LOOK", look).replace("VALUE", &value.to_string());
        let scratch = compiled(&format!("c_look_{}_{value}", look.len()), &source);
        scratch.run(&["check", "-q", "t.c"]).exits(if can_fail { 1 } else { 0 });
        let run = ["run", "-q", "--no-save", "--strategy", "exhaustive", "--", "./t"];
        scratch.run(&run).exits(if can_fail { 4 } else { 0 });
    };
    check("sem_trywait(&s)", 0, true);
    check("sem_trywait(&s)", 2, false);
    check("pthread_cond_signal(&c)", 0, true);
    check("pthread_cond_broadcast(&c)", 0, true);
}
