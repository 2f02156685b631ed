//! The names that `.pal` can express. Words that are not keywords are written as they are. Other names, such as
//! `lock.next`, are written between backquotes.

use crate::written::Name;
use std::fmt;

/// The words that cannot be names. The last ones belong to other languages. They are reserved so that the
/// parser can explain them.
pub const RESERVED: &[&str] = &[
    "const",
    "shared",
    "private",
    "process",
    "proc",
    "forbid",
    "final",
    "enum",
    "bool",
    "int",
    "blocking",
    "let",
    "skip",
    "fence",
    "sfence",
    "assume",
    "await",
    "assert",
    "if",
    "else",
    "while",
    "loop",
    "break",
    "continue",
    "goto",
    "choose",
    "or",
    "atomic",
    "return",
    "spawn",
    "true",
    "false",
    "any",
    "cas",
    "xchg",
    "fetch_add",
    "fetch_sub",
    "fetch_and",
    "fetch_or",
    "fetch_xor",
    "for",
    "do",
    "switch",
    "null",
    "NULL",
    "mfence",
    "lfence",
];

/// Whether the text is a name in `.pal`.
pub fn is_legal_name(text: &str) -> bool {
    let starts = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    starts && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !RESERVED.contains(&text)
}

/// Whether the text can be a name between backquotes.
pub fn is_quotable_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c == '`' || c.is_control())
}

/// A name as it is written in `.pal`.
pub(super) struct Quoted<'p>(pub &'p Name);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_legal_name(self.0.as_str()) { write!(f, "{}", self.0) } else { write!(f, "`{}`", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_that_are_not_keywords() {
        let check = |text: &str, legal| assert_eq!(is_legal_name(text), legal, "{text:?}");
        check("x", true);
        check("_x1", true);
        check("count", true);
        check("", false);
        check("1x", false);
        check("a.b", false);
        check("é", false);
        check("fence", false);
    }
}
