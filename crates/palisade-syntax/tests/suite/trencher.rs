//! The translation of Trencher's files into `.pal`.

use crate::blocks;
use crate::languages::{self, lines};

use palisade_memory::{Machine, Model};
use palisade_program::print::print;
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, Parsed};
use std::collections::HashSet;

fn parsed(text: &str) -> Parsed {
    languages::parsed(Language::Trencher, text)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    languages::check_translation(Language::Trencher, text, expected);
}

/// The first line of the translation: the memory.
fn memory(text: &str) -> String {
    lines(&print(&parsed(text).program)).remove(0)
}

/// One thread with these transitions, from `a` on.
fn thread(transitions: &[&str]) -> String {
    let lines: String = transitions.iter().map(|line| format!("transition {line}\n")).collect();
    format!("thread t\ninitial a\n{lines}end\n")
}

fn warnings(text: &str) -> Vec<&'static str> {
    parsed(text).warnings.iter().map(|warning| warning.id).collect()
}

#[test]
fn registers_that_are_never_set_are_0_and_unreachable_states_are_left_out() {
    let text = thread(&["a b write x 0", "b c check == y 0", "d a write 7 1", "e e lock"]);
    check(
        &text,
        "shared mem[2];

         process t {
             let x = 0;
             let y = 0;
         a:  mem[0] = x;
         b:  assume(y == 0);
         c:  return;
         }",
    );
    assert_eq!(
        warnings(&text),
        ["unknown-register", "unknown-register", "unreachable-state", "unreachable-state"]
    );
}

#[test]
fn states_become_labels() {
    check(
        "# Two threads.
         thread lock-free
         initial q0
         transition q0 q1 write 1 0
         transition q1 q2 read r 1   # the other one
         transition q2 q0 check == r 0
         transition q2 q3 check == r 1
         transition q2 q4 check > r 1
         transition q3 q4 mfence
         transition q4 q5 noop
         end
         thread second
         initial s
         transition s t local x - + 1 * 2 3 & x 1
         transition t s check ! x
         transition t u check x
         transition u v check && != x 0 || < x 5 >= x 6
         end",
        "shared mem[2];
         process lock_free {
         let r = 0;
         q0: mem[0] = 1;
         q1: r = mem[1];
         q2: choose {
         assume(r == 0);
         goto q0;
         } or {
         assume(r == 1);
         } or {
         assume(r > 1);
         goto q4;
         }
         q3: fence;
         q4: skip;
         q5: return;
         }
         process second {
         let x = 0;
         s: x = 1 + 2 * 3 - (x & 1);
         t: if !x {
         goto s;
         }
         u: assume(x != 0 && (x < 5 || x >= 6));
         v: return;
         }",
    );
}

#[test]
fn the_initial_state_comes_first() {
    check(
        &thread(&["b c noop", "a b mfence", "c a noop"]),
        "process t {
         a: fence;
         b: skip;
         c: skip;
         goto a;
         }",
    );
}

#[test]
fn opposite_checks_become_a_condition() {
    let check = |first: &str, second: &str, expected: &str| {
        let text = thread(&["a b local r 1", &format!("b a check {first}"), &format!("b c check {second}")]);
        let printed = print(&parsed(&text).program);
        let line = lines(&printed).into_iter().find(|line| line.starts_with("b:")).unwrap();
        assert_eq!(line, expected, "{first}, {second}");
    };
    check("== r 1", "!= r 1", "b: if r == 1 {");
    check("!= r 1", "== r 1", "b: if r != 1 {");
    check("< r 1", ">= r 1", "b: if r < 1 {");
    check("> r 1", "<= r 1", "b: if r > 1 {");
    check("r", "! r", "b: if r {");
    check("! r", "r", "b: if !r {");
    check("== r 1", "== r 2", "b: choose {");
    check("== r 1", "!= r 2", "b: choose {");
    check("< r 1", "> r 1", "b: choose {");
}

#[test]
fn locked_parts_become_atomic_blocks() {
    check(
        &thread(&["a b lock", "b c read r 0", "c d write + r 1 0", "d e unlock", "e a noop"]),
        "shared mem[1];
         process t {
         let r = 0;
         a: atomic {
         b: r = mem[0];
         c: mem[0] = r + 1;
         d: skip;
         }
         e: skip;
         goto a;
         }",
    );
    // Several exits.
    check(
        &thread(&[
            "a b lock",
            "b c read r 0",
            "c d check == r 0",
            "c f check != r 0",
            "d e unlock",
            "f a unlock",
        ]),
        "shared mem[1];
         process t {
         let r = 0;
         a: atomic {
         b: r = mem[0];
         c: if r != 0 {
         goto f;
         }
         d: goto e;
         f: goto a;
         }
         e: return;
         }",
    );
    // Several entries, and a state that is entered with and without the lock.
    check(
        &thread(&[
            "a c lock",
            "a b noop",
            "b c lock",
            "b c mfence",
            "c d noop",
            "d a unlock",
            "d e noop",
            "e a noop",
        ]),
        "process t {
         a: choose {
         goto lock_c;
         } or {
         skip;
         }
         b: choose {
         goto lock_c;
         } or {
         fence;
         }
         c: skip;
         d: choose {
         assume(false);
         } or {
         skip;
         }
         e: skip;
         goto a;
         lock_c:
         atomic {
         c_locked: skip;
         goto d_locked;
         a_locked:
         choose {
         assume(false);
         } or {
         skip;
         }
         b_locked:
         choose {
         assume(false);
         } or {
         fence;
         goto c_locked;
         }
         d_locked:
         choose {
         goto a;
         } or {
         skip;
         }
         e_locked: skip;
         goto a_locked;
         }
         }",
    );
}

#[test]
fn locks_that_are_never_released_are_reported() {
    assert_eq!(warnings(&thread(&["a b lock", "b c unlock"])), [""; 0]);
    assert_eq!(warnings(&thread(&["a b lock", "b c noop"])), ["lock-never-released"]);
    assert_eq!(warnings(&thread(&["a b lock", "b a noop", "b c unlock"])), ["nested-lock"]);
    // A final state after a second lock is never reached.
    assert_eq!(
        warnings("thread t initial a final c transition a b lock transition b c lock end"),
        ["nested-lock"]
    );
    assert_eq!(warnings(&thread(&["a b lock", "b c unlock", "a b noop"])), ["unlock-without-lock"]);
}

#[test]
fn memory_is_as_large_as_it_needs_to_be() {
    let check = |transitions: &[&str], expected: &str| {
        assert_eq!(memory(&thread(transitions)), expected, "{transitions:?}");
    };
    check(&["a b noop"], "process t {");
    check(&["a b write 1 0"], "shared mem[1];");
    check(&["a b write 1 7", "b c read r 3"], "shared mem[8];");
    check(&["a b local r 4", "b c write 1 r"], "shared mem[5];");
    check(&["a b local r 4", "b c local r 2", "c d write 1 r"], "shared mem[3];");
    check(&["a b local r 4", "b c write 1 + 1 * 2 r"], "shared mem[10];");
    // Pointers in memory.
    check(&["a b write 5 0", "b c read r 0", "c d write 1 r"], "shared mem[6];");
    // A loop that ends.
    check(&["a b local i 1", "b c check <= i 5", "c d write i i", "d b local i + i 1"], "shared mem[6];");
    // Only the lowest bits are used.
    check(&["a b read r 0", "b c write + r 1 0", "c a write 7 & r 3"], "shared mem[4];");
    // Unreachable code needs memory for constants only.
    check(&["a b local r 1", "b c check == r 2", "c d write 1 99", "b d write 1 r"], "shared mem[100];");
    check(&["a b local r 1", "b c check == r 2", "c d write 1 + r 97", "b d write 1 r"], "shared mem[2];");
}

#[test]
fn negative_addresses_are_shifted() {
    check(
        &thread(&["a b write 1 -2", "b c read r 1", "c d local r - r 2", "d e write 1 r"]),
        "shared mem[4];
         process t {
         let r = 0;
         a: mem[0] = 1;
         b: r = mem[3];
         c: r = r - 2;
         d: mem[r + 2] = 1;
         e: return;
         }",
    );
}

#[test]
fn unbounded_addresses_are_reported() {
    let counter = ["a b write r r", "b a local r + r 1"];
    assert_eq!(warnings(&thread(&counter)), ["unbounded-address"]);
    assert_eq!(memory(&thread(&counter)), "shared mem[64];");
    let sized = format!("memory_size 7\n{}", thread(&counter));
    assert_eq!(warnings(&sized), [""; 0]);
    assert_eq!(memory(&sized), "shared mem[7];");
    let small = format!("memory_size 2\n{}", thread(&["a b local r 2", "b c write 1 r"]));
    assert_eq!(warnings(&small), ["address-outside-memory"]);
}

#[test]
fn final_states_become_a_property() {
    let text = "thread t initial a final b transition a b noop end thread u initial a transition a a noop end \
                thread v initial a transition a b lock transition b c unlock final b end";
    let printed = print(&parsed(text).program);
    assert_eq!(lines(&printed).last().map(String::as_str), Some("forbid t@b && v@b;"));
}

#[test]
fn names_are_changed_where_pal_needs_it() {
    check(
        "thread mem initial while transition while q< local mem 1 transition q< q= write mem 0 end
         thread 2nd initial end_ transition end_ q local if 1 transition q r local i:f if end",
        "shared mem[1];
         process mem_2 {
         let mem_3 = 0;
         while_2:
         mem_3 = 1;
         q_: mem[0] = mem_3;
         q__2:
         return;
         }
         process n2nd {
         let if_2 = 0;
         let i_f = 0;
         end_:
         if_2 = 1;
         q: i_f = if_2;
         r: return;
         }",
    );
}

/// Visits every state. Returns whether some run ends with all threads at their ends.
fn ends(text: &str, model: Model) -> bool {
    let program = parsed(text).program;
    let system = lower(&program, Instantiation { any: 1, every: None });
    let machine = Machine::new(&system, model);
    let mut seen = HashSet::new();
    let mut waiting: Vec<_> = machine.initial_states().collect();
    let mut found = false;
    while let Some(state) = waiting.pop() {
        if seen.insert(state.clone()) {
            found |= state.threads.iter().all(|thread| thread.has_ended(&system));
            waiting.extend(machine.successors(&state).into_iter().map(|successor| successor.state));
        }
    }
    found
}

#[test]
fn buffers_and_locks_behave_as_specified() {
    let dekker = |middle: &str| {
        format!(
            "thread s initial a transition a b write 1 0 transition b c {middle} transition c d read r 1 \
             transition d e check == r 0 end \
             thread t initial a transition a b write 1 1 transition b c {middle} transition c d read r 0 \
             transition d e check == r 0 end"
        )
    };
    assert!(!ends(&dekker("noop"), Model::Sc));
    assert!(ends(&dekker("noop"), Model::Tso));
    assert!(!ends(&dekker("mfence"), Model::Tso));
    // Two increments. With the lock, no other thread runs in between.
    let increment = |lock: &str, unlock: &str| {
        let one = |name: &str| {
            format!(
                "thread {name} initial a transition a b {lock} transition b c read r 0 transition c d write + r 1 0 \
                 transition d e {unlock} transition e f write 1 {name} end "
            )
        };
        let watcher = "thread w initial a transition a b read r 1 transition b c read s 2 transition c d check && r s \
                       transition d e read v 0 transition e f check == v 1 end";
        format!("{}{}{watcher}", one("1"), one("2"))
    };
    assert!(ends(&increment("noop", "noop"), Model::Sc));
    assert!(!ends(&increment("lock", "unlock"), Model::Sc));
    assert!(!ends(&increment("lock", "unlock"), Model::Tso));
    // A lock that is taken twice is never released.
    assert!(!ends(&thread(&["a b lock", "b c lock", "c d unlock"]), Model::Tso));
    assert!(!ends(&thread(&["a b lock", "b c noop"]), Model::Tso));
    assert!(ends(&thread(&["a b lock", "b c unlock"]), Model::Tso));
}

#[test]
fn the_reference_shows_the_translation_of_files() {
    let examples = blocks::examples(include_str!("../../../../docs/trencher.md"), "trencher");
    assert!(examples.len() >= 3);
    for (file, program) in examples {
        assert_eq!(print(&parsed(&file).program), program, "{file}");
        assert!(parsed(&file).warnings.is_empty(), "{file}");
    }
}
