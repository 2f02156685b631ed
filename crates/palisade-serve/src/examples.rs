//! The corpus as examples: by topic, with a line about each.

use palisade::InputLanguage;
use serde_json::{Value, json};

/// The folders of the corpus and what is in them, in the order of the page.
const TOPICS: [(&str, &str); 15] = [
    ("mutex", "Mutual exclusion"),
    ("locks", "Queue locks, ticket locks, parking"),
    ("c", "C programs"),
    ("litmus-x86", "Litmus tests for x86"),
    ("litmus", "Litmus tests, repeated"),
    ("barriers", "Barriers"),
    ("data-structures", "Stacks, producers and consumers"),
    ("protocols", "Protocols"),
    ("progress", "Deadlocks and progress"),
    ("spawning", "Processes started at run time"),
    ("identities", "Any number of processes, with identities"),
    ("recursive", "Recursion"),
    ("figures", "Figures from papers"),
    ("rmm", "Memorax programs"),
    ("trencher", "Trencher programs"),
];

/// A line has at most this many characters.
const LONGEST_LINE: usize = 140;

/// All examples, by topic. C programs are among them if the server reads C.
pub(crate) fn examples(c: bool) -> Vec<Value> {
    let c_texts = if c { palisade_corpus::c_texts() } else { &[] };
    let mut all: Vec<(usize, Value)> = palisade_corpus::texts()
        .iter()
        .chain(c_texts)
        .filter_map(|(path, text)| {
            let language = InputLanguage::from_extension(path.rsplit('.').next()?)?;
            let (folder, name) = path.split_once('/')?;
            let rank = TOPICS.iter().position(|(known, _)| *known == folder)?;
            let example = json!({
                "path": path,
                "name": name,
                "topic": TOPICS[rank].1,
                "about": about(text),
                "language": language.name(),
                "text": text,
            });
            Some((rank, example))
        })
        .collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, example)| example).collect()
}

/// The first sentence of the comment at the top of a program, or what a litmus test says about itself.
fn about(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut words = String::new();
    // A litmus test has its name first.
    let first = lines.next().unwrap_or("");
    let first = if first.starts_with("X86") { lines.next().unwrap_or("") } else { first };
    for line in std::iter::once(first).chain(lines) {
        let bare = line.trim_start_matches(['/', '*', '#', '(', '"']);
        if bare.len() == line.len() && !words.is_empty() && !text.trim_start().starts_with("/*") {
            break;
        }
        let ends = line.ends_with('"') || line.ends_with("*/") || line.ends_with("*)");
        let bare = bare.trim_end_matches(['"', '/', '*', ')']).trim();
        words.push_str(if words.is_empty() { "" } else { " " });
        words.push_str(bare);
        if ends || sentence_end(&words).is_some() {
            break;
        }
    }
    let sentence = sentence_end(&words).map_or(words.as_str(), |end| &words[..end]);
    let sentence = sentence.split(" (").next().unwrap_or(sentence).trim_end_matches(['.', ':', ',']);
    let mut line: String = sentence.chars().take(LONGEST_LINE).collect();
    if line.len() < sentence.len() {
        line.truncate(line.rfind(' ').unwrap_or(line.len()));
        line.push('…');
    }
    line
}

/// Where the first sentence ends: at a full stop that an initial does not have.
fn sentence_end(words: &str) -> Option<usize> {
    words.match_indices(". ").map(|(at, _)| at).find(|&at| {
        let last = words[..at].rsplit([' ', '(']).next().unwrap_or("");
        last.chars().count() > 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::Language;

    #[test]
    fn the_corpus_is_complete_and_every_example_has_a_line() {
        let known = palisade_corpus::texts().iter();
        let known = known.filter(|(path, _)| {
            let extension = path.rsplit('.').next().unwrap_or("");
            InputLanguage::from_extension(extension).is_some_and(|language| language != InputLanguage::Rust)
        });
        let all = examples(false);
        assert_eq!(all.len(), known.count(), "every folder of the corpus has a topic");
        for language in Language::ALL {
            assert!(all.iter().any(|example| example["language"] == language.name()), "{}", language.name());
        }
        let with_c = examples(true);
        assert!(with_c.len() > all.len());
        for example in &with_c {
            let path = example["path"].as_str().expect("a path");
            assert!(!path.starts_with('/') && !path.contains('\\'), "{path}");
            let about = example["about"].as_str().expect("a line");
            assert!(about.len() > 12 && about.chars().count() <= LONGEST_LINE + 1, "{path}: {about:?}");
            assert!(!about.contains(['*', '/', '"']) || about.contains(" and/"), "{path}: {about:?}");
            assert!(about.starts_with(|c: char| c.is_alphanumeric()), "{path}: {about:?}");
        }
    }

    #[test]
    fn lines() {
        for (text, expected) in [
            ("// Peterson's lock (G. L. Peterson,\n// 1981). Safe.\nshared x;", "Peterson's lock"),
            ("// A lock by W. Lamport. Two threads.\n", "A lock by W. Lamport"),
            ("/* One.\n   Two. */\n", "One"),
            ("/* A lock\n   in two lines. More. */\nx", "A lock in two lines"),
            ("X86 sb\n\"Store buffering\"\n{}", "Store buffering"),
            ("# Two threads: one waits.\nthread a", "Two threads: one waits"),
        ] {
            assert_eq!(about(text), expected, "{text}");
        }
    }
}
