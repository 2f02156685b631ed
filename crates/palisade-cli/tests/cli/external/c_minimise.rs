//! Unnecessary fences and orders of C programs.
//!
//! The judge is `check`, asked about the program with every subset of the orders weakened.

use crate::common::Scratch;
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use serde_json::Value;

fn minimise(scratch: &Scratch, args: &[&str]) -> Value {
    let mut all = vec!["fences", "--minimise", "p.c", "--format", "json", "--timeout", "120"];
    all.extend(args);
    serde_json::from_str(&scratch.run(&all).stdout).expect("an answer is JSON")
}

/// The lines whose orders can be weaker together, and those that are needed.
fn lines(record: &Value) -> (Vec<u64>, Vec<u64>) {
    let all = record["weakenings"].as_array().expect("a list");
    let of = |wanted: &dyn Fn(&&Value) -> bool| {
        all.iter().filter(wanted).map(|one| one["line"].as_u64().expect("a line")).collect()
    };
    (of(&|one| one["together"] == true), of(&|one| one["alone"] == "needed"))
}

const HEAD: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
";
const MAIN: &str = "
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    END
    return 0;
}
";

/// Two threads with a lock, and what they do inside.
fn client(lock: &str, rounds: u32) -> String {
    let thread = |name: &str, me: u32| {
        format!(
            "static void *{name}(void *nothing)\n{{\n    for (int i = 0; i < {rounds}; i++) {{\n        lock({me});\n        counter++;\n        unlock({me});\n    }}\n    return nothing;\n}}\n"
        )
    };
    let end = MAIN.replace("END", &format!("assert(counter == {});", 2 * rounds));
    format!("{HEAD}static int counter;\n{lock}{}{}{end}", thread("first", 0), thread("second", 1))
}

/// Which lines of a lock, counted from its own first line, have unnecessary and needed orders.
#[track_caller]
fn check(name: &str, lock: &str, rounds: u32, unnecessary: &[u64], needed: &[u64]) {
    let text = client(lock, rounds);
    let scratch = Scratch::new(&format!("c_minimise_{name}")).file("p.c", &text);
    let record = minimise(&scratch, &["--write", "q.c"]);
    assert_eq!(record["verdict"], "safe", "{name}: {record}");
    let own = |lines: Vec<u64>| lines.into_iter().map(|line| line - 4).collect::<Vec<u64>>();
    let (together, kept) = lines(&record);
    assert_eq!((own(together).as_slice(), own(kept).as_slice()), (unnecessary, needed), "{name}: {record}");
    assert_eq!(record["cheapest"], true, "{name}: {record}");
    if !unnecessary.is_empty() {
        scratch.run(&["check", "-q", "q.c"]).exits(0);
    }
    if name == "peterson" {
        let again = Scratch::new(&format!("c_minimise_{name}_again"))
            .file("p.c", std::fs::read_to_string(scratch.path("q.c")).expect("it was written"));
        assert_eq!(lines(&minimise(&again, &[])).0, Vec::<u64>::new(), "{name}: nothing more can go");
    }
}

/// As in textbooks, with the operations that have no order.
#[test]
fn locks_as_commonly_written() {
    // G. Peterson, 1981: only the store to `turn` has to be in memory before the flag of the other is loaded.
    let peterson = "\
static atomic_int flag[2], turn;
static void lock(int me)
{
    atomic_store(&flag[me], 1);
    atomic_store(&turn, 1 - me);
    while (atomic_load(&flag[1 - me]) && atomic_load(&turn) == 1 - me)
        ;
}
static void unlock(int me)
{
    atomic_store(&flag[me], 0);
}
";
    check("peterson", peterson, 2, &[4, 11], &[5]);
    // A test-and-set lock with `atomic_flag`, as in the C standard and on cppreference.
    let flag = "\
static atomic_flag taken = ATOMIC_FLAG_INIT;
static void lock(int me)
{
    while (atomic_flag_test_and_set(&taken))
        ;
}
static void unlock(int me)
{
    atomic_flag_clear(&taken);
}
";
    check("flag", flag, 1, &[9], &[]);
    // A ticket lock (Mellor-Crummey and Scott, 1991) with plain assignments to atomic variables.
    let ticket = "\
static atomic_uint next, serving;
static void lock(int me)
{
    unsigned mine = atomic_fetch_add(&next, 1);
    while (serving != mine)
        ;
}
static void unlock(int me)
{
    serving = serving + 1;
}
";
    check("ticket", ticket, 1, &[10], &[]);
    // An MCS lock (Mellor-Crummey and Scott, 1991): neither linking nor granting needs an order.
    let mcs = "\
struct node { _Atomic(struct node *) next; atomic_int waits; };
static struct node nodes[2];
static _Atomic(struct node *) tail;
static void lock(int me)
{
    struct node *mine = &nodes[me];
    atomic_store(&mine->next, 0);
    atomic_store(&mine->waits, 1);
    struct node *before = atomic_exchange(&tail, mine);
    if (before) {
        atomic_store(&before->next, mine);
        while (atomic_load(&mine->waits))
            ;
    }
}
static void unlock(int me)
{
    struct node *mine = &nodes[me];
    if (!atomic_load(&mine->next)) {
        struct node *expected = mine;
        if (atomic_compare_exchange_strong(&tail, &expected, 0))
            return;
        while (!atomic_load(&mine->next))
            ;
    }
    atomic_store(&atomic_load(&mine->next)->waits, 0);
}
";
    check("mcs", mcs, 1, &[7, 8, 11, 26], &[]);
    // T. Dekker, about 1960: the flag has to be in memory before the other one is loaded, turn and exit do not.
    let dekker = "\
static atomic_int wants[2], turn;
static void lock(int me)
{
    atomic_store(&wants[me], 1);
    while (atomic_load(&wants[1 - me])) {
        if (atomic_load(&turn) != me) {
            atomic_store(&wants[me], 0);
            while (atomic_load(&turn) != me)
                ;
            atomic_store(&wants[me], 1);
        }
    }
}
static void unlock(int me)
{
    atomic_store(&turn, 1 - me);
    atomic_store(&wants[me], 0);
}
";
    check("dekker", dekker, 2, &[7, 16, 17], &[4, 10]);
}

#[test]
fn fences_and_exchanges() {
    // One of the two is enough, and the fence costs more.
    let both = "\
static atomic_int flag[2], turn;
static void lock(int me)
{
    atomic_exchange(&flag[me], 1);
    atomic_store(&turn, 1 - me);
    atomic_thread_fence(memory_order_seq_cst);
    while (atomic_load(&flag[1 - me]) && atomic_load(&turn) == 1 - me)
        ;
}
static void unlock(int me)
{
    atomic_store_explicit(&flag[me], 0, memory_order_release);
}
";
    let scratch = Scratch::new("c_minimise_both").file("p.c", client(both, 1));
    let record = minimise(&scratch, &[]);
    assert_eq!(lines(&record), (vec![8, 10], vec![]), "{record}");
    let record = minimise(&scratch, &["--cost", "fence=10"]);
    assert_eq!(lines(&record), (vec![8, 9], vec![]), "{record}");
    // The patch is accepted.
    let ran = scratch.run(&["fences", "--minimise", "p.c", "-q", "--diff"]).exits(0);
    assert!(
        ran.stdout.starts_with("safe  p.c: 2 of 3 fences and strong orders in its text can be weaker\n"),
        "{}",
        ran.stdout
    );
    let patch = ran.stdout.split_once('\n').map_or("", |(_, patch)| patch);
    std::fs::write(scratch.path("the.patch"), patch).expect("a file can be written");
    let mut command = std::process::Command::new("patch");
    let applied = command.args(["-p1", "-s", "-i", "the.patch"]).current_dir(scratch.path(".")).status();
    assert!(applied.expect("patch can be started").success(), "{patch}");
    scratch.run(&["check", "-q", "p.c"]).exits(0);
    // Code that is not compiled, or not called, has no say.
    let dead = both.replace("static void unlock", "static void other(void) { atomic_store(&turn, 0); }\n#if 0\natomic_thread_fence(memory_order_seq_cst);\n#endif\nstatic void unlock");
    let scratch = Scratch::new("c_minimise_dead").file("p.c", client(&dead, 1));
    assert_eq!(minimise(&scratch, &[])["weakenings"].as_array().map(Vec::len), Some(3));
}

/// A store that a fence follows in any case need not be strong. What a macro contains is not touched.
#[test]
fn a_store_before_a_fence_in_a_macro() {
    let text = "\
static atomic_int x, y;
static int r0, r1;
#define FENCE() atomic_thread_fence(memory_order_seq_cst)
static void *first(void *u) { atomic_store(&x, 1); FENCE(); r0 = y; return u; }
static void *second(void *u) { atomic_store(&y, 1); r1 = x; return u; }
";
    let program = format!("{HEAD}{text}{}", MAIN.replace("END", "assert(r0 || r1);"));
    let line = |start: &str| {
        let index = program.lines().position(|line| line.starts_with(start));
        index.map(|index| index as u64 + 1).expect("the program has this line")
    };
    let expected = (vec![line("static void *first")], vec![line("static void *second")]);
    let scratch = Scratch::new("c_minimise_macro").file("p.c", &program);
    let record = minimise(&scratch, &[]);
    assert_eq!(lines(&record), expected, "{record}");
}

#[test]
fn programs_that_are_wrong() {
    let racy = client("static void lock(int me) { }\nstatic void unlock(int me) { }\n", 1);
    let scratch = Scratch::new("c_minimise_wrong").file("p.c", &racy).file("p.pal", "process P { skip; }");
    let ran = scratch.run(&["fences", "--minimise", "p.c", "-q"]).exits(1);
    assert!(
        ran.stdout.starts_with("unsafe  p.c: it is wrong to begin with, so fix that first: "),
        "{}",
        ran.stdout
    );
    let ran = scratch.run(&["fences", "--minimise", "p.pal"]).exits(2);
    assert!(ran.stderr.contains("--minimise is for C programs"), "{}", ran.stderr);
}

/// Two threads that store and then load, with more strong orders than they need.
fn random_program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut thread = |name: &str, mine: &str, other: &str, result: &str| {
        let mut body = Vec::new();
        if random.percent(25) {
            body.push(format!("atomic_store(&{}, 1);", random.pick(&["p", "q"])));
        }
        body.push(match random.below(3) {
            0 => format!("atomic_exchange(&{mine}, 1);"),
            1 => format!("atomic_store_explicit(&{mine}, 1, memory_order_release);"),
            _ => format!("atomic_store(&{mine}, 1);"),
        });
        if random.percent(30) {
            body.push(format!("{} = 2;", random.pick(&["p", "q"])));
        }
        if random.percent(50) {
            body.push("atomic_thread_fence(memory_order_seq_cst);".to_owned());
        }
        body.push(format!("{result} = atomic_load_explicit(&{other}, memory_order_acquire);"));
        format!(
            "static void *{name}(void *nothing)\n{{\n    {}\n    return nothing;\n}}\n",
            body.join("\n    ")
        )
    };
    let (first, second) = (thread("first", "x", "y", "r1"), thread("second", "y", "x", "r2"));
    let main = MAIN.replace("END", "assert(r1 == 1 || r2 == 1);\n    assert(p != 3 && q != 3);");
    format!("{HEAD}static atomic_int x, y, p, q;\nstatic int r1, r2;\n{first}{second}{main}")
}

#[test]
fn differential_with_every_subset() {
    let (mut compared, mut several) = (0, 0);
    let seeds = seeds(5);
    for seed in &seeds {
        let model = if seed % 2 == 0 { "tso" } else { "pso" };
        let text = random_program(seed);
        let scratch = Scratch::new(&format!("c_minimise_random_{seed}")).file("p.c", &text);
        let record = minimise(&scratch, &["--model", model]);
        let is_right = |file: &str| {
            let ran = scratch.run(&["check", "-q", "--no-leaks", "--model", model, file]);
            assert!(ran.stdout.starts_with("safe") || ran.stdout.starts_with("unsafe"), "{}", ran.stdout);
            ran.stdout.starts_with("safe")
        };
        if record["verdict"] != "safe" {
            assert!(!is_right("p.c"), "seed {seed}: {record}\n{text}");
            continue;
        }
        let all = record["weakenings"].as_array().expect("a list");
        if all.len() > 4 {
            continue;
        }
        let mut best = 0;
        for subset in 0u32..1 << all.len() {
            let chosen: Vec<&Value> = all
                .iter()
                .enumerate()
                .filter(|(index, _)| subset >> index & 1 == 1)
                .map(|(_, one)| one)
                .collect();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for one in &chosen {
                let line = &mut lines[one["line"].as_u64().expect("a line") as usize - 1];
                let becomes = one["becomes"].as_str().expect("a text");
                *line = line.replace(one["text"].as_str().expect("a text"), becomes);
            }
            std::fs::write(scratch.path("q.c"), lines.join("\n") + "\n").expect("a file can be written");
            let right = is_right("q.c");
            let cost: u64 = chosen.iter().map(|one| one["cost"].as_u64().expect("a cost")).sum();
            if right {
                best = best.max(cost);
            }
            if let [one] = chosen.as_slice() {
                assert_eq!(one["alone"] == "unnecessary", right, "seed {seed}: {one}\n{text}");
            }
            if all.iter().all(|one| (one["together"] == true) == chosen.contains(&one)) {
                assert!(right, "seed {seed}: {record}\n{text}");
            }
        }
        assert_eq!(record["saves"].as_u64(), Some(best), "seed {seed}: {record}\n{text}");
        compared += 1;
        several += u64::from(all.len() > 2);
    }
    assert!(!seeds.suffice() || compared > 1 && several > 0, "{compared} {several}");
}
