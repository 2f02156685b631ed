//! The assembly of a file, split into lines: instructions, the functions that contain them, and whether these come from a
//! library.

use super::Audit;
use crate::asm;
use crate::symbols::is_library;
use rustc_hash::{FxHashMap, FxHashSet};

/// A line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    /// The instruction without labels and comments, if the compiler generated it.
    pub(super) code: Option<&'a str>,
    /// The function that contains it.
    pub(super) function: Option<usize>,
    /// Whether it is the first instruction of its function.
    pub(super) begins: bool,
    /// The function that ends before it.
    pub(super) ends: Option<usize>,
}

impl<'a> Audit<'a> {
    /// Reads a compiler's assembly (AT&T syntax, x86-64).
    pub fn of(text: &'a str) -> Audit<'a> {
        let mut lines = Vec::new();
        let mut functions = 0;
        let mut inside = false;
        // The functions that begin at their labels, the name of the current function, and whether its first
        // instruction is still to come.
        let mut declared: FxHashSet<&str> = FxHashSet::default();
        let mut current: Option<(&str, usize)> = None;
        let mut is_new = false;
        // Numbers of source files that belong to libraries, whether the current line is in one of them, and which
        // functions are.
        let mut files: FxHashSet<&str> = FxHashSet::default();
        let mut in_library = false;
        let mut library: FxHashMap<usize, bool> = FxHashMap::default();
        for text in text.lines() {
            let function = current.map(|(_, index)| index);
            let mut line = Line { text, code: None, function, begins: false, ends: None };
            match text.trim() {
                "#APP" => inside = true,
                "#NO_APP" => inside = false,
                _ if inside => {}
                trimmed => {
                    let mut rest = without_comment(trimmed);
                    while let Some((label, after)) = asm::label(rest) {
                        if current.is_none() && declared.contains(label) {
                            current = Some((label, functions));
                            line.function = Some(functions);
                            functions += 1;
                            is_new = true;
                            in_library = false;
                        }
                        rest = after;
                    }
                    let (word, after) = asm::split(rest);
                    let name = after.split(',').next().unwrap_or("").trim();
                    match word {
                        "" => {}
                        ".type" if after.ends_with("@function") => _ = declared.insert(name),
                        ".size" if current.is_some_and(|(current, _)| current == name) => {
                            line.ends = line.function;
                            if let Some(has_end) = line.function.and_then(|index| library.get_mut(&index)) {
                                *has_end = true;
                            }
                            current = None;
                        }
                        ".file" => {
                            if let Some(number) = number_of_library_file(after) {
                                files.insert(number);
                            }
                        }
                        ".loc" => in_library = files.contains(asm::split(after).0),
                        _ if word.starts_with('.') => {}
                        _ => {
                            line.code = Some(rest);
                            if is_new && !word.starts_with("endbr") {
                                line.begins = true;
                                is_new = false;
                                if let Some(function) = line.function.filter(|_| in_library) {
                                    library.insert(function, false);
                                }
                            }
                        }
                    }
                }
            }
            lines.push(line);
        }
        Audit { lines, library, defined: declared }
    }
}

/// The number of a source file if it belongs to a library: `NUMBER "FILE"` or `NUMBER "FOLDER" "FILE"`.
fn number_of_library_file(after: &str) -> Option<&str> {
    let (number, rest) = asm::split(after);
    let mut names = rest.split('"').skip(1).step_by(2);
    let first = names.next()?;
    let is_one = match names.next().filter(|_| rest.matches('"').count() >= 4) {
        Some(file) if !file.starts_with('/') => is_library(&format!("{first}/{file}")),
        Some(file) => is_library(file),
        None => is_library(first),
    };
    (is_one && number.bytes().all(|c| c.is_ascii_digit())).then_some(number)
}

/// Whether a label can be a jump target. gcc has other labels for debugging, with a letter after the first
/// two characters.
pub(super) fn is_target(line: &str) -> bool {
    asm::label(line.trim()).is_some_and(|(label, _)| {
        !label.strip_prefix(".L").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    })
}

/// The part of a line before a comment.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libraries() {
        let text = "\
\t.file 1 \"t.cpp\"
\t.file 2 \"/usr/include/c++/13\" \"atomic\" md5 0x1
\t.type f, @function
f:
\t.loc 1 3 1
\tret
\t.size f, .-f
\t.type g, @function
g:
\t.loc 2 3 1
\tendbr64
\tmovq %rdi, %rax
\t.loc 1 4 1
\trep ret
\t.size g, .-g
";
        let audit = Audit::of(text);
        let found: Vec<(&str, bool)> = audit
            .lines
            .iter()
            .filter_map(|line| Some((line.code?, audit.library_function(line).is_some())))
            .collect();
        assert_eq!(found, [("ret", false), ("endbr64", true), ("movq %rdi, %rax", true), ("rep ret", true)]);
    }

    #[test]
    fn source_files_of_libraries() {
        for (directive, expected) in [
            ("3 \"/usr/include/c++/13/atomic\"", Some("3")),
            ("3 \"/usr/include/c++/13\" \"atomic\" md5 0x12", Some("3")),
            ("3 \"/home/me\" \"/usr/include/c++/13/atomic\"", Some("3")),
            ("3 \"/home/me\" \"atomic\"", None),
            ("0 \"/home/me\" \"t.cpp\" md5 0x12", None),
            ("\"t.cpp\"", None),
        ] {
            assert_eq!(number_of_library_file(directive), expected, "{directive}");
        }
    }

    #[test]
    fn functions() {
        let text = "\t.type f, @function\nf:\n\tendbr64\n\tpushq %rbx\n\t.type f.cold, @function\nf.cold:\n\tmovl $1, (%rdi)\n\t.size f, .-f\n\t.size f.cold, .-f.cold\n\tnop\n";
        let audit = Audit::of(text);
        let found: Vec<(Option<&str>, Option<usize>, bool)> = audit
            .lines
            .iter()
            .filter(|line| line.code.is_some())
            .map(|line| (line.code, line.function, line.begins))
            .collect();
        assert_eq!(
            found,
            [
                (Some("endbr64"), Some(0), false),
                (Some("pushq %rbx"), Some(0), true),
                (Some("movl $1, (%rdi)"), Some(0), false),
                (Some("nop"), None, false),
            ]
        );
    }
}
