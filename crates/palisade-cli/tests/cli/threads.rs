//! `--threads any`: any number of the processes that are declared with several instances, or of all.

use crate::common::Scratch;

const LOCK: &str = "\
shared lock: bool;
process W[2] { while xchg(lock, true) {} cs: skip; lock = false; }
process Once { once: skip; }
forbid count(W@cs) >= 2;
forbid count(Once@once) >= 2;
";

const COUNT: &str = "\
shared n: 0..3 blocking;
process W[2] { fetch_add(n, 1); }
process Once { fetch_add(n, 0); }
forbid n == 3;
";

#[test]
fn processes_that_are_declared_once_stay_alone() {
    let scratch = Scratch::new("threads_any").file("lock.pal", LOCK).file("count.pal", COUNT);
    for model in ["sc", "tso", "pso"] {
        let check = |file: &str, threads: &[&str]| {
            let args = [&["check", file, "--model", model], threads].concat();
            scratch.run(&args).stdout.split_whitespace().next().unwrap_or_default().to_owned()
        };
        assert_eq!(check("lock.pal", &[]), "safe");
        assert_eq!(check("lock.pal", &["--threads", "any"]), "safe");
        assert_eq!(check("lock.pal", &["--threads", "any=all"]), "unsafe");
        assert_eq!(check("count.pal", &[]), "safe");
        assert_eq!(check("count.pal", &["--threads", "any"]), "unsafe");
    }
    // Runs and proofs say which processes there are.
    scratch.run(&["check", "count.pal", "--threads", "any", "--witness", "run.json"]).exits(1);
    let ran = scratch.run(&["replay", "run.json"]).exits(0);
    assert!(ran.stdout.contains("W[2]"), "{}", ran.stdout);
    assert!(scratch.read("run.json").contains("\"several\": true"), "{}", scratch.read("run.json"));
    scratch.run(&["check", "lock.pal", "--threads", "any", "--certificate", "proof.json"]).exits(0);
    let ran = scratch.run(&["certify", "proof.json"]).exits(0);
    assert!(ran.stdout.contains("each process that it declares with several"), "{}", ran.stdout);
    // Nobody turns it into a proof for any number of all processes.
    let proof = scratch.read("proof.json").replace("any-of-several", "any");
    let scratch = scratch.file("proof.json", proof);
    scratch.run(&["certify", "proof.json"]).exits(2);
}

/// Every answer says how many threads it is about, if the command line did.
#[test]
fn answers_say_what_they_are_about() {
    let scratch = Scratch::new("threads_said").file("lock.pal", LOCK);
    for (threads, about) in [
        ("any", "with any number of threads"),
        ("3", "with 3 threads of each process"),
        ("1", "with 1 thread of each process"),
    ] {
        for command in ["check", "robust", "fences"] {
            let lock = LOCK
                .replace("process Once { once: skip; }\n", "")
                .replace("forbid count(Once@once) >= 2;\n", "");
            let scratch = Scratch::new(&format!("threads_said_{command}_{threads}")).file("w.pal", lock);
            let ran = scratch.run(&[command, "w.pal", "--threads", threads]).exits(0);
            let first = ran.stdout.lines().next().unwrap_or_default().to_owned();
            assert!(first.ends_with(about), "{first}");
            let ran = scratch.run(&[command, "w.pal", "--threads", threads, "--format", "json"]).exits(0);
            assert!(ran.stdout.contains(&format!("\"limits\":\"{about}\"")), "{}", ran.stdout);
        }
    }
    let scratch = scratch.file("skip.pal", "process P { skip; }\n");
    let ran = scratch.run(&["check", "-q", "skip.pal", "--threads", "any=all"]).exits(0);
    assert_eq!(ran.stdout, "safe  skip.pal: with any number of threads of each process\n");
}

#[test]
fn fences_for_any_number_of_some() {
    let text = "\
shared x, y: bool;
process P[2] { x = true; if !y { cs: skip; } }
process Q { y = true; if !x { cs: skip; } }
forbid count(P@cs) >= 1 && Q@cs;
";
    let scratch = Scratch::new("threads_any_fences").file("sb.pal", text);
    let ran = scratch.run(&["fences", "sb.pal", "--threads", "any", "--write", "new.pal"]).exits(0);
    assert!(ran.stdout.contains("sb.pal: safe with 2 fences"), "{}", ran.stdout);
    scratch.run(&["check", "new.pal", "--threads", "any"]).exits(0);
    scratch.run(&["robust", "new.pal", "--threads", "any"]).exits(0);
    scratch.run(&["robust", "sb.pal", "--threads", "any"]).exits(1);
}

#[test]
fn programs_without_such_processes_are_refused() {
    let scratch = Scratch::new("threads_any_once")
        .file("once.pal", "process P(i: 0..1) { skip; }\n")
        .file("index.pal", "process P(i: 0..1)[2] { cs: skip; }\nforbid P[3]@cs;\n");
    let ran = scratch.run(&["check", "once.pal", "--threads", "any"]).exits(2);
    assert!(
        ran.stderr.contains("declared-once") && ran.stderr.contains("--threads any=all"),
        "{}",
        ran.stderr
    );
    scratch.run(&["check", "once.pal", "--threads", "any=all"]).exits(0);
    // Which instance the third one is depends on their number.
    scratch.run(&["check", "index.pal", "--threads", "any"]).exits(2);
    let ran = scratch.run(&["check", "once.pal", "--threads", "many"]).exits(2);
    assert!(ran.stderr.contains("any=all"), "{}", ran.stderr);
}

/// With identities, `--threads` is the number of processes that have one, whatever the program declares. Others stay as
/// they are, and no text says anything else.
#[test]
fn processes_with_identities_beside_others() {
    let scratch = Scratch::new("threads_identities").file(
        "ids.pal",
        "shared n: 0..9 blocking;\nshared t: id or none;\n\
         process Q { let r: 0..9 = fetch_add(n, 1); assert(r != 1); }\nprocess P(me: id)[2] { t = me; }\n",
    );
    let checked =
        scratch.run(&["check", "ids.pal", "-q", "--threads", "3", "--certificate", "c.json"]).exits(0);
    assert!(checked.stdout.starts_with("safe  ids.pal: with 3 threads of P"), "{}", checked.stdout);
    let certified = scratch.run(&["certify", "c.json"]).exits(0);
    assert!(certified.stdout.contains("with 3 threads of P, "), "{}", certified.stdout);
    let translated =
        scratch.run(&["translate", "ids.pal", "--as-is", "--to", "promela", "--threads", "3"]).exits(0);
    assert!(translated.stdout.contains("run P_3()"), "{}", translated.stdout);
}
