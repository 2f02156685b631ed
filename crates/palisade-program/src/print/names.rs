//! Which names `.pal` can express. Languages with richer names rename on the way in.

/// The words that cannot be names. The last ones belong to other languages and are reserved to be explained.
pub const RESERVED: &[&str] = &[
    "const",
    "shared",
    "process",
    "proc",
    "forbid",
    "final",
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

/// A legal name that looks like the text. Different texts may get the same name: the caller keeps them apart.
pub fn legal_name(text: &str) -> String {
    let mut name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    if RESERVED.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_gets_a_legal_name() {
        let check = |text: &str, expected: &str| {
            assert_eq!(legal_name(text), expected);
            assert!(is_legal_name(expected), "{expected}");
            assert_eq!(is_legal_name(text), text == expected, "{text}");
        };
        check("x", "x");
        check("_x1", "_x1");
        check("1:EAX", "_1_EAX");
        check("", "_");
        check("fence", "fence_");
        check("é.ü", "___");
    }
}
