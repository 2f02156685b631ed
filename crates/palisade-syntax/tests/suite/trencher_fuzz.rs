//! For any input, the Trencher parser returns a program or errors that point into the text. A program can be
//! printed and parsed again as `.pal`.

use crate::languages;

use palisade_syntax::Language;
use proptest::collection::vec;
use proptest::prelude::*;

fn check(text: &str) {
    languages::check_any_text(Language::Trencher, text);
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
