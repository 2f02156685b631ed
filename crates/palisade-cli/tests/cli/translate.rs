//! `palisade translate`: its output, where the output goes, and what it refuses.

use crate::common;

use common::{STORE_BUFFERING, Scratch};
use snapbox::str;
use std::process::Command;

#[test]
fn to_promela() {
    let scratch = Scratch::new("translate-promela").file("sb.pal", STORE_BUFFERING);
    scratch.run(&["translate", "sb.pal", "--as-is", "--to", "promela"]).exits(0).prints(str![[r#"
/*
 * sb.pal under SC.
 *
 * A violated assertion is an error in the program; a process that waits forever is not:
 *     spin -run -safety -m1000000 FILE
 */

bit x;                                                  /* 1: shared x, y: 0..1; */
bit y;
bit P_r;
bit Q_r;
byte running = 2;                                       /* processes that have not ended */

proctype P() {
    x = 1;                                              /* 4: x = 1; */
    atomic { P_r = y; running-- };                      /* 5: let r = y; */
}

proctype Q() {
    y = 1;                                              /* 9: y = 1; */
    atomic { Q_r = x; running-- };                      /* 10: let r = x; */
}

/* The monitor can take a step only in a bad state, or where nothing else can: waiting forever is no error. */
proctype monitor() {
    do
    :: running == 0 && (!(P_r == 1 || Q_r == 1)) -> assert(false) /* 13: final P.r == 1 || Q.r == 1; */
    :: timeout
    od
}

init {
    atomic {
        run P();
        run Q();
        run monitor();
    }
}

"#]]);
}

#[test]
fn to_c() {
    let scratch = Scratch::new("translate-c").file("sb.pal", STORE_BUFFERING);
    scratch.run(&["translate", "sb.pal", "--as-is", "--to", "c"]).exits(0).prints(str![[r#"
/*
 * sb.pal under SC.
...
static void *P(void *argument)
{
    (void)argument;

    STEP(x = 1);                                        /* 4: x = 1; */
    STEP(P_r = y; running--; check());                  /* 5: let r = y; */
    return NULL;
}
...
"#]]);
}

#[test]
fn to_pal_and_back() {
    let scratch = Scratch::new("translate-pal").file("sb.pal", STORE_BUFFERING);
    // The stores reach memory in the second round, and the property waits for them.
    let bounds = [("--rounds", ["0", "1", "2"], [0, 0, 1]), ("--age", ["0", "1", "2"], [0, 1, 1])];
    for (bound, numbers, codes) in bounds {
        for (number, code) in numbers.into_iter().zip(codes) {
            let args = ["translate", "sb.pal", bound, number, "--to", "pal", "-o", "sc.pal"];
            scratch.run(&args).exits(0).prints("").complains("");
            scratch.run(&["check", "sc.pal", "--model", "sc", "-q"]).exits(code);
        }
    }
}

/// The written file equals the printed text. The heading describes it.
#[test]
fn files() {
    let scratch = Scratch::new("translate-files").file("sb.pal", STORE_BUFFERING);
    for to in ["pal", "c", "promela"] {
        let args = ["translate", "sb.pal", "--age", "2", "--to", to];
        let printed = scratch.run(&args).exits(0).stdout;
        scratch.run(&[&args[..], &["-o", "out"]].concat()).exits(0).prints("").complains("");
        assert_eq!(scratch.read("out"), printed);
    }
    let heading =
        "sb.pal under TSO with stores that stay in their buffers for at most 2 rounds, as a program for SC.";
    assert!(scratch.read("out").contains(heading), "{}", scratch.read("out"));
    scratch.run(&["translate", "sb.pal", "--rounds", "1", "--to", "c", "-o", "no/where"]).exits(2).complains(
        str![[r#"
error[unwritable-file]: no/where: cannot be written: No such file or directory (os error 2)

"#]],
    );
    let record =
        scratch.run(&["translate", "sb.pal", "--rounds", "3", "--to", "c", "--format", "json"]).exits(0);
    let record: serde_json::Value = serde_json::from_str(&record.stdout).expect("it is JSON");
    assert_eq!((&record["command"], &record["rounds"]), (&"translate".into(), &3.into()));
    let text = record["text"].as_str().expect("there is a text");
    assert!(text.contains("with at most 3 rounds per process"), "{text}");
}

#[test]
fn usage() {
    let scratch = Scratch::new("translate-usage").file("sb.pal", STORE_BUFFERING);
    let wrong = |args: &[&str]| {
        let ran = scratch.run(&[&["translate"], args].concat()).exits(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}");
    };
    wrong(&["sb.pal", "--to", "c"]);
    wrong(&["sb.pal", "--rounds", "1"]);
    wrong(&["sb.pal", "--rounds", "1", "--age", "1", "--to", "c"]);
    wrong(&["sb.pal", "--rounds", "1", "--as-is", "--to", "c"]);
    wrong(&["sb.pal", "--rounds", "auto", "--to", "c"]);
    wrong(&["sb.pal", "--rounds", "256", "--to", "c"]);
    wrong(&["sb.pal", "--rounds", "1", "--to", "java"]);
    wrong(&["missing.pal", "--rounds", "1", "--to", "c"]);
}

#[test]
fn what_cannot_be_expressed() {
    let scratch = Scratch::new("translate-refused")
        .file("any.pal", "shared x: 0..1;\nprocess P[*] { x = 1; }\n")
        .file(
            "identities.pal",
            "shared owner: id or none;
process P(me: id)[*] { cas(owner, none, me); if owner == me { cs: skip; } }
forbid count(P@cs) >= 2;
",
        )
        .file("large.pal", "shared x;\nprocess P { x = 5_000_000_000; }\n")
        .file("sb.pal", STORE_BUFFERING);
    scratch.run(&["translate", "any.pal", "--as-is", "--to", "c"]).exits(2).prints("").complains(str![[r#"
error[any-number]: the number of `P` processes is not fixed
 --> any.pal:2:1
  |
2 | process P[*] { x = 1; }
  | ^^^^^^^^^^^^
  |
  = help: set the number with --threads N


"#]]);
    let three =
        scratch.run(&["translate", "any.pal", "--as-is", "--to", "promela", "--threads", "3"]).exits(0);
    assert_eq!(three.stdout.matches("run P();").count(), 3, "{}", three.stdout);
    // Translated programs do not know that identities differ, so the number of processes has to be fixed.
    for to in ["pal", "c", "promela"] {
        let refused = scratch.run(&["translate", "identities.pal", "--rounds", "2", "--to", to]).exits(2);
        assert!(refused.stderr.contains("error[any-number]"), "{}", refused.stderr);
    }
    let of_two =
        ["translate", "identities.pal", "--rounds", "2", "--to", "pal", "--threads", "2", "-o", "two.pal"];
    scratch.run(&of_two).exits(0);
    scratch.run(&["check", "two.pal", "--model", "sc", "-q"]).exits(0);
    scratch.run(&["translate", "large.pal", "--as-is", "--to", "promela"]).exits(2).prints("").complains(
        str![[r#"
error[number-too-large]: 5000000000 does not fit into 32 bits, the size of numbers in Promela
 --> large.pal:2:13
  |
2 | process P { x = 5_000_000_000; }
  |             ^^^^^^^^^^^^^^^^^^


"#]],
    );
    scratch.run(&["translate", "large.pal", "--as-is", "--to", "c"]).exits(0);
    let pal = ["translate", "sb.pal", "--rounds", "1", "--to", "pal", "--threads", "2"];
    scratch.run(&pal).exits(2).prints("").complains(str![[r#"
error[threads-of-pal]: sb.pal: a .pal program declares its own number of processes
 |
 = help: leave out --threads, or translate to c or promela


"#]]);
}

/// This needs gcc: `./test quick` skips it.
mod external {
    use super::*;

    /// The translation of store buffering fails in a run that a seed names, and fails again in the same run.
    #[test]
    fn a_seed_names_a_run() {
        let scratch = Scratch::new("translate-run").file("sb.pal", STORE_BUFFERING);
        scratch.run(&["translate", "sb.pal", "--rounds", "2", "--to", "c", "-o", "sb.c"]).exits(0);
        let gcc = Command::new("gcc")
            .args(["-pthread", "sb.c", "-o", "sb"])
            .current_dir(scratch.path("."))
            .status()
            .expect("gcc can be started: install the package gcc, or run ./test");
        assert!(gcc.success());
        let fails = |seed: u32| {
            let ran = Command::new(scratch.path("sb")).arg(seed.to_string()).output().expect("it runs");
            let complains = String::from_utf8_lossy(&ran.stderr).contains("Assertion");
            assert_eq!(ran.status.success(), !complains);
            complains
        };
        let seed = (1..500).find(|seed| fails(*seed)).expect("some run of five hundred fails");
        assert!((0..5).all(|_| fails(seed)), "{seed}");
    }
}
