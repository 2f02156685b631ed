//! Rust programs: compiled by rustc together with a library `std` of ours, and then read like C programs.
//!
//! - `model.rs` has the text of that library, `rustc.rs` calls the compiler.
//! - `symbols.rs` finds the function in which the program starts, and gives functions the names that users know.

mod arguments;
mod complaints;
mod model;
mod rustc;
mod symbols;

pub use rustc::Rustc;

use crate::args::ReadingArgs;
use crate::c::{options, recorded_options, user_files};
use crate::files::{self, InputFile, Named, Reading};
use arguments::Arguments;
use model::Model;
use palisade::c::{COptions, Compilation, Roots, read_c};
use palisade::trace::BuildRecord;
use palisade::{Diagnostic, InputLanguage, Refused, Source};
use rustc::{Kind, NotCompiled, Unit};
use std::path::Path;
use symbols::{Start, defined_functions, find_test};

/// Reads a Rust program.
pub fn read(found: &InputFile, reading: &ReadingArgs) -> Reading {
    if reading.int_range.is_some() && found.named == Named::ByUser {
        let error = Diagnostic::error("c-option", "--int-range does not apply to Rust programs")
            .help("their integers are as wide as their types");
        let source = Source::new(found.path.display().to_string(), "");
        return Reading::Refused(Refused { source, diagnostics: vec![error] });
    }
    finish(compile(&found.path, &reading.c.compiler, options(&reading.c)))
}

/// Reads a program again as it was recorded.
pub fn read_again(found: &InputFile, build: &BuildRecord) -> Reading {
    if let Err(error) = arguments::refuse_harmful(&build.arguments) {
        let source = Source::new(found.path.display().to_string(), "");
        return Reading::Refused(Refused { source, diagnostics: vec![error] });
    }
    finish(compile(&found.path, &build.arguments, recorded_options(build)))
}

fn finish(compiled: Result<Compilation, Refused>) -> Reading {
    match compiled.and_then(read_c) {
        Ok(input) => Reading::Program(Box::new(input)),
        Err(refused) => Reading::Refused(refused),
    }
}

/// Compiles a program, and collects the user's files.
fn compile(path: &Path, words: &[String], options: COptions) -> Result<Compilation, Refused> {
    let name = path.display().to_string();
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(name.as_str(), ""), diagnostics: vec![error] };
    let arguments = Arguments::new(words).map_err(refuse)?;
    let text = files::text(path).map_err(refuse)?;
    let mut source = Source::new(name.as_str(), text.as_str());
    let rustc = Rustc::find().map_err(refuse)?;
    let model = Model::build(&rustc).map_err(refuse)?;
    let kind = match (&options.test, &options.roots) {
        (Some(_), _) => Kind::Tests,
        (None, Roots::Main) => Kind::Program,
        (None, Roots::Functions { .. }) => Kind::Library,
    };
    let unit = Unit {
        file: if path.is_file() { path } else { Path::new("-") },
        text: (!path.is_file()).then_some(text.as_str()),
        options: &arguments.options,
        kind,
        kept: None,
    };
    let printed = |unit: Unit<'_>| {
        rustc.compile(unit, &model).map_err(|error| match error {
            NotCompiled::Problem(error) => refuse(error),
            NotCompiled::Rejected(printed) => complaints::refused(&printed, &name, &source),
        })
    };
    let (start, ir) = match &options.test {
        None => (Start::of(&options.roots), printed(unit)?),
        Some(test) => {
            // Tests are inlined into what calls them, unless the compiler is asked to keep them. So it is asked twice.
            let all = printed(Unit { kind: Kind::ListOfTests, ..unit })?;
            let symbol = find_test(test, &defined_functions(&all)).map_err(refuse)?;
            let ir = printed(Unit { kept: Some(&symbol), ..unit })?;
            (Start::Symbol(symbol), ir)
        }
    };
    let ir = Source::new(format!("{name} (as LLVM IR)"), ir);
    let mut module = match palisade::llvm::read(&ir) {
        Ok(module) => module,
        Err(diagnostics) => return Err(Refused { source: ir, diagnostics }),
    };
    symbols::rename(&mut module, &start).map_err(refuse)?;
    let modules = vec![module];
    let files = user_files(&modules, &name, &["<anon>", "-"], &mut source, &|_| None);
    let (language, arguments) = (InputLanguage::Rust, words.to_vec());
    Ok(Compilation { source, files, language, modules, compiler: rustc.version, arguments, options })
}
