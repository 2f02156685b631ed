//! What is left when a C program ends: leaks, and threads that still run.

use crate::common::Scratch;
use palisade_conformance::c::leaks;
use palisade_conformance::seeds;
use serde_json::Value;
use std::collections::BTreeMap;

/// The warnings of an answer with an id: line and message.
fn warnings(record: &Value, id: &str) -> Vec<(u64, String)> {
    let all = record["diagnostics"].as_array().cloned().unwrap_or_default();
    let text = |warning: &Value, key: &str| warning[key].as_str().unwrap_or_default().to_owned();
    let found = all.iter().filter(|warning| warning["id"] == id);
    found.map(|warning| (warning["line"].as_u64().unwrap_or(0), text(warning, "message"))).collect()
}

/// Checks a program, which must be safe, and returns the answer.
fn safe(scratch: &Scratch, file: &str, model: &str) -> Value {
    let ran = scratch.run(&["check", file, "--model", model, "--format", "json"]);
    let record: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(record["verdict"], "safe", "{file} under {model}: {}{}", ran.stdout, ran.stderr);
    record
}

/// Random programs leak what a brute-force judge says they leak, in all runs or in some.
#[test]
fn leaks_are_those_of_the_judge() {
    let scratch = Scratch::new("c_leaks_random");
    for seed in seeds(30) {
        let test = leaks::generate(seed);
        let file = format!("{seed}.c");
        std::fs::write(scratch.path(&file), test.text()).expect("a file can be written");
        let model = ["sc", "tso", "pso"][(seed % 3) as usize];
        let record = safe(&scratch, &file, model);
        let of = |(line, message): (u64, String)| (line, message.contains("leaked in all runs that end"));
        let found: BTreeMap<u64, bool> = warnings(&record, "leak").into_iter().map(of).collect();
        assert_eq!(found, test.leaks(), "seed {seed} under {model}:\n{}", test.text());
    }
}

#[test]
fn what_counts_as_a_leak() {
    let scratch = Scratch::new("c_leaks");
    let check = |name: &str, code: &str, lines: &[u64]| {
        let text = format!(
            "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdint.h>\n#include <stdlib.h>\n\
             struct node {{ struct node *next; int value; }};\nstatic struct node *g;\n{code}\n"
        );
        std::fs::write(scratch.path(name), text).expect("a file can be written");
        let found: Vec<u64> =
            warnings(&safe(&scratch, name, "tso"), "leak").into_iter().map(|(line, _)| line).collect();
        assert_eq!(found, lines, "{name}");
    };
    check("local.c", "int main(void) {\n    int *p = malloc(4); *p = 1;\n    return 0;\n}", &[8]);
    check("exit.c", "int main(void) {\n    int *p = malloc(4); *p = 1;\n    exit(0);\n}", &[8]);
    check(
        "never_written.c",
        "int main(void) {\n    struct node *p = malloc(sizeof *p); (void)p;\n    return 0;\n}",
        &[8],
    );
    check(
        "freed.c",
        "int main(void) {\n    int *p = malloc(4); *p = 1;\n    free(p);\n    return 0;\n}",
        &[],
    );
    check("kept.c", "int main(void) {\n    g = malloc(sizeof *g);\n    return 0;\n}", &[]);
    let list = "int main(void) {\n    for (int i = 0; i < 2; i++) {\n        struct node *n = malloc(sizeof *n);\n        \
                n->next = g; g = n;\n    }\n    DROP\n    return 0;\n}";
    check("list.c", &list.replace("DROP", ""), &[]);
    check("rest.c", &list.replace("DROP", "free(g); g = 0;"), &[9]);
    check("lost.c", &list.replace("DROP", "g = 0;"), &[9]);
    check(
        "all_freed.c",
        &list.replace("DROP", "while (g) { struct node *n = g->next; free(g); g = n; }"),
        &[],
    );
    // Pointers into an object, and with tags, lead to it too.
    check(
        "inside.c",
        "static int *p;\nint main(void) {\n    g = malloc(sizeof *g); p = &g->value; g = 0;\n    return 0;\n}",
        &[],
    );
    check(
        "tagged.c",
        "static uintptr_t p;\nint main(void) {\n    struct node *n = malloc(sizeof *n); p = (uintptr_t)n | 1 | (uintptr_t)5 << 48;\n    return 0;\n}",
        &[],
    );
    // A ring that nothing leads to.
    check(
        "ring.c",
        "int main(void) {\n    struct node *a = malloc(sizeof *a);\n    struct node *b = malloc(sizeof *b);\n    \
         a->next = b; b->next = a;\n    return 0;\n}",
        &[8, 9],
    );
    // In another thread, depending on the schedule.
    let racing = "static _Atomic(struct node *) shared;\nstatic void *work(void *none) {\n    \
                  struct node *n = malloc(sizeof *n), *none_yet = 0;\n    \
                  if (!atomic_compare_exchange_strong(&shared, &none_yet, n)) { LOSER }\n    return none;\n}\n\
                  int main(void) {\n    pthread_t t[2];\n    \
                  for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);\n    \
                  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n    return 0;\n}";
    check("racing.c", &racing.replace("LOSER", "return none;"), &[9]);
    check("racing_freed.c", &racing.replace("LOSER", "free(n);"), &[]);
}

#[test]
fn threads_that_run_on() {
    let scratch = Scratch::new("c_still_running");
    let check = |name: &str, main: &str, expected: Option<&str>| {
        let text = format!(
            "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\nstatic atomic_int x, done;\n\
             static void *work(void *none) {{ x++; done = 1; return none; }}\n\
             static void *start(void *none) {{ pthread_t t; pthread_create(&t, 0, work, 0); return none; }}\n\
             int main(void) {{ pthread_t t;\n{main}\n}}\n"
        );
        std::fs::write(scratch.path(name), text).expect("a file can be written");
        let found: Vec<String> = warnings(&safe(&scratch, name, "tso"), "still-running")
            .into_iter()
            .map(|(_, message)| message)
            .collect();
        assert_eq!(found.first().map(String::as_str), expected, "{name}");
    };
    let create = "pthread_create(&t, 0, work, 0);";
    let running = Some("`main` can return while `work` is still running");
    check("left.c", &format!("{create} return 0;"), running);
    check("joined.c", &format!("{create} pthread_join(t, 0); return 0;"), None);
    check("sometimes.c", &format!("{create} if (x) pthread_join(t, 0); return 0;"), running);
    check("detached.c", &format!("{create} pthread_detach(t); return 0;"), None);
    check("exits.c", &format!("{create} exit(0);"), None);
    check("last.c", &format!("{create} pthread_exit(0);"), None);
    // It has ended when it is seen to be done, except for its last steps.
    check("flag.c", &format!("{create} while (!done) ; return 0;"), running);
    check("nested.c", "pthread_create(&t, 0, start, 0); pthread_join(t, 0); return 0;", running);
}
