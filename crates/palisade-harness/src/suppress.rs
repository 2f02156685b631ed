//! Findings that the user has seen and does not want reported again.
//!
//! There are two ways to silence a finding:
//! - a line `KIND PLACE` in a file of suppressions;
//! - a comment `palisade: allow KIND` in the source, on the line of the finding or alone on the line above.
//!
//! *What a finding's places are.* Both accesses of a race, the three instructions of a violation, the threads of a
//! deadlock or livelock and those that were left at the end, and otherwise where the failure happened. One of them has
//! to match. A place matches by any of the frames with which it is reported.
//!
//! *Guarantee.* A finding that is silenced is counted, with what silenced it. Only findings can be silenced: if
//! something could not be followed, or not to its end, that is always reported.

use crate::findings::{NamedFailure, NamedRace};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// What can be silenced, by the names that reports use.
pub const KINDS: &[&str] = &[
    "race",
    "violation",
    "assertion",
    "crash",
    "exit-code",
    "deadlock",
    "livelock",
    "use-after-free",
    "double-free",
    "invalid-free",
    "heap-overflow",
    "uninitialised-read",
    "stack-use-after-return",
    "thread-local-use-after-end",
    "unlock-not-held",
    "use-after-destroy",
    "destroy-in-use",
    "leaked-threads",
    "early-exit",
];

/// Names in reports that mean that something is not known.
const OPEN: &[&str] = &[
    "blocked",
    "stalled",
    "step-limit",
    "time-limit",
    "no-execution",
    "unsupported",
    "vanished",
    "internal",
    "fork",
    "signal-handler",
    "inline-assembly",
    "access",
    "timed-wait",
    "not-compiled",
    "library-call",
    "code",
    "mapping",
    "memory-file",
    "after-exit",
    "value",
];

/// A line in a file of suppressions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    line: u32,
    text: String,
    kind: &'static str,
    place: Pattern,
}

/// Which places an entry is about.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Pattern {
    Any,
    Function(String),
    File(String, Option<u32>),
}

/// What is wrong with a file of suppressions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Where, in bytes.
    pub range: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// A file of suppressions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Suppressions {
    /// The name of the file.
    pub file: String,
    entries: Vec<Entry>,
}

impl Suppressions {
    /// Reads a file. Returns all that is wrong with it, if anything is.
    pub fn parse(file: &str, text: &str) -> Result<Suppressions, Vec<Malformed>> {
        let (mut entries, mut errors) = (Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let code = without_comment(line).trim();
            if code.is_empty() {
                continue;
            }
            let from = code.as_ptr() as usize - text.as_ptr() as usize;
            let (word, place) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
            let kind = match kind_named(word) {
                Ok(kind) => kind,
                Err((message, help)) => {
                    errors.push(Malformed { range: from..from + word.len(), message, help });
                    continue;
                }
            };
            match pattern(place.trim()) {
                Some(place) => entries.push(Entry {
                    line: u32::try_from(index + 1).unwrap_or(u32::MAX),
                    text: code.to_owned(),
                    kind,
                    place,
                }),
                None => errors.push(Malformed {
                    range: from..from + code.len(),
                    message: format!("`{word}` has no place"),
                    help: "write FILE, FILE:LINE, function:NAME or * after it".to_owned(),
                }),
            }
        }
        if errors.is_empty() { Ok(Suppressions { file: file.to_owned(), entries }) } else { Err(errors) }
    }
}

/// The line without what follows `#`, at its start or after a blank.
fn without_comment(line: &str) -> &str {
    let starts = |&(at, _): &(usize, &str)| at == 0 || line[..at].ends_with(char::is_whitespace);
    line.match_indices('#').find(starts).map_or(line, |(at, _)| &line[..at])
}

/// The kind with this name, or what is wrong and what to do.
fn kind_named(word: &str) -> Result<&'static str, (String, String)> {
    if let Some(kind) = KINDS.iter().find(|kind| **kind == word) {
        return Ok(kind);
    }
    if OPEN.contains(&word) {
        return Err((
            format!("`{word}` cannot be silenced"),
            "it means that something about the program is not known".to_owned(),
        ));
    }
    Err((format!("`{word}` is not a kind of finding"), format!("the kinds are {}", KINDS.join(", "))))
}

fn pattern(text: &str) -> Option<Pattern> {
    if let Some(function) = text.strip_prefix("function:") {
        return (!function.is_empty()).then(|| Pattern::Function(function.to_owned()));
    }
    match text {
        "" => None,
        "*" => Some(Pattern::Any),
        _ => Some(match text.rsplit_once(':') {
            Some((file, line)) if !file.is_empty() && line.parse::<u32>().is_ok() => {
                Pattern::File(file.to_owned(), line.parse().ok())
            }
            _ => Pattern::File(text.to_owned(), None),
        }),
    }
}

/// A frame, by its name: `FILE:LINE:COLUMN in FUNCTION`, or as much of it as is known.
struct Frame<'a> {
    file: Option<(&'a str, u32)>,
    function: Option<&'a str>,
}

impl Frame<'_> {
    fn of(name: &str) -> Frame<'_> {
        let (at, function) = match name.split_once(" in ") {
            Some((at, function)) => (at, Some(function)),
            None => (name, None),
        };
        let number = |text: &str| text.parse::<u32>().ok();
        let file = at.rsplit_once(':').and_then(|(rest, last)| {
            let last = number(last)?;
            match rest.rsplit_once(':').map(|(file, line)| (file, number(line))) {
                Some((file, Some(line))) => Some((file, line)),
                _ => Some((rest, last)),
            }
        });
        Frame { file, function: file.and(function).or(Some(at).filter(|_| file.is_none())) }
    }
}

impl Pattern {
    fn matches(&self, name: &str) -> bool {
        let frame = Frame::of(name);
        match self {
            Pattern::Any => true,
            Pattern::Function(pattern) => frame.function.is_some_and(|function| {
                let bare = function.split_once('(').map_or(function, |(bare, _)| bare);
                matches(pattern, function) || matches(pattern, bare)
            }),
            Pattern::File(pattern, line) => frame.file.is_some_and(|(file, at)| {
                let ends = file.match_indices('/').map(|(slash, _)| &file[slash + 1..]);
                line.is_none_or(|line| line == at)
                    && std::iter::once(file).chain(ends).any(|end| matches(pattern, end))
            }),
        }
    }
}

/// Whether a text is like a pattern, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    // Without a star, there is nothing after the first part.
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        // The earliest occurrence leaves the most for the others.
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// What has silenced a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SilencedBy {
    /// A line in the file of suppressions.
    Entry {
        /// The file.
        file: String,
        /// The line.
        line: u32,
    },
    /// A comment in the source.
    Comment {
        /// The file.
        file: String,
        /// The line of the comment.
        line: u32,
    },
}

impl SilencedBy {
    /// Where it is: `FILE:LINE`.
    pub fn place(&self) -> String {
        let (SilencedBy::Entry { file, line } | SilencedBy::Comment { file, line }) = self;
        format!("{file}:{line}")
    }
}

/// A line in a file of suppressions that has silenced nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unused {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// Its text.
    pub text: String,
}

/// A comment with a kind that does not exist.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UnknownKind {
    /// The source file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

/// How a source file is read, given its name in the program's debugging information.
pub type ReadSource = fn(&str) -> Option<String>;

/// Decides which findings are silenced.
#[derive(Debug)]
pub struct Silencer {
    suppressions: Arc<Suppressions>,
    used: Vec<bool>,
    read: ReadSource,
    /// By source file, the comments in it.
    comments: FxHashMap<String, Comments>,
    unknown: Vec<UnknownKind>,
}

/// By the line to which it applies, the kinds that a comment allows, and the line of the comment.
type Comments = FxHashMap<u32, Vec<(&'static str, u32)>>;

impl Silencer {
    /// Silences what a file of suppressions lists, and what comments in sources allow.
    pub fn new(suppressions: Arc<Suppressions>, read: ReadSource) -> Silencer {
        let used = vec![false; suppressions.entries.len()];
        Silencer { suppressions, used, read, comments: FxHashMap::default(), unknown: Vec::new() }
    }

    /// Entries that have silenced nothing.
    pub fn unused(&self) -> Vec<Unused> {
        let entries = self.suppressions.entries.iter().zip(&self.used).filter(|(_, used)| !**used);
        let file = &self.suppressions.file;
        entries
            .map(|(entry, _)| Unused { file: file.clone(), line: entry.line, text: entry.text.clone() })
            .collect()
    }

    /// Comments with unknown kinds in the source files that were read.
    pub fn unknown_kinds(&self) -> &[UnknownKind] {
        &self.unknown
    }

    /// What silences a race. `frames` returns all names of the frames of a place.
    pub(crate) fn race(
        &mut self,
        race: &NamedRace,
        frames: impl Fn(&str) -> Vec<String>,
    ) -> Option<SilencedBy> {
        let names = [&race.first.0, &race.second.0].into_iter().flat_map(|name| frames(name)).collect();
        self.silenced("race", names)
    }

    /// What silences a violation, given the names of its instructions.
    pub(crate) fn violation(
        &mut self,
        names: [&str; 3],
        frames: impl Fn(&str) -> Vec<String>,
    ) -> Option<SilencedBy> {
        self.silenced("violation", names.into_iter().flat_map(frames).collect())
    }

    /// What silences a failure.
    pub(crate) fn failure(
        &mut self,
        failure: &NamedFailure,
        frames: impl Fn(&str) -> Vec<String>,
    ) -> Option<SilencedBy> {
        if failure.is_inconclusive {
            return None;
        }
        let places = match failure.name {
            "deadlock" | "livelock" | "leaked-threads" => failure.places.len(),
            _ => 1,
        };
        let names = failure.places.iter().take(places).flat_map(|(name, _)| frames(name)).collect();
        self.silenced(failure.name, names)
    }

    fn silenced(&mut self, kind: &'static str, names: Vec<String>) -> Option<SilencedBy> {
        let mut by = None;
        for (index, entry) in self.suppressions.entries.iter().enumerate() {
            let is_about = || match entry.place {
                Pattern::Any => true,
                _ => names.iter().any(|name| entry.place.matches(name)),
            };
            if entry.kind == kind && is_about() {
                // An entry that would silence it alone is of use, too.
                self.used[index] = true;
                let file = self.suppressions.file.clone();
                by.get_or_insert(SilencedBy::Entry { file, line: entry.line });
            }
        }
        by.or_else(|| names.iter().find_map(|name| self.allowed(kind, name)))
    }

    /// The comment that allows a finding of this kind at a place.
    fn allowed(&mut self, kind: &str, name: &str) -> Option<SilencedBy> {
        let (file, line) = Frame::of(name).file?;
        if !self.comments.contains_key(file) {
            let text = (self.read)(file).unwrap_or_default();
            let found = comments(&text, |line, message| {
                self.unknown.push(UnknownKind { file: file.to_owned(), line, message });
            });
            self.comments.insert(file.to_owned(), found);
        }
        let (_, at) = *self.comments.get(file)?.get(&line)?.iter().find(|(allowed, _)| *allowed == kind)?;
        Some(SilencedBy::Comment { file: file.to_owned(), line: at })
    }
}

const ALLOW: &str = "palisade: allow";

/// The comments of a source file. A comment that is alone on its line applies to the next line that is not one, too.
fn comments(text: &str, mut unknown: impl FnMut(u32, String)) -> Comments {
    let mut found: Comments = FxHashMap::default();
    let mut pending: Vec<(&'static str, u32)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut here = Vec::new();
        let mut is_alone = false;
        if let Some((before, kinds)) = allowance(line) {
            is_alone = before.trim().is_empty();
            for word in kinds {
                match kind_named(word) {
                    Ok(kind) => here.push((kind, number)),
                    Err((message, _)) => unknown(number, message),
                }
            }
        }
        pending.extend(here);
        found.insert(number, pending.clone());
        if !is_alone {
            pending.clear();
        }
    }
    found.retain(|_, allowed| !allowed.is_empty());
    found
}

/// What is before a comment that allows something, and the words after `allow`.
fn allowance(line: &str) -> Option<(&str, Vec<&str>)> {
    let at = line.find(ALLOW)?;
    let before = line[..at].trim_end();
    let before = before.strip_suffix("//").or_else(|| before.strip_suffix("/*"))?;
    let rest = &line[at + ALLOW.len()..];
    let rest = rest.split("*/").next().unwrap_or(rest);
    // A reason may follow after a colon or in parentheses.
    let rest = rest.split([':', '(']).next().unwrap_or(rest);
    Some((before, rest.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        let text = "# known\nrace queue.c:41\n\n  race function:push  # again\nuse-after-free *.h\nleaked-threads *\n";
        let parsed = Suppressions::parse("s", text).expect("it is well-formed");
        let entries: Vec<(u32, &str, &Pattern)> =
            parsed.entries.iter().map(|entry| (entry.line, entry.kind, &entry.place)).collect();
        assert_eq!(
            entries,
            [
                (2, "race", &Pattern::File("queue.c".into(), Some(41))),
                (4, "race", &Pattern::Function("push".into())),
                (5, "use-after-free", &Pattern::File("*.h".into(), None)),
                (6, "leaked-threads", &Pattern::Any),
            ]
        );
    }

    #[test]
    fn all_mistakes_are_reported() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let errors = Suppressions::parse("s", text).expect_err("it is not well-formed");
            let found: Vec<(&str, &str)> =
                errors.iter().map(|error| (&text[error.range.clone()], error.message.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        };
        check(
            "rase a.c\nrace\n",
            &[("rase", "`rase` is not a kind of finding"), ("race", "`race` has no place")],
        );
        check(" step-limit *", &[("step-limit", "`step-limit` cannot be silenced")]);
        check("race function:", &[("race function:", "`race` has no place")]);
    }

    #[test]
    fn patterns() {
        let check = |pattern: &str, name: &str, expected: bool| {
            let pattern = super::pattern(pattern).expect("a pattern");
            assert_eq!(pattern.matches(name), expected, "{pattern:?} {name}");
        };
        check("queue.c:41", "src/queue.c:41:7 in push", true);
        check("queue.c:41", "queue.c:41 in push", true);
        check("queue.c:41", "queue.c:4:41 in push", false);
        check("queue.c", "src/my_queue.c:41:7 in push", false);
        check("src/queue.c", "/home/x/src/queue.c:41:7", true);
        check("src/*", "src/a/queue.c:41:7", true);
        check("*.h", "queue.h:3:1 in pop", true);
        check("*.h", "queue.hpp:3:1 in pop", false);
        check("function:push", "queue.c:41:7 in push", true);
        check("function:push", "queue.c:41:7 in push_all", false);
        check("function:Queue*::push", "q.cpp:1:1 in Queue<int>::push(int)", true);
        check("function:join", "std::thread::join() in libstdc++.so.6", false);
        check("function:*join*", "std::thread::join() in libstdc++.so.6", true);
        check("*", "0x1234", true);
        check("queue.c", "0x1234", false);
    }

    #[test]
    fn stars() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*a", "a", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "ab", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn comments_in_sources() {
        let text = "\
int a; // palisade: allow race
int b;
// palisade: allow race, use-after-free: it is meant
// why
int c;
/* palisade: allow deadlock */
int d;
\"palisade: allow crash\"
int e; // palisade: allow rase
";
        let mut unknown = Vec::new();
        let found = comments(text, |line, message| unknown.push((line, message)));
        let mut lines: Vec<(u32, Vec<(&str, u32)>)> = found.into_iter().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                (1, vec![("race", 1)]),
                (3, vec![("race", 3), ("use-after-free", 3)]),
                (4, vec![("race", 3), ("use-after-free", 3)]),
                (6, vec![("deadlock", 6)]),
                (7, vec![("deadlock", 6)]),
            ]
        );
        assert_eq!(unknown, [(9, "`rase` is not a kind of finding".to_owned())]);
    }
}
