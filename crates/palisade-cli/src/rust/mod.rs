//! Rust programs: compiled by rustc together with a library `std` of ours, and then read like C programs.
//!
//! - `model.rs` has the text of that library, `rustc.rs` calls the compiler.
//! - `package/` has cargo compile what a program depends on.
//! - `session.rs` compiles a program in all the ways that are needed.
//! - `symbols.rs` finds the function in which the program starts, and gives functions the names that users know.

mod arguments;
mod complaints;
mod model;
mod package;
mod rustc;
mod session;
mod symbols;

pub use package::{MANIFEST, is_package, wrapped};
pub use rustc::Rustc;

use crate::args::ReadingArgs;
use crate::c::{OtherFiles, options, recorded_options, user_files};
use crate::files::{self, InputFile, Named, Reading};
use arguments::Arguments;
use model::Model;
use palisade::c::{COptions, Compilation, read_c};
use palisade::llvm::Module;
use palisade::trace::BuildRecord;
use palisade::{Diagnostic, InputLanguage, Refused, Source};
use rustc::{CRATE, Given};
use session::Session;
use std::path::Path;
use symbols::find_test;

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
    if !is_package(&found.path)
        && let Err(error) = arguments::refuse_harmful(&build.arguments)
    {
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

/// A program as LLVM IR, and what the compiler prints about itself.
struct Compiled {
    modules: Vec<Module>,
    compiler: String,
}

/// Compiles a program, and collects the user's files.
fn compile(path: &Path, words: &[String], options: COptions) -> Result<Compilation, Refused> {
    let name = path.display().to_string();
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(name.as_str(), ""), diagnostics: vec![error] };
    let text = files::text(path).map_err(refuse)?;
    let mut source = Source::new(name.as_str(), text);
    let Compiled { modules, compiler } = match is_package(path) {
        true => package::compile(path, words, &options, &source)?,
        false => compile_file(path, words, &options, &source)?,
    };
    let files = user_files(&modules, &name, &["<anon>", "-"], &mut source, &|_| None, OtherFiles::Open);
    let (language, arguments) = (InputLanguage::Rust, words.to_vec());
    Ok(Compilation { source, files, language, modules, compiler, arguments, options })
}

/// Compiles a file with its modules.
fn compile_file(
    path: &Path,
    words: &[String],
    options: &COptions,
    source: &Source,
) -> Result<Compiled, Refused> {
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(source.name(), ""), diagnostics: vec![error] };
    let arguments = Arguments::new(words).map_err(refuse)?;
    let rustc = Rustc::find().map_err(refuse)?;
    let model = Model::build(&rustc).map_err(refuse)?;
    let session = Session { rustc: &rustc, model: &model, source };
    let given = Given::File {
        file: if path.is_file() { path } else { Path::new("-") },
        text: (!path.is_file()).then_some(source.text()),
        options: &arguments.options,
    };
    let test = match &options.test {
        Some(test) => Some(find_test(test, &session.tests(given, CRATE)?).map_err(refuse)?),
        None => None,
    };
    let module = session.module(given, CRATE, test, &options.roots)?;
    Ok(Compiled { modules: vec![module], compiler: rustc.version })
}
