//! The checks that the tests of every input language share.

use palisade_base::Source;
use palisade_program::print::print;
use palisade_syntax::{Language, Parsed, parse};

/// Parses a text that must be valid.
#[track_caller]
pub fn parsed(language: Language, text: &str) -> Parsed {
    parse(language, &Source::new("test", text)).unwrap_or_else(|errors| panic!("{errors:#?}\nin\n{text}"))
}

/// The lines of a text, with single spaces and without empty lines.
pub fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

/// Parses a text, prints it, and compares line by line. Parsing the output must give the same program.
#[track_caller]
pub fn check_translation(language: Language, text: &str, expected: &str) {
    let program = parsed(language, text).program;
    let printed = print(&program);
    assert_eq!(lines(&printed), lines(expected), "\n{printed}");
    assert_eq!(parsed(Language::Pal, &printed).program, program);
}

/// Parses a text that must be rejected. `expected` has, for each error, its id and the text it points at.
#[track_caller]
pub fn check_errors(language: Language, text: &str, expected: &[(&str, &str)]) {
    let source = Source::new("test", text);
    let errors = parse(language, &source).expect_err(text);
    let found: Vec<(&str, &str)> = errors
        .iter()
        .filter(|error| error.is_error())
        .map(|error| (error.id, source.slice(error.span())))
        .collect();
    assert_eq!(found, expected, "{text}\n{errors:#?}");
}

/// The help of the only error.
#[track_caller]
pub fn only_help(language: Language, text: &str) -> String {
    let errors = parse(language, &Source::new("test", text)).expect_err(text);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors[0].help.clone().unwrap_or_default()
}

/// Parses any text. A program can be printed and parsed again as `.pal`; errors point into the text.
#[track_caller]
pub fn check_any_text(language: Language, text: &str) {
    match parse(language, &Source::new("fuzz", text)) {
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
