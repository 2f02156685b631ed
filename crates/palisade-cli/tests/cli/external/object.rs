//! Machine code: object files and assembly, as compilers make them.
//!
//! - The programs of the corpus, compiled: no answer contradicts the table.
//! - Random litmus tests, compiled: the outcomes are those of the brute-force interpreter on a program that is built from
//!   the same description.
//!
//! `PALISADE_SEEDS=1000` looks further.

use crate::common::Scratch;
use palisade::Model;
use palisade_conformance::c::litmus;
use palisade_conformance::seeds;
use palisade_corpus::{CExpectation, Safety, c_expectations};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const BUILDS: [(&str, &str); 4] = [("gcc", "-O2"), ("clang", "-O2"), ("gcc", "-O0"), ("clang", "-O1")];

/// Compiles a file of the scratch folder to an object file, or to assembly.
#[track_caller]
fn compile(scratch: &Scratch, compiler: &str, options: &[&str], from: &str, to: &str) {
    let mut command = Command::new(compiler);
    let kind = if to.ends_with(".s") { "-S" } else { "-c" };
    command.args(options).args(["-w", "-pthread", kind, "-o"]).arg(scratch.path(to)).arg(scratch.path(from));
    let output = command.output().expect("gcc and clang are needed (`./test` installs them)");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

const STORE_BUFFERING: &str = "#include <stdatomic.h>
#include <assert.h>
static atomic_int x, y;
static int r1, r2;
void first(void) {
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    FENCE;
    r1 = atomic_load_explicit(&y, memory_order_relaxed);
}
void second(void) {
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    FENCE;
    r2 = atomic_load_explicit(&x, memory_order_relaxed);
}
void look(void) { assert(r1 || r2); }
";

#[test]
fn functions_of_an_object_file() {
    let scratch = Scratch::new("object-functions").file("sb.c", STORE_BUFFERING);
    let roots = ["--thread", "first", "--thread", "second", "--final", "look"];
    let fence = "-DFENCE=atomic_thread_fence(memory_order_seq_cst)";
    for (compiler, level) in BUILDS {
        for file in ["sb.o", "sb.s"] {
            compile(&scratch, compiler, &[level, "-g", "-DFENCE"], "sb.c", file);
            scratch.run(&[&["check", file][..], &roots].concat()).exits(1).prints(format!(
                "unsafe  {file}: assertion failed in look at line [..]: look+0x[..] (sb.c:15): call [..] <__assert_fail>
...
[..]first+0x[..] (sb.c:6): [..]store x = 1[..]
...
it breaks only with store buffers
...
"
            ));
            compile(&scratch, compiler, &[level, fence], "sb.c", file);
            let printed = format!("safe  {file}: free of deadlocks, all threads can always end\n");
            scratch.run(&[&["check", "-q", file][..], &roots].concat()).exits(0).prints(&printed);
        }
    }
}

#[test]
fn mutexes_of_other_kinds_are_refused_if_they_are_initialised_statically() {
    let program = "#define _GNU_SOURCE
#include <pthread.h>
static struct { long room; pthread_mutex_t mutex; } lock = { 0, KIND };
int main(void) {
    pthread_mutex_lock(&lock.mutex);
    AGAIN;
    pthread_mutex_unlock(&lock.mutex);
}
";
    let scratch = Scratch::new("object-mutexes").file("lock.c", program);
    let usual = "-DKIND=PTHREAD_MUTEX_INITIALIZER";
    compile(&scratch, "gcc", &["-O1", usual, "-DAGAIN"], "lock.c", "usual.o");
    scratch.run(&["check", "-q", "usual.o"]).exits(0);
    let recursive = "-DKIND=PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP";
    compile(
        &scratch,
        "gcc",
        &["-O1", recursive, "-DAGAIN=pthread_mutex_lock(&lock.mutex)"],
        "lock.c",
        "again.o",
    );
    scratch.run(&["check", "again.o"]).exits(2).complains(
        "error[object-file]: again.o: the variable `lock` may hold a mutex that is recursive or checks for errors[..]\n...",
    );
}

#[test]
fn the_source_and_its_build_are_compared() {
    let flag = "#include <pthread.h>
#include <assert.h>
static int data, ready;
static void *set(void *argument) {
    data = 1;
    __asm__ volatile(\"\" ::: ORDER);
    *(volatile int *)&ready = 1;
    return 0;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, set, 0);
    pthread_join(t, 0);
    assert(data == WANTED);
    return 0;
}
";
    let scratch = Scratch::new("object-build").file("flag.c", flag).file("lock.pal", "process P {}");
    let order = "-DORDER=\"memory\"";
    let check = ["check", "-q", "flag.c", "--build", "gcc -O2"];
    scratch.run(&[&check[..], &["--", order, "-DWANTED=1"]].concat()).exits(0).prints(
        "safe  flag.c: [..]
safe  flag.c (gcc -O2): [..]

the source and the build by `gcc -O2` agree: safe
",
    );
    let ran = scratch.run(&[&check[..], &["--format", "json", "--", order, "-DWANTED=2"]].concat()).exits(1);
    let record: Value =
        serde_json::from_str(ran.stdout.lines().last().expect("three lines")).expect("it is JSON");
    assert_eq!([&record["source"], &record["object"]], ["unsafe", "unsafe"]);
    assert_eq!(record["agree"], true);
    // The source is compiled without optimisation, and the build is not.
    let optimised = format!("#ifdef __OPTIMIZE__\n#define WANTED 2\n#else\n#define WANTED 1\n#endif\n{flag}");
    let scratch = scratch.file("optimised.c", optimised);
    scratch.run(&["check", "-q", "optimised.c", "--build", "gcc -O2", "--", order]).exits(1).prints(
        "safe  optimised.c: [..]
unsafe  optimised.c (gcc -O2): assertion failed in main at line [..] (optimised.c:19): [..]

the source and the build by `gcc -O2` differ: the compiler does not keep what the source relies on, as the run above shows
",
    );
    scratch
        .run(&["check", "flag.c", "--build", "no-such-compiler", "--", order, "-DWANTED=1"])
        .exits(2)
        .complains(
            "error[build-failed]: flag.c: the compiler `no-such-compiler` cannot be started: [..]\n...",
        );
    scratch
        .run(&["check", "lock.pal", "--build", "gcc"])
        .exits(2)
        .complains("error[build-of-c]: lock.pal: --build compiles C programs, and this is not one\n...");
}

#[test]
fn proofs_and_runs_are_checked_again() {
    let scratch = Scratch::new("object-again").file("sb.c", STORE_BUFFERING);
    let roots = ["--thread", "first", "--thread", "second", "--final", "look"];
    compile(&scratch, "gcc", &["-O2", "-DFENCE"], "sb.c", "sb.o");
    scratch.run(&[&["check", "-q", "sb.o", "--witness", "run.json"][..], &roots].concat()).exits(1);
    scratch.run(&["replay", "-q", "run.json"]).exits(0);
    compile(&scratch, "gcc", &["-O2", "-DFENCE=__sync_synchronize()"], "sb.c", "sb.o");
    scratch.run(&["replay", "-q", "run.json"]).exits(1);
    scratch.run(&[&["check", "-q", "sb.o", "--certificate", "proof.json"][..], &roots].concat()).exits(0);
    scratch.run(&["certify", "-q", "proof.json"]).exits(0);
}

#[test]
fn what_is_not_followed_is_refused_by_name() {
    let check = |text: &str, expected: &str| {
        let scratch = Scratch::new("object-refused")
            .file("a.s", format!(" .globl f\n .type f, @function\nf:\n{text}\n .size f, .-f\n"));
        scratch
            .run(&["check", "a.s", "--thread", "f"])
            .exits(2)
            .complains(format!("error[c-unsupported]: not supported: {expected}\n..."));
    };
    check(
        " movl %eax, x(%rip)\n ret\n .comm x, 4, 4",
        "a store of a register that holds nothing that the program has put there",
    );
    check(
        " xorl %eax, %eax\n movnti %eax, x(%rip)\n ret\n .comm x, 4, 4",
        "the instruction `movnti %eax, (%rip)`",
    );
    check(" fldpi\n ret", "the instruction `fldpi`");
    check(" vaddps %ymm0, %ymm1, %ymm2\n ret", "the instruction `vaddps %ymm0, %ymm1, %ymm2`");
    check(" subq %rdi, %rsp\n ret", "a stack pointer that is not known");
    check(" movl $1, %ebx\n ret", "a return while `rbx` may have changed");
    check(" jz 1f\n1: ret", "a use of flags that no instruction of the function has set");
    check(" movq $1, (%rsp)\n ret", "an access to the return address");
    check(" call other\n ret", "the function `other`");
    check(" leaq 1f(%rip), %rax\n jmp *%rax\n1: ret", "the address of something in the code");
}

#[test]
fn mistakes_in_assembly_are_shown_with_their_lines() {
    let text = " .globl f
 .type f, @function
f: movl $1, x(%rip)
 .rept 5
 movl %eax
 ret
 .size f, .-f
 .long .L5
";
    let scratch = Scratch::new("object-mistakes").file("a.s", text).file("none.s", "f: ret\n");
    scratch.run(&["check", "a.s", "--thread", "f"]).exits(2).complains(
        "error[assembly-error]: not supported: the directive `.rept`
 --> a.s:4:2
  |
4 |  .rept 5
  |  ^^^^^^^
  |
  = help: an assembler may know it: give the object file that `cc -c` writes

error[assembly-error]: not supported: `movl` with such operands
 --> a.s:5:7
...
error[assembly-error]: the label `.L5` is not defined
 --> a.s:8:2
...
",
    );
    scratch.run(&["check", "none.s"]).exits(2).complains(
        "error[assembly-error]: none.s: the assembly has no functions: `.type f, @function` is missing\n...",
    );
}

#[test]
fn lines_of_assembly_are_shown() {
    let text = " .globl f
 .type f, @function
f:
 movl $1, x(%rip)
 ud2
 .size f, .-f
 .comm x, 4, 4
";
    let scratch = Scratch::new("object-lines").file("a.s", text);
    scratch
        .run(&["check", "a.s", "--thread", "f"])
        .exits(1)
        .prints("unsafe  a.s: [..] in f at line 5: ud2\n...");
    // What is refused after reading, too.
    scratch
        .file("b.s", text.replace("ud2", "fldpi"))
        .run(&["check", "b.s", "--thread", "f"])
        .exits(2)
        .complains(
            "error[c-unsupported]: not supported: the instruction `fldpi`
 --> b.s:5:2
  |
5 |  fldpi
...",
        );
}

#[test]
fn files_that_are_not_object_files() {
    let scratch = Scratch::new("object-wrong")
        .file("text.o", "int main;")
        .file("bad.s", " movl %eax\n")
        .file("empty.o", "");
    for file in ["text.o", "empty.o"] {
        scratch.run(&["check", file]).exits(2).complains(format!(
            "error[object-file]: {file}: this is not an ELF object file\n...\n = help: give an object file for x86-64 Linux, as `cc -c` writes it\n..."
        ));
    }
    scratch
        .run(&["check", "bad.s"])
        .exits(2)
        .complains("error[assembly-error]: not supported: `movl` with such operands\n[..]bad.s:1:[..]\n...");
    scratch.run(&["check", "missing.o"]).exits(2).complains("error[no-such-file]: missing.o: [..]\n...");
    scratch
        .run(&["check", "text.o", "--", "-DN=3"])
        .exits(2)
        .complains("error[compiler-argument]: text.o: `-DN=3` is neither an object file nor assembly\n...");
}

/// Damaged object files never make the command panic.
#[test]
fn damaged_object_files_are_refused_or_judged() {
    let scratch = Scratch::new("object-damaged").file("sb.c", STORE_BUFFERING);
    compile(&scratch, "gcc", &["-O2", "-g", "-DFENCE"], "sb.c", "sb.o");
    let whole = std::fs::read(scratch.path("sb.o")).expect("the object file is there");
    for seed in seeds(40) {
        let mut random = palisade_conformance::random::Random::new(seed);
        let mut bytes = whole.clone();
        if seed % 4 == 0 {
            bytes.truncate(random.below(whole.len()));
        }
        for _ in 0..random.below(6) {
            let at = random.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.below(256) as u8;
            }
        }
        std::fs::write(scratch.path("damaged.o"), bytes).expect("the file can be written");
        let ran = scratch.run(&[
            "check",
            "damaged.o",
            "--timeout",
            "10",
            "--thread",
            "first",
            "--thread",
            "second",
        ]);
        assert!(
            matches!(ran.code, Some(0..=3)) && !ran.stderr.contains("panicked"),
            "seed {seed}: {}",
            ran.stderr
        );
    }
}

/// The values of `o0`, `o1`, … that are possible.
fn outcomes(scratch: &Scratch, file: &str, model: &str) -> Option<BTreeSet<Vec<i64>>> {
    let ran = scratch.run(&["outcomes", file, "--model", model, "--format", "json", "--timeout", "60"]);
    if ran.code == Some(3) {
        return None;
    }
    assert_eq!(ran.code, Some(0), "{file}: {}{}", ran.stdout, ran.stderr);
    let record: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    let rows = record["outcomes"].as_array().expect("a list").iter();
    let row = |row: &Value| {
        (0..)
            .map_while(|index| row["values"].get(format!("o{index}")))
            .map(|o| o.as_i64().expect("a number"))
            .collect()
    };
    Some(rows.map(row).collect())
}

#[test]
fn differential_litmus_tests_have_their_outcomes() {
    let mut compared = 0;
    for seed in seeds(4) {
        let test = litmus::generate(seed);
        let scratch = Scratch::new(&format!("object-litmus-{seed}"))
            .file("test.c", test.text().replace("static long o", "long o"));
        for (name, model) in [("sc", Model::Sc), ("tso", Model::Tso)] {
            let Some(expected) = test.outcomes(model) else { continue };
            for (compiler, level) in BUILDS {
                compile(&scratch, compiler, &[level], "test.c", "test.o");
                let Some(found) = outcomes(&scratch, "test.o", name) else { continue };
                assert_eq!(found, expected, "seed {seed}, {compiler} {level}, {name}");
                compared += 1;
            }
        }
    }
    assert!(compared > 0);
}

/// Whether the table says that a program is wrong under TSO, and not only by a data race.
fn is_wrong(expected: &CExpectation) -> Option<bool> {
    let all = c_expectations();
    let same = all.iter().filter(|other| (other.file, &other.flags) == (expected.file, &expected.flags));
    let wrong = same.filter(|one| one.verdicts.tso == Some(Safety::Unsafe));
    let kinds: Vec<&str> = wrong.flat_map(|one| one.kinds.clone()).collect();
    if !kinds.is_empty() && kinds.iter().all(|kind| *kind == "race") {
        return None;
    }
    Some(!kinds.is_empty())
}

#[test]
fn the_corpus_as_machine_code() {
    let scratch = Scratch::new("object-corpus");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let all = c_expectations();
    let (mut known, mut others) = (0, Vec::new());
    for seed in seeds(14) {
        let expected = &all[(seed as usize * 23) % all.len()];
        // From level 1 on, some versions of clang move variables to the stack of each thread.
        let (compiler, level) = [("gcc", "-O2"), ("clang", "-O0"), ("gcc", "-O1")][seed as usize % 3];
        let Some(wrong) = is_wrong(expected) else { continue };
        let from = corpus.join(expected.file);
        let mut command = Command::new(compiler);
        command
            .args([level, "-w", "-pthread", "-c", "-o"])
            .arg(scratch.path("a.o"))
            .args(&expected.flags)
            .arg(from);
        assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
        let ran = scratch.run(&["check", "-q", "a.o", "--timeout", "20"]);
        match ran.code {
            Some(0) if !wrong => known += 1,
            Some(1) if wrong => known += 1,
            Some(2 | 3) => {
                others.push(format!("{} {:?}: {}{}", expected.file, expected.flags, ran.stdout, ran.stderr))
            }
            _ => panic!(
                "{} {:?} {compiler} {level}: {}{}",
                expected.file, expected.flags, ran.stdout, ran.stderr
            ),
        }
    }
    assert!(known > 4 * others.len(), "{known} known, but not: {}", others.join("\n"));
}
