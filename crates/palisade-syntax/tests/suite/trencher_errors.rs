//! The errors of invalid Trencher files, and where they point.

use crate::languages;

use palisade_base::Source;
use palisade_syntax::{Language, parse};

#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    languages::check_errors(Language::Trencher, text, expected);
}

/// The same for the transitions of a thread that starts in `a`.
#[track_caller]
fn check_transitions(transitions: &str, expected: &[(&str, &str)]) {
    check(&format!("thread t\ninitial a\n{transitions}\nend\n"), expected);
}

/// The transitions of a thread that starts in `a` parse with these warnings.
#[track_caller]
fn check_warned(transitions: &str, expected: &[(&str, &str)]) {
    let source = Source::new("test.txt", format!("thread t\ninitial a\n{transitions}\nend\n"));
    let parsed = parse(Language::Trencher, &source).expect("the file parses");
    let found: Vec<(&str, &str)> =
        parsed.warnings.iter().map(|warning| (warning.id, source.slice(warning.span()))).collect();
    assert_eq!(found, expected, "{transitions}\n{:#?}", parsed.warnings);
}

fn help(text: &str) -> String {
    languages::only_help(Language::Trencher, text)
}

#[test]
fn all_errors_at_once() {
    check(
        "thread t\ninitial a\ntransition a b raed r 0\ntransition b c write 1\ntransition c d read r 5x\nend\n\
         thread t\ninitial a\ntransition a b noop\nend\n\
         thread u\ninitial a\ntransition a b read flag 0\ntransition b c check == flga 1\ntransition d e noop\nend\n\
         thraed v\nend\nthread w\nend\n",
        &[
            ("unknown-instruction", "raed"),
            ("missing-operand", "transition"),
            ("bad-number", "5x"),
            ("defined-twice", "t"),
            ("unexpected-word", "thraed"),
            ("no-initial-state", "thread w"),
        ],
    );
}

#[test]
fn files() {
    check("", &[("empty-program", "")]);
    check("# nothing\n", &[("empty-program", "")]);
    check("memory_size 5", &[("empty-program", "")]);
    check("memory_size", &[("unexpected-end", "")]);
    check("memory_size x thread t initial a end", &[("bad-number", "x")]);
    check("memory_size 0 thread t initial a end", &[("bad-number", "0")]);
    check("memory_size 1 memory_size 2 thread t initial a end", &[("defined-twice", "memory_size 2")]);
    check("hello world", &[("unexpected-word", "hello")]);
    check("end", &[("unexpected-word", "end")]);
    check("\u{0}\u{1}", &[("unexpected-word", "\u{0}\u{1}")]);
}

#[test]
fn half_files() {
    check("thread", &[("unexpected-end", "")]);
    check("thread t", &[("no-initial-state", "thread t"), ("unexpected-end", "")]);
    check(
        "thread t initial",
        &[("no-initial-state", "thread t"), ("unexpected-end", ""), ("unexpected-end", "")],
    );
    check("thread t initial a", &[("unexpected-end", "")]);
    check("thread t initial a transition a", &[("unexpected-end", ""), ("unexpected-end", "")]);
    check("thread t initial a transition a b", &[("unexpected-end", ""), ("unexpected-end", "")]);
    check("thread t initial a transition a b write", &[("unexpected-end", ""), ("unexpected-end", "")]);
    check("thread t initial a transition a b write 1 0", &[("unexpected-end", "")]);
    check("thread t initial a thread u initial a end", &[("missing-end", "thread")]);
    check("thread t initial a initial b end", &[("defined-twice", "initial b")]);
}

#[test]
fn transitions() {
    check_transitions("transition a b write 1 0 7", &[("unexpected-word", "7")]);
    check_transitions("transition a b read 1 0", &[("unexpected-word", "1")]);
    check_transitions("transition a b local + 1", &[("unexpected-word", "+")]);
    check_transitions("transition a b local r", &[("missing-operand", "end")]);
    check_transitions("transition a b check == 1", &[("missing-operand", "end")]);
    check_transitions(
        "transition a b write 99999999999999999999 0",
        &[("bad-number", "99999999999999999999")],
    );
    check_transitions("transition a b lokc", &[("unknown-instruction", "lokc")]);
    check_transitions("transiton a b noop", &[("unexpected-word", "transiton")]);
    check_transitions(&format!("transition a b check {} 1", "! ".repeat(1000)), &[("too-large", "!")]);
    check_transitions(&format!("transition a b check {} 1", "+ 1 ".repeat(1000)), &[("too-large", "1")]);
    assert_eq!(help("thread t initial a transition a b mfnece end"), "did you mean `mfence`?");
}

#[test]
fn names() {
    check_transitions("transition a b check ==r 0", &[("unexpected-word", "0")]);
    check_transitions("transition a b check ==r", &[("unknown-register", "==r")]);
    check_warned("transition a b write r 0", &[("unknown-register", "r")]);
    check_warned("transition a b read r x", &[("unknown-register", "x")]);
    check_warned("transition a b noop\ntransition c a noop", &[("unreachable-state", "c")]);
    check_warned("transition a b noop\ntransition c c noop", &[("unreachable-state", "c")]);
    check_warned("transition a b noop\nfinal c", &[("unreachable-state", "c")]);
    let island = "transition a b noop\ntransition c d noop\ntransition d c noop\nfinal c";
    check_warned(island, &[("unreachable-state", "c")]);
    // Unreachable code does no harm: a lock without an unlock, an address outside memory.
    check_warned(
        "transition a b noop\ntransition c d lock\ntransition d d noop",
        &[("unreachable-state", "c")],
    );
    check_warned("transition a b noop\ntransition c d unlock", &[("unreachable-state", "c")]);
    check_warned(
        "transition a b noop\ntransition c d write 1 r",
        &[("unreachable-state", "c"), ("unknown-register", "r")],
    );
    let help = |transitions: &str| {
        let text = format!("thread t initial a {transitions} end");
        let parsed = parse(Language::Trencher, &Source::new("test.txt", text)).expect("the file parses");
        assert_eq!(parsed.warnings.len(), 1, "{:#?}", parsed.warnings);
        parsed.warnings[0].help.clone().unwrap_or_default()
    };
    assert_eq!(help("transition a b read turn 0 transition b c check == trun 0"), "did you mean `turn`?");
    assert_eq!(help("transition a q1_1 noop transition q1_l c noop"), "did you mean `q1_1`?");
}

#[test]
fn operators_are_not_registers() {
    assert_eq!(
        help("thread t initial a transition a b local r 1 transition b c check r=1 end"),
        "write the operator first, and separate everything with spaces: `== r 1`"
    );
}

#[test]
fn locks_and_addresses() {
    check_transitions("transition a b unlock", &[("unlock-without-lock", "transition a b unlock")]);
    check_transitions("transition a b write 1 70000", &[("address-too-large", "70000")]);
    check(
        "memory_size 2 thread t initial a transition a b write 1 2 end",
        &[("address-outside-memory", "2")],
    );
    check_transitions("transition a b write 1 -70000", &[("address-too-large", "-70000")]);
    check_transitions("transition a b local r 70000\ntransition b c read r r", &[("address-too-large", "r")]);
}
