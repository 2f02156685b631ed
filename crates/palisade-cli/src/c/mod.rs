//! C programs: compiled by clang, with the user's files beside them for messages and runs.

mod arguments;
mod clang;
mod complaints;
mod overlay;
mod sealed;
mod user_files;

pub use arguments::{Arguments, refuse_other_languages};
pub use clang::Clang;
pub use sealed::Sealed;
pub use user_files::{OtherFiles, user_file, user_files};

use crate::args::{CArgs, MachineArgs, ReadingArgs};
use crate::files::{self, InputFile, Named, Reading};
use clang::{NotCompiled, Unit};
use overlay::Overlay;
use palisade::c::{Aim, COptions, Compilation, FilePatch, Roots, Slots, read_c};
use palisade::llvm::Module;
use palisade::trace::BuildRecord;
use palisade::{Diagnostic, Input, InputLanguage, Refused, Source};
use std::path::Path;

/// Reads a C program, or one in LLVM IR.
pub fn read(found: &InputFile, language: InputLanguage, reading: &ReadingArgs) -> Reading {
    read_patched(found, language, reading, &[])
}

/// Reads a program as if some of its files had changed.
pub fn read_patched(
    found: &InputFile,
    language: InputLanguage,
    reading: &ReadingArgs,
    patches: &[FilePatch],
) -> Reading {
    let refuse = |error: Diagnostic| {
        let source = Source::new(found.path.display().to_string(), "");
        Reading::Refused(Refused { source, diagnostics: vec![error] })
    };
    if reading.int_range.is_some() && found.named == Named::ByUser {
        let error = Diagnostic::error("c-option", "--int-range does not apply to C programs");
        return refuse(error.help("their integers are as wide as their types"));
    }
    if reading.c.test.is_some() && found.named == Named::ByUser {
        return refuse(Diagnostic::error("c-option", "--test applies only to Rust programs, and this is C"));
    }
    let args = &reading.c;
    let options = options(args);
    match compile(&found.path, language, &args.compiler, options, patches).and_then(read_c) {
        Ok(input) => Reading::Program(Box::new(input)),
        Err(refused) => Reading::Refused(refused),
    }
}

/// Reads a program again as it was recorded.
pub fn read_again(found: &InputFile, language: InputLanguage, build: &BuildRecord) -> Reading {
    if let Err(error) = arguments::refuse_harmful(&build.arguments) {
        let source = Source::new(found.path.display().to_string(), "");
        return Reading::Refused(Refused { source, diagnostics: vec![error] });
    }
    match compile(&found.path, language, &build.arguments, recorded_options(build), &[]).and_then(read_c) {
        Ok(input) => Reading::Program(Box::new(input)),
        Err(refused) => Reading::Refused(refused),
    }
}

/// How a program is translated that is asked about with these options.
pub fn options(args: &CArgs) -> COptions {
    let roots = match args.thread.is_empty() {
        true => Roots::Main,
        false => Roots::Functions {
            init: args.init.clone(),
            threads: args.thread.clone(),
            finally: args.last.clone(),
        },
    };
    COptions {
        roots,
        slots: args.slots.map(|slots| Slots { main: slots, nested: slots }),
        heap: args.heap,
        races: !args.no_races,
        finish: !args.no_deadlock,
        exit: !args.no_leaks,
        keep_globals: args.keep_globals,
        within_limits: false,
        any_threads: args.any_threads,
        aim: Aim::Safety,
        test: args.test.clone(),
    }
}

/// How a program was translated.
pub fn recorded_options(build: &BuildRecord) -> COptions {
    let roots = match &build.functions {
        None => Roots::Main,
        Some(functions) => Roots::Functions {
            init: functions.init.clone(),
            threads: functions.threads.clone(),
            finally: functions.last.clone(),
        },
    };
    let [main, nested] = build.slots;
    COptions {
        roots,
        slots: Some(Slots { main, nested }),
        heap: Some(build.heap),
        races: build.races,
        finish: !build.any_threads,
        exit: !build.any_threads,
        keep_globals: false,
        within_limits: build.within_limits,
        any_threads: build.any_threads,
        aim: if build.finish { Aim::Progress } else { Aim::Safety },
        test: build.test.clone(),
    }
}

/// What is wrong if options for C programs are given for another program.
pub fn unused(args: &CArgs) -> Option<Diagnostic> {
    let CArgs {
        init,
        thread,
        last,
        test,
        slots,
        heap,
        no_races,
        no_deadlock,
        no_leaks,
        keep_globals: _,
        any_threads: _,
        compiler,
    } = args;
    let given = [
        ("--init", init.is_some()),
        ("--thread", !thread.is_empty()),
        ("--final", last.is_some()),
        ("--test", test.is_some()),
        ("--slots", slots.is_some()),
        ("--heap", heap.is_some()),
        ("--no-races", *no_races),
        ("--no-deadlock", *no_deadlock),
        ("--no-leaks", *no_leaks),
        ("what follows `--`", !compiler.is_empty()),
    ];
    let (option, _) = given.into_iter().find(|(_, given)| *given)?;
    Some(Diagnostic::error(
        "c-option",
        format!("{option} applies only to C and Rust programs, and this is neither"),
    ))
}

/// A C program is refused if the number of instances of its processes is given: it starts its own threads.
pub fn refuse_threads(input: Box<Input>, machine: &MachineArgs) -> Result<Box<Input>, Refused> {
    if input.c.is_none() || machine.threads.is_none() {
        return Ok(input);
    }
    let error = Diagnostic::error(
        "c-option",
        "--threads does not apply to C programs: they start their own threads",
    )
    .help(
        "use `--threads any`, name functions that run as threads with --thread, or pass a number on with \
             `-- -DNTHREADS=3`",
    );
    Err(Refused { source: input.source, diagnostics: vec![error] })
}

/// Compiles a program, and collects the user's files. Some of them may have another text than on disk.
fn compile(
    path: &Path,
    language: InputLanguage,
    words: &[String],
    options: COptions,
    patches: &[FilePatch],
) -> Result<Compilation, Refused> {
    let name = path.display().to_string();
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(name.as_str(), ""), diagnostics: vec![error] };
    let mut arguments = Arguments::new(words).map_err(refuse)?;
    let patched =
        |name: &str| patches.iter().find(|patch| patch.name == name).map(|patch| patch.after.clone());
    let text = patched(&name).map_or_else(|| files::text(path), Ok).map_err(refuse)?;
    let overlay = Overlay::new(patches).map_err(refuse)?;
    arguments.options.extend(overlay.options());
    let mut source = Source::new(name.as_str(), text.as_str());
    let needs_clang = language == InputLanguage::C || arguments.files.iter().any(|file| !is_llvm(file));
    let clang = needs_clang.then(Clang::find).transpose().map_err(refuse)?;
    let mut modules = Vec::new();
    let units = std::iter::once((path, language == InputLanguage::Llvm))
        .chain(arguments.files.iter().map(|file| (file.as_path(), is_llvm(file))));
    for (index, (file, llvm)) in units.enumerate() {
        let given = (index == 0).then_some(text.as_str());
        modules.push(unit(file, llvm, given, clang.as_ref(), &arguments, &source)?);
    }
    let files = user_files(&modules, &name, &["<stdin>", "-"], &mut source, &patched, OtherFiles::Open);
    let compiler = clang.map_or_else(String::new, |clang| clang.version);
    Ok(Compilation { source, files, language, modules, compiler, arguments: words.to_vec(), options })
}

/// Compiles and reads one translation unit. The text is that of the main file, which may come from a pipe.
fn unit(
    file: &Path,
    llvm: bool,
    text: Option<&str>,
    clang: Option<&Clang>,
    arguments: &Arguments,
    source: &Source,
) -> Result<Module, Refused> {
    let name = file.display().to_string();
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(name.as_str(), ""), diagnostics: vec![error] };
    let (ir_name, ir) = match clang.filter(|_| !llvm) {
        None => match text {
            Some(text) => (name.clone(), text.to_owned()),
            None => (name.clone(), files::text(file).map_err(refuse)?),
        },
        Some(clang) => {
            // A pipe can be read only once.
            let text = text.filter(|_| !file.is_file());
            let file = if text.is_some() { Path::new("-") } else { file };
            match clang.compile(Unit { file, text, options: &arguments.options }) {
                Ok(ir) => (format!("{name} (as LLVM IR)"), ir),
                Err(NotCompiled::Problem(error)) => return Err(refuse(error)),
                Err(NotCompiled::Rejected(printed)) => {
                    return Err(complaints::refused(&printed, &name, source, OtherFiles::Open));
                }
            }
        }
    };
    let ir = Source::new(ir_name, ir);
    palisade::llvm::read(&ir).map_err(|diagnostics| Refused { source: ir, diagnostics })
}

fn is_llvm(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ll"))
}

/// Whether a C or Rust file or a module in a folder is a program: whether it defines `main`.
pub fn defines_main(path: &Path) -> bool {
    let Ok(text) = files::text(path) else { return true };
    text.match_indices("main").any(|(at, word)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].trim_start();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && after.starts_with('(')
    })
}
