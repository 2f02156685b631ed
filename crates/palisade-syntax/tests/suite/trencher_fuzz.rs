//! For any input, the Trencher parser returns a program or errors that point into the text. A program can be
//! printed and parsed again as `.pal`.

use palisade_base::Source;
use palisade_program::print::print;
use palisade_syntax::{Language, parse};
use proptest::collection::vec;
use proptest::prelude::*;

fn check(text: &str) {
    match parse(Language::Trencher, &Source::new("fuzz.txt", text)) {
        Ok(parsed) => {
            let printed = print(&parsed.program);
            let again = parse(Language::Pal, &Source::new("fuzz.pal", printed.as_str()));
            let again = again.unwrap_or_else(|errors| panic!("{errors:#?}\nin\n{printed}\nfrom\n{text}"));
            assert_eq!(again.program, parsed.program, "{text}\n{printed}");
        }
        Err(errors) => {
            assert!(errors.iter().any(|error| error.is_error()), "{text}");
            for label in errors.iter().flat_map(|error| &error.labels) {
                assert!(text.get(label.span.range()).is_some(), "{label:?} points outside {text:?}");
            }
        }
    }
}

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "thread", "initial", "final", "transition", "end", "memory_size", "t", "u", "a", "b", "c", "write", "read", "mfence", "local",
    "check", "noop", "lock", "unlock", "r", "s", "0", "1", "-1", "5", "64", "9223372036854775807", "==", "!=", "<", "<=", ">",
    ">=", "&&", "||", "+", "-", "*", "&", "!", "#", "\n", "é", "\u{0}", "while", "mem",
];

/// Well-formed instructions.
#[rustfmt::skip]
const INSTRUCTIONS: &[&str] = &[
    "write 1 0", "write r s", "write + r 1 & s 3", "read r 0", "read s r", "read r - s 1", "mfence", "local r 2", "local s + r 1",
    "local r * s -2", "check == r 0", "check != r 0", "check < s r", "check ! && r s", "noop", "lock", "lock", "unlock",
];

proptest! {
    #[test]
    fn any_text(text in "\\PC*") {
        check(&text);
    }

    #[test]
    fn random_words(words in vec(proptest::sample::select(PIECES), 0..60)) {
        let soup = words.join(" ");
        check(&soup);
        check(&format!("thread t initial a {soup}"));
        check(&format!("thread t initial a transition a b local r 1 transition b c {soup} end"));
    }

    #[test]
    fn well_formed_threads(
        transitions in vec((0..5_u8, 0..5_u8, proptest::sample::select(INSTRUCTIONS)), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut text = String::from("thread t\ninitial q0\ntransition q0 q1 local r 1\ntransition q1 q2 local s 1\n");
        text.push_str("transition q2 q3 lock\ntransition q3 q4 unlock\n");
        for (from, to, instruction) in transitions {
            text.push_str(&format!("transition q{from} q{to} {instruction}\n"));
        }
        text.push_str("end\n");
        check(&text);
        // A prefix.
        check(&text[..cut.index(text.len())]);
        // With something missing in the middle.
        let at = cut.index(text.len() - 3);
        check(&format!("{}{}", &text[..at], &text[at + 3..]));
    }
}
