//! An exported file declares exactly the helpers and variables that it uses.

use crate::common::{Subject, WRAPPING, corpus};
use palisade_conformance::{Profile, generate, seeds};
use palisade_export::Target;

/// A text without its comments.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |code, part| code + part.split_once("*/").map_or("", |(_, rest)| rest))
}

/// How often a word occurs in a text.
fn count(text: &str, word: &str) -> usize {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|other| *other == word).count()
}

/// Checks that a name is declared exactly if it is used, given its declaration and how often that mentions
/// it.
#[track_caller]
fn check_helper(what: &str, code: &str, name: &str, declaration: &str, mentions: usize) {
    let declared = code.contains(declaration);
    let used = count(code, name) > if declared { mentions } else { 0 };
    assert_eq!(declared, used, "{what}: whether `{name}` is declared and whether it is used\n{code}");
}

const GUARDS: [&str; 5] = ["can_add", "can_sub", "can_mul", "can_div", "can_shl"];

#[track_caller]
fn check(subject: &Subject) {
    if let Ok(text) = subject.try_export(Target::Promela) {
        let code = without_comments(&text);
        let what = format!("{} in Promela", subject.name);
        GUARDS.iter().for_each(|name| check_helper(&what, &code, name, &format!("#define {name}("), 1));
        check_helper(&what, &code, "wrap", "#define wrap(", 1);
        check_helper(&what, &code, "STACK", "#define STACK", 2);
        check_helper(&what, &code, "old_value", "hidden int old_value;", 1);
        check_helper(&what, &code, "old_values", "hidden int old_values[", 1);
    }
    let text = subject.export(Target::C);
    // The run-time part is the same in all files.
    let (_, code) = text.split_once("    return loaded;\n}\n").expect("the run-time part comes first");
    let code = without_comments(code);
    let what = format!("{} in C", subject.name);
    GUARDS.iter().for_each(|name| check_helper(&what, &code, name, &format!("static int {name}("), 1));
    check_helper(&what, &code, "wrap", "static value wrap(", 1);
    check_helper(&what, &code, "old_value", "static value old_value;", 1);
    let variables = code.lines().filter_map(|line| {
        let rest = line.strip_prefix("static value ").or(line.strip_prefix("static _Thread_local value "))?;
        rest.contains(';').then(|| rest.split(['[', ' ', ';']).next())?.filter(|_| !rest.contains('('))
    });
    // The array of all cells also has the cells of variables that are not used.
    for name in variables.filter(|name| *name != "memory") {
        assert!(count(&code, name) > 1, "{what}: `{name}` is declared and not used\n{code}");
    }
}

#[test]
fn the_corpus() {
    corpus().iter().for_each(check);
}

#[test]
fn values_that_wrap_around() {
    WRAPPING.iter().for_each(|text| check(&Subject::read("wrapping.pal", text)));
}

#[test]
fn random_programs() {
    for profile in [Profile::Acyclic, Profile::Cyclic, Profile::Full] {
        for seed in seeds(40).starting_at(1) {
            check(&Subject::generated(&format!("{profile:?} {seed}.pal"), &generate(profile, seed)));
        }
    }
}

/// Regression: the exporter used to search its output for the names of its helpers. A program that used such
/// a name itself then got a declaration that nothing used.
#[test]
fn names_of_the_program_declare_no_helpers() {
    check(&Subject::read("stack.pal", "shared STACK: 0..1; process P { STACK = 1; }"));
    check(&Subject::read("old.pal", "shared old_value: 0..1; process P { let old_values = old_value; }"));
    check(&Subject::read(
        "guard.pal",
        "shared x: 0..9; proc can_add(a: 0..3) { x = a; } process P { can_add(2); }",
    ));
}

/// Regression: a program's own `old_values` used to be declared a second time in Promela. Names of helpers
/// are now reserved.
#[test]
fn names_of_helpers_are_reserved() {
    let recursion = "shared old_values: 0..9; proc f(a: 0..3, b: 0..3) { if a > 0 { f(a - 1, a); } old_values = b; } process P { f(2, 1); }";
    let text = Subject::read("old.pal", recursion).export(Target::Promela);
    assert!(text.contains("hidden int old_values[2];") && text.contains(" old_values_2;"), "{text}");
}

#[test]
fn all_helpers() {
    let arithmetic = "shared x = 1; process P { loop { x = x * 3 + 7 - x; x = x << x; x = x / x; x = -x; } }";
    let text = Subject::read("arithmetic.pal", arithmetic).export(Target::Promela);
    assert!(GUARDS.iter().all(|name| count(&text, name) > 1), "{text}");
    check(&Subject::read("arithmetic.pal", arithmetic));
    let recursion = "shared x: 0..9; proc f(a: 0..3, b: 0..3) { if a > 0 { f(a - 1, a); } x = b; } process P { f(2, 1); }";
    let text = Subject::read("recursion.pal", recursion).export(Target::Promela);
    assert!(text.contains("#define STACK 8") && text.contains("hidden int old_values[2];"), "{text}");
    check(&Subject::read("recursion.pal", recursion));
    let locked = "shared a[3]: 0..2 = [2, 0, 1]; process P { let r: 0..2 = 1; r = xchg(a[r], r); }";
    let text = Subject::read("locked.pal", locked).export(Target::Promela);
    assert!(text.contains("hidden int old_value;"), "{text}");
    check(&Subject::read("locked.pal", locked));
}
