//! What the tests share: reading modules, and places that are byte offsets made of lines.

use palisade_base::{Diagnostic, Source, Span};
use palisade_c::{Options, Places, Roots, Translation, translate};
use palisade_llvm::Module;

/// Every line is a place; its span starts at its number.
pub struct Lines;

impl Places for Lines {
    fn span(&self, file: &str, _: &str, line: u32, column: u32) -> Option<Span> {
        // System headers do not belong to the user.
        (!file.starts_with('/')).then_some(Span { start: line, end: line + column })
    }
}

#[track_caller]
pub fn read(text: &str) -> Module {
    palisade_llvm::read(&Source::new("test.ll", text)).expect("the text is right")
}

/// Functions that run as threads of a library.
pub fn threads(names: &[&str]) -> Options {
    let threads = names.iter().map(|name| (*name).to_owned()).collect();
    Options {
        roots: Roots::Functions { init: None, threads, finally: None },
        races: false,
        ..Options::default()
    }
}

/// Translates a text. The result must be valid.
#[track_caller]
pub fn translated(text: &str, options: &Options) -> Translation {
    let translation = match translate(&[read(text)], &Lines, options) {
        Ok(translation) => translation,
        Err(errors) => panic!("{}", messages(&errors)),
    };
    let errors: Vec<Diagnostic> = palisade_program::validate(&translation.program);
    let errors: Vec<Diagnostic> = errors.into_iter().filter(Diagnostic::is_error).collect();
    assert!(errors.is_empty(), "{errors:?}");
    translation
}

/// The messages of a text that is refused, with lines.
#[track_caller]
pub fn refused(text: &str, options: &Options) -> String {
    match translate(&[read(text)], &Lines, options) {
        Ok(_) => panic!("the text was translated"),
        Err(errors) => messages(&errors),
    }
}

pub fn messages(errors: &[Diagnostic]) -> String {
    let line = |error: &Diagnostic| match error.span() {
        Span::NONE => format!("{}\n", error.message),
        span => format!("{}: {}\n", span.start, error.message),
    };
    errors.iter().map(line).collect()
}

/// The statements of the only thread of a library function with these instructions, without declarations. The
/// function has no parameters; `@x`, `@y` and `@p` are variables, `@h` another function that returns an `i32`.
#[track_caller]
pub fn body(lines: &str) -> String {
    body_of(&module(lines))
}

/// The text around some instructions.
pub fn module(lines: &str) -> String {
    format!(
        "target datalayout = \"e-m:e-i64:64-f80:128-n8:16:32:64-S128\"\n\
         @x = global i32 0\n@y = global i64 0\n@p = global ptr null\n@a = global [3 x i32] zeroinitializer\n\
         declare void @__VERIFIER_assume(i32)\ndeclare i32 @__VERIFIER_nondet_bool()\n\
         declare void @abort()\ndeclare i32 @h()\n\
         define void @f() {{\n{lines}\n}}\n\
         define void @other() {{\n  store volatile i32 1, ptr @x\n  store volatile i64 1, ptr @y\n  \
         store ptr @x, ptr @p\n  store i32 1, ptr @a\n  ret void\n}}\n"
    )
}

#[track_caller]
pub fn body_of(text: &str) -> String {
    let translation = translated(text, &threads(&["f", "other"]));
    let printed = palisade_program::print::print(&translation.program);
    let start = printed.find("process f {\n").expect("the thread is there") + "process f {\n".len();
    let end = printed[start..].find("\n}\n").expect("the thread ends") + start;
    let lines = printed[start..end].lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.filter(|line| !line.starts_with("let ")).collect::<Vec<_>>().join("\n")
}
