//! What clang complains about, as diagnostics with their places.

use super::{OtherFiles, user_file};
use palisade::{Diagnostic, Refused, Source, Span};

/// At most this many characters of what clang prints are shown where it is not understood.
const LONGEST: usize = 380;

/// Why the compiler rejects a program. The source holds the main file.
pub fn refused(printed: &str, name: &str, source: &Source, others: OtherFiles) -> Refused {
    let mut source = source.clone();
    let mut errors: Vec<Diagnostic> = Vec::new();
    let folder =
        std::env::current_dir().map_or_else(|_| String::new(), |folder| folder.display().to_string());
    for complaint in printed.lines().filter_map(Complaint::parse) {
        let span = complaint.span(&mut source, &folder, others);
        match complaint.severity {
            Severity::Error => {
                let error = Diagnostic::error("c-error", complaint.message);
                errors.push(if span.is_none() { error } else { error.at(span, "") });
            }
            Severity::Note => {
                if let Some(last) = errors.pop() {
                    errors.push(if span.is_none() { last } else { last.at(span, complaint.message) });
                }
            }
        }
    }
    if errors.is_empty() {
        let printed: String = printed.trim().chars().take(LONGEST).collect();
        errors.push(Diagnostic::error("c-error", format!("the compiler rejects {name}: {printed}")));
    }
    Refused { source, diagnostics: errors }
}

/// A line of the form `lock.c:3:5: error: what is wrong`.
struct Complaint<'a> {
    place: Option<(&'a str, u32, u32)>,
    severity: Severity,
    message: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Severity {
    Error,
    Note,
}

impl<'a> Complaint<'a> {
    fn parse(line: &'a str) -> Option<Complaint<'a>> {
        let marks = [
            (": fatal error: ", Severity::Error),
            (": error: ", Severity::Error),
            (": note: ", Severity::Note),
        ];
        let (at, mark, severity) = marks
            .iter()
            .filter_map(|(mark, severity)| Some((line.find(mark)?, mark, *severity)))
            .min_by_key(|found| found.0)?;
        let message = &line[at + mark.len()..];
        let mut parts = line[..at].rsplitn(3, ':');
        let (column, number, file) = (parts.next(), parts.next(), parts.next());
        let place = file.zip(number.and_then(|n| n.parse().ok())).zip(column.and_then(|n| n.parse().ok()));
        Some(Complaint { place: place.map(|((file, line), column)| (file, line, column)), severity, message })
    }

    /// Where it is. The file is added to the source if it is the user's.
    fn span(&self, source: &mut Source, folder: &str, others: OtherFiles) -> Span {
        let Some((file, line, column)) = self.place else { return Span::NONE };
        let file = match file {
            "<stdin>" => source.name().to_owned(),
            _ => file.strip_prefix("./").unwrap_or(file).to_owned(),
        };
        if others == OtherFiles::Open
            && !source.files().any(|(known, _)| known == file)
            && let Some((_, text)) = user_file(folder, &file, folder)
        {
            source.add(file.as_str(), &text);
        }
        let Some(whole) = source.line_of(&file, line) else { return Span::NONE };
        let text = source.slice(whole);
        let from = (column as usize).saturating_sub(1).min(text.len());
        let word = text.get(from..).unwrap_or("");
        let length = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len()).max(1);
        let start = whole.start as usize + from;
        Span::new(start..(start + length).min(whole.end as usize).max(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_have_places() {
        let source = Source::new("lock.c", "int main(void) {\n  retrun 0;\n}\n");
        let printed = "lock.c:2:3: error: use of undeclared identifier 'retrun'\n  retrun 0;\n  ^\n\
                       lock.c:1:5: note: in this function\n1 error generated.\n";
        let refused = refused(printed, "lock.c", &source, OtherFiles::Open);
        let [error] = refused.diagnostics.as_slice() else { panic!("{:?}", refused.diagnostics) };
        assert_eq!(error.message, "use of undeclared identifier 'retrun'");
        assert_eq!(refused.source.slice(error.span()), "retrun");
        assert_eq!(error.labels.len(), 2);
        assert_eq!(refused.source.slice(error.labels[1].span), "main");
    }

    #[test]
    fn other_complaints_are_shown_as_they_are() {
        let source = Source::new("lock.c", "");
        let check = |printed: &str, expected: &str| {
            let refused = refused(printed, "lock.c", &source, OtherFiles::Open);
            assert_eq!(refused.diagnostics[0].message, expected);
            assert!(refused.diagnostics[0].span().is_none());
        };
        check("clang: error: unknown argument: '-foo'\n", "unknown argument: '-foo'");
        check("Segmentation fault\n", "the compiler rejects lock.c: Segmentation fault");
        check("lock.c:99:1: fatal error: 'no.h' file not found\n", "'no.h' file not found");
    }
}
