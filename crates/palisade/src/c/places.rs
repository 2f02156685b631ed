//! Maps positions in the debug information to positions in the user's files.

use palisade_base::{Source, Span};
use palisade_c::Places;
use std::collections::BTreeMap;

/// The user's files: by their full paths, as debug information names them, the names that messages use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileNames {
    names: BTreeMap<String, String>,
}

impl FileNames {
    /// Adds a file. Its name is the one in the [`Source`].
    pub fn add(&mut self, directory: &str, file: &str, name: &str) {
        self.names.insert(full_path(directory, file), name.to_owned());
    }

    /// Whether the file is known.
    pub fn contains(&self, directory: &str, file: &str) -> bool {
        self.names.contains_key(&full_path(directory, file))
    }

    /// The name that messages use for a file.
    pub fn name(&self, directory: &str, file: &str) -> Option<&str> {
        self.names.get(&full_path(directory, file)).map(String::as_str)
    }
}

/// What messages call the lines of a file that it does not have: the program gives their numbers by `#line`.
pub fn beyond_its_end(name: &str) -> String {
    format!("{name} (by #line)")
}

/// The path of a file as a text, without `.` and `..`.
fn full_path(directory: &str, file: &str) -> String {
    let whole = if file.starts_with('/') { file.to_owned() } else { format!("{directory}/{file}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    (if whole.starts_with('/') { "/" } else { "" }).to_owned() + &parts.join("/")
}

/// The places of a source that consists of the user's files.
pub(super) struct SourcePlaces<'a> {
    pub(super) source: &'a Source,
    pub(super) files: &'a FileNames,
}

impl Places for SourcePlaces<'_> {
    fn span(&self, file: &str, directory: &str, line: u32, column: u32) -> Option<Span> {
        let name = self.files.name(directory, file)?;
        let line =
            self.source.line_of(name, line).or_else(|| self.source.line_of(&beyond_its_end(name), line))?;
        let (from, to) = statement(self.source.slice(line), column as usize);
        Some(Span { start: line.start + from as u32, end: line.start + to as u32 })
    }
}

/// The part of a line of C that belongs to a column (from 1, in bytes; 0 if it is not known): the statement, or
/// the head of a loop or an `if`. It is for readers, so a guess is good enough: what spans several lines is shown
/// by the line in question.
fn statement(line: &str, column: usize) -> (usize, usize) {
    let code_end = line.find("//").unwrap_or(line.len());
    let column = column.saturating_sub(1).min(code_end);
    let (mut start, mut end) = (0, code_end);
    let mut depth = 0i32;
    let mut quote = None;
    let mut escaped = false;
    for (index, byte) in line.bytes().enumerate().take(code_end) {
        if let Some(mark) = quote {
            (quote, escaped) = match (escaped, byte) {
                (false, b'\\') => (quote, true),
                (false, byte) if byte == mark => (None, false),
                _ => (quote, false),
            };
            continue;
        }
        match byte {
            b'"' | b'\'' => quote = Some(byte),
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' | b'{' | b'}' if depth <= 0 => {
                if index < column {
                    start = index + 1;
                } else {
                    end = if byte == b';' { index + 1 } else { index };
                    break;
                }
            }
            _ => {}
        }
    }
    let text = &line[start..end.max(start)];
    let from = start + (text.len() - text.trim_start().len());
    let to = start + text.trim_end().len();
    // A brace alone is shown as it is.
    if from < to { (from, to) } else { whole(line) }
}

fn whole(line: &str) -> (usize, usize) {
    let from = line.len() - line.trim_start().len();
    (from, line.trim_end().len().max(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (directory, file, expected) in [
            ("/home/me", "lock.c", "/home/me/lock.c"),
            ("/home/me", "../you/./lock.c", "/home/you/lock.c"),
            ("/home/me", "/usr/include/a.h", "/usr/include/a.h"),
            ("", "lock.c", "/lock.c"),
            (".", "../lock.c", "../lock.c"),
        ] {
            assert_eq!(full_path(directory, file), expected, "{directory} {file}");
        }
    }

    #[test]
    fn statements_of_a_line() {
        let check = |line: &str, column: usize, expected: &str| {
            let (from, to) = statement(line, column);
            assert_eq!(&line[from..to], expected, "{line}");
        };
        check("    x = 1;  // flag", 7, "x = 1;");
        check("x = 1; r = y;", 3, "x = 1;");
        check("x = 1; r = y;", 10, "r = y;");
        check("  for (i = 0; i < n; i++) {", 20, "for (i = 0; i < n; i++)");
        check("  if (a) { b = 1; }", 14, "b = 1;");
        check("  if (a) { b = 1; }", 7, "if (a)");
        check("  } while (x);", 12, "while (x);");
        check("\tprintf(\"a;b\");", 2, "printf(\"a;b\");");
        check("\tc = ';'; d = '\\''; e = 1;", 22, "e = 1;");
        check("}", 1, "}");
        check("", 1, "");
        check("   ", 2, "");
        check("  a = b +", 0, "a = b +");
        check("ç = 1; é = 2;", 99, "ç = 1; é = 2;");
    }
}
