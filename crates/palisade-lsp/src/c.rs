//! C programs. The command compiles and checks them: it is started in a process of its own, in the folder of the
//! file, and its output is read. The compiler reads files, so what is not saved is not seen.

use crate::answers::{fences_in_brief, headline as with_model, places, unknown};
use crate::documents::uri;
use crate::edits::Fix;
use crate::problems::found;
use crate::questions::{Asked, Question, Reply, Stop};
use crate::run::{self, Files, Other};
use lsp_types::{Diagnostic, DiagnosticSeverity, Position, Range, TextEdit, Uri};
use palisade::trace::WitnessFile;
use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Answers a question about a C program.
pub(crate) fn answer(question: &Question, stop: &Stop) -> Result<Reply, String> {
    let path = question.path.as_deref().ok_or("save the program first: C is compiled from a file")?;
    let program = CProgram { question, stop, path, folder: path.parent().unwrap_or(Path::new("/")) };
    match question.asked {
        Asked::Check | Asked::Robust => program.ask(),
        Asked::Fences => program.fences(),
        Asked::Html => program.page(),
        Asked::Values => Ok(Reply::default()),
    }
}

struct CProgram<'a> {
    question: &'a Question,
    stop: &'a Stop,
    path: &'a Path,
    folder: &'a Path,
}

impl CProgram<'_> {
    /// Runs the command on the file, and returns what it prints.
    fn run(&self, name: &str, options: &[OsString]) -> Result<String, String> {
        let program = self.question.command.as_deref().ok_or("C programs are not checked by this server")?;
        let file = self.path.file_name().ok_or("this is not a file")?;
        let mut command = Command::new(program);
        command.current_dir(self.folder).arg(name).arg(Path::new(".").join(file)).args(options);
        command.arg("--model").arg(self.question.model.name());
        command.arg("--timeout").arg(self.question.budget.as_secs_f64().to_string());
        command.arg("--jobs").arg(self.question.jobs.to_string());
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.map_err(|error| format!("the command could not be started: {error}"))?;
        let mut stdout = child.stdout.take().expect("the output is a pipe");
        self.stop.adopt(child);
        let mut text = String::new();
        let read = stdout.read_to_string(&mut text);
        self.stop.finish();
        read.map_err(|error| format!("its output could not be read: {error}"))?;
        if self.stop.is_stopped() {
            return Err("stopped".to_owned());
        }
        Ok(text)
    }

    /// `check` or `robust`.
    fn ask(&self) -> Result<Reply, String> {
        let name = self.question.asked.name();
        let printed = self.run(name, &["--format".into(), "json".into()])?;
        let record: Value = serde_json::from_str(printed.lines().next().unwrap_or_default())
            .map_err(|_| "the command gave no answer: try it in a terminal".to_owned())?;
        if record.get("error").is_some() {
            return Ok(self.refused(&record));
        }
        let word = record["verdict"].as_str().unwrap_or("unknown").to_owned();
        let why = ["violation", "reason", "limits"]
            .iter()
            .find_map(|key| record[*key].as_str())
            .unwrap_or_default();
        let severity = if word == "unsafe" { DiagnosticSeverity::ERROR } else { DiagnosticSeverity::WARNING };
        let witness: Option<WitnessFile> = serde_json::from_value(record["witness"].clone()).ok();
        let other = |file: &str| Some(Other { uri: self.other(file)?, text: None });
        let files = Files {
            uri: &self.question.uri,
            text: self.question.source.text(),
            lines: &self.question.lines,
            other: &other,
        };
        let findings = match &witness {
            Some(witness) => run::diagnostics(&files, witness, &word, severity, why),
            None if word == "unknown" => unknown(self.question, why).findings,
            None => Vec::new(),
        };
        let headline = match why {
            "" => format!("{word}  {}", self.question.source.name()),
            why => format!("{word}  {}: {why}", self.question.source.name()),
        };
        let headline = with_model(self.question, &headline, !why.is_empty(), "");
        let brief = format!("{word} under {}", self.question.model.name().to_uppercase());
        Ok(Reply { word, headline, brief, findings, ..Reply::default() })
    }

    /// The address of a file of the program, which the command names as seen from the folder.
    fn other(&self, file: &str) -> Option<Uri> {
        let path = self.folder.join(file);
        let path: PathBuf =
            path.components().filter(|part| !matches!(part, std::path::Component::CurDir)).collect();
        if path == self.path { Some(self.question.uri.clone()) } else { uri(&path) }
    }

    /// A program that does not compile or is not understood: all errors.
    fn refused(&self, record: &Value) -> Reply {
        let listed = record["diagnostics"].as_array().cloned().unwrap_or_default();
        let findings: Vec<(Uri, Diagnostic)> = listed.iter().map(|problem| self.problem(problem)).collect();
        let first =
            listed.first().and_then(|problem| problem["message"].as_str()).unwrap_or("it is not understood");
        let headline = format!("refused  {}: {first}", self.question.source.name());
        Reply { word: "refused".into(), headline, brief: "refused".into(), findings, ..Reply::default() }
    }

    fn problem(&self, problem: &Value) -> (Uri, Diagnostic) {
        let number = |key: &str| problem[key].as_u64().and_then(|number| u32::try_from(number).ok());
        let severity = match problem["severity"].as_str() {
            Some("warning") => DiagnosticSeverity::WARNING,
            _ => DiagnosticSeverity::ERROR,
        };
        let mut message = problem["message"].as_str().unwrap_or_default().to_owned();
        if let Some(help) = problem["help"].as_str() {
            message.push_str(&format!("\nhelp: {help}"));
        }
        let line = number("line").unwrap_or(1);
        let other = problem["file"]
            .as_str()
            .and_then(|file| self.other(file))
            .filter(|uri| *uri != self.question.uri);
        let (place, range) = match other {
            Some(other) => {
                let line = line.saturating_sub(1);
                (other, Range::new(Position::new(line, 0), Position::new(line + 1, 0)))
            }
            None => {
                let text = self.question.source.text();
                let range = self.question.lines.statement(text, line, number("column").unwrap_or(1), "");
                (self.question.uri.clone(), range)
            }
        };
        (place, found(range, severity, problem["id"].as_str().unwrap_or("c"), message))
    }

    /// The fences, as the patch that the command prints. It has compiled and checked the program with them.
    fn fences(&self) -> Result<Reply, String> {
        let printed = self.run("fences", &["--diff".into(), "-q".into()])?;
        let headline = printed.lines().next().unwrap_or("unknown");
        // The command was given a name that cannot be an option.
        let name = self.question.source.name();
        let headline = headline.replacen(&format!("  ./{name}"), &format!("  {name}"), 1);
        let word = headline.split_whitespace().next().unwrap_or("unknown").to_owned();
        let changes = patch(&printed).into_iter().filter_map(|(name, edits)| {
            let beside = self.folder.join(&name);
            let path = if beside.exists() { beside } else { Path::new("/").join(&name) };
            let place = if path == self.path { Some(self.question.uri.clone()) } else { uri(&path) };
            Some((place?, edits))
        });
        let changes: Vec<_> = changes.collect();
        let why = headline.split_once(": ").map_or("", |(_, why)| why);
        let fix = (!changes.is_empty()).then(|| Fix {
            title: format!("Change the program: {why}"),
            why: why.to_owned(),
            changes,
        });
        // `safe with 2 changes` says by itself that the program can be repaired.
        let brief = fences_in_brief(&word, why, fix.is_some());
        let findings = fix.as_ref().map_or_else(Vec::new, places);
        let headline = with_model(self.question, &headline, !why.is_empty(), "");
        Ok(Reply { word, headline, brief, findings, fix, ..Reply::default() })
    }

    /// The answer as a web page.
    fn page(&self) -> Result<Reply, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let file = folder.path().join("run.html");
        let printed = self.run("check", &["-q".into(), "--html".into(), file.clone().into()])?;
        let page = std::fs::read_to_string(&file).map_err(|error| format!("there is no page: {error}"))?;
        let word = printed.split_whitespace().next().unwrap_or("refused").to_owned();
        Ok(Reply { word, html: Some(page), ..Reply::default() })
    }
}

/// The edits of a unified diff, by file. Lines that are replaced or inserted keep their ends.
fn patch(text: &str) -> Vec<(String, Vec<TextEdit>)> {
    let mut files: Vec<(String, Vec<TextEdit>)> = Vec::new();
    // The line of the old text that comes next, from 0, in a hunk.
    let mut at: Option<u32> = None;
    let mut hunk: Option<(u32, u32, String)> = None;
    let end = |hunk: &mut Option<(u32, u32, String)>, files: &mut Vec<(String, Vec<TextEdit>)>| {
        if let (Some((start, end, new_text)), Some((_, edits))) = (hunk.take(), files.last_mut()) {
            edits.push(TextEdit {
                range: Range::new(Position::new(start, 0), Position::new(end, 0)),
                new_text,
            });
        }
    };
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        match (line.as_bytes()[0], at) {
            _ if content.starts_with("--- a/") || content.starts_with("--- \"a/") => {
                end(&mut hunk, &mut files);
                at = None;
            }
            _ if content.starts_with("+++ b/") => {
                files.push((content["+++ b/".len()..].trim_end_matches('\t').to_owned(), Vec::new()));
            }
            _ if content.starts_with("+++ \"b/") => {
                let name = unquoted(content["+++ \"".len()..].trim_end_matches('"'));
                files.push((name["b/".len()..].to_owned(), Vec::new()));
            }
            (b'@', _) if !files.is_empty() => {
                end(&mut hunk, &mut files);
                at = old_start(content);
            }
            (b' ', Some(next)) => {
                end(&mut hunk, &mut files);
                at = Some(next + 1);
            }
            (b'-', Some(next)) => {
                let (_, last, _) = hunk.get_or_insert((next, next, String::new()));
                *last = next + 1;
                at = Some(next + 1);
            }
            (b'+', Some(next)) => {
                let (_, _, fresh) = hunk.get_or_insert((next, next, String::new()));
                fresh.push_str(&line[1..]);
            }
            _ => {}
        }
    }
    end(&mut hunk, &mut files);
    files.retain(|(_, edits)| !edits.is_empty());
    files
}

/// A name that is quoted in a patch, without its quotes.
fn unquoted(name: &str) -> String {
    let mut bytes = name.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        plain.push(match (byte, if byte == b'\\' { bytes.next() } else { None }) {
            (b'\\', Some(b'n')) => b'\n',
            (b'\\', Some(b't')) => b'\t',
            (b'\\', Some(b'r')) => b'\r',
            (b'\\', Some(first @ b'0'..=b'7')) => {
                let others = bytes.by_ref().take(2);
                others.fold(first - b'0', |sum, digit| (sum << 3) | (digit & 7))
            }
            (b'\\', Some(other)) => other,
            (byte, _) => byte,
        });
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The first line of a hunk in the old text, from 0: `@@ -5,6 +5,7 @@`. An empty part is after its line.
fn old_start(heading: &str) -> Option<u32> {
    let old = heading.split_whitespace().nth(1)?.strip_prefix('-')?;
    let (start, len) = old.split_once(',').unwrap_or((old, "1"));
    let start: u32 = start.parse().ok()?;
    Some(if len == "0" { start } else { start.saturating_sub(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_become_edits() {
        let text = "repairable  a.c: safe with 2 fences\n--- a/a.c\n+++ b/a.c\n@@ -5,6 +5,7 @@\n five\n six\n+    fence;\n seven\n\
                    @@ -12,3 +13,4 @@\n-old\n+{ old\n+fence; }\n thirteen\n--- a/b.h\n+++ b/b.h\n@@ -0,0 +1 @@\n+first\n";
        let found = patch(text);
        let edit = |start, end, text: &str| TextEdit {
            range: Range::new(Position::new(start, 0), Position::new(end, 0)),
            new_text: text.into(),
        };
        let expected = vec![
            ("a.c".to_owned(), vec![edit(6, 6, "    fence;\n"), edit(11, 12, "{ old\nfence; }\n")]),
            ("b.h".to_owned(), vec![edit(0, 0, "first\n")]),
        ];
        assert_eq!(found, expected);
        assert_eq!(patch("unsafe  a.c: no fences help\n"), []);
        let quoted =
            "--- \"a/\\303\\251\\n\\\"\\\\.c\"\n+++ \"b/\\303\\251\\n\\\"\\\\.c\"\n@@ -0,0 +1 @@\n+first\n";
        assert_eq!(patch(quoted)[0].0, "é\n\"\\.c");
    }
}
