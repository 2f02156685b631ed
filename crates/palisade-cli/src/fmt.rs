//! `palisade fmt`: `.pal` files, laid out the same way everywhere.

use crate::args::{Common, FmtArgs, Format};
use crate::exit::Exit;
use crate::files;
use crate::limits::UserLimits;
use crate::output::{Detail, Output};
use crate::ran_out::Question;
use palisade::syntax::format_pal;
use palisade::{Diagnostic, InputLanguage, Language, Refused, Source, report};
use serde_json::json;
use std::path::Path;

/// Runs the command.
pub fn run(args: &FmtArgs, common: &Common, output: &Output) -> Exit {
    let found = match files::find(&args.files, Some(Language::Pal.into())) {
        Ok(found) => found,
        Err(problems) => return output.refuse_all(problems),
    };
    let limits = UserLimits::new(common);
    let mut exit = Exit::Fine;
    for found in found {
        let last_words = output.last_words(&found.path, Question::Other("fmt"));
        let done = limits.per_file(1).within(|| file(&found.path, args, output));
        exit = exit.worst(match done {
            Ok(Ok(exit)) => exit,
            Ok(Err(refused)) => output.refuse(&refused),
            Err(what) => {
                output.print(&last_words.say(what));
                Exit::Unknown
            }
        });
        if output.is_closed() {
            break;
        }
    }
    exit
}

/// Formats one file.
fn file(path: &Path, args: &FmtArgs, output: &Output) -> Result<Exit, Refused> {
    let name = path.display().to_string();
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(name.as_str(), ""), diagnostics: vec![error] };
    let is_stdin = path == Path::new("-");
    let text = files::text(path).map_err(refuse)?;
    if !is_stdin {
        refuse_other_languages(path).map_err(refuse)?;
    }
    let source = files::with_imports(path, text.clone());
    let formatted = match format_pal(&source) {
        Ok(formatted) => formatted,
        Err(diagnostics) => return Err(Refused { source, diagnostics }),
    };
    let differs = formatted != text;
    if differs && !args.check && !is_stdin {
        files::write(path, &formatted).map_err(refuse)?;
    }
    let printed = (is_stdin && !args.check).then_some(formatted.as_str());
    let state = match (differs, args.check) {
        (false, _) => "unchanged",
        (true, true) => "would-change",
        (true, false) => "changed",
    };
    match (output.format, printed) {
        (Format::Text, Some(formatted)) => output.print_content(formatted),
        (Format::Text, None) if output.detail == Detail::Quiet => {}
        (Format::Text, None) => output.print(&format!("{state}  {}\n", report::visible(&name))),
        (Format::Json, _) => {
            let mut record = json!({
                "schema_version": report::SCHEMA_VERSION, "command": "fmt", "file": name, "state": state,
            });
            if let Some(formatted) = printed {
                record["text"] = json!(formatted);
            }
            output.print(&(record.to_string() + "\n"));
        }
    }
    Ok(if differs && args.check { Exit::Violated } else { Exit::Fine })
}

/// Only `.pal` has a format of ours.
fn refuse_other_languages(path: &Path) -> Result<(), Diagnostic> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let (message, help) = match extension.and_then(InputLanguage::from_extension) {
        Some(InputLanguage::Text(Language::Pal)) => return Ok(()),
        Some(InputLanguage::C) => {
            ("`palisade fmt` formats .pal files, but this one is C".to_owned(), "use clang-format")
        }
        Some(InputLanguage::Object | InputLanguage::Assembly) => (
            "`palisade fmt` formats .pal files, but this one is machine code".to_owned(),
            "it has no format that could be changed",
        ),
        Some(InputLanguage::Rust) => {
            ("`palisade fmt` formats .pal files, but this one is Rust".to_owned(), "use rustfmt")
        }
        Some(other) => (
            format!("`palisade fmt` formats .pal files, but this one is {other}"),
            "`palisade show FILE --as pal` prints it as .pal",
        ),
        None => (
            "`palisade fmt` formats .pal files, but the name of this one does not end with .pal".to_owned(),
            "rename it, or use standard input: `palisade fmt - < FILE`",
        ),
    };
    Err(Diagnostic::error("not-pal", message).help(help))
}
