//! `--build`: a C program, and what a compiler makes of it. Both are checked, and their verdicts are compared.

use super::Request;
use super::one::{self, Checked, Portion};
use crate::args::Format;
use crate::c::{Arguments, options};
use crate::compiler;
use crate::exit::Exit;
use crate::files::{self, InputFile};
use crate::object;
use crate::output::Output;
use palisade::c::read_c;
use palisade::{Diagnostic, InputLanguage, Limits, Refused, Source};
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Checks a C program and its build.
pub(super) fn run(found: &InputFile, build: &str, request: &Request<'_>, output: &Output) -> Exit {
    let name = found.path.display().to_string();
    if found.path.extension().is_none_or(|extension| extension != "c") {
        let error = Diagnostic::error("build-of-c", "--build compiles C programs, and this is not one");
        return output
            .refuse_about(&name, error.help("check the object file itself: `palisade check FILE.o`"));
    }
    let limits = request.limits.per_file(2);
    let source = one::check(found, request, &limits, output);
    let (of_source, exit) = report(source, &limits, output);
    let Some(of_source) = of_source else { return exit };
    let built = limits.within(|| {
        let objects = match compile(found, build, request) {
            Ok(objects) => objects,
            Err(refused) => return Checked::Refused(refused),
        };
        let (options, label) = (options(&request.args.reading.c), format!("{name} ({build})"));
        let (path, none, compiler) = (Path::new(&label), Vec::new(), build.to_owned());
        match object::program(path, InputLanguage::Object, &objects, &none, compiler, options)
            .and_then(read_c)
        {
            Ok(input) => one::answer(input, request, &limits),
            Err(refused) => Checked::Refused(refused),
        }
    });
    let built = match built {
        Ok(checked) => checked,
        Err(what) => {
            let error = Diagnostic::error("build-not-checked", format!("the build is not checked: {what}"));
            output.complain_about(&name, error);
            return exit.worst(Exit::Unknown);
        }
    };
    let (of_build, second) = report(built, &limits, output);
    let Some(of_build) = of_build else { return exit.worst(second) };
    let agree = match (of_source, of_build) {
        ("unknown", _) | (_, "unknown") => None,
        (a, b) => Some(a == b),
    };
    output.print(&match output.format {
        Format::Json => {
            let record = json!({
                "schema_version": 1, "file": name, "build": build, "source": of_source, "object": of_build, "agree": agree,
            });
            format!("{record}\n")
        }
        Format::Text => format!("\n{}\n", words(of_source, of_build, build)),
    });
    exit.worst(second)
}

/// What the two verdicts say together.
fn words(source: &str, object: &str, build: &str) -> String {
    match (source, object) {
        ("unknown", _) => format!("the build by `{build}` is {object}, and the source is not decided"),
        (_, "unknown") => format!("the source is {source}, and the build by `{build}` is not decided"),
        (a, b) if a == b => format!("the source and the build by `{build}` agree: {a}"),
        ("safe", _) => format!(
            "the source and the build by `{build}` differ: the compiler does not keep what the source relies on, as the \
             run above shows"
        ),
        _ => format!(
            "the source and the build by `{build}` differ: what breaks the source does not happen in this build, and may \
             in another"
        ),
    }
}

/// Prints an answer. Returns the verdict, if there is one, and the exit.
fn report(checked: Checked, limits: &Limits, output: &Output) -> (Option<&'static str>, Exit) {
    match checked {
        Checked::Answered(answered) => {
            output.warn(&answered.input);
            output.print(&answered.rendered(Portion::Everything, limits, output));
            let exit = answered.exit();
            let word = match exit {
                Exit::Fine => "safe",
                Exit::Violated => "unsafe",
                _ => "unknown",
            };
            (Some(word), exit)
        }
        Checked::Refused(refused) => (None, output.refuse(&refused)),
        Checked::Skipped | Checked::TookPart => (None, Exit::Fine),
        Checked::RanOut(last_words, what) => {
            output.print(&last_words.say(what));
            (Some("unknown"), Exit::Unknown)
        }
        Checked::Failed(name, error) => (None, output.refuse_about(&name, one::failure(&error))),
        Checked::Panicked(name) => (None, output.refuse_about(&name, one::panicked())),
    }
}

/// Compiles all files of a program. Returns the object files by their names.
fn compile(
    found: &InputFile,
    build: &str,
    request: &Request<'_>,
) -> Result<Vec<(String, object::Contents)>, Refused> {
    let name = found.path.display().to_string();
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(name.as_str(), ""), diagnostics: vec![error] };
    let arguments = Arguments::new(&request.args.reading.c.compiler).map_err(refuse)?;
    let words: Vec<&str> = build.split_whitespace().collect();
    let Some((program, given)) = words.split_first() else {
        return Err(refuse(Diagnostic::error("build-failed", "--build names no compiler")));
    };
    let folder = tempfile::tempdir().map_err(|error| {
        refuse(Diagnostic::error("build-failed", format!("there is no temporary folder: {error}")))
    })?;
    let mut objects = Vec::new();
    for (index, file) in std::iter::once(&found.path).chain(&arguments.files).enumerate() {
        let object = folder.path().join(format!("{index}.o"));
        let mut command = Command::new(program);
        command.args(given).args(&arguments.options).args(["-g", "-c", "-o"]).arg(&object).arg(file);
        let ended = compiler::run(&mut command, None).map_err(|failure| {
            refuse(Diagnostic::error("build-failed", format!("the compiler `{program}` {failure}")))
        })?;
        if !ended.success {
            let printed = String::from_utf8_lossy(&ended.complained);
            let first = printed.lines().find(|line| line.contains("error")).unwrap_or_else(|| printed.trim());
            let message = format!("`{build}` does not compile {}: {first}", file.display());
            return Err(refuse(Diagnostic::error("build-failed", message)));
        }
        let label = if index == 0 { format!("{name} ({build})") } else { file.display().to_string() };
        objects.push((label, object::Contents::Object(files::bytes(&object).map_err(refuse)?)));
    }
    Ok(objects)
}
